"""Training steps of whole models, written in plain JAX, of 6,700 to 78,000 instructions.

Each function gives the HLO text of a step; no array is made.  Parameters are the leaves of a
tree, one argument each, as a front end passes them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

Tree = Any


class Parameters:
    """Parameters by their order of use: first their shapes are noted, then they are handed out."""

    def __init__(self, values: list[jax.Array] | None = None):
        self.values = values
        self.shapes: list[tuple[int, ...]] = []

    def __call__(self, *shape: int) -> jax.Array:
        """The next parameter."""
        self.shapes.append(shape)
        if self.values is None:
            return jnp.zeros(shape, jnp.float32)
        return self.values[len(self.shapes) - 1]


def shapes_of(loss: Callable[..., jax.Array], inputs: list[jax.ShapeDtypeStruct]) -> Tree:
    """The parameters that a loss asks for."""
    parameters = Parameters()
    jax.eval_shape(lambda *args: loss(parameters, *args), *inputs)
    return [jax.ShapeDtypeStruct(shape, jnp.float32) for shape in parameters.shapes]


def gradient_text(loss: Callable[..., jax.Array], *inputs: jax.ShapeDtypeStruct) -> str:
    """The gradient of `loss(parameters, *inputs)` by all parameters."""
    step = jax.grad(lambda values, *args: loss(Parameters(values), *args))
    return text_of(step, shapes_of(loss, list(inputs)), *inputs)


def adamw_text(loss: Callable[..., jax.Array], *inputs: jax.ShapeDtypeStruct) -> str:
    """A step of AdamW: new parameters and both moments, and the loss."""

    def step(values: Tree, first: Tree, second: Tree, count: jax.Array, *args: jax.Array) -> Tree:
        lost, slopes = jax.value_and_grad(lambda v: loss(Parameters(v), *args))(values)
        count = count + 1

        first = [0.9 * m + 0.1 * g for m, g in zip(first, slopes, strict=True)]
        second = [0.999 * v + 0.001 * g * g for v, g in zip(second, slopes, strict=True)]
        means = [m / (1 - 0.9**count) for m in first]
        roots = [jnp.sqrt(v / (1 - 0.999**count)) + 1e-8 for v in second]
        moves = zip(values, means, roots, strict=True)
        moved = [value - 3e-4 * (m / root + 0.01 * value) for value, m, root in moves]
        return moved, first, second, count, lost

    shapes = shapes_of(loss, list(inputs))
    return text_of(step, shapes, shapes, shapes, jax.ShapeDtypeStruct((), jnp.float32), *inputs)


def text_of(step: Callable[..., Any], *args: Any) -> str:
    """HLO text, as XLA prints it."""
    return jax.jit(step).lower(*args).compiler_ir("hlo").as_hlo_text()


def convolution(p: Parameters, x: jax.Array, features: int, size: int, stride: int = 1) -> jax.Array:
    """A convolution of an image, channels last, with a bias."""
    kernel = p(size, size, x.shape[-1], features)
    dims = ("NHWC", "HWIO", "NHWC")
    y = lax.conv_general_dilated(x, kernel, (stride, stride), "SAME", dimension_numbers=dims)
    return y + p(features)


def dense(p: Parameters, x: jax.Array, features: int) -> jax.Array:
    """A matrix product with a bias."""
    return x @ p(x.shape[-1], features) + p(features)


def group_norm(p: Parameters, x: jax.Array, groups: int = 32) -> jax.Array:
    """Group norm of an image, channels last."""
    b, h, w, c = x.shape
    g = x.reshape(b, h, w, groups, c // groups)
    mean = g.mean((1, 2, 4), keepdims=True)
    variance = jnp.square(g - mean).mean((1, 2, 4), keepdims=True)
    normed = ((g - mean) * lax.rsqrt(variance + 1e-5)).reshape(x.shape)
    return normed * p(c) + p(c)


def layer_norm(p: Parameters, x: jax.Array) -> jax.Array:
    """Layer norm over the last dim."""
    mean = x.mean(-1, keepdims=True)
    variance = jnp.square(x - mean).mean(-1, keepdims=True)
    return (x - mean) * lax.rsqrt(variance + 1e-5) * p(x.shape[-1]) + p(x.shape[-1])


def attention(p: Parameters, x: jax.Array, of: jax.Array, heads: int, causal: bool) -> jax.Array:
    """Attention of tokens to others."""
    width = x.shape[-1]
    parts = (dense(p, t, width) for t in (x, of, of))
    q, k, v = (t.reshape(*t.shape[:-1], heads, width // heads) for t in parts)
    scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) * (width // heads) ** -0.5
    if causal:
        scores = jnp.where(jnp.tril(jnp.ones(scores.shape[-2:], bool)), scores, -1e9)
    mixed = jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(scores), v)
    return dense(p, mixed.reshape(x.shape), width)


def transformer(p: Parameters, image: jax.Array, context: jax.Array, layers: int) -> jax.Array:
    """Attention of the pixels of an image to each other and to a text."""
    b, h, w, c = image.shape
    x = dense(p, group_norm(p, image).reshape(b, h * w, c), c)
    for _ in range(layers):
        normed = layer_norm(p, x)
        x = x + attention(p, normed, normed, 8, causal=False)
        x = x + attention(p, layer_norm(p, x), dense(p, context, c), 8, causal=False)
        hidden, gate = jnp.split(dense(p, layer_norm(p, x), 8 * c), 2, -1)
        x = x + dense(p, hidden * jax.nn.gelu(gate), c)
    return image + dense(p, x, c).reshape(image.shape)


def residual(p: Parameters, x: jax.Array, time: jax.Array, features: int) -> jax.Array:
    """Two convolutions, each after a group norm, with the step's embedding between."""
    y = convolution(p, jax.nn.silu(group_norm(p, x)), features, 3)
    y = y + dense(p, jax.nn.silu(time), features)[:, None, None]
    y = convolution(p, jax.nn.silu(group_norm(p, y)), features, 3)
    return y + (x if x.shape == y.shape else convolution(p, x, features, 1))


