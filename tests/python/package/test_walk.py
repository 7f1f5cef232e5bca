"""Computations and instructions, and walks over them."""

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
  x = f32[4,8]{1,0} parameter(0), sharding={devices=[2,1]0,1},
      metadata={op_type="p" op_name="net/x" source_file="net.py" source_line=7}
  zero = f32[] constant(2.5)
  y = f32[4,8]{0,1} negate(x), frontend_attributes={note="kept"}
  t = f32[8,4]{1,0} transpose(y), dimensions={1,0}
  p = f32[9,6]{1,0} pad(t, zero), padding=0_1x1_1
  c = pred[4,8]{1,0} compare(x, y), direction=LT
  unused = f32[4,8]{1,0} abs(x)
  r = f32[9]{0} reduce(p, zero), dimensions={1}, to_apply=sum
  ROOT both = (f32[9]{0}, pred[4,8]{1,0}) tuple(r, c)
}
"""


@pytest.fixture
def module() -> tw.Module:
    return tw.Module.from_text(TEXT)


def names(instructions: tuple[tw.Instruction, ...]) -> list[str]:
    return [instruction.name for instruction in instructions]


def test_computations(module: tw.Module) -> None:
    callee, entry = module.computations
    assert (callee.name, entry.name) == ("sum", "main")
    assert (callee.is_entry, entry.is_entry) == (False, True)
    assert entry == module.entry and hash(entry) == hash(module.entry) and entry != callee
    assert names(entry.instructions) == ["x", "zero", "y", "t", "p", "c", "unused", "r", "both"]
    assert [each.name for each in entry] == names(entry.instructions) and len(entry) == 9
    assert names(callee.parameters) == ["a", "b"]
    assert callee.root.name == "s"
    assert names(callee.callers) == ["r"] and entry.callers == ()
    assert entry.module is module
    assert repr(callee) == "<Computation sum: 3 instructions>"
    with pytest.raises(KeyError):
        entry["no"]


def test_instructions(module: tw.Module) -> None:
    entry = module.entry
    x, y, r = entry["x"], entry["y"], entry["r"]
    assert (x.opcode, y.opcode, r.opcode) == ("parameter", "negate", "reduce")
    assert y.operands == (x,) and names(x.users) == ["y", "c", "unused"]
    assert y.computation == entry and y.module is module
    assert r.called_computations == (module.computations[0],)
    assert (x.parameter_number, y.parameter_number) == (0, None)
    assert entry["zero"].value == np.float32(2.5) and x.value is None
    assert (module.root.is_root, r.is_root) == (True, False)
    assert (entry["unused"].is_live, r.is_live, module.root.is_live) == (False, True, True)
    assert x == entry["x"] and hash(x) == hash(entry["x"]) and x != y and x != "x"
    assert str(y) == "%y = f32[4,8]{0,1} negate(%x)" and repr(y) == f"<Instruction {y}>"


def test_shapes(module: tw.Module) -> None:
    shape = module.entry["y"].shape
    assert (shape.element_type, shape.dims, shape.rank, shape.size) == ("f32", (4, 8), 2, 32)
    assert (shape.layout, str(shape)) == ("{0,1}", "f32[4,8]{0,1}")
    assert shape == tw.Shape("f32[4,8]{0,1}") and hash(shape) == hash(tw.Shape(str(shape)))
    assert shape != tw.Shape("f32[4,8]") and repr(shape) == 'Shape("f32[4,8]{0,1}")'
    both = module.root.shape
    assert both.is_tuple and [each.element_type for each in both.elements] == ["f32", "pred"]
    assert (both.element_type, both.dims, both.rank, both.size, both.layout) == (None,) * 5
    assert tw.Shape("f32[<=4,2]").dynamic_dims == (True, False)
    with pytest.raises(tw.ParseError, match="f33"):
        tw.Shape("f33[2]")


def test_attributes(module: tw.Module) -> None:
    entry = module.entry
    assert entry["t"].attributes == {"dimensions": (1, 0)}
    assert entry["p"].attributes == {"padding": "0_1x1_1"}
    assert entry["c"].attributes["direction"] == "LT"
    assert entry["r"].attributes == {"dimensions": (1,), "to_apply": "sum"}
    x = entry["x"]
    assert x.metadata == {
        "op_type": "p",
        "op_name": "net/x",
        "source_file": "net.py",
        "source_line": 7,
    }
    assert entry["t"].metadata == {}
    assert x.sharding == "{devices=[2,1]0,1}" and entry["t"].sharding is None
    assert entry["y"].frontend_attributes == {"note": "kept"}


def test_walks(module: tw.Module) -> None:
    entry = module.entry
    order = names(entry.post_order())
    assert sorted(order) == sorted(["x", "y", "zero", "t", "p", "r", "c", "both"])
    for instruction in entry.post_order():
        for operand in instruction.operands:
            assert order.index(operand.name) < order.index(instruction.name)
    assert names(entry["y"].transitive_users()) == ["t", "p", "c", "r", "both"]
    assert set(names(entry["p"].transitive_operands())) == {"x", "y", "t", "zero"}
    assert entry["x"].transitive_operands() == () and module.root.transitive_users() == ()
