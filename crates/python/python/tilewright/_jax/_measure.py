"""Runs the forms of a program in turn, until one has won."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from typing import Any

import jax

from tilewright import _core
from tilewright._jax import _internals as internals
from tilewright._jax._forms import Program
from tilewright._jax._judge import Judge

# The original wins unless it is beaten by this factor.
LEAST_GAIN = 1.02
# No form but the first is compiled after this part of the time to decide.
_COMPILING = 0.7
# A shorter program is called several times in a row, at most so often.
_SHORT, _MOST_CALLS = 1e-3, 100

Compile = Callable[[Any], Any]


class OwnError(Exception):
    """The original fails, and its error is the program's own."""


def race(
    program: Program, forms: list[dict[str, Any]], args: Sequence[Any], compile: Compile, peers: Any
) -> tuple[Any, list[Any]]:
    """The race between the forms of a program on these arguments, and the compiled forms. Donated
    arguments are copied for each run."""
    begun = time.perf_counter()
    lowered, seconds = program.lowered, program.settings.tune_seconds
    race = _core.Race(len(forms) - 1, seconds, LEAST_GAIN)
    runner = _Runner(lowered, args)
    try:
        compiled = [compile(lowered.computation)]
        judge = Judge(program, args, runner.results(compiled[0]))
    except Exception as error:
        raise OwnError from error
    begun = time.perf_counter()
    for lane, form in enumerate(forms[1:], 1):
        is_late = lane > 1 and time.perf_counter() - begun > _COMPILING * seconds
        compiled.append(None)
        why = "not compiled: no time left"
        if not peers.agree(is_late):
            try:
                compiled[lane] = compile(lowered.with_module(program.module_of(form["name"])))
                why = judge.difference(runner.results(compiled[lane]))
            except Exception as error:
                why = _first_line(error)
        why = next(filter(None, peers.gather(why)), "")
        if why:
            race.take_out(lane, why)
            compiled[lane] = None
    del judge
    runner.repeat(compiled[0])
    while (lane := peers.agree(race.next)) is not None:
        try:
            taken = runner.seconds(compiled[lane])
        except Exception as error:
            if lane == 0:
                raise OwnError from error
            race.take_out(lane, _first_line(error))
        else:
            race.record(taken)
    return race, compiled


def _first_line(error: Exception) -> str:
    first = str(error).strip().split("\n", maxsplit=1)[0]
    return f"{type(error).__name__}: {first}"[:200]


class _Runner:
    """Runs compiled programs on the same arguments."""

    def __init__(self, lowered: internals.Lowered, args: Sequence[Any]) -> None:
        self._lowered, self._args = lowered, args
        self._donated = lowered.donated(len(args))
        self._calls = 1

    def _arguments(self) -> list[Any]:
        if not any(self._donated):
            return list(self._args)
        pairs = zip(self._args, self._donated, strict=True)
        copies = [arg.copy() if is_donated else arg for arg, is_donated in pairs]
        jax.block_until_ready(copies)
        return copies

    def results(self, compiled: Any) -> list[Any]:
        results = self._lowered.run(compiled, self._arguments())
        jax.block_until_ready(results)
        return results

    def repeat(self, compiled: Any) -> None:
        """Finds how often a program is called for one time."""
        taken = self.seconds(compiled)
        if not any(self._donated) and 0.0 < taken < _SHORT:
            self._calls = min(_MOST_CALLS, math.ceil(_SHORT / taken))

    def seconds(self, compiled: Any) -> float:
        """The seconds of a call."""
        args = self._arguments()
        start = time.perf_counter()
        for _ in range(self._calls):
            results = self._lowered.run(compiled, args)
        jax.block_until_ready(results)
        return (time.perf_counter() - start) / self._calls
