"""Arrays on their way in and out."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
import tilewright as tw
from tilewright import _core, _values

# Old versions of ml_dtypes lack the narrowest types.
SMALL = [name for name, dtype in _values.ML_DTYPES.items() if hasattr(ml_dtypes, dtype)]
TYPES = [*_values.NUMPY, *SMALL]


def identity(shape: str) -> tw.Module:
    b = tw.Builder()
    return b.finish(b.parameter("x", shape))


@pytest.mark.parametrize("element_type", TYPES)
def test_every_type_goes_through(element_type: str) -> None:
    dtype = _values.dtype(element_type)
    array = np.array([0, 1, 1, 0, 1, 1]).astype(dtype).reshape(2, 3)
    result = identity(f"{element_type}[2,3]")(array)
    assert result.dtype == dtype and result.shape == (2, 3)
    np.testing.assert_array_equal(result.view(np.uint8), array.view(np.uint8))
    b = tw.Builder()
    assert b.constant(array).shape.element_type == element_type


@pytest.mark.parametrize("element_type", ["s2", "s4", "s8", "s64", "bf16", "f8e5m2", "c64", "c128"])
def test_negative_numbers(element_type: str) -> None:
    dtype = _values.dtype(element_type)
    array = np.array([-1, 1, -2]).astype(dtype)
    b = tw.Builder()
    module = b.finish(b.convert(b.parameter("x", f"{element_type}[3]"), "c128"))
    np.testing.assert_array_equal(module(array), [-1, 1, -2])
    np.testing.assert_array_equal(identity(f"{element_type}[3]")(array), array)


def test_sums_of_bf16() -> None:
    b = tw.Builder()
    x = b.parameter("x", "bf16[3]")
    result = b.finish(b.binary("add", x, x))(np.array([1, 2.5, -3], ml_dtypes.bfloat16))
    assert result.dtype == ml_dtypes.bfloat16
    np.testing.assert_array_equal(result.astype(np.float32), [2, 5, -6])


def test_without_ml_dtypes_there_are_raw_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_values, "ml_dtypes", None)
    bits = np.array([0x3F80, 0xC000], np.uint16)
    result = identity("bf16[2]")(bits)
    assert result.dtype == np.uint16
    np.testing.assert_array_equal(result, bits)
    assert identity("f8e5m2[2]")(np.array([1, 2], np.uint8)).dtype == np.uint8


@pytest.mark.parametrize(
    "array",
    [
        np.arange(24, dtype=np.float32).reshape(4, 6)[:, ::2],
        np.arange(12, dtype=np.float32).reshape(4, 3)[::-1],
        np.asfortranarray(np.arange(12, dtype=np.float32).reshape(4, 3)),
        np.arange(12, dtype=np.float32).reshape(3, 4).T,
        np.broadcast_to(np.float32(3), (4, 3)),
        np.arange(12, dtype=">f4").reshape(4, 3),
    ],
    ids=["strided", "reversed", "fortran", "transposed", "broadcast", "big-endian"],
)
def test_arrays_lie_as_they_like(array: np.ndarray) -> None:
    np.testing.assert_array_equal(identity("f32[4,3]")(array), array)
    b = tw.Builder()
    np.testing.assert_array_equal(b.finish(b.constant(array))(), array)


def test_read_only_arrays() -> None:
    array = np.arange(3, dtype=np.int32)
    array.flags.writeable = False
    np.testing.assert_array_equal(identity("s32[3]")(array), array)


@pytest.mark.parametrize("shape", [(), (0,), (2, 0, 3), (1, 1)])
def test_scalars_and_empty_arrays(shape: tuple[int, ...]) -> None:
    dims = ",".join(map(str, shape))
    array = np.ones(shape, np.float64)
    result = identity(f"f64[{dims}]")(array)
    assert result.shape == shape and result.dtype == np.float64
    np.testing.assert_array_equal(result, array)


def test_outputs_own_their_memory() -> None:
    b = tw.Builder()
    x = b.parameter("x", "f32[1000]")
    module = b.finish(b.binary("add", x, x))
    given = np.ones(1000, np.float32)
    first = module(given)
    assert first.flags.writeable
    first[:] = 7
    given[:] = 3
    del module, x, b
    np.testing.assert_array_equal(first, np.full(1000, 7, np.float32))


GROWTH = """
import numpy as np
import tilewright as tw

def most() -> int:
    with open("/proc/self/status") as status:
        [line] = [line for line in status if line.startswith("VmHWM")]
    return int(line.split()[1]) * 1024

