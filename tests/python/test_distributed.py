"""Steps that two processes share give what one device does, plain and rewritten."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import tool

SCRIPT = tool.ROOT / "benches" / "distributed.py"
NAMES = {
    "batch norm step, batch",
    "group norm step, batch and space",
    "layer norm step, channels",
    "Flax batch norm step, shard_map",
}
# What says that the processes could not meet, and not that a step is wrong.
UNABLE = ("Address already in use", "DEADLINE_EXCEEDED", "Gloo connectFullMesh failed")


def test_two_processes_give_what_one_device_does(tmp_path: Path) -> None:
    """Of four norms, all results of both programs, against f64."""
    path = tmp_path / "rows.json"
    command = [sys.executable, str(SCRIPT), "--processes", "2", "--delay", "0", "--turns", "1"]
    command += ["--only", "norm step", "--json", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    if done.returncode and any(text in done.stderr for text in UNABLE):
        pytest.skip("the processes could not meet")
    assert done.returncode == 0, done.stderr
    rows = {row["name"]: row for row in json.loads(path.read_text())}
    assert rows.keys() == NAMES
    assert any(row["is_rewritten"] for row in rows.values())
    for name, row in rows.items():
        assert row["rounds"][0], name
        assert max(row["errors"]) <= row["floor"], name
