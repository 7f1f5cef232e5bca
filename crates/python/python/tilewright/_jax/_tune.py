"""Measures forms of a program on its own arguments, and has the fastest run."""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

from tilewright._jax import _decisions, _rewrite, _sharded
from tilewright._jax import _internals as internals
from tilewright._jax._forms import Program
from tilewright._jax._measure import OwnError, race
from tilewright._jax._report import Decision
from tilewright._jax._settings import Settings, is_off, off, plain, settings_of

_LOCK = threading.RLock()
_BUSY = threading.local()


# --- what JAX calls ------------------------------------------------------------


def watch(settings: Settings) -> bool:
    """Sees from now on what JAX compiles. Returns whether this JAX has what that takes."""
    with _LOCK:
        try:
            internals.call_function()
            before = internals.compile_method()
        except AttributeError as error:
            _rewrite.failed("what is to be tuned", error, settings)
            return False
        if before is not _compile:
            _before.append(before)
            internals.set_compile_method(_compile)
        return True


_before: list[Callable[..., Any]] = []


def _compile(computation: Any, compiler_options: Any = None, **kwargs: Any) -> Any:
    from tilewright._jax import _install, _jit

    def before(one: Any) -> Any:
        return _before[-1](one, compiler_options, **kwargs)

    is_first = compiler_options is not None or computation._executable is None
    if is_off() or not is_first or getattr(_BUSY, "is_tuning", False):
        return before(computation)
    module = computation.stablehlo()
    name = internals.module_name(module)
    settings = settings_of(name) or _install.settings_for(module)
    # A gradient has the name of its function, which is rewritten within it.
    if settings is None or _sharded.settings_within(module) is not None:
        return before(computation)
    if not settings.tune or not _jit.is_ready(settings):
        return before(computation)
    args = internals.arguments_of_caller(2)
    try:
        with _LOCK, _tuning():
            compiled = _tuned(internals.Lowered(computation), args, settings, before)
    except OwnError as error:
        raise error.__cause__ or error from None
    except Exception as error:
        _rewrite.failed(plain(name), error, settings)
        with off():
            return before(computation)
    if compiler_options is None:
        computation._executable = compiled
    return compiled


@contextlib.contextmanager
def _tuning() -> Iterator[None]:
    """What is compiled within is compiled as it stands."""
    _BUSY.is_tuning = True
    try:
        with off():
            yield
    finally:
        _BUSY.is_tuning = False


# --- what is decided -----------------------------------------------------------


def _tuned(
    lowered: internals.Lowered,
    args: tuple[Any, ...] | None,
    settings: Settings,
    compile: Callable[[Any], Any],
) -> Any:
    """The compiled form of a program that is to run: the fastest as far as is known."""
    start = time.perf_counter()
    name = plain(internals.module_name(lowered.module)).removeprefix("jit_")
    target = settings.target_on(internals.platform_of(lowered.backend))
    try:
        if target is None:
            raise _rewrite.Left(f"no target for {lowered.backend.platform}")
        program = Program(lowered, target, settings)
    except _rewrite.Left as left:
        _rewrite.note(name, target or "", str(left), None, time.perf_counter() - start)
        return compile(lowered.computation)
    peers, key = _decisions.peers_of(lowered), program.key()
    decision = peers.agree(_known(program, key))
    if decision is None and args is not None and lowered.is_pure:
        decision, compiled = _decided(program, key, name, args, compile, peers)
    elif decision is not None:
        # It was measured before.
        decision = {**decision, "seconds": 0.0}
        compiled = _compiled(program, decision["winner"], compile)
    else:
        # Without arguments nothing can be measured, and what has effects must not run twice.
        compiled = _compiled(program, _rewrite.DEFAULT, compile)
    _tell(program, name, decision, time.perf_counter() - start)
    return compiled


def _known(program: Program, key: dict[str, str]) -> dict[str, Any] | None:
    """What was decided on a program, unless what won is made otherwise now."""
    decision = _decisions.find(key)
    if decision is None or decision["digest"] != program.digest(decision["winner"]):
        return None
    return decision


def _compiled(program: Program, form: str, compile: Callable[[Any], Any]) -> Any:
    """A compiled form, or the compiled original if the engine refuses the form."""
    lowered, module = program.lowered, program.module_of(form)
    if module is not None:
        try:
            return compile(lowered.with_module(module))
        except Exception as error:
            _rewrite.failed(internals.module_name(lowered.module), error, program.settings)
    return compile(lowered.computation)


def _decided(
    program: Program,
    key: dict[str, str],
    name: str,
    args: tuple[Any, ...],
    compile: Callable[[Any], Any],
    peers: _decisions.Alone | _decisions.Peers,
) -> tuple[dict[str, Any] | None, Any]:
    """Measures the forms of a program. Returns what was decided, and the compiled winner; nothing is
    decided where there is one form."""
    start = time.perf_counter()
    forms = program.forms()
    if len(forms) == 1:
        return None, compile(program.lowered.computation)
    ran, compiled = race(program, forms, args, compile, peers)
    winner = peers.agree(ran.winner or 0)
    form = forms[winner]["name"]
    decision = {
        **key,
        "function": name,
        "winner": form,
        "digest": program.digest(form),
        "seconds": time.perf_counter() - start,
        "forms": json.loads(ran.measured(json.dumps(forms))),
    }
    _decisions.remember(key, decision)
    return decision, compiled[winner]


def _tell(
    program: Program, name: str, decision: dict[str, Any] | None, seconds: float
) -> None:
    """Records what became of a program."""
    made = None
    if decision is not None:
        made = Decision(name, decision["winner"], decision["forms"], decision["seconds"])
        _LAST.decision = made
    form = made.winner if made else _rewrite.DEFAULT
    outcome = program.outcome(form)
    why = "unchanged" if outcome is None or outcome.rewritten is None else "rewritten"
    if made is not None and len(made.forms) > 1:
        why = f"tuned: {made.winner}"
    elif made is None and not program.lowered.is_pure:
        why += ", not tuned: effects"
    _rewrite.note(name, program.target, why, outcome, seconds, made)


def decision_on(lowered: Any, settings: Settings) -> Decision | None:
    """What is known of a function that JAX has lowered, if it was measured."""
    try:
        own = internals.Lowered(internals.computation_of(lowered))
        target = settings.target_on(internals.platform_of(own.backend))
        program = Program(own, target or "", settings)
        found = _known(program, program.key())
    except Exception:
        return None
    name = plain(internals.module_name(own.module)).removeprefix("jit_")
    return Decision(name, found["winner"], found["forms"], 0.0) if found else None


# The last decision of this thread.
_LAST = threading.local()


@contextlib.contextmanager
def deciding() -> Iterator[Callable[[], Decision | None]]:
    """Gives the last decision that is made within."""
    _LAST.decision = None
    yield lambda: getattr(_LAST, "decision", None)
