//! Elementwise ops.

use tilewright_ir::ops::elementwise::{
    CompareAttrs, CompareOrder, Direction, ReducePrecisionAttrs,
};
use tilewright_ir::{ElementType, Family, Op, Opcode, ShapeErrorKind::*};

use super::of;
use crate::common::plain;

/// Opcodes by the types that XLA lets them have.
const FLOAT_ONLY: &[Opcode] = &[
    Opcode::Cbrt,
    Opcode::Ceil,
    Opcode::Erf,
    Opcode::Floor,
    Opcode::RoundNearestAfz,
    Opcode::RoundNearestEven,
];
const FLOAT_OR_COMPLEX: &[Opcode] = &[
    Opcode::Acos,
    Opcode::Acosh,
    Opcode::Asin,
    Opcode::Asinh,
    Opcode::Atanh,
    Opcode::Cos,
    Opcode::Cosh,
    Opcode::Exp,
    Opcode::Expm1,
    Opcode::Log,
    Opcode::Log1p,
    Opcode::Logistic,
    Opcode::Rsqrt,
    Opcode::Sin,
    Opcode::Sinh,
    Opcode::Sqrt,
    Opcode::Tan,
    Opcode::Tanh,
];
const INTEGER: &[Opcode] = &[Opcode::Clz, Opcode::PopulationCount];
const BITS: &[Opcode] = &[Opcode::And, Opcode::Or, Opcode::Xor];
const SHIFTS: &[Opcode] =
    &[Opcode::ShiftLeft, Opcode::ShiftRightArithmetic, Opcode::ShiftRightLogical];
const ARITHMETIC: &[Opcode] = &[Opcode::Divide, Opcode::Power, Opcode::Remainder, Opcode::Subtract];
const ANY: &[Opcode] = &[Opcode::Add, Opcode::Maximum, Opcode::Minimum, Opcode::Multiply];

#[test]
fn one_operand_gives_its_shape() {
    for &opcode in FLOAT_ONLY {
        of(plain(opcode), &["f32[2,3]"]).gives("f32[2,3]");
        of(plain(opcode), &["bf16[]"]).gives("bf16[]");
        for wrong in ["s32[2]", "pred[2]", "c64[2]"] {
            of(plain(opcode), &[wrong]).fails(Operand, "takes");
        }
    }
    for &opcode in FLOAT_OR_COMPLEX {
        of(plain(opcode), &["f16[4,<=2]"]).gives("f16[4,<=2]");
        of(plain(opcode), &["c64[0]"]).gives("c64[0]");
        for wrong in ["s32[2]", "u8[2]", "pred[2]"] {
            of(plain(opcode), &[wrong]).fails(Operand, "takes");
        }
    }
    for &opcode in INTEGER {
        of(plain(opcode), &["u32[5]"]).gives("u32[5]");
        of(plain(opcode), &["s8[5]"]).gives("s8[5]");
        for wrong in ["f32[2]", "pred[2]", "c64[2]"] {
            of(plain(opcode), &[wrong]).fails(Operand, "takes");
        }
    }
    of(Op::Negate, &["s32[3]"]).gives("s32[3]");
    of(Op::Negate, &["u8[3]"]).gives("u8[3]");
    of(Op::Negate, &["c128[3]"]).gives("c128[3]");
    of(Op::Negate, &["pred[3]"]).fails(Operand, "`negate` takes");
    of(Op::Sign, &["f64[3]"]).gives("f64[3]");
    of(Op::Sign, &["s16[3]"]).gives("s16[3]");
    for wrong in ["pred[3]", "u8[3]"] {
        of(Op::Sign, &[wrong]).fails(Operand, "`sign` takes");
    }
    of(Op::Not, &["pred[3]"]).gives("pred[3]");
    of(Op::Not, &["u4[3]"]).gives("u4[3]");
    of(Op::Not, &["f32[3]"]).fails(Operand, "`not` takes");
    of(Op::Sinh, &["(f32[2])"]).fails(Operand, "must be an array, not (f32[2])");
    of(Op::Sinh, &["token[]"]).fails(Operand, "must be an array, not token[]");
}

