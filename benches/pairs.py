#!/usr/bin/env python3
"""Arrays of all pairs, made whole and in blocks: `reduce_j f(x[i], y[j])` as it is written, and in a loop over i.

    python benches/pairs.py [--rounds N] [--block N]
    GLIBC_TUNABLES=glibc.malloc.hugetlb=1 python benches/pairs.py

Each program runs as it is, and in a loop that makes a block of rows of the array in each turn and reduces it: the
results are compared. The two run in turn. A row has the bytes of temporaries that XLA says both take, the
time of the first, and the median of the ratios of both times. With the variable of the second command, glibc has
memory that is taken anew for each call in huge pages.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

Function = Callable[..., jax.Array]


def distances(x: jax.Array, y: jax.Array) -> jax.Array:
    """The squares of the distances of all pairs."""
    return (x * x).sum(1)[:, None] + (y * y).sum(1)[None] - 2 * x @ y.T


def kernel_sum(x: jax.Array, y: jax.Array, v: jax.Array) -> jax.Array:
    """Sums of what a Gaussian weighs."""
    return jnp.exp(-0.5 * distances(x, y)) @ v


def nearest(x: jax.Array, y: jax.Array, _: jax.Array) -> jax.Array:
    """The nearest point."""
    return distances(x, y).argmin(1)


def log_sum_exp(x: jax.Array, y: jax.Array, _: jax.Array) -> jax.Array:
    """The logarithm of the sum of a Gaussian's weights."""
    return jax.scipy.special.logsumexp(-distances(x, y), axis=1)


def forces(x: jax.Array, y: jax.Array, v: jax.Array) -> jax.Array:
    """What bodies attract others by."""
    apart = x[:, None, :] - y[None, :, :]
    weights = v[None, :, 0] * ((apart * apart).sum(-1) + 1e-3) ** -1.5
    return (weights[:, :, None] * apart).sum(1)


def attention(x: jax.Array, y: jax.Array, v: jax.Array) -> jax.Array:
    """Attention of one head."""
    return jax.nn.softmax(x @ y.T, axis=-1) @ v


PROGRAMS: dict[str, Function] = {
    "kernel sum": kernel_sum,
    "nearest point": nearest,
    "log-sum-exp": log_sum_exp,
    "forces": forces,
    "attention": attention,
}


def in_blocks(function: Function, rows: int) -> Function:
    """The function in a loop over blocks of rows of its first argument."""

    def looped(x: jax.Array, *rest: jax.Array) -> jax.Array:
        result = jax.eval_shape(function, x, *rest)

        def turn(index: Any, out: jax.Array) -> jax.Array:
            block = function(jax.lax.dynamic_slice_in_dim(x, index * rows, rows), *rest)
            return jax.lax.dynamic_update_slice_in_dim(out, block, index * rows, 0)

        return jax.lax.fori_loop(0, len(x) // rows, turn, jnp.zeros(result.shape, result.dtype))

    return looped


def seconds(function: Function, args: tuple[jax.Array, ...]) -> float:
    """The time of one call."""
    start = time.perf_counter()
    jax.block_until_ready(function(*args))
    return time.perf_counter() - start


def main() -> None:
    """Prints a row for each program and size."""
    parser = argparse.ArgumentParser(description=str(__doc__).split("\n", maxsplit=1)[0])
    parser.add_argument("--rounds", type=int, default=9, help="calls of each")
    parser.add_argument("--block", type=int, default=256, help="rows of a block")
    options = parser.parse_args()
    if 2048 % options.block:
        parser.error("--block divides 2048")
    print("| program | points | dims | temporaries MB | then | ms | times as fast in blocks |")
    print("|---|---:|---:|---:|---:|---:|---:|")
    for points, dims in ((2048, 64), (4096, 3), (8192, 16)):
        keys = jax.random.split(jax.random.key(0), 3)
        x, y = (jax.random.normal(key, (points, dims)) for key in keys[:2])
        args = (x, y, jax.random.normal(keys[2], (points, 8)))
        for name, function in PROGRAMS.items():
            forms = [
                jax.jit(form).lower(*args).compile()
                for form in (function, in_blocks(function, options.block))
            ]
            whole, blocks = (form(*args) for form in forms)
            if not jnp.allclose(whole, blocks, rtol=1e-3, atol=1e-3):
                raise SystemExit(f"{name} of {points} points in blocks has other results")
            sizes = [form.memory_analysis().temp_size_in_bytes / 1e6 for form in forms]
            times = [[seconds(form, args) for form in forms] for _ in range(options.rounds)]
            ratio = statistics.median(whole / blocks for whole, blocks in times)
            took = 1e3 * statistics.median(whole for whole, _ in times)
            row = f"| {name} | {points} | {dims} | {sizes[0]:.1f} | {sizes[1]:.1f} | {took:.1f}"
            print(f"{row} | {ratio:.2f} |", flush=True)


if __name__ == "__main__":
    main()
