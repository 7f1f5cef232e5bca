#!/usr/bin/env python3
"""Vector-Jacobian products of norms: as JAX derives them, rewritten by `opt`, and
derived by hand.

    python benches/vjp_by_hand.py [--rounds N] [--bin PATH]

By hand means: the gradient is written down from two sums over the image, that of
dy and that of dy times the centred image, as a paper would have it.  `one pass`
has the mean, the variance and both sums about a sample's mean, so that none waits
for another.  All forms run through XLA:CPU in one process, in turn; the columns
say how many times as fast as the original they are.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "fixtures"))

import by_hand
import jax
import numpy as np
import programs
import real_effect

Array = jax.Array
EPS = 1e-5


class Norm:
    """Which means a norm of an image [N,H,W,C] takes."""

    def __init__(
        self, name: str, original: Callable[..., Array], shape: tuple[int, ...]
    ):
        self.name, self.original, self.shape = name, original, shape

    def sums(self, x: Array) -> Array:
        """Sums over the image, as [N,C]."""
        return x.sum((1, 2))

    def mean(self, sums: Array) -> Array:
        """The mean of each group of sums, for each member: [N,C] to [N,C]."""
        raise NotImplementedError


class GroupNorm(Norm):
    """Means over groups of channels."""

    groups = 32

    def mean(self, sums: Array) -> Array:
        n, h, w, c = self.shape
        per_group = sums.reshape(n, self.groups, c // self.groups).sum(2)
        return (per_group / (h * w * c // self.groups)).repeat(c // self.groups, 1)


class GhostNorm(Norm):
    """Means over groups of images."""

    ghosts = 8

    def mean(self, sums: Array) -> Array:
        n, h, w, c = self.shape
        size = n // self.ghosts
        per_ghost = sums.reshape(self.ghosts, size, c).sum(1)
        return (per_ghost / (h * w * size)).repeat(size, 0)


class BatchNorm(Norm):
    """Means over all images."""

    def mean(self, sums: Array) -> Array:
        n, h, w, _ = self.shape
        return (sums.sum(0) / (n * h * w))[None].repeat(n, 0)


def spread(per_channel: Array) -> Array:
    """[N,C] to [N,1,1,C]."""
    return per_channel[:, None, None, :]


def two_pass(
    norm: Norm, x: Array, scale: Array, _bias: Array, dy: Array
) -> tuple[Array, ...]:
    """The gradients of the norm, the image centred first."""
    d = x - spread(norm.mean(norm.sums(x)))
    variance = norm.mean(norm.sums(d * d))
    sums = norm.sums(dy), norm.sums(dy * d)
    return finished(norm, d, variance, sums, scale, dy)


def one_pass(
    norm: Norm, x: Array, scale: Array, _bias: Array, dy: Array
) -> tuple[Array, ...]:
    """The same, with every sum about the mean of a sample."""
    _, h, w, _ = norm.shape
    shift = x[:, 1::4, 1::4].mean((1, 2))
    e = x - spread(shift)
    sum_e, sum_dy = norm.sums(e), norm.sums(dy)
    mean = norm.mean(sum_e + h * w * shift)
    offset = mean - shift
    squares = norm.sums(e * e) - offset * (2 * sum_e - h * w * offset)
    products = norm.sums(dy * e) - offset * sum_dy
    d, variance = x - spread(mean), norm.mean(squares)
    return finished(norm, d, variance, (sum_dy, products), scale, dy)


def finished(
    norm: Norm,
    d: Array,
    variance: Array,
    sums: tuple[Array, Array],
    scale: Array,
    dy: Array,
) -> tuple[Array, ...]:
    """The gradients from the sums over dy and over dy times d."""
    sum_dy, products = sums
    root = jax.lax.rsqrt(variance + EPS)
    of_dy = norm.mean(sum_dy * scale) * root
    of_products = norm.mean(products * scale) * root**3
    dx = dy * spread(root * scale) - d * spread(of_products) - spread(of_dy)
    return dx, (root * products).sum(0), sum_dy.sum(0)


NORMS = (
    GroupNorm("group", partial(programs.group_norm_nhwc, groups=32), (4, 64, 64, 320)),
    GroupNorm("group", partial(programs.group_norm_nhwc, groups=32), (4, 64, 64, 64)),
    BatchNorm("batch", programs.batch_norm, (32, 32, 32, 128)),
    GhostNorm(
        "ghost", partial(programs.ghost_batch_norm_outer, ghosts=8), (32, 32, 32, 128)
    ),
)


def forms(norm: Norm) -> dict[str, str]:
    """The HLO texts of all forms."""
    image = jax.ShapeDtypeStruct(norm.shape, np.float32)
    channel = jax.ShapeDtypeStruct(norm.shape[-1:], np.float32)
    functions = {
        "original": programs.pullback(norm.original, 3),
        "by hand": partial(two_pass, norm),
        "one pass": partial(one_pass, norm),
    }
    inputs = (image, channel, channel, image)
    texts = {
        name: jax.jit(f).lower(*inputs).as_text(dialect="hlo")
        for name, f in functions.items()
    }
    with tempfile.TemporaryDirectory() as folder:
        texts["opt"], _ = real_effect.rewrite(texts["original"], "cpu", Path(folder))
    return texts


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=str(__doc__).split("\n\n")[0])
    parser.add_argument("--rounds", type=int, default=31, help="timed runs of each")
    parser.add_argument("--bin", type=Path, help="the tilewright binary")
    options = parser.parse_args()
    if options.bin is not None:
        os.environ["TILEWRIGHT_BIN"] = str(options.bin.resolve())
    print("| norm | original ms | opt | by hand | one pass |")
    print("|---|---:|---:|---:|---:|")
    for norm in NORMS:
        times = by_hand.medians(forms(norm), options.rounds)
        base = times["original"]
        forms_timed = ("opt", "by hand", "one pass")
        ratios = " | ".join(f"{base / times[name]:.2f}" for name in forms_timed)
        name = f"{norm.name} f32[{','.join(map(str, norm.shape))}]"
        print(f"| {name} | {base * 1e3:.1f} | {ratios} |", flush=True)


if __name__ == "__main__":
    main()
