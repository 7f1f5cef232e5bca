"""The rewriter for every `jit` of a process."""

from __future__ import annotations

import atexit
import dataclasses
import os
import sys
from typing import Any

from tilewright._jax._jit import is_ready
from tilewright._jax._report import amend, report
from tilewright._jax._settings import OnError, Settings, is_off, is_tuned, plain
from tilewright._numerics import numerics

# Modules of fewer ops are left alone: eager operations of JAX are compiled one by one.
_LEAST_OPS = 12

_before: Any = None
_settings: Settings | None = None
_waits_for_marked = False


def install(
    *,
    target: str = "auto",
    exact: bool = False,
    guards: bool = True,
    fast_math: bool = False,
    on_error: OnError = "warn",
    tune: bool | None = None,
    tune_seconds: float = 10.0,
) -> None:
    """Rewrites whatever JAX compiles in this process from now on.

    What is compiled already stays as it is. Tiny modules are left alone. A second call changes the
    settings.
    """
    global _before, _settings
    from tilewright._jax import _selftest

    settings = Settings(
        target,
        numerics(exact, guards, fast_math),
        on_error,
        tune=is_tuned(tune),
        tune_seconds=tune_seconds,
    )
    if _before is None:
        why = _selftest.why_unusable()
        if why is not None:
            _selftest.tell(why, settings)
            return
        _hook()
    if settings.tune:
        from tilewright._jax import _tune

        settings = dataclasses.replace(settings, tune=_tune.watch(settings))
    _settings = settings


def settings_for(module: Any) -> Settings | None:
    """The settings by which a module is rewritten as a whole; none if it is left alone."""
    return _settings if _settings is not None and _is_large(module) else None


def settings_of_all() -> Settings | None:
    """The settings by which every large module is rewritten; none if only marked functions are."""
    return _settings


def _is_large(module: Any) -> bool:
    from tilewright._jax import _internals as internals

    functions = list(internals.functions(module))
    ops = [op for function in functions for op in internals.contents(function).op_names]
    return len(ops) >= _LEAST_OPS


def uninstall() -> None:
    """Undoes `install`."""
    global _before, _settings
    from tilewright._jax import _internals as internals

    is_ours = _before is not None and internals.compile_function() is _compile
    if is_ours and not _waits_for_marked:
        internals.set_compile_function(_before)
        _before = None
    _settings = None


def watch() -> None:
    """Sees what JAX compiles from now on: marked functions that were lowered for several devices
    are rewritten then, and what an engine refuses is compiled as JAX wrote it."""
    global _waits_for_marked
    if _before is None:
        _hook()
    _waits_for_marked = True


def _hook() -> None:
    global _before
    from tilewright._jax import _internals as internals

    _before = internals.compile_function()
    internals.set_compile_function(_compile)


def _compile(backend: Any, computation: Any, *args: Any, **kwargs: Any) -> Any:
    from tilewright._jax import _internals as internals
    from tilewright._jax import _originals, _rewrite, _sharded

    settings, given = _settings, computation
    if _waits_for_marked and not is_off():
        settings = _sharded.marked(computation) or settings
    if settings is not None and not is_off():
        try:
            # The self-test needs a backend, so it waits for the first module.
            if is_ready(settings):
                computation = _rewritten(backend, computation, settings)
        except Exception as error:
            _rewrite.failed("a module", error, settings)
    try:
        compiled = _before(backend, computation, *args, **kwargs)
    except Exception as error:
        original = _originals.restored(given) or given
        if original is computation:
            raise
        # An error of the original is the program's own.
        compiled = _before(backend, original, *args, **kwargs)
        names = [plain(internals.name_of(function)) for function in internals.functions(given)]
        for name in {internals.module_name(given), *names}:
            amend(name, "left: refused by the engine")
        asked = settings or _sharded.settings_within(given) or Settings()
        _rewrite.failed(internals.module_name(given), error, asked)
        return compiled
    if settings is None or computation is given:
        return compiled
    if not _sharded.is_partitioned_here(backend, given):
        return compiled
    original = _before(backend, given, *args, **kwargs)
    name = internals.module_name(given)
    return _sharded.with_fewer_exchanges(compiled, original, name, settings)


def _rewritten(backend: Any, module: Any, settings: Settings) -> Any:
    """The module with its `main` rewritten, or the module itself."""
    from tilewright._jax import _internals as internals
    from tilewright._jax import _rewrite, _sharded

    target = settings.target_on(internals.platform_of(backend))
    if target is None:
        return module
    if not _is_large(module):
        return module
    name = internals.module_name(module)
    if _sharded.is_divided(module):
        return _sharded.rewritten(module, target, settings, name)
    if internals.integer_attribute(module, "mhlo.num_replicas", 1) != 1:
        _rewrite.skipped(name, "sharded")
        return module
    copy = internals.copy_of(module)
    is_rewritten = _rewrite.rewrite(copy, internals.MAIN, target, settings, shown=name)
    return copy if is_rewritten else module


def from_environment() -> None:
    """Does what the environment asks for: `TILEWRIGHT=1` (or the name of a target) installs the
    rewriter, `TILEWRIGHT_REPORT=1` prints the report at exit."""
    wanted = os.environ.get("TILEWRIGHT", "")
    if wanted in ("", "0"):
        return
    install(target="auto" if wanted == "1" else wanted)
    if os.environ.get("TILEWRIGHT_REPORT", "") not in ("", "0"):
        atexit.register(lambda: print(report(), file=sys.stderr))
