#!/usr/bin/env python3
"""Reductions on XLA:CPU as they are written and as Tilewright rewrites them, beside reading.

    python benches/reduce_peer.py [--only SUBSTRING] [--random N] [--seed N] [--seconds S]
        [--bin PATH]

Each program reduces one array: of the shapes that users complain of, and of random ones;
sums, products, extrema, their places, truth values; in f32, bf16, f64, s32 and pred; alone,
behind ops that XLA fuses into the reduction, and several at once.  The random ones have more
types, more ops before and several reductions of one array: `--seed` draws others.  The programs run in turn
with one that reads as many bytes: the best of four reductions that XLA:CPU vectorises.  Every
column is the fastest of many runs, divided by that.  A program that seems slower than before
is measured once more, three times as long.
"""

from __future__ import annotations

import argparse
import os
import re
import statistics
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

Function = Callable[[jax.Array], Any]

# Dims and the reduced ones.
PATTERNS: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...] = (
    ((4194304,), (0,)),
    ((4096, 1024), (0,)),
    ((4096, 1024), (1,)),
    ((256, 16384), (0,)),
    ((256, 16384), (1,)),
    ((65536, 64), (0,)),
    ((65536, 64), (1,)),
    ((32, 131072), (0,)),
    ((32, 131072), (1,)),
    ((1048576, 4), (0,)),
    ((1048576, 4), (1,)),
    ((500009, 7), (0,)),
    ((500009, 7), (1,)),
    ((300007, 13), (1,)),
    ((200000, 20), (1,)),
    ((142856, 28), (1,)),
    ((7812, 64, 8), (1, 2)),
    ((3906, 64, 16), (1, 2)),
    ((114285, 7, 5), (1, 2)),
    ((100003, 40), (1,)),
    ((1398101, 3), (1,)),
    ((64, 50257), (1,)),
    ((50257, 64), (0,)),
    ((8, 64, 64, 32, 4), (1, 2, 4)),
    ((8, 64, 64, 32, 4), (1, 3)),
    ((16, 32, 16, 32, 16), (0, 2, 4)),
    ((16, 32, 16, 32, 16), (1, 3)),
    ((32, 128, 1024), (0, 2)),
    ((32, 128, 1024), (1,)),
    ((64, 256, 256), (0,)),
    ((64, 256, 256), (0, 1)),
    ((64, 256, 256), (1, 2)),
    ((32, 56, 56, 48), (0, 1, 2)),
    ((32, 48, 56, 56), (0, 2, 3)),
    ((256, 4096, 3), (1,)),
    ((24, 10, 384, 6, 6), (1, 4)),
    ((49, 32, 9, 17, 5), (0, 2, 4)),
    ((2, 49, 80, 80), (0, 1, 2, 3)),
    ((128, 128, 112, 1), (0, 1, 2, 3)),
)
TYPES = ("float32", "bfloat16", "float64", "int32")
MONOIDS: dict[str, Callable[..., jax.Array]] = {
    "sum": jnp.sum,
    "max": jnp.max,
    "min": jnp.min,
    "prod": jnp.prod,
}
PLACES: dict[str, Callable[..., jax.Array]] = {
    "argmax": jnp.argmax,
    "argmin": jnp.argmin,
}
PRODUCERS: dict[str, Function] = {
    "": lambda x: x,
    "square": lambda x: x * x,
    "shifted": lambda x: x * 2 + 1,
    "above": lambda x: x > 0.5,
}


@dataclass(frozen=True)
class Program:
    """A named reduction."""

    name: str
    dims: tuple[int, ...]
    dtype: str
    function: Function


@dataclass(frozen=True)
class Row:
    """The least seconds of a program as it is written, rewritten, and of reading its array."""

    name: str
    original: float
    rewritten: float
    reading: float
    changed: bool

    @property
    def ratio(self) -> float:
        """How many times as fast the rewritten program is."""
        return self.original / self.rewritten

    def markdown(self) -> str:
        """The row of the table."""
        before, after = (part / self.reading for part in (self.original, self.rewritten))
        shown = f"{after:.2f} | {self.ratio:.2f}" if self.changed else "unchanged |"
        return f"| {self.name} | {before:.2f} | {shown} |"


def reduction(
    name: str, by: Callable[..., Any], dims: Sequence[int], axes: Sequence[int], dtype: str,
    producer: str = "",
) -> Program:
    """A reduction along axes of what a producer makes of an array."""
    before = RANDOM_PRODUCERS[producer]
    axis = axes[0] if name.startswith("arg") else tuple(axes)
    shown = ",".join(map(str, dims))
    label = f"{name} {dtype}[{shown}] along {','.join(map(str, axes))}"
    label += f" of {producer}" * bool(producer)
    return Program(label, tuple(dims), dtype, lambda x: by(before(x), axis=axis))


def moments(x: jax.Array, axis: tuple[int, ...]) -> tuple[jax.Array, jax.Array]:
    """A sum and a sum of squares."""
    return jnp.sum(x, axis), jnp.sum(x * x, axis)


