"""Measures forms of a program on its own arguments, and has the fastest run."""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import jax

from tilewright._jax import _decisions, _rewrite, _sharded
from tilewright._jax import _internals as internals
from tilewright._jax._forms import Program
from tilewright._jax._measure import Failed, Measurement, TooSlow
from tilewright._jax._peers import Alone, peers_of
from tilewright._jax._report import Decision
from tilewright._jax._settings import Settings, is_off, off, plain, settings_of

_LOCK = threading.RLock()
_HERE = threading.local()

# The method that compiles in JAX, once it is replaced.
_BEFORE: list[Callable[..., Any]] = []


# --- what JAX calls ------------------------------------------------------------


def watch(settings: Settings) -> bool:
    """Sees from now on what JAX compiles. Returns whether this JAX has what that takes."""
    with _LOCK:
        try:
            internals.call_function()
            if not _BEFORE:
                _BEFORE.append(internals.compile_method())
                internals.set_compile_method(_compile)
        except AttributeError as error:
            _rewrite.failed("what is to be tuned", error, settings)
        return bool(_BEFORE)


def _compile(computation: Any, compiler_options: Any = None, **kwargs: Any) -> Any:
    def before(one: Any) -> Any:
        return _BEFORE[0](one, compiler_options, **kwargs)

    settings, args = None, None
    if not is_off() and not any(kwargs.values()):
        try:
            settings = _settings(computation, compiler_options is None)
            args = internals.arguments_of_caller(2)
        except Exception as error:
            _rewrite.failed("a module", error, Settings())
            settings = None
    if settings is None:
        return before(computation)
    with contextlib.suppress(Exception):
        # Who computes them may need what the lock guards; their errors are the program's.
        jax.block_until_ready(args)
    start = time.perf_counter()
    with _LOCK:
        if compiler_options is None and computation._executable is not None:
            return before(computation)
        options = dict(compiler_options or {})
        work = _Work(internals.Lowered(computation), settings, before, options)
        try:
            with _tuning():
                compiled, is_decided = work.tuned(args)
        except Exception as error:
            if work.is_own_error:
                raise
            _rewrite.failed(work.name, error, settings)
            why = f"failed: {type(error).__name__}"
            _rewrite.note(work.name, "", why, None, time.perf_counter() - start)
            with off():
                return before(computation)
        if compiler_options is None and is_decided:
            computation._executable = compiled
        return compiled


def _settings(computation: Any, is_kept: bool) -> Settings | None:
    """The settings by which a program is to be tuned; none if it is not to be."""
    from tilewright._jax import _install, _jit

    if getattr(_HERE, "is_tuning", False) or (is_kept and computation._executable is not None):
        return None
    module = computation.stablehlo()
    name = internals.module_name(module)
    settings = settings_of(name) or _install.settings_for(module)
    if settings is None or not settings.tune or not _jit.is_ready(settings):
        return None
    marked = (settings_of(internals.name_of(one)) for one in internals.functions(module))
    if any(one is not None and one.numerics != settings.numerics for one in marked):
        _rewrite.skipped(name, "not tuned: it calls functions with other numerics")
        return None
    return settings


@contextlib.contextmanager
def _tuning() -> Iterator[None]:
    """What is compiled within is compiled as it stands."""
    _HERE.is_tuning = True
    try:
        with off():
            yield
    finally:
        _HERE.is_tuning = False


# --- what is decided -----------------------------------------------------------


