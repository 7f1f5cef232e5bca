"""Norms that XLA's partitioner divides: forward, their vjp, and as steps of training."""

from __future__ import annotations

# JAX has functions without types.
# mypy: allow-untyped-calls
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P

from sharded.case import Case, Function, Leaf, always, explicit, gspmd

EPS = 1e-5
IMAGE, SMALL_IMAGE = (8, 32, 32, 320), (8, 8, 8, 64)
GROUPS = 32
# Ghost batch norm has one batch norm for each of these parts of the batch.
GHOSTS = 2
Norm = Callable[[jax.Array, jax.Array, jax.Array], jax.Array]


def over(axes: tuple[int, ...], x: jax.Array) -> jax.Array:
    """Centred and scaled over these dims."""
    centred = x - x.mean(axes, keepdims=True)
    return centred * jax.lax.rsqrt((centred**2).mean(axes, keepdims=True) + EPS)


def batch_norm(x: jax.Array, scale: jax.Array, bias: jax.Array) -> jax.Array:
    return over((0, 1, 2), x) * scale + bias


def group_norm(x: jax.Array, scale: jax.Array, bias: jax.Array) -> jax.Array:
    grouped = x.reshape(*x.shape[:-1], GROUPS, x.shape[-1] // GROUPS)
    return over((1, 2, 4), grouped).reshape(x.shape) * scale + bias


def instance_norm(x: jax.Array, scale: jax.Array, bias: jax.Array) -> jax.Array:
    return over((1, 2), x) * scale + bias


def layer_norm(x: jax.Array, scale: jax.Array, bias: jax.Array) -> jax.Array:
    return over((3,), x) * scale + bias


def rms_norm(x: jax.Array, scale: jax.Array, bias: jax.Array) -> jax.Array:
    return x * jax.lax.rsqrt((x**2).mean(3, keepdims=True) + EPS) * scale + bias


def ghost_norm(x: jax.Array, scale: jax.Array, bias: jax.Array) -> jax.Array:
    parts = x.reshape(GHOSTS, x.shape[0] // GHOSTS, *x.shape[1:])
    return over((1, 2, 3), parts).reshape(x.shape) * scale + bias


NORMS: tuple[Norm, ...] = (
    batch_norm,
    group_norm,
    instance_norm,
    layer_norm,
    rms_norm,
    ghost_norm,
)
# How images and channels are divided.
LAYOUTS: dict[str, tuple[P, P]] = {
    "batch": (P("data"), P()),
    "batch and space": (P("data", "model"), P()),
    "space": (P(None, "data", "model"), P()),
    "channels": (P("data", None, None, "model"), P("model")),
}


def widened(norm: Norm) -> Norm:
    """A norm that computes in f32 at least, as layers of bf16 do."""

    def run(x: jax.Array, scale: jax.Array, bias: jax.Array) -> jax.Array:
        wide = jnp.promote_types(x.dtype, jnp.float32)
        return norm(x.astype(wide), scale.astype(wide), bias.astype(wide)).astype(x.dtype)

    return run


def vjp(norm: Norm) -> Function:
    """The gradients of a norm for a cotangent."""

    def run(x: jax.Array, scale: jax.Array, bias: jax.Array, cotangent: jax.Array) -> Any:
        return jax.vjp(norm, x, scale, bias)[1](cotangent)

    return run


def step(norm: Norm) -> Function:
    """The loss of a norm, and its gradients."""

    def run(x: jax.Array, scale: jax.Array, bias: jax.Array, wanted: jax.Array) -> Any:
        def loss(x: jax.Array, scale: jax.Array, bias: jax.Array) -> jax.Array:
            return ((norm(x, scale, bias) - wanted) ** 2).mean()

        return jax.value_and_grad(loss, (0, 1, 2))(x, scale, bias)

    return run


FORMS: dict[str, Callable[[Norm], Function]] = {"": lambda norm: norm, " vjp": vjp, " step": step}


def arguments(
    form: str, image: tuple[int, ...], spec: P, channel: P, dtype: Any = jnp.float32
) -> tuple[Leaf, ...]:
    """The arguments of a form of a norm."""
    channels = image[-1:]
    given = (
        Leaf(image, spec, "image", dtype),
        Leaf(channels, channel, "scale", dtype),
        Leaf(channels, channel, "bias", dtype),
    )
    return (*given, Leaf(image, spec, "cotangent", dtype)) if form else given


def cases(image: tuple[int, ...] = IMAGE) -> Iterator[Case]:
    """All norms in all layouts; some for the older partitioner, with explicit axes and in bf16, too."""
    for norm in NORMS:
        name = norm.__name__.replace("_", " ")
        for layout, (spec, channel) in LAYOUTS.items():
            for form, make in FORMS.items():
                given = arguments(form, image, spec, channel)
                case = Case(f"{name}{form}, {layout}", always(make(norm)), given)
                yield case
                if layout in ("batch and space", "channels"):
                    yield gspmd(case)
                # JAX does not reshape a dim that an explicit axis divides.
                if layout == "batch and space" and norm is not ghost_norm:
                    yield explicit(case)
        for layout in ("batch and space", "channels"):
            given = arguments(" step", image, *LAYOUTS[layout], jnp.bfloat16)
            yield Case(f"{name} step, {layout}, bf16", always(step(widened(norm))), given)
