"""Training steps of models at the sizes that people train, in Flax with Optax."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

TESTS = Path(__file__).resolve().parents[1] / "tests" / "python" / "jax_integration"
sys.path.insert(0, str(TESTS))

import flax.linen as nn
import jax
import jax.numpy as jnp
from flax import nnx

from models import (
    GPT,
    Training,
    UNet,
    ViT,
    classifier,
    diffusion,
    language_model,
    normal,
    transformer_of_images,
)

IMAGES = 8


class Bottleneck(nn.Module):
    """A residual block of ResNet-50."""

    width: int
    stride: int
    norm: Callable[[], nn.Module]

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        strides = (self.stride, self.stride)
        y = nn.relu(self.norm()(nn.Conv(self.width, (1, 1), use_bias=False)(x)))
        y = nn.relu(self.norm()(nn.Conv(self.width, (3, 3), strides, use_bias=False)(y)))
        y = self.norm()(nn.Conv(4 * self.width, (1, 1), use_bias=False)(y))
        if x.shape != y.shape:
            x = self.norm()(nn.Conv(4 * self.width, (1, 1), strides, use_bias=False)(x))
        return nn.relu(x + y)


class ResNet50(nn.Module):
    """ResNet-50 with batch norm, or with group norm of 32 groups."""

    norm: str

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        def norm() -> Any:
            if self.norm == "batch":
                return nn.BatchNorm(use_running_average=False)
            return nn.GroupNorm(num_groups=32)

        x = nn.relu(norm()(nn.Conv(64, (7, 7), (2, 2), use_bias=False)(x)))
        x = nn.max_pool(x, (3, 3), (2, 2), "SAME")
        for stage, blocks in enumerate((3, 4, 6, 3)):
            for block in range(blocks):
                stride = 2 if stage > 0 and block == 0 else 1
                x = Bottleneck(64 << stage, stride, norm)(x)
        return nn.Dense(1000)(x.mean((1, 2)))


def images() -> tuple[jax.Array, jax.Array]:
    """Images and their labels."""
    return normal(0, IMAGES, 224, 224, 3), jnp.arange(IMAGES)


def gpt() -> Training:
    """GPT-2 small, 256 tokens in each of two parts of a batch."""
    tokens = jax.random.randint(jax.random.key(0), (2, 1, 257), 0, 50257)
    return language_model(GPT(768, 12, nnx.Rngs(0), words=50257, heads=12), tokens)


REAL: dict[str, Callable[[], Training]] = {
    "ResNet-50 with batch norm, f32[8,224,224,3]": lambda: classifier(ResNet50("batch"), images()),
    "ResNet-50 with group norm, f32[8,224,224,3]": lambda: classifier(ResNet50("group"), images()),
    "diffusion U-Net, width 128, f32[4,64,64,3]": lambda: diffusion(
        UNet(128, levels=3), normal(0, 4, 64, 64, 3)
    ),
    "ViT-S/16, f32[8,224,224,3]": lambda: transformer_of_images(
        ViT(384, 12, nnx.Rngs(0), side=16, heads=6), images()
    ),
    "GPT-2 small in bf16, 2 x 256 tokens": gpt,
}
