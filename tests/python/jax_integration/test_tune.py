"""`tune=True`: what is measured, what wins, and what is remembered; beside plain `jax.jit`."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import textwrap
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jax
import jax.export
import jax.numpy as jnp
import numpy as np
import pytest
import tilewright
from tilewright._jax import _decisions, _forms, _judge, _measure, _rewrite

import tool

X = np.random.default_rng(0).standard_normal((4, 16, 16, 320)).astype(np.float32)
SCALE = np.linspace(0.5, 2.0, 320, dtype=np.float32)


def group_norm(x: jax.Array, scale: jax.Array) -> jax.Array:
    """Over groups of ten channels."""
    grouped = x.reshape(*x.shape[:-1], 32, x.shape[-1] // 32)
    mean = grouped.mean((1, 2, 4), keepdims=True)
    var = ((grouped - mean) ** 2).mean((1, 2, 4), keepdims=True)
    return ((grouped - mean) * jax.lax.rsqrt(var + 1e-5)).reshape(x.shape) * scale


def loss(x: jax.Array, scale: jax.Array) -> jax.Array:
    """With a gradient that the rewriter changes in several ways."""
    return (jax.nn.silu(group_norm(x, scale)) ** 2).mean()


STEP = jax.value_and_grad(loss, (0, 1))


@pytest.fixture(autouse=True)
def fresh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """No test sees what another decided."""
    path = tmp_path / "decisions.jsonl"
    monkeypatch.setenv("TILEWRIGHT_DECISIONS", str(path))
    forget()
    tilewright.report(clear=True)
    yield path
    forget()


def forget() -> None:
    """As in a new process."""
    _rewrite._REMEMBERED.clear()
    _rewrite._WARNED.clear()
    _decisions._KNOWN.clear()
    _decisions._LOADED.clear()
    jax.clear_caches()


@pytest.fixture
def times(monkeypatch: pytest.MonkeyPatch) -> dict[str, float]:
    """Seconds by form, which are what is measured; 1 for those that are not named."""
    named: dict[str, float] = {}
    race, begin = _measure._core.Race, _measure.Measurement.__init__

    class Raced:
        def __init__(self, *args: Any) -> None:
            self.race = race(*args)

        def __getattr__(self, name: str) -> Any:
            return getattr(self.race, name)

        def record(self, _: float) -> None:
            name = self.forms[self.race.next]["name"]
            self.race.record(named.get(name, 1e-3))

    def begun(self: Any, program: Any, forms: Any, *rest: Any) -> None:
        Raced.forms = forms
        begin(self, program, forms, *rest)

    monkeypatch.setattr(_measure._core, "Race", Raced)
    monkeypatch.setattr(_measure.Measurement, "__init__", begun)
    return named


def tuned(f: Callable[..., Any], **options: Any) -> Any:
    """`f`, tuned; whatever goes wrong is an error."""
    return tilewright.jit(f, **{"tune": True, "on_error": "raise", "tune_seconds": 2.0, **options})


def last() -> Any:
    """What the report says last."""
    return tilewright.report()[-1]


def assert_right(results: Any, f: Callable[..., Any] = STEP, *args: Any) -> None:
    """Fails unless results are those of plain JAX."""
    for one, other in zip(
        jax.tree.leaves(results), jax.tree.leaves(jax.jit(f)(*(args or (X, SCALE)))), strict=True
    ):
        np.testing.assert_allclose(one, other, rtol=2e-4, atol=1e-6)


def decisions(path: Path) -> list[dict[str, Any]]:
    """The decisions in a file."""
    return [json.loads(line) for line in path.read_text().splitlines() if line]


def test_the_fastest_form_runs_and_is_remembered(fresh: Path, times: dict[str, float]) -> None:
    times["default"], times["without factored-sums"] = 0.8e-3, 0.5e-3
    step = tuned(STEP)
    assert_right(step(X, SCALE))
    assert last().outcome == "tuned: without factored-sums"
    assert last().decision.measured == pytest.approx(2.0)
    assert last().is_rewritten and "2.00x" in str(tilewright.report())
    names = [form["name"] for form in last().decision.forms]
    assert names[:2] == ["original", "default"] and "without rematerialize" in names
    assert [one["winner"] for one in decisions(fresh)] == ["without factored-sums"]
    # Later calls are of the compiled program.
    count = len(tilewright.report())
    step(X, SCALE)
    assert len(tilewright.report()) == count


def test_a_new_process_measures_nothing_again(
    times: dict[str, float], monkeypatch: pytest.MonkeyPatch
) -> None:
    times["without rematerialize"] = 0.5e-3
    tuned(STEP)(X, SCALE)
    forget()
    monkeypatch.setattr("tilewright._jax._tune.Measurement", None)
    assert_right(tuned(STEP)(X, SCALE))
    assert last().outcome == "tuned: without rematerialize" and last().decision.seconds == 0.0
    # Another name of the same function has the same decision.
    assert_right(tuned(lambda x, scale: STEP(x, scale))(X, SCALE))
    assert last().outcome == "tuned: without rematerialize"


def test_the_original_runs_where_nothing_is_faster(times: dict[str, float]) -> None:
    times["default"] = 0.99e-3
    step = tuned(STEP)
    assert_right(step(X, SCALE))
    assert last().outcome == "tuned: original" and not last().is_rewritten
    assert last().decision.measured == 1.0


def test_each_kind_of_arguments_is_decided_by_itself(
    fresh: Path, times: dict[str, float]
) -> None:
    step = tuned(STEP)
    times["default"] = 0.5e-3
    step(X, SCALE)
    times["default"] = 2e-3
    assert_right(step(X[:2], SCALE), STEP, X[:2], SCALE)
    assert [one["winner"] for one in decisions(fresh)] == ["default", "original"]


def test_real_times_decide(fresh: Path) -> None:
    assert_right(tuned(STEP)(X, SCALE))
    (decision,) = decisions(fresh)
    original = decision["forms"][0]
    assert original["seconds"] > 0 and original["measured"] == 1.0
    assert decision["winner"] in [form["name"] for form in decision["forms"]]
    assert decision["device"].endswith("x1") and jax.__version__[:4] in decision["engine"]


def test_donated_arguments_are_copied(times: dict[str, float]) -> None:
    times["default"] = 0.5e-3

    def step(x: jax.Array, scale: jax.Array) -> jax.Array:
        return x - 0.1 * jax.grad(loss)(x, scale)

    x, scale = jnp.asarray(X), jnp.asarray(SCALE)
    result = tuned(step, donate_argnums=0)(x, scale)
    assert last().outcome == "tuned: default"
    assert x.is_deleted() and not scale.is_deleted()
    assert_right(result, step, X, SCALE)
    # Whether arguments are donated is part of the program.
    assert "donates 0" in json.dumps(list(_decisions._KNOWN))


def test_donated_arguments_are_told_from_unused_ones(times: dict[str, float]) -> None:
    times["default"] = 0.5e-3

    def step(unused: jax.Array, x: jax.Array, scale: jax.Array, late: jax.Array) -> jax.Array:
        return x - 0.1 * jax.grad(loss)(x, scale)

    x, scale, other = jnp.asarray(X), jnp.asarray(SCALE), jnp.ones(3)
    result = tuned(step, donate_argnums=1)(other, x, scale, other)
    assert last().outcome == "tuned: default"
    assert x.is_deleted() and not scale.is_deleted() and not other.is_deleted()
    assert_right(result, step, 0.0, X, SCALE, 0.0)


def test_arguments_and_results_need_not_be_arrays(times: dict[str, float]) -> None:
    times["default"] = 0.5e-3

    def scaled(by: float, x: jax.Array, scale: jax.Array, count: int) -> jax.Array:
        return by * loss(x, scale) * count

    step = jax.grad(scaled, (0, 1, 3), allow_int=True)
    results = tuned(step, donate_argnums=0)(2.0, X, SCALE, 3)
    plain = jax.jit(step)(2.0, X, SCALE, 3)
    np.testing.assert_allclose(results[1], plain[1], rtol=1e-3, atol=1e-6)
    assert last().outcome == "tuned: default"


def test_mutable_arrays_change_once() -> None:
    def step(state: Any, x: jax.Array, scale: jax.Array) -> jax.Array:
        state[...] += 1
        return loss(x, scale)

    state = jax.new_ref(jnp.zeros(()))
    tuned(step)(state, X, SCALE)
    assert float(state[...]) == 1.0
    assert "not tuned: effects" in last().outcome


def test_effects_happen_once(times: dict[str, float]) -> None:
    seen = []

    def step(x: jax.Array, scale: jax.Array) -> jax.Array:
        jax.debug.callback(lambda value: seen.append(value), x[0, 0, 0, 0])
        return loss(x, scale)

    tuned(step)(X, SCALE)
    jax.effects_barrier()
    assert len(seen) == 1
    assert "not tuned: effects" in last().outcome and last().decision is None


def test_forms_that_fail_or_differ_are_out(
    times: dict[str, float], monkeypatch: pytest.MonkeyPatch
) -> None:
    times.update({"default": 0.1e-3, "without rematerialize": 0.2e-3, "without factored-sums": 0.5e-3})
    module_of = _forms.Program.module_of

    def failing(self: Any, name: str) -> Any:
        if name == "default":
            raise RuntimeError("RESOURCE_EXHAUSTED: out of memory\nand more")
        return module_of(self, name)

    difference = _judge.Judge.difference
    compared = []

    def differing(self: Any, results: Any) -> str:
        compared.append(difference(self, results))
        return "output 0 differs: not finite" if len(compared) == 1 else compared[-1]

    monkeypatch.setattr(_forms.Program, "module_of", failing)
    monkeypatch.setattr(_judge.Judge, "difference", differing)
    assert_right(tuned(STEP)(X, SCALE))
    why = {form["name"]: form["outcome"] for form in last().decision.forms}
    assert why["default"] == "RuntimeError: RESOURCE_EXHAUSTED: out of memory"
    assert list(why.values()).count("output 0 differs: not finite") == 1
    assert last().outcome.startswith("tuned: ") and not any(compared)


@pytest.mark.parametrize(
    ("a", "b", "differs"),
    [
        ([1.0, 2.0], [1.0, 2.0005], False),
        ([1.0, 2.0], [1.0, 2.01], True),
        ([1.0, np.inf], [1.0, np.inf], False),
        ([1.0, np.inf], [1.0, -np.inf], True),
        ([1.0, 2.0], [1.0, np.nan], True),
        ([1.0, np.nan], [1.0, np.nan], False),
        ([1.0, np.nan], [1.0, 3.0], True),
        ([0.0, 0.0], [0.0, 1e-30], True),
    ],
)
def test_results_are_compared(a: list[float], b: list[float], differs: bool) -> None:
    first, second = (np.asarray(one, np.float32) for one in (a, b))
    assert bool(_judge._difference(first, second)) == differs
    assert not _judge._difference(first, first)


def test_whole_numbers_and_keys_are_compared_exactly() -> None:
    numbers = [jnp.arange(3), jnp.arange(3) + 1]
    keys = [jax.random.key(0), jax.random.key(1)]
    for one, other in (numbers, keys):
        judge = _judge.Judge(None, (), [one])
        judge._is_asked = True
        assert not judge.difference([one])
        assert judge.difference([other]) == "output 0 differs: other values"


def test_what_looks_wrong_is_judged_in_f64(times: dict[str, float]) -> None:
    """XLA:CPU adds up columns in bf16: a long sum of ones stops at 256."""
    times["default"] = 0.5e-3
    x = jnp.asarray(X, jnp.bfloat16) + 1

    def sums(x: jax.Array) -> jax.Array:
        return jax.lax.reduce(x, jnp.bfloat16(0), jax.lax.add, (0, 1, 2))

    judges = []
    judge = _judge.Judge.difference

    def noted(self: Any, results: Any) -> str:
        judges.append(self)
        return judge(self, results)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_judge.Judge, "difference", noted)
        result = tuned(sums)(x)
    assert last().outcome == "tuned: default"
    truth = np.asarray(x, np.float64).sum((0, 1, 2))
    np.testing.assert_allclose(np.asarray(result, np.float64), truth, rtol=0.01)
    # It did look wrong, and the truth is that of NumPy.
    plain = np.asarray(jax.jit(sums)(x), np.float64)
    assert np.abs(plain / truth - 1).max() > 0.1
    np.testing.assert_allclose(judges[0]._truth[0], truth, rtol=1e-12)
    assert "where the original is by" in judges[0].difference([result * 3])


def test_an_error_of_the_program_is_its_own(times: dict[str, float]) -> None:
    with jax.debug_nans(True), pytest.raises(FloatingPointError):
        tuned(lambda x, scale: STEP(jnp.log(-jnp.abs(x)), scale))(X, SCALE)


def test_what_fails_in_the_rewriter_leaves_the_original(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def failing(*_: Any) -> Any:
        raise RuntimeError("broken")

    monkeypatch.setattr(_forms.Program, "forms", failing)
    with pytest.warns(tilewright.TilewrightWarning, match="broken"):
        assert_right(tuned(STEP, on_error="warn")(X, SCALE))


def test_where_copies_do_not_fit_the_original_runs(
    times: dict[str, float], monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(self: Any) -> Any:
        raise RuntimeError("RESOURCE_EXHAUSTED: out of memory")

    monkeypatch.setattr(_measure._Runner, "_arguments", failing)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert_right(tuned(STEP, on_error="warn")(X, SCALE))
    assert last().outcome == "unchanged, not tuned: fails"


def test_what_takes_too_long_is_rewritten_by_the_model(
    fresh: Path, times: dict[str, float]
) -> None:
    assert_right(tuned(STEP, tune_seconds=1e-4)(X, SCALE))
    assert last().outcome == "rewritten, not tuned: too slow" and last().decision is None
    assert not fresh.exists()


def test_options_of_the_compiler_are_part_of_a_program(
    fresh: Path, times: dict[str, float]
) -> None:
    times["default"] = 0.5e-3
    tuned(STEP)(X, SCALE)
    tuned(STEP, compiler_options={"xla_cpu_enable_fast_math": True})(X, SCALE)
    assert last().decision.seconds > 0.0
    assert len({one["options"] for one in decisions(fresh)}) == 2


def test_a_file_that_is_a_target_is_known_by_what_it_says(
    fresh: Path, times: dict[str, float], tmp_path: Path
) -> None:
    target = tmp_path / "mine.toml"
    for gain in (1.03, 1.04):
        target.write_text(f'base = "xla-cpu-0.12"\nleast_gain = {gain}\n')
        jax.clear_caches()
        tuned(STEP, target=str(target))(X, SCALE)
        assert last().decision.seconds > 0.0
    assert len(decisions(fresh)) == 2


def test_another_library_may_replace_the_method_too(
    times: dict[str, float], monkeypatch: pytest.MonkeyPatch
) -> None:
    times["default"] = 0.5e-3
    tuned(loss)
    ours = _measure.internals.compile_method()

    def theirs(self: Any, *args: Any, **kwargs: Any) -> Any:
        return ours(self, *args, **kwargs)

    monkeypatch.setattr(_measure.internals.pxla.MeshComputation, "compile", theirs)
    assert_right(tuned(STEP)(X, SCALE))
    # Who calls `jit` is not known through theirs, so nothing is measured.
    assert last().outcome == "rewritten"


def test_what_jax_may_change_stops_no_program(monkeypatch: pytest.MonkeyPatch) -> None:
    step = tuned(STEP, on_error="warn")
    monkeypatch.setattr(
        _measure.internals, "module_name", lambda _: (_ for _ in ()).throw(KeyError("sym_name"))
    )
    with pytest.warns(tilewright.TilewrightWarning, match="sym_name"):
        assert_right(step(X, SCALE))


def test_a_file_that_cannot_be_written_is_one_warning(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, times: dict[str, float]
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("TILEWRIGHT_DECISIONS", str(tmp_path / "file" / "decisions.jsonl"))
    times["default"] = 0.5e-3
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert_right(tuned(STEP)(X, SCALE))
        tuned(STEP)(X[:2], SCALE)
    ours = [one for one in caught if one.category is tilewright.TilewrightWarning]
    assert 1 <= len(ours) <= 2 and last().outcome == "tuned: default"
    monkeypatch.setenv("TILEWRIGHT_DECISIONS", "")
    forget()
    assert_right(tuned(STEP)(X, SCALE))


def test_a_damaged_file_is_one_warning(fresh: Path, times: dict[str, float]) -> None:
    times["default"] = 0.5e-3
    fresh.write_bytes(b"\xff\x00{]\n{}\n")
    with pytest.warns(tilewright.TilewrightWarning, match="no decisions"):
        assert_right(tuned(STEP)(X, SCALE))
    assert last().outcome == "tuned: default"
    forget()
    with pytest.warns(tilewright.TilewrightWarning, match="no decisions"):
        tuned(STEP)(X, SCALE)
    assert last().decision.seconds == 0.0


def test_a_decision_on_another_form_of_that_name_does_not_hold(
    fresh: Path, times: dict[str, float]
) -> None:
    times["default"] = 0.5e-3
    tuned(STEP)(X, SCALE)
    (decision,) = decisions(fresh)
    fresh.write_text(json.dumps({**decision, "digest": "0" * 64}) + "\n")
    forget()
    tuned(STEP)(X, SCALE)
    assert last().decision.seconds > 0.0
    # Neither does one on a form that nobody knows.
    fresh.write_text(json.dumps({**decision, "winner": "nothing"}) + "\n")
    forget()
    tuned(STEP)(X, SCALE)
    assert last().decision.seconds > 0.0


def test_decisions_come_with_a_program(
    fresh: Path, times: dict[str, float], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    times["without rematerialize"] = 0.5e-3
    tuned(STEP)(X, SCALE)
    shipped = tmp_path / "shipped.jsonl"
    fresh.rename(shipped)
    forget()
    monkeypatch.setattr("tilewright._jax._tune.Measurement", None)
    tilewright.load_decisions(shipped)
    tuned(STEP)(X, SCALE)
    assert last().outcome == "tuned: without rematerialize"
    with pytest.raises(OSError, match="absent"):
        tilewright.load_decisions(tmp_path / "absent")


def test_in_other_functions_it_is_the_default(times: dict[str, float]) -> None:
    tuned_loss = tuned(loss)

    def step(x: jax.Array, scale: jax.Array) -> Any:
        return jax.value_and_grad(tuned_loss, (0, 1))(x, scale)

    assert_right(jax.jit(step)(X, SCALE))
    assert not any(one.decision for one in tilewright.report())
    assert any(one.outcome == "rewritten" for one in tilewright.report())
    many = jax.vmap(tuned_loss, (0, None))(X[:, None], SCALE)
    assert_right(many, jax.vmap(loss, (0, None)), X[:, None], SCALE)


@pytest.mark.parametrize("is_tuned", [False, True])
def test_functions_that_a_tuned_one_calls_are_part_of_it(
    times: dict[str, float], is_tuned: bool
) -> None:
    times["default"] = 0.5e-3
    inner = tilewright.jit(loss, tune=is_tuned, on_error="raise")

    def step(x: jax.Array, scale: jax.Array) -> Any:
        return jax.value_and_grad(lambda *args: inner(*args), (0, 1))(x, scale)

    assert_right(tuned(step)(X, SCALE))
    assert [one.outcome for one in tilewright.report()] == ["tuned: default"]


def test_a_function_that_keeps_its_bits_is_no_part_of_a_tuned_one(
    times: dict[str, float],
) -> None:
    times["default"] = 0.5e-3
    inner = tilewright.jit(loss, exact=True, on_error="raise")

    def step(x: jax.Array, scale: jax.Array) -> Any:
        return jax.value_and_grad(lambda *args: inner(*args), (0, 1))(x, scale)

    assert_right(tuned(step)(X, SCALE))
    assert last().outcome == "not tuned: it calls functions with other numerics"
    assert not any(one.decision for one in tilewright.report())


def test_the_gradient_of_a_tuned_function_is_tuned(times: dict[str, float]) -> None:
    times["default"] = 0.5e-3
    # It has the name of its function.
    assert_right(jax.jit(jax.value_and_grad(tuned(loss), (0, 1)))(X, SCALE))
    assert [one.outcome for one in tilewright.report()] == ["tuned: default"]


def test_ahead_of_time_without_arguments(times: dict[str, float]) -> None:
    step = tuned(STEP)
    compiled = step.lower(X, SCALE).compile()
    assert_right(compiled(X, SCALE))
    assert last().outcome == "rewritten" and last().decision is None
    # It is measured all the same where it is called.
    times["default"] = 0.5e-3
    step(X, SCALE)
    assert last().outcome == "tuned: default"
    # A known decision holds ahead of time, too.
    jax.clear_caches()
    tuned(STEP).lower(X, SCALE).compile()
    assert last().outcome == "tuned: default"


def test_tune_measures_before_it_is_used(
    times: dict[str, float], monkeypatch: pytest.MonkeyPatch
) -> None:
    times["without rematerialize"] = 0.5e-3
    step = tuned(STEP, donate_argnums=0)
    x = jnp.asarray(X)
    decision = tilewright.tune(step)(x, SCALE)
    assert decision is not None and decision.winner == "without rematerialize" and not x.is_deleted()
    assert "fastest" in str(decision) and "slower" in str(decision)
    shape = jax.ShapeDtypeStruct(X.shape, X.dtype)
    assert tilewright.tune(STEP, tune_seconds=2.0)(shape, SCALE).winner == "without rematerialize"
    assert tilewright.tune(lambda x: x + 1)(X) is None
    # JAX has compiled it now, and what was decided is known.
    assert tilewright.tune(step)(X, SCALE).winner == "without rematerialize"
    monkeypatch.setattr("tilewright._jax._tune.Measurement", None)
    tuned(STEP)(X, SCALE)
    assert last().outcome == "tuned: without rematerialize"
    explanation = tilewright.explain(STEP)(X, SCALE)
    assert explanation.decision.winner == "without rematerialize"
    assert "Measured; `without rematerialize` runs" in str(explanation)
    assert "__tilewright" not in str(tilewright.explain(step)(X, SCALE))


def test_off_measures_nothing(times: dict[str, float]) -> None:
    with tilewright.off():
        assert_right(tuned(STEP)(X, SCALE))
    assert not tilewright.report()


def test_the_time_to_decide_is_a_positive_number() -> None:
    for wrong in (0.0, -1.0, float("inf"), float("nan")):
        with pytest.raises(ValueError, match="tune_seconds"):
            tilewright.jit(STEP, tune=True, tune_seconds=wrong)


def test_exports_are_rewritten_by_default(times: dict[str, float]) -> None:
    exported = jax.export.export(tuned(loss))(X, SCALE)
    np.testing.assert_allclose(exported.call(X, SCALE), loss(X, SCALE), rtol=1e-5)


PROGRAM = """
    import jax, numpy as np, tilewright

    def loss(x, scale):
        grouped = x.reshape(4, 256, 32, 10)
        mean = grouped.mean((1, 3), keepdims=True)
        var = ((grouped - mean) ** 2).mean((1, 3), keepdims=True)
        normal = ((grouped - mean) * jax.lax.rsqrt(var + 1e-5)).reshape(x.shape)
        return (jax.nn.silu(normal * scale) ** 2).mean()

    step = jax.value_and_grad(loss, (0, 1))
    x = np.random.default_rng(0).standard_normal((4, 256, 320)).astype(np.float32)
    scale = np.ones(320, np.float32)
