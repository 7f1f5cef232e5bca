//! Reductions, scans and sorts.

use tilewright_ir::ops::reduce::{ReduceAttrs, ScanAttrs, SortAttrs, TopKAttrs};
use tilewright_ir::{CompId, Op, ShapeErrorKind::*};

use super::{Rules, of};
use crate::common::dims;

fn reduce(dimensions: &[i64], to_apply: CompId) -> Op {
    Op::Reduce(Box::new(ReduceAttrs { dimensions: dims(dimensions), to_apply }))
}

#[test]
fn reduce_drops_dims() {
    let mut rules = Rules::default();
    let add = rules.callee(&["f32[]", "f32[]"], "f32[]");
    rules.of(reduce(&[1], add), &["f32[2,3,4]", "f32[]"]).gives("f32[2,4]");
    rules.of(reduce(&[2, 0], add), &["f32[2,3,4]", "f32[]"]).gives("f32[3]");
    rules.of(reduce(&[0, 1, 2], add), &["f32[2,3,4]", "f32[]"]).gives("f32[]");
    rules.of(reduce(&[], add), &["f32[2,3]", "f32[]"]).gives("f32[2,3]");
    rules.of(reduce(&[], add), &["f32[]", "f32[]"]).gives("f32[]");
    rules.of(reduce(&[0], add), &["f32[0,3]", "f32[]"]).gives("f32[3]");
    rules.of(reduce(&[0], add), &["f32[2,<=3]", "f32[]"]).gives("f32[<=3]");
    rules.of(reduce(&[1], add), &["f32[2,<=3]", "f32[]"]).gives("f32[2]");
}

#[test]
fn variadic_reduce_yields_a_tuple() {
    let mut rules = Rules::default();
    let both = rules.callee(&["f32[]", "s32[]", "f32[]", "s32[]"], "(f32[], s32[])");
    let operands = ["f32[2,3]", "s32[2,3]", "f32[]", "s32[]"];
    rules.of(reduce(&[1], both), &operands).gives("(f32[2], s32[2])");
    let one = rules.callee(&["f32[]", "f32[]"], "(f32[])");
    rules.of(reduce(&[1], one), &["f32[2,3]", "f32[]"]).gives("(f32[2])");
    let swapped = ["s32[2,3]", "f32[2,3]", "f32[]", "s32[]"];
    rules.of(reduce(&[1], both), &swapped).fails(Callee, "parameter 2 of `callee` is f32[]");
    // Which is dynamic is known at run time.
    let dynamic = ["f32[2,<=3]", "s32[2,3]", "f32[]", "s32[]"];
    rules.of(reduce(&[1], both), &dynamic).gives("(f32[2], s32[2])");
    let uneven = ["f32[2,3]", "s32[3,2]", "f32[]", "s32[]"];
    rules.of(reduce(&[1], both), &uneven).fails(Operand, "f32[2,3] and s32[3,2]");
}

#[test]
fn wrong_reduces() {
    let mut rules = Rules::default();
    let add = rules.callee(&["f32[]", "f32[]"], "f32[]");
    let right = ["f32[2,3]", "f32[]"];
    let case = |d: &[i64], operands: &[&str]| rules.of(reduce(d, add), operands);
    case(&[1], &["f32[2,3]", "f32[]", "f32[]"]).fails(Operand, "as many initial values");
    case(&[1], &["f32[2,3]", "f32[2]"]).fails(Operand, "are scalars, not f32[2]");
    case(&[2], &right).fails(Attribute, "names dim 2");
    case(&[0, 0], &right).fails(Attribute, "dim 0 twice");
    case(&[1], &["bf16[2,3]", "f32[]"]).fails(Callee, "parameter 1 of `callee` is f32[]");
    let mut rules = Rules::default();
    let less = rules.callee(&["f32[]", "f32[]"], "pred[]");
    rules.of(reduce(&[1], less), &right).fails(Callee, "yields pred[]");
    let count = rules.callee(&["s32[]", "f32[]"], "f32[]");
    rules.of(reduce(&[1], count), &["f32[2,3]", "s32[]"]).fails(Callee, "yields f32[]");
    let array = rules.callee(&["f32[]", "f32[]"], "f32[1]");
    rules.of(reduce(&[1], array), &right).fails(Callee, "yields f32[1]");
    let pair = rules.callee(&["f32[]", "f32[]"], "(f32[], f32[])");
    rules.of(reduce(&[1], pair), &right).fails(Callee, "(f32[], f32[])");
    let three = rules.callee(&["f32[]", "f32[]", "f32[]"], "f32[]");
    rules.of(reduce(&[1], three), &right).fails(Callee, "takes 3 parameters");
    let empty = rules.module.add_computation("empty");
    rules.of(reduce(&[1], empty), &right).fails(Callee, "`empty` takes 0 parameters");
}

