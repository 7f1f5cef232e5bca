"""What a rewrite may do to floats, in a word."""

from __future__ import annotations

from tilewright._errors import UsageError


def numerics(exact: bool, guards: bool, fast_math: bool) -> str:
    """The most lenient class of rewrites that is allowed: `exact`, `bounded`, `guarded` or `fast-math`."""
    if exact and fast_math:
        raise UsageError("exact and fast_math exclude each other", code="usage")
    if exact:
        return "exact"
    if fast_math:
        return "fast-math"
    return "guarded" if guards else "bounded"
