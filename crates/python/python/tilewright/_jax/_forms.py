"""The forms of a program that may run in its place."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import jaxlib

from tilewright import _core
from tilewright._jax import _internals as internals
from tilewright._jax import _native, _rewrite, _sharded
from tilewright._jax._settings import Settings

# Kernels of this CPU, beside what the settings make.
NATIVE = "native"


class Program:
    """A program that JAX has lowered, and its forms. Raises `_rewrite.Left` if it must stay as it is."""

    def __init__(self, lowered: internals.Lowered, target: str, settings: Settings) -> None:
        self.lowered, self.target, self.settings = lowered, target, settings
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
        lowered = self.lowered
        device = lowered.devices[0] if lowered.devices else None
        donated = [str(at) for at, is_so in enumerate(lowered.all_donated) if is_so]
        options = [self.target, self.settings.numerics]
        if donated:
            options.append(f"donates {','.join(donated)}")
        return {
            "module": self.source.digest,
            "options": " ".join(options),
            "device": f"{getattr(device, 'device_kind', 'device')} x{lowered.number_of_devices}",
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
                key = (source.digest, self.target, numerics, False, form["name"])
                _rewrite.remember(key, outcome)
        if self._calls_kernels():
            native = {"name": NATIVE, "passes": [_native.PASS], "modelled": None, "saved_cycles": None}
            forms.insert(min(2, len(forms)), native)
        return forms

    def _calls_kernels(self) -> bool:
        platform = internals.platform_of(self.lowered.backend)
        if platform != _native.PLATFORM or self.is_divided:
            return False
        try:
            _native.register()
        except Exception:
            return False
        # Where no kernel pays, it is the default.
        return self._outcome(NATIVE).rewritten != self._outcome(_rewrite.DEFAULT).rewritten

    def _outcome(self, name: str) -> _rewrite.Outcome:
        if name == NATIVE:
            return _rewrite.optimized(self.source, self.target, self.settings, is_native=True)
        return _rewrite.optimized(self.source, self.target, self.settings, form=name)

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