"""


def run(script: str, **environment: str) -> str:
    """What a script prints that must not fail."""
    env = {**os.environ, "JAX_PLATFORMS": "cpu", **environment}
    command = [sys.executable, "-c", textwrap.dedent(PROGRAM) + textwrap.dedent(script)]
    done = subprocess.run(
        command, capture_output=True, text=True, env=env, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_whole_programs_are_tuned_by_the_environment(fresh: Path) -> None:
    script = """
        inner = tilewright.jit(loss)
        results = jax.jit(jax.value_and_grad(lambda *args: inner(*args), (0, 1)))(x, scale)
        assert tilewright.report()[-1].decision is not None
        print(tilewright.report())
    """
    for _ in range(2):
        printed = run(script, TILEWRIGHT="1", TILEWRIGHT_TUNE="1")
        assert "tuned: " in printed
    assert len(decisions(fresh)) == 1


def test_kernels_are_known_to_the_next_process(tmp_path: Path) -> None:
    # A target whose table says that kernels sum rows faster.
    file = tool.engine_file(tmp_path, "sum f32 stored rows 1 1 | as-is 9 | kernel 1")
    lines = file.read_text().replace("[reductions]\n", "[reductions]\nkernel_call_ns = 8000\n")
    file.write_text(lines)
    script = """
        import os
        from tilewright._jax import _measure
        begin = _measure.Measurement.__init__
        def begun(self, *args):
            begin(self, *args)
            name = lambda compiled: self.forms[self.compiled.index(compiled)]["name"]
            self._runner.seconds = lambda one: 1e-3 if name(one) == "native" else 2e-3
        _measure.Measurement.__init__ = begun
        rows = np.random.default_rng(0).standard_normal((1 << 16, 8)).astype(np.float32)
        sums = lambda x: x.sum(1)
        tuned = tilewright.jit(sums, tune=True, target=os.environ["TARGET"], on_error="raise")
        np.testing.assert_allclose(tuned(rows), sums(rows), rtol=1e-5, atol=1e-6)
        decision = tilewright.report()[-1].decision
        print(decision.winner, decision.seconds == 0)
    """
    assert [run(script, TARGET=str(file)) for _ in range(2)] == ["native False\n", "native True\n"]


def test_programs_for_several_devices_are_tuned(fresh: Path) -> None:
    script = """
        from jax.sharding import Mesh, NamedSharding, PartitionSpec as P
        mesh = Mesh(np.array(jax.devices()), ("batch",))
        divided = NamedSharding(mesh, P("batch"))
        whole = NamedSharding(mesh, P())
        args = jax.device_put(x, divided), jax.device_put(scale, whole)
        tuned = tilewright.jit(step, tune=True, tune_seconds=2.0, on_error="raise")
        for one, other in zip(jax.tree.leaves(tuned(*args)), jax.tree.leaves(jax.jit(step)(*args))):
            np.testing.assert_allclose(one, other, rtol=2e-4, atol=1e-6)
        assert tilewright.report()[-1].decision is not None
    """
    run(script, XLA_FLAGS="--xla_force_host_platform_device_count=4")
    (decision,) = decisions(fresh)
    assert decision["device"].endswith("x4")


def test_processes_that_run_one_program_use_one_form(tmp_path: Path) -> None:
    """Each would choose another one by its own times."""
    with socket.socket() as free:
        free.bind(("localhost", 0))
        port = free.getsockname()[1]
    script = """
        import os, sys
        rank = int(os.environ["RANK"])
        jax.config.update("jax_cpu_collectives_implementation", "gloo")
        jax.distributed.initialize(f"localhost:{os.environ['PORT']}", 2, rank)
        from tilewright._jax import _measure
        seconds = _measure._Runner.seconds
        turn = [0]
        def measured(self, compiled):
            seconds(self, compiled)
            turn[0] += 1
            # Each would call it another number of times for one time, too.
            return 2e-4 * (1 + rank) * (1 + 0.5 * ((turn[0] + rank) % 2))
        _measure._Runner.seconds = measured
        from jax.sharding import Mesh, NamedSharding, PartitionSpec as P
        mesh = Mesh(np.array(jax.devices()), ("batch",))
        divided, whole = NamedSharding(mesh, P("batch")), NamedSharding(mesh, P())
        own = slice(2 * rank, 2 * rank + 2)
        args = (
            jax.make_array_from_process_local_data(divided, x[own]),
            jax.make_array_from_process_local_data(whole, scale),
        )
        tuned = tilewright.jit(step, tune=True, tune_seconds=2.0, on_error="raise")
        value = tuned(*args)[0]
        np.testing.assert_allclose(value, loss(x, scale), rtol=1e-5)
        print(tilewright.report()[-1].outcome)
    """
    whole = textwrap.dedent(PROGRAM) + textwrap.dedent(script)
    workers = []
    for rank in range(2):
        env = {
            **os.environ,
            "JAX_PLATFORMS": "cpu",
            "RANK": str(rank),
            "PORT": str(port),
            "TILEWRIGHT_DECISIONS": str(tmp_path / f"{rank}.jsonl"),
        }
        command = [sys.executable, "-c", whole]
        pipe = subprocess.PIPE
        workers.append(subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, env=env))
    ended = [worker.communicate(timeout=300) for worker in workers]
    for worker, (_, errors) in zip(workers, ended, strict=True):
        if worker.returncode and any(why in errors for why in ("Address already in use", "Gloo")):
            pytest.skip("two processes cannot meet on this machine")
        assert worker.returncode == 0, errors
    outcomes = {printed.strip().splitlines()[-1] for printed, _ in ended}
    assert len(outcomes) == 1 and outcomes.pop().startswith("tuned: ")
