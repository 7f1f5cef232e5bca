#!/usr/bin/env python3
"""Speed and memory of XLA's HLO parser and printer, beside tilewright's.

    python benches/parse_peer.py FILE.hlo [--rounds N] [--ours COMMAND]

COMMAND is run by the shell with FILE.hlo in the variable HLO.  It prints, for
each thing it measured, a line of JSON on stdout; other lines are ignored:

    {"what": "parse", "instructions": 100000, "seconds": 0.05}
    {"what": "memory", "instructions": 100000, "bytes": 42000000}

`what` is "parse", "print" or "memory": by how much a fresh process that has the
text grows at its peak while it makes a module of it; ours verifies it, too.
Linux tells it in pages, so it means something for large files only.  With a
built example `time_text`, COMMAND is

    'time_text "$HLO"; time_text --memory "$HLO"'

Both sides run one after the other on the same machine.  The ratio is that of
speeds, ours over XLA's, or of memory, XLA's over ours: above 1 is for us.
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


@dataclass(frozen=True)
class Memory:
    """So many instructions in so many bytes."""

    instructions: int
    bytes: int

    @property
    def each(self) -> float:
        """Bytes for each instruction."""
        return self.bytes / self.instructions


def size_of_process(field: str) -> int:
    """A size that the kernel tells of this process, in bytes."""
    lines = Path("/proc/self/status").read_text().splitlines()
    (line,) = [line for line in lines if line.startswith(f"{field}:")]
    return int(line.split()[1]) * 1024


def print_memory_of_xla(path: Path) -> None:
    """What XLA's parser takes, as a line of JSON, in a process that did nothing else."""
    text = path.read_text()
    # What is loaded with the first module is no part of the second.
    xla.parse("ENTRY e { ROOT x = f32[] parameter(0) }")
    # Lets the peak begin anew.
    Path("/proc/self/clear_refs").write_text("5")
    before = size_of_process("VmRSS")
    module = xla.parse(text)
    taken = size_of_process("VmHWM") - before
    count = xla.instruction_count(module)
    print(json.dumps({"what": "memory", "instructions": count, "bytes": taken}))


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


def run(command: list[str] | str, path: Path) -> dict[str, Timing | Memory]:
    """What a command measured, which it prints as lines of JSON."""
    environment = {**os.environ, "HLO": str(path)}
    done = subprocess.run(
        command,
        shell=isinstance(command, str),
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    measured: dict[str, Timing | Memory] = {}
    for line in done.stdout.splitlines():
        if line.startswith("{"):
            entry = json.loads(line)
            count, what = entry["instructions"], entry["what"]
            measured[what] = (
                Memory(count, entry["bytes"])
                if "bytes" in entry
                else Timing(count, entry["seconds"])
            )
    return measured


def row(what: str, peer: Timing, ours: Timing | None) -> str:
    """One line of the table of speeds."""
    start = f"| {what} | {peer.instructions} | {peer.seconds:.4f} | {peer.speed:.2f} |"
    if ours is None:
        return f"{start} | | |"
    ratio = ours.speed / peer.speed
    return f"{start} {ours.seconds:.4f} | {ours.speed:.2f} | {ratio:.1f} |"


def memory_row(peer: Memory, ours: Memory | None) -> str:
    """The line of the table of memory."""
    start = f"| memory | {peer.instructions} | {peer.bytes / 1e6:.1f} | {peer.each:.0f} |"
    if ours is None:
        return f"{start} | | |"
    ratio = peer.each / ours.each
    return f"{start} {ours.bytes / 1e6:.1f} | {ours.each:.0f} | {ratio:.1f} |"


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=str(__doc__).split("\n")[0])
    parser.add_argument("path", type=Path, help="an .hlo file")
    parser.add_argument("--rounds", type=int, default=5, help="timed runs of each")
    parser.add_argument("--ours", help="command that prints what tilewright takes")
    # How this script calls itself, for a process of its own.
    parser.add_argument("--memory-of-xla", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    path = options.path.resolve()
    if options.memory_of_xla:
        print_memory_of_xla(path)
        return
    memory = run([sys.executable, __file__, "--memory-of-xla", str(path)], path)
    text = path.read_text()
    peer = time_xla(text, options.rounds)
    ours = run(options.ours, path) if options.ours else {}
    print(f"{options.path.name}: {len(text) / 1e6:.2f} MB\n")
    print(
        "| what | instructions | XLA s | XLA M/s | tilewright s | tilewright M/s | ratio |"
    )
    print("|---|---:|---:|---:|---:|---:|---:|")
    for what, timing in peer.items():
        print(row(what, timing, ours.get(what)))
    print(
        "\n| what | instructions | XLA MB | XLA B each | tilewright MB | tilewright B each | ratio |"
    )
    print("|---|---:|---:|---:|---:|---:|---:|")
    print(memory_row(memory["memory"], ours.get("memory")))


if __name__ == "__main__":
    main()
