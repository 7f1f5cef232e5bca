//! Dots and convolutions.

use smallvec::SmallVec;
use tilewright_ir::ops::contract::{ConvolutionAttrs, ConvolutionKind, DotAttrs, RaggedDotAttrs};
use tilewright_ir::ops::dims::{ConvDims, WindowDim};
use tilewright_ir::{Op, ShapeErrorKind::*};

use super::of;
use crate::common::dims;

/// Batch dims and contracting dims of both sides.
fn attrs(batch: [&[i64]; 2], contracting: [&[i64]; 2]) -> DotAttrs {
    DotAttrs {
        lhs_batch_dims: dims(batch[0]),
        lhs_contracting_dims: dims(contracting[0]),
        rhs_batch_dims: dims(batch[1]),
        rhs_contracting_dims: dims(contracting[1]),
        operand_precision: Vec::new(),
        algorithm: None,
    }
}

fn dot(batch: [&[i64]; 2], contracting: [&[i64]; 2]) -> Op {
    Op::Dot(Box::new(attrs(batch, contracting)))
}

#[test]
fn dot_gives_batch_then_left_then_right() {
    of(dot([&[], &[]], [&[1], &[0]]), &["f32[2,3]", "f32[3,4]"]).gives("f32[2,4]");
    of(dot([&[], &[]], [&[0], &[0]]), &["f32[3]", "f32[3]"]).gives("f32[]");
    of(dot([&[], &[]], [&[], &[]]), &["f32[2]", "f32[3]"]).gives("f32[2,3]");
    // Batch dims 0 and 2 of the left pair with 3 and 0 of the right.
    let batched = dot([&[0, 2], &[3, 0]], [&[1], &[1]]);
    of(batched, &["f32[5,3,7,2]", "f32[7,3,4,5]"]).gives("f32[5,7,2,4]");
    of(dot([&[], &[]], [&[0, 1], &[1, 0]]), &["f32[2,3]", "f32[3,2]"]).gives("f32[]");
    of(dot([&[], &[]], [&[1], &[0]]), &["f32[2,0]", "f32[0,4]"]).gives("f32[2,4]");
}

#[test]
fn dot_may_be_declared_in_a_wider_type() {
    let op = dot([&[], &[]], [&[1], &[0]]);
    let operands = ["bf16[2,3]", "bf16[3,4]"];
    of(op.clone(), &operands).gives("bf16[2,4]");
    of(op.clone(), &operands).declared("f32[2,4]").gives("f32[2,4]");
    of(op.clone(), &operands).declared("f32[4,2]").fails(Result, "yields f32[2,4], not f32[4,2]");
    of(op, &operands).declared("(f32[2,4])").fails(Result, "yields an array");
}

/// XLA's parser infers these shapes if they are left out.
#[test]
fn dot_of_two_types() {
    let op = || dot([&[], &[]], [&[1], &[0]]);
    let of_types =
        |left: &str, right: &str| of(op(), &[&format!("{left}[3,4]"), &format!("{right}[4,5]")]);
    let table = [
        ("f32", "s32", "f32"),
        ("f32", "bf16", "f32"),
        ("s8", "u8", "s8"),
        ("u8", "s8", "s8"),
        ("s8", "bf16", "bf16"),
        ("s8", "s16", "s16"),
        ("f8e4m3fn", "f8e5m2", "f8e5m2"),
        ("f16", "bf16", "bf16"),
        ("c64", "f64", "c64"),
    ];
    for (left, right, result) in table {
        of_types(left, right).gives(&format!("{result}[3,5]"));
    }
    for (left, right, result) in [
        ("bf16", "f32", "bf16"),
        ("s8", "s8", "s32"),
        ("s32", "s32", "s8"),
        ("u8", "s8", "f32"),
        ("pred", "pred", "pred"),
        ("pred", "f32", "f32"),
        ("f32", "f32", "c64"),
        ("c64", "c64", "f32"),
    ] {
        let shape = format!("{result}[3,5]");
        of_types(left, right).declared(&shape).gives(&shape);
    }
    // XLA asks nothing of the declared type.
    for (left, right, result) in
        [("f32", "f32", "pred"), ("s32", "f32", "s32"), ("c64", "c64", "s32"), ("s8", "s8", "pred")]
    {
        let shape = format!("{result}[3,5]");
        of_types(left, right).declared(&shape).gives(&shape);
    }
}

