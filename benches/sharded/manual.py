"""Norms that say themselves what each device does: with `shard_map`, with `pmap`, as replicas, and
with Flax's `BatchNorm` that is told the name of an axis."""

from __future__ import annotations

# JAX has functions without types.
# mypy: allow-untyped-calls
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P

from sharded import norms
from sharded.case import Case, Function, Leaf, always, gspmd, mapped

Names = str | tuple[str, ...]


def local_view(x: jax.Array, groups: int) -> jax.Array:
    """Channels as groups of channels."""
    return x.reshape(*x.shape[:-1], groups, x.shape[-1] // groups)


def two_pass(axes: tuple[int, ...], names: Names, groups: int = 1) -> norms.Norm:
    """A norm over dims of all devices along some axes, with the variance about the mean of all."""

    def run(x: jax.Array, scale: jax.Array, bias: jax.Array) -> jax.Array:
        y = local_view(x, groups)
        centred = y - jax.lax.pmean(y.mean(axes, keepdims=True), names)
        var = jax.lax.pmean((centred**2).mean(axes, keepdims=True), names)
        normal: jax.Array = (centred * jax.lax.rsqrt(var + norms.EPS)).reshape(x.shape)
        return normal * scale + bias

    return run


def one_pass(axes: tuple[int, ...], names: Names, groups: int = 1) -> norms.Norm:
    """The same with the variance from the mean of squares, as Flax has it."""

    def run(x: jax.Array, scale: jax.Array, bias: jax.Array) -> jax.Array:
        y = local_view(x, groups)
        mean = jax.lax.pmean(y.mean(axes, keepdims=True), names)
        square = jax.lax.pmean((y**2).mean(axes, keepdims=True), names)
        normal: jax.Array = (y - mean) * jax.lax.rsqrt(square - mean**2 + norms.EPS)
        return normal.reshape(x.shape) * scale + bias

    return run


def root_mean_square(x: jax.Array, scale: jax.Array, bias: jax.Array) -> jax.Array:
    """An RMS norm over channels that lie on several devices."""
    square = jax.lax.pmean((x**2).mean(3, keepdims=True), "model")
    return x * jax.lax.rsqrt(square + norms.EPS) * scale + bias


BATCH, SPACE, CHANNELS = P("data"), P("data", "model"), P("data", None, None, "model")
# The norm, how images are divided, and how channels are. A group norm has dims (batch, height,
# width, group, channel of the group).
NORMS: dict[str, tuple[norms.Norm, P, P]] = {
    "batch norm, shard_map": (two_pass((0, 1, 2), "data"), BATCH, P()),
    "batch norm, shard_map of pixels": (
        two_pass((0, 1, 2), ("data", "model")),
        SPACE,
        P(),
    ),
    "batch norm in one pass, shard_map": (one_pass((0, 1, 2), "data"), BATCH, P()),
    "group norm, shard_map of pixels": (two_pass((1, 2, 4), "model", norms.GROUPS), SPACE, P()),
    "group norm in one pass, shard_map of pixels": (
        one_pass((1, 2, 4), "model", norms.GROUPS),
        SPACE,
        P(),
    ),
    "instance norm, shard_map of pixels": (two_pass((1, 2), "model"), SPACE, P()),
    "layer norm, shard_map of channels": (two_pass((3, 4), "model"), CHANNELS, P("model")),
    "RMS norm, shard_map of channels": (root_mean_square, CHANNELS, P("model")),
}


def named(name: str, form: str) -> str:
    """The name of a form of a norm."""
    first, rest = name.split(", ", 1)
    return f"{first}{form}, {rest}"


def local_step(norm: norms.Norm, names: Names = "data") -> Function:
    """A step of training of each device's images, whose gradients are averaged at the end."""
    run = norms.step(norm)

    def averaged(*given: jax.Array) -> Any:
        loss, (image, scale, bias) = run(*given)
        return jax.lax.pmean((loss, scale, bias), names), image

    return averaged


def apart(function: Function, parts: int, image: tuple[int, ...]) -> Function:
    """A step of each device's images, for the images of all devices on one."""

    def run(x: jax.Array, scale: jax.Array, bias: jax.Array, *rest: jax.Array) -> Any:
        images = [one.reshape(parts, image[0] // parts, *image[1:]) for one in (x, *rest)]
        axes = (0, None, None, *[0] * len(rest))
        each = jax.vmap(function, axis_name="data", in_axes=axes)
        out = each(images[0], scale, bias, *images[1:])
        if not isinstance(out, tuple):
            return out.reshape(image)
        # Of results that are equal on all, that of the first.
        return jax.tree.map(lambda one: one[0], out[0]), out[1].reshape(image)

    return run


def shard_mapped(image: tuple[int, ...]) -> Iterator[Case]:
    """Norms within a `shard_map` over all axes of the mesh."""
    for name, (norm, spec, channel) in NORMS.items():
        build = mapped(norm, (spec, channel, channel), spec)
        for form, make in norms.FORMS.items():
            given = norms.arguments(form, image, spec, channel)
            case = Case(
                named(name, form),
                lambda mesh, build=build, make=make: make(build(mesh)),  # type: ignore[misc]
                given,
            )
            yield case
            if form == " step":
                yield gspmd(case)
    for way, make_norm in (("", two_pass), (" in one pass", one_pass)):
        function = local_step(make_norm((0, 1, 2), "data"))
        outs = ((P(), P(), P()), BATCH)
        given = norms.arguments(" step", image, BATCH, P())
        ins = tuple(leaf.spec for leaf in given)
        name = f"batch norm{way} step of each device, shard_map"
        build = mapped(function, ins, outs, is_checked=False)
        yield Case(name, build, given, plain=apart(function, 4, image))


def partly_manual(image: tuple[int, ...]) -> Iterator[Case]:
    """Norms within a `shard_map` along one axis; XLA divides them along the other one."""
    norm = two_pass((0, 1, 2), "data")
    layouts = {"channels": (CHANNELS, P("model")), "pixels": (SPACE, P())}
    build = mapped(norm, (BATCH, P(), P()), BATCH, frozenset({"data"}))
    for layout, (spec, channel) in layouts.items():
        for form, make in norms.FORMS.items():
            given = norms.arguments(form, image, spec, channel)
            case = Case(
                f"batch norm{form}, partial shard_map and {layout}",
                lambda mesh, make=make: make(build(mesh)),  # type: ignore[misc]
                given,
            )
            yield case
            if form == " step":
                yield gspmd(case)


def flax_norm(axis: str | None) -> Function:
    """Flax's batch norm with its running statistics."""
    module = nn.BatchNorm(use_running_average=False, axis_name=axis, momentum=0.9)

    def run(
        x: jax.Array, scale: jax.Array, bias: jax.Array, mean: jax.Array, var: jax.Array
    ) -> Any:
        variables = {
            "params": {"scale": scale, "bias": bias},
            "batch_stats": {"mean": mean, "var": var},
        }
        return module.apply(variables, x, mutable=["batch_stats"])

    return run


def flax_step(axis: str | None) -> Function:
    """A step of training of each device with Flax's batch norm."""
    norm = flax_norm(axis)

    def run(
        x: jax.Array,
        scale: jax.Array,
        bias: jax.Array,
        mean: jax.Array,
        var: jax.Array,
        wanted: jax.Array,
    ) -> Any:
        def loss(scale: jax.Array, bias: jax.Array) -> Any:
            y, state = norm(x, scale, bias, mean, var)
            return ((y - wanted) ** 2).mean(), state

        (value, state), gradients = jax.value_and_grad(loss, (0, 1), has_aux=True)(scale, bias)
        if axis is not None:
            value, gradients = jax.lax.pmean((value, gradients), axis)
        return value, gradients, state

    return run


def flax_arguments(image: tuple[int, ...], spec: P, is_step: bool) -> tuple[Leaf, ...]:
    """The arguments of `flax_norm` or of `flax_step`."""
    kinds = ("scale", "bias", "bias", "positive")
    channels = [Leaf(image[-1:], P(), kind) for kind in kinds]
    given = (Leaf(image, spec), *channels)
    return (*given, Leaf(image, spec, "cotangent")) if is_step else given


def with_flax(image: tuple[int, ...]) -> Iterator[Case]:
    """Flax's batch norm, its axis bound by `shard_map`, `pmap` or `vmap`."""
    parts = (8, image[0] // 8, *image[1:])
    for is_step, make in ((False, flax_norm), (True, flax_step)):
        form = " step" if is_step else ""
        given = flax_arguments(image, BATCH, is_step)
        ins = tuple(leaf.spec for leaf in given)
        stats = {"batch_stats": {"mean": P(), "var": P()}}
        outs = (P(), (P(), P()), stats) if is_step else (BATCH, stats)
        build = mapped(make("data"), ins, outs, is_checked=False)
        yield Case(f"Flax batch norm{form}, shard_map", build, given)
        given = flax_arguments(parts, BATCH, is_step)
        axes = tuple(0 if leaf.spec == BATCH else None for leaf in given)
        pmapped = jax.pmap(make("data"), axis_name="data", in_axes=axes)
        together = jax.vmap(make("data"), axis_name="data", in_axes=axes)
        yield Case(f"Flax batch norm{form}, pmap", always(pmapped), given, "row", together)
        yield Case(f"Flax batch norm{form}, vmap", always(together), given, "row")


def pmapped(image: tuple[int, ...]) -> Iterator[Case]:
    """Batch norms of eight devices with `pmap`, and as programs of eight replicas."""
    parts = (8, image[0] // 8, *image[1:])
    for way, make in (("", two_pass), (" in one pass", one_pass)):
        norm = make((0, 1, 2), "data")
        for form, function, outs in (
            ("", norm, (BATCH,)),
            (" step", local_step(norm), (P(), P(), P(), BATCH)),
        ):
            given = norms.arguments(form, parts, BATCH, P())
            axes = tuple(0 if leaf.spec == BATCH else None for leaf in given)
            together = jax.vmap(function, axis_name="data", in_axes=axes)
            mapped_ = jax.pmap(function, axis_name="data", in_axes=axes)
            case = Case(f"batch norm{way}{form}, pmap", always(mapped_), given, "row", together)
            yield case
            yield replicas(case, image, function, outs)


def replicas(case: Case, image: tuple[int, ...], function: Function, outs: tuple[P, ...]) -> Case:
    """A case of `pmap` as a program of replicas."""
    form = " step" if len(outs) > 1 else ""
    given = norms.arguments(form, image, BATCH, P())
    ins = tuple(leaf.spec for leaf in given)
    shape = ((P(), P(), P()), BATCH) if form else BATCH
    return replace(
        case,
        name=case.name.replace("pmap", "replicas"),
        build=mapped(function, ins, shape, is_checked=False),
        arguments=given,
        plain=apart(function, 8, image),
        is_shardy=False,
        replicas=outs,
    )


def loops(image: tuple[int, ...]) -> Iterator[Case]:
    """Collectives within loops and branches."""
    spec, channel = norms.LAYOUTS["batch and space"]
    given = norms.arguments(" step", image, spec, channel)

    def accumulated(x: jax.Array, scale: jax.Array, bias: jax.Array, wanted: jax.Array) -> Any:
        """Gradients that are summed over several scales of an image."""

        def turn(total: Any, factor: jax.Array) -> tuple[Any, None]:
            _, found = norms.step(norms.batch_norm)(factor * x, scale, bias, wanted)
            return jax.tree.map(jnp.add, total, found), None

        zeros = jax.tree.map(jnp.zeros_like, (x, scale, bias))
        factors = jnp.arange(1, 6, dtype=x.dtype)
        return jax.lax.scan(turn, zeros, factors)[0]

    def chosen(x: jax.Array, scale: jax.Array, bias: jax.Array, wanted: jax.Array) -> Any:
        """A group norm or a batch norm, as the values say."""
        return jax.lax.cond(
            scale.sum() > 0,
            norms.step(norms.group_norm),
            norms.step(norms.batch_norm),
            *(x, scale, bias, wanted),
        )

    yield Case("batch norm steps in a loop, batch and space", always(accumulated), given)
    yield Case("norm step in a branch, batch and space", always(chosen), given)
    inner = two_pass((0, 1, 2), "data")

    def repeated(x: jax.Array, scale: jax.Array, bias: jax.Array) -> Any:
        return jax.lax.fori_loop(0, 5, lambda _, y: y + 0.1 * jnp.sin(inner(y, scale, bias)), x)

    few = norms.arguments("", image, BATCH, P())
    yield Case("batch norms in a loop, shard_map", mapped(repeated, (BATCH, P(), P()), BATCH), few)


def cases(image: tuple[int, ...] = norms.IMAGE) -> Iterator[Case]:
    """All of them."""
    for some in (shard_mapped, partly_manual, with_flax, pmapped, loops):
        yield from some(image)
