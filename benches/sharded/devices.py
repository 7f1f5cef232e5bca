"""Lowers, rewrites, compiles and runs cases on eight forced host devices."""

from __future__ import annotations

# JAX has functions without types.
# mypy: allow-untyped-calls
import contextlib
import os
import re
from collections.abc import Sequence
from typing import Any

FLAG = "--xla_force_host_platform_device_count=8"
if FLAG not in os.environ.get("XLA_FLAGS", ""):
    os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} {FLAG}".strip()

import jax

jax.config.update("jax_platforms", "cpu")

import jax.numpy as jnp
import numpy as np
import xla
from jax._src.sharding_impls import GSPMDSharding
from jax.sharding import AxisType, Mesh, NamedSharding
from jaxlib import _jax, xla_client
from jaxlib._hlo import XlaComputation

from sharded.case import Case

DEVICES = np.array(jax.devices()[:8])
AXES = {"grid": ((4, 2), ("data", "model")), "row": ((8,), ("data",))}
# How much further from the exact values a rewritten program may be than the original is: the
# factor of docs/numerics.md.
FURTHER = 4


def mesh_of(kind: str, devices: Any = DEVICES, is_explicit: bool = False) -> Mesh:
    """The mesh of a case, on eight devices or on one."""
    dims, names = AXES[kind]
    types = (AxisType.Explicit if is_explicit else AxisType.Auto,) * len(dims)
    grid = devices.reshape(dims if len(devices) > 1 else (1,) * len(dims))
    return Mesh(grid, names, axis_types=types)


def lowered(case: Case) -> str:
    """The HLO text of a case, as JAX writes it for the case's partitioner."""
    jax.config.update("jax_use_shardy_partitioner", case.is_shardy)
    try:
        mesh = mesh_of(case.mesh, is_explicit=case.is_explicit)
        function = case.build(mesh)
        structs = case.tree([leaf.struct(mesh) for leaf in case.leaves()])
        if not hasattr(function, "lower"):
            function = jax.jit(function, keep_unused=True)
        with jax.set_mesh(mesh) if case.is_explicit else contextlib.nullcontext():
            text = str(function.lower(*structs).as_text("hlo"))
    finally:
        jax.config.update("jax_use_shardy_partitioner", True)
    return replicated(text) if case.replicas else without_open(text)


# A call that leaves all dims open, as JAX writes after each op in a `shard_map` along some axes.
OPEN = re.compile(
    r'^  (ROOT )?(\S+) = \S+ custom-call\((\S+)\), custom_call_target="Sharding", '
    r'.*per_value<\[<@mesh, \[(?:\{\?\}(?:, )?)*\]>\]>"\}\n',
    re.MULTILINE,
)


def without_open(text: str) -> str:
    """A program without calls that leave all dims open: XLA fails on them if they come as HLO."""
    found = OPEN.findall(text)
    operands = {name: operand for _, name, operand in found}

    def resolved(name: str) -> str:
        while name in operands:
            name = operands[name]
        return name

    roots = {resolved(name) for root, name, _ in found if root}
    text = OPEN.sub("", text)
    text = re.sub(r"(?<![\w.])[\w.-]+(?=[,)])", lambda use: resolved(use[0]), text)
    return re.sub(
        r"(?m)^  (\S+)(?= = )", lambda line: f"  {'ROOT ' * (line[1] in roots)}{line[1]}", text
    )


def replicated(text: str) -> str:
    """The body of the only `shard_map` of a program for GSPMD, as a program of replicas."""
    name = re.search(r"^(\S*(?:shmap_body|manual)\S*) \{$", text, re.MULTILINE)
    if name is None:
        raise ValueError("the program has no shard_map")
    entry = text.index("\nENTRY ")
    body = text[:entry].replace(f"\n{name[1]} {{", f"\nENTRY {name[1]} {{")
    body = re.sub(r"channel_id=\d+, |, use_global_device_ids=true", "", body)
    return re.sub(r"(?m)^HloModule ([^,\n]*).*$", r"HloModule \1, replica_count=8", body)


