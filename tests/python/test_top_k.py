"""Top-k on the simulated machine against JAX, through the HLO that JAX and XLA write."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import numpy as np
import pytest
import tilewright as tw

import xla
from entries import check_each

TARGETS = ["tpu-like", "mlu-like", "linear", "cpu"]
TYPES = [np.float32, np.float16, xla.BFLOAT16, np.int32, np.uint8]


def special(dtype: np.dtype, dims: tuple[int, ...]) -> np.ndarray:
    """Few numbers, often: zeros, infinities and NaNs of both signs among them."""
    random = np.random.default_rng(0)
    if dtype.kind in "iu":
        return random.integers(0, 20, dims).astype(dtype)
    nan = np.float32(np.nan)
    some = [0.0, -0.0, 1, -1, 2.5, np.inf, -np.inf, nan, np.copysign(nan, -1)]
    return random.choice(np.array(some, np.float32), dims).astype(dtype)


def run(text: str, x: np.ndarray, target: str) -> tuple[np.ndarray, ...]:
    """The results of the simulated machine, where the host does not look for anything."""
    ran = tw.simulate(text, x, target=target)
    assert ran.report.to_dict()["host_calls"] == 0
    return ran.output


def assert_same(actual: Sequence[np.ndarray], expected: Sequence[Any]) -> None:
    """To the bit, but for what is in a NaN."""
    for a, e in zip(actual, expected, strict=True):
        e = np.asarray(e)
        wide = [v.astype(np.float64) if v.dtype == xla.BFLOAT16 else v for v in (a, e)]
        np.testing.assert_array_equal(*wide)
        if e.dtype.kind not in "iu":
            np.testing.assert_array_equal(np.signbit(wide[0]), np.signbit(wide[1]))


@pytest.mark.parametrize("dtype", TYPES, ids=str)
@pytest.mark.parametrize(("dims", "k"), [((5, 41), 41), ((3, 2, 300), 4), ((2000,), 3)], ids=str)
def test_the_machine_selects_as_jax(dims: tuple[int, ...], k: int, dtype: type) -> None:
    x = special(np.dtype(dtype), dims)
    program = jax.jit(lambda x: jax.lax.top_k(x, k)).lower(x)
    text, expected = program.as_text(dialect="hlo"), jax.lax.top_k(x, k)
    check_each(TARGETS, lambda target: assert_same(run(text, x, target), expected))


def test_what_xla_compiles() -> None:
    x = special(np.dtype(np.float32), (6, 100))
    program = jax.jit(lambda x: jax.lax.top_k(x, 5)).lower(x).compile()
    text, expected = program.as_text(), program(x)
    assert "TopK" in text
    check_each(TARGETS, lambda target: assert_same(run(text, x, target), expected))


def test_the_least() -> None:
    x = special(np.dtype(np.float32), (6, 100))
    text = """HloModule least
ENTRY e {
  x = f32[6,100] parameter(0)
  ROOT r = (f32[6,9], s32[6,9]) topk(x), k=9, largest=false
}"""
    expected = xla.compile_text(text).run([x])
    check_each(TARGETS, lambda target: assert_same(run(text, x, target), expected))
