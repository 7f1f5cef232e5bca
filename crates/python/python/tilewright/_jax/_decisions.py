"""Remembers which form of a program won: in this process, in a file of the user, and in files that
came with a program."""

from __future__ import annotations

import itertools
import json
import os
import threading
from pathlib import Path
from typing import Any

import jax

from tilewright import _core
from tilewright._jax import _internals as internals
from tilewright._jax import _rewrite

_LOCK = threading.Lock()
_KNOWN: dict[str, dict[str, Any]] = {}
_LOADED: list[Path] = []


def load_decisions(path: str | os.PathLike[str]) -> None:
    """Takes the decisions of a file, too, which another machine may have made: a copy of the file that
    `tilewright tune --list` names. They hold where program, options, kind and number of devices, and
    versions are the same; those of this user's own file come first. Raises `OSError` if the file cannot
    be read."""
    path = Path(path)
    path.read_bytes()
    with _LOCK:
        _LOADED.append(path)


def find(key: dict[str, str]) -> dict[str, Any] | None:
    """The decision for a program, if there is one."""
    text = json.dumps(key, sort_keys=True)
    with _LOCK:
        if text in _KNOWN:
            return _KNOWN[text]
        loaded = list(_LOADED)
    own = _core.decisions_path()
    for path in [own, *loaded] if own else loaded:
        try:
            found, damaged = _core.find_decision(path, text)
        except OSError as error:
            _rewrite.warn_once(f"tilewright cannot read the decisions in {path}: {error}")
            continue
        if damaged:
            _rewrite.warn_once(f"tilewright skips lines of {path} that are no decisions")
        if found is not None:
            decision: dict[str, Any] = json.loads(found)
            return decision
    return None


def remember(key: dict[str, str], decision: dict[str, Any]) -> None:
    """Keeps a decision: in this process, and in the file of the user if that can be written."""
    with _LOCK:
        _KNOWN[json.dumps(key, sort_keys=True)] = decision
    path = _core.decisions_path()
    if path is None:
        return
    try:
        _core.remember_decision(path, json.dumps(decision))
    except OSError as error:
        _rewrite.warn_once(f"tilewright cannot write decisions to {path}: {error}")


class Alone:
    """This process decides."""

    def agree(self, value: Any) -> Any:
        return value

    def gather(self, value: Any) -> list[Any]:
        return [value]


class Peers:
    """Processes that run one program together: process 0 decides, and all do the same, since what they
    run exchanges data. They speak through the key-value store of `jax.distributed`."""

    _SECONDS = 600.0
    # All processes compile the same programs in the same order.
    _turns = itertools.count()

    def __init__(self) -> None:
        self._client = internals.distributed_client()
        self._rank, self._count = jax.process_index(), jax.process_count()

    def agree(self, value: Any) -> Any:
        """What process 0 says."""
        return self._all(value, [0])[0]

    def gather(self, value: Any) -> list[Any]:
        """What each process says."""
        return self._all(value, list(range(self._count)))

    def _all(self, value: Any, ranks: list[int]) -> list[Any]:
        turn = next(self._turns)
        if self._rank in ranks:
            self._client.key_value_set(f"tilewright/{turn}/{self._rank}", json.dumps(value))
        timeout = int(1000 * self._SECONDS)
        keys = [f"tilewright/{turn}/{rank}" for rank in ranks]
        return [json.loads(self._client.blocking_key_value_get(key, timeout)) for key in keys]


def peers_of(lowered: internals.Lowered) -> Alone | Peers:
    """Who decides on a program."""
    own = jax.process_index()
    is_shared = any(device.process_index != own for device in lowered.devices)
    return Peers() if is_shared else Alone()