#[test]
fn the_type_changes_where_it_must() {
    of(Op::Abs, &["f32[2]"]).gives("f32[2]");
    of(Op::Abs, &["s64[2]"]).gives("s64[2]");
    of(Op::Abs, &["c64[2]"]).gives("f32[2]");
    of(Op::Abs, &["c128[2]"]).gives("f64[2]");
    of(Op::Abs, &["pred[2]"]).fails(Operand, "`abs` takes signed integer or float or complex");
    of(Op::Abs, &["u32[2]"]).fails(Operand, "not u32[2]");
    for op in [Op::Real, Op::Imag] {
        of(op.clone(), &["c64[2]"]).gives("f32[2]");
        of(op.clone(), &["c128[]"]).gives("f64[]");
        of(op.clone(), &["f32[2]"]).gives("f32[2]");
        of(op, &["s32[2]"]).fails(Operand, "takes");
    }
    of(Op::IsFinite, &["f8e5m2[7]"]).gives("pred[7]");
    of(Op::IsFinite, &["s32[7]"]).fails(Operand, "takes float arrays, not s32[7]");
    of(Op::IsFinite, &["c64[7]"]).fails(Operand, "takes float arrays");
    of(Op::Complex, &["f32[2]", "f32[2]"]).gives("c64[2]");
    of(Op::Complex, &["f64[2]", "f64[2]"]).gives("c128[2]");
    of(Op::Complex, &["bf16[2]", "bf16[2]"]).fails(Operand, "f32 or f64 parts, not bf16");
    of(Op::Complex, &["f32[2]", "f64[2]"]).fails(Operand, "differ in type");
    of(Op::Complex, &["f32[2]", "f32[3]"]).fails(Operand, "differ in dims");
    of(Op::Convert, &["f32[2,3]"]).declared("bf16[2,3]").gives("bf16[2,3]");
    of(Op::Convert, &["pred[]"]).declared("c64[]").gives("c64[]");
    of(Op::Convert, &["f32[2,3]"]).declared("bf16[3,2]").fails(Result, "yields bf16[2,3], not");
    of(Op::Convert, &["f32[2]"]).declared("(f32[2])").fails(Result, "yields an array");
    of(Op::Convert, &["f32[2]"]).fails(NeedsShape, "`convert` cannot be inferred");
    of(Op::StochasticConvert, &["f32[2]", "u32[2]"]).declared("bf16[2]").gives("bf16[2]");
    of(Op::StochasticConvert, &["f32[2]", "u32[3]"])
        .declared("bf16[2]")
        .fails(Operand, "differ in dims");
    for wrong in [["s32[2]", "u32[2]"], ["f32[2]", "s32[2]"], ["f32[2]", "u16[2]"]] {
        of(Op::StochasticConvert, &wrong)
            .declared("s8[2]")
            .fails(Operand, "takes floats and unsigned integers of as many bits");
    }
}

#[test]
fn two_operands_agree_in_type_and_dims() {
    for &opcode in ANY.iter().chain(ARITHMETIC) {
        of(plain(opcode), &["f32[2,3]", "f32[2,3]"]).gives("f32[2,3]");
        of(plain(opcode), &["s4[2]", "s4[2]"]).gives("s4[2]");
        of(plain(opcode), &["f32[2,3]", "f32[3]"]).fails(Operand, "broadcast the smaller one");
        of(plain(opcode), &["f32[2,3]", "f32[]"]).fails(Operand, "broadcast the smaller one");
        of(plain(opcode), &["f32[4]", "f32[<=5]"]).fails(Operand, "differ in dims");
        of(plain(opcode), &["f32[2]", "bf16[2]"]).fails(Operand, "differ in type: f32 and bf16");
    }
    for &opcode in ANY {
        of(plain(opcode), &["pred[2]", "pred[2]"]).gives("pred[2]");
    }
    for &opcode in ARITHMETIC {
        of(plain(opcode), &["pred[2]", "pred[2]"]).fails(Operand, "takes");
    }
    for &opcode in BITS {
        of(plain(opcode), &["pred[2]", "pred[2]"]).gives("pred[2]");
        of(plain(opcode), &["u8[2]", "u8[2]"]).gives("u8[2]");
        of(plain(opcode), &["f32[2]", "f32[2]"]).fails(Operand, "takes");
    }
    for &opcode in SHIFTS.iter().chain(&[Opcode::Mulhi]) {
        of(plain(opcode), &["s32[2]", "s32[2]"]).gives("s32[2]");
        of(plain(opcode), &["f32[2]", "f32[2]"]).fails(Operand, "takes");
        of(plain(opcode), &["pred[2]", "pred[2]"]).fails(Operand, "takes");
    }
    of(Op::Atan2, &["f32[2]", "f32[2]"]).gives("f32[2]");
    of(Op::Atan2, &["pred[2]", "pred[2]"]).fails(Operand, "takes");
}

