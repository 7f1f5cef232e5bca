"""Rewrites one function of an MLIR module, or leaves it as it is and says why."""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import hashlib
import json
import re
import threading
import time
import warnings
from collections.abc import Iterator
from typing import Any

from tilewright import _core
from tilewright._errors import TilewrightError
from tilewright._jax import _internals as internals
from tilewright._jax import _native, _originals
from tilewright._jax._report import Decision, Entry, record
from tilewright._jax._settings import Settings, plain


class TilewrightWarning(UserWarning):
    """A function was compiled as JAX wrote it: the rewriter failed, or the engine refused its result."""


class Left(Exception):
    """A function that is left alone, and why."""


@dataclasses.dataclass(frozen=True)
class Outcome:
    """The result of an optimisation."""

    rewritten: bytes | None
    """The rewritten module as StableHLO in bytecode; none if nothing pays."""
    instructions: int
    cycles_before: float
    cycles_after: float
    explanation: str
    ratio_error: float = 1.0


# Modules that differ in nothing but metadata, such as the layers of a model, are optimised once;
# all of them get the metadata of the first.
_MOST_REMEMBERED = 256

# Bytes of a serialised instruction, beyond which some are large constants.
_LARGE = 4096

# The name of a module in its text, on which nothing depends.
_NAME = re.compile(r"HloModule [^,\n]+")

# Digest, target, numerics, whether kernels are called, form.
Key = tuple[str, str, str, bool, str]

_LOCK = threading.Lock()
_REMEMBERED: collections.OrderedDict[Key, Outcome] = collections.OrderedDict()

_WARNED: set[str] = set()


def warn_once(message: str) -> None:
    """Warns, unless it has done so in the same words."""
    if message not in _WARNED:
        _WARNED.add(message)
        warnings.warn(message, TilewrightWarning, stacklevel=2)


class Bug(Exception):
    """The library panicked, which is a bug in it."""


@contextlib.contextmanager
def without_panics() -> Iterator[None]:
    """Raises a panic of the library as an `Exception`, which PyO3's is not."""
    try:
        yield
    except BaseException as error:
        if type(error).__name__ == "PanicException":
            raise Bug(str(error)) from error
        raise


def written(module: _core.Module) -> bytes:
    """A module as StableHLO in bytecode. What Tilewright does not write, jaxlib converts."""
    try:
        with without_panics():
            return module.to_stablehlo_bytecode(portable=False)
    except (TilewrightError, Bug):
        return internals.to_stablehlo(module.to_proto())


def parsed(rewritten: bytes, context: internals.Context) -> internals.Module:
    """The module of a rewritten program, verified. If jaxlib does not take the bytecode that
    Tilewright writes, it converts the module itself."""
    try:
        return internals.from_bytecode(rewritten, context)
    except internals.MlirError:
        with without_panics():
            proto = _core.Module.load(rewritten).to_proto()
        return internals.from_bytecode(internals.to_stablehlo(proto), context)


# The name of the form that the settings make, and of the one that a program is written in.
DEFAULT = "default"
ORIGINAL = "original"


@dataclasses.dataclass(frozen=True)
class Source:
    """A module as HLO, and what identifies it."""

    module: _core.Module
    digest: str


def source(module: internals.Module) -> Source:
    """A module as HLO. What Tilewright does not read, jaxlib converts, which takes five times as long."""
    contents = internals.to_bytecode(module)
    try:
        with without_panics():
            read = _core.Module.load(contents)
    except (TilewrightError, Bug):
        contents = internals.to_hlo(module)
        with without_panics():
            read = _core.Module.from_proto(contents)
    # The text has no metadata, but takes long to write where constants are large.
    if len(contents) <= _LARGE * read.instruction_count:
        contents = _NAME.sub("HloModule", read.to_text("short"), count=1).encode()
    return Source(read, hashlib.sha256(contents).hexdigest())


def optimized(
    source: Source,
    target: str,
    settings: Settings,
    is_native: bool = False,
    form: str = DEFAULT,
) -> Outcome:
    """Optimises a module, or remembers what was made of an equal one. If `is_native`, kernels of
    this CPU reduce what they reduce faster than XLA. `form` is one of `_core.candidates`."""
    key = (source.digest, target, settings.numerics, is_native, form)
    with _LOCK:
        if key in _REMEMBERED:
            _REMEMBERED.move_to_end(key)
            return _REMEMBERED[key]
    if form == DEFAULT:
        outcome = _by_default(source.module, target, settings, is_native)
    else:
        outcome = _by_name(source, target, settings, form)
    remember(key, outcome)
    return outcome


def _by_name(source: Source, target: str, settings: Settings, form: str) -> Outcome:
    default = optimized(source, target, settings)
    with without_panics():
        made = _core.candidates(source.module, target, numerics=settings.numerics, name=form)
    if not made:
        return dataclasses.replace(default, rewritten=None, cycles_after=default.cycles_before)
    return of_form(default, made[0][0], json.loads(made[0][1]))


def remember(key: Key, outcome: Outcome) -> None:
    """Keeps what was made of a module."""
    with _LOCK:
        _REMEMBERED[key] = outcome
        while len(_REMEMBERED) > _MOST_REMEMBERED:
            _REMEMBERED.popitem(last=False)


def forget(key: Key) -> None:
    """Drops what was made of a module."""
    with _LOCK:
        _REMEMBERED.pop(key, None)


