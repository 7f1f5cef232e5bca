#!/usr/bin/env python3
"""Ratios of original to rewritten programs on several versions of XLA:CPU.

    python benches/versions.py [--suite NAME ...] [--engine NAME ...] [--only SUBSTRING]
        [--rounds N] [--target NAME] [--fast-math] [--bin PATH] [--cache FOLDER]

Makes a virtual environment for each version of jaxlib below the cache folder, runs
benches/real_effect.py in each, and prints one table: a row for each program, a column
for each engine.  Programs that are slower than before on any of them (a ratio below
0.97) are named after it, with the engine.  Needs Python 3.12 for the newest; versions
without their Python are left out, and named.  The suites are, by default, `wide`,
`pullback` and `foreign`.

Needs no package itself.  One engine runs after the other: on a quiet machine.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

REAL_EFFECT = Path(__file__).resolve().with_name("real_effect.py")
ROOT = REAL_EFFECT.parents[1]
SUITES = ("wide", "pullback", "foreign")
# A program is slower below this ratio; what is above may be chance.
LEAST = 0.97


@dataclass(frozen=True)
class Engine:
    """A version of XLA:CPU: a jaxlib, its target, Pythons that it has wheels for, and flags."""

    name: str
    jax: str
    target: str
    numpy: str
    pythons: tuple[str, ...]
    flags: str = ""


# `--xla_cpu_experimental_ynn_fusion_type=` takes the library away that 0.10 gives its
# reductions to, as later and earlier versions do.
ENGINES = (
    Engine("0.12.0.1", "0.12.0.1", "xla-cpu-0.12", "2.5.5", ("3.12",)),
    Engine("0.10.2", "0.10.2", "xla-cpu-0.10", "2.4.6", ("3.12", "3.11")),
    Engine("0.9.2", "0.9.2", "xla-cpu-0.9", "2.4.6", ("3.12", "3.11")),
    Engine(
        "0.10.2-no-ynn",
        "0.10.2",
        "xla-cpu-0.10",
        "2.4.6",
        ("3.12", "3.11"),
        "--xla_cpu_experimental_ynn_fusion_type=",
    ),
)

# Of each engine, the ratio of each program; none where it is unchanged.
Ratios = Mapping[str, Mapping[str, float | None]]


def python_of(version: str) -> str | None:
    """A Python of this version: on the path, or one of pyenv's."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    found = [str(path) for path in sorted(pyenv.glob(f"{version}.*/bin/python"))]
    for candidate in [shutil.which(f"python{version}"), sys.executable, *found]:
        # A shim of pyenv is on the path, and runs only where its version is chosen.
        if candidate is not None and version_of(candidate) == version:
            return candidate
    return None


def version_of(python: str) -> str:
    """`3.12`, or nothing where it does not run."""
    show = "import sys; print('%d.%d' % sys.version_info[:2])"
    done = subprocess.run([python, "-c", show], capture_output=True, text=True, check=False)
    return done.stdout.strip()


def environment(engine: Engine, cache: Path) -> Path | None:
    """The Python of the engine's virtual environment, made where there is none."""
    python = next(filter(None, map(python_of, engine.pythons)), None)
    if python is None:
        return None
    folder = cache / f"jax-{engine.jax}-python-{version_of(python)}"
    inside, done = folder / "bin" / "python", folder / "complete"
    if not done.is_file():
        subprocess.run([python, "-m", "venv", "--clear", folder], check=True)
        packages = [f"jax=={engine.jax}", f"jaxlib=={engine.jax}", f"numpy=={engine.numpy}"]
        pip = [inside, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, *packages], check=True)
        done.touch()
    return inside


