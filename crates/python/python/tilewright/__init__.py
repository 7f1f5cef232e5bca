"""Read, check, rewrite and run XLA's HLO.

``Module.load`` reads a module, ``optimize`` rewrites it so that it costs less, ``check`` compares
two modules, ``run`` evaluates one on NumPy arrays, and ``cost`` tells what it costs. ``Builder``
builds modules, ``module.edit()`` changes them, and ``Rule`` and ``Pass`` are rewrites of your own.
"""

from __future__ import annotations

from typing import Any

from tilewright import pattern
from tilewright._api import (
    Pass,
    check,
    cost,
    explain,
    lower,
    ops,
    optimize,
    passes,
    run,
    simulate,
    targets,
    try_rule,
)
from tilewright._core import (
    Builder,
    Computation,
    Edit,
    Instruction,
    Match,
    Module,
    NewValue,
    Pattern,
    Replacement,
    Rule,
    Shape,
    Value,
)
from tilewright._errors import (
    Diagnostic,
    DoesNotApply,
    EvaluationError,
    FileError,
    ParseError,
    RemovedError,
    TilewrightError,
    UsageError,
    VerifyError,
)
from tilewright._reports import (
    CheckReport,
    CostReport,
    Explanation,
    LowerReport,
    Optimized,
    OptReport,
    Ran,
    RuleTrial,
    RunReport,
)

# -- The names of the JAX integration, loaded when they are first asked for: begin --------------
_JAX_NAMES: tuple[str, ...] = ()


def __getattr__(name: str) -> Any:
    if name in _JAX_NAMES:
        from tilewright import _jax

        return getattr(_jax, name)
    raise AttributeError(f"module 'tilewright' has no attribute {name!r}")


# -- The names of the JAX integration: end -------------------------------------------------------

__all__ = [
    "Builder",
    "CheckReport",
    "Computation",
    "CostReport",
    "Diagnostic",
    "DoesNotApply",
    "Edit",
    "EvaluationError",
    "Explanation",
    "FileError",
    "Instruction",
    "LowerReport",
    "Match",
    "Module",
    "NewValue",
    "OptReport",
    "Optimized",
    "ParseError",
    "Pass",
    "Pattern",
    "Ran",
    "RemovedError",
    "Replacement",
    "Rule",
    "RuleTrial",
    "RunReport",
    "Shape",
    "TilewrightError",
    "UsageError",
    "Value",
    "VerifyError",
    "check",
    "cost",
    "explain",
    "lower",
    "ops",
    "optimize",
    "passes",
    "pattern",
    "run",
    "simulate",
    "targets",
    "try_rule",
]