def of_form(default: Outcome, made: _core.Module, form: dict[str, Any]) -> Outcome:
    """The outcome of one of the `_core.candidates`, with what is known of it, beside the default."""
    return dataclasses.replace(
        default,
        rewritten=written(made),
        cycles_after=default.cycles_before / form["modelled"],
        explanation=f"`{form['name']}`, made by {', '.join(form['passes'])}",
    )


def _by_default(
    module: _core.Module, target: str, settings: Settings, is_native: bool
) -> Outcome:
    # Kernels come first: the rewriter reduces in steps what is left to XLA.
    called, told = with_kernels(module, target, settings.numerics) if is_native else (None, "")
    with without_panics():
        better, report, _, explanation = _core.optimize(
            called or module, target, numerics=settings.numerics
        )
    found = json.loads(report)
    is_rewritten = called is not None or not found["unchanged"]
    if called is not None:
        explanation = f"{explanation}\n{told}"
    return Outcome(
        rewritten=written(better) if is_rewritten else None,
        instructions=module.instruction_count,
        cycles_before=found["before"]["cycles"],
        cycles_after=found["after"]["cycles"],
        ratio_error=found["ratio_error"],
        explanation=explanation,
    )


def with_kernels(
    module: _core.Module, target: str, numerics: str
) -> tuple[_core.Module | None, str]:
    """The module with calls of kernels, if some pay, and the explanation of that."""
    with without_panics():
        simple = _core.optimize(module, target, numerics=numerics, pipeline=_native.BEFORE)[0]
        called, report, _, explanation = _core.optimize(
            simple, target, numerics=numerics, passes=[_native.PASS]
        )
        # What is rewritten afterwards is no part of a call any more.
        called = _core.sealed(called)
    changes = {one["name"]: one["changes"] for one in json.loads(report)["passes"]}
    return (called if changes.get(_native.PASS, 0) > 0 else None), explanation


# Ops of dialects that say how arrays lie on devices: HLO says it in another form, which does not
# come back as it was.
_PARTITIONED = ("sdy.", "mpmd.")


def extracted_from(
    module: internals.Module, name: str, is_for_one_device: bool
) -> internals.Module:
    """A module whose `main` is a function of another. Raises `Left` if it must stay as it is."""
    extracted, contents = internals.extract(module, name)
    if any(one.is_sharded for one in contents):
        # On the only device that there is, shardings say nothing.
        if not is_for_one_device:
            raise Left("sharded")
        for function in internals.functions(extracted):
            internals.remove_shardings(function)
    names = {op for one in contents for op in one.op_names} - {internals.CONSTRAINT}
    if any(op.startswith(_PARTITIONED) for op in names):
        raise Left("sharded")
    arguments, results = internals.types_of(extracted, internals.MAIN)
    if not results:
        raise Left("no outputs")
    if any("?" in part for part in arguments + results):
        raise Left("symbolic dims")
    return extracted


def replace(
    module: internals.Module, name: str, rewritten: internals.Module, end: str = "_rewritten"
) -> None:
    """Makes a function compute what `main` of another module, which is verified, does."""
    given = internals.type_of(module, name)
    made = internals.type_of(rewritten, internals.MAIN)
    if given != made:
        raise RuntimeError(f"the rewritten function has the type {made}, not {given}")
    internals.replace_body(module, name, rewritten, end)


def rewrite(
    module: internals.Module,
    name: str,
    target: str,
    settings: Settings,
    *,
    is_for_one_device: bool = True,
    is_native: bool = False,
    shown: str = "",
) -> bool:
    """Rewrites a function of a module where that pays; returns whether it did.

    Whatever fails, the module stays as it is; `settings.on_error` says whether anybody hears of it.
    """
    start = time.perf_counter()
    outcome, why = None, "unchanged"
    try:
        extracted = extracted_from(module, name, is_for_one_device)
        outcome = optimized(source(extracted), target, settings, is_native)
        if outcome.rewritten is not None:
            body = parsed(outcome.rewritten, module.context)
            replace(module, name, body, _originals.keep(extracted))
            why = "rewritten"
    except Left as left:
        why = str(left)
    except Exception as error:
        why = f"failed: {type(error).__name__}"
        failed(shown or plain(name), error, settings)
    note(shown or plain(name), target, why, outcome, time.perf_counter() - start)
    return why == "rewritten"


def note(
    name: str,
    target: str,
    why: str,
    outcome: Outcome | None,
    seconds: float,
    decision: Decision | None = None,
) -> None:
    """Records what became of a function."""
    record(
        Entry(
            name=name,
            target=target,
            outcome=why,
            instructions=outcome.instructions if outcome else 0,
            cycles_before=outcome.cycles_before if outcome else 0.0,
            cycles_after=outcome.cycles_after if outcome else 0.0,
            ratio_error=outcome.ratio_error if outcome else 1.0,
            seconds=seconds,
            explanation=outcome.explanation if outcome else "",
            decision=decision,
        )
    )


def failed(name: str, error: Exception, settings: Settings, *, is_ours: bool = True) -> None:
    """Says that a function is compiled as JAX wrote it, in the way that the settings ask for. What may be no
    error of ours is left to whoever runs the function."""
    if settings.on_error == "raise" and is_ours:
        raise error
    if settings.on_error == "warn" and is_ours:
        first = str(error).strip().split("\n", maxsplit=1)[0]
        warn_once(
            f"tilewright left `{name}` as it is: {type(error).__name__}: {first} "
            f"({internals.version()})"
        )


def skipped(name: str, why: str) -> None:
    """Records a function that was left alone before anything was done."""
    record(Entry(plain(name), "", why, 0, 0.0, 0.0, 0.0, ""))
