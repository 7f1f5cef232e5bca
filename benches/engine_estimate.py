#!/usr/bin/env python3
"""What the compilers of TPUs and GPUs estimate for original and rewritten programs, without a device.

    python benches/engine_estimate.py --engine tpu-v5e|tpu-v6e|xla-gpu-h100 [FILE...]
        [--suite real|wide|vjp|pullback|foreign|torch]... [--only SUBSTRING] [--target NAME]
        [--fast-math] [--bin PATH] [--json FILE]

An estimate is no measurement: it is what the engine's own compiler takes each kernel to cost. Each
program, a file or one of the suites of `real_effect.py`, is compiled for one device as it is and as
`tilewright opt` writes it. A row has both estimates and their ratio, the kernels of both, how many
times both read or write an array of the size of the largest one, and the ratio of the target's model.
Kernels without an estimate (products and convolutions that are left to libraries) are counted apart.

The compiler is installed from PyPI into an environment of its own, `target/engines/NAME`, when it is
first asked; its licence is its own. The target is that of the engine unless another one is named.

Where this machine has such a device, which the JAX of this Python can use, nothing is installed: programs
are compiled for that device, run on it in turn, and a row has their times beside the estimates.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "python"))

import at_hand
import tool
from environment import TARGETS, in_environment


@dataclass(frozen=True)
class Estimate:
    """What an engine says of a compiled module."""

    # In the engine's unit.
    cost: float
    kernels: int
    # Reads and writes of arrays of at least half the bytes of the largest, beside that one.
    sweeps: float
    # Kernels of which the engine says nothing, by what they are.
    unknown: dict[str, int]


@dataclass(frozen=True)
class Row:
    """One program."""

    name: str
    original: Estimate
    rewritten: Estimate
    unchanged: bool
    modelled: float
    # The seconds of both on a device that is at hand.
    measured: tuple[float, float] | None

    @property
    def ratio(self) -> float:
        """How many times as much the original costs."""
        return self.original.cost / self.rewritten.cost if self.rewritten.cost else 1.0

    def markdown(self) -> str:
        """The row of the table."""
        a, b = self.original, self.rewritten
        unknown = ", ".join(f"{count} {kind}" for kind, count in b.unknown.items())
        note = "unchanged" if self.unchanged else f"without {unknown}" if unknown else ""
        if self.measured is not None:
            before, after = (seconds * 1e6 for seconds in self.measured)
            note = f"{before:,.0f} us measured, then {after:,.0f}: {before / after:.2f} {note}"
        return (
            f"| {self.name} | {a.cost:,.0f} | {b.cost:,.0f} | {self.ratio:.2f} | {self.modelled:.2f}"
            f" | {a.kernels} | {b.kernels} | {a.sweeps:.1f} | {b.sweeps:.1f} | {note} |"
        )


HEADER = """\
| program | original {unit} | rewritten {unit} | ratio | modelled | kernels | then | sweeps | then | note |
|---|---:|---:|---:|---:|---:|---:|---:|---:|---|"""


def programs(files: Sequence[Path], suites: Sequence[str]) -> Iterator[tuple[str, str | Path]]:
    """Names of files, then names and texts of suites."""
    yield from ((path.stem, path) for path in files)
    if suites:
        import real_effect

        for suite in suites:
            yield from real_effect.SUITES[suite]()


def main() -> None:
    """Prints the table, row by row."""
    parser = argparse.ArgumentParser(description=str(__doc__).split("\n")[0])
    parser.add_argument("files", nargs="*", type=Path, help="modules in any form")
    parser.add_argument("--engine", choices=TARGETS, required=True, help="whose compiler is asked")
    parser.add_argument("--suite", action="append", default=[], help="as in real_effect.py")
    parser.add_argument("--only", default="", help="names that contain this text")
    parser.add_argument("--target", help="what `opt` weighs costs on")
    parser.add_argument("--fast-math", action="store_true", help="as for `opt`")
    parser.add_argument("--bin", type=Path, help="the tilewright binary")
    parser.add_argument("--json", type=Path, help="a file for all rows")
    given = parser.parse_args()
    if given.bin is not None:
        os.environ["TILEWRIGHT_BIN"] = str(given.bin.resolve())
    device = at_hand.device(given.engine)
    if device is None:
        in_environment(given.engine)
        os.environ["JAX_PLATFORMS"] = "cpu"

    import engines

    engine = engines.ENGINES[given.engine]
    if device is None:
        os.environ.update(engine.environment)
    more = ["--fast-math"] if given.fast_math else []
    beside = f"beside times of {device.device_kind}" if device else "not measurements"
    print(f"{engine.name}: estimates of its compiler, {beside}\n")
    print(HEADER.format(unit=engine.unit))
    rows, refused = [], []
    for name, source in programs(given.files, given.suite):
        if given.only not in name:
            continue
        try:
            row = judged(engine, name, source, given.target or TARGETS[engine.name], more, device)
        except Exception as error:
            refused.append(f"{name}: {reason(error)}")
            continue
        rows.append(row)
        print(row.markdown(), flush=True)
    print(f"\n{summary(rows)}")
    for line in refused:
        print(f"refused: {line}")
    if given.json is not None:
        found = {"engine": engine.name, "unit": engine.unit, "rows": [asdict(row) for row in rows]}
        given.json.write_text(json.dumps(found | {"refused": refused}, indent=1))


def reason(error: Exception) -> str:
    """Why a program has no estimate, in a line: what a compiler says first, or the command last."""
    lines = [line for line in str(error).splitlines() if line.strip()] or [type(error).__name__]
    return (lines[-1] if type(error) is RuntimeError else lines[0])[:200]


def judged(
    engine: Any, name: str, source: str | Path, target: str, more: Sequence[str], device: Any
) -> Row:
    """Compiles a program as it is and rewritten, and runs both if there is a device."""
    with tempfile.TemporaryDirectory() as folder:
        text, original, rewritten = (Path(folder) / file for file in ("in.hlo", "a.mlir", "b.mlir"))
        if isinstance(source, str):
            text.write_text(source)
            source = text
        tool.tilewright("convert", source, "-o", original)
        done = tool.run("opt", source, "--target", target, "--json", "-o", rewritten, *more)
        report = json.loads(done.stderr)
        texts = [file.read_text() for file in ((original,) if report["unchanged"] else (original, rewritten))]
        estimates = [estimate(engine.compiled(text, device)) for text in texts]
        times = at_hand.seconds(device, texts) if device else None
    modelled = report["before"]["cycles"] / max(report["after"]["cycles"], 1)
    measured = (times[0], times[-1]) if times else None
    return Row(name, estimates[0], estimates[-1], report["unchanged"], modelled, measured)


def summary(rows: Sequence[Row]) -> str:
    """Geometric means, and the dearest of the rewritten programs."""
    changed = [row for row in rows if not row.unchanged]
    if not changed:
        return f"{len(rows)} programs, none rewritten"

    def mean(some: Sequence[Row]) -> float:
        return statistics.geometric_mean(row.ratio for row in some)

    worst = min(changed, key=lambda row: row.ratio)
    errors = sorted(max(r.modelled / r.ratio, r.ratio / r.modelled) for r in changed)
    return (
        f"{len(rows)} programs: {mean(rows):.2f} times as cheap (geometric mean)\n"
        f"{len(changed)} of them rewritten: {mean(changed):.2f}; "
        f"{sum(row.ratio < 0.97 for row in changed)} below 0.97, least {worst.ratio:.2f} ({worst.name})\n"
        f"nine in ten within {errors[len(errors) * 9 // 10]:.2f}x of the model"
    )


def estimate(text: str) -> Estimate:
    """What a compiled module says of its kernels."""
    import compiled

    return Estimate(*compiled.Module(text).estimate())


if __name__ == "__main__":
    main()
