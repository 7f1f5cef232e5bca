"""XLA's own parser, printer and CPU compiler, driven from HLO text."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax

jax.config.update("jax_platforms", "cpu")

import ml_dtypes
import numpy as np
from jaxlib import _jax, xla_client

try:
    from jaxlib._hlo import (
        HloModule,
        HloPrintOptions,
        ProgramShape,
        XlaComputation,
        hlo_module_from_text,
    )
except ImportError:
    # They lay there in 0.9.
    from jaxlib._jax import (
        HloModule,
        HloPrintOptions,
        ProgramShape,
        XlaComputation,
        hlo_module_from_text,
    )

BFLOAT16 = np.dtype(ml_dtypes.bfloat16)

# Largest difference allowed between two ways to compute the same output, as a
# fraction of the output's largest magnitude (or of 1, if that is more).  Types
# not named here must be equal.
TOLERANCE = {
    np.dtype(np.float32): 3e-5,
    np.dtype(np.float16): 4e-3,
    BFLOAT16: 2e-2,
}


def parse(text: str) -> HloModule:
    """The module that XLA's parser reads."""
    return hlo_module_from_text(text)


def from_proto(data: bytes) -> HloModule:
    """The module that XLA reads from a serialised HloModuleProto."""
    return HloModule.from_serialized_hlo_module_proto(data)


def print_full(module: HloModule) -> str:
    """XLA's default text of a module, with every constant in full."""
    options = HloPrintOptions()
    options.print_large_constants = True
    return module.to_string(options)


def print_elided(module: HloModule) -> str:
    """XLA's default text, which writes constants of more than ten values as {...}."""
    return module.to_string(HloPrintOptions())


def table(text: str, name: str) -> list[str]:
    """The rows of one of the stack tables, without their numbers."""
    found = re.search(rf"^{name}\n((?:\d+ .*\n)+)", text, re.MULTILINE)
    return [row.split(" ", 1)[1] for row in found[1].splitlines()] if found else []


def frame_chains(text: str) -> list[str]:
    """Every stack frame spelt out: file, function, span, and so its callers."""
    files, functions = table(text, "FileNames"), table(text, "FunctionNames")
    places = []
    for row in table(text, "FileLocations"):
        file, function, *span = re.findall(r"=(\d+)", row)
        where = ":".join(span)
        places.append(f"{files[int(file) - 1]} {functions[int(function) - 1]} {where}")
    chains: list[str] = []
    for row in table(text, "StackFrames"):
        location, parent = (int(n) for n in re.findall(r"=(\d+)", row))
        # In text a parent is one more than its row number; 1 means none.
        callers = f" < {chains[parent - 2]}" if parent > 1 else ""
        chains.append(places[location - 1] + callers)
    return chains


def resolve_frames(text: str) -> str:
    """XLA's text with every stack frame spelt out, and without the stack tables.

    XLA numbers the frames anew whenever it prints, in an order that depends on the
    order in which it parsed the computations.
    """
    chains = frame_chains(text)
    tables = r"^(FileNames|FunctionNames|FileLocations|StackFrames)\n(\d+ .*\n)+\n*"
    body = re.sub(tables, "", text, flags=re.MULTILINE)
    number = r"stack_frame_id=(\d+)"
    return re.sub(number, lambda match: f"at [{chains[int(match[1]) - 1]}]", body)


def read_varint(data: bytes, at: int) -> tuple[int, int]:
    """A protobuf varint and the position after it."""
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, at


def proto_without_id(module: HloModule) -> bytes:
    """The serialised HloModuleProto without the `id` of it and of the modules in
    its recovery table, which counts modules per process."""
    return without_ids(module.as_serialized_hlo_module_proto(), MODULE)


# For each kind of message that has modules in it, its fields on the way to them.
MODULE: dict[int, Any] = {}
MODULE[20] = {1: {3: MODULE}}
ID = 5


def without_ids(data: bytes, kind: dict[int, Any]) -> bytes:
    """A message of a kind without the `id` of the modules that it is or holds."""
    kept, at = bytearray(), 0
    while at < len(data):
        start = at
        tag, at = read_varint(data, at)
        value, at = read_varint(data, at)
        field, wire_type = tag >> 3, tag & 7
        if wire_type == 2:
            at += value
        elif wire_type != 0:
            raise ValueError(f"field {field} has wire type {wire_type}")
        if wire_type == 2 and field in kind:
            # Without its length, which tells how long the ids were.
            kept += data[start : start + 1] + without_ids(data[at - value : at], kind[field])
        elif kind is not MODULE or field != ID:
            kept += data[start:at]
    return bytes(kept)


def instruction_count(module: HloModule) -> int:
    """How many instructions the module has, over all its computations."""
    return sum(len(c.instructions()) for c in module.computations())


def flatten(shape: Any) -> list[Any]:
    """The array shapes in a shape, tuples opened in order."""
    if not shape.is_tuple():
        return [shape]
    return [leaf for part in shape.tuple_shapes() for leaf in flatten(part)]


