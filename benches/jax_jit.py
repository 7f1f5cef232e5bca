#!/usr/bin/env python3
"""Time per step, and to compile, of JAX programs with `jax.jit` and with `tilewright.jit`.

    python benches/jax_jit.py [--only SUBSTRING] [--size N] [--rounds N] [--compilations N] [--real]

The programs are group norms, their gradients, and the training steps of
tests/python/jax_integration/models.py; with --real, those of real_models.py.  Both compiled steps run in one process, one after
the other in each round; the table has the medians of their times, the median of the ratios of
each round, the seconds to trace and lower and those that XLA compiles, and what Tilewright
adds to the lowering as a part of XLA's own time.  Needs the package, Flax and
Optax.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

TESTS = Path(__file__).resolve().parents[1] / "tests" / "python" / "jax_integration"
sys.path.insert(0, str(TESTS))

import jax
import jax.numpy as jnp
import tilewright
from tilewright._jax import _rewrite
from models import MODELS, normal
from real_models import REAL

Program = tuple[Callable[..., Any], tuple[Any, ...]]


def group_norm(x: jax.Array, scale: jax.Array, bias: jax.Array) -> jax.Array:
    """Group norm of 32 groups, channels last."""
    grouped = x.reshape(*x.shape[:-1], 32, x.shape[-1] // 32)
    mean = grouped.mean((1, 2, 4), keepdims=True)
    var = ((grouped - mean) ** 2).mean((1, 2, 4), keepdims=True)
    normal = (grouped - mean) * jax.lax.rsqrt(var + 1e-5)
    return normal.reshape(x.shape) * scale + bias


def pullback(x: jax.Array, scale: jax.Array, bias: jax.Array, dy: jax.Array) -> Any:
    """The gradient of a group norm."""
    return jax.vjp(group_norm, x, scale, bias)[1](dy)


def programs(size: int) -> Iterator[tuple[str, Callable[[], Program]]]:
    """Names, and what makes the functions and their arguments."""
    image, channel = (4, 64, 64, 320), (320,)
    of_norm = normal(0, *image), normal(1, *channel), normal(2, *channel)
    yield "group norm", lambda: (group_norm, of_norm)
    yield "group norm, gradient", lambda: (pullback, (*of_norm, normal(3, *image)))
    half = tuple(part.astype(jnp.bfloat16) for part in (*of_norm, normal(3, *image)))
    yield "group norm in bf16", lambda: (group_norm, half[:3])
    yield "group norm in bf16, gradient", lambda: (pullback, half)
    for name, make in MODELS.items():

        def made(make: Any = make) -> Program:
            training = make(size)
            return training.step, (training.state, training.batch)

        yield f"{name}, training step", made


def real_programs() -> Iterator[tuple[str, Callable[[], Program]]]:
    """Names of training steps at real sizes, and what makes them."""
    for name, make in REAL.items():

        def made(make: Any = make) -> Program:
            training = make()
            return training.step, (training.state, training.batch)

        yield name, made


def compiled(jit: Any, program: Program) -> tuple[Any, float, float]:
    """A compiled program, the seconds to trace and lower it, and those that XLA compiled it."""
    jax.clear_caches()
    # Modules that are equal are optimised once; here each time counts.
    _rewrite._REMEMBERED.clear()
    function, args = program
    start = time.perf_counter()
    lowered = jit(function).lower(*args)
    middle = time.perf_counter()
    done = lowered.compile()
    return done, middle - start, time.perf_counter() - middle


def compilations(program: Program, times: int) -> tuple[Any, Any, list[float]]:
    """The program compiled by both, and the medians of the seconds: to lower it, for XLA to
    compile it, both with Tilewright."""
    rows = []
    for _ in range(times):
        plain, lowering, compiling = compiled(jax.jit, program)
        ours, our_lowering, our_compiling = compiled(tilewright.jit, program)
        rows.append((lowering, compiling, our_lowering, our_compiling))
    return plain, ours, [statistics.median(column) for column in zip(*rows, strict=True)]


def seconds(function: Any, args: tuple[Any, ...]) -> float:
    """The time of one call."""
    start = time.perf_counter()
    jax.block_until_ready(function(*args))
    return time.perf_counter() - start


def main() -> None:
    """Prints the table, row by row."""
    parser = argparse.ArgumentParser(description=str(__doc__).split("\n", maxsplit=1)[0])
    parser.add_argument("--only", default="", help="names that contain this text")
    parser.add_argument("--size", type=int, default=2, help="the scale of the models")
    parser.add_argument("--rounds", type=int, default=15, help="calls of each step")
    parser.add_argument("--real", action="store_true", help="models at real sizes instead")
    parser.add_argument("--compilations", type=int, default=3, help="compilations of each")
    options = parser.parse_args()
    tilewright.jit(group_norm).lower(*(jax.ShapeDtypeStruct((2, 8, 8, 320), jnp.float32),) * 3)
    print("| program | jax.jit ms | tilewright.jit ms | ratio", end="")
    print(" | lower s | XLA s | lower s, ours | XLA s, ours | added |")
    print("|---|---:|---:|---:|---:|---:|---:|---:|---:|")
    for name, make in real_programs() if options.real else programs(options.size):
        if options.only not in name:
            continue
        program = make()
        plain, ours, spent = compilations(program, options.compilations)
        times = []
        for _ in range(options.rounds + 2):
            times.append((seconds(plain, program[1]), seconds(ours, program[1])))
        rounds = times[2:]
        before, after = (statistics.median(column) * 1e3 for column in zip(*rounds, strict=True))
        ratio = statistics.median(one / other for one, other in rounds)
        cells = [f"{before:.1f}", f"{after:.1f}", f"{ratio:.2f}"]
        cells += [f"{part:.2f}" for part in spent]
        added = (spent[2] - spent[0]) / spent[1]
        print(f"| {name} | {' | '.join(cells)} | {added:.0%} |", flush=True)


if __name__ == "__main__":
    main()