class _Work:
    """What is to be done for a program that JAX compiles."""

    def __init__(
        self,
        lowered: internals.Lowered,
        settings: Settings,
        compile: Callable[[Any], Any],
        options: dict[str, Any],
    ) -> None:
        self._lowered, self._settings, self._compile = lowered, settings, compile
        self._options = options
        self.name = _name(lowered)
        self.is_own_error = False
        """Whether the original does not compile, which is no fault of ours."""

    def tuned(self, args: tuple[Any, ...] | None) -> tuple[Any, bool]:
        """The compiled form that is to run, and whether it is known to be the fastest. Without arguments,
        nothing is measured."""
        start = time.perf_counter()
        target = self._settings.target_on(internals.platform_of(self._lowered.backend))
        try:
            if target is None:
                raise _rewrite.Left(f"no target for {self._lowered.backend.platform}")
            program = Program(self._lowered, target, self._settings, self._options)
        except _rewrite.Left as left:
            _rewrite.note(self.name, target or "", str(left), None, time.perf_counter() - start)
            return self._original(), True
        decision, compiled, form, why = self._chosen(program, args)
        outcome = program.outcome(form)
        is_same = outcome is None or outcome.rewritten is None
        done = f"tuned: {form}" if decision else "unchanged" if is_same else "rewritten"
        why = ", ".join(filter(None, (done, why)))
        _HERE.decision = decision
        _rewrite.note(self.name, target, why, outcome, time.perf_counter() - start, decision)
        return compiled, decision is not None or args is not None

    def _chosen(
        self, program: Program, args: tuple[Any, ...] | None
    ) -> tuple[Decision | None, Any, str, str]:
        """What was decided, if anything was; the compiled form that is to run, its name, and why nothing
        was decided."""
        key = program.key()
        peers = peers_of(self._lowered, key["module"])
        if not peers.is_same(key):
            raise RuntimeError("processes that run one program differ in versions or options")
        known = peers.agree(known_decision(program, key))
        if known is not None:
            compiled, form = self._form(program, known["winner"], peers)
            peers.end()
            return Decision(self.name, form, known["forms"], 0.0), compiled, form, ""
        why = ""
        if args is not None and not self._lowered.is_pure:
            why = "not tuned: effects"
        elif args is not None:
            try:
                return self._measured(program, key, args, peers)
            except TooSlow:
                why = "not tuned: too slow"
        compiled, form = self._by_model(program, peers)
        return None, compiled, form, why

    def _measured(
        self, program: Program, key: dict[str, str], args: tuple[Any, ...], peers: Alone
    ) -> tuple[Decision | None, Any, str, str]:
        start = time.perf_counter()
        forms = program.forms()
        original = self._original()
        if len(forms) == 1:
            return None, original, _rewrite.ORIGINAL, ""
        measurement = Measurement(program, forms, args, self._compile, peers)
        try:
            measurement.run(original)
        except Failed as error:
            # It may be the program's own error, which is for JAX to raise.
            _rewrite.failed(self.name, error, self._settings, is_ours=False)
            return None, original, _rewrite.ORIGINAL, "not tuned: fails"
        winner = peers.agree(measurement.race.winner or 0)
        peers.end()
        form = forms[winner]["name"]
        program.forget({one["name"] for one in forms} - {form, _rewrite.DEFAULT})
        found = {
            **key,
            "function": self.name,
            "winner": form,
            "digest": program.digest(form),
            "seconds": time.perf_counter() - start,
            "forms": json.loads(measurement.race.measured(json.dumps(forms))),
        }
        _decisions.remember(key, found)
        decision = Decision(self.name, form, found["forms"], found["seconds"])
        return decision, measurement.compiled[winner], form, ""

    def _by_model(self, program: Program, peers: Alone) -> tuple[Any, str]:
        """The default form, compiled, unless it may exchange more than the original."""
        compiled, form = self._form(program, _rewrite.DEFAULT, peers)
        is_asked = _sharded.is_partitioned_here(self._lowered.backend, program.module)
        if form == _rewrite.ORIGINAL or not is_asked:
            return compiled, form
        original = self._original()
        pair = [one.runtime_executable() for one in (compiled, original)]
        chosen = _sharded.with_fewer_exchanges(*pair, self.name, self._settings)
        return (compiled, form) if chosen is pair[0] else (original, _rewrite.ORIGINAL)

    def _form(self, program: Program, name: str, peers: Alone) -> tuple[Any, str]:
        """A compiled form and its name, or the original if the engine refuses the form on any process."""
        why, compiled = "", None
        try:
            module = program.module_of(name)
            if module is not None:
                compiled = self._compile(self._lowered.with_module(module))
        except Exception as error:
            why = str(error)
        if why := next(filter(None, peers.gather(why)), ""):
            _rewrite.failed(self.name, RuntimeError(why), self._settings)
        if why or compiled is None:
            return self._original(), _rewrite.ORIGINAL
        return compiled, name

    def _original(self) -> Any:
        try:
            # A copy, so that JAX does not keep what is compiled ahead of time.
            return self._compile(self._lowered.with_module(self._lowered.module))
        except Exception:
            self.is_own_error = True
            raise


def known_decision(program: Program, key: dict[str, str]) -> dict[str, Any] | None:
    """What was decided on a program, unless what won is made otherwise now."""
    holds = (one for one in _decisions.find(key) if one["digest"] == program.digest(one["winner"]))
    return next(holds, None)


def decision_on(lowered: Any, settings: Settings) -> Decision | None:
    """What is known of a function that JAX has lowered, if it was measured."""
    try:
        own = internals.Lowered(internals.computation_of(lowered))
        target = settings.target_on(internals.platform_of(own.backend))
        program = Program(own, target or "", settings, {})
        found = known_decision(program, program.key())
    except Exception:
        return None
    return Decision(_name(own), found["winner"], found["forms"], 0.0) if found else None


def _name(lowered: internals.Lowered) -> str:
    """The name of the function, as in the program."""
    return plain(internals.module_name(lowered.module)).removeprefix("jit_")


@contextlib.contextmanager
def deciding() -> Iterator[Callable[[], Decision | None]]:
    """Gives the last decision that is made within."""
    _HERE.decision = None
    yield lambda: getattr(_HERE, "decision", None)
