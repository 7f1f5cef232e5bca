#!/usr/bin/env python3
"""Run time of the interpreter, beside XLA:CPU's.

    cargo build --release -p tilewright-benches --bin time_evaluation
    python benches/oracle_peer.py [FILE.hlo ...] [--rounds N] [--bin PATH]

Without files, all model fixtures.  Both run the same module on the same inputs,
in turns on the same machine, without the time to read the files.  XLA's time is
the median of runs in one process; the interpreter's is given twice: the median
of first runs in a process of their own, where most of the time goes into
finding memory, and that of further runs in one process.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests" / "python"))

import xla

# Runs in a row, before it is the other's turn.
RUNS = 5


def random_inputs(executable: xla.Executable) -> list[np.ndarray]:
    """Normal floats and small integers."""
    rng = np.random.default_rng(0)
    inputs = []
    for shape, dtype in zip(executable.input_shapes, executable.input_types):
        if np.issubdtype(dtype, np.integer):
            inputs.append(rng.integers(0, 4, shape).astype(dtype))
        else:
            inputs.append(rng.standard_normal(shape).astype(dtype))
    return inputs


def times_of_xla(executable: xla.Executable, placed: list[Any]) -> list[float]:
    """Milliseconds of a few runs."""
    times = []
    for _ in range(RUNS):
        start = time.perf_counter()
        executable.launch(placed)
        times.append((time.perf_counter() - start) * 1e3)
    return times


def times_of_ours(binary: Path, path: Path, inputs: Path) -> tuple[float, float]:
    """Milliseconds of the first evaluation in a process, and of another."""
    words = [binary, path, inputs, str(RUNS)]
    done = subprocess.run(words, check=True, capture_output=True, text=True)
    found = json.loads(done.stdout)
    return found["first_ms"], found["median_ms"]


def compare(binary: Path, path: Path, rounds: int) -> tuple[float, float, float]:
    """Median milliseconds of XLA, and ours of first and of further runs."""
    executable = xla.compile_text(path.read_text())
    inputs = random_inputs(executable)
    placed = executable.place(inputs)
    executable.launch(placed)
    peer, first, further = [], [], []
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "inputs.npz"
        portable = [a.view(np.uint16) if a.dtype == xla.BFLOAT16 else a for a in inputs]
        np.savez(file, **{f"in{i}": array for i, array in enumerate(portable)})
        for _ in range(rounds):
            peer += times_of_xla(executable, placed)
            ours = times_of_ours(binary, path, file)
            first.append(ours[0])
            further.append(ours[1])
    return statistics.median(peer), statistics.median(first), statistics.median(further)


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=str(__doc__).split("\n")[0])
    parser.add_argument("paths", nargs="*", type=Path)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument(
        "--bin", type=Path, default=ROOT / "target/release/time_evaluation"
    )
    options = parser.parse_args()
    paths = options.paths or sorted((ROOT / "fixtures" / "models").rglob("*.hlo"))
    print("| module | XLA:CPU ms | first ms | times longer | further ms | times longer |")
    print("|---|---:|---:|---:|---:|---:|")
    for path in paths:
        peer, first, further = compare(options.bin, path, options.rounds)
        print(
            f"| `{path.stem}` | {peer:.2f} | {first:.2f} | {first / peer:.1f}"
            f" | {further:.2f} | {further / peer:.1f} |"
        )


if __name__ == "__main__":
    main()
