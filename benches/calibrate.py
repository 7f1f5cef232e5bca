#!/usr/bin/env python3
"""Measures the table of reductions of an engine and writes it into the engine's file.

    python benches/calibrate.py --engine FILE [--draws N] [--only WORDS] [--bin PATH]
    python benches/calibrate.py --refine FILE [--draws N] [--seed S] [--bin PATH]

The table (`[reductions]`) has the nanoseconds per element of each form in which a reduction can be
written, for each kind of reduction: what it computes, its type, where its elements come from, how the
array is walked, how long the innermost axis and the longest reduced one are. N random programs of each
kind are timed on XLA:CPU as they are; where that is slower than a fast reduction of as many elements,
each form that the pass `reduce-form` can give them is timed in turn with the original. The time of a
form is the geometric mean of its programs, its spread the worst of them beside that mean, relative to
the original. The file then has the version of jaxlib, the CPU and the date. Of values that others
read, too, more programs are drawn (`copies.py`), and their mean decides.

`--refine` draws N more programs of each kind that has a faster form, and corrects its times: three
programs do not show all that a kind can be. `check_forms.py` then checks the table's choices.

Kernels are those of the installed `tilewright`, which must be a release build.

The first takes about 40 minutes on two quiet cores, of which copies take 14; the second takes 7.
"""

from __future__ import annotations

import argparse
import datetime
import math
import os
import platform
import random
import re
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import jax

jax.config.update("jax_enable_x64", True)

from copies import FEWEST_COPIES, LARGE, MOST_OF_TIME, PARTS, Shared, drawn_copies
from reductions import FOLDINGS, INNERMOST, LONGEST, Drawn, drawn, fits, programs_of, values

import tool
import xla

FORMS = ("in-f32", "merged", "folds", "windows", "wide", "columns")
# The pass that writes a form.
PASSES = {form: "reduce-form" for form in FORMS} | {"copied": "rematerialize", "kernel": "native-calls"}
# The nanoseconds of a call of a kernel on a few elements.
KERNEL_CALL_NS = 8000
Program = Drawn | Shared
# The least spread: two runs of one program differ by so much.
NOISE = 1.2
# A form must be faster than the reduction as it is by so much more than its spread.
MARGIN = 1.1
# A reduction is slow if it takes so many times as long as a fast one, and a form is tried.
SLOW = 1.4
# Compile while others do.
COMPILERS = ThreadPoolExecutor(os.cpu_count())


def table(cells: Sequence[str], measured: str) -> str:
    """The section of an engine's file."""
    rows = "".join(f"{cell}\n" for cell in cells)
    return (
        "[reductions]\n"
        f'measured = "{measured}"\n'
        f"least_elements = {1 << 15}\n"
        f"large_elements = {LARGE}\n"
        f"kernel_call_ns = {KERNEL_CALL_NS}\n"
        f"innermost = [{', '.join(map(str, INNERMOST))}]\n"
        f"longest = [{', '.join(map(str, LONGEST))}]\n"
        f"cells = '''\n{rows}'''\n"
    )


def forced(program: Program, form: str, folder: Path) -> str | None:
    """The program in a form; `None` if it has no such form."""
    folder.mkdir(exist_ok=True)
    target, source, out = folder / "target.toml", folder / "in.hlo", folder / "out.hlo"
    cell = f"{program.cell} | as-is 1000 | {form} 1"
    target.write_text('base = "cpu"\n' + table([cell], "forced"))
    source.write_text(program.text)
    tool.tilewright("opt", source, "--target", target, "--passes", f"{PASSES[form]},dce", "-o", out)
    changed = out.read_text()
    is_changed = " custom-call(" in changed or changed.count("\n") > program.text.count("\n") + 1
    return changed if is_changed else None


def least(runs: Sequence[Callable[[], object]], seconds: float) -> list[float]:
    """The least seconds of each, run in turn."""
    for run in runs:
        run()
    best = [float("inf")] * len(runs)
    end, turns = time.perf_counter() + seconds * len(runs), 0
    while turns < 3 or time.perf_counter() < end and turns < 50:
        for number, run in enumerate(runs):
            start = time.perf_counter()
            run()
            best[number] = min(best[number], time.perf_counter() - start)
        turns += 1
    return best


def compiled(program: Program, text: str) -> Callable[[], object]:
    """What runs a module."""
    executable = xla.compile_text(text)
    placed = executable.place(values(executable, program.folding))
    return lambda: executable.launch(placed)


