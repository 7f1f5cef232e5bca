"""Norms with their gradients over eight devices, before and after their sums are guarded.

Run as a script, with a target, because the number of devices is fixed when JAX starts. Prints one JSON list with a
record for each program and kind of data: the guards of the program, and the errors of both forms beside f64.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from typing import Any

import sharded
from sharded import DEVICES, P

import jax
import numpy as np
import tilewright as tw
from jax.sharding import Mesh, NamedSharding

MESH = Mesh(np.array(DEVICES), ("x",))
SHAPE = (16, 32, 32, 16)
# The middle of images is sampled: some guards fail where it lies apart, on all devices or on one.
KINDS = ("normal", "apart", "apart on one", "halves", "outliers", "along")


def norm(x: jax.Array, mean: Callable[[jax.Array], jax.Array]) -> jax.Array:
    """A batch norm by a function for means of channels."""
    centred = x - mean(x)
    return centred * jax.lax.rsqrt(mean(centred * centred) + 1e-5)


def whole(x: jax.Array) -> jax.Array:
    """The norm of all images."""
    return norm(x, lambda array: array.mean((0, 1, 2)))


def of_parts(x: jax.Array) -> jax.Array:
    """The same, as each device computes it of its part."""
    return norm(x, lambda array: jax.lax.pmean(array.mean((0, 1, 2)), "x"))


def of_images(x: jax.Array) -> jax.Array:
    """The norm of each image, whose devices need nothing of others."""
    return norm(x, lambda array: array.mean((1, 2), keepdims=True))


def vjp(function: Callable[[jax.Array], jax.Array]) -> Callable[..., Any]:
    """The function with its gradient."""

    def both(x: jax.Array, dy: jax.Array) -> tuple[jax.Array, jax.Array]:
        y, pullback = jax.vjp(function, x)
        return y, *pullback(dy)

    return both


def data(kind: str) -> list[np.ndarray]:
    """An array with a gradient."""
    draw = np.random.default_rng(5)
    x, dy = (draw.standard_normal(SHAPE).astype(np.float32) for _ in range(2))
    if kind.startswith("apart"):
        images = slice(2, 4) if kind.endswith("one") else slice(None)
        x[images, :, 8:24] += 50
    elif kind == "halves":
        x[:8] += 1000
    elif kind == "outliers":
        x.reshape(-1)[::97] = 1e5
    elif kind == "along":
        dy = x * np.float32(3)
    return [x, dy]


def error(shards: list[np.ndarray], exact: list[np.ndarray]) -> list[float]:
    """The largest error of each result, as a part of its largest value."""
    parts = zip(*[iter(shards)] * len(DEVICES))
    pairs = zip(map(np.concatenate, parts), exact)
    return [float(np.abs(found - wanted).max() / np.abs(wanted).max()) for found, wanted in pairs]


def records(target: str) -> Iterator[dict[str, Any]]:
    """All norms on all data, each beside the same norm on one device."""
    images = NamedSharding(MESH, P("x"))
    mapped = jax.shard_map(of_parts, mesh=MESH, in_specs=P("x"), out_specs=P("x"))
    programs = {"jit": (whole, whole), "shard_map": (mapped, whole), "images": (of_images, of_images)}
    for name, (function, alone) in programs.items():
        lowered = jax.jit(vjp(function), in_shardings=(images, images)).lower(*data("normal"))
        text = lowered.compiler_ir("hlo").as_hlo_module().to_string()
        guarded = str(tw.optimize(tw.Module.from_text(text), target=target).module)
        forms = [sharded.compiled(form) for form in (text, guarded)]
        for kind in KINDS:
            inputs = data(kind)
            with jax.enable_x64(True):
                wide = [array.astype(np.float64) for array in inputs]
                exact = [np.asarray(result) for result in jax.jit(vjp(alone))(*wide)]
            divided = [jax.device_put(array, images) for array in inputs]
            before, after = (error(sharded.shards(form, divided), exact) for form in forms)
            guards = guarded.count("tilewright_guard=")
            yield {"name": f"{name}, {kind}", "guards": guards, "before": before, "after": after}


if __name__ == "__main__":
    print(json.dumps(list(records(sys.argv[1]))))
