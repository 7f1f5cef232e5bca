"""Rewritten programs for several devices communicate no more than before, and give the same.

`TILEWRIGHT_ROUNDS=TEXT` tries all programs of `benches/rounds.py` whose names contain this text, at
their small size; by night a few of each kind are tried, and by day those of them that are
rewritten.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tilewright._jax import _traffic as traffic

import tool

SCRIPT = tool.ROOT / "benches" / "rounds.py"
REWRITTEN = [
    "batch norm step, batch and space",
    "batch norm step, batch and space, GSPMD",
    "group norm step, channels",
    "group norm step, shard_map of pixels",
    "batch norm steps in a loop, batch and space",
    "norm step in a branch, batch and space",
]
# These are rewritten as well, and tried by night.
SAVED_TOO = [
    "batch norm step, channels, bf16",
    "instance norm step, batch and space",
    "layer norm step, channels",
]
# These exchange less than 1 kB more in as many rounds, which takes less than a hundredth of their wait.
MORE_BYTES = ["group norm, batch and space", "group norm step, batch and space"]
# In these, nothing that is found pays.
LEFT = [
    "rms norm step, channels",
    "ghost norm step, batch",
    "batch norm step, shard_map",
    "batch norm in one pass step, shard_map, GSPMD",
    "layer norm step, shard_map of channels",
    "batch norm step, partial shard_map and channels",
    "batch norm step of each device, shard_map",
    "Flax batch norm step, shard_map",
    "Flax batch norm step, pmap",
    "batch norm step, replicas",
    "cross-entropy step, vocabulary",
    "cross-entropy step, shard_map",
    "clip by global norm, FSDP",
    "clipped AdamW, ZeRO",
    "GPT step with scan, tensor",
]


def rounds(*arguments: str) -> str:
    """What the script prints; a program that fails is one of its records."""
    command = [sys.executable, str(SCRIPT), "--small", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout, done.stderr
    return done.stdout


BY_NIGHT = [*SAVED_TOO, *MORE_BYTES, *LEFT]
TEXT = os.environ.get("TILEWRIGHT_ROUNDS")


def names() -> list[Any]:
    """The programs to try."""
    if TEXT is not None:
        return rounds("--list", "--only", TEXT).splitlines()
    return [*REWRITTEN, *(pytest.param(name, marks=pytest.mark.nightly) for name in BY_NIGHT)]


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """What is known of each program, by name."""
    path = tmp_path_factory.mktemp("rounds") / "rows.json"
    few = [*REWRITTEN, *(BY_NIGHT if tool.IS_NIGHT else [])]
    chosen = ["--named", *few] if TEXT is None else ["--only", TEXT]
    printed = rounds("--values", "--json", str(path), *chosen)
    assert path.is_file(), printed
    return {row["name"]: row for row in json.loads(path.read_text())}


@pytest.mark.parametrize("name", names())
def test_a_program_is_not_worse(records: dict[str, dict[str, Any]], name: str) -> None:
    """Not in what it communicates, and not in its values."""
    record = records[name]
    assert not record["failed"], record["failed"]
    more = ["bytes"] if name in MORE_BYTES else []
    assert record["worse"] == more, f"before {record['before']}, after {record['after']}"
    assert not more or record["after"]["size"] < record["before"]["size"] + 1000
    assert not record["wrong"], record["errors"]
    assert TEXT is not None or record["is_rewritten"] == (name not in LEFT)
    # Else there would be nothing to compare.
    assert record["before"]["rounds"]


@pytest.mark.skipif(TEXT is not None, reason="TILEWRIGHT_ROUNDS asks for other programs")
def test_some_have_fewer_rounds(records: dict[str, dict[str, Any]]) -> None:
    """Of two batch norms all means are taken in one round."""
    halved = records["batch norm step, batch and space"]
    assert (halved["before"]["rounds"], halved["after"]["rounds"]) == (8, 3)
    turned = records["batch norm steps in a loop, batch and space"]
    assert (turned["before"]["rounds"], turned["after"]["rounds"]) == (40, 20)


@pytest.mark.skipif(TEXT is not None, reason="TILEWRIGHT_ROUNDS asks for other programs")
def test_guards_share_the_rounds_of_their_sums(tmp_path: Path) -> None:
    """The sums of a gradient do not wait for each other, and devices agree on the branches."""
    target, found = tmp_path / "guards.toml", tmp_path / "rows.json"
    target.write_text(
        'base = "tpu-v5e"\nvector_memory_bytes = 16384\nguard_cycles = 1\nhbm_bytes_per_cycle = 1\n'
    )
    name = "batch norm vjp, batch"
    printed = rounds("--values", "--json", str(found), "--named", name, "--target", str(target))
    assert found.is_file(), printed
    [record] = json.loads(found.read_text())
    assert not record["failed"] and not record["worse"] and not record["wrong"], record
    assert (record["before"]["rounds"], record["after"]["rounds"]) == (3, 2)


PROGRAM = """HloModule counted

add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT sum = f32[] add(a, b)
}

body {
  state = (s32[], f32[8]) parameter(0)
  turn = s32[] get-tuple-element(state), index=0
  value = f32[8] get-tuple-element(state), index=1
  one = s32[] constant(1)
  next = s32[] add(turn, one)
  first = f32[8] all-reduce(value), replica_groups={}, to_apply=add
  second = f32[8] all-reduce(value), replica_groups={}, to_apply=add
  both = f32[8] add(first, second)
  ROOT out = (s32[], f32[8]) tuple(next, both)
}

condition {
  state = (s32[], f32[8]) parameter(0)
  turn = s32[] get-tuple-element(state), index=0
  last = s32[] constant(3)
  ROOT less = pred[] compare(turn, last), direction=LT
}

quiet {
  ROOT given = f32[8] parameter(0)
}

loud {
  given = f32[8] parameter(0)
  ROOT reduced = f32[8] all-reduce(given), replica_groups={}, to_apply=add
}

ENTRY main {
  x = f32[8] parameter(0)
  zero = s32[] constant(0)
  start = (s32[], f32[8]) tuple(zero, x)
  loop = (s32[], f32[8]) while(start), condition=condition, body=body, backend_config={"known_trip_count":{"n":"3"}}
  value = f32[8] get-tuple-element(loop), index=1
  sign = pred[] constant(true)
  chosen = f32[8] conditional(sign, value, value), true_computation=quiet, false_computation=loud
  ROOT gathered = f32[64] all-gather(chosen), replica_groups={{0,1,2,3,4,5,6,7}}, dimensions={0}
}
"""


def test_collectives_are_counted_where_they_are() -> None:
    """By hand: three turns of two that do not wait for each other, one in a branch, and one that
    makes 64 numbers; each number has 4 bytes."""
    found = traffic.traffic(PROGRAM)
    assert found == traffic.Traffic(rounds=8, chain=5, size=7 * 32 + 256, largest=256, shard=256)


def test_what_is_worse() -> None:
    """Each by itself, and nothing where all is equal."""
    one = traffic.Traffic(rounds=2, chain=2, size=1000, largest=100, shard=400)
    cases = {
        (): {},
        ("rounds",): {"rounds": 3},
        ("chain",): {"chain": 3},
        ("bytes",): {"size": 1101},
        ("a whole shard",): {"largest": 400},
    }
    for expected, change in cases.items():
        other = traffic.Traffic(**{**vars(one), **change})
        assert tuple(other.worse_than(one)) == expected
