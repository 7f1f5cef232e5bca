"""Kernels of this CPU as custom calls of XLA."""

from __future__ import annotations

import re
import threading
from pathlib import Path

import jax

from tilewright import _core

# The pass that makes the calls, and the pipeline before it: it sees a program in its simplest form.
PASS = "native-calls"
BEFORE = "cleanup"

# The platform that the kernels run on.
PLATFORM = "cpu"

_MINOR = re.compile(r"^#define XLA_FFI_API_MINOR (\d+)$", re.MULTILINE)

_LOCK = threading.Lock()
_REGISTERED = False


def register() -> None:
    """Makes the custom calls known to XLA, once in a process.

    Raises an error if this jaxlib has no interface for it, or one that is not known.
    """
    global _REGISTERED
    with _LOCK:
        if _REGISTERED:
            return
        header = Path(jax.ffi.include_dir()) / "xla/ffi/api/c_api.h"
        found = _MINOR.search(header.read_text())
        if found is None:
            raise RuntimeError(f"{header} does not say which version of the interface it is")
        for name, handler in _core.ffi_targets(int(found[1])):
            jax.ffi.register_ffi_target(name, handler, platform=PLATFORM, api_version=1)
        _REGISTERED = True


class ExportError(ValueError):
    """A function with kernels of this process cannot leave it."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f"`{name}` cannot be exported with native=True: its kernels are functions of this "
            "process, which another one may not have; export `tilewright.jit` of it without native"
        )