/// As XLA's parser infers it.
#[test]
fn dot_of_dynamic_dims() {
    let plain = || dot([&[], &[]], [&[1], &[0]]);
    of(plain(), &["f32[?,4]", "f32[4,5]"]).gives("f32[?,5]");
    of(plain(), &["f32[3,?]", "f32[4,5]"]).gives("f32[3,5]");
    of(plain(), &["f32[<=3,4]", "f32[4,<=5]"]).gives("f32[<=3,<=5]");
    of(plain(), &["f32[3,<=4]", "f32[4,5]"]).gives("f32[3,5]");
    of(plain(), &["f32[3,<=4]", "f32[5,5]"]).fails(Attribute, "must pair dims of equal size");
    of(plain(), &["f32[<=3,4]", "f32[4,5]"]).declared("f32[3,5]").gives("f32[<=3,5]");
    let batched = || dot([&[0], &[0]], [&[2], &[1]]);
    of(batched(), &["f32[?,3,4]", "f32[7,4,5]"]).gives("f32[?,3,5]");
    of(batched(), &["f32[7,3,4]", "f32[?,4,5]"]).gives("f32[7,3,5]");
    of(batched(), &["f32[<=7,3,4]", "f32[7,4,5]"]).gives("f32[<=7,3,5]");
    of(batched(), &["f32[7,3,4]", "f32[<=7,4,5]"]).gives("f32[7,3,5]");
}

#[test]
fn dot_pairs_dims_of_equal_size() {
    let op = dot([&[], &[]], [&[1], &[0]]);
    of(op.clone(), &["f32[2,3]", "f32[4,3]"]).fails(Attribute, "must pair dims of equal size");
    of(op.clone(), &["f32[2]", "f32[3,4]"]).fails(Attribute, "left dims of `dot` names dim 1");
    of(op, &["f32[2,3]", "f32[]"]).fails(Attribute, "right dims of `dot` names 1 dims");
    let unpaired = dot([&[0], &[]], [&[1], &[0]]);
    of(unpaired, &["f32[2,3]", "f32[3,4]"]).fails(Attribute, "must pair");
    let twice = dot([&[1], &[0]], [&[1], &[0]]);
    of(twice, &["f32[2,3]", "f32[3,4]"]).fails(Attribute, "names dim 1 twice");
    // As many dims in all, but not pairwise.
    let crossed = dot([&[0], &[]], [&[], &[0]]);
    of(crossed, &["f32[2]", "f32[2]"]).fails(Attribute, "must pair");
}

/// Both operands stand before their scales, each of which is that of a block.
#[test]
fn scaled_dots() {
    let op = || Op::ScaledDot(Box::new(attrs([&[], &[]], [&[1], &[0]])));
    let scaled = |scales: [&str; 2]| {
        of(op(), &["f8e4m3fn[2,64]", "f8e4m3fn[64,4]", scales[0], scales[1]]).declared("f32[2,4]")
    };
    scaled(["f8e8m0fnu[2,2]", "f8e8m0fnu[2,4]"]).gives("f32[2,4]");
    scaled(["f8e8m0fnu[1,2]", "f8e8m0fnu[8,1]"]).gives("f32[2,4]");
    scaled(["f8e8m0fnu[2,?]", "f8e8m0fnu[2,4]"]).gives("f32[2,4]");
    scaled(["f8e8m0fnu[2,3]", "f8e8m0fnu[2,4]"]).fails(Operand, "operand 0 of `scaled-dot`");
    scaled(["f8e8m0fnu[2,2]", "f8e8m0fnu[3,4]"]).fails(Operand, "operand 1 of `scaled-dot`");
    scaled(["f8e8m0fnu[2,0]", "f8e8m0fnu[2,4]"]).fails(Operand, "divide those of the operand");
    scaled(["f8e8m0fnu[2]", "f8e8m0fnu[2,4]"]).fails(Operand, "they have one rank");
    // As HLO once had them: each beside what it scales.
    let beside = ["f8e4m3fn[2,64]", "f8e8m0fnu[2,2]", "f8e4m3fn[64,4]", "f8e8m0fnu[2,4]"];
    of(op(), &beside).declared("f32[2,4]").fails(Attribute, "must pair dims of equal size");
}

