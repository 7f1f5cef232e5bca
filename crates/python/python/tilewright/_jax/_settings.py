"""The ways in which a function can be rewritten."""

from __future__ import annotations

import contextlib
import contextvars
import dataclasses
import hashlib
import os
import re
from collections.abc import Iterator
from typing import Literal

OnError = Literal["warn", "raise", "ignore"]

# What `target="auto"` means on each platform of JAX. A platform that is not here is left alone:
# nothing was measured on it.
TARGETS = {"cpu": "cpu", "tpu": "tpu-like"}

MARK = "__tilewright_"

_OFF: contextvars.ContextVar[bool] = contextvars.ContextVar("tilewright_off", default=False)


@contextlib.contextmanager
def off() -> Iterator[None]:
    """What is compiled for the first time within `with tilewright.off():` is compiled as JAX wrote
    it, and stays so."""
    before = _OFF.set(True)
    try:
        yield
    finally:
        _OFF.reset(before)


def is_off() -> bool:
    """Whether an `off` is around."""
    return _OFF.get()


@dataclasses.dataclass(frozen=True)
class Settings:
    """The options of a rewriter."""

    target: str = "auto"
    exact: bool = False
    fast_math: bool = False
    on_error: OnError = "warn"
    native: bool = False

    def __post_init__(self) -> None:
        if self.exact and self.fast_math:
            raise ValueError("exact and fast_math exclude each other")
        if self.on_error not in ("warn", "raise", "ignore"):
            raise ValueError(f"on_error is 'warn', 'raise' or 'ignore', not {self.on_error!r}")

    def target_on(self, platform: str) -> str | None:
        """The target on a platform; none if modules stay as they are there."""
        return TARGETS.get(platform) if self.target == "auto" else self.target

    @property
    def mark(self) -> str:
        """The end of the names of functions that are to be rewritten in this way.

        It is the same in every process, so that JAX's caches on disk find programs again.
        """
        target = re.sub(r"\W", "_", os.path.basename(self.target))
        if target != self.target:
            target += "_" + hashlib.sha256(self.target.encode()).hexdigest()[:8]
        kinds = [
            ("exact", self.exact),
            ("fast", self.fast_math),
            ("native", self.native),
            (self.on_error, True),
        ]
        mark = MARK + "_".join([target, *(kind for kind, is_set in kinds if is_set)])
        _KNOWN[mark] = self
        return mark


_KNOWN: dict[str, Settings] = {}


def settings_of(name: str) -> Settings | None:
    """The settings that the name of a function asks for; none if it is an ordinary one."""
    at = name.rfind(MARK)
    return _KNOWN.get(name[at:]) if at >= 0 else None


def plain(name: str) -> str:
    """The name of a function without the mark."""
    at = name.rfind(MARK)
    return name if at < 0 else name[:at]
