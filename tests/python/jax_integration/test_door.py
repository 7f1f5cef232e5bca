"""`install`, exports, caches, reports and everything that can fail."""

from __future__ import annotations

import os
import subprocess
import sys
import types
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
import jax.export
import jax.numpy as jnp
import jaxlib
import numpy as np
import pytest
import tilewright
from cases import IMAGE, group_norm
from tilewright._jax import _internals, _jit, _rewrite, _selftest
from tilewright._jax._settings import Settings, cpu_engine, plain, settings_of

# The engine of this jaxlib.
ENGINE = cpu_engine(jaxlib.__version__)


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    """No test sees the report, the memory or the warnings of another."""
    tilewright.report(clear=True)
    _rewrite._REMEMBERED.clear()
    _rewrite._WARNED.clear()
    jax.clear_caches()
    yield
    tilewright.uninstall()


def norm() -> Any:
    """A function that JAX has not seen."""
    return lambda x: group_norm(x)


def outcomes() -> list[str]:
    """What became of each function."""
    return [entry.outcome for entry in tilewright.report()]


def run(*args: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Runs Python on a script that needs a process of its own."""
    here = str(Path(__file__).parent)
    env = {**os.environ, "JAX_PLATFORMS": "cpu", "PYTHONPATH": here, **environment}
    return subprocess.run([sys.executable, *args], capture_output=True, text=True, env=env)


def test_the_result_is_that_of_jax_jit() -> None:
    f = tilewright.jit(group_norm)
    assert type(f) is type(jax.jit(group_norm))
    assert f.__name__ == "group_norm" and f.__doc__ == group_norm.__doc__
    assert f.lower(IMAGE).compile()(IMAGE).shape == IMAGE.shape
    assert f.eval_shape(IMAGE).shape == IMAGE.shape
    assert f.trace(IMAGE).jaxpr is not None


def test_equal_functions_share_what_jit_remembers() -> None:
    calls = 0

    def f(x: Any) -> Any:
        nonlocal calls
        calls += 1
        return group_norm(x)

    for _ in range(3):
        tilewright.jit(f)(IMAGE)
    assert calls == 1
    tilewright.jit(f, exact=True)(IMAGE)
    assert calls == 2
    assert len(tilewright.report()) == 2


def test_a_function_is_compiled_once_for_each_shape() -> None:
    f = tilewright.jit(norm())
    for _ in range(3):
        f(IMAGE)
        f(IMAGE[:1])
    assert outcomes() == ["rewritten", "rewritten"]
    assert f._cache_size() == 2


def test_equal_modules_are_optimised_once(monkeypatch: pytest.MonkeyPatch) -> None:
    optimize, calls = _rewrite._core.optimize, []
    monkeypatch.setattr(
        _rewrite._core, "optimize", lambda *a, **k: calls.append(a) or optimize(*a, **k)
    )
    inner = tilewright.jit(group_norm)

    @jax.jit
    def layers(x: Any) -> Any:
        for _ in range(5):
            x = inner(x)
        return x

    layers(IMAGE)
    jax.clear_caches()
    layers(IMAGE)
    assert len(calls) == 1


@pytest.mark.parametrize("kind", ["Auto", "Explicit"])
def test_the_self_test_does_not_see_the_mesh_of_the_caller(kind: str) -> None:
    tilewright.jit(norm())
    axes = (getattr(jax.sharding.AxisType, kind),)
    with jax.set_mesh(jax.make_mesh((1,), ("data",), axis_types=axes)):
        assert _selftest.why_wrong() is None


def test_settings_travel_in_the_name() -> None:
    settings = Settings(target="/a/b/my-target.toml", numerics="fast-math", on_error="ignore")
    assert settings_of(f"f{settings.mark}") == settings
    assert settings_of(f"f{settings.mark}_0") is None
    assert plain(f"f{settings.mark}") == "f"
    assert settings_of("an_ordinary_name") is None
    assert settings.mark != Settings(target="my-target.toml", numerics="fast-math").mark
    with pytest.raises(ValueError, match="exclude"):
        tilewright.jit(group_norm, exact=True, fast_math=True)
    with pytest.raises(ValueError, match="on_error"):
        tilewright.jit(group_norm, on_error="shout")


def test_unknown_targets_are_told() -> None:
    f = tilewright.jit(norm(), target="abacus")
    with pytest.warns(_rewrite.TilewrightWarning, match="abacus"):
        out = f(IMAGE)
    np.testing.assert_array_equal(out, jax.jit(norm())(IMAGE))
    with pytest.raises(tilewright.TilewrightError, match="abacus"):
        tilewright.jit(norm(), target="abacus", on_error="raise")(IMAGE)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tilewright.jit(norm(), target="abacus", on_error="ignore")(IMAGE)


@pytest.mark.parametrize(
    "broken", ["to_bytecode", "from_bytecode", "extract", "replace_body", "type_of", "contents"]
)
def test_whatever_fails_the_function_compiles(broken: str, monkeypatch: pytest.MonkeyPatch) -> None:
    tilewright.jit(norm())(IMAGE)

    def fails(*_: Any) -> Any:
        raise RuntimeError("it broke")

    monkeypatch.setattr(_internals, broken, fails)
    _rewrite._REMEMBERED.clear()
    f = tilewright.jit(norm())
    with pytest.warns(_rewrite.TilewrightWarning, match="it broke") as told:
        out = f(IMAGE)
    np.testing.assert_array_equal(out, jax.jit(norm())(IMAGE))
    assert len(told) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tilewright.jit(norm())(IMAGE)
    with pytest.raises(RuntimeError, match="it broke"):
        tilewright.jit(norm(), on_error="raise")(IMAGE)


# Jaxlib reads it, and no engine has it.
REFUSED = """
module @norm attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%x: TYPE) -> TYPE {
    %0 = stablehlo.custom_call @nobody_has_this(%x) {api_version = 4 : i32} : (TYPE) -> TYPE
    return %0 : TYPE
  }
}
"""


@pytest.fixture
def broken_rewriter(monkeypatch: pytest.MonkeyPatch) -> None:
    """A rewriter whose results no engine compiles."""
    type_ = f"tensor<{'x'.join(map(str, IMAGE.shape))}xf32>"
    module = tilewright.Module.from_text(REFUSED.replace("TYPE", type_))
    rewritten = module.to_stablehlo_bytecode(portable=False)
    outcome = _rewrite.Outcome(rewritten, 1, 2.0, 1.0, "")
    monkeypatch.setattr(_rewrite, "optimized", lambda *_: outcome)


@pytest.mark.usefixtures("broken_rewriter")
@pytest.mark.parametrize("way", ["call", "ahead of time", "within a jit", "install"])
def test_what_the_engine_refuses_is_compiled_as_jax_wrote_it(way: str) -> None:
    plain_norm = jax.jit(norm())
    expected = plain_norm(IMAGE)
    with pytest.warns(tilewright.TilewrightWarning, match="nobody_has_this") as warned:
        if way == "call":
            found = tilewright.jit(norm())(IMAGE)
        elif way == "ahead of time":
            found = tilewright.jit(norm()).lower(IMAGE).compile()(IMAGE)
        elif way == "within a jit":
            inner = tilewright.jit(norm())
            found = jax.jit(lambda x: inner(x) * 2.0)(IMAGE) / 2.0
        else:
            tilewright.install()
            found = jax.jit(norm())(IMAGE)
    assert len(warned) == 1
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.usefixtures("broken_rewriter")
def test_what_the_engine_refuses_is_an_error_where_that_is_asked_for() -> None:
    with pytest.raises(Exception, match="nobody_has_this"):
        tilewright.jit(norm(), on_error="raise")(IMAGE)


def test_a_panic_leaves_the_function_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    class PanicException(BaseException):
        """As PyO3's, none of `Exception`."""

    def panics(*_: Any, **__: Any) -> Any:
        raise PanicException("index out of bounds")

    tilewright.jit(norm())(IMAGE)
    monkeypatch.setattr(
        _rewrite, "_core", types.SimpleNamespace(Module=_rewrite._core.Module, optimize=panics)
    )
    _rewrite._REMEMBERED.clear()
    with pytest.warns(_rewrite.TilewrightWarning, match="Bug: index out of bounds"):
        out = tilewright.jit(norm())(IMAGE)
    np.testing.assert_array_equal(out, jax.jit(norm())(IMAGE))