/// One scale of bf16 says that an operand of bf16 has none.
#[test]
fn scaled_dots_of_one_operand() {
    let op = || Op::ScaledDot(Box::new(attrs([&[], &[]], [&[1], &[0]])));
    let of_scales =
        |scales: [&str; 2]| of(op(), &["bf16[2,64]", "bf16[64,4]", scales[0], scales[1]]);
    of_scales(["bf16[2,2]", "bf16[]"]).gives("bf16[2,4]");
    of_scales(["bf16[1,1]", "bf16[1,1]"]).gives("bf16[2,4]");
    of_scales(["bf16[]", "bf16[]"]).fails(Operand, "without scales it is a `dot`");
    of_scales(["f32[2,2]", "f32[]"]).fails(Operand, "operand 1 of `scaled-dot`");
    let two = Op::ScaledDot(Box::new(attrs([&[], &[]], [&[1, 0], &[0, 1]])));
    let operands = ["bf16[4,64]", "bf16[64,4]", "bf16[2,2]", "bf16[]"];
    of(two, &operands).fails(Attribute, "sums over one dim of a scaled operand, not 2");
}

fn ragged_dot(batch: [&[i64]; 2], contracting: [&[i64]; 2], ragged: &[i64], group: &[i64]) -> Op {
    Op::RaggedDot(Box::new(RaggedDotAttrs {
        lhs_batch_dims: dims(batch[0]),
        lhs_contracting_dims: dims(contracting[0]),
        rhs_batch_dims: dims(batch[1]),
        rhs_contracting_dims: dims(contracting[1]),
        lhs_ragged_dims: dims(ragged),
        rhs_group_dims: dims(group),
        operand_precision: Vec::new(),
    }))
}

/// As XLA's parser infers and refuses it.
#[test]
fn ragged_dots_have_a_matrix_for_each_group() {
    let free = |ragged: &[i64], group: &[i64]| ragged_dot([&[], &[]], [&[1], &[1]], ragged, group);
    of(free(&[0], &[0]), &["f32[6,4]", "f32[3,4,5]", "s32[3]"]).gives("f32[6,5]");
    of(free(&[0], &[0]), &["f32[6,4]", "bf16[3,4,5]", "s64[3]"]).gives("f32[6,5]");
    of(free(&[0], &[0]), &["f32[?,4]", "f32[3,4,5]", "s32[3]"]).gives("f32[?,5]");
    let batched = || ragged_dot([&[0], &[1]], [&[2], &[2]], &[1], &[0]);
    of(batched(), &["f32[2,6,4]", "f32[3,2,4,5]", "s32[2,3]"]).gives("f32[2,6,5]");
    let summed = || ragged_dot([&[], &[]], [&[1], &[0]], &[1], &[]);
    of(summed(), &["f32[6,4]", "f32[4,5]", "s32[3]"]).gives("f32[3,6,5]");
    let summed_in_batches = || ragged_dot([&[0], &[0]], [&[2], &[1]], &[2], &[]);
    let operands = ["f32[2,6,4]", "f32[2,4,5]", "s32[2,3]"];
    of(summed_in_batches(), &operands).gives("f32[3,2,6,5]");
    let ragged_batch = || ragged_dot([&[0], &[0]], [&[2], &[1]], &[0], &[]);
    of(ragged_batch(), &["f32[2,6,4]", "f32[2,4,5]", "s32[3]"]).gives("f32[2,6,5]");

    let right = ["f32[6,4]", "f32[3,4,5]", "s32[3]"];
    of(free(&[0], &[0]), &right).declared("f32[6,4]").fails(Result, "yields f32[6,5]");
    of(free(&[0], &[0]), &["f32[6,4]", "f32[3,4,5]", "s32[2]"]).fails(Operand, "has 2 groups");
    of(free(&[0], &[0]), &["f32[6,4]", "f32[3,4,5]", "f32[3]"]).fails(Operand, "as integers");
    of(free(&[0], &[0]), &["f32[6,4]", "f32[3,4,5]", "s32[]"]).fails(Operand, "as an array");
    of(free(&[0], &[]), &right).fails(Attribute, "one of rhs_group_dims");
    of(free(&[1], &[0]), &right).fails(Attribute, "none where it is not");
    of(free(&[], &[0]), &right).fails(Attribute, "one of lhs_ragged_dims");
    of(free(&[0, 1], &[0]), &right).fails(Attribute, "one of lhs_ragged_dims");
    of(free(&[2], &[0]), &right).fails(Attribute, "names dim 2");
    of(free(&[0], &[1]), &right).fails(Attribute, "names dim 1 twice");
}

