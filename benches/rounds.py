#!/usr/bin/env python3
"""Rounds of communication of sharded programs, before and after the rewriter.

    python benches/rounds.py [--only SUBSTRING] [--target NAME] [--exact] [--fast-math]

The programs are norms on a mesh of 4 x 2 forced host devices, forward and as steps of training,
with their images divided by batch, space or channels.  XLA:CPU partitions each, as JAX writes it
and rewritten.  The table has, for both: the collectives that are left after XLA combined
them, the longest chain of collectives that wait for each other, and the bytes that one device
exchanges.  Programs that have more of any of these are named after it.

Needs the package.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"
ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests" / "python"))

import jax

jax.config.update("jax_platforms", "cpu")

import jax.numpy as jnp
import numpy as np
import tilewright as tw
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P
from jaxlib import _jax, xla_client

import xla

MESH = Mesh(np.array(jax.devices()).reshape(4, 2), ("data", "model"))
IMAGE, CHANNELS = (8, 32, 32, 320), (320,)
EPS = 1e-5
Norm = Callable[[jax.Array, jax.Array, jax.Array], jax.Array]


def over(axes: tuple[int, ...], x: jax.Array) -> jax.Array:
    """Centred and scaled over these dims."""
    centred = x - x.mean(axes, keepdims=True)
    return centred * jax.lax.rsqrt((centred**2).mean(axes, keepdims=True) + EPS)


def batch_norm(x: jax.Array, scale: jax.Array, bias: jax.Array) -> jax.Array:
    return over((0, 1, 2), x) * scale + bias


def group_norm(x: jax.Array, scale: jax.Array, bias: jax.Array) -> jax.Array:
    grouped = x.reshape(*x.shape[:-1], 32, x.shape[-1] // 32)
    return over((1, 2, 4), grouped).reshape(x.shape) * scale + bias


def instance_norm(x: jax.Array, scale: jax.Array, bias: jax.Array) -> jax.Array:
    return over((1, 2), x) * scale + bias


def layer_norm(x: jax.Array, scale: jax.Array, bias: jax.Array) -> jax.Array:
    return over((3,), x) * scale + bias


def rms_norm(x: jax.Array, scale: jax.Array, bias: jax.Array) -> jax.Array:
    return x * jax.lax.rsqrt((x**2).mean(3, keepdims=True) + EPS) * scale + bias


NORMS: tuple[Norm, ...] = (batch_norm, group_norm, instance_norm, layer_norm, rms_norm)
LAYOUTS: dict[str, tuple[P, P]] = {
    "batch": (P("data"), P()),
    "batch, space": (P("data", "model"), P()),
    "space": (P(None, "data", "model"), P()),
    "channels": (P("data", None, None, "model"), P("model")),
}


def step(norm: Norm) -> Callable[..., Any]:
    """The loss of a norm, and its gradients."""

    def run(x: jax.Array, scale: jax.Array, bias: jax.Array, wanted: jax.Array) -> Any:
        def loss(x: jax.Array, scale: jax.Array, bias: jax.Array) -> jax.Array:
            return ((norm(x, scale, bias) - wanted) ** 2).mean()

        return jax.value_and_grad(loss, (0, 1, 2))(x, scale, bias)

    return run


def synchronised(x: jax.Array, scale: jax.Array, bias: jax.Array) -> jax.Array:
    """Batch norm within a `shard_map`, as Flax's `BatchNorm` with an `axis_name` does it."""
    mean = jax.lax.pmean(x.mean((0, 1, 2)), "data")
    square = jax.lax.pmean((x**2).mean((0, 1, 2)), "data")
    return (x - mean) * jax.lax.rsqrt(square - mean**2 + EPS) * scale + bias


def two_pass(x: jax.Array, scale: jax.Array, bias: jax.Array) -> jax.Array:
    """The same with the variance about the mean of all devices."""
    centred = x - jax.lax.pmean(x.mean((0, 1, 2)), "data")
    var = jax.lax.pmean((centred**2).mean((0, 1, 2)), "data")
    return centred * jax.lax.rsqrt(var + EPS) * scale + bias


def mapped(norm: Norm) -> Norm:
    """A norm on the images of each device."""
    specs = (P("data"), P(), P())
    return jax.shard_map(norm, mesh=MESH, in_specs=specs, out_specs=P("data"))


