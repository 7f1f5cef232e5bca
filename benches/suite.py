"""The programs of the wide suite: norms over widths, sizes and types, and blocks.

Each is made by JAX when it is asked for, as `fixtures/generate.py` makes the
files of `fixtures/real`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "fixtures"))

import generate
import jax
import jax.numpy as jnp
import programs
from programs import Array, Case, Sizes, image, sizes

# Channels and groups for each number of channels in a group.
WIDTHS = {
    1: (64, 64),
    2: (64, 32),
    4: (128, 32),
    10: (320, 32),
    20: (640, 32),
    40: (1280, 32),
    128: (512, 4),
}
# Images of one batch each that are small, usual and large.
PLACES = ((16, 4), (8, 16), (4, 64), (1, 128))


def grown(case: Case, *real: Sizes) -> Case:
    """A program of `programs.py` at sizes of this suite."""
    return Case(case.function, case.small, real)


def known(function) -> Case:
    """A program of `programs.py` at its real sizes."""
    return next(case for case in programs.CASES if case.function is function)


def group_norms() -> Iterator[Case]:
    """Group norm by channels in a group and by size of the image, f32 and bf16."""
    by_width = [f"4,32,32,{c}" for c, _ in WIDTHS.values()]
    for shape, (_, groups) in zip(by_width, WIDTHS.values()):
        for function, dtype in (
            (programs.group_norm_nhwc, "f32"),
            (programs.group_norm_bf16, "bf16"),
        ):
            at = image(shape, groups=groups, dtype=dtype)
            yield grown(known(function), at)
    for batch, side in PLACES:
        at = image(f"{batch},{side},{side},320", groups=32)
        yield grown(known(programs.group_norm_nhwc), at)


# Blocks with convolutions, and how many of their inputs are data, not weights.
BLOCKS = {
    programs.resnet_basic_block: 1,
    programs.resnet_bottleneck_block: 1,
    programs.unet_block: 2,
}


def others() -> Iterator[Case]:
    """The other norms, and blocks with convolutions."""
    for function in (
        programs.group_norm_nchw,
        programs.group_norm_flax,
        programs.ghost_batch_norm_outer,
        programs.ghost_batch_norm_inner,
        programs.patch_norm,
        programs.patch_norm_all_channels,
        programs.layer_norm,
        programs.rms_norm_per_head,
        programs.instance_norm,
        programs.weight_norm,
        programs.weight_norm_flat,
        programs.batch_norm,
        *BLOCKS,
    ):
        yield known(function)


def training_step(f: Callable[..., Array], data: int, count: int) -> Callable[..., Any]:
    """One step of gradient descent with momentum on the mean squared error of f.

    Inputs: the `count` inputs of f, of which all but the first `data` are weights,
    a momentum for each weight, and what f should be.  Results: the loss, the
    weights and their momenta.
    """

    def step(*args: Array) -> tuple[Array, list[Array], list[Array]]:
        given, weights = args[:data], args[data:count]
        *momenta, wanted = args[count:]

        def loss(weights: tuple[Array, ...]) -> Array:
            return jnp.mean(jnp.square(f(*given, *weights) - wanted))

        value, gradients = jax.value_and_grad(loss)(weights)
        momenta = [0.9 * m + g for m, g in zip(momenta, gradients)]
        return value, [w - 0.01 * m for w, m in zip(weights, momenta)], momenta

    return step


def training_program(case: Case, at: Sizes, data: int) -> generate.Program:
    """A training step of a block at the given sizes."""
    forward = partial(case.function, **at.options)
    inputs = tuple(generate.parse_shape(text) for text in at.inputs.split())
    out = jax.eval_shape(forward, *inputs)
    wanted = jax.ShapeDtypeStruct(out.shape, out.dtype)
    name = f"{case.name}_step"
    step = generate.named(training_step(forward, data, len(inputs)), name)
    about = f"A training step of: {case.function.__doc__}"
    return generate.Program(name, about, step, (*inputs, *inputs[data:], wanted))


# Norms whose gradients sum an image several times over.
NORMS = (
    programs.group_norm_nhwc,
    programs.group_norm_nhwc_one_pass,
    programs.group_norm_bf16,
    programs.group_norm_bf16_stats,
    programs.group_norm_bf16_rounded,
    programs.group_norm_silu,
    programs.group_norm_flax,
    programs.group_norm_nchw,
    programs.ghost_batch_norm_outer,
    programs.ghost_batch_norm_inner,
    programs.batch_norm,
    programs.instance_norm,
    programs.layer_norm,
    programs.rms_norm_per_head,
    programs.weight_norm,
)


def gradients(kind: str) -> Iterator[generate.Program]:
    """Gradients of norms at real sizes."""
    for function in NORMS:
        case = known(function)
        for at in case.real:
            yield generate.program(case, at, kind, f" {at.inputs.split()[0]}")


def vjps() -> Iterator[generate.Program]:
    """Norms with their vector-Jacobian products, at real sizes; blocks trained."""
    yield from gradients("vjp")
    yield from training_steps()


def pullbacks() -> Iterator[generate.Program]:
    """Vector-Jacobian products of norms alone, at real sizes."""
    yield from gradients("pullback")


def training_steps() -> Iterator[generate.Program]:
    """A training step of every block."""
    for function, data in BLOCKS.items():
        case = known(function)
        for at in case.real:
            yield training_program(case, at, data)


def wide() -> Iterator[generate.Program]:
    """Every program of the suite, forward and with its gradient; blocks trained."""
    for case in (*group_norms(), *others()):
        for at in case.real:
            shape = at.inputs.split()[0]
            options = "".join(f" {name}={value}" for name, value in at.options.items())
            for kind in ("", "grad"):
                yield generate.program(case, at, kind, f" {shape}{options}")
    yield from training_steps()