/// Returns the dims named by `b01f_01io->b01f` and its like.
fn labels(text: &str) -> ConvDims {
    let (input, rest) = text.split_once('_').unwrap();
    let (kernel, output) = rest.split_once("->").unwrap();
    let at = |part: &str, label: char| i64::try_from(part.find(label).unwrap()).unwrap();
    let spatial = |part: &str| -> SmallVec<[i64; 3]> {
        let digits = part.chars().filter(char::is_ascii_digit).count();
        ('0'..='9').take(digits).map(|label| at(part, label)).collect()
    };
    ConvDims {
        input_batch: at(input, 'b'),
        input_feature: at(input, 'f'),
        input_spatial: spatial(input),
        kernel_input_feature: at(kernel, 'i'),
        kernel_output_feature: at(kernel, 'o'),
        kernel_spatial: spatial(kernel),
        output_batch: at(output, 'b'),
        output_feature: at(output, 'f'),
        output_spatial: spatial(output),
    }
}

fn convolution(text: &str, window: &[WindowDim], groups: (i64, i64)) -> Op {
    Op::Convolution(Box::new(ConvolutionAttrs {
        window: window.iter().copied().collect(),
        dim_labels: labels(text),
        feature_group_count: groups.0,
        batch_group_count: groups.1,
        operand_precision: Vec::new(),
        convolution_kind: ConvolutionKind::Unset,
        sparsity_config: None,
    }))
}

/// One spatial dim over `base` elements: the extent that comes out.
#[track_caller]
fn extent(base: i64, window: WindowDim, expected: i64) {
    let op = convolution("b0f_0io->b0f", &[window], (1, 1));
    let (input, kernel) = (format!("f32[1,{base},1]"), format!("f32[{},1,1]", window.size));
    of(op, &[&input, &kernel]).gives(&format!("f32[1,{expected},1]"));
}

#[test]
fn convolution_output_sizes() {
    let w = WindowDim::new;
    extent(10, w(3), 8);
    extent(10, WindowDim { stride: 2, ..w(3) }, 4);
    extent(9, WindowDim { stride: 2, ..w(3) }, 4);
    extent(10, WindowDim { padding_low: 1, padding_high: 1, ..w(3) }, 10);
    extent(10, WindowDim { padding_low: -2, padding_high: -1, ..w(3) }, 5);
    // A window dilated by 2 spans 5.
    extent(10, WindowDim { window_dilation: 2, ..w(3) }, 6);
    // A base dilated by 3 spans 28.
    extent(10, WindowDim { base_dilation: 3, ..w(3) }, 26);
    // All at once: (10-1)*2+1 + 1 + 2 = 22; window (3-1)*4+1 = 9; (22-9)/3+1 = 5.
    let all = WindowDim {
        stride: 3,
        padding_low: 1,
        padding_high: 2,
        base_dilation: 2,
        window_dilation: 4,
        reversal: true,
        ..w(3)
    };
    extent(10, all, 5);
    extent(2, w(3), 0);
    extent(0, w(3), 0);
    extent(0, WindowDim { padding_low: 3, ..w(3) }, 1);
}

#[test]
fn convolution_dims_are_where_the_labels_say() {
    let w = WindowDim::new;
    let window = [w(3), WindowDim { stride: 2, padding_low: 2, padding_high: 2, ..w(5) }];
    let nhwc = convolution("b01f_01io->b01f", &window, (1, 1));
    of(nhwc, &["f32[8,32,32,6]", "f32[3,5,6,12]"]).gives("f32[8,30,16,12]");
    let mixed = convolution("bf01_oi01->1fb0", &window, (1, 1));
    of(mixed, &["f32[8,6,32,32]", "f32[12,6,3,5]"]).gives("f32[16,12,8,30]");
    let depthwise = convolution("b01f_01io->b01f", &[w(3), w(5)], (6, 1));
    of(depthwise, &["f32[8,32,32,6]", "f32[3,5,1,12]"]).gives("f32[8,30,28,12]");
    let batch_groups = convolution("b01f_01io->b01f", &[w(3), w(5)], (1, 4));
    of(batch_groups, &["f32[8,32,32,6]", "f32[3,5,6,12]"]).gives("f32[2,30,28,12]");
    let none = convolution("bf_io->bf", &[], (1, 1));
    of(none.clone(), &["f32[8,6]", "f32[6,12]"]).gives("f32[8,12]");
    of(none, &["bf16[8,6]", "bf16[6,12]"]).declared("f32[8,12]").gives("f32[8,12]");
}

