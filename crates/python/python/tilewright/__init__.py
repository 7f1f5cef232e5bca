"""Reads, checks, rewrites and runs XLA's HLO."""

from tilewright._core import Module, TilewrightError, optimize

__all__ = ["Module", "TilewrightError", "optimize"]
