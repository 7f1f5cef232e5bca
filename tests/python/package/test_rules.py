"""Rules and passes that are written in Python."""

from __future__ import annotations

import numpy as np
import pytest
import tilewright as tw
from tilewright import pattern as p

TEXT = """HloModule m

ENTRY main {
  x = f32[64,256] parameter(0)
  one = f32[] constant(1)
  ones = f32[64,256] broadcast(one), dimensions={}
  y = f32[64,256] multiply(ones, x)
  ROOT z = f32[64,256] exponential(y)
}
"""
X = np.random.default_rng(0).normal(size=(64, 256)).astype(np.float32)


def opcodes(module: tw.Module) -> list[str]:
    return [instruction.opcode for instruction in module.entry]


def times_one(**options: object) -> tw.Rule:
    pattern = p.multiply(p.any("x"), p.broadcast(p.constant(1)))
    settings = {"law": "x * 1 = x", "numerics": "exact", **options}
    return tw.Rule("times-one", pattern, lambda found, new: found["x"], **settings)


def test_patterns() -> None:
    module = tw.Module.load(TEXT)
    y = module.entry["y"]
    pattern = p.multiply(p.any("x"), p.broadcast(p.constant(1, "c")).named("b"))
    assert str(pattern) == "multiply(x, b: broadcast(c: constant))"
    assert pattern.names == ["x", "c", "b"]
    assert pattern.matches(y) and not pattern.matches(module.root)
    assert not p.multiply(p.any("x"), p.any("x")).matches(y)
    assert not p.multiply(p.any("x"), p.broadcast(p.constant(2))).matches(y)
    assert p.multiply(p.any("x"), p.broadcast(p.constant("c"))).matches(y)
    assert p.op("multiply", p.any("a"), p.any("b")).matches(y)
    for narrowed, holds in [
        (p.any("x").row_major(), True),
        (p.any("x").static_dims(), True),
        (p.any("x").scalar(), False),
        (p.any("x").element_type("f32"), True),
        (p.any("x").element_type("f64"), False),
        (p.any("x").used_once(), True),
        (p.any("x").with_extras(), True),
        (p.any("x").when("be a parameter", lambda each: each.opcode == "parameter"), True),
        (p.any("x").when("be a dot", lambda each: each.opcode == "dot"), False),
    ]:
        assert p.exp(p.multiply(p.broadcast(p.any("c")), narrowed)).matches(module.root) == holds
    failing = p.any("x").when("fail", lambda each: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        failing.matches(y)
    assert p.any("x").when("hold", lambda each: True).matches(y)
    with pytest.raises(tw.UsageError, match="no op `times`"):
        p.op("times", p.any("x"))


def test_a_rule_rewrites() -> None:
    rule = times_one(always=True)
    assert (rule.name, rule.law, rule.numerics) == ("times-one", "x * 1 = x", "exact")
    done = tw.optimize(TEXT, passes=[rule, "dce"])
    assert opcodes(done.module) == ["parameter", "exponential"]
    np.testing.assert_allclose(done.module(X), np.exp(X), rtol=1e-6)
    assert [each.changes for each in done.report.passes if each.name == "times-one"] == [1]
    assert tw.check(TEXT, done.module, exact=True)
    assert rule.why_not(tw.Module.load(TEXT).entry["y"]) is None
    assert rule.why_not(tw.Module.load(TEXT).root) == "`z`: it is `exponential`, not `multiply`"


def test_rules_run_first_in_a_list() -> None:
    done = tw.optimize(TEXT, passes=["dce"], rules=[times_one(always=True)])
    assert opcodes(done.module) == ["parameter", "exponential"]


def test_conditions() -> None:
    asked = []

    def holds(found: tw.Match) -> bool:
        asked.append((found.root.name, found["x"].name, found.keys()))
        with pytest.raises(KeyError, match="no `y`"):
            found["y"]
        return False

    rule = times_one(always=True, when=[("be asked", holds)])
    done = tw.optimize(TEXT, passes=[rule])
    assert "multiply" in opcodes(done.module)
    assert ("y", "x", ("x",)) in asked
    why = rule.why_not(tw.Module.load(TEXT).entry["y"])
    assert why is not None and "must be asked" in why


def test_replacements() -> None:
    def square(found: tw.Match, new: tw.Replacement) -> tw.NewValue:
        x = found["x"]
        flat = new.reshape(x, [64 * 256])
        two = new.broadcast(new.constant(2.0, "f32"), new.shape(flat).dims)
        scaled = new.op("multiply", [flat, two])
        turned = new.op("transpose", [new.reshape(scaled, [64, 256])], "dimensions={1,0}")
        assert str(turned.shape) == str(new.shape(turned)) == "f32[256,64]"
        back = new.transpose(turned, [1, 0])
        wide = new.convert(new.convert(back, "f64"), "f32")
        return new.op("exponential", [wide])

    rule = tw.Rule("double", p.exp(p.any("x")), square, always=True)
    assert rule.why_not(tw.Module.load(TEXT).root) is None


def test_a_replacement_computes() -> None:
    def halved(found: tw.Match, new: tw.Replacement) -> tw.NewValue:
        half = new.broadcast(new.constant(0.5, "f32"), found.root.shape.dims)
        return new.op("multiply", [found["x"], half])

    text = TEXT.replace("exponential(y)", "divide(y, twos)").replace(
        "  ROOT",
        "  two = f32[] constant(2)\n  twos = f32[64,256] broadcast(two), dimensions={}\n  ROOT",
    )
    rule = tw.Rule(
        "half",
        p.divide(p.any("x"), p.broadcast(p.constant(2))),
        halved,
        numerics="exact",
        always=True,
    )
    done = tw.optimize(text, passes=[rule, "dce"])
    assert "divide" not in opcodes(done.module)
    np.testing.assert_array_equal(done.module(X), X / 2)
    trial = tw.try_rule(rule, 5)
    assert trial.wrong is None


def test_a_wrong_rule_is_found_out() -> None:
    rule = tw.Rule(
        "wrong", p.add(p.any("x"), p.any("y")), lambda found, new: found["x"], numerics="exact"
    )
    trial = tw.try_rule(rule, 20)
    assert trial.tried > 0 and not trial
    assert trial.wrong is not None
    before, after = map(tw.Module.load, trial.wrong)
    assert before.root.opcode == "add" and after.root.opcode != "add"


def test_numerics_decide() -> None:
    rule = times_one(always=True, numerics="fast-math")
    assert "multiply" in opcodes(tw.optimize(TEXT, passes=[rule]).module)
    done = tw.optimize(TEXT, passes=[rule], fast_math=True)
    assert done.module.root.operands[0].opcode == "parameter"
    with pytest.raises(tw.UsageError, match="no class `fast`"):
        times_one(numerics="fast")


def test_a_rule_that_does_not_fit() -> None:
    def misfit(found: tw.Match, new: tw.Replacement) -> tw.NewValue:
        return new.reshape(found["x"], [3])

    for replace in (misfit, lambda found, new: None):
        rule = tw.Rule("misfit", p.exp(p.any("x")), replace, numerics="exact", always=True)
        assert tw.optimize(TEXT, passes=[rule]).module == tw.Module.load(TEXT)
        assert rule.why_not(tw.Module.load(TEXT).root) is not None


def test_what_rules_raise_is_raised() -> None:
    def fails(found: tw.Match, new: tw.Replacement) -> None:
        raise LookupError("in the rule")

    rule = tw.Rule("fails", p.exp(p.any("x")), fails, numerics="exact", always=True)
    with pytest.raises(LookupError, match="in the rule"):
        tw.optimize(TEXT, passes=[rule])
    with pytest.raises(LookupError):
        rule.why_not(tw.Module.load(TEXT).root)
    with pytest.raises(ZeroDivisionError):
        tw.optimize(TEXT, passes=[times_one(when=[("fail", lambda found: 1 / 0)])])
    odd = tw.Rule("odd", p.exp(p.any("x")), lambda found, new: 3, numerics="exact")
    with pytest.raises(tw.UsageError, match="a rule returns"):
        tw.optimize(TEXT, passes=[odd])


def test_what_was_lent_is_given_back() -> None:
    kept: list[object] = []

    def keeps(found: tw.Match, new: tw.Replacement) -> tw.Instruction:
        kept.extend([found["x"], new, new.op("negate", [found["x"]]), found.module])
        return found["x"]

    rule = tw.Rule(
        "keeps",
        p.multiply(p.any("x"), p.broadcast(p.any("c"))),
        keeps,
        numerics="exact",
        always=True,
    )
    tw.optimize(TEXT, passes=[rule])
    instruction, new, value, module = kept[:4]
    with pytest.raises(tw.RemovedError):
        _ = instruction.name
    with pytest.raises(tw.RemovedError):
        str(module)
    with pytest.raises(tw.RemovedError):
        new.constant(1.0, "f32")
    with pytest.raises(tw.RemovedError):
        _ = value.shape
    assert repr(value) == "<NewValue>" and repr(module) == "<Module given back>"


class DropOnes(tw.Pass):
    """Replaces products with ones."""

    name = "drop-ones"
    summary = "x * 1 = x"

    def run(self, module: tw.Module) -> int:
        changes = 0
        with module.edit() as e:
            for each in module.entry.instructions:
                if each.opcode == "multiply" and each.is_live:
                    e.replace_uses(each, each.operands[1])
                    changes += 1
        return changes


def test_a_pass_rewrites() -> None:
    for options in ({"passes": [DropOnes(), "dce"]}, {"passes": ["dce"], "rules": [DropOnes()]}):
        done = tw.optimize(TEXT, **options)
        assert opcodes(done.module) == ["parameter", "exponential"]
        np.testing.assert_allclose(done.module(X), np.exp(X), rtol=1e-6)
    assert [each.changes for each in done.report.passes if each.name == "drop-ones"] == [1]
    assert tw.optimize(TEXT, pipeline="cleanup", rules=[DropOnes()]).module.root


def test_what_passes_raise_is_raised() -> None:
    class Fails(DropOnes):
        def run(self, module: tw.Module) -> int:
            raise LookupError("in the pass")

    class Odd(DropOnes):
        def run(self, module: tw.Module) -> int:
            return "many"  # type: ignore[return-value]

    with pytest.raises(LookupError, match="in the pass"):
        tw.optimize(TEXT, passes=[Fails()])
    with pytest.raises(TypeError):
        tw.optimize(TEXT, passes=[Odd()])
    with pytest.raises(NotImplementedError):
        tw.optimize(TEXT, passes=[type("Bare", (tw.Pass,), {"name": "bare"})()])
    with pytest.raises(tw.UsageError, match="has no name"):
        tw.optimize(TEXT, rules=[tw.Pass()])


def test_a_pass_that_breaks_the_module_is_named() -> None:
    class Breaks(DropOnes):
        def run(self, module: tw.Module) -> int:
            with module.edit() as e:
                e.set_root(e.insert("negate", [module.root], shape="f32[1]"))
            return 1

    with pytest.raises(tw.VerifyError, match="drop-ones") as caught:
        tw.optimize(TEXT, passes=[Breaks()])
    assert caught.value.diagnostics[0].code == "V014"


def test_a_pass_keeps_to_its_numerics() -> None:
    class Fast(DropOnes):
        numerics = "fast-math"

    assert "multiply" in opcodes(tw.optimize(TEXT, passes=[Fast()]).module)
    done = tw.optimize(TEXT, passes=[Fast(), "dce"], fast_math=True)
    assert opcodes(done.module) == ["parameter", "exponential"]


def test_a_rule_says_what_it_does() -> None:
    def say(found: tw.Match) -> tuple[str, str]:
        name = found["x"].name
        return f"took `{name}` as it is", f"taking `{name}` as it is"

    rule = times_one(say=say)
    done = tw.optimize(tw.Module.load(TEXT), passes=[rule])
    [note] = done.report.notes
    assert note.text.startswith("took `x` as it is: ")
    silent = tw.optimize(tw.Module.load(TEXT), passes=[times_one(say=lambda found: None)])
    assert "x * 1 = x" in silent.report.notes[0].text
    with pytest.raises(ZeroDivisionError):
        tw.optimize(tw.Module.load(TEXT), passes=[times_one(say=lambda found: 1 / 0)])


def test_the_class_of_a_rule_depends_on_the_place() -> None:
    def applies(numerics_of: object, *, exact: bool) -> bool:
        rule = times_one(numerics="bounded", numerics_of=numerics_of)
        done = tw.optimize(tw.Module.load(TEXT), passes=[rule, "dce"], exact=exact)
        return "multiply" not in opcodes(done.module)

    assert applies(lambda found: "bounded", exact=False)
    assert not applies(lambda found: "bounded", exact=True)
    assert applies(lambda found: "exact", exact=True)
    assert not applies(lambda found: None, exact=False)
    with pytest.raises(tw.UsageError, match="no class `inexact`"):
        applies(lambda found: "inexact", exact=False)


def test_rules_that_form_one_pass() -> None:
    twice = tw.Rule(
        "twice",
        p.exp(p.any("y")),
        lambda found, new: None,
        law="nothing",
        numerics="regrouping",
    )
    rules = tw.RuleSet("ones", [twice, times_one()], summary="drop factors of one")
    assert (rules.name, rules.numerics) == ("ones", "regrouping")
    assert [rule.name for rule in rules.rules] == ["twice", "times-one"]
    assert "ones" in repr(rules)
    done = tw.optimize(tw.Module.load(TEXT), passes=[rules, "dce"])
    assert opcodes(done.module) == ["parameter", "exponential"]
    again = tw.optimize(tw.Module.load(TEXT), rules=[rules])
    np.testing.assert_allclose(again.module(X), np.exp(X), rtol=1e-6)
