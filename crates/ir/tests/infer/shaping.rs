//! Ops that move, repeat or name elements.

use smallvec::SmallVec;
use tilewright_ir::ops::dims::{PadDim, SliceDim};
use tilewright_ir::ops::shaping::{
    ConcatenateAttrs, GetDimensionSizeAttrs, IotaAttrs, PadAttrs, ReverseAttrs,
    SetDimensionSizeAttrs, SliceAttrs, TransposeAttrs,
};
use tilewright_ir::{
    ArrayLiteral, ArrayShape, Data, ElementType, Layout, Literal, Module, Op, Shape,
    ShapeErrorKind::*, infer_shape,
};

use super::of;
use crate::common::{broadcast, dims, parameter, reshape};

fn transpose(dimensions: &[i64]) -> Op {
    Op::Transpose(Box::new(TransposeAttrs { dimensions: dims(dimensions) }))
}

fn concatenate(dimensions: &[i64]) -> Op {
    Op::Concatenate(Box::new(ConcatenateAttrs { dimensions: dims(dimensions) }))
}

fn pad(padding: &[(i64, i64, i64)]) -> Op {
    let dim = |&(low, high, interior): &(i64, i64, i64)| PadDim { low, high, interior };
    Op::Pad(Box::new(PadAttrs { padding: padding.iter().map(dim).collect() }))
}

fn slice(ranges: &[(i64, i64, i64)]) -> Op {
    let dim = |&(start, limit, stride): &(i64, i64, i64)| SliceDim { start, limit, stride };
    let slice: SmallVec<[SliceDim; 4]> = ranges.iter().map(dim).collect();
    Op::Slice(Box::new(SliceAttrs { slice }))
}

#[test]
fn reshape_keeps_the_number_of_elements() {
    of(reshape(), &["f32[2,3,4]"]).declared("f32[6,4]").gives("f32[6,4]");
    of(reshape(), &["f32[]"]).declared("f32[1,1]").gives("f32[1,1]");
    of(reshape(), &["f32[0,5]"]).declared("f32[7,0]").gives("f32[7,0]");
    of(reshape(), &["f32[<=6]"]).declared("f32[<=2,3]").gives("f32[<=2,3]");
    of(reshape(), &["f32[?]"]).declared("f32[2,3]").gives("f32[2,3]");
    of(reshape(), &["f32[2,3]"]).declared("f32[7]").fails(Result, "f32[2,3] has 6, f32[7] has 7");
    of(reshape(), &["f32[0]"]).declared("f32[1]").fails(Result, "has 0, f32[1] has 1");
    of(reshape(), &["f32[4]"]).declared("s32[4]").fails(Result, "keeps the element type f32");
    of(reshape(), &["f32[4]"]).fails(NeedsShape, "write it");
    of(reshape(), &["(f32[4])"]).declared("f32[4]").fails(Operand, "must be an array");
    // 2^32 * 2^32 does not fit 64 bits; its size is nobody's to compare.
    let huge = "f32[4294967296,4294967296]";
    of(reshape(), &[huge]).declared("f32[4]").gives("f32[4]");
}

#[test]
fn broadcast_keeps_sizes_and_may_permute() {
    of(broadcast(&[]), &["f32[]"]).declared("f32[2,3]").gives("f32[2,3]");
    of(broadcast(&[1]), &["f32[3]"]).declared("f32[2,3]").gives("f32[2,3]");
    of(broadcast(&[2, 0]), &["s32[2,3]"]).declared("s32[3,5,2]").gives("s32[3,5,2]");
    of(broadcast(&[0]), &["f32[3]"]).declared("f32[2,3]").fails(Result, "dim 0 of f32[3]");
    of(broadcast(&[0]), &["f32[1]"]).declared("f32[2]").fails(Result, "cannot become dim 0");
    of(broadcast(&[0]), &["f32[2]"]).declared("s32[2]").fails(Result, "keeps the element type");
    of(broadcast(&[]), &["f32[2]"]).declared("f32[2]").fails(Attribute, "1 for f32[2], not 0");
    of(broadcast(&[0, 0]), &["f32[2,2]"]).declared("f32[2,2]").fails(Attribute, "dim 0 twice");
    of(broadcast(&[2]), &["f32[2]"]).declared("f32[2,2]").fails(Attribute, "has rank 2");
    of(broadcast(&[-1]), &["f32[2]"]).declared("f32[2,2]").fails(Attribute, "names dim -1");
}

