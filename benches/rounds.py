#!/usr/bin/env python3
"""What programs for several devices communicate, before and after the rewriter.

    python benches/rounds.py [--only TEXT] [--named NAME] [--target NAME] [--exact] [--fast-math] [--values]
                             [--small] [--list] [--json FILE] [--dump FOLDER]

The programs of `benches/sharded` are norms, losses, optimizers and models on a mesh of 4 x 2 forced
host devices, written with `jit`, `shard_map` and `pmap`, forward and as steps of training. XLA:CPU
partitions each, as JAX writes it and rewritten. The table has, for both: the collectives that are
left after XLA combined them, the longest chain of collectives that wait for each other, and the
bytes that one device exchanges, a loop as often as it turns. Programs that are worse are named
after it: they have more rounds, a longer chain, more than 1.1 times the bytes in as many rounds, or exchange an array
as large as the largest shard where the original does not.

With `--values`, both run on random numbers near zero and far from it, and are compared with the
same function on one device in f64.

Needs the package, flax and optax.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.append(str(ROOT / "tests" / "python"))

import tilewright as tw
from sharded import devices, losses, manual, models, norms
from sharded.case import FAR, Case
from tilewright._jax._traffic import Traffic, geometric_mean, traffic


def cases(is_small: bool) -> Iterator[Case]:
    """All programs; with smaller norms and losses if asked."""
    image = norms.SMALL_IMAGE if is_small else norms.IMAGE
    yield from norms.cases(image)
    yield from manual.cases(image)
    yield from losses.cases(is_small)
    yield from models.cases()


@dataclass(frozen=True)
class Row:
    """What is known of a program."""

    name: str
    before: Traffic = field(default_factory=Traffic)
    after: Traffic = field(default_factory=Traffic)
    is_rewritten: bool = False
    # What is worse, and on which values results are further from the exact ones than they may be.
    worse: tuple[str, ...] = ()
    wrong: tuple[str, ...] = ()
    # For each kind of values, the largest error before and after, as `xla.error` has it.
    errors: dict[str, tuple[float, float]] = field(default_factory=dict)
    # Why there are no numbers.
    failed: str = ""


def row_of(record: dict[str, Any]) -> Row:
    """A row from what `asdict` made of it."""
    made = dict(record)
    for key in ("before", "after"):
        made[key] = Traffic(**record[key])
    for key in ("worse", "wrong"):
        made[key] = tuple(record[key])
    return Row(**made)


def rewritten(text: str, options: argparse.Namespace) -> str:
    """The text of a program after the rewriter."""
    done = tw.optimize(
        tw.Module.from_text(text),
        target=options.target,
        exact=options.exact,
        fast_math=options.fast_math,
    )
    return str(done.module)


def measured(case: Case, options: argparse.Namespace) -> Row:
    """Rewrites, compiles and, if asked, runs a program."""
    says("lowering")
    text = devices.lowered(case)
    says("compiling the original")
    original = devices.compiled(text, case)
    says("rewriting")
    new = rewritten(text, options)
    if options.dump is not None:
        options.dump.mkdir(parents=True, exist_ok=True)
        for kind, one in (("before", text), ("after", new)):
            (options.dump / f"{case.name}.{kind}.hlo").write_text(one)
    says("compiling the rewritten program")
    programs = (original, devices.compiled(new, case))
    before, after = (traffic(devices.text_of(program)) for program in programs)
    errors: dict[str, tuple[float, float]] = {}
    wrong = []
    says("running")
    kinds = [("near", 0.0)]
    if any(leaf.kind == "image" for leaf in case.leaves()):
        kinds.append(("far", FAR))
    for kind, mean in kinds if options.values else ():
        values = case.draw(mean)
        old, found = (devices.errors(program, case, values) for program in programs)
        errors[kind] = (max(old), max(found))
        if devices.further(old, found, devices.floor_of(case)):
            wrong.append(kind)
    is_rewritten = new != str(tw.Module.from_text(text))
    worse = tuple(after.worse_than(before))
    return Row(case.name, before, after, is_rewritten, worse, tuple(wrong), errors)


def says(phase: str) -> None:
    """Tells the parent process what is being done."""
    print(json.dumps({"phase": phase}), flush=True)


def work(chosen: list[Case], options: argparse.Namespace) -> None:
    """What a child process does: prints a line of JSON for each program."""
    for case in chosen[options.worker :]:
        try:
            row = measured(case, options)
        except Exception as error:  # noqa: BLE001 - one program must not hide the others
            row = Row(case.name, failed=f"{type(error).__name__}: {first_of(str(error))}")
        print(json.dumps({"row": asdict(row)}), flush=True)


def first_of(message: str) -> str:
    """The beginning of a message, on one line."""
    return " ".join(message.split())[:300]


def rows_of(chosen: list[Case]) -> Iterator[Row]:
    """The rows of all programs, made in a child process, because XLA ends its process where one of
    its checks fails."""
    done = 0
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"}
    while done < len(chosen):
        command = [sys.executable, __file__, *sys.argv[1:], "--worker", str(done)]
        phase = "starting"
        with tempfile.TemporaryFile("w+") as errors:
            with subprocess.Popen(
                command, stdout=subprocess.PIPE, stderr=errors, text=True, env=environment
            ) as child:
                for line in child.stdout or ():
                    said = json.loads(line)
                    phase = said.get("phase", phase)
                    if "row" in said:
                        done += 1
                        row = row_of(said["row"])
                        why = f"while {phase}: {row.failed}" if row.failed else ""
                        yield replace(row, failed=why)
            if done < len(chosen):
                errors.seek(0)
                fatal = [line for line in errors if re.match(r"F\d{4} ", line)] or ["no message\n"]
                yield Row(chosen[done].name, failed=f"while {phase}, XLA ended: {fatal[0].strip()}")
                done += 1


def printed(row: Row) -> str:
    """A row of the table."""
    before, after = row.before, row.after
    cells = [before.rounds, after.rounds, before.chain, after.chain]
    sizes = [f"{size / 1000:.1f}" for size in (before.size, after.size)]
    errors = [
        f"{old:.0e} | {new:.0e}{' wrong' if kind in row.wrong else ''}"
        for kind, (old, new) in row.errors.items()
    ]
    return f"| {' | '.join([row.name, *map(str, cells), *sizes, *errors])} |"


def summary(rows: list[Row]) -> str:
    """Sums, and means of the ratios of programs that communicate."""
    lines = []
    speaking = [row for row in rows if row.before.rounds]
    for what in ("rounds", "chain", "size"):
        pairs = [(getattr(row.before, what), getattr(row.after, what)) for row in rows]
        old, new = (sum(each) for each in zip(*pairs)) if pairs else (0, 0)
        line = f"{what}: {old} before, {new} after, ratio of the sums {new / max(old, 1):.3f}"
        if what != "chain":
            # A program that no longer communicates counts as if one round or byte were left.
            ratios = [
                max(getattr(row.after, what), 1) / getattr(row.before, what) for row in speaking
            ]
            line += f", geometric mean of the programs' ratios {geometric_mean(ratios):.3f}"
        lines.append(line)
    silent = [row.name for row in rows if not row.before.rounds and row.after.rounds]
    lines.append(f"Programs: {len(rows)}, with collectives: {len(speaking)}")
    lines.append(f"Rewritten: {sum(row.is_rewritten for row in rows)}")
    better = [row for row in rows if row.after.rounds < row.before.rounds]
    lines.append(
        f"With fewer rounds: {len(better)}; with collectives where none were: {len(silent)}"
    )
    return "\n".join(lines)


def named(title: str, names: list[str]) -> str:
    """A list of names under their number."""
    return "\n  ".join([f"{title}: {len(names)}", *names])


def parsed() -> argparse.Namespace:
    """The options."""
    parser = argparse.ArgumentParser(description=str(__doc__).split("\n", maxsplit=1)[0])
    parser.add_argument("--only", default=[], nargs="*", help="names that contain all these texts")
    parser.add_argument("--named", nargs="*", help="the programs of these names")
    parser.add_argument("--target", default="cpu")
    parser.add_argument("--exact", action="store_true")
    parser.add_argument("--fast-math", action="store_true")
    parser.add_argument("--values", action="store_true", help="run both, and compare values")
    parser.add_argument("--small", action="store_true", help="smaller images")
    parser.add_argument("--list", action="store_true", help="print the names alone")
    parser.add_argument("--json", type=Path, help="write the rows to this file, too")
    parser.add_argument("--dump", type=Path, help="write the programs to this folder, too")
    parser.add_argument("--worker", type=int, help=argparse.SUPPRESS)
    return parser.parse_args()


def is_chosen(name: str, options: argparse.Namespace) -> bool:
    """Whether the options ask for a program."""
    if options.named is not None:
        return name in options.named
    return all(text in name for text in options.only)


def written(rows: list[Row]) -> str:
    """The rows as JSON."""
    records: list[dict[str, Any]] = [asdict(row) for row in rows]
    return json.dumps(records, indent=1)


def main() -> None:
    """Prints the table, row by row."""
    options = parsed()
    chosen = [case for case in cases(options.small) if is_chosen(case.name, options)]
    if options.list:
        print(*(case.name for case in chosen), sep="\n")
        return
    if options.worker is not None:
        work(chosen, options)
        return
    more = " near | rewritten | far | rewritten |" if options.values else ""
    print("| program | rounds | rewritten | chain | rewritten | kB | rewritten |" + more)
    print("|---|---:|---:|---:|---:|---:|---:|" + "---:|" * 4 * options.values)
    rows: list[Row] = []
    failed: list[Row] = []
    for row in rows_of(chosen):
        (failed if row.failed else rows).append(row)
        print(f"| {row.name} | failed |" if row.failed else printed(row), flush=True)
    print(f"\n{summary(rows)}")
    print(named("Worse", [f"{row.name}: {', '.join(row.worse)}" for row in rows if row.worse]))
    if options.values:
        print(named("Wrong", [f"{row.name}: {', '.join(row.wrong)}" for row in rows if row.wrong]))
    print(named("Failed", [f"{row.name}: {row.failed}" for row in failed]))
    if options.json is not None:
        options.json.write_text(written([*rows, *failed]))
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
