"""Edits: all are kept, or none."""

from __future__ import annotations

import numpy as np
import pytest
import tilewright as tw

TEXT = """HloModule m

sum {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b)
}

ENTRY main {
  x = f32[2,3] parameter(0)
  zero = f32[] constant(0)
  y = f32[2,3] negate(x)
  ROOT z = f32[2,3] exponential(y)
}
"""
X = np.arange(6, dtype=np.float32).reshape(2, 3)


@pytest.fixture
def module() -> tw.Module:
    return tw.Module.from_text(TEXT)


def test_inserted_instructions_compute(module: tw.Module) -> None:
    with module.edit() as e:
        assert e.module is module
        entry = module.entry
        added = e.insert("add", [entry["y"], entry["x"]], name="sum_of_both")
        assert str(added.shape) == "f32[2,3]"
        turned = e.insert("transpose", [added], "dimensions={1,0}")
        assert str(turned.shape) == "f32[3,2]"
        reduced = e.insert("reduce", [turned, entry["zero"]], "dimensions={0}, to_apply=%sum")
        e.set_root(reduced)
        assert module.root == reduced and added.is_valid
        assert "sum_of_both" in str(module)
        e.verify()
        assert e.module.verify() is None
    np.testing.assert_allclose(module(X), (X - X).T.sum(axis=0))


def test_uses_are_replaced(module: tw.Module) -> None:
    with module.edit() as e:
        y = module.entry["y"]
        e.replace_uses(y, e.insert("multiply", [y.operands[0], y.operands[0]]))
        assert not y.is_live
        e.remove(y)
        assert not y.is_valid and repr(y) == "<Instruction removed>"
        with pytest.raises(tw.RemovedError, match="removed"):
            _ = y.name
        with pytest.raises(tw.RemovedError):
            e.insert("negate", [y])
    np.testing.assert_allclose(module(X), np.exp(X * X), rtol=1e-6)


def test_an_operand_is_set(module: tw.Module) -> None:
    with module.edit() as e:
        e.set_operand(module.root, 0, module.entry["x"])
    np.testing.assert_allclose(module(X), np.exp(X), rtol=1e-6)


def test_constants_are_inserted(module: tw.Module) -> None:
    with module.edit() as e:
        two = e.constant(np.full((2, 3), 2, np.float32), name="two")
        assert two.name == "two"
        typed = e.constant(3, "s32")
        assert str(typed.shape) == "s32[]"
        e.set_root(e.insert("multiply", [module.root, two]))
    np.testing.assert_allclose(module(X), 2 * np.exp(-X), rtol=1e-6)


def test_names_and_metadata(module: tw.Module) -> None:
    with module.edit() as e:
        y = module.entry["y"]
        assert e.rename(y, "minus_x") == "minus_x"
        assert e.rename(y, "minus_x") == "minus_x"
        assert e.rename(module.root, "minus_x") != "minus_x"
        e.set_metadata(y, op_name="f/neg", source_file="f.py", source_line=3)
        e.set_metadata(y, op_type="neg")
    assert module.entry["minus_x"].metadata == {
        "op_name": "f/neg",
        "op_type": "neg",
        "source_file": "f.py",
        "source_line": 3,
    }


def test_places(module: tw.Module) -> None:
    with module.edit() as e:
        entry = module.entry
        e.insert("negate", [entry["x"]], name="after_x")
        e.insert("negate", [entry["x"]], name="before_z", before=entry["z"])
        callee = module.computations[0]
        e.constant(1.0, "f32", name="inner", computation=callee)
    order = [instruction.name for instruction in module.entry]
    assert order == ["x", "after_x", "zero", "y", "before_z", "z"]
    assert module.computations[0].instructions[0].name == "inner"
    assert module.root.name == "z"


def test_a_broken_module_is_as_before(module: tw.Module) -> None:
    before = str(module)
    made = None
    with pytest.raises(tw.VerifyError) as caught, module.edit() as e:
        made = e.insert("negate", [module.entry["x"]], shape="f32[7]")
        e.insert("negate", [module.entry["x"]], shape="f32[8]")
        with pytest.raises(tw.VerifyError):
            module.to_proto()
        with pytest.raises(tw.VerifyError):
            tw.optimize(module)
    assert len(caught.value.diagnostics) == 2
    assert caught.value.code == caught.value.diagnostics[0].code == "V014"
    assert "f32[7]" in str(caught.value)
    assert str(module) == before and made is not None and not made.is_valid
    with module.edit() as e:
        assert e.insert("negate", [module.entry["x"]]) != made or not made.is_valid
        assert not made.is_valid


def test_an_exception_undoes_the_edit(module: tw.Module) -> None:
    before = str(module)
    with pytest.raises(ZeroDivisionError), module.edit() as e:
        e.set_root(module.entry["y"])
        raise ZeroDivisionError
    assert str(module) == before


def test_edits_that_are_refused(module: tw.Module) -> None:
    other = tw.Module.from_text(TEXT)
    entry = module.entry
    with module.edit() as e:
        with pytest.raises(tw.UsageError, match="still used"):
            e.remove(entry["y"])
        with pytest.raises(tw.UsageError, match="another module"):
            e.set_root(other.root)
        with pytest.raises(tw.UsageError, match="another module"):
            e.insert("negate", [other.root])
        with pytest.raises(tw.UsageError, match="no operand 1"):
            e.set_operand(entry["y"], 1, entry["x"])
        with pytest.raises(tw.UsageError, match=r"f32\[\]"):
            e.replace_uses(entry["y"], entry["zero"])
        with pytest.raises(tw.UsageError, match="another computation"):
            e.set_operand(entry["y"], 0, module.computations[0].root)
        with pytest.raises(tw.UsageError, match="no op `negat`"):
            e.insert("negat", [entry["x"]])
        with pytest.raises(tw.ParseError, match="dimensions"):
            e.insert("transpose", [entry["x"]])
        with pytest.raises(tw.ParseError):
            e.insert("transpose", [entry["x"]], "dimensions={0,0}")
        with pytest.raises(tw.UsageError, match="end that edit first"), module.edit():
            pass
    assert str(module) == str(other)
    with pytest.raises(tw.UsageError, match="within"):
        e.set_root(entry["y"])


def test_parameters_are_added() -> None:
    text = """HloModule m, entry_computation_layout={(f32[2,3]{1,0})->f32[2,3]{1,0}}

scaled {
  ROOT a = f32[2,3] parameter(0)
}

ENTRY main {
  x = f32[2,3] parameter(0)
  ROOT y = f32[2,3] call(x), to_apply=scaled
}
"""
    module = tw.Module.from_text(text)
    with module.edit() as e:
        scale = e.parameter("scale", "f32[3]")
        assert (scale.name, scale.parameter_number) == ("scale", 1)
        spread = e.insert("broadcast", [scale], "dimensions={1}", shape="f32[2,3]")
        scaled = next(each for each in module.computations if each.name == "scaled")
        factor = e.parameter("factor", "f32[2,3]", computation=scaled)
        e.set_root(e.insert("multiply", [scaled["a"], factor]))
        call = module.entry["y"]
        both = e.insert("call", [call.operands[0], spread], "to_apply=%scaled")
        e.set_root(both)
        e.remove(call)
    factors = np.array([1, 2, 3], np.float32)
    np.testing.assert_allclose(module(X, factors), X * factors)
    with pytest.raises(tw.VerifyError), module.edit() as e:
        # Nothing gives the call its third operand.
        e.parameter("third", "f32[]", computation=next(iter(module.computations)))
    np.testing.assert_allclose(module(X, factors), X * factors)