def test_what_tilewright_does_not_read_jaxlib_converts(monkeypatch: pytest.MonkeyPatch) -> None:
    core = _rewrite._core

    def refuses(_: bytes) -> Any:
        raise tilewright.TilewrightError("an op of tomorrow is not read here")

    module = types.SimpleNamespace(load=refuses, from_proto=core.Module.from_proto)
    monkeypatch.setattr(
        _rewrite, "_core", types.SimpleNamespace(Module=module, optimize=core.optimize)
    )
    _rewrite._REMEMBERED.clear()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = tilewright.jit(norm(), on_error="raise")(IMAGE)
    np.testing.assert_allclose(found, jax.jit(norm())(IMAGE), rtol=1e-4, atol=1e-5)
    assert list(tilewright.report())[-1].outcome == "rewritten"


def test_a_wrong_type_is_not_merged(monkeypatch: pytest.MonkeyPatch) -> None:
    other = jax.jit(lambda x: x.sum()).lower(IMAGE).compiler_ir(dialect="hlo")
    proto = other.as_serialized_hlo_module_proto()
    monkeypatch.setattr(_rewrite, "optimized", lambda *_: _rewrite.Outcome(proto, 1, 1.0, 1.0, ""))
    with pytest.warns(_rewrite.TilewrightWarning, match="has the type"):
        out = tilewright.jit(norm())(IMAGE)
    np.testing.assert_array_equal(out, jax.jit(norm())(IMAGE))


