"""Whether a form of a program computes what the program does.

Results that are about the same are taken at once. Others are judged by the contract for numbers: the
program in f64, run by the same engine, says how far off the original is, and a form may be four times as
far off. In bf16 and f16 an original may be so wrong that a better form looks wrong beside it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from tilewright import _core
from tilewright._jax import _internals as internals
from tilewright._jax._forms import Program

Array = np.ndarray[Any, Any]

# As `crates/rewrite/src/driver/numbers.rs` has them.
_MOST_GROWTH, _SLACK_ULPS = 4.0, 4.0
# The platforms, by PJRT's names, that compute in f64 at more than a hundredth of their speed.
_HAVE_F64 = ("cpu", "gpu")


class Judge:
    """Compares results with those of the original on the same arguments."""

    def __init__(self, program: Program, args: Sequence[Any], expected: Sequence[Any]) -> None:
        self._program, self._args = program, args
        self._expected = [_parts(one) for one in expected]
        self._truth: list[Array] | None = None
        self._is_asked = False

    def difference(self, results: Sequence[Any]) -> str:
        """Why results are not those of the original; empty if they are."""
        for number, (known, other) in enumerate(zip(self._expected, results, strict=True)):
            for a, b in zip(known, _parts(other), strict=True):
                if why := _difference(a, b):
                    why = self._excuse(number, a, b, why)
                if why:
                    return f"output {number} differs: {why}"
        return ""

    def _excuse(self, number: int, original: Array, other: Array, why: str) -> str:
        """Why an output is not what it may be, judged in f64 if that can be run."""
        if not self._is_asked:
            self._is_asked, self._truth = True, _truth(self._program, self._args)
        if self._truth is None:
            return why
        truth = self._truth[number]
        if not jnp.issubdtype(original.dtype, jnp.inexact):
            return "" if np.array_equal(other, truth) else why
        own, off = _error(original, truth), _error(other, truth)
        unit = float(jnp.finfo(original.dtype).eps) * _scale(truth)
        if off <= _MOST_GROWTH * own + _SLACK_ULPS * unit:
            return ""
        return f"off by {off:.2g} where the original is by {own:.2g}"


def _difference(a: Array, b: Array) -> str:
    """Why an output is not about the same; empty if it is. Floats may differ by the root of a unit in
    the last place of their type, those of 16 bits and less by four units, of the largest value."""
    if not jnp.issubdtype(a.dtype, jnp.inexact):
        return "" if np.array_equal(a, b) else "other values"
    epsilon = float(jnp.finfo(a.dtype).eps)
    allowed = math.sqrt(epsilon) if epsilon < 1e-6 else 4 * epsilon
    a, b = _wide(a), _wide(b)
    finite = np.isfinite(a)
    if not np.array_equal(a[~finite], b[~finite], equal_nan=True) or not np.isfinite(b[finite]).all():
        return "other infinities or NaN"
    off = np.abs(a[finite] - b[finite]).max(initial=0.0)
    scale = _scale(a)
    return "" if off <= allowed * scale else f"by {off:.2g} of {scale:.2g}"


def _error(values: Array, truth: Array) -> float:
    """The largest error; infinite where a value is infinite or NaN and what is right is not that."""
    values, finite = _wide(values), np.isfinite(truth)
    if not np.array_equal(values[~finite], truth[~finite], equal_nan=True):
        return np.inf
    off = np.abs(values[finite] - truth[finite])
    return float(np.where(np.isfinite(off), off, np.inf).max(initial=0.0))


def _scale(values: Array) -> float:
    """The largest finite value."""
    values = _wide(values)
    return float(np.abs(values[np.isfinite(values)]).max(initial=0.0))


def _wide(values: Array) -> Array:
    is_complex = jnp.issubdtype(values.dtype, jnp.complexfloating)
    return values.astype(np.complex128 if is_complex else np.float64)


def _parts(array: Any) -> list[Array]:
    """The parts of an array that this process has."""
    if not isinstance(array, jax.Array):
        return [np.asarray(array)]
    return [np.asarray(shard.data) for shard in _plain(array).addressable_shards]


def _plain(array: Any) -> Any:
    """An array, or the numbers of a key."""
    if isinstance(array, jax.Array) and jnp.issubdtype(array.dtype, jax.dtypes.extended):
        return jax.random.key_data(array)
    return array


def _truth(program: Program, args: Sequence[Any]) -> list[Array] | None:
    """The results of a program in f64; none if the engine does not run it so, or only slowly."""
    lowered = program.lowered
    if lowered.number_of_devices != 1 or lowered.backend.platform not in _HAVE_F64:
        return None
    try:
        wide = _core.widened(program.source.module)
        if wide is None:
            return None
        device = lowered.devices[0]
        with jax.enable_x64(True):
            run = internals.executable(wide.to_stablehlo_bytecode(portable=False), device)
            pairs = zip(lowered.kept(args), lowered.types, strict=True)
            return [np.asarray(one) for one in run([_widened(*pair, device) for pair in pairs])]
    except Exception:
        return None


def _widened(array: Any, of: Any, device: Any) -> Any:
    """An argument of a type as one in f64."""
    values = np.asarray(_plain(array))
    if not jnp.issubdtype(of.dtype, jax.dtypes.extended):
        values = values.astype(of.dtype)
    if jnp.issubdtype(values.dtype, jnp.inexact):
        values = _wide(values)
    return jax.device_put(values, device)
