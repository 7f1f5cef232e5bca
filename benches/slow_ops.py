#!/usr/bin/env python3
"""How many times as long as a copy of its bytes an op of HLO takes on this machine's engine.

    python benches/slow_ops.py [--rounds N]

Each op runs alone, on arrays of some 32 MB, in turn with a copy of as many bytes as its operands and results have.
Prints the medians of the ratios of each round. Those far above 1 belong into `slow_ops` of the engine's file: the cost
model charges such ops so much, and `tilewright opt --explain` names them where nothing is rewritten.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

Case = tuple[str, Callable[..., Any], tuple[jax.Array, ...]]
MEGA = 1 << 20


def cases() -> list[Case]:
    """The ops, each with a function that is this op alone, and its arguments."""
    key = jax.random.key(0)
    row = jax.random.normal(key, (4 * MEGA,), jnp.float32)
    matrix, square = row.reshape(2048, 2048), jax.random.normal(key, (1024, 1024), jnp.float32)
    image = row.reshape(4, 128, 128, 64)
    places = jax.random.randint(key, row.shape, 0, row.size)
    window = (1, 2, 2, 1)

    def pooled(x: jax.Array) -> jax.Array:
        return jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, window, window, "VALID")

    def unpooled(x: jax.Array, gradient: jax.Array) -> jax.Array:
        return jax.vjp(pooled, x)[1](gradient)[0]

    definite = square @ square.T + 1024 * jnp.eye(1024)
    return [
        ("elementwise", lambda x: x + 1, (row,)),
        ("reduce", lambda x: x.sum(1), (matrix,)),
        ("transpose", lambda x: x.T + 0, (matrix,)),
        ("gather", lambda x, i: x[i], (row, places)),
        ("scatter", lambda x, i: jnp.zeros_like(x).at[i].add(x), (row, places)),
        ("sort", jnp.sort, (row,)),
        ("sort of rows", lambda x: jnp.sort(x, 1), (matrix,)),
        ("top-k of rows", lambda x: jax.lax.top_k(x, 8), (matrix,)),
        ("reduce-window (cumulative sum)", lambda x: jnp.cumsum(x, 1), (matrix,)),
        ("reduce-window (pooling)", pooled, (image,)),
        ("select-and-scatter", unpooled, (image, pooled(image))),
        ("cholesky", jnp.linalg.cholesky, (definite,)),
        ("triangular-solve", lambda a, b: jax.scipy.linalg.solve_triangular(a, b), (definite, square)),
        ("fft", jnp.fft.fft, (matrix.astype(jnp.complex64),)),
    ]


def seconds(function: Callable[..., Any], args: tuple[jax.Array, ...]) -> float:
    """The time of one call."""
    start = time.perf_counter()
    jax.block_until_ready(function(*args))
    return time.perf_counter() - start


def main() -> None:
    """Prints a line for each op."""
    parser = argparse.ArgumentParser(description=str(__doc__).split("\n", maxsplit=1)[0])
    parser.add_argument("--rounds", type=int, default=9, help="calls of each")
    options = parser.parse_args()
    copy = jax.jit(lambda x: x + 1)
    print("| op | times a copy of its bytes |\n|---|---:|")
    for name, function, args in cases():
        jitted = jax.jit(function)
        results = jax.tree.leaves(jitted(*args))
        size = sum(array.nbytes for array in (*args, *results))
        # A copy reads and writes.
        same = jnp.zeros(size // 8, jnp.float32)
        seconds(copy, (same,))
        ratios = [seconds(jitted, args) / seconds(copy, (same,)) for _ in range(options.rounds)]
        print(f"| {name} | {statistics.median(ratios):.1f} |", flush=True)


if __name__ == "__main__":
    main()