#[test]
fn every_elementwise_op_is_in_this_file() {
    let mut listed: Vec<Opcode> = [FLOAT_ONLY, FLOAT_OR_COMPLEX, INTEGER, BITS, SHIFTS].concat();
    listed.extend(ARITHMETIC.iter().chain(ANY));
    listed.extend([
        Opcode::Abs,
        Opcode::Atan2,
        Opcode::Clamp,
        Opcode::Compare,
        Opcode::Complex,
        Opcode::Convert,
        Opcode::Imag,
        Opcode::IsFinite,
        Opcode::Mulhi,
        Opcode::Negate,
        Opcode::Not,
        Opcode::Real,
        Opcode::ReducePrecision,
        Opcode::Select,
        Opcode::Sign,
        Opcode::StochasticConvert,
    ]);
    listed.sort();
    let mut all: Vec<Opcode> =
        Opcode::ALL.iter().copied().filter(|o| o.family() == Family::Elementwise).collect();
    all.sort();
    assert_eq!(listed, all);
    assert!(all.iter().all(|o| o.is_elementwise()));
    let others = Opcode::ALL.iter().filter(|o| o.family() != Family::Elementwise);
    assert!(others.copied().all(|o| !o.is_elementwise()));
}

#[test]
fn commutative_ops_have_two_operands_and_associative_ones_are_the_monoids() {
    let of = |test: fn(Opcode) -> bool| -> Vec<&str> {
        Opcode::ALL.iter().filter(|&&o| test(o)).map(|o| o.name()).collect()
    };
    let associative = ["add", "and", "maximum", "minimum", "multiply", "or", "xor"];
    assert_eq!(of(Opcode::is_associative), associative);
    let commutative = ["add", "and", "maximum", "minimum", "mulhi", "multiply", "or", "xor"];
    assert_eq!(of(Opcode::is_commutative), commutative);
    for &opcode in Opcode::ALL.iter().filter(|o| o.is_commutative()) {
        assert!(opcode.arity().admits(2) && !opcode.arity().admits(3), "{opcode}");
    }
}

#[test]
fn compare_orders_as_the_type_allows() {
    let op = |order| Op::Compare(Box::new(CompareAttrs { direction: Direction::Lt, order }));
    use CompareOrder::{Float, Signed, TotalOrder, Unsigned};
    let table = [
        (ElementType::F32, vec![Float, TotalOrder]),
        (ElementType::BF16, vec![Float, TotalOrder]),
        (ElementType::C64, vec![Float, TotalOrder]),
        (ElementType::S32, vec![Signed]),
        (ElementType::U8, vec![Unsigned]),
        (ElementType::Pred, vec![Unsigned]),
    ];
    for (element_type, right) in table {
        let operand = format!("{element_type}[2,3]");
        let operands = [operand.as_str(), operand.as_str()];
        of(op(None), &operands).gives("pred[2,3]");
        for order in [Float, TotalOrder, Signed, Unsigned] {
            let case = of(op(Some(order)), &operands);
            if right.contains(&order) {
                case.gives("pred[2,3]");
            } else {
                case.fails(Attribute, "cannot order");
            }
        }
    }
    of(op(None), &["f32[2]", "s32[2]"]).fails(Operand, "differ in type");
}