#[test]
fn transpose_picks_dims() {
    of(transpose(&[2, 0, 1]), &["f32[2,3,4]"]).gives("f32[4,2,3]");
    of(transpose(&[1, 0]), &["f32[<=2,3]"]).gives("f32[3,<=2]");
    of(transpose(&[]), &["f32[]"]).gives("f32[]");
    of(transpose(&[0]), &["f32[2,3]"]).fails(Attribute, "needs 2 dimensions, not 1");
    of(transpose(&[0, 0]), &["f32[2,3]"]).fails(Attribute, "dim 0 twice");
    of(transpose(&[0, 2]), &["f32[2,3]"]).fails(Attribute, "dim 2");
}

#[test]
fn reverse_keeps_the_shape() {
    let op = |d: &[i64]| Op::Reverse(Box::new(ReverseAttrs { dimensions: dims(d) }));
    of(op(&[1]), &["f32[2,<=3]"]).gives("f32[2,<=3]");
    of(op(&[]), &["f32[2]"]).gives("f32[2]");
    of(op(&[1]), &["f32[2]"]).fails(Attribute, "names dim 1");
}

#[test]
fn concatenate_adds_up_one_dim() {
    of(concatenate(&[1]), &["f32[2,3]", "f32[2,4]", "f32[2,0]"]).gives("f32[2,7]");
    of(concatenate(&[0]), &["f32[2]"]).gives("f32[2]");
    of(concatenate(&[0]), &["f32[2,3]", "f32[2,4]"]).fails(Operand, "differ only in dim 0");
    of(concatenate(&[0]), &["f32[2]", "s32[2]"]).fails(Operand, "f32[2] and s32[2]");
    of(concatenate(&[0]), &["f32[2]", "f32[2,1]"]).fails(Operand, "f32[2] and f32[2,1]");
    of(concatenate(&[0]), &["f32[]"]).fails(Attribute, "rank 0");
    of(concatenate(&[]), &["f32[2]"]).fails(Attribute, "names 0 dims, not one");
    of(concatenate(&[0, 1]), &["f32[2,2]"]).fails(Attribute, "names 2 dims, not one");
    let most = format!("s8[{}]", i64::MAX);
    of(concatenate(&[0]), &[&most, "s8[1]"]).fails(Operand, "exceeds 64 bits");
}

#[test]
fn pad_adds_and_takes_away() {
    of(pad(&[(1, 2, 0)]), &["f32[3]", "f32[]"]).gives("f32[6]");
    of(pad(&[(0, 0, 2)]), &["f32[3]", "f32[]"]).gives("f32[7]");
    of(pad(&[(-1, 0, 1), (0, -2, 0)]), &["f32[3,5]", "f32[]"]).gives("f32[4,3]");
    of(pad(&[(0, 1, 9)]), &["f32[0]", "f32[]"]).gives("f32[1]");
    of(pad(&[(0, 0, 9)]), &["f32[1]", "f32[]"]).gives("f32[1]");
    of(pad(&[(-3, 0, 0)]), &["f32[3]", "f32[]"]).gives("f32[0]");
    of(pad(&[(-4, 0, 0)]), &["f32[3]", "f32[]"]).fails(Attribute, "negative or too large dim");
    of(pad(&[(0, 0, -1)]), &["f32[3]", "f32[]"]).fails(Attribute, "negative interior");
    of(pad(&[(i64::MAX, 1, 0)]), &["f32[3]", "f32[]"]).fails(Attribute, "too large dim");
    of(pad(&[]), &["f32[3]", "f32[]"]).fails(Attribute, "padding for 1 dims, not 0");
    of(pad(&[(0, 0, 0)]), &["f32[3]", "f32[1]"]).fails(Operand, "a scalar of type f32");
    of(pad(&[(0, 0, 0)]), &["f32[3]", "s32[]"]).fails(Operand, "not s32[]");
}