#[test]
fn accumulators_have_a_type_of_their_own() {
    let mut rules = Rules::default();
    let count = rules.callee(&["s32[]", "pred[]"], "s32[]");
    rules.of(reduce(&[0], count), &["pred[5]", "s32[]"]).gives("s32[]");
    let wide = rules.callee(&["bf16[]", "bf16[]"], "f32[]");
    rules.of(reduce(&[0], wide), &["bf16[5]", "bf16[]"]).fails(Callee, "yields f32[]");
}

#[test]
fn sort_orders_one_dim() {
    let mut rules = Rules::default();
    let less = rules.callee(&["f32[]", "f32[]"], "pred[]");
    let sort = |d: &[i64], to_apply| {
        Op::Sort(Box::new(SortAttrs { dimensions: dims(d), is_stable: true, to_apply }))
    };
    rules.of(sort(&[1], less), &["f32[2,3]"]).gives("f32[2,3]");
    let pairs = rules.callee(&["f32[]", "f32[]", "s32[]", "s32[]"], "pred[]");
    rules.of(sort(&[0], pairs), &["f32[4]", "s32[4]"]).gives("(f32[4], s32[4])");
    rules.of(sort(&[0], pairs), &["f32[4]", "s32[5]"]).fails(Operand, "f32[4] and s32[5]");
    rules.of(sort(&[0], less), &["s32[4]"]).fails(Callee, "parameter 0 of `callee` is f32[]");
    rules.of(sort(&[1], less), &["f32[4]"]).fails(Attribute, "names dim 1");
    rules.of(sort(&[], less), &["f32[4]"]).fails(Attribute, "names 0 dims, not one");
    rules.of(sort(&[0, 1], less), &["f32[4,4]"]).fails(Attribute, "names 2 dims, not one");
    let add = rules.callee(&["f32[]", "f32[]"], "f32[]");
    rules.of(sort(&[0], add), &["f32[4]"]).fails(Callee, "yields pred[], not f32[]");
}

#[test]
fn topk_keeps_k_of_the_minor_dim() {
    let topk = |k| Op::TopK(Box::new(TopKAttrs { k, largest: true, is_stable: true }));
    of(topk(3), &["f32[2,5]"]).gives("(f32[2,3], s32[2,3])");
    of(topk(0), &["s8[5]"]).gives("(s8[0], s32[0])");
    of(topk(5), &["bf16[5]"]).gives("(bf16[5], s32[5])");
    of(topk(6), &["f32[5]"]).fails(Attribute, "cannot keep 6 of 5");
    of(topk(-1), &["f32[5]"]).fails(Attribute, "cannot keep -1 of 5");
    of(topk(0), &["f32[]"]).fails(Operand, "rank 1 or more");
}

fn scan(num_carries: i64, d: &[i64], to_apply: CompId) -> Op {
    Op::Scan(Box::new(ScanAttrs {
        dimensions: dims(d),
        num_carries,
        is_reverse: false,
        is_associative: None,
        to_apply,
    }))
}

#[test]
fn scan_stacks_what_its_steps_yield() {
    let mut rules = Rules::default();
    let step = rules.callee(&["f32[]", "f32[]"], "(f32[], f32[])");
    rules.of(scan(1, &[0], step), &["f32[5]", "f32[]"]).gives("(f32[5], f32[])");
    let wide = rules.callee(&["f32[2,4]", "s32[2,4]", "f32[4]"], "(pred[7], u8[], f32[4])");
    let operands = ["f32[2,3,4]", "s32[2,3,4]", "f32[4]"];
    rules
        .of(scan(1, &[1], wide), &operands)
        .fails(Attribute, "names dim 1, but the array has rank 1");
    let wide = rules.callee(&["f32[2,4]", "s32[2,4]", "f32[4]"], "(pred[7], u8[9], f32[4])");
    rules.of(scan(1, &[1], wide), &operands).gives("(pred[7,3], u8[9,3], f32[4])");
    let dynamic = rules.callee(&["f32[<=4]", "f32[]"], "(f32[<=4], f32[])");
    rules.of(scan(1, &[0], dynamic), &["f32[3,<=4]", "f32[]"]).gives("(f32[3,<=4], f32[])");
}

