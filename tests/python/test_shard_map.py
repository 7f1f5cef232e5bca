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


@pytest.fixture(scope="module", params=["shardy", "gspmd"])
def records(request: pytest.FixtureRequest) -> list[dict[str, Any]]:
    """What shard_map.py says of each program, lowered for one of the partitioners."""
    command = [sys.executable, str(SCRIPT), request.param]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_every_device_has_the_whole_result(records: list[dict[str, Any]]) -> None:
    """As many rows as devices, each what JAX gives."""
    assert len(records) == 13
    assert [r["name"] for r in records if r["devices"] != 8] == []
    allowed = xla.TOLERANCE[np.dtype(np.float32)]
    assert [r["name"] for r in records if not r["error"] <= allowed] == []
