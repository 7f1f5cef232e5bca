"""`optimize` for CPUs, compiled by XLA: values that are compared with their own extrema.

XLA contracts, vectorises and rounds in each kernel as it likes, so that a copy of a value for a reduction may
differ from the value in the last place. An element that equals the maximum must still be found: gradients of
maxima divide by the number of such elements."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tilewright as tw

import tool
import xla
from entries import check_each

DIMS = (256, 1024)
VALUES: dict[str, Callable[[jax.Array], jax.Array]] = {
    "polynomial": lambda x: x * x + x,
    "exponential": lambda x: jnp.exp(x) * x,
    "quotient": lambda x: x / (1 + x * x),
    "tanh": jnp.tanh,
}
WALKS = ("columns", "rows")


def counts(value: Callable[[jax.Array], jax.Array], axis: int) -> Callable[[jax.Array], jax.Array]:
    """How many elements equal the maximum along an axis."""
    return lambda x: jnp.sum(value(x) == jnp.max(value(x), axis, keepdims=True), axis)


def gradient(value: Callable[[jax.Array], jax.Array], axis: int) -> Callable[[jax.Array], jax.Array]:
    """The gradient of the sum of maxima."""
    return jax.grad(lambda x: jnp.max(value(x), axis).astype(jnp.float32).sum())


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("form", [None, "windows", "folds"])
def test_the_greatest_is_found(form: str | None, dtype: str, tmp_path: Path) -> None:
    """As by the program as JAX wrote it, for the engine and where a form is always faster."""
    name = {"float32": "f32", "bfloat16": "bf16"}[dtype]
    kinds = (f"{of} {source} {walk}" for of in (f"extremum {name}", "sum s32", f"sum {name}")
             for source in ("stored", "computed") for walk in WALKS)
    cells = (f"{kind} 1 1 | as-is 9 | {form} 1" for kind in kinds)
    target = "cpu" if form is None else str(tool.engine_file(tmp_path, *cells))
    x = np.random.default_rng(0).standard_normal(DIMS, dtype=np.float32).astype(dtype)

    def check(case: tuple[str, int]) -> None:
        value, axis = case
        for made in (counts, gradient):
            lowered = jax.jit(made(VALUES[value], axis)).lower(jax.ShapeDtypeStruct(DIMS, dtype))
            text = lowered.as_text(dialect="hlo")
            programs = [text, tw.optimize(text, target).module.to_text()]
            before, after = (xla.compile_text(program).run([x])[0] for program in programs)
            if made is counts:
                assert (after > 0).all()
                np.testing.assert_array_equal(after, before)
            else:
                assert np.isfinite(after.astype(np.float32)).all()

    check_each([(value, axis) for value in VALUES for axis in (0, 1)], check)