/// As XLA's parser infers and refuses it.
#[test]
fn convolution_of_dynamic_dims() {
    let op = |groups| convolution("b01f_01io->b01f", &[WindowDim::new(3); 2], groups);
    let of_input = |input: &str| of(op((1, 1)), &[input, "f32[3,3,2,4]"]);
    of_input("f32[?,4,4,2]").gives("f32[?,2,2,4]");
    of_input("f32[2,4,?,2]").gives("f32[2,2,?,4]");
    of_input("f32[<=2,4,4,2]").gives("f32[<=2,2,2,4]");
    of_input("f32[2,<=4,4,2]").gives("f32[2,<=2,2,4]");
    let of_kernel = |kernel: &str| of(op((1, 1)), &["f32[2,4,4,2]", kernel]);
    of_kernel("f32[<=3,3,2,4]").gives("f32[2,<=2,2,4]");
    of_kernel("f32[3,3,2,?]").fails(Operand, "so many output features");
    of_kernel("f32[3,3,2,<=4]").fails(Operand, "so many output features");
    of(op((1, 2)), &["f32[?,4,4,2]", "f32[3,3,2,4]"]).gives("f32[?,2,2,4]");
}

#[test]
fn wrong_convolutions() {
    let w = WindowDim::new;
    let of_nhwc = |window: &[WindowDim], groups, kernel: &str| {
        of(convolution("b0f_0io->b0f", window, groups), &["f32[8,32,6]", kernel])
    };
    of_nhwc(&[w(3)], (1, 1), "f32[3,6,12]").gives("f32[8,30,12]");
    of_nhwc(&[w(3)], (1, 1), "f32[3,5,12]").fails(Operand, "6 input features are not 1 groups");
    of_nhwc(&[w(3)], (2, 1), "f32[3,3,11]").fails(Attribute, "do not divide");
    of_nhwc(&[w(3)], (1, 3), "f32[3,6,12]").fails(Attribute, "do not divide");
    of_nhwc(&[w(3)], (0, 1), "f32[3,6,12]").fails(Attribute, "must be 1 or more");
    of_nhwc(&[w(3)], (2, 2), "f32[3,3,12]").fails(Attribute, "not both");
    of_nhwc(&[w(4)], (1, 1), "f32[3,6,12]").fails(Attribute, "size 4 in spatial dim 0");
    of_nhwc(&[w(3), w(3)], (1, 1), "f32[3,6,12]").fails(Attribute, "differ in spatial dims");
    of_nhwc(&[w(3)], (1, 1), "f32[3,6,12,1]").fails(Operand, "takes arrays of rank 3");
    of_nhwc(&[w(0)], (1, 1), "f32[0,6,12]").fails(Attribute, "malformed in spatial dim 0");
    let malformed = [
        WindowDim { stride: 0, ..w(3) },
        WindowDim { base_dilation: 0, ..w(3) },
        WindowDim { window_dilation: -1, ..w(3) },
        WindowDim { padding_low: -40, ..w(3) },
        WindowDim { padding_high: i64::MAX, ..w(3) },
        WindowDim { window_dilation: i64::MAX, ..w(3) },
    ];
    for window in malformed {
        of_nhwc(&[window], (1, 1), "f32[3,6,12]").fails(Attribute, "malformed in spatial dim 0");
    }
    let mut dim_labels = labels("b0f_0io->b0f");
    dim_labels.output_feature = 0;
    let Op::Convolution(mut twice) = convolution("b0f_0io->b0f", &[w(3)], (1, 1)) else {
        return assert_eq!("a convolution", "something else");
    };
    twice.dim_labels = dim_labels;
    of(Op::Convolution(twice), &["f32[8,32,6]", "f32[3,6,12]"]).fails(Attribute, "dim 0 twice");
}
