"""Steps of training of a small ResNet and of a small GPT, divided in several ways."""

from __future__ import annotations

# JAX has functions without types.
# mypy: allow-untyped-calls
from collections.abc import Callable, Iterator
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
import optax
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from sharded.case import Case, Function, Leaf, always, gspmd, leaves_of

BATCH, PIXELS, CLASSES = 16, 16, 16
VOCABULARY, LENGTH, WIDTH, HEADS = 256, 32, 64, 4
BOTH = ("data", "model")
SpecOf = Callable[[str, tuple[int, ...]], P]
Constrain = Callable[[jax.Array], jax.Array]


class Block(nn.Module):
    """Two convolutions beside a shortcut."""

    width: int
    stride: int
    norm: Callable[..., Any]

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        strides = (self.stride, self.stride)
        y = nn.Conv(self.width, (3, 3), strides, use_bias=False)(x)
        y = nn.Conv(self.width, (3, 3), use_bias=False)(nn.relu(self.norm()(y)))
        y = self.norm()(y)
        if x.shape != y.shape:
            x = self.norm()(nn.Conv(self.width, (1, 1), strides, use_bias=False)(x))
        return nn.relu(x + y)


class ResNet(nn.Module):
    """A stem, three blocks, and a dense layer of the mean over pixels."""

    norm: Callable[..., Any]

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        x = nn.relu(self.norm()(nn.Conv(32, (3, 3), use_bias=False)(x)))
        for width, stride in ((32, 1), (64, 2), (64, 1)):
            x = Block(width, stride, self.norm)(x)
        return nn.Dense(CLASSES)(x.mean((1, 2)))


def batch_norms(axis: str | None = None) -> Callable[..., Any]:
    """What makes a batch norm in training."""
    return lambda: nn.BatchNorm(use_running_average=False, momentum=0.9, axis_name=axis)


def group_norms() -> Any:
    return nn.GroupNorm(num_groups=8)


def resnet_step(
    norm: Callable[..., Any], optimizer: optax.GradientTransformation, axis: str | None = None
) -> Function:
    """A step: parameters, running statistics and the optimizer's state to new ones."""
    model = ResNet(norm)

    def run(params: Any, stats: Any, state: Any, images: jax.Array, labels: jax.Array) -> Any:
        def loss(params: Any) -> Any:
            variables = {"params": params, **stats}
            logits, new = model.apply(variables, images, mutable=["batch_stats"])
            found = optax.softmax_cross_entropy_with_integer_labels(logits, labels)
            return found.mean(), dict(new)

        (value, new), gradients = jax.value_and_grad(loss, has_aux=True)(params)
        if axis is not None:
            value, gradients = jax.lax.pmean((value, gradients), axis)
        updates, state = optimizer.update(gradients, state, params)
        return value, optax.apply_updates(params, updates), new, state

    return run


def whole(path: str, dims: tuple[int, ...]) -> P:
    """Divides nothing."""
    return P()


def last_dim(path: str, dims: tuple[int, ...]) -> P:
    """Divides the channels of all parameters."""
    return P(*[None] * (len(dims) - 1), "model") if dims else P()


def most_rows(path: str, dims: tuple[int, ...]) -> P:
    """Divides the largest dim of each parameter over all devices, if it can be."""
    largest = max(range(len(dims)), key=dims.__getitem__, default=0)
    if not dims or dims[largest] % 8:
        return P()
    return P(*[None] * largest, BOTH)


# How images and parameters are divided.
IMAGES: dict[str, tuple[P, SpecOf]] = {
    "data": (P(BOTH), whole),
    "tensor": (P("data"), last_dim),
    "space": (P("data", "model"), whole),
    "FSDP": (P(BOTH), most_rows),
}


def resnet_arguments(
    norm: Callable[..., Any], optimizer: Any, images: P, of_parameters: SpecOf, batch: int = BATCH
) -> tuple[Any, ...]:
    """The arguments of a step."""
    dims = (batch, PIXELS, PIXELS, 3)
    shapes = dict(
        jax.eval_shape(
            ResNet(norm).init, jax.random.key(0), jax.ShapeDtypeStruct(dims, jnp.float32)
        )
    )
    params = shapes.pop("params")
    state = jax.eval_shape(optimizer.init, params)
    labels = P(images[0])
    return (
        *(leaves_of(each, of_parameters) for each in (params, shapes, state)),
        Leaf(dims, images),
        Leaf((batch,), labels, "", jnp.int32, CLASSES),
    )


def resnets() -> Iterator[Case]:
    """Steps of a ResNet."""
    optimizer = optax.sgd(0.1, 0.9)
    for name, norm in (("batch norm", batch_norms()), ("group norm", group_norms)):
        for layout, (images, of_parameters) in IMAGES.items():
            given = resnet_arguments(norm, optimizer, images, of_parameters)
            function = resnet_step(norm, optimizer)
            case = Case(f"ResNet step with {name}, {layout}", always(function), given)
            yield case
            if layout in ("data", "tensor"):
                yield gspmd(case)
    yield mapped_resnet(optimizer)


