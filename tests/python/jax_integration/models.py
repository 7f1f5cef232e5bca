"""Training steps of models as people write them: Flax (linen and nnx) with Optax.

`size` scales them: 1 for tests, more for benchmarks.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
import optax
from flax import nnx

Jit = Callable[..., Any]


@dataclasses.dataclass(frozen=True)
class Training:
    """A model's step: `step(state, batch)` gives the next state and the loss."""

    step: Callable[[Any, Any], tuple[Any, jax.Array]]
    state: Any
    batch: Any


def normal(seed: int, *shape: int) -> jax.Array:
    """Random numbers."""
    return jax.random.normal(jax.random.key(seed), shape)


class Block(nn.Module):
    """A residual block."""

    width: int
    norm: str
    dtype: Any = jnp.float32

    @nn.compact
    def __call__(self, x: jax.Array, train: bool = True) -> jax.Array:
        def norm(y: jax.Array) -> jax.Array:
            if self.norm == "batch":
                return nn.BatchNorm(use_running_average=not train, dtype=self.dtype)(y)
            return nn.GroupNorm(num_groups=8, dtype=self.dtype)(y)

        y = nn.relu(norm(nn.Conv(self.width, (3, 3), use_bias=False, dtype=self.dtype)(x)))
        y = norm(nn.Conv(self.width, (3, 3), use_bias=False, dtype=self.dtype)(y))
        if x.shape[-1] != self.width:
            x = nn.Conv(self.width, (1, 1), dtype=self.dtype)(x)
        return nn.relu(x + y)


class ResNet(nn.Module):
    """Stages of blocks, each at half the resolution of the one before."""

    width: int
    blocks: int
    norm: str
    dtype: Any = jnp.float32

    @nn.compact
    def __call__(self, x: jax.Array, train: bool = True) -> jax.Array:
        x = nn.Conv(self.width, (3, 3), dtype=self.dtype)(x.astype(self.dtype))
        for stage in range(3):
            for _ in range(self.blocks):
                x = Block(self.width << stage, self.norm, self.dtype)(x, train)
            x = nn.avg_pool(x, (2, 2), (2, 2))
        return nn.Dense(10)(x.mean((1, 2)).astype(jnp.float32))


def resnet(size: int, norm: str, dtype: Any = jnp.float32) -> Training:
    """A ResNet with batch or group norm and Adam."""
    batch = normal(0, 4 * size, 16 * size, 16 * size, 3), jnp.arange(4 * size) % 10
    return classifier(ResNet(16 * size, size, norm, dtype), batch)


def classifier(model: nn.Module, batch: tuple[jax.Array, jax.Array]) -> Training:
    """The step of Adam of a linen model of images, which may have batch norms."""
    variables = jax.jit(model.init)(jax.random.key(1), batch[0])
    optimizer = optax.adam(1e-3)
    params, statistics = variables["params"], variables.get("batch_stats", {})

    def loss(params: Any, statistics: Any, batch: Any) -> Any:
        images, labels = batch
        collections = {"params": params} | ({"batch_stats": statistics} if statistics else {})
        logits, changed = model.apply(collections, images, mutable=["batch_stats"])
        lost = optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean()
        return lost, changed.get("batch_stats", {})

    def step(state: Any, batch: Any) -> Any:
        params, statistics, moments = state
        value, slopes = jax.value_and_grad(loss, has_aux=True)(params, statistics, batch)
        updates, moments = optimizer.update(slopes, moments, params)
        return (optax.apply_updates(params, updates), value[1], moments), value[0]

    return Training(step, (params, statistics, optimizer.init(params)), batch)


class UNet(nn.Module):
    """A diffusion U-Net: group norms, SiLU, a skip for each level, remat of each block."""

    width: int
    levels: int = 2

    @nn.compact
    def __call__(self, x: jax.Array, time: jax.Array) -> jax.Array:
        emb = nn.silu(nn.Dense(4 * self.width)(jnp.sin(time[:, None] * jnp.arange(16.0))))
        skips = []
        x = nn.Conv(self.width, (3, 3))(x)
        for level in range(self.levels):
            x = nn.remat(UNetBlock)(self.width << level)(x, emb)
            skips.append(x)
            x = nn.avg_pool(x, (2, 2), (2, 2))
        x = nn.remat(UNetBlock)(self.width << self.levels)(x, emb)
        for level in reversed(range(self.levels)):
            n, h, w, c = x.shape
            x = jnp.concatenate(
                [jax.image.resize(x, (n, 2 * h, 2 * w, c), "nearest"), skips[level]], -1
            )
            x = nn.remat(UNetBlock)(self.width << level)(x, emb)
        return nn.Conv(3, (3, 3))(nn.silu(nn.GroupNorm(num_groups=8)(x)))


class UNetBlock(nn.Module):
    """Two convolutions with group norms, and the embedding of the time between them."""

    width: int

    @nn.compact
    def __call__(self, x: jax.Array, emb: jax.Array) -> jax.Array:
        y = nn.Conv(self.width, (3, 3))(nn.silu(nn.GroupNorm(num_groups=8)(x)))
        y = y + nn.Dense(self.width)(emb)[:, None, None]
        y = nn.Conv(self.width, (3, 3))(nn.silu(nn.GroupNorm(num_groups=8)(y)))
        return y + nn.Dense(self.width)(x)


def unet(size: int) -> Training:
    """A small U-Net."""
    return diffusion(UNet(16 * size), normal(0, 2 * size, 16 * size, 16 * size, 3))


