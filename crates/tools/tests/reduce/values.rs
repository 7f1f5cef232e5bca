//! Reductions of values: outputs, cuts, constants, parameters, dims.

use tilewright::RunOptions;
use tilewright::ir::{Data, Literal, Opcode};

use crate::reduce::{entry_parameters, has_op, reduced, with_op};

/// Three outputs, of which one needs a tanh.
const OUTPUTS: &str = "HloModule outputs
ENTRY main {
  x = f32[8,16] parameter(0)
  y = f32[8,16] parameter(1)
  a = f32[8,16] sine(x)
  b = f32[8,16] add(a, y)
  c = f32[8,16] tanh(b)
  d = f32[8,16] multiply(c, x)
  e = f32[8,16] cosine(d)
  ROOT t = (f32[8,16], f32[8,16], f32[8,16]) tuple(a, e, b)
}";

#[test]
fn an_op_is_left_with_its_operand() {
    let found = reduced(OUTPUTS, |module, _| has_op(module, Opcode::Tanh));
    let expected = "HloModule m

ENTRY %main (p0: f32[1,1]) -> f32[1,1] {
  %p0 = f32[1,1] parameter(0)
  ROOT %v0 = f32[1,1] tanh(%p0)
}
";
    assert_eq!(found.text.trim(), expected.trim());
    assert_eq!((found.before.instructions, found.before.ops), (8, 6));
    assert_eq!((found.after.instructions, found.after.ops, found.after.elements), (2, 1, 2));
}

#[test]
fn elements_of_the_result_are_dropped_where_it_stays_a_tuple() {
    let found = reduced(OUTPUTS, |module, _| {
        let tuples = with_op(module, Opcode::Tuple);
        let is_root = tuples.iter().any(|&id| module.is_root(id));
        is_root && has_op(module, Opcode::Cos)
    });
    // A parameter, the cosine, the tuple of one element.
    assert_eq!(found.after.instructions, 3, "{}", found.text);
    assert!(found.text.contains("(f32[1,1]) tuple("), "{}", found.text);
}

/// A predicate that needs the parameters as they are: the search may add or drop none.
#[test]
fn operands_stand_in_where_parameters_must_stay() {
    let found =
        reduced(OUTPUTS, |module, _| entry_parameters(module) == 2 && has_op(module, Opcode::Tanh));
    // x, y, tanh(x).
    assert_eq!(found.after.instructions, 3, "{}", found.text);
}

#[test]
fn zeros_stand_in_where_nothing_else_has_the_shape() {
    let text = "HloModule m
ENTRY main {
  i = s32[] parameter(0)
  f = f32[] convert(i)
  a = f32[4,4] broadcast(f), dimensions={}
  b = f32[4,4] sine(a)
  ROOT d = f32[4,4] dot(b, a), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}";
    let found = reduced(text, |module, _| {
        let dot = with_op(module, Opcode::Dot);
        let is_large = dot.iter().any(|&id| module.array_shape(id).unwrap().dims() == [4, 4]);
        entry_parameters(module) == 1 && is_large
    });
    // The parameter, zero, its broadcast, the dot.
    assert_eq!(found.after.instructions, 4, "{}", found.text);
    assert!(found.text.contains("constant(0)"), "{}", found.text);
    // Both operands are one value, so that the dim that is summed over is as large as the others.
    assert!(found.text.contains("f32[4,4] broadcast("), "{}", found.text);
}

fn root_value(module: &tilewright::Verified) -> Option<Literal> {
    let inputs = tilewright::random_inputs(module, 0).ok()?;
    Some(tilewright::run(module, &inputs, &RunOptions::default()).ok()?.output)
}

#[test]
fn values_stand_in_where_zero_and_one_change_the_result() {
    let text = "HloModule m
ENTRY main {
  one = f32[] constant(1)
  two = f32[] constant(2)
  three = f32[] add(one, two)
  four = f32[] add(three, one)
  ROOT six = f32[] multiply(four, three)
}";
    let found = reduced(text, |module, _| {
        let twelve = root_value(module).and_then(|value| value.as_array()?.scalar_as_f64());
        has_op(module, Opcode::Multiply) && twelve == Some(12.0)
    });
    assert_eq!((found.after.instructions, found.after.ops), (3, 1), "{}", found.text);
    assert!(found.text.contains("constant(4)") && found.text.contains("constant(3)"));
}

