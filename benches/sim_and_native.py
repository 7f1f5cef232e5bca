#!/usr/bin/env python3
"""Cycles on the simulated machine beside the time on this CPU, natively.

    python benches/sim_and_native.py [--target NAME] [--threads N] [--bin PATH]

Reductions along every kind of axes, the arrays of the papers that these come from (small ones and
those of a real size), and the norms that JAX makes, each as `tilewright run` computes it with `--backend sim` (cycles) and with `--backend native` (the least of several
times).  The last line has Spearman's rank correlation.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "python"))

import jax
import jax.numpy as jnp
import numpy as np

import tool

RUNS = 5


def normed(axes: Sequence[int]) -> Callable[[jax.Array], jax.Array]:
    """A norm over axes."""

    def norm(x: jax.Array) -> jax.Array:
        centred = x - x.mean(axes, keepdims=True)
        return centred * jax.lax.rsqrt((centred * centred).mean(axes, keepdims=True) + 1e-5)

    return norm


def pulled(function: Callable[[jax.Array], jax.Array]) -> Callable[[jax.Array], jax.Array]:
    """The gradient of the sum of the cubes of a function's results."""
    return jax.grad(lambda x: (function(x) ** 3).sum())


def summed(axes: Sequence[int]) -> Callable[[jax.Array], jax.Array]:
    """A sum along axes."""
    return lambda x: x.sum(axes)


def grouped(dims: Sequence[int], axes: Sequence[int]) -> Callable[[jax.Array], jax.Array]:
    """A norm over axes of an array with some dims split."""
    return lambda x: normed(axes)(x.reshape(dims)).reshape(x.shape)


def weight_normed(x: jax.Array) -> jax.Array:
    """A weight norm: each output channel, the second dim, divided by its length."""
    return x * jax.lax.rsqrt((x * x).sum((0, 2, 3), keepdims=True) + 1e-5)


PROGRAMS: dict[str, tuple[Callable[[jax.Array], Any], tuple[int, ...]]] = {
    "sum along 0": (summed((0,)), (1024, 1024)),
    "sum along 1": (summed((1,)), (1024, 1024)),
    "sum of all": (summed((0, 1)), (1024, 1024)),
    "sum along 0, 2, 4": (summed((0, 2, 4)), (8, 16, 8, 16, 64)),
    "sum along 1, 3": (summed((1, 3)), (8, 16, 8, 16, 64)),
    "sum of channels last": (summed((1, 2)), (8, 32, 32, 128)),
    "maximum along 1": (lambda x: x.max(1), (1024, 1024)),
    "layer norm": (normed((1,)), (1024, 1024)),
    "layer norm, gradient": (pulled(normed((1,))), (1024, 1024)),
    "batch norm, channels last": (normed((0, 1, 2)), (8, 32, 32, 128)),
    "instance norm": (normed((2, 3)), (8, 128, 32, 32)),
    "instance norm, gradient": (pulled(normed((2, 3))), (8, 128, 32, 32)),
    "group norm": (lambda x: normed((2, 3, 4))(x.reshape(8, 16, 8, 32, 32)), (8, 128, 32, 32)),
    "softmax": (lambda x: jax.nn.softmax(x, 1), (1024, 1024)),
    "softmax, gradient": (pulled(lambda x: jax.nn.softmax(x, 1)), (1024, 1024)),
    # The arrays by which the multi-axis method and the loops of an argmax are explained.
    "worked example, sum along 1, 3": (summed((1, 3)), (3, 6, 2, 3, 4)),
    "worked example, sum along 1, 2, 3": (summed((1, 2, 3)), (3, 6, 2, 3, 4)),
    "worked example of a plan, sum along 1, 3": (summed((1, 3)), (2, 3, 2, 3, 6)),
    "weight norm along 0, 2, 3": (weight_normed, (256, 128, 3, 3)),
    "weight norm, gradient": (pulled(weight_normed), (256, 128, 3, 3)),
    "place of the maximum along 1": (lambda x: x.argmax(1), (16, 64, 1024)),
    # Those by which small reshapes are.
    "group norm, channels last": (grouped((8, 32, 32, 16, 8), (1, 2, 4)), (8, 32, 32, 128)),
    "group norm, channels last, gradient": (
        pulled(grouped((8, 32, 32, 16, 8), (1, 2, 4))),
        (8, 32, 32, 128),
    ),
    "ghost batch norm": (grouped((4, 2, 32, 32, 128), (1, 2, 3)), (8, 32, 32, 128)),
    "ghost batch norm, gradient": (
        pulled(grouped((4, 2, 32, 32, 128), (1, 2, 3))),
        (8, 32, 32, 128),
    ),
    "sum along 1 of 256": (summed((1,)), (256, 512)),
    "layer norm of 256": (normed((1,)), (256, 512)),
}


def stats(path: Path, *options: str) -> dict[str, Any]:
    """What a run says of itself."""
    command = [str(tool.binary()), "run", str(path), "--stats", "--json", *options]
    command += ["-o", os.devnull]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found: dict[str, Any] = json.loads(done.stderr)
    return found


def ranks(values: Sequence[float]) -> np.ndarray:
    """The place of each value in order."""
    return np.argsort(np.argsort(np.asarray(values)))


def main() -> None:
    """Prints the table, row by row."""
    parser = argparse.ArgumentParser(description=str(__doc__).split("\n")[0])
    parser.add_argument("--target", default="tpu-like", help="the simulated machine")
    parser.add_argument("--threads", default="1", help="of the native kernels")
    parser.add_argument("--bin", type=Path, help="the tilewright binary")
    options = parser.parse_args()
    if options.bin is not None:
        os.environ["TILEWRIGHT_BIN"] = str(options.bin.resolve())
    print(f"| program | array | cycles on {options.target} | native, ms |\n|---|---|---:|---:|")
    cycles, times = [], []
    with tempfile.TemporaryDirectory() as folder:
        for name, (function, dims) in PROGRAMS.items():
            argument = jax.ShapeDtypeStruct(dims, jnp.float32)
            text = jax.jit(function).lower(argument).as_text(dialect="hlo")
            path, simple = Path(folder) / "in.hlo", Path(folder) / "simple.hlo"
            path.write_text(re.sub(r"\]\{[\d,]*\}", "]", text))
            tool.tilewright("opt", path, "--target", options.target, "-o", simple)
            cycles.append(float(stats(simple, "--backend", "sim", "--target", options.target)["cycles"]))
            native = ("--backend", "native", "--threads", options.threads)
            times.append(min(float(stats(simple, *native)["wall_ms"]) for _ in range(RUNS)))
            shown = ",".join(map(str, dims))
            print(f"| {name} | `[{shown}]` | {cycles[-1]:,.0f} | {times[-1]:.2f} |", flush=True)
    correlation = np.corrcoef(ranks(cycles), ranks(times))[0, 1]
    print(f"\nrank correlation {correlation:.2f}, {len(times)} programs")


if __name__ == "__main__":
    main()
