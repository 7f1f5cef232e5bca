"""What the rewriter would do to a function."""

from __future__ import annotations

import functools
import html
import json
from collections.abc import Callable, Sequence
from typing import Any

import jax

from tilewright import _core
from tilewright._jax import _internals, _tune
from tilewright._jax._jit import settings_of_jit
from tilewright._jax._report import Decision
from tilewright._jax._settings import Settings, without_marks
from tilewright._api import memory
from tilewright._numerics import numerics
from tilewright._reports import Explanation, MemoryReport


class FunctionExplanation(Explanation):
    """What the rewriter does to a function for some arguments, and what that saves."""

    def __init__(
        self,
        target: str,
        original: _core.Module,
        rewritten: _core.Module,
        texts: Sequence[str],
        decision: Decision | None,
    ) -> None:
        as_json, table, explanation = texts
        super().__init__(table, json.loads(as_json), explanation)
        self.target = target
        self.original = original
        """The module as JAX wrote it."""
        self.rewritten = rewritten
        self.decision = decision
        """What measuring has decided for these arguments; none if nothing was measured."""
        self._table = table

    @functools.cached_property
    def memory(self) -> MemoryReport:
        """The arrays that the original keeps in memory, and what would help."""
        return memory(self.original, self.target)

    def __str__(self) -> str:
        measured = f"\n\nMeasured; `{self.decision.winner}` runs:\n{self.decision}" if self.decision else ""
        return f"{self.explanation}\n\n{self._table}{measured}"

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(str(self))}</pre>"


def explain(
    fun: Callable[..., Any],
    *,
    target: str = "auto",
    exact: bool = False,
    guards: bool = True,
    fast_math: bool = False,
) -> Callable[..., FunctionExplanation]:
    """A function that takes the arguments of `fun` and explains what `jit` would rewrite.

    `fun` may be a `jax.jit` of a function. It is traced and lowered, and neither compiled nor run.
    """
    settings = Settings(target, numerics(exact, guards, fast_math))
    plain = fun if hasattr(fun, "lower") else jax.jit(fun)

    def explained(*args: Any, **kwargs: Any) -> FunctionExplanation:
        lowered = plain.lower(*args, **kwargs)
        platform = _internals.platform_of(jax.devices()[0].client)
        chosen = settings.target_on(platform)
        if chosen is None:
            raise ValueError(f"name a target: there is none for the platform {platform}")
        original = _core.Module.load(lowered)
        rewritten, *texts = _core.optimize(
            original, chosen, numerics=settings.numerics, layers=True
        )
        texts = [without_marks(text) for text in texts]
        decision = _tune.decision_on(lowered, settings_of_jit(fun) or settings)
        return FunctionExplanation(chosen, original, rewritten, texts, decision)

    return explained
