//! Indexing by run-time values.

use tilewright_ir::ops::indexing::{DynamicSliceAttrs, GatherAttrs, ScatterAttrs};
use tilewright_ir::{CompId, Op, ShapeErrorKind::*};

use super::{Rules, of};
use crate::common::dims;

fn dynamic_slice(sizes: &[i64]) -> Op {
    Op::DynamicSlice(Box::new(DynamicSliceAttrs { dynamic_slice_sizes: dims(sizes) }))
}

#[test]
fn dynamic_slice_takes_one_index_per_dim() {
    of(dynamic_slice(&[2, 3]), &["f32[4,5]", "s32[]", "s32[]"]).gives("f32[2,3]");
    of(dynamic_slice(&[2, 3]), &["f32[4,5]", "u64[2]"]).gives("f32[2,3]");
    of(dynamic_slice(&[0, 5]), &["f32[4,5]", "s32[]", "s32[]"]).gives("f32[0,5]");
    of(dynamic_slice(&[]), &["f32[]"]).gives("f32[]");
    of(dynamic_slice(&[2, 3]), &["f32[4,5]", "s32[]"]).fails(Operand, "takes 2 scalar indices");
    of(dynamic_slice(&[2, 3]), &["f32[4,5]", "s32[3]"]).fails(Operand, "takes 2 scalar indices");
    of(dynamic_slice(&[2]), &["f32[4]", "f32[]"]).fails(Operand, "integer");
    of(dynamic_slice(&[2]), &["f32[4]", "pred[]"]).fails(Operand, "integer");
    of(dynamic_slice(&[2, 3]), &["f32[4,5]", "s32[]", "s64[]"]).fails(Operand, "differ in type");
    of(dynamic_slice(&[5]), &["f32[4]", "s32[]"]).fails(Attribute, "do not fit f32[4]");
    of(dynamic_slice(&[-1]), &["f32[4]", "s32[]"]).fails(Attribute, "do not fit f32[4]");
    of(dynamic_slice(&[1, 1]), &["f32[4]", "s32[]"]).fails(Attribute, "do not fit f32[4]");
}

#[test]
fn dynamic_update_slice_keeps_the_array() {
    let of = |operands: &[&str]| of(Op::DynamicUpdateSlice, operands);
    of(&["f32[4,5]", "f32[1,1]", "s32[]", "u32[]"]).fails(Operand, "differ in type");
    of(&["f32[4,5]", "f32[2,5]", "s32[]", "s32[]"]).gives("f32[4,5]");
    of(&["f32[4,5]", "f32[2,5]", "s32[2]"]).gives("f32[4,5]");
    of(&["f32[4]", "f32[5]", "s32[]"]).fails(Operand, "f32[5] does not fit into f32[4]");
    of(&["f32[4]", "s32[4]", "s32[]"]).fails(Operand, "does not fit");
    of(&["f32[4]", "f32[]", "s32[]"]).fails(Operand, "does not fit");
    of(&["f32[4]", "f32[2]"]).fails(Operand, "takes 1 scalar indices");
}