def patterns() -> Iterator[Program]:
    """The chosen shapes, with every reducer, type and producer that makes sense."""
    for dims, axes in PATTERNS:
        for dtype in TYPES:
            for name, by in MONOIDS.items():
                if (name, dtype) != ("prod", "bfloat16"):
                    yield reduction(name, by, dims, axes, dtype)
            if len(axes) == 1:
                for name, by in PLACES.items():
                    yield reduction(name, by, dims, axes, dtype)
        yield reduction("any", jnp.any, dims, axes, "bool")
        yield reduction("all", jnp.all, dims, axes, "bool")
        yield reduction("moments", moments, dims, axes, "float32")
        yield reduction("sum", jnp.sum, dims, axes, "float32", "square")
        yield reduction("max", jnp.max, dims, axes, "float32", "shifted")
        yield reduction("sum", jnp.sum, dims, axes, "float32", "above")
        yield reduction("any", jnp.any, dims, axes, "float32", "above")
        if len(axes) == 1:
            yield reduction("argmax", jnp.argmax, dims, axes, "float32", "shifted")


def both_extrema(x: jax.Array, axis: tuple[int, ...]) -> tuple[jax.Array, jax.Array]:
    """A maximum and a minimum."""
    return jnp.max(x, axis), jnp.min(x, axis)


def turned(x: jax.Array, axis: tuple[int, ...]) -> jax.Array:
    """A sum of a transposed array."""
    return jnp.sum(jnp.swapaxes(x, 0, -1), axis)


def normalised(x: jax.Array, axis: tuple[int, ...]) -> jax.Array:
    """Parts of a sum."""
    return x / jnp.sum(x, axis, keepdims=True)


def maximum_and_place(x: jax.Array, axis: int) -> tuple[jax.Array, jax.Array]:
    """A maximum and its place."""
    return jnp.max(x, axis), jnp.argmax(x, axis)


RANDOM_SIZES = (
    1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 14, 16, 17, 20, 24, 28, 31, 32, 49, 56, 64, 80, 100, 112,
    127, 128, 196, 224, 256, 384, 512, 768, 1000, 1024, 3000, 4096,
)
RANDOM_TYPES = (
    *["float32"] * 4, *["bfloat16"] * 2, "float16", "float64", "int32", "uint8", "int8", "uint32",
    "bool",
)
OF_ALL: dict[str, Callable[..., Any]] = MONOIDS | {
    "extrema": both_extrema,
    "count": jnp.count_nonzero,
    "turned": turned,
}
OF_FLOATS: dict[str, Callable[..., Any]] = {
    "moments": moments,
    "mean": jnp.mean,
    "var": jnp.var,
    "logsumexp": jax.nn.logsumexp,
    "normalised": normalised,
}
OF_BOOL: dict[str, Callable[..., Any]] = {
    "any": jnp.any,
    "all": jnp.all,
    "sum": jnp.sum,
    "count": jnp.count_nonzero,
}
RANDOM_PRODUCERS: dict[str, Function] = PRODUCERS | {
    "abs": jnp.abs,
    "exp": jnp.exp,
    "tanh": jnp.tanh,
    "relu": lambda x: jnp.maximum(x, 0),
    "selected": lambda x: jnp.where(x > 0, x, 0),
    "weighted": lambda x: x * jnp.arange(x.shape[-1]).astype(x.dtype),
    "centred": lambda x: x - x[:1],
}


def random_programs(count: int, seed: int) -> Iterator[Program]:
    """Reductions of random shapes of 0.5 to 8 million elements."""
    rng = np.random.default_rng(seed)
    made = 0
    while made < count:
        rank = int(rng.integers(1, 6))
        dims = [int(rng.choice(RANDOM_SIZES)) for _ in range(rank)]
        if not 1 << 19 <= int(np.prod(dims)) <= 1 << 23:
            continue
        axes = sorted(rng.choice(rank, size=int(rng.integers(1, rank + 1)), replace=False).tolist())
        dtype = str(rng.choice(RANDOM_TYPES))
        is_float = "float" in dtype
        by = dict(OF_BOOL if dtype == "bool" else OF_ALL | (OF_FLOATS if is_float else {}))
        if len(axes) == 1 and dtype != "bool":
            by |= PLACES | {"argmax and max": maximum_and_place}
        if dtype in ("bfloat16", "float16"):
            del by["prod"]
        name = str(rng.choice(sorted(by)))
        producer = str(rng.choice(["", "", "", *RANDOM_PRODUCERS])) if is_float else ""
        if producer == "above" and name not in OF_BOOL:
            continue
        yield reduction(name, by[name], dims, axes, dtype, producer)
        made += 1


def text_of(program: Program) -> str:
    """What JAX makes of a program, with a row-major array."""
    argument = jax.ShapeDtypeStruct(program.dims, jnp.dtype(program.dtype))
    with jax.enable_x64(program.dtype == "float64"):
        text = jax.jit(program.function).lower(argument).as_text(dialect="hlo")
    return re.sub(r"\]\{[\d,]*\}", "]", text)


