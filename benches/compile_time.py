#!/usr/bin/env python3
"""Time that XLA:CPU takes to compile original and rewritten programs, in one process.

    python benches/compile_time.py [--suite real|wide|vjp|pullback|foreign]
        [--target NAME] [--only SUBSTRING] [--rounds N] [--bin PATH]

Programs that `tilewright opt` changes alone.  Both forms are compiled in turn; the table has
the medians and how many times as long the rewritten form takes, and the time of `opt` and
`convert` as commands.  The last line has the geometric mean of the ratios.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from pathlib import Path

import real_effect
import xla


def seconds(text: str) -> float:
    """Time of one compilation."""
    start = time.perf_counter()
    xla.compile_text(text)
    return time.perf_counter() - start


def main() -> None:
    """Prints the table, row by row."""
    parser = argparse.ArgumentParser(description=str(__doc__).split("\n")[0])
    parser.add_argument("--suite", choices=real_effect.SUITES, default="foreign")
    parser.add_argument("--target", default="cpu", help="what `opt` weighs costs on")
    parser.add_argument("--only", default="", help="names that contain this text")
    parser.add_argument("--rounds", type=int, default=7, help="compilations of each form")
    parser.add_argument("--bin", type=Path, help="the tilewright binary")
    options = parser.parse_args()
    if options.bin is not None:
        os.environ["TILEWRIGHT_BIN"] = str(options.bin.resolve())
    print("| program | original ms | rewritten ms | times as long | commands ms |")
    print("|---|---:|---:|---:|---:|")
    ratios = []
    for name, text in real_effect.SUITES[options.suite]():
        if options.only not in name:
            continue
        with tempfile.TemporaryDirectory() as folder:
            start = time.perf_counter()
            changed, unchanged = real_effect.rewrite(text, options.target, Path(folder))
            commands = time.perf_counter() - start
        if unchanged:
            continue
        pairs = [(seconds(text), seconds(changed)) for _ in range(options.rounds)]
        before, after = (statistics.median(times) for times in zip(*pairs))
        ratios.append(after / before)
        print(
            f"| {name} | {before * 1e3:.0f} | {after * 1e3:.0f} | {ratios[-1]:.2f}"
            f" | {commands * 1e3:.0f} |",
            flush=True,
        )
    if ratios:
        print(f"\n{statistics.geometric_mean(ratios):.2f} times as long in the mean")


if __name__ == "__main__":
    main()
