"""Programs of eight devices before partitioning: `run` gives what JAX does, on all."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import xla

SCRIPT = Path(__file__).with_name("shard_map.py")


@pytest.fixture(name="of_both", scope="module")
def fixture_of_both() -> dict[str, list[dict[str, Any]]]:
    """What shard_map.py says of each program, by the partitioner that it is lowered for."""
    command = [sys.executable, str(SCRIPT)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("partitioner", ["shardy", "gspmd"])
def test_every_device_has_the_whole_result(
    of_both: dict[str, list[dict[str, Any]]], partitioner: str
) -> None:
    """As many rows as devices, each what JAX gives, and what the rewritten program gives."""
    records = of_both[partitioner]
    assert len(records) == 13
    assert [r["name"] for r in records if r["devices"] != 8] == []
    allowed = xla.TOLERANCE[np.dtype(np.float32)]
    assert [r["name"] for r in records if not r["error"] <= allowed] == []
    assert [r["name"] for r in records if not r["stays_equal"]] == []
    assert {r["is_for_shardy"] for r in records} == {partitioner == "shardy"}
