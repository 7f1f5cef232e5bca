"""`tilewright.jit` on eight devices: the same values, shardings and collectives."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

# A program whose shapes are those of one device is rewritten, any other is left alone.
REWRITTEN = {"in_shard_map", "grad_in_shard_map", "pmap"}


@pytest.fixture(scope="module")
def records() -> dict[str, Any]:
    """What each program gives."""
    script = Path(__file__).with_name("sharded_programs.py")
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_values_shardings_and_collectives(records: dict[str, Any]) -> None:
    assert len(records) == 10
    for name, record in records.items():
        plain, ours = record["collectives"]
        assert plain == ours, name
        assert record["difference"] < 1e-5, name
        assert record["same_sharding"], name
        outcomes = set(record["outcomes"])
        assert outcomes == ({"rewritten"} if name in REWRITTEN else {"sharded"}), name
