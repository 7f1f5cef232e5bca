"""`native=True`: kernels of this CPU as custom calls of XLA, beside NumPy and plain `jax.jit`."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
import jax.export
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
import tilewright
from tilewright._jax import _native, _rewrite
from tilewright._jax._settings import Settings

import tool

CALL = "tilewright_reduce"

# A target whose table says that kernels are the fastest.
WALKS = ("whole", "rows", "columns", "mixed-rows", "mixed-columns")
CELLS = [
    f"{fold} {of} stored {walk} 1 1 | as-is 9 | kernel 1"
    for fold in ("sum", "extremum", "place", "logical")
    for of in ("f32", "f64", "f16", "bf16", "s32", "u8", "pred")
    for walk in (*WALKS, "whole nested", "rows nested", "columns nested")
]
FILE = tool.engine_file(Path(tempfile.mkdtemp()), *CELLS)
FILE.write_text(FILE.read_text().replace("[reductions]\n", "[reductions]\nkernel_call_ns = 8000\n"))
TARGET = str(FILE)

# Rows of 8 and columns of 8, whose sums XLA:CPU adds one by one.
ROWS = (1 << 16, 8)


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    """No test sees the memory of another."""
    _rewrite._REMEMBERED.clear()
    jax.clear_caches()
    yield


def numbers(shape: tuple[int, ...], dtype: Any = np.float32, seed: int = 0) -> np.ndarray:
    """Whole numbers of a small range, which all types have and whose sums are exact."""
    drawn = np.random.default_rng(seed).integers(0, 3, shape)
    return drawn.astype(dtype)


def native(f: Any, **options: Any) -> Any:
    """`f` with kernels; whatever goes wrong is an error."""
    return tilewright.jit(f, native=True, target=TARGET, on_error="raise", **options)


def calls(f: Any, *args: Any) -> int:
    """How many calls of kernels a program has."""
    return f.lower(*args).as_text().count(CALL + "(")


def run(script: str, *args: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Runs a script in a process of its own, which must not fail."""
    env = {**os.environ, "JAX_PLATFORMS": "cpu", **environment}
    whole = f"TARGET = {TARGET!r}\n{textwrap.dedent(script)}"
    command = [sys.executable, "-c", whole, *args]
    done = subprocess.run(
        command, capture_output=True, text=True, env=env, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    return done


def direct(x: Any, dims: Any, dtype: Any, **attributes: Any) -> Any:
    """The custom call by itself."""
    _native.register()
    result = jax.ShapeDtypeStruct(dims, dtype)
    return jax.jit(lambda x: jax.ffi.ffi_call(CALL, result)(x, **attributes))(x)


FOLDS = {"sum": np.sum, "max": np.max, "min": np.min, "argmax": np.argmax, "argmin": np.argmin}

# The kernels, by types of arrays.
KERNELS: list[tuple[Any, list[str]]] = [
    (np.float32, ["sum", "max", "min", "argmax", "argmin"]),
    (np.float16, ["sum"]),
    (ml_dtypes.bfloat16, ["sum", "max", "min"]),
    (np.int32, ["sum", "max", "min", "argmax", "argmin"]),
    (np.uint8, ["max", "min"]),
]


@pytest.mark.parametrize(("dtype", "folds"), KERNELS, ids=lambda one: getattr(one, "__name__", ""))
@pytest.mark.parametrize("axes", [(0,), (1,), (2,), (0, 2), (1, 2), (0, 1, 2), ()])
def test_the_call_reduces_as_numpy_does(
    dtype: Any, folds: list[str], axes: tuple[int, ...]
) -> None:
    x = numbers((5, 67, 9), dtype) - numbers((5, 67, 9), dtype, 1) // 2
    kept = tuple(dim for axis, dim in enumerate(x.shape) if axis not in axes)
    for fold in folds:
        is_place = fold.startswith("arg")
        if is_place and len(axes) != 1:
            continue
        given, result = (axes[0], np.int32) if is_place else (axes, dtype)
        found = direct(x, kept, result, fold=fold, axes=np.array(axes, np.int64))
        expected = FOLDS[fold](x.astype(np.int64), axis=given).astype(result)
        np.testing.assert_array_equal(np.asarray(found), expected, f"{fold} along {axes}")


@pytest.fixture
def wide() -> Iterator[None]:
    """JAX has 64 bits."""
    jax.config.update("jax_enable_x64", True)
    yield
    jax.config.update("jax_enable_x64", False)


@pytest.mark.usefixtures("wide")
def test_64_bits() -> None:
    x = np.random.default_rng(0).integers(-9, 9, (1 << 16, 8))
    f = native(lambda x: x.argmax(0))
    assert calls(f, np.float32(x)) == 1
    places = f(np.float32(x))
    assert places.dtype == np.int64
    np.testing.assert_array_equal(places, x.argmax(0))
    f = native(lambda x: x.sum(0))
    x = np.float64(x).reshape(1 << 17, 4)
    assert calls(f, x) == 1
    np.testing.assert_array_equal(f(x), x.sum(0))


def test_nan_comes_first() -> None:
    x = numbers(ROWS)
    x[7, 1] = x[9, 1] = x[3, 2] = np.nan
    f = native(lambda x: (x.max(0), x.argmax(0), x.argmin(0)))
    assert calls(f, x) == 3
    for found, expected in zip(f(x), (x.max(0), x.argmax(0), x.argmin(0)), strict=True):
        np.testing.assert_array_equal(found, expected)


def test_sums_and_truths() -> None:
    x = numbers(ROWS)
    f = native(lambda x: (x.sum(1), x.sum(0), (x * 2).sum(1)))
    assert calls(f, x) == 2, "what is computed is fused with its sum"
    for found, expected in zip(f(x), (x.sum(1), x.sum(0), 2 * x.sum(1)), strict=True):
        np.testing.assert_array_equal(found, expected)
    for dtype in (jnp.bfloat16, jnp.float16):
        narrow = numbers((1 << 15, 16)).astype(dtype) % 2
        f = native(lambda x: x.sum(0))
        assert calls(f, narrow) == 1
        expected = narrow.astype(np.float32).sum(0).astype(dtype)
        np.testing.assert_array_equal(f(narrow), expected)
        assert calls(native(lambda x: x.mean(0)), narrow) == 0, "the sum in f32 is divided"
    truths = numbers((1 << 22,)) > 0
    f = native(lambda x: (x.any(), x.all()))
    assert calls(f, truths) == 2
    assert [bool(found) for found in f(truths)] == [True, False]


def test_what_is_left_alone() -> None:
    f = native(lambda x: x.sum(1))
    assert calls(f, numbers((16, 8))) == 0, "tiny"
    assert calls(f, jnp.zeros((0, 8))) == calls(f, jnp.zeros((1 << 16, 0))) == 0
    np.testing.assert_array_equal(f(jnp.zeros((5, 0))), np.zeros(5))
    for dtype in (jnp.float8_e4m3fn, jnp.int4, jnp.complex64):
        add = native(lambda x: jax.lax.reduce(x, np.zeros((), x.dtype), jax.lax.add, (0,)))
        assert calls(add, jnp.zeros(ROWS, dtype)) == 0, dtype
    assert calls(tilewright.jit(lambda x: x.sum(1)), numbers(ROWS)) == 0, "not asked for"
    assert calls(native(lambda x: x.sum(1), exact=True), numbers(ROWS)) == 0, "another order"
    # Within another program, its argument would have to be stored first.
    inner = native(lambda x: x.sum(1))
    outer = jax.jit(lambda x: inner(x * 2))
    assert calls(outer, numbers(ROWS)) == 0
    np.testing.assert_array_equal(outer(numbers(ROWS)), 2 * numbers(ROWS).sum(1))


def test_wrong_calls_are_errors() -> None:
    x = numbers((4, 3))
    axes = np.array([1], np.int64)
    for message, args in [
        ("`median` is no fold", (x, (4,), x.dtype, {"fold": "median", "axes": axes})),
        ("`axes` is missing", (x, (4,), x.dtype, {"fold": "sum"})),
        ("`axes` is no array", (x, (4,), x.dtype, {"fold": "sum", "axes": axes.astype(np.int32)})),
        ("result has dims", (x, (3,), x.dtype, {"fold": "sum", "axes": axes})),
        ("has elements of type", (x, (4,), np.int32, {"fold": "sum", "axes": axes})),
        ("no value over no elements", (x[:, :0], (4,), x.dtype, {"fold": "max", "axes": axes})),
        *(
            ("are not reduced", (x.astype(dtype), (4,), dtype, {"fold": "sum", "axes": axes}))
            for dtype in (jnp.float8_e5m2, np.complex64, np.int8, np.uint32)
        ),
        ("not reduced by `and`", (x, (4,), x.dtype, {"fold": "and", "axes": axes})),
    ]:
        *given, attributes = args
        with pytest.raises(Exception, match=message):
            direct(*given, **attributes).block_until_ready()


def test_transformations() -> None:
    x = numbers(ROWS)

    def loss(x: Any) -> Any:
        return (x.sum(0) ** 2).sum()

    def derivative(x: Any) -> Any:
        return jax.jvp(loss, (x,), (x,))

    for transformed in (jax.grad(loss), jax.value_and_grad(loss), derivative):
        f, plain = native(transformed), jax.jit(transformed)
        assert calls(f, x) >= 1
        jax.tree.map(np.testing.assert_array_equal, f(x), plain(x))
    many = numbers((3, *ROWS))
    f = native(jax.vmap(lambda x: x.sum(0)))
    assert calls(f, many) == 1
    np.testing.assert_array_equal(f(many), many.sum(1))
    marked = native(lambda x: x.sum(0))
    np.testing.assert_array_equal(jax.vmap(marked)(many), many.sum(1))
    np.testing.assert_array_equal(jax.grad(lambda x: marked(x)[1])(x), np.eye(8)[1] + 0 * x)


def test_loops_and_donation() -> None:
    x = numbers(ROWS)

    def looped(x: Any) -> Any:
        return jax.lax.scan(lambda x, _: (x + 1, x.sum(0)), x, length=3)

    f, plain = native(looped), jax.jit(looped)
    jax.tree.map(np.testing.assert_array_equal, f(x), plain(x))
    given = jnp.asarray(x)
    f = native(lambda x: (x.sum(0), x + 1), donate_argnums=0)
    assert calls(f, given) == 1
    sums, more = f(given)
    np.testing.assert_array_equal(sums, x.sum(0))
    np.testing.assert_array_equal(more, x + 1)


def test_an_export_is_refused() -> None:
    x = numbers(ROWS)
    with pytest.raises(ValueError, match="cannot be exported with native=True"):
        jax.export.export(native(lambda x: x.sum(0)))(x)
    exported = jax.export.export(tilewright.jit(lambda x: x.sum(0)))(x)
    np.testing.assert_array_equal(exported.call(x), x.sum(0))
    with tilewright.off():
        plain = jax.export.export(native(lambda x: x.sum(0)))(x)
    np.testing.assert_array_equal(plain.call(x), x.sum(0))


def test_the_settings_are_in_the_name() -> None:
    assert Settings(native=True).mark != Settings().mark
    f = lambda x: x.sum(0)
    assert calls(native(f), numbers(ROWS)) == 1
    assert calls(tilewright.jit(f, on_error="raise"), numbers(ROWS)) == 0
    assert calls(native(f), numbers(ROWS)) == 1


def test_devices() -> None:
    """Within a `shard_map` each device calls kernels; a program that XLA divides has none."""
    script = """
        import jax, jax.numpy as jnp, numpy as np, tilewright
        from jax.sharding import NamedSharding, PartitionSpec as P
        mesh = jax.make_mesh((8,), ("d",))
        x = np.random.default_rng(0).integers(0, 9, (1 << 19, 8)).astype(np.float32)
        placed = jax.device_put(x, NamedSharding(mesh, P("d")))

        def local(x):
            return jax.lax.psum(x.sum(0), "d"), x.sum(1)

        mapped = jax.shard_map(
            tilewright.jit(local, native=True, target=TARGET, on_error="raise"),
            mesh=mesh, in_specs=P("d"), out_specs=(P(), P("d")),
        )
        f = jax.jit(mapped)
        text = f.lower(placed).as_text()
        assert text.count("tilewright_reduce(") == 2, text
        columns, rows = f(placed)
        np.testing.assert_array_equal(columns, x.sum(0))
        np.testing.assert_array_equal(rows, x.sum(1))

        g = tilewright.jit(lambda x: (x.sum(0), x.sum(1)), native=True, target=TARGET, on_error="raise")
        assert "tilewright_reduce" not in g.lower(placed).compile().as_text()
        columns, rows = g(placed)
        np.testing.assert_array_equal(columns, x.sum(0))
        np.testing.assert_array_equal(rows, x.sum(1))

        for device in jax.devices():
            there = jax.device_put(x[: 1 << 16], device)
            np.testing.assert_array_equal(g(there)[1], x[: 1 << 16].sum(1))
    """
    run(script, XLA_FLAGS="--xla_force_host_platform_device_count=8")


def test_a_second_process_finds_the_program_again(tmp_path: Path) -> None:
    script = """
        import sys
        import jax, jax.numpy as jnp, numpy as np, tilewright
        from jax._src import monitoring
        events = []
        monitoring.register_event_listener(lambda name, **_: events.append(name))
        jax.config.update("jax_compilation_cache_dir", sys.argv[1])
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
        jax.config.update("jax_persistent_cache_min_entry_size_bytes", 0)
        x = np.arange(1 << 18, dtype=np.float32).reshape(1 << 15, 8) % 7
        f = tilewright.jit(lambda x: x.sum(1), native=True, target=TARGET, on_error="raise")
        np.testing.assert_array_equal(f(x), x.sum(1))
        assert "tilewright_reduce" in f.lower(x).compile().as_text()
        print(sum("cache_hits" in name for name in events))
    """
    first, second = (int(run(script, str(tmp_path)).stdout) for _ in range(2))
    assert second > first


def test_many_calls_at_once() -> None:
    """Calls from several threads share XLA's pool."""
    script = """
        from concurrent.futures import ThreadPoolExecutor
        import jax, jax.numpy as jnp, numpy as np, tilewright
        x = np.arange(1 << 20, dtype=np.float32).reshape(1 << 17, 8) % 7
        f = tilewright.jit(lambda x: (x.sum(1), x.argmax(0)), native=True, target=TARGET, on_error="raise")
        assert f.lower(x).as_text().count("tilewright_reduce(") == 2
        f(x)

        def work():
            for _ in range(20):
                rows, places = f(x)
                np.testing.assert_array_equal(rows, x.sum(1))
                np.testing.assert_array_equal(places, x.argmax(0))
            return True

        with ThreadPoolExecutor(6) as pool:
            begun = [pool.submit(work) for _ in range(6)]
        print([one.result() for one in begun])
    """
    assert run(script).stdout == f"{[True] * 6}\n"


def test_a_whole_gradient_is_one_call() -> None:
    """The gradient of a layer norm with those of its parameters, beside float64."""

    def layer(x: Any, scale: Any, bias: Any) -> Any:
        mean = x.mean(-1, keepdims=True)
        return (x - mean) * jax.lax.rsqrt(x.var(-1, keepdims=True) + 1e-5) * scale + bias

    def gradients(x: Any, scale: Any, bias: Any, dy: Any) -> Any:
        return jax.vjp(layer, x, scale, bias)[1](dy)

    rng = np.random.default_rng(1)
    x = rng.normal(3, 2, (1 << 16, 64)).astype(np.float32)
    dy = rng.normal(size=x.shape).astype(np.float32)
    scale = rng.normal(1, 0.1, 64).astype(np.float32)
    f = native(gradients)
    assert f.lower(x, scale, scale, dy).as_text().count("@tilewright_program(") == 1
    found = f(x, scale, scale, dy)

    wide, up = x.astype(np.float64), dy.astype(np.float64)
    apart = wide - wide.mean(1, keepdims=True)
    inverse = 1 / np.sqrt((apart**2).mean(1, keepdims=True) + 1e-5)
    normed, scaled = apart * inverse, up * scale
    left = scaled - scaled.mean(1, keepdims=True)
    dx = (left - normed * (scaled * normed).mean(1, keepdims=True)) * inverse
    for one, wanted in zip(found, (dx, (up * normed).sum(0), up.sum(0)), strict=True):
        error = np.abs(np.asarray(one, np.float64) - wanted).max() / np.abs(wanted).max()
        assert error < 2e-6, error

    text = native(gradients).lower(x[:1000], scale, scale, dy[:1000]).as_text()
    assert "@tilewright_program(" not in text

    batched = jax.vmap(f, in_axes=(0, None, None, 0))
    pair = x.reshape(2, -1, 64), dy.reshape(2, -1, 64)
    dxs, _, biases = batched(pair[0], scale, scale, pair[1])
    np.testing.assert_allclose(dxs.reshape(x.shape), found[0], atol=1e-5)
    np.testing.assert_allclose(biases.sum(0), found[2], atol=1e-2)