#[test]
fn select_and_clamp_take_scalars_too() {
    of(Op::Select, &["pred[2]", "f32[2]", "f32[2]"]).gives("f32[2]");
    of(Op::Select, &["pred[]", "f32[2]", "f32[2]"]).gives("f32[2]");
    of(Op::Select, &["pred[3]", "f32[2]", "f32[2]"]).fails(Operand, "pred[] or have the dims");
    of(Op::Select, &["s32[2]", "f32[2]", "f32[2]"]).fails(Operand, "not s32[2]");
    of(Op::Select, &["pred[2]", "f32[2]", "s32[2]"]).fails(Operand, "f32[2] and s32[2]");
    let tuples = ["pred[]", "(f32[], s32[])", "(f32[], s32[])"];
    of(Op::Select, &tuples).fails(Operand, "operand 1 of `select` must be an array");
    of(Op::Select, &["pred[]", "token[]", "token[]"]).fails(Operand, "must be an array");
    of(Op::Clamp, &["f32[]", "f32[2]", "f32[]"]).gives("f32[2]");
    of(Op::Clamp, &["f32[2]", "f32[2]", "f32[]"]).gives("f32[2]");
    of(Op::Clamp, &["f32[3]", "f32[2]", "f32[]"]).fails(Operand, "not f32[3]");
    of(Op::Clamp, &["f32[]", "f32[2]", "s32[]"]).fails(Operand, "not s32[]");
}

#[test]
fn reduce_precision_keeps_the_shape() {
    let op = |exponent_bits, mantissa_bits| {
        Op::ReducePrecision(Box::new(ReducePrecisionAttrs { exponent_bits, mantissa_bits }))
    };
    of(op(5, 10), &["f32[2]"]).gives("f32[2]");
    of(op(1, 0), &["bf16[2]"]).gives("bf16[2]");
    of(op(0, 10), &["f32[2]"]).fails(Attribute, "exponent_bits >= 1");
    of(op(5, -1), &["f32[2]"]).fails(Attribute, "mantissa_bits >= 0");
    of(op(5, 10), &["s32[2]"]).fails(Operand, "takes");
}

/// XLA's parser infers these shapes if they are left out.
#[test]
fn operands_of_unknown_size() {
    let add = |left: &str, right: &str| of(Op::Add, &[left, right]);
    for (left, right, result) in [
        ("f32[?,4]", "f32[?,4]", "f32[?,4]"),
        ("f32[?,4]", "f32[3,4]", "f32[3,4]"),
        ("f32[3,4]", "f32[?,4]", "f32[3,4]"),
        ("f32[<=3,4]", "f32[3,4]", "f32[<=3,4]"),
        ("f32[3,4]", "f32[<=3,4]", "f32[<=3,4]"),
        ("f32[<=3,4]", "f32[?,4]", "f32[<=3,4]"),
        ("f32[?,4]", "f32[<=3,4]", "f32[<=3,4]"),
    ] {
        add(left, right).gives(result);
        add(left, right).declared("f32[3,4]").gives(result);
    }
    add("f32[<=4]", "f32[<=3]").fails(Operand, "differ in dims");
    add("f32[<=4]", "f32[4]").declared("f32[<=5]").fails(Result, "yields f32[<=4]");

    let select = |operands: [&str; 3]| of(Op::Select, &operands);
    select(["pred[?]", "f32[4]", "f32[4]"]).gives("f32[?]");
    select(["pred[4]", "f32[?]", "f32[4]"]).gives("f32[4]");
    select(["pred[4]", "f32[<=4]", "f32[4]"]).gives("f32[<=4]");
    select(["pred[<=4]", "f32[4]", "f32[4]"]).gives("f32[<=4]");
    select(["pred[]", "f32[<=4]", "f32[4]"]).gives("f32[<=4]");
    select(["pred[]", "f32[?]", "f32[4]"]).gives("f32[4]");
    select(["pred[<=5]", "f32[4]", "f32[4]"]).fails(Operand, "the dims of the values");

    let clamp = |operands: [&str; 3]| of(Op::Clamp, &operands);
    clamp(["f32[?]", "f32[4]", "f32[4]"]).gives("f32[4]");
    clamp(["f32[4]", "f32[?]", "f32[4]"]).gives("f32[?]");
    clamp(["f32[<=4]", "f32[4]", "f32[4]"]).gives("f32[4]");
}