def unet_loss(
    p: Parameters,
    x: jax.Array,
    time: jax.Array,
    context: jax.Array,
    widths: tuple[int, ...] = (320, 640, 1280, 1280),
    blocks: int = 2,
) -> jax.Array:
    """A diffusion U-Net as Stable Diffusion has it; attention in all levels but the last."""
    angles = time[:, None] * jnp.exp(-jnp.arange(160) / 160 * 9.2)
    emb = jnp.concatenate([jnp.sin(angles), jnp.cos(angles)], -1)
    emb = dense(p, jax.nn.silu(dense(p, emb, 4 * widths[0])), 4 * widths[0])
    h = convolution(p, x, widths[0], 3)
    kept = [h]
    for level, width in enumerate(widths):
        for _ in range(blocks):
            h = residual(p, h, emb, width)
            if level < len(widths) - 1:
                h = transformer(p, h, context, 1)
            kept.append(h)
        if level < len(widths) - 1:
            h = convolution(p, h, width, 3, 2)
            kept.append(h)
    h = residual(p, h, emb, widths[-1])
    h = transformer(p, h, context, 1)
    h = residual(p, h, emb, widths[-1])
    for level, width in reversed(list(enumerate(widths))):
        for _ in range(blocks + 1):
            h = residual(p, jnp.concatenate([h, kept.pop()], -1), emb, width)
            if level < len(widths) - 1:
                h = transformer(p, h, context, 1)
        if level > 0:
            b, rows, columns, c = h.shape
            h = convolution(p, jax.image.resize(h, (b, 2 * rows, 2 * columns, c), "nearest"), c, 3)
    h = convolution(p, jax.nn.silu(group_norm(p, h)), x.shape[-1], 3)
    return jnp.mean(jnp.square(h - x))


def batch_norm(p: Parameters, x: jax.Array) -> jax.Array:
    """Batch norm of a training step."""
    mean, square = x.mean((0, 1, 2)), jnp.square(x).mean((0, 1, 2))
    c = x.shape[-1]
    return (x - mean) * lax.rsqrt(square - jnp.square(mean) + 1e-5) * p(c) + p(c)


def resnet_loss(p: Parameters, x: jax.Array, labels: jax.Array) -> jax.Array:
    """ResNet-50."""
    h = jax.nn.relu(batch_norm(p, convolution(p, x, 64, 7, 2)))
    h = lax.reduce_window(h, -jnp.inf, lax.max, (1, 3, 3, 1), (1, 2, 2, 1), "SAME")
    for stage, blocks in enumerate((3, 4, 6, 3)):
        for block in range(blocks):
            stride = 2 if stage > 0 and block == 0 else 1
            width = 64 << stage
            y = jax.nn.relu(batch_norm(p, convolution(p, h, width, 1)))
            y = jax.nn.relu(batch_norm(p, convolution(p, y, width, 3, stride)))
            y = batch_norm(p, convolution(p, y, 4 * width, 1))
            same = block > 0
            h = jax.nn.relu(y + (h if same else batch_norm(p, convolution(p, h, 4 * width, 1, stride))))
    logits = dense(p, h.mean((1, 2)), 1000)
    return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(logits), labels[:, None], 1))


def gpt_loss(p: Parameters, tokens: jax.Array, layers: int, width: int = 768) -> jax.Array:
    """A GPT, its layers written out."""
    embedding = p(50257, width)
    h = embedding[tokens] + p(tokens.shape[1], width)
    for _ in range(layers):
        normed = layer_norm(p, h)
        h = h + attention(p, normed, normed, 12, causal=True)
        h = h + dense(p, jax.nn.gelu(dense(p, layer_norm(p, h), 4 * width)), width)
    logits = jax.nn.log_softmax(layer_norm(p, h) @ embedding.T)
    return -jnp.mean(jnp.take_along_axis(logits[:, :-1], tokens[:, 1:, None], 2))


def array(*shape: int, of: Any = jnp.float32) -> jax.ShapeDtypeStruct:
    """An argument of a step."""
    return jax.ShapeDtypeStruct(shape, of)


def gpt_text(layers: int) -> str:
    """A step of AdamW of a GPT."""
    tokens = array(4, 256, of=jnp.int32)
    return adamw_text(lambda p, inputs: gpt_loss(p, inputs, layers), tokens)


def models() -> Iterator[tuple[str, Callable[[], str]]]:
    """Names, and what makes the texts, small ones first."""
    images = array(4, 64, 64, 4), array(4), array(4, 77, 768)
    labels = array(8, of=jnp.int32)
    yield "resnet50_grad", lambda: gradient_text(resnet_loss, array(8, 224, 224, 3), labels)
    yield "gpt_12_adamw", lambda: gpt_text(12)
    yield "unet_grad", lambda: gradient_text(unet_loss, *images)
    yield "unet_adamw", lambda: adamw_text(unet_loss, *images)
    yield "gpt_96_adamw", lambda: gpt_text(96)
