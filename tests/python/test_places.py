"""`optimize` for CPUs against NumPy: places of extrema of what is computed in bf16.

XLA takes conversions from f32 to bf16 and back away, so a rewritten program that compares in f32
must round again: many sums that differ in f32 tie in bf16, and the first of those wins."""

from __future__ import annotations

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tilewright as tw

import tool
import xla

DIMS = (1024, 256)


@pytest.mark.parametrize("name", ["argmax", "argmin"])
@pytest.mark.parametrize("axis", [0, 1])
def test_ties_stay_ties(name: str, axis: int, tmp_path: Path) -> None:
    """The place is that of the first of the sums that are equal in bf16."""
    shape = jax.ShapeDtypeStruct(DIMS, jnp.bfloat16)
    place = getattr(jnp, name)
    text = jax.jit(lambda x: place(x + 64, axis=axis)).lower(shape).as_text(dialect="hlo")
    kinds = [f"{source} {walk}" for source in ("stored", "computed") for walk in ("columns", "rows")]
    cells = (f"place bf16 {kind} 1 1 | as-is 9 | folds 1" for kind in kinds)
    rewritten = tw.optimize(text, str(tool.engine_file(tmp_path, *cells))).module.to_text()
    assert rewritten.count(" reduce(") > text.count(" reduce("), "it was not rewritten"

    x = np.random.default_rng(0).random(DIMS, dtype=np.float32).astype(jnp.bfloat16)
    wide = x.astype(np.float32) + 64
    sums = wide.astype(jnp.bfloat16).astype(np.float32)
    expected = getattr(np, name)(sums, axis)
    assert (expected != getattr(np, name)(wide, axis)).any(), "no ties in bf16 alone"
    for program in (text, rewritten):
        (places,) = xla.compile_text(program).run([x])
        np.testing.assert_array_equal(places, expected)
