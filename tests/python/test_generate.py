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


def test_no_fixture_names_a_machine_path() -> None:
    """File names in fixtures are bare: they would otherwise differ by machine."""
    for path in tool.hlo_files("models", "real", "text/ok"):
        quoted = re.findall(r'"(/[^"]*|[A-Za-z]:\\[^"]*)"', path.read_text())
        assert quoted == [], path
