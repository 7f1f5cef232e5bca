#!/usr/bin/env python3
"""Fits the figures by which `staged-reduce` weighs XLA:CPU's reductions, over random shapes.

    python benches/calibrate_reduce.py [--programs N] [--seconds S]

Each figure of `crates/rewrite/src/cost/reduce_speed.rs` says what some kind of reduction takes
beside reading its array, as a part of what a pair takes (a maximum and its place). N reductions
of each kind, of 1 to 8 million elements, are timed in turn with programs that read as much. The
table has each figure as it is written there, and the median and quartiles of what was measured.
No figure of the source comes from here by itself: change it, and see what `reduce_peer.py` says.
"""

from __future__ import annotations

import argparse
import re
import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

import reduce_peer
from reduce_peer import Program

import xla

SOURCE = Path(__file__).resolve().parents[1] / "crates/rewrite/src/cost/reduce_speed.rs"
SIZES = (2, 3, 4, 5, 6, 7, 8, 11, 13, 16, 24, 31, 32, 49, 64, 100, 127, 196, 256, 500, 1000, 1024, 3000)
FEWEST, MOST = 1 << 20, 1 << 23


@dataclass(frozen=True)
class Kind:
    """Reductions that one figure is for."""

    figure: str
    types: tuple[str, ...]
    folds: tuple[str, ...]
    # Whether a reduction of dims along axes is one.
    fits: Callable[[Sequence[int], Sequence[int], str], bool]
    # What is multiplied with the time beside reading that an element takes.
    times: Callable[[Sequence[int]], float] = lambda dims: 1.0


def is_pair(dims: Sequence[int], axes: Sequence[int], _: str) -> bool:
    """A reduced dim that is too long to be unrolled."""
    return dims[axes[0]] > 16


def is_odd_row(dims: Sequence[int], axes: Sequence[int], _: str) -> bool:
    """Short rows whose number is no multiple of 8."""
    rows = int(np.prod(dims)) // dims[-1]
    return axes[0] == len(dims) - 1 and dims[-1] <= 16 and rows % 8 != 0


def is_short_run(dims: Sequence[int], axes: Sequence[int], dtype: str) -> bool:
    """A kept innermost dim that is shorter than a vector."""
    bits = dims[-1] * 8 * jnp.dtype(dtype).itemsize
    return len(dims) - 1 not in axes and bits < 256


def is_nest(dims: Sequence[int], axes: Sequence[int], _: str) -> bool:
    """Several reduced dims that are no neighbours."""
    return len(axes) > 1 and all(later - one > 1 for one, later in zip(axes, axes[1:]))


KINDS = (
    Kind("scalar_reduce_cycles", ("float32", "float64", "int32"), ("argmax", "argmin"), is_pair),
    Kind("ODD_ROWS", ("float32", "float64"), ("argmax", "argmin"), is_odd_row),
    Kind("SHORT_RUN", ("float32", "float64"), ("sum", "max"), is_short_run, lambda dims: dims[-1]),
    Kind("NEST", ("int32", "float32"), ("prod",), is_nest),
)


def programs(kind: Kind, count: int) -> Iterator[Program]:
    """Random reductions of a kind."""
    rng = np.random.default_rng(11)
    folds = reduce_peer.MONOIDS | reduce_peer.PLACES
    made = 0
    while made < count:
        rank = int(rng.integers(2, 6))
        dims = [int(rng.choice(SIZES)) for _ in range(rank)]
        # The outermost dim fills the array.
        rest = int(np.prod(dims[1:]))
        dims[0] = int(rng.integers(FEWEST, MOST)) // rest
        name, dtype = str(rng.choice(kind.folds)), str(rng.choice(kind.types))
        most = 1 if name.startswith("arg") else rank
        axes = sorted(rng.choice(rank, size=int(rng.integers(1, most + 1)), replace=False).tolist())
        if dims[0] > 1 and len(axes) < rank and kind.fits(dims, axes, dtype):
            yield reduce_peer.reduction(name, folds[name], dims, axes, dtype)
            made += 1


def beside_reading(program: Program, seconds: float) -> float:
    """The nanoseconds that an element takes beside being read."""
    array = reduce_peer.array_of(program)
    compiled = xla.compile_text(reduce_peer.text_of(program))
    with jax.enable_x64(True):
        placed = compiled.place([array])
    every = [(compiled, placed), *reduce_peer.readers(array.nbytes)]
    runs = [(lambda one=one, values=values: one.launch(values)) for one, values in every]
    mine, *reading = reduce_peer.least(runs, seconds)
    return max(mine - min(reading), 0.0) * 1e9 / array.size


def written(figure: str) -> str:
    """A figure as the source has it."""
    found = re.search(rf"const {figure}: f64 = ([\d.]+);", SOURCE.read_text())
    return found[1] if found else "1"


def main() -> None:
    """Prints the table, row by row."""
    parser = argparse.ArgumentParser(description=str(__doc__).split("\n")[0])
    parser.add_argument("--programs", type=int, default=100, help="of each kind")
    parser.add_argument("--seconds", type=float, default=0.2, help="for each program")
    options = parser.parse_args()
    print(f"jaxlib {jax.lib.__version__}, parts of what a pair takes\n")
    print("| figure | in the source | median | quartiles | programs |\n|---|---:|---:|---:|---:|")
    pair = 1.0
    for kind in KINDS:
        found = [
            beside_reading(program, options.seconds) * kind.times(program.dims)
            for program in programs(kind, options.programs)
        ]
        if kind.figure == "scalar_reduce_cycles":
            pair = statistics.median(found)
        low, middle, high = (quartile / pair for quartile in statistics.quantiles(found, n=4))
        print(
            f"| `{kind.figure}` | {written(kind.figure)} | {middle:.2f} | {low:.2f} to {high:.2f} "
            f"| {len(found)} |",
            flush=True,
        )
    print(f"\nA pair takes {pair:.2f} ns beside reading.")


if __name__ == "__main__":
    main()