def timed(program: Program, forms: Sequence[str], folder: Path, seconds: float = 0.004) -> dict[str, float]:
    """The nanoseconds per element of a program as it is and in each form that it has."""

    def made(form: str) -> tuple[str, Callable[[], object]] | None:
        changed: str | None = program.text
        if form != "as-is":
            changed = forced(program, form, folder / form)
        return None if changed is None else (form, compiled(program, changed))

    runs = dict(one for one in COMPILERS.map(made, ("as-is", *forms)) if one)
    elements = math.prod(program.shape.dims)
    times = least(list(runs.values()), seconds)
    return {form: one * 1e9 / elements for form, one in zip(runs, times)}


def all_timed(programs: Sequence[Program]) -> list[dict[str, float]]:
    """The nanoseconds per element of each program as it is."""
    runs = list(COMPILERS.map(lambda program: compiled(program, program.text), programs))
    sizes = [math.prod(program.shape.dims) for program in programs]
    return [{"as-is": one * 1e9 / size} for one, size in zip(least(runs, 0.004), sizes)]


def form_times(drawn_times: Sequence[dict[str, float]]) -> dict[str, tuple[float, float]]:
    """The mean and the spread of each form that at least two programs have, or the only one."""
    least = min(2, len(drawn_times))
    found = {"as-is": (statistics.geometric_mean(times["as-is"] for times in drawn_times), 1.0)}
    for form in PASSES:
        have = [times for times in drawn_times if form in times]
        if len(have) >= least:
            ratios = [times[form] / times["as-is"] for times in have]
            mean = statistics.geometric_mean(ratios)
            found[form] = mean * found["as-is"][0], max(max(ratios) / mean, NOISE)
    return found


def register_kernels() -> bool:
    """Makes the kernels known to JAX. Returns whether `tilewright` is installed."""
    try:
        from tilewright import _core
    except ImportError:
        return False
    header = Path(jax.ffi.include_dir()) / "xla/ffi/api/c_api.h"
    minor = int(re.search(r"#define XLA_FFI_API_MINOR (\d+)", header.read_text())[1])
    for target, handler in _core.ffi_targets(minor):
        jax.ffi.register_ffi_target(target, handler, platform="cpu", api_version=1)
    return True


def engine() -> str:
    """What was measured, where and when."""
    cpu = platform.processor() or platform.machine()
    try:
        found = re.search(r"model name\s*:\s*(.*)", Path("/proc/cpuinfo").read_text())
        cpu = found[1] if found else cpu
    except OSError:
        pass
    threads, date = os.cpu_count(), datetime.date.today().isoformat()
    return f"jaxlib {jax.lib.__version__}, {cpu}, {threads} threads, {date}"


def calibrate(draws: int, only: str) -> Iterator[str]:
    """The cells of the table."""
    draw = random.Random(11)
    kinds = drawn(draws, draw)
    kernels = ("kernel",) if register_kernels() else ()
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        for folding, element_type in FOLDINGS:
            for source in ("stored", "computed"):
                if only not in f"{folding} {element_type} {source}":
                    continue
                taken = {
                    key: programs_of(folding, element_type, source, found, draw)
                    for key, found in kinds.items()
                    if all(fits(folding, shape) for shape in found)
                }
                as_is = {key: all_timed(programs) for key, programs in taken.items()}
                fast = min(min(times["as-is"] for times in found) for found in as_is.values())
                for key, programs in taken.items():
                    times = as_is[key]
                    is_slow = max(one["as-is"] for one in times) > SLOW * fast
                    forms = (*(FORMS if is_slow else ()), *(kernels if source == "stored" else ()))
                    if forms:
                        times = [timed(program, forms, folder) for program in programs]
                    yield line_of(programs[0].cell, form_times(times))
        for part in PARTS:
            if only in f"sum f32 {part}":
                for cell, programs in drawn_copies(part, draw).items():
                    times = [timed(program, ("copied",), folder) for program in programs]
                    yield copies_line(cell, [one for one in times if "copied" in one])


def copies_line(cell: str, times: Sequence[dict[str, float]]) -> str:
    """The line of a cell of shared values. Programs differ much, and copies help each other in a module:
    the mean decides."""
    if len(times) < FEWEST_COPIES:
        return f"{cell} | as-is 1"
    as_is = statistics.geometric_mean(one["as-is"] for one in times)
    mean = statistics.mean(one["copied"] / one["as-is"] for one in times)
    return f"{cell} | as-is {as_is:.3g}" + (f" | copied {mean * as_is:.3g}" if mean < MOST_OF_TIME else "")


