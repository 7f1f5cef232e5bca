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
    let topk = |k| Op::TopK(Box::new(TopKAttrs { k, largest: true }));
    of(topk(3), &["f32[2,5]"]).gives("(f32[2,3], s32[2,3])");
    of(topk(0), &["s8[5]"]).gives("(s8[0], s32[0])");
    of(topk(5), &["bf16[5]"]).gives("(bf16[5], s32[5])");
    of(topk(6), &["f32[5]"]).fails(Attribute, "cannot keep 6 of 5");
    of(topk(-1), &["f32[5]"]).fails(Attribute, "cannot keep -1 of 5");
    of(topk(0), &["f32[]"]).fails(Operand, "rank 1 or more");
}

#[test]
fn scan_is_declared() {
    let mut rules = Rules::default();
    let step = rules.callee(&["f32[]", "f32[]"], "(f32[], f32[])");
    let scan = |num_carries, d: &[i64]| {
        Op::Scan(Box::new(ScanAttrs {
            dimensions: dims(d),
            num_carries,
            is_reverse: false,
            is_associative: None,
            to_apply: step,
        }))
    };
    let operands = ["f32[5]", "f32[]"];
    let result = "(f32[5], f32[])";
    rules.of(scan(1, &[0]), &operands).declared(result).gives(result);
    rules.of(scan(1, &[0]), &operands).fails(NeedsShape, "`scan`");
    rules.of(scan(-1, &[0]), &operands).declared(result).fails(Attribute, "negative");
}
