"""What the rewriter would do to a function."""

from __future__ import annotations

import dataclasses
import html
import json
from collections.abc import Callable
from typing import Any

import jax

from tilewright import _core
from tilewright._jax._settings import Settings


@dataclasses.dataclass(frozen=True)
class Explanation:
    """What the rewriter does to a function for some arguments, and what that saves."""

    target: str
    before: _core.Module
    after: _core.Module
    report: dict[str, Any]
    """The report of the command `opt --stats --json`."""
    text: str
    """What was rewritten and what was left, with reasons."""
    table: str
    """The costs before and after."""

    def __str__(self) -> str:
        return f"{self.text}\n\n{self.table}"

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(str(self))}</pre>"


def explain(
    fun: Callable[..., Any],
    *,
    target: str = "auto",
    exact: bool = False,
    fast_math: bool = False,
    **jit_kwargs: Any,
) -> Callable[..., Explanation]:
    """A function that takes the arguments of `fun` and explains what `jit` would rewrite.

    `fun` is traced and lowered, and neither compiled nor run.
    """
    settings = Settings(target, exact, fast_math)
    plain = fun if hasattr(fun, "lower") else jax.jit(fun, **jit_kwargs)

    def explained(*args: Any, **kwargs: Any) -> Explanation:
        lowered = plain.lower(*args, **kwargs)
        platform = jax.default_backend()
        chosen = settings.target_on(platform)
        if chosen is None:
            raise ValueError(f"name a target: there is none for the platform {platform}")
        hlo = lowered.compiler_ir(dialect="hlo").as_serialized_hlo_module_proto()
        before = _core.Module.from_proto(hlo)
        after, report, table, text = _core.optimize(
            before, chosen, exact=exact, fast_math=fast_math
        )
        return Explanation(chosen, before, after, json.loads(report), text, table)

    return explained
