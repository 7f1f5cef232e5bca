"""Rewritten programs on eight devices: same results, no more communication."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import xla

SCRIPT = Path(__file__).with_name("sharded.py")


@pytest.fixture(scope="module")
def records() -> list[dict[str, Any]]:
    """What sharded.py says of each program."""
    command = [sys.executable, str(SCRIPT)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_most_programs_are_rewritten(records: list[dict[str, Any]]) -> None:
    """Else the other tests would compare a program with itself. Rounds take most of the time of
    images this small, so that a rewrite which saves none may not pay."""
    assert len(records) == 16
    assert {r["name"] for r in records if not r["changed"]} == {
        "forward P(None, 'x', None, 'y') for cpu",
    }


def test_devices_get_the_same_shards(records: list[dict[str, Any]]) -> None:
    """Every device has what it had, in value."""
    allowed = xla.TOLERANCE[np.dtype(np.float32)]
    assert [r["name"] for r in records if not r["error"] <= allowed] == []


def test_no_more_collectives_than_before(records: list[dict[str, Any]]) -> None:
    """Not in number, and of no other kind."""
    for record in records:
        before, after = record["collectives"]
        assert not Counter(after) - Counter(before), record["name"]


def test_shardings_are_kept(records: list[dict[str, Any]]) -> None:
    """Each of the original is there still, besides those of sums within devices."""
    for record in records:
        before, after = record["shardings"]
        assert before and not Counter(before) - Counter(after), record["name"]
