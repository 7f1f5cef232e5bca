"""Rewriting changes no result, on XLA:CPU and in our interpreter."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import tool
import xla

MODELS = tool.hlo_files("models")
REAL = tool.hlo_files("real")


def stored_outputs(path: Path, types: tuple[np.dtype, ...]) -> list[np.ndarray]:
    """The fixture's or a run's outputs in the types of the program."""
    arrays = xla.read_npz(path, "out")
    assert len(arrays) == len(types), f"{path.name}: number of outputs"
    return [xla.typed(array, dtype) for array, dtype in zip(arrays, types)]


@pytest.mark.parametrize("path", MODELS, ids=tool.fixture_id)
def test_fixture_agrees_with_xla(path: Path) -> None:
    """The stored outputs are what the stored text computes."""
    program = xla.compile_text(path.read_text())
    values = path.with_suffix(".npz")
    expected = stored_outputs(values, program.output_types)
    xla.assert_close(program.run(xla.read_npz(values, "in")), expected, path.stem)


@pytest.mark.usefixtures("binary")
@pytest.mark.parametrize("path", MODELS, ids=tool.fixture_id)
def test_opt_keeps_the_results(path: Path, tmp_path: Path) -> None:
    """Original and rewritten text, both through XLA:CPU, give the same outputs."""
    rewritten = tmp_path / "opt.hlo"
    tool.tilewright("opt", path, "-o", rewritten)
    inputs = xla.read_npz(path.with_suffix(".npz"), "in")
    before = xla.compile_text(path.read_text())
    after = xla.compile_text(rewritten.read_text())
    assert after.input_types == before.input_types
    rounding = xla.rounding_of(path.read_text())
    xla.assert_close(after.run(inputs), before.run(inputs), path.stem, rounding)


@pytest.mark.usefixtures("binary")
@pytest.mark.parametrize("path", MODELS, ids=tool.fixture_id)
def test_interpreter_agrees_with_xla(path: Path, tmp_path: Path) -> None:
    """`tilewright run` gives the outputs that XLA gave."""
    values, out = path.with_suffix(".npz"), tmp_path / "out.npz"
    tool.tilewright("run", path, "--inputs", values, "-o", out)
    shape = xla.program_shape(xla.parse(path.read_text()))
    types = tuple(leaf.numpy_dtype() for leaf in xla.flatten(shape.result_shape()))
    actual, expected = stored_outputs(out, types), stored_outputs(values, types)
    xla.assert_close(actual, expected, path.stem, xla.rounding_of(path.read_text()))


@pytest.mark.usefixtures("binary")
@pytest.mark.parametrize("path", REAL, ids=tool.fixture_id)
def test_opt_of_real_sizes_keeps_the_signature(path: Path, tmp_path: Path) -> None:
    """At real sizes XLA reads the rewritten text, parameters and result unchanged."""
    rewritten = tmp_path / "opt.hlo"
    tool.tilewright("opt", path, "-o", rewritten)
    before = xla.program_shape(xla.parse(path.read_text()))
    after = xla.program_shape(xla.parse(rewritten.read_text()))
    assert str(after) == str(before)
