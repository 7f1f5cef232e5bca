"""Who decides on a program: this process, or the processes that run it together."""

from __future__ import annotations

import collections
import contextlib
import json
from typing import Any

import jax

from tilewright._jax import _internals as internals


class Alone:
    """This process decides."""

    def agree(self, value: Any) -> Any:
        """What the process that decides says."""
        return value

    def gather(self, value: Any) -> list[Any]:
        """What each process says."""
        return [value]

    def is_same(self, value: Any) -> bool:
        """Whether all processes say the same."""
        return True

    def end(self) -> None:
        """Forgets what was said."""


class Peers(Alone):
    """Processes that run one program together, since its devices are theirs: the first of them decides, and
    all do the same, as what they run exchanges data. They speak through the key-value store of
    `jax.distributed`. Each message has the program and a number in its name, so that none is taken for an answer to
    another question.
    """

    # For the first message: a process that does not tune never sends it, and one that still traces is late.
    _FIRST_SECONDS = 120.0
    _SECONDS = 600.0
    _programs: collections.Counter[str] = collections.Counter()

    def __init__(self, processes: list[int], program: str) -> None:
        self._client = internals.distributed_client()
        self._processes, self._own = processes, jax.process_index()
        name = f"tilewright/{program}/{'-'.join(map(str, processes))}"
        self._programs[name] += 1
        self._name, self._turn = f"{name}/{self._programs[name]}", 0
        self._sent: list[str] = []

    def agree(self, value: Any) -> Any:
        return self._said(value, self._processes[:1])[0]

    def gather(self, value: Any) -> list[Any]:
        return self._said(value, self._processes)

    def is_same(self, value: Any) -> bool:
        return all(one == value for one in self.gather(value))

    def _said(self, value: Any, by: list[int]) -> list[Any]:
        seconds = self._SECONDS if self._turn else self._FIRST_SECONDS
        self._turn += 1
        name = f"{self._name}/{self._turn}"
        if self._own in by:
            self._sent.append(f"{name}/{self._own}")
            self._client.key_value_set(self._sent[-1], json.dumps(value))
        keys = [f"{name}/{process}" for process in by]
        timeout = int(1000 * seconds)
        return [json.loads(self._client.blocking_key_value_get(key, timeout)) for key in keys]

    def end(self) -> None:
        # All have read what was said before this.
        with contextlib.suppress(Exception):
            self.gather("end")
            for key in self._sent[:-1]:
                self._client.key_value_delete(key)


def peers_of(lowered: internals.Lowered, program: str) -> Alone:
    """Who decides on a program with this digest."""
    processes = sorted({device.process_index for device in lowered.devices})
    return Peers(processes, program) if len(processes) > 1 else Alone()
