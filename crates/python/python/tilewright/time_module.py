"""Runs an HLO module on a device of JAX, and prints the seconds of each run.

`python -m tilewright.time_module MODULE [RUNS]` compiles the module for the first device of JAX: a CPU, a
GPU, a TPU, or whatever a PJRT plugin brings (`JAX_PLATFORMS` chooses). Its arguments are random numbers,
and zeros where they are whole numbers. `tilewright tune --with` takes it as it is.
"""

from __future__ import annotations

import sys
import time
from typing import Any

import jax
import numpy as np

import tilewright
from tilewright import _values
from tilewright._jax import _internals as internals

# How often a module runs before and while it is timed.
_FIRST, _RUNS = 2, 5


def main(path: str, runs: int = _RUNS) -> None:
    """Compiles a module, runs it, and prints seconds, one time in each line."""
    jax.config.update("jax_enable_x64", True)
    module = tilewright.Module.load(path)
    device = jax.devices()[0]
    run = internals.executable(internals.to_stablehlo(module.to_proto()), device)
    shapes = [leaf for one in module.entry.parameters for leaf in _leaves(one.shape)]
    given = [jax.device_put(_numbers(shape), device) for shape in shapes]
    for turn in range(-_FIRST, runs):
        # A run may use up its arguments.
        args = [one.copy() for one in given]
        jax.block_until_ready(args)
        start = time.perf_counter()
        results = run(args)
        jax.block_until_ready(results)
        if turn >= 0:
            print(time.perf_counter() - start)


def _leaves(shape: tilewright.Shape) -> list[tilewright.Shape]:
    if shape.is_tuple:
        return [leaf for element in shape.elements for leaf in _leaves(element)]
    return [shape]


def _numbers(shape: tilewright.Shape) -> Any:
    dtype = _values.dtype(str(shape.element_type))
    if not jax.numpy.issubdtype(dtype, np.inexact):
        return np.zeros(shape.dims, dtype)
    numbers = np.random.default_rng(0).standard_normal(shape.dims, np.float32)
    return numbers.astype(dtype)


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:3]))