def array_of(program: Program) -> np.ndarray:
    """Values of both signs, with ties."""
    rng = np.random.default_rng(1)
    values = rng.standard_normal(program.dims, dtype=np.float32)
    if program.dtype == "bool":
        return values > 0
    if program.name.startswith("prod"):
        values = 1 + values / 4096
    if "int" in program.dtype:
        values = (np.abs(values) if program.dtype.startswith("u") else values) * 25
    return values.astype(jnp.dtype(program.dtype))


READERS: dict[int, list[tuple[xla.Executable, list[jax.Array]]]] = {}


def readers(size: int) -> list[tuple[xla.Executable, list[jax.Array]]]:
    """Programs that read so many bytes, with their arrays."""
    width = 4096
    if size not in READERS:
        rows = max(size // (4 * width), 1)
        programs = [
            Program(f"{name} {axis}", (rows, width), "float32", lambda x, by=by, axis=axis: by(x, axis))
            for name, by in (("sum", jnp.sum), ("max", jnp.max))
            for axis in (0, 1)
        ]
        made = [(xla.compile_text(text_of(one)), array_of(one)) for one in programs]
        READERS.clear()
        READERS[size] = [(program, program.place([array])) for program, array in made]
    return READERS[size]


def least(runs: Sequence[Callable[[], object]], budget: float) -> list[float]:
    """The least seconds of each, run in turn."""
    for run in runs:
        run()
    best = [float("inf")] * len(runs)
    end, turns = time.perf_counter() + budget, 0
    while turns < 3 or time.perf_counter() < end:
        for number, run in enumerate(runs):
            start = time.perf_counter()
            run()
            best[number] = min(best[number], time.perf_counter() - start)
        turns += 1
    return best


def measure(program: Program, budget: float) -> Row:
    """Rewrites, compiles, compares and times a program."""
    text = text_of(program)
    with tempfile.TemporaryDirectory() as folder:
        changed, unchanged = real_effect.rewrite(text, "cpu", Path(folder))
    array = array_of(program)
    original = xla.compile_text(text)
    with jax.enable_x64(True):
        placed = original.place([array])
    rewritten = original if unchanged else xla.compile_text(changed)
    if not unchanged:
        tolerance = xla.rounding_of(text)
        for one, other in zip(original.launch(placed), rewritten.launch(placed)):
            far = xla.error(np.asarray(other), np.asarray(one))
            if far > max(tolerance, 1e-4 if "prod" in program.name else 0):
                print(f"{program.name}: results differ by {far}", file=sys.stderr)
    runs = [
        (lambda one=one, values=values: one.launch(values))
        for one, values in [(original, placed), (rewritten, placed), *readers(array.nbytes)]
    ]
    before, after, *reading = least(runs, budget)
    if not unchanged and before < 0.97 * after:
        before, after, *reading = least(runs, 3 * budget)
    return Row(program.name, before, after, min(reading), not unchanged)


def summary(rows: Sequence[Row]) -> str:
    """How many programs changed, by how much, and the slowest."""
    changed = [row for row in rows if row.changed]
    lines = [f"{len(rows)} programs, {len(changed)} of them rewritten"]
    for name in ("sum", "moments", "max", "min", "prod", "any", "all", "argmax", "argmin"):
        mine = [row for row in rows if row.name.startswith(name + " ")]
        if mine:
            far = sorted(row.rewritten / row.reading for row in mine)
            was = sorted(row.original / row.reading for row in mine)
            lines.append(
                f"{name}: median {statistics.median(was):.2f} -> {statistics.median(far):.2f} "
                f"times reading, most {was[-1]:.2f} -> {far[-1]:.2f}"
            )
    for row in sorted(changed, key=lambda row: row.ratio):
        if row.ratio < 0.97:
            lines.append(f"slower: {row.ratio:.2f}, {row.name}")
    return "\n".join(lines)


def main() -> None:
    """Prints the table, row by row."""
    parser = argparse.ArgumentParser(description=str(__doc__).split("\n")[0])
    parser.add_argument("--only", default="", help="names that contain this text")
    parser.add_argument("--random", type=int, default=0, help="so many random programs, too")
    parser.add_argument("--seed", type=int, default=7, help="of the random programs")
    parser.add_argument("--just-random", action="store_true", help="leave the chosen ones out")
    parser.add_argument("--seconds", type=float, default=0.2, help="for each program")
    parser.add_argument("--bin", type=Path, help="the tilewright binary")
    options = parser.parse_args()
    if options.bin is not None:
        os.environ["TILEWRIGHT_BIN"] = str(options.bin.resolve())
    print(f"jaxlib {jax.lib.__version__}; time / time of reading\n")
    print("| reduction | original | rewritten | times as fast |\n|---|---:|---:|---:|")
    chosen = [] if options.just_random else list(patterns())
    rows = []
    for program in [*chosen, *random_programs(options.random, options.seed)]:
        if options.only in program.name:
            rows.append(measure(program, options.seconds))
            print(rows[-1].markdown(), flush=True)
    print(f"\n{summary(rows)}")


if __name__ == "__main__":
    main()
