"""Which NumPy dtype each element type is, and arrays on their way in and out."""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewright import _core
from tilewright._errors import UsageError

ml_dtypes: Any
try:
    import ml_dtypes
except ImportError:
    ml_dtypes = None

NUMPY = {
    "pred": np.bool_,
    "s8": np.int8,
    "s16": np.int16,
    "s32": np.int32,
    "s64": np.int64,
    "u8": np.uint8,
    "u16": np.uint16,
    "u32": np.uint32,
    "u64": np.uint64,
    "f16": np.float16,
    "f32": np.float32,
    "f64": np.float64,
    "c64": np.complex64,
    "c128": np.complex128,
}
"""The element types that NumPy has."""

ML_DTYPES = {
    "bf16": "bfloat16",
    "s1": "int1",
    "s2": "int2",
    "s4": "int4",
    "u1": "uint1",
    "u2": "uint2",
    "u4": "uint4",
    "f4e2m1fn": "float4_e2m1fn",
    "f6e2m3fn": "float6_e2m3fn",
    "f6e3m2fn": "float6_e3m2fn",
    "f8e3m4": "float8_e3m4",
    "f8e4m3": "float8_e4m3",
    "f8e4m3fn": "float8_e4m3fn",
    "f8e4m3b11fnuz": "float8_e4m3b11fnuz",
    "f8e4m3fnuz": "float8_e4m3fnuz",
    "f8e5m2": "float8_e5m2",
    "f8e5m2fnuz": "float8_e5m2fnuz",
    "f8e8m0fnu": "float8_e8m0fnu",
}
"""The element types that the package ``ml_dtypes`` has, in versions that have them all."""


def dtype(element_type: str) -> np.dtype[Any]:
    """The dtype of an element type. Without ``ml_dtypes``: unsigned integers with its bits."""
    if element_type in NUMPY:
        return np.dtype(NUMPY[element_type])
    name = ML_DTYPES[element_type]
    known = getattr(ml_dtypes, name, None)
    if known is None:
        known = np.uint16 if element_type == "bf16" else np.uint8
    found: np.dtype[Any] = np.dtype(known)
    return found


def element_type_of(array: np.ndarray[Any, Any]) -> str:
    """The element type of an array.

    Raises:
        UsageError: HLO has no such type.
    """
    native = array.dtype.newbyteorder("=")
    for name in (*NUMPY, *ML_DTYPES):
        known = name in NUMPY or hasattr(ml_dtypes, ML_DTYPES[name])
        if known and native == dtype(name):
            return name
    raise UsageError(f"HLO has no element type for dtype {array.dtype}", code="usage")


def array_of(value: Any, element_type: str) -> np.ndarray[Any, Any]:
    """What has a dtype must have that of the element type; numbers and lists are converted.

    Raises:
        UsageError: the dtype is another one, or a number would lose a part of itself.
    """
    wanted = dtype(element_type)
    if hasattr(value, "dtype"):
        array = np.asarray(value)
        if array.dtype.newbyteorder("=") == wanted:
            return array.astype(wanted, copy=False)
        raise UsageError(
            f"expected an array of {wanted} ({element_type}), not of {array.dtype}; "
            f"convert it with .astype",
            code="usage",
        )
    given = np.asarray(value)
    is_integer = element_type == "pred" or element_type[0] in "su"
    loses = (given.dtype.kind in "fc" and given.size and is_integer) or (
        given.dtype.kind == "c" and element_type[0] != "c"
    )
    if (
        given.dtype.kind not in "biufc"
        or loses
        or (element_type == "pred" and given.dtype.kind != "b")
    ):
        raise UsageError(f"{value!r} is no value of {element_type}", code="usage")
    try:
        converted: np.ndarray[Any, Any] = np.asarray(value, dtype=wanted)
    except (OverflowError, TypeError, ValueError) as error:
        raise UsageError(
            f"{value!r} is no value of {element_type}: {error}", code="usage"
        ) from error
    # Old versions of NumPy let integers wrap.
    if is_integer and not np.array_equal(converted.astype(given.dtype), given):
        raise UsageError(f"{value!r} is no value of {element_type}", code="usage")
    return converted


def literal(value: Any, element_type: str | None = None) -> _core.Literal:
    """A value that the library reads. Arrays are copied once; those that are not contiguous in
    row-major order, or in the other byte order, once more."""
    if element_type is None:
        array = np.asarray(value)
        element_type = element_type_of(array)
        array = array.astype(array.dtype.newbyteorder("="), copy=False)
    else:
        array = array_of(value, element_type)
    flat = np.asarray(array, order="C").reshape(-1)
    width = array.dtype.itemsize // (2 if array.dtype.kind == "c" else 1)
    return _core.Literal.array(element_type, list(array.shape), flat.view(f"u{width}"))


def value(handed: Any) -> Any:
    """A result: an array that owns the memory in which it was computed, a tuple of results, or
    ``None`` for a token."""
    if isinstance(handed, _core.Buffer):
        return np.frombuffer(handed, dtype(handed.element_type)).reshape(handed.dims)
    if isinstance(handed, list):
        return tuple(value(element) for element in handed)
    return None


def input_for(given: Any, shape: _core.Shape, place: str) -> _core.Literal:
    """The input for a parameter of a shape.

    Raises:
        UsageError: dtype, dims or structure are others.
    """
    if shape.is_tuple:
        elements = shape.elements
        if not isinstance(given, (tuple, list)) or len(given) != len(elements):
            raise UsageError(f"{place} is a tuple of {len(elements)} values", code="usage")
        parts = (
            input_for(part, of, f"{place}[{at}]")
            for at, (part, of) in enumerate(zip(given, elements, strict=True))
        )
        return _core.Literal.tuple(list(parts))
    if shape.element_type is None or shape.dims is None:
        if given is None:
            return _core.Literal.token()
        raise UsageError(f"{place} is {shape}; give None", code="usage")
    try:
        array = array_of(given, shape.element_type)
    except UsageError as error:
        raise UsageError(f"{place}: {error}", code="usage") from error
    dynamic = shape.dynamic_dims or ()
    fits = array.ndim == len(shape.dims) and all(
        size == most or (may_be_less and size < most)
        for size, most, may_be_less in zip(array.shape, shape.dims, dynamic, strict=True)
    )
    if not fits:
        raise UsageError(f"{place} is {shape}, not an array of shape {array.shape}", code="usage")
    return literal(array, shape.element_type)


def inputs_for(shapes: list[_core.Shape], given: tuple[Any, ...]) -> list[_core.Literal]:
    """The inputs of a module, in the order of its parameters.

    Raises:
        UsageError: there are more or fewer arrays than parameters, or one does not fit.
    """
    if len(shapes) != len(given):
        raise UsageError(
            f"the module takes {len(shapes)} arrays, not {len(given)}; "
            f"give `seed=0` for random ones",
            code="usage",
        )
    pairs = enumerate(zip(given, shapes, strict=True))
    return [input_for(array, shape, f"input {number}") for number, (array, shape) in pairs]
