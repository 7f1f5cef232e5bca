"""The programs of `engine_door.py`: what people train, for one device and for a mesh of several."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import Mesh, PartitionSpec

Array = Any
Shape = tuple[int, ...]

# The axes of the mesh, which divide batches and features of weights.
BATCH, MODEL = "batch", "model"


@dataclass(frozen=True)
class Program:
    """A function with the shapes of its arguments, in f32."""

    name: str
    # Makes the function for a mesh.
    on: Callable[[Mesh], Callable[..., Any]]
    shapes: list[Shape]
    # The numbers of arguments whose last dim is divided along `MODEL`. The first dim of argument 0 is
    # the batch, and all other dims are whole on each device.
    features: tuple[int, ...] = ()
    # The numbers of arguments whose memory the results may take.
    donated: tuple[int, ...] = ()
    specs: list[PartitionSpec] = field(init=False)

    def __post_init__(self) -> None:
        specs = [PartitionSpec() for _ in self.shapes]
        specs[0] = PartitionSpec(BATCH)
        for number in self.features:
            specs[number] = PartitionSpec(*[None] * (len(self.shapes[number]) - 1), MODEL)
        object.__setattr__(self, "specs", specs)


def group_norm(x: Array, scale: Array, bias: Array) -> Array:
    """Over 32 groups of the last dim."""
    y = x.reshape(*x.shape[:-1], 32, -1)
    axes = (*range(1, x.ndim - 1), x.ndim)
    mean = y.mean(axes, keepdims=True)
    var = ((y - mean) ** 2).mean(axes, keepdims=True)
    return ((y - mean) * lax.rsqrt(var + 1e-5)).reshape(x.shape) * scale + bias


def one_pass(x: Array, scale: Array, bias: Array) -> Array:
    """The same, with the variance as Flax and PyTorch compute it."""
    y = x.reshape(*x.shape[:-1], 32, -1)
    axes = (*range(1, x.ndim - 1), x.ndim)
    mean = y.mean(axes, keepdims=True)
    var = jnp.maximum((y * y).mean(axes, keepdims=True) - mean * mean, 0)
    return ((y - mean) * lax.rsqrt(var + 1e-5)).reshape(x.shape) * scale + bias


def batch_norm(x: Array, scale: Array, bias: Array) -> Array:
    """Over all dims but the last."""
    axes = tuple(range(x.ndim - 1))
    mean = x.mean(axes)
    var = ((x - mean) ** 2).mean(axes)
    return (x - mean) * lax.rsqrt(var + 1e-5) * scale + bias


def layer_norm(x: Array, scale: Array, bias: Array) -> Array:
    """Over the last dim."""
    mean = x.mean(-1, keepdims=True)
    var = ((x - mean) ** 2).mean(-1, keepdims=True)
    return (x - mean) * lax.rsqrt(var + 1e-5) * scale + bias


def per_head(x: Array, scale: Array) -> Array:
    """An RMS norm of each of 16 heads, and rotary embeddings."""
    y = x.reshape(*x.shape[:2], 16, -1)
    y = y * lax.rsqrt((y * y).mean(-1, keepdims=True) + 1e-6) * scale
    half = y.shape[-1] // 2
    turn = jnp.arange(y.shape[1])[:, None, None] / 1e4 ** (jnp.arange(half) / half)
    one, two = y[..., :half], y[..., half:]
    cos, sin = jnp.cos(turn), jnp.sin(turn)
    return jnp.concatenate([one * cos - two * sin, two * cos + one * sin], -1)


def attention(x: Array, q: Array, k: Array, v: Array, scale: Array) -> Array:
    """With norms of queries and keys."""
    queries, keys = per_head(x @ q, scale), per_head(x @ k, scale)
    values = (x @ v).reshape(keys.shape)
    scores = jnp.einsum("bqhd,bkhd->bhqk", queries, keys) / 8
    return jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(scores), values).reshape(x.shape)


def transformer(x: Array, qkv: Array, out: Array, up: Array, down: Array, scale: Array, bias: Array) -> Array:
    """A block of a GPT."""
    y = layer_norm(x, scale, bias) @ qkv
    queries, keys, values = (part.reshape(*x.shape[:2], 16, -1) for part in jnp.split(y, 3, -1))
    scores = jnp.einsum("bqhd,bkhd->bhqk", queries, keys) / 8
    later = jnp.arange(x.shape[1])[:, None] < jnp.arange(x.shape[1])
    weights = jax.nn.softmax(jnp.where(later, -jnp.inf, scores))
    x = x + jnp.einsum("bhqk,bkhd->bqhd", weights, values).reshape(x.shape) @ out
    return x + jax.nn.gelu(layer_norm(x, scale, bias) @ up) @ down


def conv(x: Array, w: Array) -> Array:
    """A convolution of images with channels last."""
    return lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))


def basic_block(norm: Callable[..., Array]) -> Callable[..., Array]:
    """Two convolutions, each with a norm and SiLU, beside the input."""

    def run(x: Array, w: Array, u: Array, scale: Array, bias: Array) -> Array:
        y = jax.nn.silu(norm(conv(x, w), scale, bias))
        return x + jax.nn.silu(norm(conv(y, u), scale, bias))

    return run


def bottleneck(x: Array, a: Array, b: Array, c: Array, narrow: Array, wide: Array) -> Array:
    """A ResNet's block of three convolutions with batch norms."""
    y = jax.nn.relu(batch_norm(conv(x, a), narrow, narrow))
    y = jax.nn.relu(batch_norm(conv(y, b), narrow, narrow))
    return jax.nn.relu(x + batch_norm(conv(y, c), wide, wide))


