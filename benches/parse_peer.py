#!/usr/bin/env python3
"""Speed of XLA's HLO parser and printer, beside tilewright's.

    python benches/parse_peer.py FILE.hlo [--rounds N] [--ours COMMAND]

COMMAND is run by the shell with FILE.hlo in the variable HLO.  It prints, for
each thing it timed, a line of JSON on stdout; other lines are ignored:

    {"what": "parse", "instructions": 100000, "seconds": 0.05}

`what` is "parse" or "print".  Both sides run one after the other on the same
machine; the last column is our instructions per second over XLA's.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "python"))

import xla


@dataclass(frozen=True)
class Timing:
    """So many instructions in so many seconds."""

    instructions: int
    seconds: float

    @property
    def speed(self) -> float:
        """Million instructions per second."""
        return self.instructions / self.seconds / 1e6


def median_seconds(work: Callable[[], Any], rounds: int) -> float:
    """Median wall time of calling `work`."""
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def time_xla(text: str, rounds: int) -> dict[str, Timing]:
    """XLA's parser and its default printer, all constants in full."""
    module = xla.parse(text)
    count = xla.instruction_count(module)
    return {
        "parse": Timing(count, median_seconds(lambda: xla.parse(text), rounds)),
        "print": Timing(count, median_seconds(lambda: xla.print_full(module), rounds)),
    }


def run_ours(command: str, path: Path) -> dict[str, Timing]:
    """The timings that our command prints as lines of JSON."""
    environment = {**os.environ, "HLO": str(path)}
    done = subprocess.run(
        command,
        shell=True,
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    timings = {}
    for line in done.stdout.splitlines():
        if line.startswith("{"):
            entry = json.loads(line)
            timings[entry["what"]] = Timing(entry["instructions"], entry["seconds"])
    return timings


def row(what: str, peer: Timing, ours: Timing | None) -> str:
    """One line of the table."""
    start = f"| {what} | {peer.instructions} | {peer.seconds:.4f} | {peer.speed:.2f} |"
    if ours is None:
        return f"{start} | | |"
    ratio = ours.speed / peer.speed
    return f"{start} {ours.seconds:.4f} | {ours.speed:.2f} | {ratio:.1f} |"


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=str(__doc__).split("\n")[0])
    parser.add_argument("path", type=Path, help="an .hlo file")
    parser.add_argument("--rounds", type=int, default=5, help="timed runs of each")
    parser.add_argument("--ours", help="command that prints tilewright's timings")
    options = parser.parse_args()
    text = options.path.read_text()
    peer = time_xla(text, options.rounds)
    ours = run_ours(options.ours, options.path.resolve()) if options.ours else {}
    print(f"{options.path.name}: {len(text) / 1e6:.2f} MB\n")
    print(
        "| what | instructions | XLA s | XLA M/s | tilewright s | tilewright M/s | ratio |"
    )
    print("|---|---:|---:|---:|---:|---:|---:|")
    for what, timing in peer.items():
        print(row(what, timing, ours.get(what)))


if __name__ == "__main__":
    main()
