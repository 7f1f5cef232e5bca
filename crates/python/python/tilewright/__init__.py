"""Read, check, rewrite and run XLA's HLO.

``Module.load`` reads a module, ``optimize`` rewrites it so that it costs less, ``check`` compares
two modules, ``run`` evaluates one on NumPy arrays, and ``cost`` tells what it costs. ``Builder``
builds modules, ``module.edit()`` changes them, and ``Rule`` and ``Pass`` are rewrites of your own.
``module.graph()`` draws a module, ``module.report()`` writes a page on its optimisation,
``module.diff(other)`` compares graphs, and ``module.reduce(keep)`` makes a module smaller.

With JAX, ``jit`` is ``jax.jit`` with the rewriter in it, ``install`` puts it into every jit, ``tune``
measures what it makes, and ``report`` says what it did.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tilewright import pattern
from tilewright._api import (
    Pass,
    check,
    cost,
    explain,
    lower,
    memory,
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
    RuleSet,
    Shape,
    Subcomputation,
    Value,
    __version__,
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
    Difference,
    Explanation,
    LowerReport,
    MemoryReport,
    Optimized,
    OptReport,
    Ran,
    RuleTrial,
    RunReport,
)

if TYPE_CHECKING:
    from tilewright._jax import (
        Decision,
        TilewrightWarning,
        install,
        jit,
        load_decisions,
        off,
        report,
        tune,
        uninstall,
    )

_IN_JAX = (
    "Decision",
    "TilewrightWarning",
    "install",
    "jit",
    "load_decisions",
    "off",
    "report",
    "tune",
    "uninstall",
)


def __getattr__(name: str) -> Any:
    # JAX is imported when it is first needed.
    if name in _IN_JAX:
        from tilewright import _jax

        return getattr(_jax, name)
    raise AttributeError(f"module 'tilewright' has no attribute {name!r}")


__all__ = [
    "Builder",
    "CheckReport",
    "Computation",
    "CostReport",
    "Decision",
    "Diagnostic",
    "Difference",
    "DoesNotApply",
    "Edit",
    "EvaluationError",
    "Explanation",
    "FileError",
    "Instruction",
    "LowerReport",
    "MemoryReport",
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
    "RuleSet",
    "RuleTrial",
    "RunReport",
    "Shape",
    "Subcomputation",
    "TilewrightError",
    "TilewrightWarning",
    "UsageError",
    "Value",
    "VerifyError",
    "check",
    "cost",
    "explain",
    "install",
    "jit",
    "load_decisions",
    "lower",
    "memory",
    "off",
    "ops",
    "optimize",
    "passes",
    "pattern",
    "report",
    "run",
    "simulate",
    "targets",
    "try_rule",
    "tune",
    "uninstall",
]
