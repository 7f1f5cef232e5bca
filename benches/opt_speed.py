#!/usr/bin/env python3
"""Time that `tilewright opt` takes for whole models, beside XLA:CPU's own compilation.

    python benches/opt_speed.py [--only SUBSTRING] [--rounds N] [--no-compile] [--bin PATH]
        [--keep FOLDER]

The models are training steps in plain JAX (large_models.py), from 6,700 to 78,000
instructions.  For each the table has its instructions, the least time of the command `opt`
on `tpu-like` and `cpu` (reading and writing included), microseconds per instruction, and the
time that XLA:CPU takes to compile the module once.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "python"))

import large_models
import xla

TARGETS = ("tpu-like", "cpu")
ROOT = Path(__file__).resolve().parents[1]


def least_seconds(command: list[str], rounds: int) -> float:
    """The least time of some runs of a command."""
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        subprocess.run(command, check=True)
        times.append(time.perf_counter() - start)
    return min(times)


def compile_seconds(text: str) -> float:
    """The time of one compilation by XLA:CPU."""
    start = time.perf_counter()
    xla.compile_text(text)
    return time.perf_counter() - start


def main() -> None:
    """Prints the table, row by row."""
    parser = argparse.ArgumentParser(description=str(__doc__).split("\n", maxsplit=1)[0])
    parser.add_argument("--only", default="", help="names that contain this text")
    parser.add_argument("--rounds", type=int, default=3, help="runs of each command")
    parser.add_argument("--no-compile", action="store_true", help="leave XLA:CPU out")
    parser.add_argument("--bin", type=Path, help="the tilewright binary")
    parser.add_argument("--keep", type=Path, help="a folder for the modules")
    options = parser.parse_args()
    default = os.environ.get("TILEWRIGHT_BIN", ROOT / "target" / "release" / "tilewright")
    binary = str((options.bin or Path(default)).resolve())
    print("| model | instructions | tpu-like s | µs each | cpu s | µs each | XLA:CPU s |")
    print("|---|---:|---:|---:|---:|---:|---:|")
    with tempfile.TemporaryDirectory() as scratch:
        folder = options.keep or Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        for name, make in large_models.models():
            if options.only not in name:
                continue
            text = make()
            path = folder / f"{name}.hlo"
            path.write_text(text, encoding="utf-8")
            count = text.count(" = ")
            cells = []
            for target in TARGETS:
                command = [binary, "opt", str(path), "--target", target, "-o", os.devnull]
                seconds = least_seconds(command, options.rounds)
                cells.append(f"{seconds:.2f} | {seconds / count * 1e6:.0f}")
            compiled = "" if options.no_compile else f"{compile_seconds(text):.1f}"
            print(f"| {name} | {count} | {' | '.join(cells)} | {compiled} |", flush=True)


if __name__ == "__main__":
    main()
