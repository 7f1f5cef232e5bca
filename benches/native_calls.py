"""Reductions as custom calls of `native=True` beside XLA:CPU's own, each the only work of a program.

    python benches/native_calls.py

A row is an array, axes, a type and a fold, with the least time of a call in microseconds: XLA:CPU's,
then that of the custom call. `crates/rewrite/src/backend/native_calls/price.rs` is made of these.
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
    "sum": jnp.sum,
    "max": jnp.max,
    "argmax": jnp.argmax,
    "or": jnp.any,
    "product": jnp.prod,
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


def main() -> None:
    """Prints a row for each array and fold."""
    register()
    generator = np.random.default_rng(0)
    for (shape, axes), (fold, name) in itertools.product(ARRAYS, FOLDS):
        if fold == "argmax" and len(axes) > 1 or not re.search(sys.argv[1] if sys.argv[1:] else "", fold + name):
            continue
        dtype = jnp.dtype(name)
        x = jnp.asarray(generator.integers(0, 2, shape) if name == "bool" else 100 * generator.random(shape), dtype)
        kept = tuple(dim for axis, dim in enumerate(shape) if axis not in axes)
        result = jax.ShapeDtypeStruct(kept, "int32" if fold == "argmax" else dtype)
        add = jax.lax.reduce_sum_p if fold == "sum" else None
        own = jax.jit(
            (lambda x: add.bind(x, axes=axes, out_sharding=None))
            if add
            else (lambda x: PLAIN[fold](x, axis=axes[0] if fold == "argmax" else axes))
        )
        call = jax.ffi.ffi_call("tilewright_reduce", result)
        native = jax.jit(lambda x: call(x, fold=fold, axes=np.array(axes, np.int64)))
        times = [1e6 * least(lambda f=f: f(x).block_until_ready()) for f in (own, native)]
        ratio = times[0] / times[1]
        print(f"{list(shape)}\t{list(axes)}\t{name}\t{fold}\t{times[0]:.0f}\t{times[1]:.0f}\t{ratio:.2f}", flush=True)


if __name__ == "__main__":
    main()
