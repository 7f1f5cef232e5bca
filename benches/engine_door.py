#!/usr/bin/env python3
"""`tilewright.jit` compiled for devices that are not there: does it compile, and what does it cost?

    python benches/engine_door.py --engine tpu-v5e|tpu-v6e|xla-gpu-h100 [--wheel FILE]
        [--only SUBSTRING] [--target NAME]

Each program is compiled ahead of time by `jax.jit` and by `tilewright.jit`, for one device and, divided
over a mesh, for all of the engine's topology (eight chips of a TPU v5e). A row has the compiler's
estimates of both; what does not compile, or costs more than 1.02 times as much, ends the command with 1.
`--wheel` installs the package into the engine's environment (`maturin build --release`).
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "python"))

from environment import TARGETS, in_environment

# More than this times the original is worse.
WORSE = 1.02
Array = Any


def programs() -> Iterator[tuple[str, Callable[..., Any], list[tuple[int, ...]]]]:
    """Names, functions, and the shapes of their arguments; the first dim of the first is the batch."""
    import jax
    import jax.numpy as jnp
    from jax import lax

    def group_norm(x: Array, scale: Array, bias: Array) -> Array:
        y = x.reshape(*x.shape[:-1], 32, -1)
        axes = (*range(1, x.ndim - 1), x.ndim)
        mean = y.mean(axes, keepdims=True)
        var = ((y - mean) ** 2).mean(axes, keepdims=True)
        return ((y - mean) * lax.rsqrt(var + 1e-5)).reshape(x.shape) * scale + bias

    def one_pass(x: Array, scale: Array, bias: Array) -> Array:
        y = x.reshape(*x.shape[:-1], 32, -1)
        axes = (*range(1, x.ndim - 1), x.ndim)
        mean = y.mean(axes, keepdims=True)
        var = jnp.maximum((y * y).mean(axes, keepdims=True) - mean * mean, 0)
        return ((y - mean) * lax.rsqrt(var + 1e-5)).reshape(x.shape) * scale + bias

    def batch_norm(x: Array, scale: Array, bias: Array) -> Array:
        axes = tuple(range(x.ndim - 1))
        mean = x.mean(axes)
        var = ((x - mean) ** 2).mean(axes)
        return (x - mean) * lax.rsqrt(var + 1e-5) * scale + bias

    def layer_norm(x: Array, scale: Array, bias: Array) -> Array:
        mean = x.mean(-1, keepdims=True)
        var = ((x - mean) ** 2).mean(-1, keepdims=True)
        return (x - mean) * lax.rsqrt(var + 1e-5) * scale + bias

    def per_head(x: Array, scale: Array) -> Array:
        y = x.reshape(*x.shape[:2], 16, -1)
        y = y * lax.rsqrt((y * y).mean(-1, keepdims=True) + 1e-6) * scale
        half = y.shape[-1] // 2
        turn = jnp.arange(y.shape[1])[:, None, None] / 1e4 ** (jnp.arange(half) / half)
        one, two = y[..., :half], y[..., half:]
        cos, sin = jnp.cos(turn), jnp.sin(turn)
        return jnp.concatenate([one * cos - two * sin, two * cos + one * sin], -1)

    def attention(x: Array, q: Array, k: Array, v: Array, scale: Array) -> Array:
        queries, keys = per_head(x @ q, scale), per_head(x @ k, scale)
        values = (x @ v).reshape(keys.shape)
        scores = jnp.einsum("bqhd,bkhd->bhqk", queries, keys) / 8
        return jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(scores), values).reshape(x.shape)

    def conv(x: Array, w: Array) -> Array:
        return lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))

    def block(norm: Callable[..., Array]) -> Callable[..., Array]:
        def run(x: Array, w: Array, u: Array, scale: Array, bias: Array) -> Array:
            y = jax.nn.silu(norm(conv(x, w), scale, bias))
            return x + jax.nn.silu(norm(conv(y, u), scale, bias))

        return run

    def scanned(x: Array, w: Array, scale: Array, bias: Array) -> Array:
        def layer(x: Array, w: Array) -> tuple[Array, None]:
            return x + jax.nn.gelu(layer_norm(x, scale, bias) @ w), None

        return lax.scan(jax.checkpoint(layer), x, w)[0]

    def loss(f: Callable[..., Array]) -> Callable[..., Any]:
        return jax.value_and_grad(lambda *args: (f(*args) ** 2).sum(), argnums=(0, 1, 2))

    image, channels = (8, 64, 64, 320), [(320,), (320,)]
    words = (8, 512, 1024)
    norms = {"group norm": group_norm, "one-pass group norm": one_pass, "batch norm": batch_norm}
    for name, norm in norms.items():
        yield name, norm, [image, *channels]
        yield f"{name}, gradient", loss(norm), [image, *channels]
    yield "layer norm", layer_norm, [words, (1024,), (1024,)]
    yield "layer norm, gradient", loss(layer_norm), [words, (1024,), (1024,)]
    squares = [(1024, 1024)] * 3
    yield "attention with per-head norms", attention, [words, *squares, (64,)]
    yield "attention with per-head norms, gradient", loss(attention), [words, *squares, (64,)]
    weights = [(3, 3, 320, 320)] * 2
    for name, norm in norms.items():
        yield f"block with {name}, step", loss(block(norm)), [image, *weights, *channels]

    def mixed(x: Array, scale: Array, bias: Array) -> Array:
        return jnp.sin(one_pass(jnp.cos(batch_norm(x, scale, bias)), scale, bias))

    yield "one-pass group norm of a batch norm, gradient", loss(mixed), [image, *channels]
    layers = [words, (4, 1024, 1024), (1024,), (1024,)]
    yield "scan of remat layers, step", loss(scanned), layers


def compiled(made: Any, shapes: list[tuple[int, ...]], devices: list[Any]) -> tuple[float, int]:
    """The estimate of a function that is compiled for devices, which divide the batch, and the number of
    kernels that have none."""
    import jax
    import numpy as np
    from compiled import Module
    from jax.sharding import NamedSharding, PartitionSpec

    mesh = jax.sharding.Mesh(np.array(devices), ("batch",))
    arguments = [
        jax.ShapeDtypeStruct(
            shape,
            np.float32,
            sharding=NamedSharding(mesh, PartitionSpec("batch") if number == 0 else PartitionSpec()),
        )
        for number, shape in enumerate(shapes)
    ]
    cost, _, _, unknown = Module(made.lower(*arguments).compile().as_text()).estimate()
    return cost, sum(unknown.values())


def main() -> None:
    """Prints a row for each program."""
    parser = argparse.ArgumentParser(description=str(__doc__).split("\n")[0])
    parser.add_argument("--engine", choices=TARGETS, required=True, help="whose compiler is asked")
    parser.add_argument("--wheel", type=Path, help="the package, to install")
    parser.add_argument("--only", default="", help="names that contain this text")
    parser.add_argument("--target", default="auto", help="as for `tilewright.jit`")
    given = parser.parse_args()
    in_environment(given.engine)
    os.environ["JAX_PLATFORMS"] = "cpu"
    if given.wheel is not None:
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--force-reinstall"]
        subprocess.run([*pip, given.wheel], check=True)

    import engines

    engine = engines.ENGINES[given.engine]
    os.environ.update(engine.environment)
    import jax

    try:
        import tilewright
    except ImportError:
        sys.exit("tilewright is not installed in the engine's environment: give --wheel FILE")
    devices = engine.devices()
    print(f"{engine.name}: estimates of its compiler in {engine.unit}, not measurements\n")
    print("| program | devices | jax.jit | tilewright.jit | ratio | kernels without |")
    print("|---|---:|---:|---:|---:|---:|")
    bad = []
    for name, function, shapes in programs():
        for some in [devices[:1], devices][: min(len(devices), 2)]:
            if given.only not in name:
                continue
            where = f"{name} | {len(some)}"
            try:
                plain, _ = compiled(jax.jit(function), shapes, some)
                rewritten = tilewright.jit(function, target=given.target)
                ours, unknown = compiled(rewritten, shapes, some)
            except Exception as error:
                bad.append(f"{where}: {str(error).splitlines()[0][:200]}")
                continue
            ratio = f"{plain / ours:.2f}" if plain and ours else "no estimate"
            print(f"| {where} | {plain:,.1f} | {ours:,.1f} | {ratio} | {unknown} |", flush=True)
            if ours > plain * WORSE:
                bad.append(f"{where}: costs {ours / plain:.2f} times as much")
    chosen = sorted({entry.target for entry in tilewright.report() if entry.target})
    print(f"\ntarget: {', '.join(chosen) or 'none: functions are left as they are'}")
    for line in bad:
        print(f"bad: {line}")
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