/// As XLA's parser infers it, or, where the shape must be written, as its
/// verifier accepts it.
#[test]
fn parts_of_dynamic_dims() {
    let slice = |sizes: &[i64], from: &str| of(dynamic_slice(sizes), &[from, "s32[2]"]);
    slice(&[4, 5], "f32[<=4,5]").gives("f32[<=4,5]");
    slice(&[4, 5], "f32[<=4,5]").declared("f32[4,5]").gives("f32[<=4,5]");
    slice(&[2, 5], "f32[<=4,5]").gives("f32[2,5]");
    // One element is static, even where it is the whole dim; not so of a gather.
    slice(&[1, 5], "f32[<=1,5]").gives("f32[1,5]");
    slice(&[1, 5], "f32[<=1,5]").declared("f32[<=1,5]").gives("f32[1,5]");
    let whole = GatherAttrs {
        offset_dims: dims(&[1, 2]),
        collapsed_slice_dims: dims(&[]),
        start_index_map: dims(&[0]),
        slice_sizes: dims(&[1, 5]),
        ..rows()
    };
    gather(whole, "f32[<=1,5]", "s32[7,1]").gives("f32[7,<=1,5]");
    slice(&[2, 5], "f32[<=4,5]").declared("f32[<=2,5]").gives("f32[2,5]");
    slice(&[2, 5], "f32[?,5]").gives("f32[2,5]");
    slice(&[5, 5], "f32[<=4,5]").fails(Attribute, "do not fit");
    let update =
        |operands: &[&str; 2]| of(Op::DynamicUpdateSlice, &[operands[0], operands[1], "s32[2]"]);
    update(&["f32[?,5]", "f32[2,5]"]).gives("f32[?,5]");
    update(&["f32[4,5]", "f32[<=2,5]"]).gives("f32[4,5]");
    update(&["f32[4,5]", "f32[?,5]"]).declared("f32[<=4,5]").gives("f32[4,5]");
    update(&["f32[4,5]", "f32[<=5,5]"]).fails(Operand, "does not fit");

    let of_rows = |array: &str, indices: &str, size: i64| {
        let attrs = GatherAttrs {
            collapsed_slice_dims: dims(&[0]),
            start_index_map: dims(&[0]),
            slice_sizes: dims(&[1, size]),
            ..rows()
        };
        gather(attrs, array, indices)
    };
    of_rows("f32[10,5]", "s32[<=3,1]", 5).gives("f32[<=3,5]");
    of_rows("f32[10,5]", "s32[<=3,1]", 5).declared("f32[3,5]").gives("f32[<=3,5]");
    of_rows("f32[10,5]", "s32[?,1]", 5).gives("f32[?,5]");
    of_rows("f32[<=10,<=5]", "s32[3,1]", 5).gives("f32[3,<=5]");
    of_rows("f32[<=10,<=5]", "s32[3,1]", 3).gives("f32[3,3]");
    of_rows("f32[<=10,?]", "s32[3,1]", 3).gives("f32[3,3]");
    of_rows("f32[?,5]", "s32[3,1]", 5).gives("f32[3,5]");
    of_rows("f32[10,5]", "s32[3,?]", 5).gives("f32[3,5]");
    of_rows("f32[10,5]", "s32[3,<=1]", 5).gives("f32[3,5]");
}

/// Returns the gather of rows: `x[10,20,30]` at `i[5,2]` of dims 0 and 1.
fn rows() -> GatherAttrs {
    GatherAttrs {
        offset_dims: dims(&[1]),
        collapsed_slice_dims: dims(&[0, 1]),
        start_index_map: dims(&[0, 1]),
        operand_batching_dims: dims(&[]),
        start_indices_batching_dims: dims(&[]),
        index_vector_dim: 1,
        slice_sizes: dims(&[1, 1, 30]),
        indices_are_sorted: false,
    }
}

#[track_caller]
fn gather(attrs: GatherAttrs, array: &str, indices: &str) -> super::Case<'static> {
    of(Op::Gather(Box::new(attrs)), &[array, indices])
}

#[test]
fn gather_puts_slices_at_the_offset_dims() {
    gather(rows(), "f32[10,20,30]", "s32[5,2]").gives("f32[5,30]");
    // The same with the slice first.
    let first = GatherAttrs { offset_dims: dims(&[0]), ..rows() };
    gather(first, "f32[10,20,30]", "s32[5,2]").gives("f32[30,5]");
    // Index entries along dim 0; two batch dims around.
    let major = GatherAttrs { index_vector_dim: 0, offset_dims: dims(&[2]), ..rows() };
    gather(major.clone(), "f32[10,20,30]", "s32[2,6,7]").gives("f32[6,7,30]");
    let between = GatherAttrs { offset_dims: dims(&[1]), ..major };
    gather(between, "f32[10,20,30]", "s32[2,6,7]").gives("f32[6,30,7]");
    // Scalar indices: the vector dim is past the end.
    let scalars = GatherAttrs {
        offset_dims: dims(&[1, 2]),
        collapsed_slice_dims: dims(&[0]),
        start_index_map: dims(&[0]),
        slice_sizes: dims(&[1, 4, 30]),
        ..rows()
    };
    gather(scalars, "f32[10,20,30]", "s32[5]").gives("f32[5,4,30]");
    // Dim 0 of both run along together.
    let batched = GatherAttrs {
        offset_dims: dims(&[2]),
        collapsed_slice_dims: dims(&[1]),
        start_index_map: dims(&[1]),
        operand_batching_dims: dims(&[0]),
        start_indices_batching_dims: dims(&[0]),
        index_vector_dim: 2,
        slice_sizes: dims(&[1, 1, 30]),
        indices_are_sorted: true,
    };
    gather(batched, "f32[10,20,30]", "s32[10,5,1]").gives("f32[10,5,30]");
}

