#!/usr/bin/env python3
"""Time of original and rewritten programs, both through XLA:CPU in one process.

    python benches/real_effect.py [--only SUBSTRING] [--rounds N] [--bin PATH]

For every program in fixtures/real, the original text and the text that
`tilewright opt` writes are compiled, warmed up, and run in turn, each going
first every other time.  The table has the medians and their ratio; more
than 1 means that the rewritten program is faster.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "python"))

import jax
import numpy as np

import tool
import xla

WARM_UP = 2


@dataclass(frozen=True)
class Row:
    """One program: median seconds of both forms, or of the only form."""

    name: str
    original: float
    rewritten: float
    unchanged: bool
    error: float

    def markdown(self) -> str:
        """The row of the table."""
        note = "unchanged" if self.unchanged else ""
        ratio = self.original / self.rewritten
        return (
            f"| {self.name} | {self.original * 1e3:.2f} | {self.rewritten * 1e3:.2f}"
            f" | {ratio:.2f} | {self.error:.0e} | {note} |"
        )


HEADER = """\
| program | original ms | rewritten ms | ratio | difference | note |
|---|---:|---:|---:|---:|---|"""


def rewrite(path: Path, folder: Path) -> tuple[str, bool]:
    """The rewritten text, and whether it is byte for byte the converted one."""
    rewritten, converted = folder / "opt.hlo", folder / "convert.hlo"
    tool.tilewright("opt", path, "-o", rewritten)
    tool.tilewright("convert", path, "-o", converted)
    unchanged = rewritten.read_bytes() == converted.read_bytes()
    return rewritten.read_text(), unchanged


def random_inputs(executable: xla.Executable) -> list[jax.Array]:
    """Normal values in the shapes and types of the parameters, on the device."""
    rng = np.random.default_rng(0)
    arrays = [
        rng.standard_normal(shape, dtype=np.float32).astype(dtype)
        for shape, dtype in zip(executable.input_shapes, executable.input_types)
    ]
    return executable.place(arrays)


def seconds(executable: xla.Executable, inputs: list[jax.Array]) -> float:
    """Wall time of one run, outputs ready."""
    start = time.perf_counter()
    executable.launch(inputs)
    return time.perf_counter() - start


def interleaved(
    first: xla.Executable, second: xla.Executable, rounds: int
) -> tuple[float, float]:
    """Median times of two programs run in turn on the same inputs."""
    inputs = random_inputs(first)
    for _ in range(WARM_UP):
        first.launch(inputs)
        second.launch(inputs)
    times: tuple[list[float], list[float]] = ([], [])
    for turn in range(rounds):
        # Each goes first every other time: whoever does pays for a cold cache.
        pair = [(first, times[0]), (second, times[1])]
        for executable, record in pair if turn % 2 == 0 else reversed(pair):
            record.append(seconds(executable, inputs))
    return statistics.median(times[0]), statistics.median(times[1])


def largest_error(first: xla.Executable, second: xla.Executable) -> float:
    """Largest difference of any output, relative to the output's magnitude."""
    inputs = random_inputs(first)
    pairs = zip(second.launch(inputs), first.launch(inputs))
    return max(xla.error(np.asarray(b), np.asarray(a)) for b, a in pairs)


def measure(path: Path, rounds: int) -> Row:
    """Rewrites, compiles and times one program."""
    with tempfile.TemporaryDirectory() as folder:
        text, unchanged = rewrite(path, Path(folder))
    original = xla.compile_text(path.read_text())
    rewritten = xla.compile_text(text)
    before, after = interleaved(original, rewritten, rounds)
    return Row(path.stem, before, after, unchanged, largest_error(original, rewritten))


def selected(only: str) -> Iterator[Path]:
    """The programs whose name contains the text."""
    return (path for path in tool.hlo_files("real") if only in path.stem)


def main() -> None:
    """Prints the table, row by row."""
    parser = argparse.ArgumentParser(description=str(__doc__).split("\n")[0])
    parser.add_argument("--only", default="", help="names that contain this text")
    parser.add_argument("--rounds", type=int, default=21, help="timed runs of each")
    parser.add_argument("--bin", type=Path, help="the tilewright binary")
    options = parser.parse_args()
    if options.bin is not None:
        os.environ["TILEWRIGHT_BIN"] = str(options.bin.resolve())
    print(HEADER)
    for path in selected(options.only):
        print(measure(path, options.rounds).markdown(), flush=True)


if __name__ == "__main__":
    main()