def test_errors_of_the_function_are_its_own() -> None:
    with pytest.raises(ValueError, match="broadcast"):
        tilewright.jit(lambda x: x + jnp.ones(7))(IMAGE)
    with pytest.raises(jax.errors.TracerBoolConversionError):
        tilewright.jit(lambda x: 1 if x.sum() > 0 else 2)(IMAGE)


def test_a_jax_that_is_not_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_jit, "_HAS_RULE", None)
    monkeypatch.setattr(_selftest, "why_unusable", lambda: "ImportError: jit_p")
    with pytest.warns(UserWarning, match=r"does not know this JAX .*jit_p"):
        f = tilewright.jit(norm())
    assert f(IMAGE).shape == IMAGE.shape
    assert not tilewright.report()
    monkeypatch.setattr(_jit, "_HAS_RULE", None)
    with pytest.raises(RuntimeError, match="does not know this JAX"):
        tilewright.jit(norm(), on_error="raise")


def test_a_jax_that_lowers_in_another_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_jit, "_READY", None)
    monkeypatch.setattr(_selftest, "why_wrong", lambda: "it came out wrong")
    f = tilewright.jit(norm())
    with pytest.warns(UserWarning, match="does not know this JAX .*came out wrong"):
        out = f(IMAGE)
    assert out.shape == IMAGE.shape
    assert not tilewright.report()
    monkeypatch.setattr(_jit, "_READY", None)
    with pytest.raises(RuntimeError, match="does not know this JAX .*came out wrong"):
        tilewright.jit(norm(), on_error="raise")(IMAGE)


@pytest.mark.parametrize("native", [False, True])
def test_a_decorated_function_needs_no_backend(native: bool) -> None:
    script = f"""
import jax, tilewright
from jax._src import xla_bridge

f = tilewright.jit(lambda x: x.sum(1), native={native})
tilewright.install()
assert not xla_bridge.backends_are_initialized()
jax.config.update("jax_num_cpu_devices", 3)
assert f(jax.numpy.ones((3, 4))).tolist() == [4.0] * 3
assert len(jax.devices()) == 3
"""
    done = run("-c", script)
    assert done.returncode == 0, done.stderr


