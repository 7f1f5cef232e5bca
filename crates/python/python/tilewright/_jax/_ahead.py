"""Measures the forms of a function before it is used."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from tilewright._jax import _tune
from tilewright._jax._jit import Marked, jit
from tilewright._jax._report import Decision


def tune(fun: Callable[..., Any], **options: Any) -> Callable[..., Decision | None]:
    """A function that takes the arguments of `fun`, measures its forms on them, and returns what won;
    none where nothing can be chosen (`tilewright.report()` says why).

    The decision is remembered, so that `tilewright.jit(fun, tune=True)` finds it. `options` are those of
    `tilewright.jit`; `fun` may be such a function itself. A `jax.ShapeDtypeStruct` stands for an array of random
    numbers. Donated arguments are copied.
    """
    wrapped = inspect.getattr_static(fun, "__wrapped__", None) or getattr(fun, "__wrapped__", None)
    is_tuned = isinstance(wrapped, Marked) and wrapped.is_tuned
    tuned = fun if is_tuned and not options else jit(fun, **{**options, "tune": True})

    def decided(*args: Any, **kwargs: Any) -> Decision | None:
        args, kwargs = jax.tree.map(_own, (args, kwargs))
        with _tune.deciding() as last:
            jax.block_until_ready(tuned(*args, **kwargs))
            return last()

    return decided


def _own(leaf: Any) -> Any:
    """A copy of an array, which may be donated; an array for what only has its shape."""
    if isinstance(leaf, jax.Array):
        return leaf.copy()
    if not isinstance(leaf, jax.ShapeDtypeStruct):
        return leaf
    shape, dtype = leaf.shape, leaf.dtype
    if jnp.issubdtype(dtype, jax.dtypes.prng_key):
        made: Any = jax.random.split(jax.random.key(0), shape)
    elif jnp.issubdtype(dtype, jnp.inexact):
        numbers = np.random.default_rng(0).standard_normal(shape, np.float32)
        made = jnp.asarray(numbers).astype(dtype)
    else:
        made = jnp.zeros(shape, dtype)
    return made if leaf.sharding is None else jax.device_put(made, leaf.sharding)