#[test]
fn slice_rounds_up() {
    of(slice(&[(0, 4, 2), (2, 6, 1)]), &["f32[5,6]"]).gives("f32[2,4]");
    of(slice(&[(0, 5, 2)]), &["f32[5]"]).gives("f32[3]");
    of(slice(&[(1, 5, 3)]), &["f32[5]"]).gives("f32[2]");
    of(slice(&[(5, 5, 1)]), &["f32[5]"]).gives("f32[0]");
    of(slice(&[(0, 5, i64::MAX)]), &["f32[5]"]).gives("f32[1]");
    of(slice(&[]), &["f32[]"]).gives("f32[]");
    for wrong in [(-1, 2, 1), (3, 2, 1), (0, 6, 1), (0, 5, 0), (0, 5, -1)] {
        of(slice(&[wrong]), &["f32[5]"]).fails(Attribute, "does not fit dim 0 of f32[5]");
    }
    of(slice(&[(0, 1, 1)]), &["f32[5,5]"]).fails(Attribute, "needs 2 ranges, not 1");
    // One element of a dynamic dim is static.
    of(slice(&[(0, 2, 1)]), &["f32[<=5]"]).gives("f32[<=2]");
    of(slice(&[(0, 4, 4)]), &["f32[<=5]"]).gives("f32[1]");
    of(slice(&[(0, 1, 1)]), &["f32[<=1]"]).gives("f32[1]");
    of(slice(&[(1, 1, 1)]), &["f32[<=5]"]).gives("f32[<=0]");
}

#[test]
fn iota_counts_along_a_dim_of_numbers() {
    let iota = |dimension| Op::Iota(Box::new(IotaAttrs { dimension }));
    of(iota(1), &[]).declared("s32[2,3]").gives("s32[2,3]");
    of(iota(0), &[]).declared("c64[4]").gives("c64[4]");
    of(iota(2), &[]).declared("s32[2,3]").fails(Attribute, "names dim 2");
    of(iota(0), &[]).declared("s32[]").fails(Attribute, "rank 0");
    of(iota(0), &[]).declared("pred[2]").fails(Result, "not pred");
    of(iota(0), &[]).fails(NeedsShape, "`iota` cannot be inferred");
}

