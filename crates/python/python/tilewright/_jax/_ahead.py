"""Measures the forms of a function before it is used."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from tilewright._jax import _tune
from tilewright._jax._jit import jit, settings_of_jit
from tilewright._jax._report import Decision


def tune(fun: Callable[..., Any], **options: Any) -> Callable[..., Decision | None]:
    """A function that takes the arguments of `fun`, measures its forms on them, and returns what won;
    none where nothing can be chosen (`tilewright.report()` says why).

    The decision is remembered, so that `tilewright.jit(fun, tune=True)` finds it. `options` are those of
    `tilewright.jit`; `fun` may be such a function itself. A `jax.ShapeDtypeStruct` stands for an array of random
    numbers, or of zeros if they are whole numbers. Donated arguments are copied.
    """
    own = settings_of_jit(fun)
    tuned = fun if own and own.tune and not options else jit(fun, **{**options, "tune": True})

    def decided(*args: Any, **kwargs: Any) -> Decision | None:
        args, kwargs = jax.tree.map(_own, (args, kwargs))
        with _tune.deciding() as last:
            jax.block_until_ready(tuned(*args, **kwargs))
        if decision := last():
            return decision
        # JAX has compiled it before.
        settings = settings_of_jit(tuned)
        return _tune.decision_on(tuned.lower(*args, **kwargs), settings) if settings else None

    return decided


def _own(leaf: Any) -> Any:
    """A copy of an array, which may be donated; an array for what only has its shape."""
    if isinstance(leaf, jax.Array):
        return leaf.copy()
    if not isinstance(leaf, jax.ShapeDtypeStruct):
        return leaf
    shape, dtype = leaf.shape, leaf.dtype
    if jnp.issubdtype(dtype, jax.dtypes.extended):
        raise TypeError("a key is given as an array, since its kind decides how it is used")
    made = jnp.zeros(shape, dtype)
    if jnp.issubdtype(dtype, jnp.inexact):
        numbers = np.random.default_rng(0).standard_normal(shape, np.float32)
        made = jnp.asarray(numbers).astype(dtype)
    return made if leaf.sharding is None else jax.device_put(made, leaf.sharding)