/// A tuple, or what it would hold if that is one shape.
#[test]
fn scan_of_one_result() {
    let mut rules = Rules::default();
    let map = rules.callee(&["f32[2]"], "f32[2]");
    rules.of(scan(0, &[0], map), &["f32[5,2]"]).gives("f32[5,2]");
    rules.of(scan(0, &[0], map), &["f32[5,2]"]).declared("(f32[5,2])").gives("(f32[5,2])");
    let fold = rules.callee(&["f32[]", "f32[]"], "(f32[])");
    rules.of(scan(1, &[0], fold), &["f32[5]", "f32[]"]).gives("(f32[])");
    rules.of(scan(1, &[0], fold), &["f32[5]", "f32[]"]).declared("f32[]").gives("f32[]");
    rules.of(scan(1, &[0], fold), &["f32[5]", "f32[]"]).declared("f32[5]").fails(Result, "f32[5]");
}

#[test]
fn scan_without_inputs_runs_as_long_as_its_output() {
    let mut rules = Rules::default();
    let count = rules.callee(&["s32[]"], "(s32[], s32[])");
    rules.of(scan(1, &[0], count), &["s32[]"]).declared("(s32[6], s32[])").gives("(s32[6], s32[])");
    rules.of(scan(1, &[0], count), &["s32[]"]).fails(NeedsShape, "`scan`");
    let case = |declared| rules.of(scan(1, &[0], count), &["s32[]"]).declared(declared);
    case("(s32[], s32[])").fails(Result, "output 0 of `scan` is s32[], without dim 0");
    case("(token[], s32[])").fails(Result, "output 0 of `scan` is an array");
    let carry = rules.callee(&["s32[]"], "(s32[])");
    let case = rules.of(scan(1, &[0], carry), &["s32[]"]).declared("(s32[])");
    case.fails(Operand, "neither inputs nor outputs");
}

#[test]
fn wrong_scans() {
    let mut rules = Rules::default();
    let step = rules.callee(&["f32[]", "f32[]"], "(f32[], f32[])");
    let case = |carries, d: &[i64], operands: &[&str]| rules.of(scan(carries, d, step), operands);
    let right = ["f32[5]", "f32[]"];
    case(-1, &[0], &right).fails(Attribute, "negative");
    case(3, &[0], &right).fails(Attribute, "cannot carry 3 of them");
    case(1, &[], &right).fails(Attribute, "names 0 dims, not one");
    case(1, &[0, 1], &right).fails(Attribute, "names 2 dims, not one");
    case(1, &[1], &right).fails(Attribute, "names dim 1, but the array has rank 1");
    case(1, &[-1], &right).fails(Attribute, "names dim -1");
    case(1, &[0], &["(f32[5])", "f32[]"]).fails(Operand, "operand 0 of `scan` must be an array");
    case(0, &[0], &["f32[5]", "f32[6]"]).fails(Operand, "differ in dim 0: f32[5] and f32[6]");
    case(1, &[0], &["f32[5,2]", "f32[]"]).fails(Callee, "parameter 0 of `callee` is f32[]");
    case(1, &[0], &["f32[5]", "s32[]"]).fails(Callee, "parameter 1 of `callee` is f32[]");
    case(1, &[0], &["f32[5]", "f32[5]", "f32[]"]).fails(Callee, "takes 2 parameters");
    case(1, &[0], &right).declared("(f32[4], f32[])").fails(Result, "yields (f32[5], f32[])");
    case(1, &[0], &right)
        .declared("(f32[5], f32[], f32[])")
        .fails(Result, "yields (f32[5], f32[])");
    let yielding = |result: &str| {
        let mut rules = Rules::default();
        let step = rules.callee(&["f32[]", "f32[]"], result);
        (rules, step)
    };
    for (result, carries, part) in [
        ("(f32[], s32[])", 1, "carry 0 of `scan` is f32[], but its step yields s32[]"),
        ("f32[]", 2, "carries 2 values, but its step yields f32[]"),
        ("(token[], f32[])", 1, "outputs arrays, not token[]"),
    ] {
        let (rules, step) = yielding(result);
        let operands = if carries == 1 { right } else { ["f32[]", "f32[]"] };
        rules.of(scan(carries, &[0], step), &operands).fails(Callee, part);
    }
}