#[test]
fn bitcasts_read_a_buffer_and_conversions_keep_the_bits() {
    let bitcast = |from: &str| of(Op::Bitcast, &[from]);
    bitcast("f32[2,3]").declared("f32[6]").gives("f32[6]");
    bitcast("f32[2,3]").declared("s16[12]").gives("s16[12]");
    // Buffers may be larger than their arrays.
    bitcast("f32[2,3]").declared("f32[5]").gives("f32[5]");
    bitcast("(f32[2], s32[])").declared("(f32[2], s32[])").gives("(f32[2], s32[])");
    bitcast("f32[2,3]").fails(NeedsShape, "`bitcast` cannot be inferred");
    let convert = |from: &str, to: &str| of(Op::BitcastConvert, &[from]).declared(to);
    convert("f32[2]", "s32[2]").gives("s32[2]");
    convert("f32[2]", "u8[2,4]").gives("u8[2,4]");
    convert("u16[3,2]", "f32[3]").gives("f32[3]");
    convert("f32[2]", "f64[2]").fails(Result, "by the ratio of the widths");
    convert("f32[3,0]", "s8[3,0,4]").gives("s8[3,0,4]");
    convert("f32[3,0]", "s8[3,0,5]").fails(Result, "by the ratio of the widths");
    convert("f32[3,0]", "s8[3,0]").fails(Result, "by the ratio of the widths");
    convert("s8[0,4]", "f32[0]").gives("f32[0]");
    convert("s8[0,3]", "f32[0]").fails(Result, "by the ratio of the widths");
    convert("u32[?]", "u8[?,4]").gives("u8[?,4]");
    convert("u8[?,?]", "u32[2]").gives("u32[2]");
    convert("c64[2]", "s64[2]").fails(Result, "complex numbers stay complex");
    convert("c128[2]", "c64[2,2]").gives("c64[2,2]");
    // Truth values and floats of 6 bits fill a byte, as in XLA.
    convert("f6e3m2fn[2]", "u2[2,4]").gives("u2[2,4]");
    convert("u4[2,2]", "u8[2]").gives("u8[2]");
    convert("f32[2]", "pred[2,4]").gives("pred[2,4]");
    convert("pred[2]", "u8[2]").gives("u8[2]");
    convert("pred[2,8]", "u8[2]").fails(Result, "by the ratio of the widths");
    of(Op::Bitcast, &["pred[4]"]).declared("s32[1]").gives("s32[1]");
    convert("f32[2]", "u8[4,2]").fails(Result, "only the minor dim");
    convert("f32[2,2]", "s32[4]").fails(Result, "only the minor dim");
}

#[test]
fn a_bitcast_of_a_tiled_buffer_may_hold_more_than_its_elements() {
    let bitcast = Op::Bitcast;
    let tiled = ArrayShape::new(ElementType::F32, [2, 3]).with_layout(Some(Layout::new([0, 1])));
    let (from, to) = (Shape::Array(tiled), Shape::array(ElementType::F32, [8]));
    assert!(infer_shape(&Module::default(), &bitcast, &[&from], Some(&to)).is_ok());
}

#[test]
fn constants_and_parameters() {
    let data = Data::S32(vec![1, 2, 3, 4, 5, 6]);
    let value = ArrayLiteral::new(ElementType::S32, [2, 3], data).unwrap();
    let op = Op::Constant(Box::new(Literal::Array(value)));
    of(op.clone(), &[]).gives("s32[2,3]");
    of(op, &[]).declared("s32[3,2]").fails(Result, "yields s32[2,3], not s32[3,2]");
    let pair =
        Literal::Tuple(vec![Literal::Token, Literal::scalar(ElementType::Pred, true).unwrap()]);
    of(Op::Constant(Box::new(pair)), &[]).gives("(token[], pred[])");
    of(parameter(0), &[]).declared("(f32[2], token[])").gives("(f32[2], token[])");
    of(parameter(0), &[]).fails(NeedsShape, "`parameter`");
}

#[test]
fn dimension_sizes() {
    let get =
        |d: &[i64]| Op::GetDimensionSize(Box::new(GetDimensionSizeAttrs { dimensions: dims(d) }));
    of(get(&[1]), &["f32[2,<=3]"]).gives("s32[]");
    of(get(&[2]), &["f32[2,3]"]).fails(Attribute, "names dim 2");
    of(get(&[0, 1]), &["f32[2,3]"]).fails(Attribute, "names 2 dims, not one");
    let set = || Op::SetDimensionSize(Box::new(SetDimensionSizeAttrs { dimensions: dims(&[0]) }));
    of(set(), &["f32[4]", "s32[]"]).gives("f32[<=4]");
    of(set(), &["f32[?]", "s32[]"]).gives("f32[?]");
    of(set(), &["f32[<=4]", "s32[]"]).declared("f32[4]").gives("f32[<=4]");
    of(set(), &["f32[4]", "s32[]"]).declared("f32[<=5]").fails(Result, "yields f32[<=4]");
    of(set(), &["f32[4]", "s64[]"]).declared("f32[<=4]").fails(Operand, "as s32[], not s64[]");
}

