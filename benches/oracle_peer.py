#!/usr/bin/env python3
"""Run time of the interpreter, beside XLA:CPU's.

    cargo build --release -p tilewright-cli
    python benches/oracle_peer.py [FILE.hlo ...] [--rounds N] [--bin PATH]

Without files, all model fixtures.  Both run the same module on the same inputs,
one after the other on the same machine: XLA the median of the rounds, the
interpreter likewise, without the time to read the files.
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

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests" / "python"))

import tool
import xla


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


def time_xla(executable: xla.Executable, inputs: list[np.ndarray], rounds: int) -> float:
    """Median seconds of a run."""
    placed = executable.place(inputs)
    executable.launch(placed)
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        executable.launch(placed)
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def time_ours(binary: Path, path: Path, inputs: list[np.ndarray], rounds: int) -> float:
    """Median seconds of an evaluation, as the tool reports them."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "inputs.npz"
        out = Path(folder) / "out.npz"
        portable = [a.view(np.uint16) if a.dtype == xla.BFLOAT16 else a for a in inputs]
        np.savez(file, **{f"in{i}": array for i, array in enumerate(portable)})
        words = [binary, "run", path, "--inputs", file, "-o", out, "--stats", "--json"]
        times = []
        for _ in range(rounds):
            done = subprocess.run(words, check=True, capture_output=True, text=True)
            times.append(json.loads(done.stderr)["wall_ms"] / 1e3)
        return statistics.median(times)


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=str(__doc__).split("\n")[0])
    parser.add_argument("paths", nargs="*", type=Path)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--bin", type=Path, default=ROOT / "target/release/tilewright")
    options = parser.parse_args()
    paths = options.paths or sorted((ROOT / "fixtures" / "models").rglob("*.hlo"))
    print("| module | XLA:CPU ms | interpreter ms | times longer |")
    print("|---|---:|---:|---:|")
    for path in paths:
        executable = xla.compile_text(path.read_text())
        inputs = random_inputs(executable)
        peer = time_xla(executable, inputs, options.rounds)
        ours = time_ours(options.bin, path, inputs, options.rounds)
        print(f"| `{path.stem}` | {peer * 1e3:.2f} | {ours * 1e3:.2f} | {ours / peer:.1f} |")


if __name__ == "__main__":
    main()