b = tw.Builder()
WORK
"""

# The peak of the memory grows by one array of this many bytes, and not by two.
LARGE = 1 << 27


def growth(work: str) -> int:
    """How many bytes more a program takes at most after it has set ``before`` to ``most()``."""
    program = GROWTH.replace("WORK", work) + "print(most() - before)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return int(done.stdout)


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="only Linux tells the peak")
@pytest.mark.parametrize("element_type", ["f32", "s8", "c64", "c128"])
def test_inputs_are_copied_once(element_type: str) -> None:
    dtype = _values.dtype(element_type)
    work = f"""
x = b.parameter("x", "{element_type}[{LARGE // dtype.itemsize}]")
module = b.finish(b.op("slice", [x], "slice={{[0:1]}}"))
given = np.ones({LARGE // dtype.itemsize}, np.{dtype})
before = most()
assert module(given) == 1
"""
    assert 0.9 * LARGE < growth(work) < 1.5 * LARGE


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="only Linux tells the peak")
@pytest.mark.parametrize("element_type", ["f32", "s8", "c64"])
def test_outputs_are_not_copied(element_type: str) -> None:
    dtype = _values.dtype(element_type)
    work = f"""
value = b.op("iota", [], "iota_dimension=0", shape="{element_type}[{LARGE // dtype.itemsize}]")
module = b.finish(value)
before = most()
assert module()[2] == 2
"""
    assert 0.9 * LARGE < growth(work) < 1.5 * LARGE


def test_outputs_share_the_memory_in_which_they_were_computed() -> None:
    handed, _, _, _ = _core.run(identity("f32[4,3]"), None, seed=0)
    assert isinstance(handed, _core.Buffer)
    result = _values.value(handed)
    assert not result.flags.owndata
    assert np.shares_memory(result, np.frombuffer(handed, np.float32))


def test_writing_an_output_leaves_the_module() -> None:
    b = tw.Builder()
    module = b.finish(b.constant(np.arange(3, dtype=np.int32)))
    module()[:] = 9
    np.testing.assert_array_equal(module(), [0, 1, 2])


def test_numbers_and_lists_are_converted() -> None:
    np.testing.assert_array_equal(identity("f32[2]")([1, 2.5]), [1, 2.5])
    np.testing.assert_array_equal(identity("u8[2]")([1, 255]), [1, 255])
    assert identity("pred[]")(True) == np.True_
    assert identity("c64[]")(1 + 2j) == np.complex64(1 + 2j)
    for element_type, value in [
        ("s32", 1.5),
        ("u8", 256),
        ("u8", -1),
        ("s4", 8),
        ("s64", 1 << 63),
        ("f32", 1j),
        ("pred", 2),
        ("f32", "1"),
        ("f32", None),
    ]:
        with pytest.raises(tw.UsageError, match="is no value of"):
            identity(f"{element_type}[]")(value)


def test_arrays_that_do_not_fit() -> None:
    module = identity("f32[2,3]")
    for array in [np.ones((2, 3)), np.ones((2, 3), np.int32), np.ones((2, 3), ml_dtypes.bfloat16)]:
        with pytest.raises(tw.UsageError, match="expected an array of float32"):
            module(array)
    for array in [np.ones((3, 2), np.float32), np.ones(6, np.float32), np.float32(1)]:
        with pytest.raises(tw.UsageError, match=r"input 0 is f32\[2,3\], not an array of shape"):
            module(array)
    with pytest.raises(tw.UsageError, match="takes 1 arrays, not 0"):
        module()
    with pytest.raises(tw.UsageError, match="takes 1 arrays, not 2"):
        module(np.ones((2, 3), np.float32), 1)
    with pytest.raises(tw.UsageError, match="no element type for dtype"):
        tw.Builder().constant(np.array(["text"]))


def test_tuples_and_tokens() -> None:
    module = identity("(f32[], (s32[2], token[]))")
    number, (counts, token) = module((1.5, ([3, 4], None)))
    assert number == np.float32(1.5) and token is None
    np.testing.assert_array_equal(counts, [3, 4])
    with pytest.raises(tw.UsageError, match="tuple of 2 values"):
        module((1.5,))
    with pytest.raises(tw.UsageError, match=r"input 0\[1\]\[1\] is token\[\]; give None"):
        module((1.5, ([3, 4], 1)))
    with pytest.raises(tw.UsageError, match=r"input 0\[0\]"):
        module((np.float64(1), ([3, 4], None)))


def test_dynamic_dims_may_be_less() -> None:
    module = identity("f32[<=4]")
    np.testing.assert_array_equal(module(np.ones(3, np.float32)), np.ones(3))
    with pytest.raises(tw.UsageError, match="not an array of shape"):
        module(np.ones(5, np.float32))