def mapped_resnet(optimizer: optax.GradientTransformation) -> Case:
    """A step in a `shard_map` with batch norms that are synchronised, and averaged gradients."""
    given = resnet_arguments(batch_norms(), optimizer, P(BOTH), whole)
    function = resnet_step(batch_norms("data"), optimizer, "data")

    def varying(params: Any, *rest: Any) -> Any:
        return function(params, *rest)

    def build(mesh: Mesh) -> Function:
        specs = (P(), P(), P(), P("data"), P("data"))
        made: Function = jax.shard_map(
            varying, mesh=mesh, in_specs=specs, out_specs=P(), check_vma=False
        )
        return made

    images = tuple(
        Leaf(leaf.dims, P("data"), leaf.kind, leaf.dtype, leaf.most) for leaf in given[3:]
    )
    return Case("ResNet step with Flax batch norm, shard_map", build, (*given[:3], *images), "row")


class Layer(nn.Module):
    """Attention and a perceptron, each behind a layer norm."""

    constrain: Constrain

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        batch, length, width = x.shape
        y = self.constrain(nn.LayerNorm()(x))
        heads = (batch, length, HEADS, width // HEADS)
        query, key, value = (
            nn.Dense(width, name=name)(y).reshape(heads) for name in ("query", "key", "value")
        )
        scores = jnp.einsum("bqhd,bkhd->bhqk", query, key) / (width // HEADS) ** 0.5
        seen = jnp.tril(jnp.ones((length, length), bool))
        weights = jax.nn.softmax(jnp.where(seen, scores, -1e9))
        mixed = jnp.einsum("bhqk,bkhd->bqhd", weights, value).reshape(x.shape)
        x = self.constrain(x + nn.Dense(width, name="out")(mixed))
        y = self.constrain(nn.LayerNorm()(x))
        y = nn.gelu(nn.Dense(4 * width, name="up")(y))
        return self.constrain(x + nn.Dense(width, name="down")(y))


class Gpt(nn.Module):
    """Two layers between an embedding and a dense layer."""

    constrain: Constrain
    is_scanned: bool = False

    @nn.compact
    def __call__(self, tokens: jax.Array) -> jax.Array:
        x = nn.Embed(VOCABULARY, WIDTH, name="embedding")(tokens)
        x = self.constrain(x + self.param("position", nn.initializers.normal(), (LENGTH, WIDTH)))
        if self.is_scanned:
            body = nn.scan(
                lambda layer, carry, _: (layer(carry), None),
                variable_axes={"params": 0},
                split_rngs={"params": True},
                length=2,
            )
            x, _ = body(Layer(self.constrain, name="layers"), x, None)
        else:
            for _ in range(2):
                x = Layer(self.constrain)(x)
        return nn.Dense(VOCABULARY, name="head")(nn.LayerNorm()(x))


def gpt_step(model: Gpt, optimizer: optax.GradientTransformation) -> Function:
    """A step of training on the next token."""

    def run(params: Any, state: Any, tokens: jax.Array, wanted: jax.Array) -> Any:
        def loss(params: Any) -> jax.Array:
            logits = model.apply({"params": params}, tokens)
            found: jax.Array = optax.softmax_cross_entropy_with_integer_labels(logits, wanted)
            return found.mean()

        value, gradients = jax.value_and_grad(loss)(params)
        updates, state = optimizer.update(gradients, state, params)
        return value, optax.apply_updates(params, updates), state

    return run


def by_tensor(path: str, dims: tuple[int, ...]) -> P:
    """Divides heads, the hidden dim of perceptrons, and the vocabulary."""
    first = [None] * (len(dims) - 1)
    if any(f"'{name}'" in path for name in ("query", "key", "value", "up", "head")):
        return P(*first, "model")
    if "'bias'" not in path and any(f"'{name}'" in path for name in ("out", "down", "embedding")):
        return P(*first[:-1], "model")
    return P()


# How tokens, activations and parameters are divided.
TOKENS: dict[str, tuple[P, P | None, SpecOf]] = {
    "data": (P(BOTH), None, whole),
    "tensor": (P("data"), None, by_tensor),
    "sequence": (P("data", "model"), P("data", "model"), whole),
    "tensor and sequence": (P("data"), P("data", "model"), by_tensor),
    "FSDP": (P(BOTH), P(BOTH), most_rows),
}


def constraint(mesh: Mesh, spec: P | None) -> Constrain:
    """Asks for activations to be divided."""
    if spec is None:
        return lambda x: x
    return lambda x: jax.lax.with_sharding_constraint(x, NamedSharding(mesh, spec))


def gpt_case(layout: str, is_scanned: bool = False) -> Case:
    """A step of a GPT with clipped gradients and AdamW."""
    tokens, activations, of_parameters = TOKENS[layout]
    optimizer = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(1e-3))
    dims = (8, LENGTH)
    params = jax.eval_shape(
        Gpt(lambda x: x, is_scanned).init,
        jax.random.key(0),
        jax.ShapeDtypeStruct(dims, jnp.int32),
    )["params"]
    state = jax.eval_shape(optimizer.init, params)
    leaf = Leaf(dims, tokens, "", jnp.int32, VOCABULARY)
    given = (leaves_of(params, of_parameters), leaves_of(state, of_parameters), leaf, leaf)

    def build(mesh: Mesh) -> Function:
        return gpt_step(Gpt(constraint(mesh, activations), is_scanned), optimizer)

    return Case(f"GPT step{' with scan' if is_scanned else ''}, {layout}", build, given)


def cases() -> Iterator[Case]:
    """All of them."""
    yield from resnets()
    for layout in TOKENS:
        case = gpt_case(layout)
        yield case
        if layout in ("data", "tensor"):
            yield gspmd(case)
    for layout in ("tensor", "FSDP"):
        yield gpt_case(layout, is_scanned=True)
