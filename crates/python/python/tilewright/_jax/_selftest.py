"""Checks that JAX is one that the rewriter knows, before it touches a program."""

from __future__ import annotations

import threading

from tilewright._jax._settings import Settings


# Whether this thread is that of the self-test.
_HERE = threading.local()


def is_running_here() -> bool:
    """Whether this thread lowers the function of the self-test."""
    return getattr(_HERE, "is_running", False)


def why_unusable() -> str | None:
    """Why the names of JAX that the rewriter needs are not there; none if they are."""
    try:
        from tilewright._jax import _internals as internals

        internals.lowering_rule()
        internals.compile_function()
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return None


def why_wrong() -> str | None:
    """Why a small group norm is not lowered as it should be; none if it is.

    It is lowered on a thread of its own, which the contexts of the caller do not reach: a mesh that
    `jax.set_mesh` set would make it a program for several devices.
    """
    found: list[str | None] = []
    thread = threading.Thread(target=lambda: found.append(_why_wrong_here()))
    thread.start()
    thread.join()
    return found[0] if found else "the self-test did not end"


def _why_wrong_here() -> str | None:
    import jax
    import jax.numpy as jnp

    from tilewright._jax import _report
    from tilewright._jax._jit import Marked

    def selftest(x: jax.Array) -> jax.Array:
        grouped = x.reshape(8, 256, 32, 10)
        mean = grouped.mean((1, 3), keepdims=True)
        return (grouped - mean).reshape(x.shape)

    _HERE.is_running = True
    settings = Settings(target="cpu", on_error="raise")
    x = jax.ShapeDtypeStruct((8, 256, 320), jnp.float32)  # type: ignore[no-untyped-call]
    before = len(_report._ENTRIES)
    try:
        with jax.default_device(jax.devices("cpu")[0]):
            text = jax.jit(Marked(selftest, settings)).lower(x).as_text()
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    finally:
        del _report._ENTRIES[before:]
    return None if "_rewritten" in text else "a marked function was not rewritten"


def tell(why: str, settings: Settings) -> None:
    """Warns that functions are compiled as JAX writes them, or raises."""
    import jax

    message = (
        f"tilewright does not know this JAX ({jax.__version__}), so it rewrites nothing: {why}"
    )
    if settings.on_error == "raise":
        raise RuntimeError(message)
    if settings.on_error == "warn":
        import warnings

        warnings.warn(message, stacklevel=4)
