"""Remembers which form of a program won: in this process, in a file of the user, and in files that came
with a program."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tilewright import _core
from tilewright._jax import _rewrite

_LOCK = threading.Lock()
_KNOWN: dict[str, dict[str, Any]] = {}
_LOADED: list[Path] = []


def load_decisions(path: str | os.PathLike[str]) -> None:
    """Takes the decisions of a file, too, which another machine may have made: a copy of the file that
    `tilewright tune --list` names. They hold where program, options, kind and number of devices, and
    versions are the same; those of this user's own file come first. Raises `OSError` if the file cannot
    be read."""
    path = Path(path).resolve()
    with path.open("rb"):
        pass
    with _LOCK:
        _LOADED.append(path)


def find(key: dict[str, str]) -> Iterator[dict[str, Any]]:
    """The decisions for a program, those of this process and of this user first."""
    text = json.dumps(key, sort_keys=True)
    with _LOCK:
        known, loaded = _KNOWN.get(text), list(_LOADED)
    if known is not None:
        yield known
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
            yield json.loads(found)


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
