"""Functions as JAX wrote them, for engines that refuse what was made of them."""

from __future__ import annotations

import collections
import hashlib
import re
import threading

from tilewright._jax import _internals as internals

# Bytes of all functions that are kept; the oldest go first.
_MOST_BYTES = 256 << 20

_LOCK = threading.Lock()
_KEPT: collections.OrderedDict[str, bytes] = collections.OrderedDict()

# The name of a rewritten function ends with the key of its original.
_CALLEE = re.compile(r"_rewritten_([0-9a-f]{16})(?:_\d+)?$")


def keep(original: internals.Module) -> str:
    """Keeps a module whose `main` is a function; returns the end of the name of what it becomes."""
    contents = internals.to_bytecode(original)
    key = hashlib.sha256(contents).hexdigest()[:16]
    with _LOCK:
        _KEPT[key] = contents
        _KEPT.move_to_end(key)
        while len(_KEPT) > 1 and sum(map(len, _KEPT.values())) > _MOST_BYTES:
            _KEPT.popitem(last=False)
    return f"_rewritten_{key}"


def restored(module: internals.Module) -> internals.Module | None:
    """A copy of a module whose rewritten functions are as JAX wrote them; none if it has no such
    functions, or not all are kept."""
    copy = internals.copy_of(module)
    found = False
    for function in list(internals.functions(copy)):
        for key in map(_CALLEE.search, internals.contents(function).callees):
            if key is None:
                continue
            with _LOCK:
                contents = _KEPT.get(key[1])
            if contents is None:
                return None
            original = internals.from_bytecode(contents, copy.context)
            internals.replace_body(copy, internals.name_of(function), original, "_as_written")
            found = True
    return copy if found else None
