"""Lists that one test goes through: all entries that fail are told, by name."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

import pytest

import tool

T = TypeVar("T")

# Lines of what one entry says.
_MOST_LINES = 30


def _told(error: BaseException) -> str:
    """What an exception says, and the line of a test that it comes from."""
    ours = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if "tests/python" in frame.filename and Path(frame.filename).name != "entries.py"
    ]
    place = f"{Path(ours[-1].filename).name}:{ours[-1].lineno}: " if ours else ""
    lines = f"{place}{type(error).__name__}: {error}".splitlines()
    more = ["..."] if len(lines) > _MOST_LINES else []
    return "\n".join([*lines[:_MOST_LINES], *more])


def check_each(
    entries: Sequence[T], check: Callable[[T], None], name: Callable[[T], str] = str
) -> None:
    """Calls a check with every entry; fails with the names of all entries for which it fails."""
    assert entries, "there is nothing to check"
    failed = []
    for entry in entries:
        try:
            check(entry)
        except (Exception, pytest.fail.Exception) as error:
            failed.append(f"{name(entry)}: {_told(error)}")
    if failed:
        all_told = "\n".join(failed)
        pytest.fail(f"{len(failed)} of {len(entries)} entries fail:\n{all_told}", pytrace=False)


def check_files(paths: Sequence[Path], check: Callable[[Path], None]) -> None:
    """Calls a check with every fixture."""
    check_each(paths, check, tool.fixture_id)


def part(entries: Sequence[T], number: int, count: int) -> Sequence[T]:
    """One of so many parts of a list; each has entries of the whole list."""
    return entries[number::count]
