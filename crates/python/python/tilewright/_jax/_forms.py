"""The forms of a program that may run in its place."""

from __future__ import annotations

import functools
import hashlib
import json
import os
import platform
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import jaxlib

from tilewright import _core
from tilewright._jax import _internals as internals
from tilewright._jax import _native, _rewrite, _sharded
from tilewright._jax._settings import Settings

# Kernels of this CPU, beside what the settings make.
NATIVE = "native"


@functools.cache
def _cpu() -> str:
    """The model of the CPU, and how many threads this process may use."""
    model = platform.processor() or platform.machine()
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        named = (line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
        model = next(named, model)
    except OSError:
        pass
    count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return f"{model}, {count} threads"


class Program:
    """A program that JAX has lowered, and its forms. Raises `_rewrite.Left` if it must stay as it is."""

    def __init__(
        self,
        lowered: internals.Lowered,
        target: str,
        settings: Settings,
        compiler_options: dict[str, Any],
    ) -> None:
        self.lowered, self.target, self.settings = lowered, target, settings
        self._compiler_options = compiler_options
        self.module = lowered.module
        self.is_divided = _sharded.is_divided(self.module)
        if self.is_divided:
            self.source = _sharded.source(self.module)
            return
        if internals.integer_attribute(self.module, "mhlo.num_replicas", 1) != 1:
            raise _rewrite.Left("replicas")
        main = _rewrite.extracted_from(self.module, internals.MAIN, is_for_one_device=True)
        self.source = _rewrite.source(main)

    def key(self) -> dict[str, str]:
        """All that a decision depends on."""
        lowered, settings = self.lowered, self.settings
        device = lowered.devices[0] if lowered.devices else None
        kind = str(getattr(device, "device_kind", "device"))
        if lowered.backend.platform == "cpu":
            kind = _cpu()
        target = Path(self.target)
        is_file = target.is_file()
        options = [self.target, settings.numerics]
        options += [hashlib.sha256(target.read_bytes()).hexdigest()] if is_file else []
        options += [f"donates {','.join(map(str, sorted(lowered.donated)))}"] if lowered.donated else []
        compiler = [*lowered.options, *map(str, self._compiler_options.items())]
        options += [*compiler, *os.environ.get("XLA_FLAGS", "").split()]
        return {
            "module": self.source.digest,
            "options": " ".join(options),
            "device": f"{kind} x{lowered.number_of_devices}",
            "engine": f"jaxlib {jaxlib.__version__}, {lowered.backend.platform_version.strip()}",
            "version": _core.__version__,
        }

    def forms(self) -> list[dict[str, Any]]:
        """What is known of the forms to measure, the original first."""
        original = {"name": _rewrite.ORIGINAL, "passes": [], "modelled": 1.0, "saved_cycles": 0.0}
        source, numerics = self.source, self.settings.numerics
        with _rewrite.without_panics():
            made = _core.candidates(source.module, self.target, numerics=numerics)
        forms = [original]
        for module, text in made:
            form = json.loads(text)
            forms.append(form)
            if form["name"] != _rewrite.DEFAULT:
                outcome = _rewrite.of_form(self._outcome(_rewrite.DEFAULT), module, form)
                _rewrite.remember(self._key_of(form["name"]), outcome)
        if self._calls_kernels():
            native = {"name": NATIVE, "passes": [_native.PASS], "modelled": None, "saved_cycles": None}
            forms.insert(min(2, len(forms)), native)
        return forms

    def _calls_kernels(self) -> bool:
        if internals.platform_of(self.lowered.backend) != _native.PLATFORM or self.is_divided:
            return False
        try:
            _native.register()
        except Exception:
            # This jaxlib takes no kernels.
            return False
        # Where no kernel pays, it is the default.
        return self._outcome(NATIVE).rewritten != self._outcome(_rewrite.DEFAULT).rewritten

    def _outcome(self, name: str) -> _rewrite.Outcome:
        if name == NATIVE:
            _native.register()
            return _rewrite.optimized(self.source, self.target, self.settings, is_native=True)
        return _rewrite.optimized(self.source, self.target, self.settings, form=name)

    def _key_of(self, name: str) -> _rewrite.Key:
        is_native = name == NATIVE
        form = _rewrite.DEFAULT if is_native else name
        return (self.source.digest, self.target, self.settings.numerics, is_native, form)

    def forget(self, names: Iterable[str]) -> None:
        """Drops forms that will not run."""
        for name in names:
            _rewrite.forget(self._key_of(name))

    def digest(self, name: str) -> str:
        """What tells a form from others that may have its name: a digest of its text without the
        places in the source."""
        rewritten = None if name == _rewrite.ORIGINAL else self._outcome(name).rewritten
        if rewritten is None:
            return ""
        with _rewrite.without_panics():
            text = _core.Module.load(rewritten).to_text("short")
        return hashlib.sha256(text.encode()).hexdigest()

    def module_of(self, name: str) -> internals.Module | None:
        """The module of a form; none if it is the original's."""
        rewritten = None if name == _rewrite.ORIGINAL else self._outcome(name).rewritten
        if rewritten is None:
            return None
        if self.is_divided:
            return _sharded.with_body(self.module, rewritten)
        copy = internals.copy_of(self.module)
        body = _rewrite.parsed(rewritten, copy.context)
        _rewrite.replace(copy, internals.MAIN, body, "_tuned")
        return copy

    def outcome(self, name: str) -> _rewrite.Outcome | None:
        """What is known of a form for reports; none of the original."""
        return None if name == _rewrite.ORIGINAL else self._outcome(name)
