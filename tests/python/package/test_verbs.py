"""Optimise, check, run, cost, lower, explain: against NumPy and the command's words."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import tilewright as tw

FIXTURES = Path(__file__).parents[3] / "fixtures"
GROUP_NORM = FIXTURES / "rewrite" / "reshape-out-of-region" / "group_norm.hlo"

SUMS = """HloModule sums

sum {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b)
}

ENTRY main {
  x = f32[64,8,8] parameter(0)
  zero = f32[] constant(0)
  ROOT r = f32[64,8] reduce(x, zero), dimensions={2}, to_apply=sum
}
"""
X = np.random.default_rng(0).normal(size=(64, 8, 8)).astype(np.float32)


def test_optimize_reports() -> None:
    before = tw.Module.load(GROUP_NORM)
    done = tw.optimize(before)
    report = done.report
    assert not report.unchanged and report.stopped == "fixpoint"
    assert report.after.cycles < report.before.cycles
    assert report.after.realigned_vectors < report.before.realigned_vectors
    assert {each.name for each in report.passes} >= {"dce", "cse"}
    assert any(note.verdict == "rewritten" for note in report.notes)
    assert "realigned vectors" in str(report)
    assert report.to_dict()["before"]["cycles"] == report.before.cycles
    assert done.explanation == report.explanation and done.explanation.startswith("Rewritten:")
    explained = tw.explain(before)
    assert str(explained).startswith("1 layer rewritten:") and explained.after == report.after
    assert explained.explained.layers[0].pattern.startswith("norm of ") and report.explained is None
    assert tw.check(before, done.module)
    assert before == tw.Module.load(GROUP_NORM)


def test_optimize_options() -> None:
    before = tw.Module.load(GROUP_NORM)
    assert tw.optimize(before, "cpu").report.to_dict()["before"]
    listed = tw.optimize(SUMS, passes=["dce", "cse"])
    assert {each.name for each in listed.report.passes} == {"dce", "cse"}
    assert tw.optimize(SUMS, pipeline="cleanup").report.stopped == "fixpoint"
    # Sums of floats may not be regrouped, and nothing else pays.
    exact = tw.optimize(before, exact=True)
    assert exact.report.unchanged and exact.module == before
    for options, message in [
        ({"exact": True, "fast_math": True}, "exclude"),
        ({"pipeline": "cleanup", "passes": ["dce"]}, "exclude"),
        ({"pipeline": "none"}, "no pipeline `none`"),
        ({"passes": ["none"]}, "no pass `none`"),
        ({"passes": "dce"}, "list of names"),
        ({"target": "abacus"}, "abacus"),
        ({"rules": ["dce"]}, "neither a Rule, a RuleSet nor a Pass"),
    ]:
        with pytest.raises(tw.UsageError, match=message):
            tw.optimize(SUMS, **options)


def test_the_core_returns_four_values() -> None:
    module, report, text, explanation = tw._core.optimize(
        tw.Module.load(GROUP_NORM), "cpu", numerics="fast-math"
    )
    assert isinstance(module, tw.Module) and report.startswith("{")
    assert "cycles" in text and explanation


def test_check() -> None:
    report = tw.check(SUMS)
    assert report and report.equal and report.seeds > 1
    assert report.outputs[0].index == 0 and report.outputs[0].elements == 512
    assert str(report).startswith("equal: 1 output")
    wrong = tw.check(SUMS, SUMS.replace("constant(0)", "constant(1)"))
    assert not wrong and not wrong.equal and wrong.outputs[0].max_abs > 0
    assert wrong.outputs[0].at is not None
    assert wrong.first_difference is None
    bisected = tw.check(SUMS, SUMS.replace("constant(0)", "constant(1)"), bisect=True)
    assert bisected.first_difference is not None and "zero" in str(bisected)
    near = tw.check(SUMS, SUMS.replace("constant(0)", "constant(0.001)"), inputs=[X], atol=0.01)
    assert near and near.seeds == 1
    assert not tw.check(SUMS, SUMS.replace("constant(0)", "constant(0.1)"), inputs=[X], atol=0.01)
    with pytest.raises(tw.UsageError, match="cannot be compared"):
        tw.check(SUMS, SUMS.replace("64,8,8", "32,8,8").replace("64,8", "32,8"))
    with pytest.raises(tw.UsageError, match="input 0"):
        tw.check(SUMS, inputs=[X[:1]])
    with pytest.raises(tw.EvaluationError, match="max_steps"):
        tw.check(SUMS, max_steps=1)


def test_run() -> None:
    ran = tw.run(SUMS, X)
    np.testing.assert_allclose(ran.output, X.sum(axis=2), rtol=1e-5, atol=1e-6)
    assert ran.outfeed == () and ran.report.backend == "interp" and ran.report.wall_ms > 0
    assert str(ran) == str(ran.report) and str(ran).startswith("interp")
    same = [tw.run(SUMS, seed=seed).output for seed in (1, 1, 2)]
    np.testing.assert_array_equal(same[0], same[1])
    assert not np.array_equal(same[0], same[2])
    profiled = tw.run(SUMS, X, profile=True)
    assert profiled.report.profile.total_count == len(profiled.report.profile.instructions)
    assert {each.opcode for each in profiled.report.profile.instructions} >= {"reduce"}
    assert "reduce" in str(profiled)
    with pytest.raises(tw.UsageError, match="exclude"):
        tw.run(SUMS, X, seed=1)
    with pytest.raises(tw.EvaluationError, match="max_bytes"):
        tw.run(SUMS, X, max_bytes=100)


def test_simulate() -> None:
    ran = tw.simulate(SUMS, X)
    np.testing.assert_allclose(ran.output, X.sum(axis=2), rtol=1e-5, atol=1e-6)
    assert ran.report.backend == "sim" and ran.report.cycles > 0
    # Every element is read.
    assert ran.report.hbm_read_bytes >= X.nbytes
    assert tw.simulate(SUMS, seed=1, target="cpu").output.shape == (64, 8)
    with pytest.raises(tw.UsageError, match="exclude"):
        tw.simulate(SUMS, X, seed=1)
    with pytest.raises(tw.UsageError):
        tw.simulate(SUMS, X, strategy="none")


def test_run_feeds_out() -> None:
    text = """HloModule m
    ENTRY main {
      x = f32[2] parameter(0)
      t = token[] after-all()
      o = token[] outfeed(x, t), outfeed_shape=f32[2]
      ROOT r = f32[2] negate(x)
    }"""
    ran = tw.run(text, np.array([1, 2], np.float32))
    np.testing.assert_array_equal(ran.output, [-1, -2])
    assert len(ran.outfeed) == 1
    np.testing.assert_array_equal(ran.outfeed[0], [1, 2])


def test_cost() -> None:
    report = tw.cost(SUMS, "cpu")
    assert (report.module, report.target) == ("sums", "cpu")
    assert [each.name for each in report.instructions]
    # Each of the 512 sums adds 8 elements to its beginning.
    reduce = next(each for each in report.instructions if each.name == "r")
    assert reduce.flops == report.total.flops == 64 * 8 * 8
    assert "Costs are a model, not a measurement." in str(report)
    with pytest.raises(tw.UsageError, match="abacus"):
        tw.cost(SUMS, "abacus")


def test_memory() -> None:
    report = tw.memory(SUMS, "cpu")
    # x and the sums.
    assert report.peak.padded_bytes == 4 * (64 * 8 * 8 + 64 * 8)
    assert [array.name for array in report.arrays] == ["x", "r"]
    assert report.arrays[0].is_argument and report.arrays[0].readers[0].name == "r"
    assert report.devices is None and "in use at once" in str(report)
    with pytest.raises(tw.UsageError, match="abacus"):
        tw.memory(SUMS, "abacus")


def test_lower() -> None:
    report = tw.lower(SUMS)
    assert len(report) == 1 and report.instructions[0].why_not is None
    assert report.instructions[0].kernels[0].startswith("kernel r for tpu-like")
    assert str(report).startswith("kernel r")
    plans = tw.lower(SUMS, plan=True)
    assert [plan.axes for plan in plans.plans] == [[2]] and str(plans).startswith("r: f32[64,8,8]")
    assert [plan.kinds for plan in plans]
    with pytest.raises(tw.UsageError):
        tw.lower(SUMS, strategy="none")


def test_lists() -> None:
    assert {each.name for each in tw.passes().passes} >= {"dce"}
    assert {each.name for each in tw.ops().ops} >= {"add", "reduce"}
    assert tw.targets().default == "tpu-like" and "tpu-like" in str(tw.targets())
