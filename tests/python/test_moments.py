"""`optimize`, also with `fast_math`, against JAX in f64: what sums of what a mean leaves, and
sums about a sample's mean, cost in accuracy.

The gradients of norms run through XLA:CPU as JAX writes them and as they are
rewritten, on data that are far from zero, nearly constant, or whose sample says
little of them.  Both are compared with JAX in f64.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tilewright as tw

import tool
import xla
from entries import check_each

sys.path.insert(0, str(tool.FIXTURES))

import programs

SHAPE = (4, 16, 16, 64)
CHANNELS = SHAPE[-1]

# So many times the error of the original may that of the rewritten program be ...
WORSE = 1.5
# ... and by so many roundings more, of the largest magnitude of the output: an
# original that was right by luck says nothing.
LUCK = 4
# Where no more than one value in 25 is sampled and the sample is all that stands out,
# sums about its mean are up to 26 times as large, and so is what is rounded.
LUCK_OF_A_SAMPLE = 26


def batch_norm_bf16(x: jax.Array, scale: jax.Array, bias: jax.Array) -> jax.Array:
    """Batch norm of bf16 in f32."""
    return programs.batch_norm(x.astype(jnp.float32), scale, bias)


NORMS: dict[str, Callable[..., jax.Array]] = {
    "batch": programs.batch_norm,
    "batch_bf16": batch_norm_bf16,
    "instance": programs.instance_norm,
    "group": functools.partial(programs.group_norm_nhwc, groups=16),
}


def outlier(x: np.ndarray) -> np.ndarray:
    """One pixel is larger than all others together."""
    x[0, 5, 7] = 1e5
    return x


def padded(x: np.ndarray) -> np.ndarray:
    """Zeros around what is far from zero."""
    inner = np.zeros_like(x)
    inner[:, 2:-2, 2:-2] = 1000 + x[:, 2:-2, 2:-2]
    return inner


def constant_channels(x: np.ndarray) -> np.ndarray:
    """Some channels have no variance."""
    x[..., ::3] = 7.3
    return x


def mostly_zero(x: np.ndarray) -> np.ndarray:
    """Three of four values are zero."""
    x[:, ::2] = 0
    x[:, :, ::2] = 0
    return x


def sampled_images(x: np.ndarray) -> np.ndarray:
    """What stands out is all that a sample of whole batches meets."""
    x[1::4, 1::4] += 1e4
    return x


def sampled_pixels(x: np.ndarray) -> np.ndarray:
    """What stands out is all that a sample of each image meets."""
    x[:, 1::4, 8:12] += 1e4
    return x


def channels_in_turn(x: np.ndarray) -> np.ndarray:
    """Every other channel is far from zero."""
    x[..., 1::2] += 1e4
    return x


DATA: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "normal": lambda x: x,
    "around_100": lambda x: x + 100,
    "around_1000": lambda x: x + 1000,
    "around_10000": lambda x: x + 1e4,
    "little_variance": lambda x: 1 + 1e-3 * x,
    "nearly_constant": lambda x: 1000 + 1e-2 * x,
    "outlier": outlier,
    "padded": padded,
    "constant_channels": constant_channels,
    "mostly_zero": mostly_zero,
    "sampled_images": sampled_images,
    "sampled_pixels": sampled_pixels,
    "channels_in_turn": channels_in_turn,
}


@dataclass(frozen=True)
class Original:
    """A program as it is: its text, compiled, and in f64."""

    text: str
    compiled: xla.Executable
    exact: Callable[..., Any]

    def errors(
        self, rewritten: xla.Executable, inputs: list[np.ndarray]
    ) -> list[tuple[float, float]]:
        """Of each output, the largest errors of both forms, as fractions of the
        largest magnitude."""
        with jax.enable_x64(True):
            wide = [jnp.asarray(np.asarray(array, np.float64)) for array in inputs]
            exact = [np.asarray(array) for array in self.exact(*wide)]
        both = [executable.run(inputs) for executable in (self.compiled, rewritten)]
        return [
            (off(was, right), off(now, right)) for was, now, right in zip(*both, exact)
        ]


def off(actual: np.ndarray, exact: np.ndarray) -> float:
    """The largest error, as a fraction of the largest magnitude."""
    assert np.isfinite(np.asarray(actual, np.float64)).all()
    error = np.abs(np.asarray(actual, np.float64) - exact).max()
    return float(error / max(np.abs(exact).max(), 1e-30))


@pytest.fixture(scope="module")
def small_target(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """tpu-like with so little vector memory that the images here do not stay in it."""
    source = tool.ROOT / "crates/target/machines/tpu-like.toml"
    text = source.read_text()
    assert "vector_memory_bytes = 134_217_728" in text
    path = tmp_path_factory.mktemp("target") / "small.toml"
    small = text.replace("vector_memory_bytes = 134_217_728", "vector_memory_bytes = 4_194_304")
    path.write_text(small.replace('name = "tpu-like"', 'name = "small"'))
    return path


# What is said to be done by default, and with `fast_math`.
SAID = {"default": "[factored-sums]", "fast_math": "[shifted-moments]"}


@functools.cache
def original(name: str, gradient: bool) -> Original:
    """A norm, or its output and gradients."""
    image = jnp.bfloat16 if name.endswith("bf16") else jnp.float32
    shapes = [
        jax.ShapeDtypeStruct(SHAPE, image),
        jax.ShapeDtypeStruct((CHANNELS,), jnp.float32),
        jax.ShapeDtypeStruct((CHANNELS,), jnp.float32),
    ]
    if gradient:
        shapes.append(jax.ShapeDtypeStruct(SHAPE, jnp.float32))
    lowered = jax.jit(whole(NORMS[name], gradient)).lower(*shapes)
    text = lowered.as_text(dialect="hlo", debug_info=False)
    # Nothing is converted to f32 there.
    exact = whole({**NORMS, "batch_bf16": programs.batch_norm}[name], gradient)
    return Original(text, xla.compile_text(text), jax.jit(exact))


def rewritten(of: Original, mode: str, target: Path) -> xla.Executable:
    """What the rewriter makes of a program."""
    done = tw.optimize(of.text, str(target), fast_math=mode == "fast_math")
    assert SAID[mode] in done.explanation, done.explanation
    return xla.compile_text(done.module.to_text())


def whole(norm: Callable[..., jax.Array], gradient: bool) -> Callable[..., Any]:
    """A norm with its gradients, or without."""
    return programs.vjp(norm, 3) if gradient else lambda *args: (norm(*args),)


def inputs_of(name: str, data: str, gradient: bool) -> list[np.ndarray]:
    """An image of this kind, scale, bias and, for gradients, a cotangent."""
    rng = np.random.default_rng(0)
    x = DATA[data](rng.standard_normal(SHAPE)).astype(np.float32)
    scale = 1 + rng.standard_normal(CHANNELS, np.float32)
    bias = rng.standard_normal(CHANNELS, np.float32)
    dy = rng.standard_normal(SHAPE, np.float32)
    if name.endswith("bf16"):
        x = x.astype(xla.BFLOAT16)
    return [x, scale, bias, dy] if gradient else [x, scale, bias]


@pytest.mark.parametrize("name", NORMS)
@pytest.mark.parametrize("mode", SAID)
def test_gradients_are_as_exact_as_they_were(name: str, mode: str, small_target: Path) -> None:
    """No output is much further from the truth than that of the original."""
    program = original(name, True)
    other = rewritten(program, mode, small_target)

    def check(data: str) -> None:
        sampled = mode == "fast_math" and data.startswith("sampled")
        luck = LUCK_OF_A_SAMPLE if sampled else LUCK
        allowed = luck * float(np.finfo(np.float32).eps)
        found = program.errors(other, inputs_of(name, data, True))
        for output, (was, now) in enumerate(found):
            assert now <= WORSE * was + allowed, f"output {output}: {was:.1e}, now {now:.1e}"

    check_each([*DATA], check)


@pytest.mark.parametrize("name", ["batch", "instance", "group"])
def test_far_from_zero_outputs_are_better(name: str, small_target: Path) -> None:
    """Around 1000 a mean about a sample's mean is better than one about zero."""
    program = original(name, False)
    other = rewritten(program, "fast_math", small_target)
    [(was, now)] = program.errors(other, inputs_of(name, "around_1000", False))
    assert now < was
