"""`jit` with the rewriter in it."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import threading
import types
from collections.abc import Callable, Iterator
from typing import Any, ParamSpec, TypeVar, overload

import jax
import numpy as np

from tilewright._jax._settings import OnError, Settings, is_off, is_tuned, plain, settings_of
from tilewright._numerics import numerics

P = ParamSpec("P")
T = TypeVar("T")


# The attribute of a function with the marked functions made from it, by their settings.
_MADE = "_tilewright_marked"


class Marked:
    """A function whose lowering is rewritten when it is called in a traced function.

    It holds an inner `jit` whose name carries the settings: all transformations of JAX keep the
    name, and the rule that lowers such a `jit` rewrites it. Two marked functions of one function
    and equal settings are equal, so that `jit` knows the second from the first.
    """

    def __init__(self, function: Callable[..., Any], settings: Settings) -> None:
        functools.update_wrapper(self, function)
        self.function = function
        self._key = (function, settings)
        if settings.tune:
            # What is measured is a whole module, which has the name of the outer `jit`.
            self.__name__ = self.__qualname__ = self._name()

    def _name(self) -> str:
        function, settings = self._key
        return getattr(function, "__name__", type(function).__name__) + settings.mark

    @property
    def settings(self) -> Settings:
        """How the function is rewritten."""
        return self._key[1]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        function, settings = self._key
        if settings.tune:
            return function(*args, **kwargs)
        leaves, tree = jax.tree.flatten((args, kwargs))
        is_array = [isinstance(leaf, (jax.core.Tracer, jax.Array, np.ndarray)) for leaf in leaves]

        def inner(arrays: list[Any]) -> Any:
            left = iter(arrays)
            mixed = [
                next(left) if is_one else leaf
                for is_one, leaf in zip(is_array, leaves, strict=True)
            ]
            own_args, own_kwargs = jax.tree.unflatten(tree, mixed)
            return function(*own_args, **own_kwargs)

        inner.__name__ = inner.__qualname__ = self._name()
        return jax.jit(inner)(
            [leaf for is_one, leaf in zip(is_array, leaves, strict=True) if is_one]
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Marked) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)


def marked(function: Callable[P, T], settings: Settings) -> Callable[P, T]:
    """The function, rewritten wherever it is lowered; the function itself where JAX lacks the
    internals that the rewriter needs."""
    if not has_rule(settings):
        return function
    if settings.native:
        settings = _with_kernels(settings)
    if settings.tune:
        from tilewright._jax import _tune

        settings = dataclasses.replace(settings, tune=_tune.watch(settings))
    # JAX remembers what it traced as long as the function lives, so this one lives as long as
    # the function that it is made from.
    known: Marked | None = getattr(function, _MADE, {}).get(settings)
    if known is not None and known.function is function:
        return known
    made = Marked(function, settings)
    # The attributes of a bound method are those of its function, which outlives it.
    if hasattr(function, "__dict__") and not isinstance(function, types.MethodType):
        vars(function).setdefault(_MADE, {})[settings] = made
    return made


def settings_of_jit(fun: Any) -> Settings | None:
    """The settings of what `jit` below has returned; none of other functions."""
    wrapped = getattr(fun, "__wrapped__", None)
    return wrapped.settings if isinstance(wrapped, Marked) else None


@overload
def jit(fun: None = None, /, **options: Any) -> Callable[[Callable[P, T]], Callable[P, T]]: ...
@overload
def jit(fun: Callable[P, T], /, **options: Any) -> Callable[P, T]: ...
def jit(
    fun: Callable[..., Any] | None = None,
    /,
    *,
    target: str = "auto",
    exact: bool = False,
    guards: bool = True,
    fast_math: bool = False,
    on_error: OnError = "warn",
    native: bool = False,
    tune: bool | None = None,
    tune_seconds: float = 10.0,
    **jit_kwargs: Any,
) -> Any:
    """`jax.jit`, with Tilewright's rewriter between tracing and XLA.

    `target` is the machine that costs are modelled for: `auto` follows the platform (on CPUs the
    engine of jaxlib's version, `tpu-v5e` on TPUs, `xla-gpu-h100` on GPUs of NVIDIA, nothing
    elsewhere); or the name of a built-in target, or the path of a TOML file. `exact` forbids to
    regroup sums of floats, `guards=False` to compute sums in a way that a test must allow when the
    program runs; `fast_math` allows more than the bounds of the documentation. `on_error` says what
    happens if the rewriter fails: `warn` once and compile the function as it is, `ignore`, or
    `raise`. With `native`, reductions of arguments on a CPU are made by kernels of this package
    where these are faster than XLA's; such a function
    cannot be exported. With `tune`, which is on by default where the variable `TILEWRIGHT_TUNE` is set,
    the first call for each kind of arguments measures the original and what the rewriter makes of
    it, for about `tune_seconds` beside compiling the original, and the fastest serves all calls. All other arguments are those of
    `jax.jit`, and so is the result.
    """
    settings = Settings(
        target, numerics(exact, guards, fast_math), on_error, native, is_tuned(tune), tune_seconds
    )
    if fun is None:
        return functools.partial(
            jit,
            target=target,
            exact=exact,
            guards=guards,
            fast_math=fast_math,
            on_error=on_error,
            native=native,
            tune=tune,
            tune_seconds=tune_seconds,
            **jit_kwargs,
        )
    return jax.jit(marked(fun, settings), **jit_kwargs)


def _with_kernels(settings: Settings) -> Settings:
    """The settings, without `native` where XLA does not take the kernels."""
    from tilewright._jax import _native, _rewrite

    try:
        _native.register()
    except Exception as error:
        _rewrite.failed("native", error, settings)
        return dataclasses.replace(settings, native=False)
    return settings


_LOCK = threading.RLock()
_HAS_RULE: bool | None = None
_READY: bool | None = None


def has_rule(settings: Settings) -> bool:
    """Puts the rewriter into JAX on first use; returns whether JAX has the names for it.

    No backend is needed: a program may choose its devices after it has decorated a function.
    """
    global _HAS_RULE
    from tilewright._jax import _selftest

    with _LOCK:
        if _HAS_RULE is None:
            why = _selftest.why_unusable()
            _HAS_RULE = why is None
            if why is None:
                _set_rule()
            else:
                _selftest.tell(why, settings)
        return _HAS_RULE


def is_ready(settings: Settings) -> bool:
    """Whether the rewriter is in JAX and lowers a small function as it should: tried once, which
    needs a backend."""
    global _READY
    from tilewright._jax import _selftest

    # What the self-test lowers is rewritten without asking.
    if _selftest.is_running_here():
        return True
    if not has_rule(settings):
        return False
    with _LOCK:
        if _READY is None:
            why = _selftest.why_wrong()
            _READY = why is None
            if why is not None:
                _selftest.tell(why, settings)
        return _READY


# Whether the arguments of the function that is lowered now lie in memory.
_AROUND = threading.local()


@contextlib.contextmanager
def _around(is_stored: bool) -> Iterator[None]:
    before = getattr(_AROUND, "is_stored", False)
    _AROUND.is_stored = is_stored
    try:
        yield
    finally:
        _AROUND.is_stored = before


def _set_rule() -> None:
    from tilewright._jax import _internals as internals
    from tilewright._jax import _native, _rewrite

    before = internals.lowering_rule()

    def rule(ctx: Any, *args: Any, name: str, **params: Any) -> Any:
        is_stored = internals.are_stored(args, getattr(_AROUND, "is_stored", False))
        with _around(is_stored):
            return lowered(ctx, *args, name=name, is_stored=is_stored, **params)

    def lowered(ctx: Any, *args: Any, name: str, is_stored: bool, **params: Any) -> Any:
        settings = settings_of(name)
        if settings is None or _is_within_tuned(ctx, settings) or not is_ready(settings):
            return before(ctx, *args, name=name, **params)
        is_native = settings.native and not is_off()
        is_native &= _native.PLATFORM in internals.platforms(ctx)
        if is_native and internals.is_for_export(ctx):
            raise _native.ExportError(plain(name))
        is_native &= is_stored
        module = internals.module_of(ctx)
        known = {internals.name_of(function) for function in internals.functions(module)}
        results = before(ctx, *args, name=name, **params)
        try:
            _rewrite_new(ctx, module, known, name, settings, is_native)
        except Exception as error:
            _rewrite.failed(name, error, settings)
        return results

    internals.set_lowering_rule(rule)


def _is_within_tuned(ctx: Any, settings: Settings) -> bool:
    """Whether the whole module is to be measured, so that a function stays as it was written: one that allows
    floats to change as far as the module does."""
    from tilewright._jax import _install, _selftest
    from tilewright._jax import _internals as internals

    # What the self-test lowers is rewritten without asking.
    if _selftest.is_running_here():
        return False
    try:
        outer = settings_of(internals.module_name(internals.module_of(ctx)))
    except Exception:
        return False
    outer = outer or _install.settings_of_all()
    is_tuned = outer is not None and outer.tune and outer.numerics == settings.numerics
    return is_tuned and not internals.is_for_export(ctx)


def _rewrite_new(
    ctx: Any, module: Any, known: set[str], name: str, settings: Settings, is_native: bool
) -> None:
    """Rewrites the function that a marked `jit` was lowered to, if it is new."""
    from tilewright._jax import _install, _rewrite, _sharded
    from tilewright._jax import _internals as internals

    functions = [internals.name_of(function) for function in internals.functions(module)]
    new = [one for one in functions if one not in known and one.startswith(name)]
    if not new:
        return
    platforms = internals.platforms(ctx)
    target = settings.target_on(platforms[0]) if len(platforms) == 1 else None
    if is_off():
        why = "switched off"
    elif len(platforms) > 1:
        why = "several platforms"
    elif target is None:
        why = f"no target for {platforms[0]}"
    elif internals.has_symbolic_dims(ctx):
        why = "symbolic dims"
    elif not internals.is_local(ctx):
        # Where its arguments lie is known when the module is compiled.
        _sharded.wait_for(new[0])
        _install.watch()
        return
    else:
        _install.watch()
        is_one = internals.is_for_one_device(ctx)
        _rewrite.rewrite(
            module, new[0], target, settings, is_for_one_device=is_one, is_native=is_native
        )
        return
    _rewrite.skipped(name, why)
