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
# What says that the processes could not meet; a step that is wrong may say so, too.
UNABLE = ("Address already in use", "DEADLINE_EXCEEDED", "Gloo connectFullMesh failed")
# The row of a sum over both processes that Tilewright has no part in.
MET = "\n| empty | 2 |"


def steps_agree(only: str, names: set[str], path: Path) -> None:
    """Fails unless steps, of which each is rewritten, give what one device gives."""
    command = [sys.executable, str(SCRIPT), "--processes", "2", "--delay", "0", "--turns", "1"]
    command += ["--only", only, "--json", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    is_unable = any(text in done.stderr for text in UNABLE)
    if done.returncode and is_unable and MET not in done.stdout:
        pytest.skip("two processes cannot meet on this machine, with or without Tilewright")
    assert done.returncode == 0, done.stderr
    assert MET in done.stdout
    rows = {row["name"]: row for row in json.loads(path.read_text())}
    assert rows.keys() == names
    for name, row in rows.items():
        assert row["is_rewritten"], name
        assert row["rounds"][0], name
        assert max(row["errors"]) <= row["floor"], name


def test_two_processes_give_what_one_device_does(tmp_path: Path) -> None:
    """Of a group norm, all results of both programs, against f64."""
    steps_agree("group norm step", {"group norm step, batch and space"}, tmp_path / "rows.json")


@pytest.mark.nightly
def test_two_processes_share_four_norms(tmp_path: Path) -> None:
    """The same of every norm."""
    steps_agree("norm step", NAMES, tmp_path / "rows.json")