def programs() -> Iterator[tuple[str, str]]:
    """Names of programs and their HLO texts."""

    def lowered(function: Callable[..., Any], image: P, channel: P, images: int) -> str:
        def struct(dims: tuple[int, ...], spec: P) -> Any:
            return jax.ShapeDtypeStruct(dims, jnp.float32, sharding=NamedSharding(MESH, spec))

        x, c = struct(IMAGE, image), struct(CHANNELS, channel)
        return str(jax.jit(function).lower(x, c, c, *[x] * (images - 1)).as_text("hlo"))

    for norm in NORMS:
        for layout, (image, channel) in LAYOUTS.items():
            yield f"{norm.__name__}, {layout}", lowered(norm, image, channel, 1)
            yield f"{norm.__name__} step, {layout}", lowered(step(norm), image, channel, 2)
    for norm in (synchronised, two_pass):
        made = mapped(norm)
        yield f"{norm.__name__}, shard_map", lowered(made, P("data"), P(), 1)
        yield f"{norm.__name__} step, shard_map", lowered(step(made), P("data"), P(), 2)


@dataclass(frozen=True)
class Traffic:
    """What a compiled program communicates."""

    rounds: int
    chain: int
    size: int

    def worse_than(self, other: Traffic) -> bool:
        """Whether it has more rounds, a longer chain, or much more to exchange."""
        return (
            self.rounds > other.rounds or self.chain > other.chain or self.size > 1.1 * other.size
        )


COLLECTIVES = (
    "all-reduce",
    "all-gather",
    "reduce-scatter",
    "all-to-all",
    "collective-permute",
    "collective-broadcast",
)


def compiled(text: str) -> str:
    """The text of a program for eight devices as XLA:CPU compiles it."""
    computation = xla.XlaComputation(xla.parse(text).as_serialized_hlo_module_proto())
    options = xla_client.CompileOptions()
    build = options.executable_build_options
    for each in (options, build):
        each.num_replicas, each.num_partitions = 1, 8
    build.use_spmd_partitioning = build.use_shardy_partitioner = True
    build.device_assignment = xla_client.DeviceAssignment.create(np.arange(8).reshape(1, 8))
    devices = jax.devices()
    loaded = devices[0].client.compile_and_load(
        _jax.mlir.xla_computation_to_mlir_module(computation),
        xla_client.DeviceList(tuple(devices)),
        options,
    )
    return str(loaded.hlo_modules()[0].to_string())


def bytes_of(shape: tw.Shape) -> int:
    """The bytes of an array of f32 or narrower, or of a tuple of them."""
    if shape.is_tuple:
        return sum(bytes_of(element) for element in shape.elements)
    return (shape.size or 0) * {"bf16": 2, "f16": 2, "pred": 1}.get(str(shape.element_type), 4)


def traffic(text: str) -> Traffic:
    """What a compiled program communicates. It has no loops, so the entry has all collectives."""
    found: list[int] = []
    chains: dict[tw.Instruction, int] = {}
    for instruction in tw.Module.from_text(text).entry:
        is_one = instruction.opcode.removesuffix("-start") in COLLECTIVES
        chains[instruction] = is_one + max(map(chains.__getitem__, instruction.operands), default=0)
        if is_one:
            found.append(sum(bytes_of(operand.shape) for operand in instruction.operands))
    return Traffic(len(found), max(chains.values(), default=0), sum(found))


def main() -> None:
    """Prints the table, row by row."""
    parser = argparse.ArgumentParser(description=str(__doc__).split("\n", maxsplit=1)[0])
    parser.add_argument("--only", default="", help="names that contain this text")
    parser.add_argument("--target", default="cpu")
    parser.add_argument("--exact", action="store_true")
    parser.add_argument("--fast-math", action="store_true")
    options = parser.parse_args()
    print("| program | rounds | rewritten | chain | rewritten | kB | rewritten |")
    print("|---|---:|---:|---:|---:|---:|---:|")
    worse, sums = [], np.zeros(6)
    for name, text in programs():
        if options.only not in name:
            continue
        done = tw.optimize(
            tw.Module.from_text(text),
            target=options.target,
            exact=options.exact,
            fast_math=options.fast_math,
        )
        before, after = traffic(compiled(text)), traffic(compiled(str(done.module)))
        cells = [before.rounds, after.rounds, before.chain, after.chain, before.size, after.size]
        sums += cells
        sizes = " | ".join(f"{size / 1000:.1f}" for size in cells[4:])
        print(f"| {name} | {' | '.join(map(str, cells[:4]))} | {sizes} |", flush=True)
        if after.worse_than(before):
            worse.append(name)
    rounds, chain, size = (after / before for before, after in sums.reshape(3, 2))
    print(
        f"\nIn all {rounds:.2f} of the rounds, {chain:.2f} of the chains, {size:.2f} of the bytes."
    )
    print(f"Worse: {len(worse)}", *worse, sep="\n  ")


if __name__ == "__main__":
    main()
