"""The ways in which a function can be rewritten."""

from __future__ import annotations

import contextlib
import contextvars
import dataclasses
import functools
import hashlib
import os
import re
import warnings
from collections.abc import Iterator
from typing import Literal

import jaxlib

OnError = Literal["warn", "raise", "ignore"]

# The engines for CPUs, by the version of jaxlib that each was measured on, oldest first.
CPU_ENGINES = {(0, 9): "xla-cpu-0.9", (0, 10): "xla-cpu-0.10", (0, 12): "xla-cpu-0.12"}
# The engines for the devices of a platform: those that their compilers were asked about most.
DEVICE_ENGINES = {"tpu": "tpu-v5e", "cuda": "xla-gpu-h100"}

MARK = "__tilewright_"

# The seconds that measuring may take.
_SECONDS = 10.0

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


def is_tuned(tune: bool | None) -> bool:
    """Whether forms are to be measured: as asked, or else as the variable `TILEWRIGHT_TUNE` says."""
    if tune is not None:
        return tune
    return os.environ.get("TILEWRIGHT_TUNE", "") not in ("", "0")


@functools.cache
def cpu_engine(version: str) -> str:
    """The engine for a version of jaxlib: the newest that is not newer, with a warning unless it was
    measured on that version."""
    numbers = tuple(int(part) for part in re.findall(r"\d+", version)[:2])
    measured = max((known for known in CPU_ENGINES if known <= numbers), default=min(CPU_ENGINES))
    engine = CPU_ENGINES[measured]
    if measured != numbers:
        warnings.warn(
            f"the figures of `{engine}`, by which programs for jaxlib {version} are rewritten, were measured "
            f"on jaxlib {measured[0]}.{measured[1]}: they may miss what is fast there",
            stacklevel=2,
        )
    return engine


@dataclasses.dataclass(frozen=True)
class Settings:
    """The options of a rewriter."""

    target: str = "auto"
    numerics: str = "guarded"
    on_error: OnError = "warn"
    native: bool = False
    tune: bool = False
    tune_seconds: float = _SECONDS

    def __post_init__(self) -> None:
        if self.on_error not in ("warn", "raise", "ignore"):
            raise ValueError(f"on_error is 'warn', 'raise' or 'ignore', not {self.on_error!r}")
        if not 0.0 < self.tune_seconds < float("inf"):
            raise ValueError(f"tune_seconds is a positive number, not {self.tune_seconds!r}")

    def target_on(self, platform: str) -> str | None:
        """The target on a platform, by JAX's name for lowering; none if modules stay as they are there."""
        if self.target != "auto":
            return self.target
        if platform == "cpu":
            return cpu_engine(jaxlib.__version__)
        # The compilers of other platforms were not asked.
        return DEVICE_ENGINES.get(platform)

    @property
    def mark(self) -> str:
        """The end of the names of functions that are to be rewritten in this way.

        It is the same in every process, so that JAX's caches on disk find programs again.
        """
        target = re.sub(r"\W", "_", os.path.basename(self.target))
        if target != self.target:
            target += "_" + hashlib.sha256(self.target.encode()).hexdigest()[:8]
        kinds = [
            (self.numerics.replace("-", "_"), True),
            ("native", self.native),
            ("tune", self.tune),
            (re.sub(r"\W", "_", str(self.tune_seconds)), self.tune_seconds != _SECONDS),
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


def without_marks(text: str) -> str:
    """A text that names functions, with their names as they are in the program."""
    return re.sub(rf"{MARK}\w+", "", text)


def plain(name: str) -> str:
    """The name of a function without the mark."""
    at = name.rfind(MARK)
    return name if at < 0 else name[:at]
