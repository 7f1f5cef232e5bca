"""Top-k on the simulated machine against JAX, through the HLO that JAX and XLA write."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import jax
import numpy as np
import pytest

import tool
import xla

TARGETS = ["tpu-like", "mlu-like", "linear", "cpu"]
TYPES = [np.float32, np.float16, xla.BFLOAT16, np.int32, np.uint8]


def special(dtype: np.dtype, dims: tuple[int, ...]) -> np.ndarray:
    """Few numbers, often: zeros, infinities and NaNs of both signs among them."""
    random = np.random.default_rng(0)
    if dtype.kind in "iu":
        return random.integers(0, 20, dims).astype(dtype)
    nan = np.float32(np.nan)
    some = [0.0, -0.0, 1, -1, 2.5, np.inf, -np.inf, nan, np.copysign(nan, -1)]
    return random.choice(np.array(some, np.float32), dims).astype(dtype)


def run(text: str, x: np.ndarray, target: str, folder: Path) -> list[np.ndarray]:
    """The results of `run --backend sim`, where the host does not look for anything."""
    path = folder / "top_k.hlo"
    path.write_text(text)
    stored = x.view(np.uint16) if x.dtype == xla.BFLOAT16 else x
    np.savez(folder / "in.npz", in0=stored)
    command = [
        tool.binary(), "run", path, "--backend", "sim", "--target", target, "--stats",
        "--inputs", folder / "in.npz", "-o", folder / "out.npz",
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert re.search(r"^ *0  host calls$", done.stderr, re.MULTILINE), done.stderr
    values, places = xla.read_npz(folder / "out.npz", "out")
    return [xla.typed(values, x.dtype), places]


def assert_same(actual: list[np.ndarray], expected: list[np.ndarray]) -> None:
    """To the bit, but for what is in a NaN."""
    for a, e in zip(actual, expected, strict=True):
        e = np.asarray(e)
        wide = [v.astype(np.float64) if v.dtype == xla.BFLOAT16 else v for v in (a, e)]
        np.testing.assert_array_equal(*wide)
        if e.dtype.kind not in "iu":
            np.testing.assert_array_equal(np.signbit(wide[0]), np.signbit(wide[1]))


@pytest.mark.usefixtures("binary")
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype", TYPES, ids=str)
@pytest.mark.parametrize(("dims", "k"), [((5, 41), 41), ((3, 2, 300), 4), ((2000,), 3)], ids=str)
def test_the_machine_selects_as_jax(
    dims: tuple[int, ...], k: int, dtype: type, target: str, tmp_path: Path
) -> None:
    x = special(np.dtype(dtype), dims)
    program = jax.jit(lambda x: jax.lax.top_k(x, k)).lower(x)
    assert_same(run(program.as_text(dialect="hlo"), x, target, tmp_path), jax.lax.top_k(x, k))


@pytest.mark.usefixtures("binary")
@pytest.mark.parametrize("target", TARGETS)
def test_what_xla_compiles(target: str, tmp_path: Path) -> None:
    x = special(np.dtype(np.float32), (6, 100))
    program = jax.jit(lambda x: jax.lax.top_k(x, 5)).lower(x).compile()
    text = program.as_text()
    assert "TopK" in text
    assert_same(run(text, x, target, tmp_path), program(x))


@pytest.mark.usefixtures("binary")
@pytest.mark.parametrize("target", TARGETS)
def test_the_least(target: str, tmp_path: Path) -> None:
    x = special(np.dtype(np.float32), (6, 100))
    text = """HloModule least
ENTRY e {
  x = f32[6,100] parameter(0)
  ROOT r = (f32[6,9], s32[6,9]) topk(x), k=9, largest=false
}"""
    assert_same(run(text, x, target, tmp_path), xla.compile_text(text).run([x]))
