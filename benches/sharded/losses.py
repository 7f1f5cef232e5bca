"""Losses of divided classes, clipped gradients, and Adam whose moments are divided."""

from __future__ import annotations

# JAX has functions without types.
# mypy: allow-untyped-calls
import functools
from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import optax
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from sharded.case import Case, Function, Leaf, always, gspmd, leaves_of, mapped

ROWS, CLASSES = 64, 4096


def cross_entropy(logits: jax.Array, labels: jax.Array) -> jax.Array:
    """As optax has it."""
    found: jax.Array = optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean()
    return found


def by_hand(logits: jax.Array, labels: jax.Array) -> jax.Array:
    """With the logarithms of all classes, and the label's chosen by a product."""
    logs = jax.nn.log_softmax(logits)
    return -(logs * jax.nn.one_hot(labels, logits.shape[-1], dtype=logs.dtype)).sum(-1).mean()


def manual(logits: jax.Array, labels: jax.Array) -> jax.Array:
    """The loss of a device's rows, of which it has some of the classes."""
    most = jax.lax.stop_gradient(jax.lax.pmax(jax.lax.stop_gradient(logits).max(-1), "model"))
    shifted = logits - most[:, None]
    total = jax.lax.psum(jnp.exp(shifted).sum(-1), "model")
    first = jax.lax.axis_index("model") * logits.shape[-1]
    mine = jnp.arange(logits.shape[-1]) + first == labels[:, None]
    label = jax.lax.psum(jnp.where(mine, shifted, 0).sum(-1), "model")
    found: jax.Array = jax.lax.pmean((jnp.log(total) - label).mean(), "data")
    return found


def entropies(rows: int, classes: int) -> Iterator[Case]:
    """Cross-entropies whose vocabulary is divided."""
    logits, labels = P("data", "model"), P("data")
    given = (
        Leaf((rows, classes), logits, "image"),
        Leaf((rows,), labels, "", jnp.int32, classes),
    )
    for name, function in (("cross-entropy", cross_entropy), ("log-softmax by hand", by_hand)):
        for form, made in (("", function), (" step", jax.value_and_grad(function))):
            case = Case(f"{name}{form}, vocabulary", always(made), given)
            yield case
            yield gspmd(case)
    build = mapped(manual, (logits, labels), P())
    yield Case("cross-entropy, shard_map", build, given)
    yield Case("cross-entropy step, shard_map", lambda mesh: jax.value_and_grad(build(mesh)), given)
    yield from softmaxes(rows, classes)


def softmaxes(rows: int, classes: int) -> Iterator[Case]:
    """The softmax alone, and its vjp."""
    spec = P("data", "model")
    image, cotangent = Leaf((rows, classes), spec), Leaf((rows, classes), spec, "cotangent")

    def vjp(x: jax.Array, given: jax.Array) -> Any:
        return jax.vjp(jax.nn.softmax, x)[1](given)

    yield Case("softmax, vocabulary", always(jax.nn.softmax), (image,))
    yield Case("softmax vjp, vocabulary", always(vjp), (image, cotangent))


def parameters(width: int) -> dict[str, Any]:
    """The shapes of some parameters."""
    dims = {
        "up": (width, 4 * width),
        "down": (4 * width, width),
        "norm": {"scale": (width,), "bias": (width,)},
        "embedding": (16 * width, width),
    }
    shapes: dict[str, Any] = jax.tree.map(
        lambda one: jax.ShapeDtypeStruct(one, jnp.float32),
        dims,
        is_leaf=lambda one: isinstance(one, tuple),
    )
    return shapes


def rows_over(*axes: str) -> Any:
    """Divides the rows of matrices, and vectors, over axes."""
    return lambda path, dims: P(axes) if dims else P()


def by_tensor(path: str, dims: tuple[int, ...]) -> P:
    """Divides the wide dim of each matrix."""
    if "norm" in path or not dims:
        return P()
    return P(None, "model") if dims[-1] > dims[0] else P("model")


def whole(path: str, dims: tuple[int, ...]) -> P:
    """Divides nothing."""
    return P()


SPLITS: dict[str, Any] = {
    "FSDP": rows_over("data", "model"),
    "FSDP and tensor": lambda path, dims: (
        by_tensor(path, dims)
        if "norm" in path or not dims
        else (P("data", "model") if dims[-1] > dims[0] else P("model", "data"))
    ),
    "tensor": by_tensor,
}


def clipped(gradients: Any) -> Any:
    """Gradients with a global norm of at most 1."""
    return optax.clip_by_global_norm(1.0).update(gradients, optax.EmptyState())[0]


def clips(width: int) -> Iterator[Case]:
    """Global norms of divided gradients."""
    for name, split in SPLITS.items():
        case = Case(
            f"clip by global norm, {name}", always(clipped), (leaves_of(parameters(width), split),)
        )
        yield case
        if name == "FSDP":
            yield gspmd(case)


def optimized(optimizer: optax.GradientTransformation, leaves: Any, mesh: Mesh) -> Function:
    """One step of an optimizer; new parameters lie as the old ones."""

    def run(params: Any, gradients: Any, state: Any) -> Any:
        updates, state = optimizer.update(gradients, state, params)
        new = optax.apply_updates(params, updates)
        shardings = jax.tree.map(
            lambda leaf: NamedSharding(mesh, leaf.spec),
            leaves,
            is_leaf=lambda one: isinstance(one, Leaf),
        )
        return jax.lax.with_sharding_constraint(new, shardings), state

    return run


def adams(width: int) -> Iterator[Case]:
    """Steps of Adam: replicated parameters with divided moments (ZeRO), and all divided (FSDP)."""
    chains = {
        "Adam": optax.adam(1e-3),
        "clipped AdamW": optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(1e-3)),
    }
    shapes = parameters(width)
    for name, optimizer in chains.items():
        state = jax.eval_shape(optimizer.init, shapes)
        for layout, of_parameters, of_state in (
            ("ZeRO", whole, SPLITS["FSDP"]),
            ("FSDP", SPLITS["FSDP"], SPLITS["FSDP"]),
            ("tensor", by_tensor, by_tensor),
        ):
            given = (
                leaves_of(shapes, of_parameters),
                leaves_of(shapes, of_parameters),
                leaves_of(state, of_state),
            )
            build = functools.partial(optimized, optimizer, given[0])
            yield Case(f"{name}, {layout}", build, given)


def cases(is_small: bool = False) -> Iterator[Case]:
    """All of them."""
    yield from entropies(*(16, 256) if is_small else (ROWS, CLASSES))
    yield from clips(16 if is_small else 128)
    yield from adams(16 if is_small else 128)
