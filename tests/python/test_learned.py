"""What an engine's file learns from decisions, by hand."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

import tool

sys.path.insert(0, str(tool.ROOT / "benches"))

import learned
from learned import Sample


def test_the_error_is_that_of_nine_in_ten() -> None:
    found = [Sample(2.0, 2.0 / factor, 0.0) for factor in (1.0, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6, 1.7, 1.8, 9.0)]
    assert learned.ratio_error(found) == pytest.approx(1.8)
    # Below or above.
    assert learned.ratio_error([Sample(1.5, 3.0, 0.0)]) == pytest.approx(2.0)


def test_the_least_gain_is_where_rewrites_begin_to_pay() -> None:
    found = [Sample(1.05, 0.9, 0.0), Sample(1.1, 0.95, 0.0), Sample(1.2, 1.1, 0.0), Sample(1.5, 1.4, 0.0)]
    assert learned.least_gain(found, 1.02) == 1.2
    assert learned.least_gain([Sample(1.5, 1.4, 0.0)], 1.02) == 1.02
    # One that lies above better ones is taken with them.
    assert learned.least_gain([*found, Sample(1.3, 0.99, 0.0)], 1.02) == 1.2
    # No less than the base, and more than all if nothing paid.
    assert learned.least_gain(found, 1.3) == 1.3
    assert learned.least_gain([Sample(1.5, 0.7, 0.0)], 1.02) == pytest.approx(1.515)


def test_few_forms_say_nothing() -> None:
    found = [Sample(1.2, 0.9, 1e6)] * 19
    assert learned.keys(found, {}) == {}
    assert set(learned.keys(found + found, {})) == {"ratio_error", "least_gain"}
    assert set(learned.keys(found + found, {"small_saving_cycles": 1e9})) == {"ratio_error", "least_small_gain"}


def test_a_file_is_an_engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    form = {"name": "default", "measured": 1.5, "modelled": 3.0, "saved_cycles": 1e9}
    where = {"device": "a CPU x1", "engine": "jaxlib 0.12.0.1"}
    decision = {**where, "options": "xla-cpu-0.12 guarded", "forms": [form, {**form, "name": "exact"}]}
    other = {**where, "options": "tpu-v5e guarded", "forms": [form]}
    path, out = tmp_path / "decisions.json", tmp_path / "mine.toml"
    path.write_text(json.dumps([decision] * 20 + [other] * 20))
    monkeypatch.setattr(sys, "argv", ["learned.py", str(path), "--base", "xla-cpu-0.12", "-o", str(out)])
    learned.main()
    lines = out.read_text().splitlines()
    assert lines[1:] == ['base = "xla-cpu-0.12"', "ratio_error = 2", "least_gain = 1.02"]
    tool.tilewright("cost", tool.FIXTURES / "models/group_norm_nhwc.hlo", "--target", out)
    path.write_text(json.dumps([decision, {**decision, "device": "another x1"}]))
    with pytest.raises(SystemExit, match="another x1, jaxlib"):
        learned.main()
    path.write_text(json.dumps([decision]))
    with pytest.raises(SystemExit, match="1 forms were measured"):
        learned.main()