def ratios(
    engine: Engine, python: Path, suites: Sequence[str], more: Sequence[str]
) -> dict[str, float | None]:
    """The ratio of each program on an engine, by its suite and name."""
    flags = " ".join(filter(None, [os.environ.get("XLA_FLAGS", ""), engine.flags]))
    found: dict[str, float | None] = {}
    for suite in suites:
        with tempfile.TemporaryDirectory() as folder:
            rows = Path(folder) / "rows.jsonl"
            command = [python, REAL_EFFECT, "--suite", suite, "--rows", rows, *more]
            print(f"{engine.name}: {suite}", file=sys.stderr, flush=True)
            environ = {**os.environ, "XLA_FLAGS": flags}
            subprocess.run(command, env=environ, stdout=subprocess.DEVNULL, check=True)
            lines = rows.read_text().splitlines() if rows.is_file() else []
            for row in map(json.loads, lines):
                ratio = row["original"] / row["rewritten"]
                found[f"{suite} {row['name']}"] = None if row["unchanged"] else ratio
    return found


def mean(values: Iterable[float | None]) -> str:
    """The geometric mean, what is unchanged left out."""
    known = [value for value in values if value is not None]
    return f"{statistics.geometric_mean(known):.2f}" if known else "-"


def table(found: Ratios) -> Iterator[str]:
    """A row for each program, and one for the mean of each suite."""
    engines = list(found)
    programs = list(dict.fromkeys(name for rows in found.values() for name in rows))
    yield "| program | " + " | ".join(engines) + " |"
    yield "|---" * (len(engines) + 1) + "|"

    def cell(engine: str, program: str) -> str:
        if program not in found[engine]:
            return "-"
        ratio = found[engine][program]
        return "same" if ratio is None else f"{ratio:.2f}"

    for program in programs:
        cells = " | ".join(cell(engine, program) for engine in engines)
        yield f"| `{program}` | {cells} |"
    for suite in dict.fromkeys(program.split()[0] for program in programs):
        of_suite = [p for p in programs if p.split()[0] == suite]
        means = (mean(found[engine].get(p) for p in of_suite) for engine in engines)
        yield f"| {suite}: mean of what is rewritten | " + " | ".join(means) + " |"


def slower(found: Ratios) -> Iterator[str]:
    """What is slower than it was, the slowest first."""
    all_of = [
        (ratio, program, engine)
        for engine, rows in found.items()
        for program, ratio in rows.items()
        if ratio is not None and ratio < LEAST
    ]
    for ratio, program, engine in sorted(all_of):
        yield f"{ratio:.2f} on {engine}: {program}"


def arguments() -> argparse.Namespace:
    """What the command line asks for."""
    parser = argparse.ArgumentParser(description=str(__doc__).split("\n")[0])
    names = [engine.name for engine in ENGINES]
    user_cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"))
    parser.add_argument("--suite", nargs="+", default=SUITES, help="suites of real_effect.py")
    parser.add_argument("--engine", nargs="+", choices=names, default=names, help="which ones")
    parser.add_argument("--only", default="", help="names that contain this text")
    parser.add_argument("--rounds", type=int, default=21, help="timed runs of each, at least")
    parser.add_argument("--target", help="what `opt` weighs costs on, if not the engine itself")
    parser.add_argument("--fast-math", action="store_true", help="as for `opt`")
    parser.add_argument("--bin", type=Path, default=ROOT / "target/release/tilewright")
    parser.add_argument("--cache", type=Path, default=user_cache / "tilewright")
    return parser.parse_args()


def main() -> None:
    """Prints the table and what is slower."""
    options = arguments()
    more = ["--only", options.only, "--rounds", str(options.rounds)]
    more += ["--bin", str(options.bin), *(["--fast-math"] if options.fast_math else [])]
    found: dict[str, dict[str, float | None]] = {}
    for engine in ENGINES:
        if engine.name not in options.engine:
            continue
        python = environment(engine, options.cache)
        if python is None:
            print(f"{engine.name}: needs Python {' or '.join(engine.pythons)}", file=sys.stderr)
            continue
        target = options.target or engine.target
        found[engine.name] = ratios(engine, python, options.suite, [*more, "--target", target])
    print("\n".join(table(found)))
    worse = list(slower(found))
    print(f"\nSlower than {LEAST} of what it was: {len(worse)}", *worse, sep="\n")


if __name__ == "__main__":
    main()
