"""`tilewright.jit` beside `jax.jit` on every feature of it.

With a rewriter that changes nothing, the executables are the same; with the real one, the values.
"""

from __future__ import annotations

import collections
import functools
import re
import warnings
from collections.abc import Iterator
from typing import Any

import jax
import numpy as np
import pytest
import tilewright
from cases import CASES, Case
from tilewright._jax import _rewrite

HEADER = re.compile(r"^HloModule \S+?, (.*)$", re.MULTILINE)
MESHES = re.compile(r", frontend_attributes=\{xla\.sdy\.meshes=\{[^}]*\}\}")
# No norm is in them, or none that has elements; `typed_keys` has one outside the marked function.
UNCHANGED = {"indexing", "typed_keys", "empty_arrays", "scalars"}
# Of too few ops for `install` to look at.
TINY = {"scalars"}
# With which `install` is tried for every commit.
BY_DAY = {
    "forward",
    "vjp_of_jit",
    "vmap_of_jit",
    "scan_inside",
    "nested",
    "in_plain_jit",
    "donation",
    "pytrees",
    "ordered_callback",
    "scalars",
    "layout_of_output",
}
INSTRUCTION = re.compile(r"^\s*(?:ROOT )?%?\S+ = (\S+) ([a-z][a-z0-9-]*)\(", re.MULTILINE)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """A rewriter that gives back what it is given; the names of what it was given."""
    # JAX remembers what other tests lowered.
    jax.clear_caches()
    tilewright.report(clear=True)
    names: list[str] = []

    def unchanged(source: _rewrite.Source, *_: Any) -> _rewrite.Outcome:
        module = source.module
        names.append(module.name)
        return _rewrite.Outcome(module.to_proto(), module.instruction_count, 1.0, 1.0, "")

    monkeypatch.setattr(_rewrite, "optimized", unchanged)
    yield names
    jax.clear_caches()


def contents(text: str) -> collections.Counter[tuple[str, str]]:
    """How often each shape and opcode is in a compiled module."""
    return collections.Counter(INSTRUCTION.findall(text))


def headers(text: str) -> list[str]:
    """The attributes of a compiled module."""
    # JAX 0.10 and earlier say of a callback that it runs on the one device that there is.
    return [MESHES.sub("", header) for header in HEADER.findall(text)]


def lowerable(case: Case, jit: Any) -> Any:
    """The function of a case, which can be lowered."""
    made = case.make(jit)
    return made if hasattr(made, "lower") else jax.jit(made)


def compiled(case: Case, jit: Any) -> str:
    """The compiled text of a case."""
    return lowerable(case, jit).lower(*case.args(), **case.kwargs).compile().as_text()


@functools.cache
def plain(name: str) -> tuple[str, Any]:
    """The compiled text of a case with `jax.jit`, and what it computes, which compiles nothing."""
    [case] = [case for case in CASES if case.name == name]
    function = lowerable(case, jax.jit)
    text = function.lower(*case.args(), **case.kwargs).compile().as_text()
    return text, jax.tree.map(np.asarray, function(*case.args(), **case.kwargs))


def close(a: Any, b: Any) -> None:
    """Fails unless two results are nearly equal."""
    a, b = jax.tree.map(np.asarray, (a, b))
    assert jax.tree.structure(a) == jax.tree.structure(b)
    for one, other in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True):
        assert (one.dtype, one.shape) == (other.dtype, other.shape)
        bound = tolerance(one.dtype)
        if not np.issubdtype(one.dtype, np.complexfloating):
            one, other = one.astype(np.float64), other.astype(np.float64)
        np.testing.assert_allclose(one, other, rtol=10 * bound, atol=bound)


def tolerance(dtype: np.dtype) -> float:
    """The difference that regrouped sums may make to numbers near 1."""
    is_float = jax.numpy.issubdtype(dtype, np.inexact)
    if not is_float:
        return 0.0
    return float(jax.numpy.finfo(dtype).eps) * (128 if dtype.itemsize > 2 else 4)


def outcomes() -> set[str]:
    """What became of the functions of a test."""
    return {entry.outcome for entry in tilewright.report()}


def same(one: str, other: str) -> None:
    """Fails unless two compiled modules have the same instructions and attributes."""
    assert contents(one) == contents(other)
    assert headers(one) == headers(other)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_same_executable_without_rewrites(case: Case, asked: list[str]) -> None:
    """With `tilewright.jit`, which puts back what it is given."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", _rewrite.TilewrightWarning)
        ours = compiled(case, tilewright.jit)
    assert asked and outcomes() == {"rewritten"}
    same(plain(case.name)[0], ours)


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(case, id=case.name, marks=() if case.name in BY_DAY else pytest.mark.nightly)
        for case in CASES
    ],
)
def test_same_executable_where_it_is_installed(case: Case, asked: list[str]) -> None:
    """With `jax.jit`, once Tilewright is installed."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", _rewrite.TilewrightWarning)
        tilewright.install()
        try:
            ours = compiled(case, jax.jit)
        finally:
            tilewright.uninstall()
    if case.name in TINY:
        assert not asked
    else:
        assert asked and outcomes() == {"rewritten"}
    # JAX remembers what it compiled of a function.
    jax.clear_caches()
    same(plain(case.name)[0], ours)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_same_values(case: Case) -> None:
    """What is rewritten computes what it did."""
    tilewright.report(clear=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error", _rewrite.TilewrightWarning)
        ours = case.make(tilewright.jit)(*case.args(), **case.kwargs)
    if case.name in UNCHANGED:
        assert outcomes() == {"unchanged"}
    else:
        # A part of a function may be as it should be.
        assert "rewritten" in outcomes() <= {"rewritten", "unchanged"}
    close(ours, plain(case.name)[1])
