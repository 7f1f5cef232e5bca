"""What the rewriter did in this process."""

from __future__ import annotations

import dataclasses
import html
import json
import threading
from collections.abc import Sequence
from typing import Any

from tilewright import _core


@dataclasses.dataclass(frozen=True)
class Decision:
    """What won of the forms of a program."""

    function: str
    """The name of the function."""
    winner: str
    """The name of the form that runs: `original`, `default`, or what differs from the default."""
    forms: list[dict[str, Any]]
    """The forms with their times, the original first."""
    seconds: float
    """The time to decide, compilations included; 0 if it was remembered."""

    @property
    def measured(self) -> float:
        """How many times faster than the original the winner was."""
        return next((one["measured"] or 1.0 for one in self.forms if one["name"] == self.winner), 1.0)

    def __str__(self) -> str:
        return _core.tune_table(json.dumps(self.forms))


@dataclasses.dataclass(frozen=True)
class Entry:
    """A function or a module that the rewriter looked at."""

    name: str
    """The name of the function."""
    target: str
    """The target; empty if the function was left alone before one was chosen."""
    outcome: str
    """`rewritten`, `unchanged`, or why the function was left alone."""
    instructions: int
    """The number of HLO instructions before; 0 if they were not counted."""
    cycles_before: float
    """The cycles that the model gives the function as it was."""
    cycles_after: float
    """The cycles that the model gives it now."""
    seconds: float
    """The time that the rewriter took, conversions included."""
    explanation: str
    """What was rewritten and what was left, with reasons."""
    ratio_error: float = 1.0
    """The factor within which nine in ten ratios of the engine were the modelled one; 1 if
    nothing was modelled."""
    decision: Decision | None = None
    """What was measured; none unless the function was to be tuned."""

    @property
    def is_rewritten(self) -> bool:
        """Whether another form than the original runs."""
        if self.decision is not None:
            return self.decision.winner != "original"
        return self.outcome.startswith("rewritten")

    @property
    def ratio(self) -> float:
        """How many times fewer cycles it takes by the model."""
        return self.cycles_before / self.cycles_after if self.cycles_after else 1.0


class Report(Sequence[Entry]):
    """What the rewriter did, function by function, in order.

    Cycles are a model, not a measurement.
    """

    def __init__(self, entries: Sequence[Entry]) -> None:
        self._entries = tuple(entries)

    def __getitem__(self, index):  # type: ignore[no-untyped-def]
        return self._entries[index]

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def seconds(self) -> float:
        """The time that the rewriter took in all."""
        return sum(entry.seconds for entry in self)

    @property
    def rewritten(self) -> tuple[Entry, ...]:
        """The functions that were rewritten."""
        return tuple(entry for entry in self if entry.is_rewritten)

    def _rows(self) -> list[tuple[str, ...]]:
        rows: list[tuple[str, ...]] = [
            ("function", "target", "outcome", "instructions", "modelled", "measured", "seconds")
        ]
        for entry in self:
            decision = entry.decision
            modelled = f"{entry.ratio:.2f}x" if entry.is_rewritten else ""
            measured = f"{decision.measured:.2f}x" if decision else ""
            count = str(entry.instructions or "")
            row = (entry.name, entry.target, entry.outcome, count, modelled, measured)
            rows.append((*row, f"{entry.seconds:.3f}"))
        if not any(entry.decision for entry in self):
            rows = [(*row[:5], row[6]) for row in rows]
        return rows

    def __repr__(self) -> str:
        if not self:
            return "Tilewright has looked at no function yet."
        rows = self._rows()
        widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
        lines = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]
        error = max(entry.ratio_error for entry in self)
        lines.append(
            f"{len(self.rewritten)} of {len(self)} rewritten in {self.seconds:.2f} s; "
            "`modelled` is a ratio of modelled cycles, not a measurement: "
            f"of ten ratios of the engine, nine were within {error:g} times the modelled one"
        )
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        head, *rows = self._rows()

        def row(cells: Sequence[str], tag: str) -> str:
            inner = "".join(f"<{tag}>{html.escape(cell)}</{tag}>" for cell in cells)
            return f"<tr>{inner}</tr>"

        body = "".join(row(cells, "td") for cells in rows)
        return f"<table><thead>{row(head, 'th')}</thead><tbody>{body}</tbody></table>"


_LOCK = threading.Lock()
_ENTRIES: list[Entry] = []


def record(entry: Entry) -> None:
    """Adds an entry."""
    with _LOCK:
        _ENTRIES.append(entry)


def amend(name: str, outcome: str) -> None:
    """Says what became of a function at last: of what was rewritten under this name most recently."""
    with _LOCK:
        for at in reversed(range(len(_ENTRIES))):
            entry = _ENTRIES[at]
            if entry.name == name and entry.outcome == "rewritten":
                _ENTRIES[at] = dataclasses.replace(entry, outcome=outcome)
                return


def report(*, clear: bool = False) -> Report:
    """What the rewriter did in this process so far; `clear` forgets it afterwards."""
    with _LOCK:
        made = Report(_ENTRIES)
        if clear:
            _ENTRIES.clear()
    return made