def line_of(cell: str, times: dict[str, tuple[float, float]]) -> str:
    """The line of a cell: the time as it is, and those of forms that are faster."""
    as_is = times["as-is"][0]
    faster = {form: one for form, one in times.items() if one[0] * one[1] * MARGIN < as_is}
    parts = [f"{form} {ns:.3g} x{spread:.2f}" for form, (ns, spread) in faster.items()]
    return " | ".join((cell, f"as-is {as_is:.3g}", *parts))


def kept(lines: Sequence[str]) -> list[str]:
    """The lines without those that say no more than a missing one: as it is, the reduction is fast."""
    fast: dict[tuple[str, str], float] = {}
    for line in lines:
        _, element_type, source, *_ = line.split()
        as_is = float(line.split(" | as-is ")[1].split()[0])
        fast[element_type, source] = min(as_is, fast.get((element_type, source), as_is))

    def says_more(line: str) -> bool:
        _, element_type, source, *_ = line.split()
        as_is, *forms = line.split(" | as-is ")[1].split(" | ")
        is_slow = float(as_is) > SLOW * fast[element_type, source]
        return bool(forms) or is_slow and source not in PARTS

    return [line for line in lines if says_more(line)]


def cells_of(text: str) -> list[str]:
    """The lines of a file's table."""
    found = re.search(r"cells = '''\n(.*)'''", text, re.DOTALL)
    return found[1].splitlines() if found else []


def refined(text: str, draws: int, only: str, seed: int) -> Iterator[str]:
    """The cells of a table, with more programs of each kind that has a faster form."""
    draw = random.Random(seed)
    register_kernels()
    kinds = drawn(draws, draw)
    with tempfile.TemporaryDirectory() as made:
        for line in cells_of(text):
            cell, *parts = line.split(" | ")
            before = {
                form: (float(ns), float(spread[0][1:]) if spread else 1.0)
                for form, ns, *spread in (part.split() for part in parts)
            }
            folding, element_type, source, walk, *words, innermost, longest = cell.split()
            found = kinds.get((walk, "nested" in words, int(innermost), int(longest)))
            if found is None or len(before) == 1 or source in PARTS or only not in cell:
                yield line
                continue
            programs = programs_of(folding, element_type, source, found, draw)
            forms = tuple(form for form in before if form != "as-is")
            times = [timed(program, forms, Path(made)) for program in programs]
            yield line_of(cell, both_times(before, times))


def both_times(
    before: dict[str, tuple[float, float]], times: Sequence[dict[str, float]]
) -> dict[str, tuple[float, float]]:
    """The means and spreads of a cell and of as many new programs, which all have the forms."""
    after = form_times(times)
    as_is = math.sqrt(before["as-is"][0] * after["as-is"][0])
    both = {"as-is": (as_is, 1.0)}
    for form in before:
        if form != "as-is" and form in after:
            ns = math.sqrt(before[form][0] * after[form][0])
            worst = max(one[form][0] * one[form][1] / one["as-is"][0] for one in (before, after))
            both[form] = ns, max(worst * as_is / ns, NOISE)
    return both


def main() -> None:
    """Writes an engine's file."""
    parser = argparse.ArgumentParser(description=str(__doc__).split("\n")[0])
    parser.add_argument("--engine", type=Path, help="the file to write the table into")
    parser.add_argument("--refine", type=Path, help="the file whose table gets more programs")
    parser.add_argument("--draws", type=int, default=3, help="programs of each kind")
    parser.add_argument("--only", default="", help="kinds whose name has these words")
    parser.add_argument("--seed", type=int, default=5, help="of the programs for --refine")
    parser.add_argument("--bin", type=Path, help="the tilewright binary")
    options = parser.parse_args()
    if options.bin is not None:
        os.environ["TILEWRIGHT_BIN"] = str(options.bin.resolve())
    file = options.refine or options.engine
    if file is None:
        parser.error("name a file by --engine or --refine")
    text = file.read_text()
    made = (
        refined(text, options.draws, options.only, options.seed)
        if options.refine
        else calibrate(options.draws, options.only)
    )
    cells = []
    for cell in made:
        print(cell, flush=True)
        cells.append(cell)
    if options.refine is None:
        cells = kept(cells) + [line for line in cells_of(text) if options.only and options.only not in line]
    head = text.split("[reductions]")[0].rstrip("\n")
    file.write_text(f"{head}\n\n{table(cells, engine())}")


if __name__ == "__main__":
    main()
