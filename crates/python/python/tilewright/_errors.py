"""The exceptions of the package."""

from __future__ import annotations

from typing import NamedTuple


class Diagnostic(NamedTuple):
    """One error of a module or a text."""

    code: str | None
    """The verifier's code, such as ``V012``; ``None`` if the text is not HLO."""
    message: str
    """The error and the valid alternative."""
    line: int | None
    """The line of the text, from 1, if it is known."""
    column: int | None
    """The column in characters, from 1, if it is known."""


class TilewrightError(Exception):
    """An error of Tilewright. Its text is the message that the command shows, with carets."""

    code: str | None
    """The verifier's code of the first error, or the kind: ``input``, ``usage``, ``evaluation``."""
    line: int | None
    """The line of the first error, from 1, if it is known."""
    column: int | None
    """The column of the first error in characters, from 1, if it is known."""
    diagnostics: tuple[Diagnostic, ...]
    """All errors that have a code or a place."""

    def __init__(
        self,
        message: str = "",
        *,
        code: str | None = None,
        line: int | None = None,
        column: int | None = None,
        diagnostics: tuple[Diagnostic, ...] = (),
    ) -> None:
        super().__init__(message)
        self.code = code
        self.line = line
        self.column = column
        self.diagnostics = diagnostics


class ParseError(TilewrightError):
    """A text or bytes are not HLO."""


class VerifyError(TilewrightError):
    """A module is HLO, and not valid."""


class EvaluationError(TilewrightError):
    """A valid module could not be evaluated: an op has no evaluation, or a limit was reached."""


class UsageError(TilewrightError, ValueError):
    """A request does not fit: a name that does not exist, or arguments that contradict."""


class FileError(TilewrightError, OSError):
    """A file could not be read or written; ``errno`` is the number of the system's error."""


class RemovedError(TilewrightError, ReferenceError):
    """An object stands for a part of a module that was removed, or whose call has ended."""


class DoesNotApply(TilewrightError):
    """The operands of a replacement do not fit: the rule does not apply, and nothing changes."""