#[test]
fn a_nan_is_found() {
    let text = "HloModule m
ENTRY main {
  x = f32[64] parameter(0)
  a = f32[64] abs(x)
  b = f32[64] negate(a)
  c = f32[64] log(b)
  d = f32[64] add(c, x)
  e = f32[64] tanh(d)
  ROOT t = (f32[64], f32[64]) tuple(e, a)
}";
    let found = reduced(text, |module, _| {
        let value = root_value(module);
        let leaves = value.as_ref().map(Literal::leaves).unwrap_or_default();
        leaves.iter().any(|leaf| {
            match leaf.as_array().map(tilewright::prelude::ArrayLiteral::data) {
                Some(Data::F32(values)) => values.iter().any(|value| value.is_nan()),
                _ => false,
            }
        })
    });
    // The log of a parameter: normal numbers are negative every other time.
    assert_eq!(found.after.instructions, 2, "{}", found.text);
    assert!(found.text.contains(" log("), "{}", found.text);
}

#[test]
fn a_dot_keeps_a_large_result_and_loses_what_it_sums_over() {
    let text = "HloModule m
ENTRY main {
  a = f32[64,32] parameter(0)
  b = f32[32,64] parameter(1)
  c = f32[64,64] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT d = f32[64,64] exponential(c)
}";
    let found = reduced(text, |module, _| {
        let elements = |&id: &_| {
            module.array_shape(id).and_then(tilewright::prelude::ArrayShape::num_elements).unwrap()
        };
        with_op(module, Opcode::Dot).iter().any(|id| elements(id) > 100)
    });
    assert_eq!(found.after.instructions, 3, "{}", found.text);
    // One side becomes 2, the least power of two for which 64 on the other side are enough.
    assert!(found.text.contains("f32[2,64] dot("), "{}", found.text);
    assert!(found.text.contains("f32[2,1] parameter("), "{}", found.text);
}

#[test]
fn equal_parameters_are_merged_and_unused_ones_dropped() {
    let text = "HloModule m
ENTRY main {
  x = f32[4] parameter(0)
  unused = f32[4] parameter(1)
  y = f32[4] parameter(2)
  ROOT z = f32[4] atan2(x, y)
}";
    let found = reduced(text, |module, _| has_op(module, Opcode::Atan2));
    assert_eq!(found.after.instructions, 2, "{}", found.text);
}

/// Heads: a dim that is split into two, and joined again.
#[test]
fn dims_that_reshapes_split_become_small_together() {
    let text = "HloModule m
ENTRY main {
  x = f32[6,768] parameter(0)
  h = f32[6,12,64] reshape(x)
  t = f32[12,6,64] transpose(h), dimensions={1,0,2}
  s = f32[12,6,64] tanh(t)
  u = f32[6,12,64] transpose(s), dimensions={1,0,2}
  ROOT y = f32[6,768] reshape(u)
}";
    let found = reduced(text, |module, _| {
        with_op(module, Opcode::Reshape).len() == 2 && with_op(module, Opcode::Transpose).len() == 2
    });
    assert!(found.text.contains("f32[1,1]"), "{}", found.text);
    assert!(!found.text.contains("768") && !found.text.contains("64"), "{}", found.text);
}

#[test]
fn attributes_that_state_sizes_follow() {
    let text = "HloModule m
ENTRY main {
  table = f32[100,32] parameter(0)
  ids = s32[7,1] parameter(1)
  start = s32[] parameter(2)
  zero = s32[] constant(0)
  g = f32[7,32] gather(table, ids), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,32}
  d = f32[3,32] dynamic-slice(g, start, zero), dynamic_slice_sizes={3,32}
  s = f32[3,32] slice(d), slice={[0:3], [0:32]}
  c = f32[32] constant({1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32})
  b = f32[3,32] broadcast(c), dimensions={1}
  ROOT r = f32[3,32] atan2(s, b)
}";
    let ops = [Opcode::Gather, Opcode::DynamicSlice, Opcode::Slice, Opcode::Broadcast];
    let found = reduced(text, |module, _| {
        ops.iter().all(|&op| has_op(module, op)) && has_op(module, Opcode::Constant)
    });
    assert!(!found.text.contains("32]") && !found.text.contains("100"), "{}", found.text);
    assert!(found.text.contains("slice_sizes={1,1}"), "{}", found.text);
}

#[test]
fn dynamic_dims_keep_their_bounds() {
    let text = "HloModule m
ENTRY main {
  x = f32[<=8,16] parameter(0)
  y = f32[<=8,16] sine(x)
  ROOT z = f32[<=8,16] tanh(y)
}";
    let found = reduced(text, |module, _| has_op(module, Opcode::Tanh));
    assert_eq!(found.after.instructions, 2, "{}", found.text);
    assert!(found.text.contains("f32[<=8,16]"), "{}", found.text);
}
