"""The code of pages about JAX runs, and does what they say."""

from __future__ import annotations

import re
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tilewright

PAGE = Path(__file__).resolve().parents[3] / "docs" / "jax.md"


def test_the_page_about_jax(capsys: pytest.CaptureFixture[str]) -> None:
    text = PAGE.read_text(encoding="utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    assert len(blocks) == 5
    tilewright.report(clear=True)
    names: dict[str, object] = {}
    for block in blocks:
        exec(compile(block, str(PAGE), "exec"), names)
    printed = capsys.readouterr().out
    shown = re.search(r"^```text\n(function .*?)^```$", text, re.MULTILINE | re.DOTALL)
    assert shown is not None
    # All but the seconds.
    row = shown[1].splitlines()[1].split()[:-1]
    assert row in [line.split()[:-1] for line in printed.splitlines()], printed
    assert "1 layer rewritten:" in printed
    value, gradients = jax.value_and_grad(names["loss"], (0, 1, 2))(
        *(names[name] for name in ("x", "scale", "bias"))
    )
    np.testing.assert_allclose(names["value"], value, rtol=1e-5)
    for ours, plain in zip(names["gradients"], gradients, strict=True):
        np.testing.assert_allclose(ours, plain, rtol=1e-3, atol=1e-6)
    assert jnp.isfinite(names["fast"]).all()


def test_the_page_about_many_devices(capsys: pytest.CaptureFixture[str]) -> None:
    text = PAGE.with_name("many-devices.md").read_text(encoding="utf-8")
    [block] = re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    exec(compile(block, "many-devices.md", "exec"), {})
    [shown] = re.findall(r"^```text\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    assert capsys.readouterr().out == shown


def test_the_page_about_tuning(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Times vary, and so does what wins; the forms and what the model says of them do not."""
    monkeypatch.setenv("TILEWRIGHT_DECISIONS", str(tmp_path / "decisions.jsonl"))
    text = PAGE.with_name("tune.md").read_text(encoding="utf-8")
    [block] = re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    exec(compile(block, "tune.md", "exec"), {})
    [shown] = re.findall(r"^```text\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)

    def known(table: str) -> list[tuple[str, str]]:
        rows = [re.split(r" {2,}", line) for line in table.strip().splitlines()]
        return [(row[0], row[4]) for row in rows]

    assert known(capsys.readouterr().out) == known(shown)
