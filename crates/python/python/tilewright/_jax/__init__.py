"""Tilewright inside JAX: `jit`, `install`, `report` and `explain`."""

from tilewright._jax._explain import explain
from tilewright._jax._install import install, uninstall
from tilewright._jax._jit import jit, marked
from tilewright._jax._report import Report, report
from tilewright._jax._rewrite import TilewrightWarning
from tilewright._jax._settings import off

__all__ = [
    "Report",
    "TilewrightWarning",
    "explain",
    "install",
    "jit",
    "marked",
    "off",
    "report",
    "uninstall",
]
