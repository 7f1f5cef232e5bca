"""Reads, checks, rewrites and runs XLA's HLO."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tilewright._core import Module, TilewrightError, optimize

if TYPE_CHECKING:
    from tilewright._jax import TilewrightWarning, explain, install, jit, report, uninstall

__all__ = [
    "Module",
    "TilewrightError",
    "TilewrightWarning",
    "explain",
    "install",
    "jit",
    "optimize",
    "report",
    "uninstall",
]

_IN_JAX = ("TilewrightWarning", "explain", "install", "jit", "report", "uninstall")


def __getattr__(name: str) -> Any:
    # JAX is imported when it is first needed.
    if name in _IN_JAX:
        from tilewright import _jax

        return getattr(_jax, name)
    raise AttributeError(f"module 'tilewright' has no attribute {name!r}")