def diffusion(model: nn.Module, images: jax.Array) -> Training:
    """The step of a U-Net with Adam, clipped gradients and an average of its parameters."""
    batch = images, jnp.linspace(0, 1, len(images))
    params = jax.jit(model.init)(jax.random.key(1), *batch)
    optimizer = optax.chain(optax.clip_by_global_norm(1.0), optax.adam(1e-3))

    def loss(params: Any, batch: Any) -> jax.Array:
        return ((model.apply(params, *batch) - batch[0]) ** 2).mean()

    def step(state: Any, batch: Any) -> Any:
        params, average, moments = state
        value, slopes = jax.value_and_grad(loss)(params, batch)
        updates, moments = optimizer.update(slopes, moments)
        params = optax.apply_updates(params, updates)
        average = optax.incremental_update(params, average, 0.01)
        return (params, average, moments), value

    return Training(step, (params, params, optimizer.init(params)), batch)


class Layer(nnx.Module):
    """A transformer's layer."""

    def __init__(
        self, width: int, causal: bool, dtype: Any, rngs: nnx.Rngs, heads: int = 4
    ) -> None:
        self.norms = nnx.List([nnx.LayerNorm(width, dtype=dtype, rngs=rngs) for _ in range(2)])
        self.attention = nnx.MultiHeadAttention(
            num_heads=heads, in_features=width, decode=False, dtype=dtype, rngs=rngs
        )
        self.up = nnx.Linear(width, 4 * width, dtype=dtype, rngs=rngs)
        self.down = nnx.Linear(4 * width, width, dtype=dtype, rngs=rngs)
        self.causal = causal

    def __call__(self, x: jax.Array) -> jax.Array:
        mask = nnx.make_causal_mask(x[..., 0]) if self.causal else None
        x = x + self.attention(self.norms[0](x), mask=mask)
        return x + self.down(nnx.gelu(self.up(self.norms[1](x))))


class ViT(nnx.Module):
    """A vision transformer."""

    def __init__(
        self, width: int, layers: int, rngs: nnx.Rngs, side: int = 4, heads: int = 4
    ) -> None:
        patch = (side, side)
        self.patches = nnx.Conv(3, width, patch, strides=patch, rngs=rngs)
        self.layers = nnx.List([Layer(width, False, None, rngs, heads) for _ in range(layers)])
        self.norm = nnx.LayerNorm(width, rngs=rngs)
        self.head = nnx.Linear(width, 10, rngs=rngs)

    def __call__(self, x: jax.Array) -> jax.Array:
        x = self.patches(x)
        x = x.reshape(x.shape[0], -1, x.shape[-1])
        for layer in self.layers:
            x = layer(x)
        return self.head(self.norm(x).mean(1))


class GPT(nnx.Module):
    """A language model whose products are in bf16."""

    def __init__(
        self, width: int, layers: int, rngs: nnx.Rngs, words: int = 128, heads: int = 4
    ) -> None:
        self.embedding = nnx.Embed(words, width, rngs=rngs)
        half = jnp.bfloat16
        self.layers = nnx.List([Layer(width, True, half, rngs, heads) for _ in range(layers)])
        self.norm = nnx.LayerNorm(width, rngs=rngs)

    def __call__(self, tokens: jax.Array) -> jax.Array:
        x = self.embedding(tokens)
        for layer in self.layers:
            x = layer(x)
        return self.embedding.attend(self.norm(x))


def of_nnx(model: nnx.Module, loss: Callable[[Any, Any], jax.Array], batch: Any) -> Training:
    """The step of AdamW of an nnx model."""
    graph, params, rest = nnx.split(model, nnx.Param, ...)
    optimizer = optax.adamw(1e-3)

    def step(state: Any, batch: Any) -> Any:
        params, moments = state

        def lost(params: Any) -> jax.Array:
            return loss(nnx.merge(graph, params, rest), batch)

        value, slopes = jax.value_and_grad(lost)(params)
        updates, moments = optimizer.update(slopes, moments, params)
        return (optax.apply_updates(params, updates), moments), value

    return Training(step, (params, optimizer.init(params)), batch)


def vit(size: int) -> Training:
    """A small vision transformer."""
    batch = normal(0, 4 * size, 16 * size, 16 * size, 3), jnp.arange(4 * size) % 10
    return transformer_of_images(ViT(64 * size, 2 * size, nnx.Rngs(0)), batch)


def transformer_of_images(model: ViT, batch: tuple[jax.Array, jax.Array]) -> Training:
    """The step of a vision transformer."""

    def loss(model: Any, batch: Any) -> jax.Array:
        logits = model(batch[0])
        return optax.softmax_cross_entropy_with_integer_labels(logits, batch[1]).mean()

    return of_nnx(model, loss, batch)


def gpt(size: int) -> Training:
    """A small language model."""
    tokens = jax.random.randint(jax.random.key(0), (2, 2 * size, 16 * size), 0, 128)
    return language_model(GPT(64 * size, 2 * size, nnx.Rngs(0)), tokens)


def language_model(model: GPT, tokens: jax.Array) -> Training:
    """The step of a language model that goes through the parts of a batch in a scan."""

    def loss(model: Any, parts: Any) -> jax.Array:
        def part(total: jax.Array, tokens: jax.Array) -> Any:
            logits = model(tokens[:, :-1])
            lost = optax.softmax_cross_entropy_with_integer_labels(logits, tokens[:, 1:])
            return total + lost.mean(), None

        return jax.lax.scan(part, jnp.zeros(()), parts)[0] / len(parts)

    return of_nnx(model, loss, tokens)


MODELS: dict[str, Callable[[int], Training]] = {
    "resnet_batch_norm": lambda size: resnet(size, "batch"),
    "resnet_group_norm": lambda size: resnet(size, "group"),
    "resnet_group_norm_bf16": lambda size: resnet(size, "group", jnp.bfloat16),
    "unet": unet,
    "vit": vit,
    "gpt": gpt,
}