def test_install_rewrites_nothing_in_a_jax_that_is_not_known(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(_jit, "_READY", None)
    monkeypatch.setattr(_jit, "_set_rule", lambda: None)
    monkeypatch.setattr(_selftest, "why_wrong", lambda: "it came out wrong")
    tilewright.install()
    with pytest.warns(UserWarning, match="does not know this JAX .*came out wrong"):
        out = jax.jit(norm())(IMAGE)
    assert out.shape == IMAGE.shape
    assert not tilewright.report()


def test_the_self_test_finds_a_rule_that_is_not_reached(monkeypatch: pytest.MonkeyPatch) -> None:
    tilewright.jit(norm())
    assert _selftest.why_wrong() is None
    monkeypatch.setattr(_rewrite, "rewrite", lambda *_, **__: False)
    assert "not rewritten" in str(_selftest.why_wrong())


def test_exports_hold_the_rewritten_function() -> None:
    f = tilewright.jit(norm())
    exported = jax.export.export(f)(jax.ShapeDtypeStruct(IMAGE.shape, IMAGE.dtype))
    assert outcomes() == ["rewritten"]
    again = jax.export.deserialize(exported.serialize())
    np.testing.assert_allclose(again.call(IMAGE), jax.jit(norm())(IMAGE), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(
        jax.grad(lambda x: (jax.export.deserialize(_with_vjp(f)).call(x) ** 2).sum())(IMAGE),
        jax.grad(lambda x: (norm()(x) ** 2).sum())(IMAGE),
        rtol=1e-3,
        atol=1e-4,
    )


def _with_vjp(f: Any) -> bytearray:
    shape = jax.ShapeDtypeStruct(IMAGE.shape, IMAGE.dtype)
    return jax.export.export(f)(shape).serialize(vjp_order=1)


def test_exports_for_several_platforms_and_symbolic_dims_are_plain() -> None:
    shape = jax.ShapeDtypeStruct(IMAGE.shape, IMAGE.dtype)
    jax.export.export(tilewright.jit(norm()), platforms=("cpu", "tpu"))(shape)
    n = jax.export.symbolic_shape("n, 8, 8, 64")
    exported = jax.export.export(tilewright.jit(norm()))(jax.ShapeDtypeStruct(n, IMAGE.dtype))
    assert outcomes() == ["several platforms", "symbolic dims"]
    np.testing.assert_allclose(exported.call(IMAGE), jax.jit(norm())(IMAGE), rtol=1e-4, atol=1e-5)


def test_install_rewrites_what_is_compiled_until_it_is_undone() -> None:
    tilewright.install()
    f = norm()
    out = jax.jit(f, donate_argnums=0)(jnp.asarray(IMAGE))
    jnp.sin(jnp.ones(5)) + 1
    assert outcomes() == ["rewritten"]
    assert tilewright.report()[0].name.startswith("jit_")
    tilewright.install(target="abacus", on_error="ignore")
    jax.jit(norm())(IMAGE)
    assert outcomes()[1:] == ["failed: UsageError"]
    tilewright.uninstall()
    jax.clear_caches()
    plain_out = jax.jit(f)(IMAGE)
    assert len(tilewright.report()) == 2
    np.testing.assert_allclose(out, plain_out, rtol=1e-4, atol=1e-5)


def test_a_part_is_switched_off() -> None:
    tilewright.install()
    with tilewright.off():
        jax.jit(norm())(IMAGE)
        assert outcomes() == []
        tilewright.jit(norm())(IMAGE)
    jax.jit(norm())(IMAGE)
    assert outcomes() == ["switched off", "rewritten"]


def test_platforms_without_a_target_are_left_alone() -> None:
    assert Settings().target_on("rocm") is None
    assert Settings().target_on("tpu") == "tpu-v5e"
    assert Settings().target_on("cuda") == "xla-gpu-h100"
    assert Settings(target="linear").target_on("rocm") == "linear"


@pytest.mark.parametrize(
    ("platform", "version", "lowered_for"),
    [
        ("cpu", "cpu", "cpu"),
        ("tpu", "TFRT TPU v5 lite", "tpu"),
        ("gpu", "PJRT C API\ncuda 13000", "cuda"),
        ("gpu", "", "cuda"),
        ("gpu", "PJRT C API\nrocm 60300", "rocm"),
    ],
)
def test_gpus_of_two_makers_are_told_apart(platform: str, version: str, lowered_for: str) -> None:
    backend = types.SimpleNamespace(platform=platform, platform_version=version)
    assert _internals.platform_of(backend) == lowered_for


def test_cpus_have_an_engine_for_each_version() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert cpu_engine("0.12.0.1") == "xla-cpu-0.12"
        assert cpu_engine("0.10.2") == "xla-cpu-0.10"
        assert cpu_engine("0.9.2") == "xla-cpu-0.9"
    for version, engine, measured in (
        ("0.13.0.dev1", "xla-cpu-0.12", "0.12"),
        ("1.0", "xla-cpu-0.12", "0.12"),
        ("0.11.1", "xla-cpu-0.10", "0.10"),
        ("0.8.3", "xla-cpu-0.9", "0.9"),
    ):
        with pytest.warns(UserWarning, match=f"{engine}.*jaxlib {version}.*jaxlib {measured}"):
            assert cpu_engine(version) == engine


def test_install_leaves_modules_that_jax_keeps_alone() -> None:
    tilewright.install()
    lowered = jax.jit(norm()).lower(IMAGE)
    before = lowered.as_text()
    lowered.compile()
    assert outcomes() == ["rewritten"]
    assert lowered.as_text() == before


def test_install_and_jit_together() -> None:
    tilewright.install()
    out = tilewright.jit(norm())(IMAGE)
    np.testing.assert_allclose(out, group_norm(IMAGE), rtol=1e-4, atol=1e-5)


SCRIPT = """
import sys
import jax, jax.numpy as jnp
from cases import IMAGE, group_norm
print(sys.argv[1:], float(jax.jit(group_norm)(IMAGE).sum()) < 1)
"""


def test_environment_and_command(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT, encoding="utf-8")
    off = run(str(script), TILEWRIGHT_REPORT="1")
    assert (off.returncode, off.stdout) == (0, "[] True\n"), off.stderr
    assert "jit_group_norm" not in off.stderr
    on = run(str(script), "x", TILEWRIGHT="1", TILEWRIGHT_REPORT="1")
    assert (on.returncode, on.stdout) == (0, "['x'] True\n"), on.stderr
    assert f"jit_group_norm  {ENGINE}  rewritten" in on.stderr, on.stderr
    command = run("-m", "tilewright", str(script), "y", TILEWRIGHT_REPORT="1")
    assert (command.returncode, command.stdout) == (0, "['y'] True\n"), command.stderr
    assert f"jit_group_norm  {ENGINE}  rewritten" in command.stderr
    assert run("-m", "tilewright").returncode == 2
    assert run("-m", "tilewright", "--help").returncode == 0


CACHED = """
import sys
import jax
jax.config.update("jax_compilation_cache_dir", sys.argv[1])
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
import tilewright
from cases import IMAGE, group_norm
heard = []
jax.monitoring.register_event_listener(lambda name, **_: heard.append(name))

def hits(jit):
    # Only what is on disk is remembered.
    jax.clear_caches()
    heard.clear()
    jit(group_norm)(IMAGE)
    return heard.count("/jax/compilation_cache/cache_hits")

found = [hits(jax.jit), hits(tilewright.jit), hits(lambda f: tilewright.jit(f, exact=True))]
tilewright.install()
print([*found, hits(jax.jit)])
"""


def test_the_cache_on_disk_tells_settings_apart(tmp_path: Path) -> None:
    """A second process finds all that the first one compiled, which finds nothing."""
    script = tmp_path / "script.py"
    script.write_text(CACHED, encoding="utf-8")
    for expected in ("[0, 0, 0, 0]\n", "[1, 1, 1, 1]\n"):
        done = run(str(script), str(tmp_path / "cache"))
        assert done.returncode == 0, done.stderr
        assert done.stdout == expected


def test_explain_says_what_is_done() -> None:
    told = tilewright.explain(lambda x: jax.grad(lambda x: (group_norm(x) ** 2).sum())(x))(IMAGE)
    assert "1 layer rewritten:" in str(told) and "cases.py" in told.explanation
    assert told.after.cycles < told.before.cycles
    assert told.rewritten.to_text() != told.original.to_text()
    assert "<pre>" in told._repr_html_()
    explanation = tilewright.explain(jax.jit(group_norm))(IMAGE)
    assert explanation.target == ENGINE
    assert explanation.memory.peak.argument_bytes == IMAGE.nbytes
    assert not tilewright.report(), "nothing was compiled"


def test_optimize_is_for_functions_inside_a_jit() -> None:
    f = tilewright.optimize(group_norm, exact=True)
    out = jax.jit(lambda x: f(x) + 1)(IMAGE)
    np.testing.assert_allclose(out, group_norm(IMAGE) + 1, rtol=1e-4, atol=1e-5)
    assert [entry.name for entry in tilewright.report()] == ["group_norm"]
    with pytest.raises(ValueError, match="for modules"):
        tilewright.optimize(group_norm, passes=["dce"])


def test_the_report_reads_well() -> None:
    assert "no function" in repr(tilewright.report())
    tilewright.jit(group_norm)(IMAGE)
    told = tilewright.report()
    assert (len(told), len(told.rewritten), told[0].name) == (1, 1, "group_norm")
    assert told[0].ratio > 1 and told.seconds > 0 and "Rewritten:" in told[0].explanation
    lines = repr(told).splitlines()
    assert lines[0].split() == [
        "function",
        "target",
        "outcome",
        "instructions",
        "modelled",
        "seconds",
    ]
    assert lines[-1].startswith("1 of 1 rewritten")
    assert told._repr_html_().count("<tr>") == 2
    assert "__tilewright" not in repr(told)


def test_the_same_result_in_threads() -> None:
    from concurrent.futures import ThreadPoolExecutor

    expected = np.asarray(jax.jit(norm())(IMAGE))
    with ThreadPoolExecutor(4) as pool:
        made = list(pool.map(lambda _: np.asarray(tilewright.jit(norm())(IMAGE)), range(8)))
    for one in made:
        np.testing.assert_allclose(one, expected, rtol=1e-4, atol=1e-5)


def test_marks_do_not_reach_messages_of_jax() -> None:
    told = tilewright.jit(group_norm).lower(IMAGE).as_text()
    assert "module @jit_group_norm" in told
