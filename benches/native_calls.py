"""Reductions as custom calls of `native=True` beside what is compiled, each alone in a program.

    python benches/native_calls.py ["sum float32"]

A row is an array, axes, a type and a fold, then the least times in microseconds of `jax.jit`, of
`tilewright.jit` without kernels, and of the custom call, run in turn, and how many times as fast as
both the call is.
"""

import itertools
import re
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import tilewright
from tilewright import _core

ROWS = [2, 3, 4, 5, 6, 7, 8, 10, 12, 13, 16, 32, 40, 64, 128, 1024]
COLUMNS = [2, 3, 4, 5, 6, 7, 8, 12, 16, 32, 64, 128, 1024, 16384]

ARRAYS = [
    ((1 << 22,), (0,)),
    ((1 << 20,), (0,)),
    ((1 << 17,), (0,)),
    # Numbers of rows that steps divide well, and others.
    *((((1 << 22) // length, length), (1,)) for length in ROWS),
    *((((1 << 19) // length * 8, length), (1,)) for length in (3, 5, 7)),
    *((((1 << 17) // length * 32, length), (0,)) for length in COLUMNS),
    ((1 << 18, 4), (1,)),
    ((1 << 16, 4), (0,)),
    ((512, 256), (1,)),
    ((512, 256), (0,)),
    ((16, 65536), (0,)),
    ((64, 256, 256), (0, 1)),
    ((64, 256, 256), (1,)),
    *(((8, 64, 64, 32, length), (1, 2, 4)) for length in (2, 3, 4, 5, 8, 10)),
    *(((8, 64, 64, 32, length), (1, 3)) for length in (2, 3, 4, 5, 8, 10)),
    ((16, 32, 16, 32, 16), (0, 2, 4)),
    ((16, 32, 16, 32, 16), (1, 3)),
    ((32, 128, 32, 32), (0, 2, 3)),
    ((32, 128, 1024), (0, 2)),
    ((32, 128, 32, 32), (1, 3)),
    ((32, 32, 128, 32), (0, 2)),
    ((8, 16, 16, 32, 4), (1, 2, 4)),
]

PLAIN: dict[str, Callable[..., jax.Array]] = {
    "sum": jnp.sum,
    "max": jnp.max,
    "argmax": jnp.argmax,
    "or": jnp.any,
}

FOLDS = [
    *(("sum", name) for name in ("float32", "bfloat16", "float16", "float64", "int32")),
    *(("max", name) for name in ("float32", "bfloat16", "float16", "float64", "int32", "uint8")),
    *(("argmax", name) for name in ("float32", "bfloat16", "float64", "int32")),
    ("or", "bool"),
]


def register() -> None:
    """Makes the custom call known to JAX."""
    header = Path(jax.ffi.include_dir()) / "xla/ffi/api/c_api.h"
    found = re.search(r"#define XLA_FFI_API_MINOR (\d+)", header.read_text())
    assert found is not None
    for target, handler in _core.ffi_targets(int(found[1])):
        jax.ffi.register_ffi_target(target, handler, platform="cpu", api_version=1)


def least(runs: Sequence[Callable[[], object]], seconds: float = 0.6) -> list[float]:
    """The least seconds of each, run in turn."""
    for run in runs:
        run()
    best, end = [float("inf")] * len(runs), time.perf_counter() + seconds
    while time.perf_counter() < end:
        for number, run in enumerate(runs):
            start = time.perf_counter()
            run()
            best[number] = min(best[number], time.perf_counter() - start)
    return best


def timed(shape: tuple[int, ...], axes: tuple[int, ...], fold: str, name: str) -> list[float]:
    """The microseconds that each way of reducing an array of a type takes."""
    generator = np.random.default_rng(0)
    dtype = jnp.dtype(name)
    drawn = generator.integers(0, 2, shape) if name == "bool" else 100 * generator.random(shape)
    x = jnp.asarray(drawn, dtype)
    axis = axes[0] if fold == "argmax" else axes

    def plain(x: jax.Array) -> jax.Array:
        return PLAIN[fold](x, axis=axis)

    result = jax.eval_shape(plain, x)

    def call(x: jax.Array) -> jax.Array:
        attributes = {"fold": fold, "axes": np.array(axes, np.int64)}
        return jax.ffi.ffi_call("tilewright_reduce", result)(x, **attributes)

    ways = [jax.jit(plain), tilewright.jit(plain), jax.jit(call)]
    runs = [lambda f=f: f(x).block_until_ready() for f in ways]
    return [1e6 * seconds for seconds in least(runs)]


def main() -> None:
    """Prints a row for each array and fold, of those whose fold and type begin with an argument."""
    register()
    wanted = sys.argv[1] if sys.argv[1:] else ""
    for (fold, name), (shape, axes) in itertools.product(FOLDS, ARRAYS):
        if (fold == "argmax" and len(axes) > 1) or not f"{fold} {name}".startswith(wanted):
            continue
        with jax.enable_x64(name == "float64"):
            own, stages, call = timed(shape, axes, fold, name)
        numbers = f"{own:.0f}\t{stages:.0f}\t{call:.0f}\t{min(own, stages) / call:.2f}"
        print(f"{list(shape)}\t{list(axes)}\t{name}\t{fold}\t{numbers}", flush=True)


if __name__ == "__main__":
    main()
