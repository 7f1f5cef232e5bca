"""The committed fixtures are what fixtures/generate.py writes."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import jaxlib
import numpy as np
import pytest

import tool

MODELS = (
    "group_norm_nhwc_grad",
    "group_norm_bf16",
    "unet_block_vjp",
)
TEXTS = (
    "real/rms_norm_per_head_grad_8x512x1024",
    "text/ok/canonical_unet_block",
)


def regenerate(name: str, out: Path) -> Path:
    """Writes one fixture, named by folder and name, below another folder."""
    only = "/".join(name.split("/")[-2:]) + ".hlo"
    script = tool.FIXTURES / "generate.py"
    command = [sys.executable, str(script), "--only", only, "--out", str(out)]
    subprocess.run(command, check=True, capture_output=True, text=True)
    return out / f"{name}.hlo"


def committed(name: str) -> Path:
    """The fixture in the repository; skips if another jaxlib made it."""
    path = tool.FIXTURES / f"{name}.hlo"
    match = re.search(r"^// made by .*jaxlib (\S+)$", path.read_text(), re.MULTILINE)
    assert match is not None, f"{path} does not say which jaxlib made it"
    if match[1] != jaxlib.__version__:
        pytest.skip(f"made with jaxlib {match[1]}, this is {jaxlib.__version__}")
    return path


@pytest.mark.parametrize("name", [f"models/{name}" for name in MODELS] + [*TEXTS])
def test_text_is_the_same(name: str, tmp_path: Path) -> None:
    """Regenerating gives the committed text, byte for byte."""
    expected = committed(name)
    assert regenerate(name, tmp_path).read_bytes() == expected.read_bytes()


@pytest.mark.parametrize("name", [f"models/{name}" for name in MODELS])
def test_inputs_are_the_same(name: str, tmp_path: Path) -> None:
    """Regenerating gives the committed inputs, and outputs of the same form."""
    path = committed(name).with_suffix(".npz")
    again = regenerate(name, tmp_path).with_suffix(".npz")
    with np.load(path) as expected, np.load(again) as actual:
        assert actual.files == expected.files
        for key in expected.files:
            assert actual[key].dtype == expected[key].dtype
            assert actual[key].shape == expected[key].shape
            if key.startswith("in"):
                assert actual[key].tobytes() == expected[key].tobytes(), key


# Floats of 16 bits and fewer, stored as bits: NaNs, or what stands for them in types
# without, have the other sign.
OTHER_SIGN = {
    "acos/floats",
    "acos/small_floats",
    "asin/floats",
    "asin/small_floats",
    "atan2/small_floats",
    "log/small_floats",
    "maximum/narrow_by_xla",
    "power/small_floats",
}


def test_values_of_ops_are_those_of_this_jaxlib(tmp_path: Path) -> None:
    """The values in fixtures/ops, an older jaxlib's in part, are what this one computes:
    all bits of what is not a float, floats but for roundings."""
    script = tool.FIXTURES / "generate_ops.py"
    command = [sys.executable, str(script), "--out", str(tmp_path)]
    subprocess.run(command, check=True, capture_output=True, text=True)
    stored = sorted((tool.FIXTURES / "ops").glob("*/*.npz"))
    assert len(stored) > 700
    for path in stored:
        name = path.relative_to(tool.FIXTURES / "ops")
        if str(name.with_suffix("")) in OTHER_SIGN:
            continue
        with np.load(path) as expected, np.load(tmp_path / name) as actual:
            assert actual.files == expected.files, name
            for key in expected.files:
                assert nearly(actual[key], expected[key]), f"{name}: {key}"


def nearly(actual: np.ndarray, expected: np.ndarray) -> bool:
    """Whether arrays differ by no more than 16 roundings of their largest number."""
    if actual.dtype != expected.dtype or actual.shape != expected.shape:
        return False
    if expected.dtype.kind not in "fc":
        return bool(np.array_equal(actual, expected))
    finite = np.isfinite(expected)
    if not np.array_equal(actual[~finite], expected[~finite], equal_nan=True):
        return False
    largest = np.abs(expected[finite]).max(initial=0)
    allowed = 16 * np.finfo(expected.dtype).eps * largest
    return bool((np.abs(actual[finite] - expected[finite]) <= allowed).all())


def test_no_fixture_names_a_machine_path() -> None:
    """File names in fixtures are bare: they would otherwise differ by machine."""
    for path in tool.hlo_files("models", "real", "text/ok"):
        quoted = re.findall(r'"(/[^"]*|[A-Za-z]:\\[^"]*)"', path.read_text())
        assert quoted == [], path