def compiled(text: str, case: Case) -> Any:
    """A program for eight devices, as XLA:CPU compiles it for JAX."""
    computation = XlaComputation(xla.parse(text).as_serialized_hlo_module_proto())
    options = xla_client.CompileOptions()
    build = options.executable_build_options
    replicas, partitions = (8, 1) if case.replicas else (1, 8)
    for each in (options, build):
        each.num_replicas, each.num_partitions = replicas, partitions
    build.use_spmd_partitioning = not case.replicas
    build.use_shardy_partitioner = case.is_shardy
    # What JAX asks for where `jit` has no `out_shardings`.
    build.allow_spmd_sharding_propagation_to_output = [True]
    order = np.arange(8).reshape(replicas, partitions)
    build.device_assignment = xla_client.DeviceAssignment.create(order)
    return DEVICES[0].client.compile_and_load(
        _jax.mlir.xla_computation_to_mlir_module(computation),
        xla_client.DeviceList(tuple(DEVICES)),
        options,
    )


def text_of(executable: Any) -> str:
    """The text of a compiled program."""
    return str(executable.hlo_modules()[0].to_string())


def shards(executable: Any, case: Case, values: Sequence[np.ndarray]) -> list[list[np.ndarray]]:
    """What each device has of each output."""
    mesh = mesh_of(case.mesh)
    placed = [
        jax.device_put(value, NamedSharding(mesh, leaf.spec))
        for value, leaf in zip(values, case.leaves(), strict=True)
    ]
    results = executable.execute_sharded(placed)
    outputs = results.disassemble_into_single_device_arrays()
    return [[np.asarray(shard) for shard in output] for output in outputs]


def one_device(case: Case, values: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The outputs of the same function on one device in f64, in the order of the program."""
    with jax.enable_x64(True):
        wide = [
            value.astype(np.float64) if jnp.issubdtype(value.dtype, jnp.floating) else value
            for value in values
        ]
        function = case.plain or case.build(mesh_of(case.mesh, DEVICES[:1]))
        outputs = jax.jit(function, keep_unused=True)(*case.tree(wide))
        return [np.asarray(output) for output in jax.tree.leaves(outputs)]


def parts(executable: Any, case: Case, exact: np.ndarray, output: int) -> list[np.ndarray]:
    """The part of an exact output that each device should have."""
    if case.replicas:
        sharding: Any = NamedSharding(mesh_of(case.mesh), case.replicas[output])
    else:
        proto = executable.get_output_shardings()[output]
        sharding = GSPMDSharding(tuple(DEVICES), proto)
    places = sharding.devices_indices_map(exact.shape)
    return [exact[places[device]] for device in DEVICES]


def errors(executable: Any, case: Case, values: Sequence[np.ndarray]) -> list[float]:
    """How far each output is from the same function on one device, on the device that is
    furthest."""
    found = []
    got, exact = shards(executable, case, values), one_device(case, values)
    if len(got) != len(exact):
        raise ValueError(f"{len(got)} outputs, not {len(exact)}")
    for output, (each, whole) in enumerate(zip(got, exact)):
        pairs = zip(each, parts(executable, case, whole, output), strict=True)
        found.append(max(xla.error(shard, part) for shard, part in pairs))
    return found


def floor_of(case: Case) -> float:
    """The error that rounding explains by itself."""
    narrow = any(leaf.dtype == jnp.bfloat16 for leaf in case.leaves())
    return xla.TOLERANCE[xla.BFLOAT16 if narrow else np.dtype(np.float32)]


def further(before: Sequence[float], after: Sequence[float], floor: float) -> bool:
    """Whether some output is further from the exact values than it may be."""
    return any(not new <= max(floor, FURTHER * old) for old, new in zip(before, after, strict=True))
