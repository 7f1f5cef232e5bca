"""Group norms sharded over eight devices, before and after the rewriter.

Run as a script, because the number of devices is fixed when JAX starts.  Prints
one JSON list with a record for each program.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

FLAGS = os.environ.get("XLA_FLAGS", "")
os.environ["XLA_FLAGS"] = f"{FLAGS} --xla_force_host_platform_device_count=8"
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "fixtures"))

import jax

jax.config.update("jax_platforms", "cpu")

import numpy as np
import programs
import tilewright as tw
import xla
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P
from jaxlib import _jax, xla_client
from jaxlib._hlo import XlaComputation

DEVICES = jax.devices()
MESH = Mesh(np.array(DEVICES).reshape(4, 2), ("x", "y"))
SHAPE = (8, 8, 8, 20)
GROUPS = 4
# Over the batch, and over pixels and channels, which the sums go across.
LAYOUTS = (P("x"), P("x", None, None, "y"), P(None, "x", None, "y"), P(None, "x", "y"))
COLLECTIVE = r" (all-reduce|all-gather|all-to-all|collective-permute|reduce-scatter)(?:-start)?\("


def forward(x: jax.Array, scale: jax.Array, bias: jax.Array) -> jax.Array:
    """A group norm."""
    return programs.group_norm_nhwc(x, scale, bias, groups=GROUPS)


def compiled(text: str) -> Any:
    """The module, partitioned over all devices and compiled."""
    computation = XlaComputation(xla.parse(text).as_serialized_hlo_module_proto())
    options = xla_client.CompileOptions()
    build = options.executable_build_options
    options.num_partitions = build.num_partitions = len(DEVICES)
    build.use_spmd_partitioning = build.use_shardy_partitioner = True
    order = np.arange(len(DEVICES)).reshape(1, -1)
    build.device_assignment = xla_client.DeviceAssignment.create(order)
    return DEVICES[0].client.compile_and_load(
        _jax.mlir.xla_computation_to_mlir_module(computation),
        xla_client.DeviceList(tuple(DEVICES)),
        options,
    )


def shards(executable: Any, arguments: Sequence[jax.Array]) -> list[np.ndarray]:
    """What every device has of every output."""
    results = executable.execute_sharded(list(arguments))
    outputs = results.disassemble_into_single_device_arrays()
    return [np.asarray(shard) for output in outputs for shard in output]


def collectives(executable: Any) -> list[str]:
    """The opcodes by which devices speak to each other, sorted."""
    return sorted(re.findall(COLLECTIVE, executable.hlo_modules()[0].to_string()))


def shardings(text: str) -> list[str]:
    """Every sharding in a module, sorted."""
    return sorted(re.findall(r"sharding=\{.*?\}(?=[,\s]|$)", text, re.MULTILINE))


def records_of(name: str, text: str, arguments: Sequence[jax.Array]) -> Iterator[dict[str, Any]]:
    """What rewriting for two targets changes of a program."""
    original = compiled(text)
    before = shards(original, arguments)
    for target in ("tpu-like", "cpu"):
        module = tw.Module.from_text(text)
        done = tw.optimize(module, target).module
        after = done.to_text()
        rewritten = compiled(after)
        pairs = zip(shards(rewritten, arguments), before, strict=True)
        yield {
            "name": f"{name} for {target}",
            "changed": done != module,
            "error": max(xla.error(new, old) for new, old in pairs),
            "collectives": [collectives(original), collectives(rewritten)],
            "shardings": [shardings(text), shardings(after)],
        }


def records() -> Iterator[dict[str, Any]]:
    """Every way to shard, forward and backward, for two targets."""
    rng = np.random.default_rng(0)
    image = rng.standard_normal(SHAPE, dtype=np.float32)
    channels = rng.standard_normal(SHAPE[-1:], dtype=np.float32)
    kinds: dict[str, tuple[Callable[..., Any], int]] = {
        "forward": (forward, 0),
        "vjp": (programs.vjp(forward, 3), 1),
    }
    for layout in LAYOUTS:
        sharded, whole = NamedSharding(MESH, layout), NamedSharding(MESH, P())
        x, c = jax.device_put(image, sharded), jax.device_put(channels, whole)
        for kind, (function, cotangents) in kinds.items():
            arguments = [x, c, c, *[x] * cotangents]
            text = jax.jit(function).lower(*arguments).as_text(dialect="hlo")
            yield from records_of(f"{kind} {layout}", text, arguments)


if __name__ == "__main__":
    json.dump(list(records()), sys.stdout)