#[test]
fn wrong_gathers() {
    let (array, indices) = ("f32[10,20,30]", "s32[5,2]");
    let fails = |attrs, part: &str| gather(attrs, array, indices).fails(Attribute, part);
    fails(GatherAttrs { slice_sizes: dims(&[1, 1]), ..rows() }, "slice_sizes");
    fails(GatherAttrs { slice_sizes: dims(&[1, 1, 31]), ..rows() }, "slice_sizes");
    fails(GatherAttrs { slice_sizes: dims(&[1, 2, 30]), ..rows() }, "size 1");
    fails(GatherAttrs { index_vector_dim: 3, ..rows() }, "index_vector_dim 3");
    fails(GatherAttrs { index_vector_dim: -1, ..rows() }, "index_vector_dim -1");
    fails(GatherAttrs { start_index_map: dims(&[0]), ..rows() }, "start_index_map");
    fails(GatherAttrs { start_index_map: dims(&[0, 3]), ..rows() }, "names dim 3");
    fails(GatherAttrs { start_index_map: dims(&[0, 0]), ..rows() }, "dim 0 twice");
    fails(GatherAttrs { collapsed_slice_dims: dims(&[1, 3]), ..rows() }, "names dim 3");
    fails(GatherAttrs { offset_dims: dims(&[2]), ..rows() }, "names dim 2");
    fails(GatherAttrs { offset_dims: dims(&[]), ..rows() }, "offset_dims");
    let unsorted = GatherAttrs {
        offset_dims: dims(&[1, 0]),
        collapsed_slice_dims: dims(&[0]),
        slice_sizes: dims(&[1, 2, 30]),
        ..rows()
    };
    fails(unsorted, "in order, not [1, 0]");
    let unsorted = GatherAttrs { collapsed_slice_dims: dims(&[1, 0]), ..rows() };
    fails(unsorted, "collapsed_slice_dims of `gather` must name dims in order, not [1, 0]");
    let pairs = |of_array: &[i64], of_indices: &[i64]| GatherAttrs {
        offset_dims: dims(&[2]),
        collapsed_slice_dims: dims(&[]),
        start_index_map: dims(&[2]),
        operand_batching_dims: dims(of_array),
        start_indices_batching_dims: dims(of_indices),
        index_vector_dim: 2,
        ..rows()
    };
    let square = |attrs| gather(attrs, "f32[4,4,30]", "s32[4,4,1]");
    square(pairs(&[1, 0], &[0, 1])).fails(Attribute, "in order, not [1, 0]");
    // The dims of the indices may have any order.
    square(pairs(&[0, 1], &[1, 0])).gives("f32[4,4,30]");
    let unpaired = GatherAttrs { start_indices_batching_dims: dims(&[0]), ..rows() };
    fails(unpaired, "batching dims");
    gather(rows(), array, "f32[5,2]").fails(Operand, "integer");
    gather(rows(), "(f32[2])", indices).fails(Operand, "must be an array");
    let batched = || GatherAttrs {
        offset_dims: dims(&[2]),
        collapsed_slice_dims: dims(&[1]),
        start_index_map: dims(&[1]),
        operand_batching_dims: dims(&[0]),
        start_indices_batching_dims: dims(&[0]),
        index_vector_dim: 2,
        ..rows()
    };
    // Whether they have one size is not asked, as XLA does not.
    gather(batched(), array, "s32[9,5,1]").gives("f32[9,5,30]");
    let overlapping = GatherAttrs { start_index_map: dims(&[0]), ..batched() };
    gather(overlapping, array, "s32[10,5,1]").gives("f32[10,5,30]");
    let of_entries = GatherAttrs { start_indices_batching_dims: dims(&[2]), ..batched() };
    gather(of_entries, array, "s32[9,5,1]").fails(Attribute, "batching dims");
}

/// Rows `u[5,30]` into `x[10,20,30]` at `i[5,2]`.
fn scatter_rows(to_apply: CompId) -> ScatterAttrs {
    ScatterAttrs {
        update_window_dims: dims(&[1]),
        inserted_window_dims: dims(&[0, 1]),
        scatter_dims_to_operand_dims: dims(&[0, 1]),
        input_batching_dims: dims(&[]),
        scatter_indices_batching_dims: dims(&[]),
        index_vector_dim: 1,
        indices_are_sorted: false,
        unique_indices: false,
        to_apply,
    }
}

