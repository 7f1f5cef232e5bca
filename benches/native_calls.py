"""Reductions as custom calls of `native=True` beside XLA:CPU's own, each alone in a program.

    python benches/native_calls.py ["sum float32"]

A row is an array, axes, a type and a fold, with the least time of a call in microseconds: XLA:CPU,
then that of the custom call. `crates/rewrite/src/backend/native_calls/price.rs` has these.
"""

import itertools
import re
import sys
import time
from collections.abc import Callable
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from tilewright import _core

ARRAYS = [
    ((1 << 22,), (0,)),
    ((1 << 16,), (0,)),
    ((1 << 18, 4), (1,)),
    ((1 << 20, 4), (1,)),
    ((1 << 20, 4), (0,)),
    ((1 << 19, 8), (1,)),
    ((1 << 18, 16), (1,)),
    ((1 << 17, 32), (1,)),
    ((1 << 16, 64), (1,)),
    ((1 << 15, 128), (1,)),
    ((500009, 7), (1,)),
    ((300007, 13), (1,)),
    ((100003, 40), (1,)),
    ((4096, 1024), (1,)),
    ((512, 256), (1,)),
    ((1 << 19, 8), (0,)),
    ((1 << 18, 16), (0,)),
    ((1 << 16, 64), (0,)),
    ((4096, 1024), (0,)),
    ((256, 16384), (0,)),
    ((16, 65536), (0,)),
    ((512, 256), (0,)),
    ((64, 256, 256), (0, 1)),
    ((64, 256, 256), (1,)),
    ((8, 64, 64, 32, 4), (1, 2, 4)),
    ((8, 64, 64, 32, 10), (1, 2, 4)),
    ((8, 64, 64, 32, 4), (1, 3)),
    ((16, 32, 16, 32, 16), (0, 2, 4)),
    ((16, 32, 16, 32, 16), (1, 3)),
    ((32, 128, 1024), (0, 2)),
    ((8, 16, 16, 32, 4), (1, 2, 4)),
]

PLAIN: dict[str, Callable[..., jax.Array]] = {
    "max": jnp.max,
    "argmax": jnp.argmax,
    "or": jnp.any,
}

FOLDS = [
    ("sum", "float32"),
    ("max", "float32"),
    ("argmax", "float32"),
    ("sum", "bfloat16"),
    ("max", "bfloat16"),
    ("sum", "int32"),
    ("max", "int32"),
    ("or", "bool"),
    ("max", "uint8"),
]


def register() -> None:
    """Makes the custom call known to JAX."""
    header = Path(jax.ffi.include_dir()) / "xla/ffi/api/c_api.h"
    found = re.search(r"#define XLA_FFI_API_MINOR (\d+)", header.read_text())
    assert found is not None
    target, handler = _core.ffi_target(int(found[1]))
    jax.ffi.register_ffi_target(target, handler, platform="cpu", api_version=1)


def least(work: Callable[[], object], seconds: float = 0.25) -> float:
    """The least time of several, in seconds."""
    work()
    best, end = float("inf"), time.perf_counter() + seconds
    while time.perf_counter() < end:
        start = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - start)
    return best


def timed(shape: tuple[int, ...], axes: tuple[int, ...], fold: str, name: str) -> list[float]:
    """The microseconds that XLA:CPU and the custom call take for an array of a type."""
    generator = np.random.default_rng(0)
    dtype = jnp.dtype(name)
    drawn = generator.integers(0, 2, shape) if name == "bool" else 100 * generator.random(shape)
    x = jnp.asarray(drawn, dtype)
    kept = tuple(dim for axis, dim in enumerate(shape) if axis not in axes)
    result = jax.ShapeDtypeStruct(kept, "int32" if fold == "argmax" else dtype)

    def own(x: jax.Array) -> jax.Array:
        if fold == "sum":
            # `jnp.sum` would convert floats of 16 bits.
            return jax.lax.reduce(x, np.zeros((), dtype), jax.lax.add, axes)
        return PLAIN[fold](x, axis=axes[0] if fold == "argmax" else axes)

    def call(x: jax.Array) -> jax.Array:
        attributes = {"fold": fold, "axes": np.array(axes, np.int64)}
        return jax.ffi.ffi_call("tilewright_reduce", result)(x, **attributes)

    jitted = [jax.jit(own), jax.jit(call)]
    return [1e6 * least(lambda f=f: f(x).block_until_ready()) for f in jitted]


def main() -> None:
    """Prints a row for each array and fold, of those whose fold and type begin with an argument."""
    register()
    wanted = sys.argv[1] if sys.argv[1:] else ""
    for (shape, axes), (fold, name) in itertools.product(ARRAYS, FOLDS):
        if (fold == "argmax" and len(axes) > 1) or not f"{fold} {name}".startswith(wanted):
            continue
        own, call = timed(shape, axes, fold, name)
        numbers = f"{own:.0f}\t{call:.0f}\t{own / call:.2f}"
        print(f"{list(shape)}\t{list(axes)}\t{name}\t{fold}\t{numbers}", flush=True)


if __name__ == "__main__":
    main()
