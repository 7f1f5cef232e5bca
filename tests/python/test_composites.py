"""Composites of the builder against NumPy and JAX, through XLA:CPU and our interpreter."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tilewright as tw

import tool
import xla

TYPES = {
    "f32": np.dtype(np.float32),
    "f16": np.dtype(np.float16),
    "bf16": xla.BFLOAT16,
    "s32": np.dtype(np.int32),
    "u8": np.dtype(np.uint8),
    "pred": np.dtype(np.bool_),
}
EPSILON = 1e-5


class Case(NamedTuple):
    """What the example is asked for, and what NumPy or JAX makes of the inputs."""

    words: str
    reference: Callable[..., object]


# --- references: in f64, and by other means than the composites ------------------


def standard(x: np.ndarray, axes: Sequence[int], epsilon: float = EPSILON) -> np.ndarray:
    mean, variance = x.mean(tuple(axes), keepdims=True), x.var(tuple(axes), keepdims=True)
    return (x - mean) / np.sqrt(variance + epsilon)


def along(v: np.ndarray, x: np.ndarray, axes: Sequence[int]) -> np.ndarray:
    """An array with the sizes of some axes of x, to be combined with x."""
    return v.reshape([size if a in axes else 1 for a, size in enumerate(x.shape)])


def affine(y: np.ndarray, axes: Sequence[int], scale: np.ndarray, bias: np.ndarray) -> np.ndarray:
    return y * along(scale, y, axes) + along(bias, y, axes)


def pieces(
    x: np.ndarray, axis: int, count: int, of_piece: Callable[[np.ndarray], np.ndarray]
) -> np.ndarray:
    """Equal runs along an axis, each by itself."""
    return np.concatenate([of_piece(p) for p in np.split(x, count, axis)], axis)


def others(x: np.ndarray, *axes: int) -> list[int]:
    return [a for a in range(x.ndim) if a not in axes]


def group_norm(x: np.ndarray, batch: Sequence[int], channel: int, groups: int) -> np.ndarray:
    return pieces(x, channel, groups, lambda p: standard(p, others(p, *batch)))


def batch_norm(x: np.ndarray, channel: int) -> tuple[np.ndarray, ...]:
    axes = tuple(others(x, channel))
    return standard(x, axes), x.mean(axes), x.var(axes)


def ghost_batch_norm(x: np.ndarray, batch: int, channel: int, groups: int) -> tuple[np.ndarray, ...]:
    parts = [batch_norm(p, channel) for p in np.split(x, groups, batch)]
    y, means, variances = zip(*parts)
    at = 0 if batch < channel else 1
    return np.concatenate(y, batch), np.stack(means, at), np.stack(variances, at)


def top_k(x: np.ndarray, k: int, axis: int) -> list[np.ndarray]:
    values, places = jax.lax.top_k(jnp.moveaxis(jnp.asarray(x), axis, -1), k)
    return [np.moveaxis(np.asarray(v), -1, axis) for v in (values, places)]


def wide(function: Callable[..., object]) -> Callable[..., object]:
    """A reference that computes in f64."""
    return lambda *arrays: function(*(a.astype(np.float64) for a in arrays))


CASES = [
    Case("mean f32[3,4,5] dims=-1,0", wide(lambda x: x.mean((0, 2)))),
    Case("mean f32[3,4] dims=", lambda x: x),
    Case("mean f32[] dims=", lambda x: x),
    Case("mean f32[0,3] dims=0", lambda x: np.full(3, np.nan)),
    Case("mean bf16[6,50] dims=1", lambda x: jnp.mean(jnp.asarray(x), 1)),
    Case("mean f16[6,50] dims=0", lambda x: jnp.mean(jnp.asarray(x), 0)),
    Case("variance f32[3,40] dims=1 correction=0", wide(lambda x: x.var(1))),
    Case("variance f32[3,4,5] dims=2,0 correction=1", wide(lambda x: x.var((0, 2), ddof=1))),
    Case("variance f32[3,4] dims=0 correction=3", lambda x: jnp.var(x, 0, correction=3)),
    Case("variance f32[0,4] dims=0 correction=0 one-pass", lambda x: np.full(4, np.nan)),
    Case("variance f32[3,40] dims=1 correction=0 one-pass", wide(lambda x: x.var(1))),
    Case("variance f32[3,8] dims=1 correction=1.5 one-pass", wide(lambda x: x.var(1) * 8 / 6.5)),
    Case("variance bf16[6,50] dims=1 correction=1", lambda x: jnp.var(jnp.asarray(x), 1, ddof=1)),
    Case("argmax f32[7,9] dim=0", lambda x: np.argmax(x, 0)),
    Case("argmax f32[2,3,40] dim=-1", lambda x: np.argmax(x, 2)),
    Case("argmin f32[7,9] dim=-2", lambda x: np.argmin(x, 0)),
    Case("argmax s32[5,12] dim=1", lambda x: np.argmax(x, 1)),
    Case("argmin u8[5,12] dim=1", lambda x: np.argmin(x, 1)),
    Case("argmax pred[4,5] dim=1", lambda x: np.argmax(x, 1)),
    Case("argmin bf16[4,9] dim=0", lambda x: jnp.argmin(jnp.asarray(x), 0)),
    Case("argmax f32[3,0] dim=0", lambda x: np.argmax(x, 0)),
    Case("top_k f32[4,30] k=7 dim=1", lambda x: top_k(x, 7, 1)),
    Case("top_k f32[2,12,3] k=12 dim=1", lambda x: top_k(x, 12, 1)),
    Case("top_k bf16[9,5] k=2 dim=0", lambda x: top_k(x, 2, 0)),
    Case("top_k s32[4,20] k=3 dim=-1", lambda x: top_k(x, 3, 1)),
    Case("top_k f32[6] k=1 dim=0", lambda x: top_k(x, 1, 0)),
    Case("top_k f32[3,4] k=0 dim=1", lambda x: [x[:, :0], np.zeros((3, 0), np.int32)]),
    *(
        Case(
            f"diagonal {shape} offset={offset} dim1={dim1} dim2={dim2}",
            lambda x, o=offset, a=dim1, b=dim2: np.diagonal(x, o, a, b),
        )
        for shape, dim1, dim2 in [
            ("f32[4,6]", 0, 1),
            ("f32[4,6]", 1, 0),
            ("s32[5,3,4]", -1, 0),
            ("bf16[2,5,3,4]", 1, -2),
            ("f32[3,0,4]", 0, 2),
            ("pred[3,0]", 0, 1),
        ]
        for offset in (0, 1, -1, 3, -3, 9, -9)
    ),
    Case("softmax f32[3,9] dims=-1", lambda x: jax.nn.softmax(x, -1)),
    Case("softmax f32[3,4,5] dims=0,2", lambda x: jax.nn.softmax(x, (0, 2))),
    Case("softmax bf16[3,40] dims=1", lambda x: jax.nn.softmax(jnp.asarray(x), 1)),
    Case("softmax f32[3,0] dims=1", lambda x: x),
    Case("log_softmax f32[3,9] dims=0", lambda x: jax.nn.log_softmax(x, 0)),
    Case("log_softmax f16[3,40] dims=1", lambda x: jax.nn.log_softmax(jnp.asarray(x), 1)),
    Case(
        "layer_norm f32[2,7,20] dims=-1 scale=f32[20] bias=f32[20]",
        wide(lambda x, s, t: affine(standard(x, [2]), [2], s, t)),
    ),
    Case(
        "layer_norm bf16[3,5,8] dims=2,0 scale=f32[3,8] bias=bf16[3,8] one-pass",
        wide(lambda x, s, t: affine(standard(x, [0, 2]), [0, 2], s, t)),
    ),
    Case("layer_norm f32[4,6] dims=1 epsilon=0.5", wide(lambda x: standard(x, [1], 0.5))),
    Case(
        "rms_norm f16[4,16] dims=1 scale=f32[16]",
        wide(lambda x, s: x / np.sqrt((x * x).mean(1, keepdims=True) + EPSILON) * s),
    ),
    Case(
        "rms_norm f32[4,3,16] dims=1,2 epsilon=0.1",
        wide(lambda x: x / np.sqrt((x * x).mean((1, 2), keepdims=True) + 0.1)),
    ),
    Case("batch_norm f32[6,4,5,3] channel=-1", wide(lambda x: batch_norm(x, 3))),
    Case(
        "batch_norm bf16[6,3,10] channel=1 scale=f32[3] bias=f32[3]",
        wide(lambda x, s, t: (affine(batch_norm(x, 1)[0], [1], s, t), *batch_norm(x, 1)[1:])),
    ),
    Case("batch_norm f32[0,3] channel=1", lambda x: (x, np.full(3, np.nan), np.full(3, np.nan))),
    Case(
        "ghost_batch_norm f32[6,4,3] batch=0 channel=-1 groups=3 one-pass",
        wide(lambda x: ghost_batch_norm(x, 0, 2, 3)),
    ),
    Case(
        "ghost_batch_norm f32[3,5,8] batch=2 channel=0 groups=2",
        wide(lambda x: ghost_batch_norm(x, 2, 0, 2)),
    ),
    Case(
        "instance_norm f32[2,6,5,3] batch=0 channel=-1 scale=f32[3] bias=f32[3]",
        wide(lambda x, s, t: affine(standard(x, [1, 2]), [3], s, t)),
    ),
    Case("instance_norm f32[3,40] batch= channel=0", wide(lambda x: standard(x, [1]))),
    *(
        Case(
            f"group_norm {shape} batch={batch} channel={channel} groups={groups}"
            f" scale=f32[6] bias=f32[6]",
            wide(
                lambda x, s, t, b=batch, c=channel, g=groups: affine(
                    group_norm(x, [b], c % x.ndim, g), [c % x.ndim], s, t
                )
            ),
        )
        for shape, batch, channel in [
            ("f32[2,4,5,6]", 0, -1),
            ("f32[2,6,4,5]", 0, 1),
            ("f32[6,4,2]", 2, 0),
            ("bf16[2,6,10]", 0, 1),
        ]
        for groups in (1, 2, 6)
    ),
    Case(
        "group_norm f32[2,3,4,5] batch=0,1 channel=2 groups=2",
        wide(lambda x: group_norm(x, [0, 1], 2, 2)),
    ),
    Case(
        "weight_norm f32[3,3,5,8] kept=-1 epsilon=0 scale=f32[8]",
        wide(lambda v, g: v * g / np.linalg.norm(v.reshape(-1, 8), axis=0)),
    ),
    Case(
        "weight_norm bf16[6,50] kept=0 epsilon=0.25",
        wide(lambda v: v / np.sqrt((v * v).sum(1, keepdims=True) + 0.25)),
    ),
    Case("weight_norm f32[4,5] kept= epsilon=0", wide(lambda v: v / np.linalg.norm(v))),
]


def made_inputs(words: str) -> list[np.ndarray]:
    """Numbers for each shape that is named; those of whole numbers have ties."""
    random = np.random.default_rng(0)
    arrays = []
    for name, sizes in re.findall(r"\b([a-z]+\d*)\[([\d,]*)\]", words):
        dims = [int(size) for size in sizes.split(",") if size]
        numbers = random.normal(0.5, 2.0, dims)
        if name in ("s32", "u8"):
            numbers = random.integers(0, 9, dims)
        if name == "pred":
            numbers = random.integers(0, 2, dims)
        if words.startswith(("arg", "top_k")):
            numbers = np.round(numbers)
        arrays.append(np.asarray(numbers).astype(TYPES[name]))
    return arrays


def result_types(words: str, own: np.dtype) -> list[np.dtype]:
    """Places are s32, the moments that are results f32, all else is as the array."""
    name, (f32, s32) = words.split()[0], (TYPES["f32"], TYPES["s32"])
    special = {
        "argmax": [s32],
        "argmin": [s32],
        "top_k": [own, s32],
        "batch_norm": [own, f32, f32],
        "ghost_batch_norm": [own, f32, f32],
    }
    return special.get(name, [own])


def both_ways(words: str, inputs: list[np.ndarray]) -> list[list[np.ndarray]]:
    """The results of XLA:CPU and of our interpreter."""
    done = tool.example("composites", *words.split())
    assert done.returncode == 0, done.stderr
    ours = jax.tree.leaves(tw.run(done.stdout, *inputs).output)
    return [xla.compile_text(done.stdout).run(inputs), ours]


@pytest.mark.usefixtures("binary")
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.words)
def test_composite_is_what_it_is_named(case: Case) -> None:
    inputs = made_inputs(case.words)
    expected = case.reference(*inputs)
    expected = list(expected) if isinstance(expected, (list, tuple)) else [expected]
    types = result_types(case.words, inputs[0].dtype)
    typed = [np.asarray(e).astype(t) for e, t in zip(expected, types, strict=True)]
    for actual in both_ways(case.words, inputs):
        xla.assert_close(actual, typed, case.words)


SPECIAL = np.array(
    [
        [1, np.nan, 3, np.nan, np.inf],
        [-np.inf, -np.inf, -np.inf, -np.inf, -np.inf],
        [np.inf, 2, np.inf, -np.inf, 0],
        [0.0, -0.0, 0.0, -0.0, -1],
        [-np.inf, -np.inf, -np.inf, -np.inf, np.nan],
    ],
    np.float32,
)


@pytest.mark.usefixtures("binary")
@pytest.mark.parametrize("name", ["argmax", "argmin"])
def test_nan_wins_and_the_first_of_equals(name: str) -> None:
    expected = getattr(jnp, name)(SPECIAL, 1)
    np.testing.assert_array_equal(expected, getattr(np, name)(SPECIAL, 1))
    for actual in both_ways(f"{name} f32[5,5] dim=1", [SPECIAL]):
        np.testing.assert_array_equal(actual[0], expected)


@pytest.mark.usefixtures("binary")
def test_top_k_has_a_total_order() -> None:
    x = np.vstack([SPECIAL, np.copysign(SPECIAL[:1], -1)])
    for actual in both_ways("top_k f32[6,5] k=4 dim=1", [x]):
        for a, e in zip(actual, top_k(x, 4, 1), strict=True):
            np.testing.assert_array_equal(a, e)
            np.testing.assert_array_equal(np.signbit(a), np.signbit(e))


@pytest.mark.usefixtures("binary")
@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
def test_softmax_of_special_numbers(name: str) -> None:
    x = np.array([[1e30, 0, -1e30], [-np.inf, 0, 1], [-np.inf] * 3, [np.inf, 0, 1]], np.float32)
    for actual in both_ways(f"{name} f32[4,3] dims=1", [x]):
        np.testing.assert_allclose(actual[0], getattr(jax.nn, name)(x, 1), rtol=1e-6)


@pytest.mark.usefixtures("binary")
def test_two_passes_keep_the_digits_of_a_large_mean() -> None:
    x = (1e4 + np.arange(40) % 2).astype(np.float32)
    for actual in both_ways("variance f32[40] dims=0 correction=0", [x]):
        np.testing.assert_allclose(actual[0], 0.25, rtol=1e-6)
    for actual in both_ways("variance f32[40] dims=0 correction=0 one-pass", [x]):
        assert actual[0] >= 0.0