def unet_block(x: Array, time: Array, embed: Array, w: Array, u: Array, scale: Array, bias: Array) -> Array:
    """A residual block of a diffusion model, with an embedding of time."""
    y = conv(jax.nn.silu(group_norm(x, scale, bias)), w)
    y = y + (jax.nn.silu(time) @ embed)[:, None, None, :]
    return x + conv(jax.nn.silu(group_norm(y, scale, bias)), u)


def scanned(x: Array, w: Array, scale: Array, bias: Array) -> Array:
    """Layers in a loop, which are computed again for the gradient."""

    def layer(x: Array, w: Array) -> tuple[Array, None]:
        return x + jax.nn.gelu(layer_norm(x, scale, bias) @ w), None

    return lax.scan(jax.checkpoint(layer), x, w)[0]


def mixed(x: Array, scale: Array, bias: Array) -> Array:
    """A one-pass norm of another norm."""
    return jnp.sin(one_pass(jnp.cos(batch_norm(x, scale, bias)), scale, bias))


def synchronised(mesh: Mesh) -> Callable[..., Array]:
    """A batch norm whose exchanges the program writes itself."""

    def local(x: Array, scale: Array, bias: Array) -> Array:
        mean = lax.pmean(x.mean((0, 1, 2)), BATCH)
        var = lax.pmean(((x - mean) ** 2).mean((0, 1, 2)), BATCH)
        return (x - mean) * lax.rsqrt(var + 1e-5) * scale + bias

    whole = PartitionSpec()
    specs = (PartitionSpec(BATCH), whole, whole)
    return jax.shard_map(local, mesh=mesh, in_specs=specs, out_specs=specs[0])


def gradient(f: Callable[..., Array]) -> Callable[..., Any]:
    """The value and the gradients by the first three arguments of the sum of squares."""
    return jax.value_and_grad(lambda *args: (f(*args) ** 2).sum(), argnums=(0, 1, 2))


def descent(x: Array, w: Array, u: Array, scale: Array, bias: Array) -> tuple[Array, Array]:
    """A step of gradient descent, which returns the new weights of a block with group norms."""
    block = basic_block(group_norm)
    grads = jax.grad(lambda w, u: (block(x, w, u, scale, bias) ** 2).sum(), argnums=(0, 1))(w, u)
    return w - 1e-3 * grads[0], u - 1e-3 * grads[1]


def programs() -> Iterator[Program]:
    """All programs."""

    def plain(name: str, f: Callable[..., Any], shapes: list[Shape], **more: Any) -> Program:
        return Program(name, lambda _: f, shapes, **more)

    image, channels = (8, 64, 64, 320), [(320,), (320,)]
    words, width = (8, 512, 1024), [(1024,), (1024,)]
    norms = {"group norm": group_norm, "one-pass group norm": one_pass, "batch norm": batch_norm}
    for name, norm in norms.items():
        yield plain(name, norm, [image, *channels])
        yield plain(f"{name}, gradient", gradient(norm), [image, *channels])
    yield plain("layer norm", layer_norm, [words, *width])
    yield plain("layer norm, gradient", gradient(layer_norm), [words, *width])
    heads = {"shapes": [words, *[(1024, 1024)] * 3, (64,)], "features": (1, 2, 3)}
    yield plain("attention with per-head norms", attention, **heads)
    yield plain("attention with per-head norms, gradient", gradient(attention), **heads)
    kernels = [(3, 3, 320, 320)] * 2
    for name, norm in norms.items():
        yield plain(f"block with {name}, step", gradient(basic_block(norm)), [image, *kernels, *channels])
    narrow = [(1, 1, 256, 64), (3, 3, 64, 64), (1, 1, 64, 256), (64,), (256,)]
    yield plain("ResNet's bottleneck, step", gradient(bottleneck), [(32, 56, 56, 256), *narrow])
    embedded = [(8, 1280), (1280, 320), *kernels, *channels]
    yield plain("U-Net's block, step", gradient(unet_block), [(8, 32, 32, 320), *embedded])
    matrices = [(1024, 3072), (1024, 1024), (1024, 4096), (4096, 1024)]
    yield plain("GPT's block, step", gradient(transformer), [words, *matrices, *width], features=(1, 3))
    yield plain("one-pass group norm of a batch norm, gradient", gradient(mixed), [image, *channels])
    yield plain("scan of remat layers, step", gradient(scanned), [words, (4, 1024, 1024), *width])
    yield plain(
        "descent of a block, weights donated", descent, [image, *kernels, *channels], donated=(1, 2)
    )
    yield Program("shard_map of a batch norm", synchronised, [image, *channels])
    yield Program(
        "shard_map of a batch norm, gradient", lambda mesh: gradient(synchronised(mesh)), [image, *channels]
    )
