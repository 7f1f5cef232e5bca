"""Methods of ``Module`` that are written in Python: ``_core.pyi`` says what they take."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from tilewright import _core
from tilewright._api import Added, loaded, optimisation
from tilewright._numerics import numerics
from tilewright._reports import Difference, Ran, RunReport


def graph(
    module: _core.Module,
    form: str = "svg",
    *,
    after: bool = False,
    around: str | _core.Instruction | None = None,
    depth: int = 2,
    computation: str | _core.Computation | None = None,
    cost: bool = False,
    profile: Ran | RunReport | None = None,
    target: str | None = None,
    exact: bool = False,
    guards: bool = True,
    fast_math: bool = False,
    pipeline: str | None = None,
    passes: Iterable[str | Added] | None = None,
    rules: Iterable[Added] = (),
) -> str:
    """``Module.graph``."""
    if isinstance(profile, Ran):
        profile = profile.report
    shown = {
        "form": form,
        "after": after,
        "around": getattr(around, "name", around),
        "depth": depth,
        "computation": getattr(computation, "name", computation),
        "cost": cost,
        "profile": None if profile is None else json.dumps(profile.to_dict()),
    }
    allowed = numerics(exact, guards, fast_math)
    asked = optimisation(target, allowed, pipeline, passes, rules)
    return _core.graph(module, shown, asked)


def report(
    module: _core.Module,
    target: str | None = None,
    *,
    check: bool = False,
    exact: bool = False,
    guards: bool = True,
    fast_math: bool = False,
    pipeline: str | None = None,
    passes: Iterable[str | Added] | None = None,
    rules: Iterable[Added] = (),
    max_steps: int | None = None,
    max_bytes: int | None = None,
) -> str:
    """``Module.report``."""
    allowed = numerics(exact, guards, fast_math)
    asked = optimisation(target, allowed, pipeline, passes, rules)
    limits = {"max_steps": max_steps, "max_bytes": max_bytes}
    return _core.report_page(module, asked, check=check, **limits)


def diff(
    module: _core.Module, other: Any, *, metadata: bool = False, limit: int = 100
) -> Difference:
    """``Module.diff``."""
    as_json, text, page = _core.diff(module, loaded(other), metadata=metadata, limit=limit)
    return Difference(text, json.loads(as_json), page)
