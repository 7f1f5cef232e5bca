"""`tilewright.jit` on eight devices: the same values, shardings and collectives."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import tool

REWRITTEN = {
    "batch",
    "space",
    "batch_norm",
    "donated",
    "constraint",
    "out_shardings",
    "in_shard_map",
    "grad_in_shard_map",
    "explicit",
    "sums_in_shard_map",
    "pmap",
}
# A `shard_map` is not put back as JAX wrote it, and where arrays lie is not known within one.
LEFT = {"around_shard_map", "in_partial_shard_map"}


def given(*names: str) -> dict[str, Any]:
    """What each program gives, by name."""
    script = Path(__file__).with_name("sharded_programs.py")
    command = [sys.executable, str(script), *names]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def records() -> dict[str, Any]:
    """What each small program gives."""
    return given(*sorted(REWRITTEN | LEFT))


def outcome_of(name: str, record: dict[str, Any]) -> str:
    """What became of a program, whose results must be those of JAX."""
    plain, ours = record["collectives"]
    assert sum(ours.values()) <= sum(plain.values()), name
    assert record["difference"] < 1e-5, name
    assert record["same_sharding"], name
    [outcome] = set(record["outcomes"])
    return outcome


def test_values_shardings_and_collectives(records: dict[str, Any]) -> None:
    outcomes = {name: outcome_of(name, record) for name, record in records.items()}
    expected = dict.fromkeys(REWRITTEN, "rewritten") | dict.fromkeys(LEFT, "sharded")
    assert outcomes == expected


def divided() -> list[str]:
    """Norms whose inputs and outputs are divided along every axis in turn; some by day."""
    script = Path(__file__).with_name("sharded_programs.py")
    listed = subprocess.run([sys.executable, str(script), "--list"], capture_output=True, text=True, check=True)
    names = [name for name in listed.stdout.splitlines() if name.startswith("divided ")]
    return names if tool.IS_NIGHT else names[::13]


def test_outputs_along_any_axis_cost_no_exchange_more() -> None:
    """No kind of exchange is there more often, whatever XLA's partitioner makes of the outputs."""
    names = divided()
    for name, record in given(*names).items():
        assert record["difference"] < 1e-4 and record["same_sharding"], name
        plain, ours = record["collectives"]
        assert sum(ours.values()) <= sum(plain.values()), (name, plain, ours)
        more = {op: count for op, count in ours.items() if count > plain[op]}
        assert not {"all-gather", "all-to-all", "collective-permute"} & more.keys(), (name, plain, ours)


@pytest.mark.nightly
def test_steps_of_training() -> None:
    """Three steps of a ResNet, too small for a rewrite that pays."""
    [(name, record)] = given("training").items()
    assert outcome_of(name, record) == "unchanged"


def test_sums_over_both_axes_take_one_round(records: dict[str, Any]) -> None:
    plain, ours = records["batch_norm"]["collectives"]
    # Images are so small that the variance pays in the round of the mean.
    assert (plain["all-reduce"], ours["all-reduce"]) == (4, 1)
    plain, ours = records["explicit"]["collectives"]
    assert (plain["all-reduce"], ours["all-reduce"]) == (4, 1)


def test_sums_over_devices_are_reduced_first(records: dict[str, Any]) -> None:
    plain, ours = records["sums_in_shard_map"]["collectives"]
    assert ours["all-reduce"] == 1 <= plain["all-reduce"]
