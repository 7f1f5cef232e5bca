#!/usr/bin/env python3
"""What `tilewright.jit(tune=True)` chooses, and what that gives, beside `jax.jit` and `tilewright.jit`.

    python benches/tuned.py [--only SUBSTRING] [--size N] [--rounds N] [--seconds S] [--real]

The programs are those of jax_jit.py and, on one device, of door_programs.py; with --real, those of
real_models.py.  Each is tuned anew, as in a process that remembers nothing.  Then all three run in turn, and
the table has the median of the ratios of each round, which form won of how many, and how many seconds the
decision took, compilations included.
"""

from __future__ import annotations

import argparse
import itertools
import math
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import door_programs
import jax
import tilewright
from jax_jit import Program, normal, programs, real_programs, seconds
from tilewright._jax import _decisions, _rewrite


def from_the_door() -> Iterator[tuple[str, Callable[[], Program]]]:
    """The programs for one device, with random arguments."""
    for program in door_programs.programs():
        if "shard_map" in program.name or program.donated:
            continue

        def made(program: door_programs.Program = program) -> Program:
            shapes = enumerate(program.shapes)
            return program.on(None), tuple(0.1 * normal(seed, *shape) for seed, shape in shapes)

        yield program.name, made


def forget() -> None:
    """As in a new process."""
    _decisions._KNOWN.clear()
    _rewrite._REMEMBERED.clear()
    jax.clear_caches()


def tuned(program: Program, limit: float) -> tuple[Any, Any]:
    """The tuned function, and what was decided."""
    function, args = program
    Path(os.environ["TILEWRIGHT_DECISIONS"]).unlink(missing_ok=True)
    forget()
    jitted = tilewright.jit(function, tune=True, tune_seconds=limit)
    jax.block_until_ready(jitted(*args))
    return jitted, tilewright.report()[-1].decision


def main() -> None:
    """Prints the table, row by row."""
    parser = argparse.ArgumentParser(description=str(__doc__).split("\n", maxsplit=1)[0])
    parser.add_argument("--only", default="", help="names that contain this text")
    parser.add_argument("--size", type=int, default=2, help="the scale of the models")
    parser.add_argument("--rounds", type=int, default=15, help="calls of each")
    parser.add_argument("--seconds", type=float, default=10.0, help="the time to decide")
    parser.add_argument("--real", action="store_true", help="models at real sizes instead")
    options = parser.parse_args()
    os.environ["TILEWRIGHT_DECISIONS"] = str(Path(tempfile.mkdtemp()) / "decisions.jsonl")
    ours = itertools.chain(programs(options.size), from_the_door())
    all_programs = real_programs() if options.real else ours
    print("| program | jax.jit ms | default | tuned | winner | forms | decided in s |")
    print("|---|---:|---:|---:|---|---:|---:|")
    ratios: list[tuple[float, float]] = []
    for name, make in all_programs:
        if options.only not in name:
            continue
        program = make()
        function, args = program
        chosen, decision = tuned(program, options.seconds)
        forget()
        three = [jax.jit(function), tilewright.jit(function), chosen]
        for one in three:
            seconds(one, args)
        times = []
        for turn in range(options.rounds):
            order = three if turn % 2 else three[::-1]
            taken = {id(one): seconds(one, args) for one in order}
            times.append([taken[id(one)] for one in three])
        plain = statistics.median(row[0] for row in times) * 1e3
        pair = tuple(statistics.median(row[0] / row[i] for row in times) for i in (1, 2))
        ratios.append(pair)
        winner, forms = (decision.winner, len(decision.forms)) if decision else ("-", 1)
        took = f"{decision.seconds:.1f}" if decision else "-"
        cells = [f"{plain:.2f}", f"{pair[0]:.2f}", f"{pair[1]:.2f}", winner, str(forms), took]
        print(f"| {name} | {' | '.join(cells)} |", flush=True)
    means = [math.exp(statistics.mean(math.log(pair[i]) for pair in ratios)) for i in (0, 1)]
    least = [min(pair[i] for pair in ratios) for i in (0, 1)]
    print(f"\nmean {means[0]:.2f} by default, {means[1]:.2f} tuned; least {least[0]:.2f}, {least[1]:.2f}")


if __name__ == "__main__":
    main()
