"""`tilewright.jit` beside `jax.jit` on every feature of it.

With a rewriter that changes nothing, the executables are the same; with the real one, the values.
"""

from __future__ import annotations

import collections
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
INSTRUCTION = re.compile(r"^\s*(?:ROOT )?%?\S+ = (\S+) ([a-z][a-z0-9-]*)\(", re.MULTILINE)


@pytest.fixture
def identity(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A rewriter that gives back what it is given."""
    # JAX remembers what other tests lowered.
    jax.clear_caches()

    def unchanged(source: tuple[Any, bytes], *_: Any) -> _rewrite.Outcome:
        module, _ = source
        return _rewrite.Outcome(module.to_proto(), module.instruction_count, 1.0, 1.0, "")

    monkeypatch.setattr(_rewrite, "optimized", unchanged)
    yield
    jax.clear_caches()


def contents(text: str) -> collections.Counter[tuple[str, str]]:
    """How often each shape and opcode is in a compiled module."""
    return collections.Counter(INSTRUCTION.findall(text))


def headers(text: str) -> list[str]:
    """The attributes of a compiled module."""
    # JAX 0.10 and earlier say of a callback that it runs on the one device that there is.
    return [MESHES.sub("", header) for header in HEADER.findall(text)]


def compiled(case: Case, jit: Any) -> str:
    """The compiled text of a case."""
    made = case.make(jit)
    lowering = made if hasattr(made, "lower") else jax.jit(made)
    return lowering.lower(*case.args(), **case.kwargs).compile().as_text()


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


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_same_executable_without_rewrites(case: Case, identity: None) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", _rewrite.TilewrightWarning)
        plain, ours = compiled(case, jax.jit), compiled(case, tilewright.jit)
    assert contents(plain) == contents(ours)
    assert headers(plain) == headers(ours)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_same_executable_where_it_is_installed(case: Case, identity: None) -> None:
    plain = compiled(case, jax.jit)
    with warnings.catch_warnings():
        warnings.simplefilter("error", _rewrite.TilewrightWarning)
        tilewright.install()
        try:
            ours = compiled(case, jax.jit)
        finally:
            tilewright.uninstall()
    assert contents(plain) == contents(ours)
    assert headers(plain) == headers(ours)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_same_values(case: Case) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", _rewrite.TilewrightWarning)
        ours = case.make(tilewright.jit)(*case.args(), **case.kwargs)
    close(ours, case.make(jax.jit)(*case.args(), **case.kwargs))
