#!/usr/bin/env python3
"""Looks for small inputs that take much time or memory.

    python benches/exhaustion.py [--minutes N] [--seed S] [--keep FOLDER] [--binary FILE]

Files of at most 10 KB are made of the fixtures: numbers become huge, zero or negative, lines are doubled, moved
and left out, parts of other files are put in. Each is given to verbs of the command, which may end with an error, but
must end within 2 seconds and 1 GB, and not by a signal. What does not is kept in FOLDER. `run` and `check` evaluate
programs, so they are not asked. Needs the release binary: `cargo build --release -p tilewright-cli`.
"""

from __future__ import annotations

import argparse
import random
import re
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FIXTURES = ROOT / "fixtures"
MOST_BYTES = 10_000
SECONDS = 2.0
MEMORY = 1 << 30
VERBS = (
    ("verify",),
    ("opt", "-o", "/dev/null"),
    ("opt", "--target", "cpu", "-o", "/dev/null"),
    ("cost", "-o", "/dev/null"),
    ("convert", "-o", "/dev/null"),
    ("convert", "--emit", "stablehlo", "-o", "/dev/null"),
    ("convert", "--emit", "stablehlo-bytecode", "-o", "/dev/null"),
    ("convert", "--emit", "proto", "-o", "/dev/null"),
    ("convert", "--form", "canonical", "-o", "/dev/null"),
    ("graph", "--emit", "dot", "-o", "/dev/null"),
    ("lower", "-o", "/dev/null"),
    ("lower", "--plan", "-o", "/dev/null"),
    ("report", "-o", "/dev/null"),
)
NUMBERS = ("0", "1", "2", "-1", "3", "64", "4096", "65536", "1048576", "2147483647", "4294967296", "1099511627776")


def sources() -> list[Path]:
    """The fixtures that are small enough."""
    files = [*FIXTURES.rglob("*.hlo"), *FIXTURES.rglob("*.mlir")]
    return sorted(file for file in files if file.stat().st_size <= MOST_BYTES)


def mutated(draw: random.Random, text: str, other: str) -> str:
    """A text with a few changes."""
    for _ in range(draw.randint(1, 6)):
        lines = text.split("\n")
        match draw.randrange(6):
            case 0 | 1 | 2:
                found = list(re.finditer(r"-?\d+", text))
                if found:
                    one = draw.choice(found)
                    text = text[: one.start()] + draw.choice(NUMBERS) + text[one.end() :]
            case 3:
                at = draw.randrange(len(lines))
                lines[at:at] = [lines[at]] * draw.choice((1, 1, 20))
                text = "\n".join(lines)
            case 4:
                del lines[draw.randrange(len(lines))]
                text = "\n".join(lines)
            case _:
                taken = other.split("\n")
                at = draw.randrange(len(taken))
                lines[draw.randrange(len(lines)) :] = taken[at:]
                text = "\n".join(lines)
    return text[:MOST_BYTES]


def limited() -> None:
    """Gives a process the memory that it may have."""
    resource.setrlimit(resource.RLIMIT_AS, (4 * MEMORY, 4 * MEMORY))


def too_much(binary: Path, verb: tuple[str, ...], file: Path) -> str:
    """What a verb took too much of; empty if nothing."""
    command = [str(binary), verb[0], str(file), *verb[1:]]
    start = time.monotonic()
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, preexec_fn=limited) as child:
        while True:
            try:
                child.wait(0.005)
                break
            except subprocess.TimeoutExpired:
                if time.monotonic() - start > 5 * SECONDS:
                    child.kill()
                    return "more than 10 seconds"
                try:
                    peak = re.search(r"VmHWM:\s*(\d+)", Path(f"/proc/{child.pid}/status").read_text())
                except OSError:
                    continue
                if peak and int(peak[1]) << 10 > MEMORY:
                    child.kill()
                    return "more than 1 GB"
        seconds = time.monotonic() - start
        if child.returncode < 0 or child.returncode > 3:
            return f"exit code {child.returncode}"
        return f"{seconds:.1f} seconds" if seconds > SECONDS else ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--keep", type=Path, default=ROOT / "target" / "exhaustion")
    parser.add_argument("--binary", type=Path, default=ROOT / "target" / "release" / "tilewright")
    options = parser.parse_args()
    files = sources()
    # A verb that is not there would find nothing.
    known = FIXTURES / "models" / "group_norm_nhwc.hlo"
    for verb in VERBS:
        command = [str(options.binary), verb[0], str(known), *verb[1:]]
        subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
    end = time.monotonic() + 60 * options.minutes
    tried = found = 0
    with tempfile.TemporaryDirectory() as folder:
        while time.monotonic() < end:
            draw = random.Random(options.seed * 1_000_003 + tried)
            one, other = draw.sample(files, 2)
            file = Path(folder) / f"case{one.suffix}"
            file.write_text(mutated(draw, one.read_text(), other.read_text()))
            tried += 1
            for verb in draw.sample(VERBS, 3):
                why = too_much(options.binary, verb, file)
                if why:
                    found += 1
                    options.keep.mkdir(parents=True, exist_ok=True)
                    kept = options.keep / f"{options.seed}_{tried}{one.suffix}"
                    kept.write_text(file.read_text())
                    print(f"{' '.join(verb)}: {why}: {kept}", flush=True)
    print(f"{tried} inputs, {found} that take too much")
    sys.exit(found > 0)


if __name__ == "__main__":
    main()
