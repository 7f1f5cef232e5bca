#!/usr/bin/env python3
"""Checks the forms that an engine's table of reductions chooses, on programs that it has not seen.

    python benches/check_forms.py FILE [--programs N] [--seed S] [--bin PATH]

Each program is timed on XLA:CPU as it is and in every form that it has. The last line says how often the
chosen form took more than 1.1 times as long as the best one, and how much faster the rewritten programs
are; lines before it name the programs that became slower, and those for which most was missed.
"""

from __future__ import annotations

import argparse
import os
import random
import statistics
import tempfile
from pathlib import Path

import jax

jax.config.update("jax_enable_x64", True)

from calibrate import FORMS, forced, timed
from reductions import FOLDINGS, Drawn, fits, programs_of, shapes

import tool


def check(file: Path, count: int, seed: int) -> None:
    """Prints how good the table's choices are for programs that it has not seen."""
    draw = random.Random(seed)
    regrets, gains, worst = [], [], []
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        for _, shape in zip(range(count), shapes(draw)):
            folding, element_type = draw.choice([one for one in FOLDINGS if fits(one[0], shape)])
            source = draw.choice(("stored", "computed"))
            program = programs_of(folding, element_type, source, [shape], draw)[0]
            times = timed(program, FORMS, folder, 0.01)
            chosen = choice(program, file, folder)
            if chosen not in times:
                continue
            best = min(times, key=times.__getitem__)
            regrets.append(times[chosen] / times[best])
            gains.append(times["as-is"] / times[chosen])
            name = f"{folding} {element_type} {source} {shape.dims} {shape.reduced} {program.producer}"
            if regrets[-1] > 1.1:
                worst.append((regrets[-1], f"{name}: {chosen} {regrets[-1]:.2f} of {best}"))
            if gains[-1] < 0.97:
                print(f"slower: {gains[-1]:.2f} {name}: {chosen}", flush=True)
    for _, line in sorted(worst, reverse=True)[:20]:
        print(line)
    missed = sum(regret > 1.1 for regret in regrets)
    rewritten = [gain for gain in gains if gain != 1]
    print(
        f"{len(regrets)} programs, {missed} not within 10 % of the best form; {len(rewritten)} rewritten, "
        f"{statistics.geometric_mean(rewritten or [1]):.2f} times as fast, the worst {min(gains):.2f}"
    )


def choice(program: Drawn, file: Path, folder: Path) -> str:
    """The form that an engine's file chooses."""
    source, out = folder / "in.hlo", folder / "out.hlo"
    source.write_text(program.text)
    tool.tilewright("opt", source, "--target", file, "--passes", "reduce-form,dce", "-o", out)
    changed = out.read_text()
    alike = (form for form in FORMS if forced(program, form, folder / form) == changed)
    return next(alike, "as-is")


def main() -> None:
    """Prints what was found."""
    parser = argparse.ArgumentParser(description=str(__doc__).split("\n")[0])
    parser.add_argument("file", type=Path, help="the engine's file")
    parser.add_argument("--programs", type=int, default=300, help="that are drawn")
    parser.add_argument("--seed", type=int, default=5, help="of the programs")
    parser.add_argument("--bin", type=Path, help="the tilewright binary")
    options = parser.parse_args()
    if options.bin is not None:
        os.environ["TILEWRIGHT_BIN"] = str(options.bin.resolve())
    check(options.file, options.programs, options.seed)


if __name__ == "__main__":
    main()
