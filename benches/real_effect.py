#!/usr/bin/env python3
"""Time of original and rewritten programs, both through XLA:CPU in one process.

    python benches/real_effect.py [--suite real|wide|vjp|pullback|foreign|torch]
        [--target NAME] [--only SUBSTRING] [--rounds N] [--fast-math] [--bin PATH]
        [--rows FILE]

For every program of the suite, the original text and the text that `tilewright
opt` writes are compiled, warmed up, and run in turn, each going first every
other time.  The table has the medians and their ratio, and the ratio of the target's model;
more than 1 means that the rewritten program is faster.  The last lines have the geometric
mean of all ratios, and of those of programs that were changed.

`real` are the files in fixtures/real, `foreign` models of others with their training
steps (fixtures/foreign), `torch` what PyTorch/XLA writes (fixtures/torch); the others are
in benches/suite.py, which JAX makes on the spot: `vjp` norms with their gradients,
`pullback` the gradients alone.  What is not changed is timed too: its ratio is the noise.
benches/versions.py does all this on several versions of jaxlib.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "python"))

import jax
import numpy as np

import suite
import tool
import xla

WARM_UP = 2
# A short program is run more often, until this much time is spent on it.
LEAST_SECONDS = 0.5
MOST_ROUNDS = 401


@dataclass(frozen=True)
class Row:
    """One program: median seconds of both forms, or of the only form."""

    name: str
    original: float
    rewritten: float
    unchanged: bool
    error: float
    # How many times as fast the rewritten program is by the target's model.
    modelled: float

    @property
    def ratio(self) -> float:
        """How many times as fast the rewritten program is."""
        return self.original / self.rewritten

    def markdown(self) -> str:
        """The row of the table."""
        note = "unchanged" if self.unchanged else ""
        return (
            f"| {self.name} | {self.original * 1e3:.2f} | {self.rewritten * 1e3:.2f}"
            f" | {self.ratio:.2f} | {self.modelled:.2f} | {self.error:.0e} | {note} |"
        )


HEADER = """\
| program | original ms | rewritten ms | ratio | modelled | difference | note |
|---|---:|---:|---:|---:|---:|---|"""
# A model is right if it is so near to what was measured, as a factor.
NEAR = 1.25


def rewrite(text: str, target: str, folder: Path, *more: str) -> tuple[str, bool]:
    """The rewritten text, and whether it is byte for byte the converted one; `opt`
    gets more options."""
    changed, unchanged, _ = rewrite_and_weigh(text, target, folder, *more)
    return changed, unchanged


def rewrite_and_weigh(
    text: str, target: str, folder: Path, *more: str
) -> tuple[str, bool, float]:
    """As `rewrite`, and how many times as fast it is by the target's model."""
    path, rewritten, converted = (folder / name for name in ("in.hlo", "opt.hlo", "same.hlo"))
    path.write_text(text)
    done = tool.run("opt", path, "--target", target, "--json", "-o", rewritten, *more)
    report = json.loads(done.stderr)
    tool.tilewright("convert", path, "-o", converted)
    unchanged = rewritten.read_bytes() == converted.read_bytes()
    modelled = report["before"]["cycles"] / max(report["after"]["cycles"], 1)
    return rewritten.read_text(), unchanged, modelled


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
    end = time.perf_counter() + LEAST_SECONDS
    for turn in range(max(rounds, MOST_ROUNDS)):
        if turn >= rounds and time.perf_counter() > end:
            break
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


def measure(name: str, text: str, target: str, rounds: int, *more: str) -> Row:
    """Rewrites, compiles and times one program."""
    with tempfile.TemporaryDirectory() as folder:
        changed, unchanged, modelled = rewrite_and_weigh(text, target, Path(folder), *more)
    original, rewritten = xla.compile_text(text), xla.compile_text(changed)
    before, after = interleaved(original, rewritten, rounds)
    return Row(name, before, after, unchanged, largest_error(original, rewritten), modelled)


def real() -> Iterator[tuple[str, str]]:
    """Names and texts of the files."""
    return ((path.stem, path.read_text()) for path in tool.hlo_files("real"))


def foreign(folder: str = "foreign") -> Iterator[tuple[str, str]]:
    """Names and texts of the programs of others, in a form that every XLA reads."""
    for path in tool.hlo_files(folder):
        if not path.stem.endswith(("_small", "_small_step")) or folder == "foreign":
            yield path.stem, tool.tilewright("convert", path)


def made(programs: Callable[[], Iterator[suite.generate.Program]]) -> Iterator[tuple[str, str]]:
    """Names and texts of programs that JAX makes."""
    for program in programs():
        yield program.name, program.lowered().as_text(dialect="hlo", debug_info=False)


SUITES = {
    "real": real,
    "foreign": foreign,
    "torch": partial(foreign, "torch"),
    "wide": partial(made, suite.wide),
    "vjp": partial(made, suite.vjps),
    "pullback": partial(made, suite.pullbacks),
}


def summary(rows: Sequence[Row]) -> str:
    """Geometric means, and the slowest of the rewritten programs."""
    if not rows:
        return "no program has such a name"
    changed = [row for row in rows if not row.unchanged]
    lines = [f"{len(rows)} programs: {geometric_mean(rows):.2f} times as fast (geometric mean)"]
    if changed:
        worst = min(changed, key=lambda row: row.ratio)
        lines += [
            f"{len(changed)} of them rewritten: {geometric_mean(changed):.2f}",
            f"least: {worst.ratio:.2f}, {worst.name}",
            f"modelled within {NEAR}x of that: {sum(map(is_near, changed))} of {len(changed)}",
            f"nine in ten of them within {ratio_error(changed):.2f}x: `ratio_error` of the target",
        ]
    return "\n".join(lines)


def error(row: Row) -> float:
    """The factor by which the model is off."""
    return max(row.modelled / row.ratio, row.ratio / row.modelled)


def is_near(row: Row) -> bool:
    """Whether the model is near to what was measured."""
    return error(row) <= NEAR


def ratio_error(rows: Sequence[Row]) -> float:
    """The factor within which the model is right for nine in ten."""
    return sorted(map(error, rows))[len(rows) * 9 // 10]


def geometric_mean(rows: Sequence[Row]) -> float:
    """Of the ratios."""
    return statistics.geometric_mean(row.ratio for row in rows)


def main() -> None:
    """Prints the table, row by row."""
    parser = argparse.ArgumentParser(description=str(__doc__).split("\n")[0])
    parser.add_argument("--suite", choices=SUITES, default="real", help="which programs")
    parser.add_argument("--target", default="cpu", help="what `opt` weighs costs on")
    parser.add_argument("--only", default="", help="names that contain this text")
    parser.add_argument("--rounds", type=int, default=21, help="timed runs of each, at least")
    parser.add_argument("--fast-math", action="store_true", help="as for `opt`")
    parser.add_argument("--bin", type=Path, help="the tilewright binary")
    parser.add_argument("--rows", type=Path, help="a file for each row as a line of JSON")
    options = parser.parse_args()
    if options.bin is not None:
        os.environ["TILEWRIGHT_BIN"] = str(options.bin.resolve())
    more = ["--fast-math"] if options.fast_math else []
    print(HEADER)
    rows = []
    for name, text in SUITES[options.suite]():
        if options.only in name:
            rows.append(measure(name, text, options.target, options.rounds, *more))
            print(rows[-1].markdown(), flush=True)
            if options.rows is not None:
                with options.rows.open("a") as file:
                    file.write(json.dumps(asdict(rows[-1])) + "\n")
    print(f"\n{summary(rows)}")


if __name__ == "__main__":
    main()