#[test]
fn scatter_keeps_the_arrays() {
    let mut rules = Rules::default();
    let add = rules.callee(&["f32[]", "f32[]"], "f32[]");
    let op = |attrs| Op::Scatter(Box::new(attrs));
    let rows = scatter_rows(add);
    let right = ["f32[10,20,30]", "s32[5,2]", "f32[5,30]"];
    rules.of(op(rows.clone()), &right).gives("f32[10,20,30]");
    // A window may be smaller than the dim.
    rules.of(op(rows.clone()), &["f32[10,20,30]", "s32[5,2]", "f32[5,7]"]).gives("f32[10,20,30]");
    let scalar =
        ScatterAttrs { update_window_dims: dims(&[0]), index_vector_dim: 0, ..rows.clone() };
    rules.of(op(scalar), &["f32[10,20,30]", "s32[2]", "f32[30]"]).gives("f32[10,20,30]");

    let pairs = rules.callee(&["f32[]", "s32[]", "f32[]", "s32[]"], "(f32[], s32[])");
    let two = scatter_rows(pairs);
    let operands = ["f32[10,20,30]", "s32[10,20,30]", "s32[5,2]", "f32[5,30]", "s32[5,30]"];
    rules.of(op(two.clone()), &operands).gives("(f32[10,20,30], s32[10,20,30])");
    rules
        .of(op(two), &operands)
        .declared("(f32[10,20,30], f32[10,20,30])")
        .fails(Result, "yields (f32[10,20,30], s32[10,20,30])");
}

#[test]
fn wrong_scatters() {
    let mut rules = Rules::default();
    let add = rules.callee(&["f32[]", "f32[]"], "f32[]");
    let less = rules.callee(&["f32[]", "f32[]"], "pred[]");
    let one = rules.callee(&["f32[]"], "f32[]");
    let op = |attrs| Op::Scatter(Box::new(attrs));
    let (array, indices, update) = ("f32[10,20,30]", "s32[5,2]", "f32[5,30]");
    let right = [array, indices, update];
    let rows = scatter_rows(add);
    let of = |attrs: &ScatterAttrs, operands: &[&str]| rules.of(op(attrs.clone()), operands);
    of(&rows, &[array, indices, update, update]).fails(Operand, "as many updates");
    of(&rows, &[array, "f32[5,2]", update]).fails(Operand, "integer");
    of(&rows, &[array, indices, "s32[5,30]"]).fails(Operand, "cannot put s32[5,30]");
    of(&rows, &[array, indices, "f32[6,30]"]).fails(Operand, "f32[6,30]");
    of(&rows, &[array, indices, "f32[5,31]"]).fails(Operand, "f32[5,31]");
    of(&rows, &[array, indices, "f32[5]"]).fails(Operand, "f32[5]");
    of(&rows, &[array, indices, "f32[5,30,1]"]).fails(Operand, "f32[5,30,1]");
    of(&ScatterAttrs { update_window_dims: dims(&[2]), ..rows.clone() }, &right)
        .fails(Attribute, "names dim 2");
    of(&ScatterAttrs { inserted_window_dims: dims(&[0]), ..rows.clone() }, &right)
        .fails(Attribute, "window dims");
    of(&ScatterAttrs { inserted_window_dims: dims(&[1, 0]), ..rows.clone() }, &right)
        .fails(Attribute, "inserted_window_dims of `scatter` must name dims in order");
    let paired = |of_array: &[i64]| ScatterAttrs {
        inserted_window_dims: dims(&[]),
        scatter_dims_to_operand_dims: dims(&[2]),
        update_window_dims: dims(&[2]),
        input_batching_dims: dims(of_array),
        scatter_indices_batching_dims: dims(&[1, 0]),
        index_vector_dim: 2,
        ..rows.clone()
    };
    let square = ["f32[4,4,30]", "s32[4,4,1]", "f32[4,4,30]"];
    of(&paired(&[0, 1]), &square).gives("f32[4,4,30]");
    of(&paired(&[1, 0]), &square).fails(Attribute, "in order, not [1, 0]");
    of(&ScatterAttrs { scatter_dims_to_operand_dims: dims(&[0]), ..rows.clone() }, &right)
        .fails(Attribute, "scatter_dims_to_operand_dims");
    of(&ScatterAttrs { scatter_dims_to_operand_dims: dims(&[0, 3]), ..rows.clone() }, &right)
        .fails(Attribute, "names dim 3");
    of(&ScatterAttrs { index_vector_dim: 3, ..rows.clone() }, &right)
        .fails(Attribute, "index_vector_dim 3");
    of(&scatter_rows(less), &right).fails(Callee, "pred[]");
    of(&scatter_rows(one), &right).fails(Callee, "takes 1 parameters");
}
