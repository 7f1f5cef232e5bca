#!/usr/bin/env python3
"""Group norm as it is written, rewritten by `opt`, and rewritten by hand.

    python benches/by_hand.py [--rounds N] [--bin PATH]

By hand means: the JAX program itself sums each channel of the image first and
adds up the channels of a group after that, and spreads what belongs to a group
over its channels before it meets the image.  This is as far as moving reshapes
goes.  `merged` goes further: mean and variance share the centred image, so that
its gradient has one image-sized sum less.  All forms run through XLA:CPU in one
process, in turn; the columns say how many times as fast as the original they are.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import real_effect
import xla

Array = jax.Array
GROUPS = 32
SHAPES = ((4, 32, 32, 320), (4, 64, 64, 320), (4, 64, 64, 64))


def original(x: Array, scale: Array, bias: Array) -> Array:
    """Group norm over [B,H,W,G,C/G]."""
    b, h, w, c = x.shape
    g = x.reshape(b, h, w, GROUPS, c // GROUPS)
    centred = g - g.mean((1, 2, 4), keepdims=True)
    y = centred * jax.lax.rsqrt(g.var((1, 2, 4), keepdims=True) + 1e-5)
    return y.reshape(x.shape) * scale + bias


def group_mean(x: Array) -> Array:
    """The mean of each group, [B,H,W,C] to [B,G]."""
    b, h, w, c = x.shape
    per_channel = x.sum((1, 2)).reshape(b, GROUPS, c // GROUPS)
    return per_channel.sum(2) / (h * w * (c // GROUPS))


def spread(stat: Array, channels: int) -> Array:
    """[B,G] to [B,1,1,C]."""
    b = stat.shape[0]
    per_channel = jnp.broadcast_to(stat[:, :, None], (b, GROUPS, channels // GROUPS))
    return per_channel.reshape(b, 1, 1, channels)


def by_hand(x: Array, scale: Array, bias: Array) -> Array:
    """The same without a reshape of the image."""
    c = x.shape[-1]
    variance = group_mean(jnp.square(x - spread(group_mean(x), c)))
    centred = x - spread(group_mean(x), c)
    return centred * spread(jax.lax.rsqrt(variance + 1e-5), c) * scale + bias


def merged(x: Array, scale: Array, bias: Array) -> Array:
    """The same, with the image centred once."""
    c = x.shape[-1]
    centred = x - spread(group_mean(x), c)
    variance = group_mean(jnp.square(centred))
    return centred * spread(jax.lax.rsqrt(variance + 1e-5), c) * scale + bias


def gradient(f: Callable[..., Array]) -> Callable[..., tuple[Array, ...]]:
    """Gradients of sum(f * w) for all inputs of f; w is one more input."""

    def loss(x: Array, scale: Array, bias: Array, weights: Array) -> Array:
        return (f(x, scale, bias) * weights).sum()

    return jax.grad(loss, argnums=(0, 1, 2))


def forms(shape: tuple[int, ...], is_gradient: bool) -> dict[str, str]:
    """The HLO texts of all forms."""
    image = jax.ShapeDtypeStruct(shape, np.float32)
    channel = jax.ShapeDtypeStruct(shape[-1:], np.float32)
    inputs = (image, channel, channel, *((image,) if is_gradient else ()))
    texts = {}
    for f in (original, by_hand, merged):
        function = gradient(f) if is_gradient else f
        texts[f.__name__] = jax.jit(function).lower(*inputs).as_text(dialect="hlo")
    with tempfile.TemporaryDirectory() as folder:
        texts["opt"], _ = real_effect.rewrite(texts["original"], "cpu", Path(folder))
    return texts


def medians(texts: dict[str, str], rounds: int) -> dict[str, float]:
    """Median seconds of each form, which run in turn, another first each time."""
    compiled = {name: xla.compile_text(text) for name, text in texts.items()}
    inputs = real_effect.random_inputs(compiled["original"])
    names = list(compiled)
    times: dict[str, list[float]] = {name: [] for name in names}
    for turn in range(rounds + real_effect.WARM_UP):
        names.append(names.pop(0))
        for name in names:
            start = time.perf_counter()
            jax.block_until_ready(compiled[name].launch(inputs))
            if turn >= real_effect.WARM_UP:
                times[name].append(time.perf_counter() - start)
    return {name: statistics.median(seconds) for name, seconds in times.items()}


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=str(__doc__).split("\n")[0])
    parser.add_argument("--rounds", type=int, default=31, help="timed runs of each")
    parser.add_argument("--bin", type=Path, help="the tilewright binary")
    options = parser.parse_args()
    if options.bin is not None:
        os.environ["TILEWRIGHT_BIN"] = str(options.bin.resolve())
    print("| group norm | original ms | opt | by hand | merged |")
    print("|---|---:|---:|---:|---:|")
    for is_gradient in (False, True):
        for shape in SHAPES:
            times = medians(forms(shape, is_gradient), options.rounds)
            base = times["original"]
            ratios = [f"{base / times[name]:.2f}" for name in ("opt", "by_hand", "merged")]
            dims = ",".join(map(str, shape))
            kind = "gradient of " if is_gradient else ""
            print(f"| {kind}f32[{dims}] | {base * 1e3:.1f} | {' | '.join(ratios)} |", flush=True)


if __name__ == "__main__":
    main()
