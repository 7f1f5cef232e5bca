"""`tilewright.jit` on eight devices: the same values, shardings and collectives."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

# Where the whole program is the marked function, or shapes are those of one device.
REWRITTEN = {
    "batch",
    "space",
    "out_shardings",
    "in_shard_map",
    "grad_in_shard_map",
    "explicit",
    "sums_in_shard_map",
    "pmap",
}
# A `shard_map` is not put back as JAX wrote it, and where arrays lie is not known within one.
LEFT = {"around_shard_map", "in_partial_shard_map"}


@pytest.fixture(scope="module")
def records() -> dict[str, Any]:
    """What each program gives."""
    script = Path(__file__).with_name("sharded_programs.py")
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_values_shardings_and_collectives(records: dict[str, Any]) -> None:
    assert len(records) == 14
    for name, record in records.items():
        plain, ours = record["collectives"]
        assert sum(ours.values()) <= sum(plain.values()), name
        assert record["difference"] < 1e-5, name
        assert record["same_sharding"], name
        outcomes = set(record["outcomes"])
        if name in REWRITTEN:
            assert outcomes == {"rewritten"}, name
        elif name in LEFT:
            assert outcomes == {"sharded"}, name
        else:
            assert outcomes <= {"rewritten", "unchanged"}, name


def test_sums_over_both_axes_take_one_round(records: dict[str, Any]) -> None:
    plain, ours = records["batch_norm"]["collectives"]
    # Images are so small that the variance pays in the round of the mean.
    assert (plain["all-reduce"], ours["all-reduce"]) == (4, 1)
    plain, ours = records["explicit"]["collectives"]
    assert (plain["all-reduce"], ours["all-reduce"]) == (4, 1)


def test_sums_over_devices_are_reduced_first(records: dict[str, Any]) -> None:
    plain, ours = records["sums_in_shard_map"]["collectives"]
    assert ours["all-reduce"] == 1 <= plain["all-reduce"]
