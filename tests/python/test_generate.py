"""The committed fixtures are what the scripts in `fixtures` write."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import jaxlib
import numpy as np
import pytest
import tilewright as tw

import tool
from entries import check_each, check_files

MODELS = (
    "models/group_norm_nhwc_grad",
    "models/group_norm_bf16",
    "models/unet_block_vjp",
)
TEXTS = (
    "real/rms_norm_per_head_grad_8x512x1024",
    "text/ok/canonical_unet_block",
)
OPS = sorted((tool.FIXTURES / "ops").glob("*/*.npz"))
# Between two that are tried for every commit.
STEP = 15


def regenerate(folder: Path, *names: str) -> None:
    """Writes fixtures again, below another folder."""
    script = Path(__file__).with_name("regenerate.py")
    command = [sys.executable, str(script), str(folder), *names]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.fixture(name="again", scope="module")
def fixture_again(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with what this jaxlib makes of some programs."""
    folder = tmp_path_factory.mktemp("again")
    regenerate(folder, *MODELS, *TEXTS)
    return folder


# The jaxlibs that print the programs as they are stored.
SAME_TEXT = {"0.10.2", "0.12.0.1"}


def text_of(path: Path) -> str:
    """The text of a fixture without the versions that made it, and without numbers of lines, which
    move with `programs.py`."""
    versions = re.compile(r"^// made by .*jaxlib \S+\n", re.MULTILINE)
    text, count = versions.subn("", path.read_text())
    assert count == 1, f"{path} does not say which jaxlib made it"
    return re.sub(r"(?<=line=)\d+", "", text)


@pytest.mark.parametrize("name", [*MODELS, *TEXTS])
def test_text_is_the_same(name: str, again: Path) -> None:
    """Letter by letter, and with any jaxlib the same graph."""
    committed, made = tool.FIXTURES / f"{name}.hlo", again / f"{name}.hlo"
    found = tw.Module.from_file(committed).diff(made.read_text())
    assert found.same, str(found)
    assert text_of(made) == text_of(committed) or jaxlib.__version__ not in SAME_TEXT


@pytest.mark.parametrize("name", MODELS)
def test_values_are_the_same(name: str, again: Path) -> None:
    """Inputs are those that are committed, byte for byte, and outputs but for roundings."""
    committed, made = (folder / f"{name}.npz" for folder in (tool.FIXTURES, again))
    with np.load(committed) as expected, np.load(made) as actual:
        assert actual.files == expected.files
        for key in expected.files:
            assert actual[key].dtype == expected[key].dtype
            if key.startswith("in"):
                assert actual[key].tobytes() == expected[key].tobytes(), key
            else:
                assert nearly(actual[key], expected[key]), key


# Floats of 16 bits and fewer, stored as bits: NaNs, or what stands for them in types
# without, have the other sign.
OTHER_SIGN = {
    "ops/acos/floats",
    "ops/acos/small_floats",
    "ops/asin/floats",
    "ops/asin/small_floats",
    "ops/atan2/small_floats",
    "ops/log/small_floats",
    "ops/maximum/narrow_by_xla",
    "ops/power/small_floats",
}


def values_are_the_same(paths: list[Path], folder: Path) -> None:
    """Fails unless this jaxlib computes the values of ops: all bits of what is not a float, floats
    but for roundings."""
    compared = [path for path in paths if tool.fixture_id(path) not in OTHER_SIGN]
    regenerate(folder, *map(tool.fixture_id, compared))

    def check(path: Path) -> None:
        made = folder / path.relative_to(tool.FIXTURES)
        with np.load(path) as expected, np.load(made) as actual:
            assert actual.files == expected.files
            wrong = [key for key in expected.files if not nearly(actual[key], expected[key])]
            assert wrong == []

    check_files(compared, check)


def test_values_of_some_ops_are_those_of_this_jaxlib(tmp_path: Path) -> None:
    """Of every fifteenth fixture in `fixtures/ops`, which an older jaxlib made in part."""
    values_are_the_same(OPS[::STEP], tmp_path)


@pytest.mark.nightly
def test_values_of_ops_are_those_of_this_jaxlib(tmp_path: Path) -> None:
    """Of every fixture in `fixtures/ops`."""
    assert len(OPS) > 700
    values_are_the_same(OPS, tmp_path)


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

    def check(path: Path) -> None:
        assert re.findall(r'"(/[^"]*|[A-Za-z]:\\[^"]*)"', path.read_text()) == []

    check_each(tool.hlo_files("models", "real", "text/ok"), check, tool.fixture_id)
