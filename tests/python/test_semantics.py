"""Rewriting changes no result, on XLA:CPU and in our interpreter."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from pathlib import Path

import jax
import numpy as np
import pytest
import tilewright as tw

import tool
import xla
from entries import check_files, part

MODELS = tool.hlo_files("models")
REAL = tool.hlo_files("real")
# Every third model is compiled for every commit.
PARTS, BY_DAY = 6, 2
parts = pytest.mark.parametrize(
    "number",
    [
        pytest.param(
            number,
            id=f"{number + 1} of {PARTS}",
            marks=() if number < BY_DAY else pytest.mark.nightly,
        )
        for number in range(PARTS)
    ],
)


@dataclass(frozen=True)
class Stored:
    """The values in a fixture, in the types of its program."""

    inputs: list[np.ndarray]
    outputs: list[np.ndarray]
    rounding: float


def stored(path: Path) -> Stored:
    """The inputs of a model, and what XLA gave."""
    text, values = path.read_text(), path.with_suffix(".npz")
    shape = xla.program_shape(xla.parse(text))
    kinds = {"in": shape.parameter_shapes(), "out": xla.flatten(shape.result_shape())}
    inputs, outputs = (
        [
            xla.typed(array, leaf.numpy_dtype())
            for array, leaf in zip(xla.read_npz(values, prefix), leaves, strict=True)
        ]
        for prefix, leaves in kinds.items()
    )
    return Stored(inputs, outputs, xla.rounding_of(text))


@functools.cache
def found(path: Path) -> list[np.ndarray]:
    """What XLA makes of the stored inputs, compiled once."""
    return xla.compile_text(path.read_text()).run(stored(path).inputs)


@parts
def test_fixtures_agree_with_xla(number: int) -> None:
    """The stored outputs are what the stored text computes."""

    def check(path: Path) -> None:
        xla.assert_close(found(path), stored(path).outputs, path.stem)

    check_files(part(MODELS, number, PARTS), check)


@parts
def test_optimising_keeps_the_results(number: int) -> None:
    """Original and rewritten text, both through XLA:CPU, give the same outputs."""
    rewritten = 0

    def check(path: Path) -> None:
        nonlocal rewritten
        module = tw.Module.from_file(path)
        optimised = tw.optimize(module).module
        if optimised == module:
            return
        rewritten += 1
        after, model = xla.compile_text(optimised.to_text()), stored(path)
        assert after.input_types == tuple(array.dtype for array in model.inputs)
        xla.assert_close(after.run(model.inputs), found(path), path.stem, model.rounding)

    paths = part(MODELS, number, PARTS)
    check_files(paths, check)
    assert rewritten > len(paths) // 2, "most models have a pattern"


def test_interpreter_agrees_with_xla() -> None:
    """`run` gives the outputs that XLA gave."""

    def check(path: Path) -> None:
        model = stored(path)
        ours = jax.tree.leaves(tw.run(path, *model.inputs).output)
        xla.assert_close(ours, model.outputs, path.stem, model.rounding)

    check_files(MODELS, check)


def test_real_sizes_keep_the_signature() -> None:
    """At real sizes XLA reads the rewritten text, parameters and result unchanged."""

    def check(path: Path) -> None:
        rewritten = tw.optimize(path).module.to_text()
        before = xla.program_shape(xla.parse(path.read_text()))
        assert str(xla.program_shape(xla.parse(rewritten))) == str(before)

    check_files(REAL, check)