#[test]
fn copies_and_dynamic_reshapes() {
    of(Op::Copy, &["(f32[2], token[])"]).gives("(f32[2], token[])");
    let reshape = |operands: &[&str]| of(Op::DynamicReshape, operands);
    let right = ["f32[4,3]", "s32[]", "s32[]"];
    reshape(&right).declared("f32[<=6,<=2]").gives("f32[<=6,<=2]");
    reshape(&right).declared("f32[6,2]").gives("f32[6,2]");
    reshape(&right).declared("f32[<=6,<=3]").fails(Result, "has 12, f32[<=6,<=3] has 18");
    reshape(&right).declared("s32[<=6,<=2]").fails(Result, "keeps the element type f32");
    reshape(&right[..2]).declared("f32[<=6,<=2]").fails(Operand, "sizes of its 2 dims");
    reshape(&["f32[12]", "s64[]"]).declared("f32[<=12]").fails(Operand, "each as s32[]");
    reshape(&right).fails(NeedsShape, "`dynamic-reshape`");
}

/// As XLA's parser infers it, or, where the shape must be written, as its
/// verifier accepts it.
#[test]
fn dims_of_unknown_size() {
    let rows = || concatenate(&[0]);
    of(rows(), &["f32[?,4]", "f32[2,4]"]).gives("f32[?,4]");
    of(rows(), &["f32[2,4]", "f32[?,4]", "f32[3,4]"]).gives("f32[?,4]");
    of(rows(), &["f32[<=3,4]", "f32[2,4]"]).gives("f32[<=5,4]");
    of(rows(), &["f32[?,4]", "f32[<=2,4]"]).gives("f32[?,4]");
    of(rows(), &["f32[2,4]", "f32[2,?]"]).gives("f32[4,4]");
    of(rows(), &["f32[2,4]", "f32[2,<=4]"]).gives("f32[4,<=4]");
    of(rows(), &["f32[2,<=5]", "f32[2,?]"]).gives("f32[4,<=5]");
    of(rows(), &["f32[2,<=5]", "f32[2,<=4]"]).fails(Operand, "differ only in dim 0");
    of(rows(), &["f32[2,4]", "f32[2,<=5]"]).fails(Operand, "differ only in dim 0");

    of(pad(&[(1, 0, 0)]), &["f32[?]", "f32[]"]).gives("f32[?]");
    of(pad(&[(-1, 0, 2)]), &["f32[?]", "f32[]"]).gives("f32[?]");
    of(pad(&[(1, 0, 0)]), &["f32[<=8]", "f32[]"]).gives("f32[<=9]");
    of(pad(&[(0, 0, -1)]), &["f32[?]", "f32[]"]).fails(Attribute, "negative interior");

    let part = || slice(&[(0, 4, 1)]);
    of(part(), &["f32[?]"]).gives("f32[4]");
    of(part(), &["f32[?]"]).declared("f32[?]").gives("f32[4]");
    of(part(), &["f32[<=8]"]).declared("f32[4]").gives("f32[<=4]");
    of(part(), &["f32[<=3]"]).fails(Attribute, "does not fit dim 0");

    of(broadcast(&[0]), &["f32[?]"]).declared("f32[?,3]").gives("f32[?,3]");
    of(broadcast(&[0]), &["f32[?]"]).declared("f32[4,3]").gives("f32[4,3]");
    of(broadcast(&[0]), &["f32[<=4]"]).declared("f32[4,3]").gives("f32[4,3]");
    of(broadcast(&[0]), &["f32[<=4]"]).declared("f32[<=5,3]").fails(Result, "cannot become");
    of(reshape(), &["f32[<=2,4]"]).declared("f32[<=8]").gives("f32[<=8]");
    of(reshape(), &["f32[?,4]"]).declared("f32[?]").gives("f32[?]");
}
