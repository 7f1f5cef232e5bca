#!/usr/bin/env python3
"""How well the `cpu` target's modelled cycles rank programs as XLA:CPU's times do.

    python benches/calibrate_cpu.py [--only SUBSTRING] [--seconds S] [--bin PATH]

Generates programs of one kind of work each (elementwise ops, broadcasts,
reductions of every pattern, transposes, products, normalisations), in several
sizes and types.  Each is timed on XLA:CPU (the fastest of many runs) and weighed
by `tilewright cost --target cpu`.  The table has both; the last line has
Spearman's rank correlation.  No number of the target comes from here by itself:
change `crates/target/engines/xla-cpu-0.12.toml`, build, and look what the correlation does.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "python"))

import jax
import jax.numpy as jnp
import numpy as np

import real_effect
import tool
import xla

FEWEST_RUNS = 5


@dataclass(frozen=True)
class Program:
    """A named module."""

    name: str
    text: str


@dataclass(frozen=True)
class Row:
    """What a program takes: milliseconds on XLA:CPU, millions of modelled cycles."""

    name: str
    measured: float
    modelled: float

    def markdown(self) -> str:
        """The row of the table."""
        ratio = self.modelled / self.measured
        return f"| {self.name} | {self.measured:.3f} | {self.modelled:.3f} | {ratio:.2f} |"


HEADER = """\
| program | XLA:CPU ms | modelled Mcycles | Mcycles per ms |
|---|---:|---:|---:|"""


def traced(
    name: str, function: Callable[..., Any], *shapes: Sequence[int], dtype: Any = jnp.float32
) -> Program:
    """What JAX makes of a function of arrays of these shapes, all of them row major."""
    arguments = [jax.ShapeDtypeStruct(tuple(shape), dtype) for shape in shapes]
    text = jax.jit(function).lower(*arguments).as_text(dialect="hlo")
    return Program(name, re.sub(r"\]\{[\d,]*\}", "]", text))


def label(shape: Sequence[int]) -> str:
    """`4x64x64x320`."""
    return "x".join(map(str, shape))


IMAGES = [(1, 16, 16, 64), (2, 32, 32, 128), (4, 64, 64, 320)]


def elementwise() -> Iterator[Program]:
    """One pass over an image, or over two."""
    for shape in IMAGES:
        for dtype in (jnp.float32, jnp.bfloat16):
            name = f"{dtype.__name__} {label(shape)}"
            yield traced(f"x*x+x {name}", lambda x: x * x + x, shape, dtype=dtype)
        yield traced(f"x*y {label(shape)}", lambda x, y: x * y, shape, shape)
        yield traced(f"exp {label(shape)}", jnp.exp, shape)
        yield traced(f"tanh {label(shape)}", jnp.tanh, shape)


def broadcasts() -> Iterator[Program]:
    """A small array spread over an image along several of its dims."""
    for shape in IMAGES:
        batch, _, _, channels = shape
        for name, small in {
            "channels": (channels,),
            "batch and channels": (batch, 1, 1, channels),
            "batch": (batch, 1, 1, 1),
            "pixels": shape[:3] + (1,),
        }.items():
            yield traced(f"x*b {name} {label(shape)}", lambda x, b: x * b, shape, small)


def sums() -> Iterator[Program]:
    """Sums of an image and of its squares, over several dims."""
    for shape in IMAGES:
        for axes in ((1, 2), (3,), (1, 2, 3), (0, 1, 2)):
            name = f"{label(shape)} {axes}"
            yield traced(f"sum {name}", lambda x: jnp.sum(x, axes), shape)
            yield traced(f"sum of squares {name}", lambda x: jnp.sum(x * x, axes), shape)
        yield traced(f"max {label(shape)}", lambda x: jnp.max(x, (1, 2)), shape)
        yield traced(
            f"bfloat16 sum {label(shape)}",
            lambda x: jnp.sum(x, (1, 2)),
            shape,
            dtype=jnp.bfloat16,
        )


def group_sums() -> Iterator[Program]:
    """Sums over pixels and the channels of a group, few channels or many."""
    for batch, side, channels in ((2, 32, 128), (4, 64, 320)):
        for width in (2, 4, 8, 16, 32, 64):
            shape = (batch, side, side, channels // width, width)
            yield traced(f"group sum {label(shape)}", lambda x: jnp.sum(x, (1, 2, 4)), shape)


def windows() -> Iterator[Program]:
    """Sums over blocks: of a reshape, and by windows of a stored and of a computed array."""

    def pooled(x: Any, size: Sequence[int]) -> Any:
        return jax.lax.reduce_window(x, 0.0, jax.lax.add, size, size, "valid")

    def summed(x: Any, size: Sequence[int]) -> Any:
        split = [n for whole, k in zip(x.shape, size) for n in (whole // k, k)]
        return jnp.sum(x.reshape(split), tuple(range(1, 2 * x.ndim, 2)))

    for shape in IMAGES:
        for size in ((1, 2, 2, 1), (1, 4, 4, 1), (1, 1, 1, 8), (1, 1, 4, 4)):
            name = f"{label(size)} of {label(shape)}"
            yield traced(f"sum over {name}", lambda x: summed(x, size), shape)
            yield traced(f"window {name}", lambda x: pooled(x, size), shape)
            yield traced(f"window of squares {name}", lambda x: pooled(x * x, size), shape)


def moves() -> Iterator[Program]:
    """Transposes of whole runs and of single elements."""
    for shape in IMAGES:
        for order in ((0, 2, 1, 3), (0, 3, 1, 2)):
            name = f"transpose {label(shape)} {order}"
            yield traced(name, lambda x: jnp.transpose(x, order), shape)


def products() -> Iterator[Program]:
    """Matrix products."""
    for size in (64, 256, 512, 1024):
        yield traced(f"dot {size}", jnp.dot, (size, size), (size, size))


def norms() -> Iterator[Program]:
    """Normalisations: several passes, reductions that wait for each other."""

    def normalised(x: Any, axes: Sequence[int]) -> Any:
        mean = jnp.mean(x, axes, keepdims=True)
        variance = jnp.mean((x - mean) ** 2, axes, keepdims=True)
        return (x - mean) * jax.lax.rsqrt(variance + 1e-5)

    def grouped(x: Any, width: int) -> Any:
        shape = x.shape[:3] + (x.shape[3] // width, width)
        return normalised(x.reshape(shape), (1, 2, 4)).reshape(x.shape)

    def slope(function: Callable[[Any], Any]) -> Callable[[Any, Any], Any]:
        return lambda x, dy: jax.vjp(function, x)[1](dy)

    for shape in IMAGES:
        for name, axes in {"instance": (1, 2), "layer": (3,), "batch": (0, 1, 2)}.items():
            norm = lambda x: normalised(x, axes)
            yield traced(f"{name} norm {label(shape)}", norm, shape)
            yield traced(f"{name} norm gradient {label(shape)}", slope(norm), shape, shape)
        for width in (2, 8, 32):
            norm = lambda x: grouped(x, width)
            yield traced(f"group norm {label(shape)} of {width}", norm, shape)
            name = f"group norm gradient {label(shape)} of {width}"
            yield traced(name, slope(norm), shape, shape)


def programs() -> Iterator[Program]:
    """Every program."""
    for family in (
        elementwise,
        broadcasts,
        sums,
        group_sums,
        windows,
        moves,
        products,
        norms,
    ):
        yield from family()


def milliseconds(program: Program, seconds: float) -> float:
    """The fastest of as many runs as fit the time."""
    executable = xla.compile_text(program.text)
    inputs = real_effect.random_inputs(executable)
    executable.launch(inputs)
    times: list[float] = []
    end = time.perf_counter() + seconds
    while len(times) < FEWEST_RUNS or time.perf_counter() < end:
        start = time.perf_counter()
        executable.launch(inputs)
        times.append(time.perf_counter() - start)
    return min(times) * 1e3


def modelled(program: Program) -> float:
    """Millions of cycles, as the `cpu` target has it."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "program.hlo"
        path.write_text(program.text)
        report = tool.tilewright("cost", path, "--target", "cpu", "--json")
    return json.loads(report)["total"]["cycles"] / 1e6


