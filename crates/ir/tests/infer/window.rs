//! Windows that move over an array.

use tilewright_ir::ops::dims::WindowDim;
use tilewright_ir::ops::window::{ReduceWindowAttrs, SelectAndScatterAttrs};
use tilewright_ir::{CompId, Op, ShapeErrorKind::*};

use super::Rules;

fn reduce_window(window: &[WindowDim], to_apply: CompId) -> Op {
    let window = window.iter().copied().collect();
    Op::ReduceWindow(Box::new(ReduceWindowAttrs { window, to_apply }))
}

const W: fn(i64) -> WindowDim = WindowDim::new;

#[test]
fn reduce_window_moves_over_every_dim() {
    let mut rules = Rules::default();
    let add = rules.callee(&["f32[]", "f32[]"], "f32[]");
    let same = WindowDim { stride: 2, padding_low: 1, padding_high: 0, ..W(3) };
    rules.of(reduce_window(&[W(1), same], add), &["f32[4,8]", "f32[]"]).gives("f32[4,4]");
    rules.of(reduce_window(&[W(2), W(3)], add), &["f32[4,8]", "f32[]"]).gives("f32[3,6]");
    rules.of(reduce_window(&[], add), &["f32[]", "f32[]"]).gives("f32[]");
    let dilated = WindowDim { base_dilation: 2, ..W(1) };
    rules.of(reduce_window(&[dilated], add), &["f32[4]", "f32[]"]).gives("f32[7]");
}

/// As XLA's parser infers it.
#[test]
fn windows_over_dynamic_dims() {
    let mut rules = Rules::default();
    let add = rules.callee(&["f32[]", "f32[]"], "f32[]");
    for (size, base, result) in [
        (2, "f32[?]", "f32[?]"),
        (1, "f32[?]", "f32[?]"),
        (2, "f32[<=8]", "f32[<=7]"),
        (1, "f32[<=8]", "f32[<=8]"),
    ] {
        rules.of(reduce_window(&[W(size)], add), &[base, "f32[]"]).gives(result);
    }
    rules.of(reduce_window(&[W(0)], add), &["f32[?]", "f32[]"]).fails(Attribute, "malformed");
}

#[test]
fn variadic_reduce_window_yields_a_tuple() {
    let mut rules = Rules::default();
    let both = rules.callee(&["f32[]", "s32[]", "f32[]", "s32[]"], "(f32[], s32[])");
    let operands = ["f32[4]", "s32[4]", "f32[]", "s32[]"];
    rules.of(reduce_window(&[W(2)], both), &operands).gives("(f32[3], s32[3])");
    let one = rules.callee(&["f32[]", "f32[]"], "(f32[])");
    rules.of(reduce_window(&[W(2)], one), &["f32[4]", "f32[]"]).gives("(f32[3])");
}

#[test]
fn wrong_reduce_windows() {
    let mut rules = Rules::default();
    let add = rules.callee(&["f32[]", "f32[]"], "f32[]");
    let case =
        |window: &[WindowDim], operands: &[&str]| rules.of(reduce_window(window, add), operands);
    case(&[W(2)], &["f32[4]", "f32[]", "f32[]"]).fails(Operand, "as many initial values");
    case(&[W(2)], &["f32[4,4]", "f32[]"]).fails(Attribute, "has 1 dims, but the array is f32[4,4]");
    case(&[W(0)], &["f32[4]", "f32[]"]).fails(Attribute, "malformed");
    case(&[W(-1)], &["f32[4]", "f32[]"]).fails(Attribute, "malformed");
    case(&[W(2)], &["f32[4]", "f32[4]"]).fails(Operand, "and scalars");
    case(&[W(2)], &["s32[4]", "s32[]"]).fails(Callee, "parameter 0 of `callee` is f32[]");
    let mut rules = Rules::default();
    let less = rules.callee(&["f32[]", "f32[]"], "pred[]");
    let operands = ["f32[4]", "f32[]"];
    rules.of(reduce_window(&[W(2)], less), &operands).fails(Callee, "yields pred[]");
    let pair = rules.callee(&["f32[]", "f32[]"], "(f32[], f32[])");
    rules.of(reduce_window(&[W(2)], pair), &operands).fails(Callee, "yields (f32[], f32[])");
    let one = rules.callee(&["f32[]", "s32[]", "f32[]", "s32[]"], "f32[]");
    let operands = ["f32[4]", "s32[4]", "f32[]", "s32[]"];
    rules.of(reduce_window(&[W(2)], one), &operands).fails(Callee, "yields f32[]");
}

#[test]
fn select_and_scatter_has_a_value_for_each_position() {
    let mut rules = Rules::default();
    let select = rules.callee(&["f32[]", "f32[]"], "pred[]");
    let scatter = rules.callee(&["f32[]", "f32[]"], "f32[]");
    let op = |select, scatter| {
        let window = [WindowDim { stride: 2, ..W(2) }].into_iter().collect();
        Op::SelectAndScatter(Box::new(SelectAndScatterAttrs { window, select, scatter }))
    };
    let right = ["f32[8]", "f32[4]", "f32[]"];
    rules.of(op(select, scatter), &right).gives("f32[8]");
    rules.of(op(select, scatter), &["f32[8]", "f32[3]", "f32[]"]).fails(
        Operand,
        "one value for each window position [4] and a scalar, all of one type, not f32[3]",
    );
    rules.of(op(scatter, scatter), &right).fails(Callee, "`select` of");
    rules.of(op(select, select), &right).fails(Callee, "yields pred[]");
    rules.of(op(select, scatter), &["f32[8]", "s32[4]", "f32[]"]).fails(Operand, "s32[4]");
    rules.of(op(select, scatter), &["f32[8]", "f32[4]", "f32[1]"]).fails(Operand, "takes one");
    rules.of(op(select, scatter), &["f32[8]", "f32[4]", "s32[]"]).fails(Operand, "of one type");
}
