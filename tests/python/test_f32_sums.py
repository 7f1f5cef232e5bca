"""`optimize` for CPUs against NumPy in f64: sums of bf16 and f16 that are added up in f32
are off by one rounding, and no worse than XLA's own by more than that."""

from __future__ import annotations

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tilewright as tw

import tool
import xla
from entries import check_each

SHAPE = (4, 24, 24, 64)
KINDS = {
    "normal": lambda x: x,
    "positive": np.abs,
    "around_100": lambda x: 100 + x,
    "ones": np.ones_like,
    "cancelling": lambda x: x - x[:, ::-1],
}
AXES = [(0, 1, 2), (1, 2), (3,), (0, 1, 2, 3)]
CELLS = [
    f"sum {dtype} stored {walk} 1 1"
    for dtype in ("bf16", "f16")
    for walk in ("columns", "columns nested", "rows", "whole nested")
]
ROUNDOFF = {"bfloat16": 2.0**-8, "float16": 2.0**-11}


def narrow_sum(x: jax.Array, axes: tuple[int, ...]) -> jax.Array:
    """The sum, added up in the type of x; `jnp.sum` would convert."""
    zero = jnp.zeros((), x.dtype)
    return jax.lax.reduce(x, zero, jax.lax.add, axes)


@pytest.mark.parametrize("dtype", ROUNDOFF)
@pytest.mark.parametrize("axes", AXES, ids=str)
def test_no_worse(axes: tuple[int, ...], dtype: str, tmp_path: Path) -> None:
    """Each element by itself; what is beyond the type is infinite."""
    shape = jax.ShapeDtypeStruct(SHAPE, dtype)
    text = jax.jit(lambda x: narrow_sum(x, axes)).lower(shape).as_text(dialect="hlo")
    engine = tool.engine_file(tmp_path, *(f"{cell} | as-is 9 | in-f32 1" for cell in CELLS))
    rewritten = tw.optimize(text, str(engine)).module.to_text()
    assert "f32[" in rewritten, "it was not rewritten"
    programs = [xla.compile_text(program) for program in (text, rewritten)]
    normal = np.random.default_rng(0).standard_normal(SHAPE)

    def check(kind: str) -> None:
        x = KINDS[kind](normal).astype(dtype)
        exact = x.astype(np.float64).sum(axes)
        fits = np.abs(exact) <= float(jnp.finfo(dtype).max)
        original, wide = (program.run([x])[0].astype(np.float64) for program in programs)
        # Of the result, and of the partial sums in f32.
        rounding = ROUNDOFF[dtype] * np.abs(exact) + 1e-6 * np.abs(x.astype(np.float64)).sum(axes)
        assert (np.abs(wide - exact) <= rounding)[fits].all()
        assert (np.abs(wide - exact) <= np.abs(original - exact) + rounding)[fits].all()
        assert np.isinf(wide[~fits]).all()

    check_each([*KINDS], check)