@dataclass(frozen=True)
class Executable:
    """A module compiled for XLA:CPU, with the shapes and types of its arrays."""

    loaded: Any
    device: Any
    input_shapes: tuple[tuple[int, ...], ...]
    input_types: tuple[np.dtype, ...]
    output_types: tuple[np.dtype, ...]

    def place(self, inputs: Sequence[np.ndarray]) -> list[jax.Array]:
        """Inputs as numpy stores them, on the device in the types of the program."""
        if len(inputs) != len(self.input_types):
            raise ValueError(f"{len(self.input_types)} inputs, given {len(inputs)}")
        return [
            jax.device_put(typed(array, dtype), self.device)
            for array, dtype in zip(inputs, self.input_types)
        ]

    def launch(self, placed: Sequence[jax.Array]) -> list[jax.Array]:
        """Runs on placed inputs and waits for the outputs."""
        results = self.loaded.execute_sharded(list(placed))
        arrays = results.disassemble_into_single_device_arrays()
        outputs = [shards[0] for shards in arrays]
        jax.block_until_ready(outputs)
        return outputs

    def run(self, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Inputs to outputs, both as numpy arrays."""
        return [np.asarray(array) for array in self.launch(self.place(inputs))]


def program_shape(module: HloModule) -> ProgramShape:
    """The shapes of the entry computation's parameters and result."""
    return XlaComputation(module.as_serialized_hlo_module_proto()).program_shape()


def compile_text(text: str) -> Executable:
    """Compiles HLO text for XLA:CPU."""
    computation = XlaComputation(parse(text).as_serialized_hlo_module_proto())
    shape = computation.program_shape()
    parameters = [leaf for s in shape.parameter_shapes() for leaf in flatten(s)]
    device = jax.devices("cpu")[0]
    loaded = device.client.compile_and_load(
        _jax.mlir.xla_computation_to_mlir_module(computation),
        xla_client.DeviceList((device,)),
        xla_client.CompileOptions(),
    )
    return Executable(
        loaded,
        device,
        tuple(tuple(leaf.dimensions()) for leaf in parameters),
        tuple(leaf.numpy_dtype() for leaf in parameters),
        tuple(leaf.numpy_dtype() for leaf in flatten(shape.result_shape())),
    )


# --- values in .npz files -------------------------------------------------------


def typed(array: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """A stored array in the program's type: bf16 is stored as its bits."""
    if dtype == BFLOAT16 and array.dtype == np.uint16:
        return array.view(BFLOAT16)
    if array.dtype != dtype:
        raise TypeError(f"the file has {array.dtype}, the program {dtype}")
    return array


def read_npz(path: Path, prefix: str) -> list[np.ndarray]:
    """The arrays `prefix0`, `prefix1`, ... of an .npz file."""
    with np.load(path) as file:
        count = sum(name.startswith(prefix) for name in file.files)
        return [file[f"{prefix}{i}"] for i in range(count)]


def error(actual: np.ndarray, expected: np.ndarray) -> float:
    """Largest difference, relative to the largest magnitude expected, at least 1."""
    actual, expected = actual.astype(np.float64), expected.astype(np.float64)
    if not np.array_equal(np.isfinite(actual), np.isfinite(expected)):
        return float("inf")
    finite = np.isfinite(expected)
    if not np.array_equal(actual[~finite], expected[~finite], equal_nan=True):
        return float("inf")
    difference = np.abs(actual[finite] - expected[finite]).max(initial=0.0)
    return float(difference / np.abs(expected[finite]).max(initial=1.0))


def rounding_of(text: str) -> float:
    """What results of a program may differ by because of the narrow floats in it.

    XLA:CPU rounds a bf16 sum at every step, another order of the same sum
    rounds elsewhere, and a wider result carries what was rounded on the way:
    twice what one result of the narrow type may differ by.
    """
    if " bf16[" in text:
        return 2 * TOLERANCE[BFLOAT16]
    return 2 * TOLERANCE[np.dtype(np.float16)] if " f16[" in text else 0.0


def assert_close(
    actual: Sequence[np.ndarray],
    expected: Sequence[np.ndarray],
    what: str,
    narrow: float = 0.0,
) -> None:
    """Fails unless all outputs agree in number, shape, type and, closely, in value.

    Floats may differ by what their type allows, or by `narrow` if that is more.
    """
    assert len(actual) == len(expected), f"{what}: number of outputs"
    for index, (a, e) in enumerate(zip(actual, expected)):
        assert a.shape == e.shape, f"{what}: shape of output {index}"
        assert a.dtype == e.dtype, f"{what}: type of output {index}"
        allowed = max(TOLERANCE.get(e.dtype, 0.0), narrow if e.dtype in TOLERANCE else 0.0)
        found = error(a, e)
        assert found <= allowed, f"{what}: output {index} off by {found:.2e}"
