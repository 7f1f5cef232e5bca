"""Tilewright inside JAX: `jit`, `install`, `tune`, `report` and `explain`."""

from tilewright._jax._ahead import tune
from tilewright._jax._decisions import load_decisions
from tilewright._jax._explain import explain
from tilewright._jax._install import install, uninstall
from tilewright._jax._jit import jit, marked
from tilewright._jax._report import Decision, Report, report
from tilewright._jax._rewrite import TilewrightWarning
from tilewright._jax._settings import off

__all__ = [
    "Decision",
    "Report",
    "TilewrightWarning",
    "explain",
    "install",
    "jit",
    "load_decisions",
    "marked",
    "off",
    "report",
    "tune",
    "uninstall",
]