def ranks(values: Sequence[float]) -> np.ndarray:
    """The place of each value in their order, from 0."""
    places = np.empty(len(values))
    places[np.argsort(values, kind="stable")] = np.arange(len(values))
    return places


def spearman(rows: Sequence[Row]) -> float:
    """The correlation of the ranks of both costs."""
    measured = ranks([row.measured for row in rows])
    return float(np.corrcoef(measured, ranks([row.modelled for row in rows]))[0, 1])


def main() -> None:
    """Prints the table, row by row, and the correlation."""
    parser = argparse.ArgumentParser(description=str(__doc__).split("\n")[0])
    parser.add_argument("--only", default="", help="names that contain this text")
    parser.add_argument("--seconds", type=float, default=0.3, help="time for each program")
    parser.add_argument("--bin", type=Path, help="the tilewright binary")
    options = parser.parse_args()
    if options.bin is not None:
        os.environ["TILEWRIGHT_BIN"] = str(options.bin.resolve())
    print(HEADER)
    rows = []
    for program in programs():
        if options.only in program.name:
            row = Row(program.name, milliseconds(program, options.seconds), modelled(program))
            print(row.markdown(), flush=True)
            rows.append(row)
    print(f"\n{len(rows)} programs, rank correlation {spearman(rows):.3f}")


if __name__ == "__main__":
    main()
