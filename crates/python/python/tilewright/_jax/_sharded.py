"""Modules that XLA divides over devices, rewritten as a whole when they are compiled.

Where arrays lie is known for the arguments of a module, not for those of a function in it. So
the function of a marked `jit` that is lowered for several devices stays as it is until its module
is compiled, and is rewritten then if the module consists of its call alone.
"""

from __future__ import annotations

import time
from typing import Any

from tilewright._jax import _internals as internals
from tilewright._jax import _rewrite
from tilewright._jax._report import amend
from tilewright._jax._settings import Settings, settings_of


# The names of marked functions that were lowered for several devices.
_WAITING: set[str] = set()


def wait_for(name: str) -> None:
    """Leaves a marked function to the time when its module is compiled."""
    _WAITING.add(name)


def is_divided(module: Any) -> bool:
    """Whether a module is for several devices that share the work of one program."""
    return internals.integer_attribute(module, "mhlo.num_partitions", 1) > 1


def marked(module: Any) -> Settings | None:
    """The settings of the marked function that `main` of a divided module does nothing but call.

    Marked functions that are called among others are recorded as left alone.
    """
    if not is_divided(module):
        return None
    waiting = {
        internals.name_of(function)
        for function in internals.functions(module)
        if internals.name_of(function) in _WAITING and not internals.is_rewritten(function)
    }
    callee = internals.only_callee(module)
    settings = settings_of(callee) if callee in waiting else None
    if settings is None:
        for name in sorted(waiting):
            _rewrite.skipped(name, "sharded")
    return settings


# Partitioners that were seen to gather an array after a rewrite that they leave alone before it. They are
# asked: both modules are compiled, and the one that communicates less is kept.
_ASKED = ("cpu", "gpu")


def is_partitioned_here(backend: Any, module: Any) -> bool:
    """Whether it takes a compilation to know what the devices of a module will exchange."""
    return backend.platform in _ASKED and is_divided(module)


def with_fewer_exchanges(rewritten: Any, original: Any, name: str, settings: Settings) -> Any:
    """The rewritten program, unless it communicates more than the original, or nobody can tell."""
    from tilewright._jax._traffic import traffic

    try:
        after, before = (
            traffic(internals.compiled_text(program)) for program in (rewritten, original)
        )
    except Exception as error:
        _rewrite.failed(name, error, settings)
        return original
    worse = after.worse_than(before)
    if not worse:
        return rewritten
    amend(name, f"left: more to exchange ({', '.join(worse)})")
    return original


def settings_within(module: Any) -> Settings | None:
    """The settings of the first marked function of a module."""
    all_settings = (settings_of(internals.name_of(one)) for one in internals.functions(module))
    return next((settings for settings in all_settings if settings is not None), None)


def rewritten(module: Any, target: str, settings: Settings, name: str) -> Any:
    """The module with its `main` rewritten where that pays, or the module itself."""
    start = time.perf_counter()
    outcome, why = None, "unchanged"
    try:
        outcome = _rewrite.optimized(source(module), target, settings)
        if outcome.rewritten is not None:
            module, why = with_body(module, outcome.rewritten), "rewritten"
    except _rewrite.Left as left:
        why = str(left)
    except Exception as error:
        why = f"failed: {type(error).__name__}"
        _rewrite.failed(name, error, settings)
    _rewrite.note(name, target, why, outcome, time.perf_counter() - start)
    return module


def source(module: Any) -> _rewrite.Source:
    """A divided module as HLO. Raises `Left` if it must stay as it is."""
    if internals.integer_attribute(module, "mhlo.num_replicas", 1) != 1:
        raise _rewrite.Left("replicas")
    if not internals.shardings_come_back(module):
        raise _rewrite.Left("sharded")
    return _rewrite.source(module)


def with_body(module: Any, rewritten: bytes) -> Any:
    """A copy of a divided module whose `main` is that of a rewritten one."""
    copy = internals.copy_of(module)
    body = _rewrite.parsed(rewritten, copy.context)
    internals.restore_shardings(body)
    internals.verify_beside(body, copy)
    _rewrite.replace(copy, internals.MAIN, body)
    return copy
