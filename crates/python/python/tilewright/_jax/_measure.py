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
from tilewright._jax._peers import Alone

# No form but the first is compiled after this part of the time to decide.
_COMPILING = 0.7
# So many rounds must fit into the time to decide, or into so many times of it.
_FEWEST_ROUNDS, _PATIENCE = 3, 3.0
# A shorter program is called several times in a row, at most so often.
_SHORT, _MOST_CALLS = 1e-3, 100

Compile = Callable[[Any], Any]


class TooSlow(Exception):
    """A program that cannot be run often enough in the time to decide."""


class Failed(Exception):
    """The original cannot be run a second time, on one of the processes that run it."""


class Measurement:
    """The race between the forms of a program on some arguments."""

    def __init__(
        self,
        program: Program,
        forms: list[dict[str, Any]],
        args: Sequence[Any],
        compile: Compile,
        peers: Alone,
    ) -> None:
        self._program, self._compile, self._peers = program, compile, peers
        self._seconds = program.settings.tune_seconds
        self.forms = forms
        self.compiled: list[Any] = [None] * len(forms)
        self._runner = _Runner(program.lowered, args)
        self.race = _core.Race(len(forms) - 1, self._seconds)

    def run(self, original: Any) -> None:
        """Compiles and runs all forms until one has won. Raises `TooSlow` if there is no time for that, and
        `Failed` if the original does not run."""
        self.compiled[0] = original
        with jax.transfer_guard("allow"):
            taken = self._first_runs(original)
            self._compile_others(taken)
            self._measure()

    def _first_runs(self, original: Any) -> float:
        """Runs the original twice. Returns the seconds of the second run."""
        why, taken = "", 0.0
        try:
            self._judge = Judge(self._program, self._runner.args, self._runner.results(original))
            taken = self._runner.seconds(original)
        except Exception as error:
            why = _first_line(error)
        if why := self._first(why):
            raise Failed(why)
        # A coarse clock may see no time go by.
        taken = max(self._peers.agree(taken), 1e-9)
        self._runner.repeat(taken)
        if 2 * _FEWEST_ROUNDS * taken > _PATIENCE * self._seconds:
            raise TooSlow
        return taken

    def _compile_others(self, taken: float) -> None:
        """Compiles the forms for which there is time, and takes out those that are not as the original."""
        begun = time.perf_counter()
        most = int(_PATIENCE * self._seconds / (_FEWEST_ROUNDS * taken))
        for lane, form in enumerate(self.forms[1:], 1):
            is_late = time.perf_counter() - begun > _COMPILING * self._seconds
            if lane > 1 and self._peers.agree(is_late or lane >= most):
                self.race.take_out(lane, "not compiled: no time left")
                continue
            why = ""
            try:
                module = self._program.module_of(form["name"])
                self.compiled[lane] = self._compile(self._program.lowered.with_module(module))
            except Exception as error:
                why = _first_line(error)
            # What one process cannot compile, none may run.
            why = self._first(why)
            if not why:
                try:
                    why = self._judge.difference(self._runner.results(self.compiled[lane]))
                except Exception as error:
                    why = _first_line(error)
                why = self._first(why)
            if why:
                self.race.take_out(lane, why)
                self.compiled[lane] = None

    def _measure(self) -> None:
        begun = time.perf_counter()
        while (lane := self._peers.agree(self.race.next)) is not None:
            why, taken = "", 0.0
            try:
                taken = self._runner.seconds(self.compiled[lane])
            except Exception as error:
                why = _first_line(error)
            why = self._first(why)
            if why and lane == 0:
                raise Failed(why)
            if why:
                self.race.take_out(lane, why)
            else:
                self.race.record(self._peers.agree(taken))
            spent = time.perf_counter() - begun
            most = self._seconds * (_PATIENCE if self.race.rounds < _FEWEST_ROUNDS else 1.0)
            if self._peers.agree(spent > most):
                self.race.end()
        if self.race.rounds < _FEWEST_ROUNDS and any(self.compiled[1:]):
            raise TooSlow

    def _first(self, why: str) -> str:
        """Why something fails, on whichever process; empty if it fails on none."""
        return next(filter(None, self._peers.gather(why)), "")


def _first_line(error: Exception) -> str:
    first = str(error).strip().split("\n", maxsplit=1)[0]
    return f"{type(error).__name__}: {first}"[:200]


class _Runner:
    """Runs compiled programs on the same arguments."""

    def __init__(self, lowered: internals.Lowered, args: Sequence[Any]) -> None:
        self._lowered, self.args = lowered, args
        self._calls = 1

    def _arguments(self) -> list[Any]:
        """The arguments, with copies of those that a run uses up."""
        args, donated = list(self.args), self._lowered.donated
        for at in donated:
            if isinstance(args[at], jax.Array):
                args[at] = args[at].copy()
        jax.block_until_ready([args[at] for at in donated])
        return args

    def results(self, compiled: Any) -> list[Any]:
        """The results of a call."""
        results = self._lowered.run(compiled, self._arguments())
        jax.block_until_ready(results)
        return results

    def repeat(self, taken: float) -> None:
        """Calls a program so often for one time, if a call takes these seconds."""
        if not self._lowered.donated and 0.0 < taken < _SHORT:
            self._calls = min(_MOST_CALLS, math.ceil(_SHORT / taken))

    def seconds(self, compiled: Any) -> float:
        """The seconds of a call."""
        args = self._arguments()
        start = time.perf_counter()
        for _ in range(self._calls):
            results = self._lowered.run(compiled, args)
        jax.block_until_ready(results)
        return (time.perf_counter() - start) / self._calls
