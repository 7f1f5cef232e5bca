//! Linear algebra, transforms, whole norms and random numbers.

use tilewright_ir::ops::attr::Real;
use tilewright_ir::ops::linalg::{
    BatchNormAttrs, CholeskyAttrs, FftAttrs, FftType, TransposeA, TriangularSolveAttrs,
};
use tilewright_ir::ops::random::{
    Distribution, RngAlgorithm, RngAttrs, RngBitGeneratorAttrs, RngStateAttrs,
};
use tilewright_ir::{Op, ShapeErrorKind::*};

use super::of;
use crate::common::dims;

#[test]
fn batch_norms() {
    let attrs = |feature_index| Box::new(BatchNormAttrs { epsilon: Real(1e-3), feature_index });
    let image = "f32[2,4,4,3]";
    let training = ["f32[2,4,4,3]", "f32[3]", "f32[3]"];
    of(Op::BatchNormTraining(attrs(3)), &training).gives("(f32[2,4,4,3], f32[3], f32[3])");
    let inference = [image, "f32[3]", "f32[3]", "f32[3]", "f32[3]"];
    of(Op::BatchNormInference(attrs(3)), &inference).gives(image);
    let grad = [image, "f32[3]", "f32[3]", "f32[3]", image];
    of(Op::BatchNormGrad(attrs(3)), &grad).gives("(f32[2,4,4,3], f32[3], f32[3])");

    of(Op::BatchNormTraining(attrs(0)), &training)
        .fails(Operand, "operand 1 of `batch-norm-training` must be f32[2], not f32[3]");
    of(Op::BatchNormTraining(attrs(4)), &training).fails(Attribute, "names dim 4");
    of(Op::BatchNormGrad(attrs(3)), &inference)
        .fails(Operand, "operand 4 of `batch-norm-grad` must be f32[2,4,4,3], not f32[3]");
    of(Op::BatchNormInference(attrs(3)), &grad).fails(Operand, "operand 4");
    for element in ["s32", "u8", "pred", "c64"] {
        let [image, one] = [format!("{element}[4,3]"), format!("{element}[3]")];
        let operands = [image.as_str(), &one, &one, &one, &image];
        of(Op::BatchNormTraining(attrs(1)), &operands[..3]).fails(Operand, "takes float arrays");
        of(Op::BatchNormGrad(attrs(1)), &operands).fails(Operand, "takes float arrays");
    }
}

#[test]
fn square_matrices() {
    let cholesky = Op::Cholesky(Box::new(CholeskyAttrs { lower: true }));
    of(cholesky.clone(), &["f32[5,3,3]"]).gives("f32[5,3,3]");
    of(cholesky.clone(), &["f32[3,4]"]).fails(Operand, "square matrices, not f32[3,4]");
    of(cholesky, &["f32[3]"]).fails(Operand, "square matrices");
    let solve = |left_side| {
        Op::TriangularSolve(Box::new(TriangularSolveAttrs {
            left_side,
            lower: true,
            unit_diagonal: false,
            transpose_a: Some(TransposeA::No),
        }))
    };
    of(solve(true), &["f32[5,3,3]", "f32[5,3,2]"]).gives("f32[5,3,2]");
    of(solve(false), &["f32[5,3,3]", "f32[5,2,3]"]).gives("f32[5,2,3]");
    of(solve(true), &["f32[3,3]", "f32[5,3,2]"]).fails(Operand, "f32[3,3] and f32[5,3,2]");
    of(solve(true), &["f32[3,4]", "f32[3,4]"]).fails(Operand, "square matrices");
    of(solve(true), &["f32[3,3]", "f32[2,3]"]).fails(Operand, "f32[3,3] and f32[2,3]");
    of(solve(false), &["f32[3,3]", "f32[3,2]"]).fails(Operand, "f32[3,3] and f32[3,2]");
    of(solve(true), &["f32[5,3,3]", "f32[4,3,2]"]).fails(Operand, "f32[4,3,2]");
    of(solve(true), &["f32[3,3]", "f64[3,2]"]).fails(Operand, "f64[3,2]");
    of(solve(true), &["f32[]", "f32[]"]).fails(Operand, "square matrices");
    let default = TriangularSolveAttrs::default();
    let unsaid = TriangularSolveAttrs { transpose_a: None, ..default.clone() };
    let solve = |attrs| of(Op::TriangularSolve(Box::new(attrs)), &["f32[3,3]", "f32[2,3]"]);
    solve(default).gives("f32[2,3]");
    solve(unsaid).fails(Attribute, "needs transpose_a");
}

#[test]
fn linear_algebra_is_of_floats() {
    let cholesky = || Op::Cholesky(Box::new(CholeskyAttrs { lower: true }));
    of(cholesky(), &["c64[4,4]"]).gives("c64[4,4]");
    of(cholesky(), &["f32[?,4]"]).gives("f32[?,4]");
    of(cholesky(), &["s32[4,4]"]).fails(Operand, "takes float or complex arrays, not s32[4,4]");
    let solve = Op::TriangularSolve(Box::new(TriangularSolveAttrs {
        left_side: true,
        lower: true,
        unit_diagonal: false,
        transpose_a: Some(TransposeA::No),
    }));
    of(solve.clone(), &["f32[2,?,4]", "f32[2,4,3]"]).gives("f32[2,4,3]");
    of(solve, &["s32[4,4]", "s32[4,3]"]).fails(Operand, "takes float or complex arrays");
}

/// As XLA's parser infers and refuses it; but that it does not hold `FFT` and
/// `IFFT` to their lengths.
#[test]
fn transforms_of_real_signals_keep_half() {
    use FftType::*;
    let fft = |fft_type, length: &[i64], operand: &str| {
        of(Op::Fft(Box::new(FftAttrs { fft_type, fft_length: dims(length) })), &[operand])
    };
    fft(Fft, &[8], "c64[2,8]").gives("c64[2,8]");
    fft(Ifft, &[3, 4], "c128[3,4]").gives("c128[3,4]");
    fft(Rfft, &[8], "f32[2,8]").gives("c64[2,5]");
    fft(Rfft, &[5], "f64[3,5]").gives("c128[3,3]");
    fft(Rfft, &[3, 4], "f32[3,4]").gives("c64[3,3]");
    fft(Irfft, &[4], "c64[3,3]").gives("f32[3,4]");
    fft(Irfft, &[3, 5], "c128[3,3]").gives("f64[3,5]");
    fft(Rfft, &[0], "f32[0]").gives("c64[0]");
    fft(Rfft, &[0, 4], "f32[0,4]").gives("c64[0,3]");
    fft(Irfft, &[0], "c64[0]").gives("f32[0]");
    fft(Irfft, &[0], "c64[1]").gives("f32[0]");
    fft(Fft, &[4], "c64[?,4]").gives("c64[?,4]");
    fft(Fft, &[3, 4], "c64[?,4]").gives("c64[?,4]");
    fft(Rfft, &[4], "f32[3,<=4]").gives("c64[3,<=3]");
    fft(Rfft, &[4], "f32[3,?]").gives("c64[3,3]");
    fft(Irfft, &[4], "c64[3,?]").gives("f32[3,4]");

    fft(Rfft, &[2, 4], "f32[3,4]").fails(Attribute, "its dim 0 should have size 2");
    fft(Irfft, &[6], "c64[3,3]").fails(Attribute, "its dim 1 should have size 4");
    fft(Irfft, &[0], "c64[7]").fails(Attribute, "should have size 0");
    fft(Rfft, &[0], "f32[7]").fails(Attribute, "should have size 0");
    fft(Fft, &[4], "c64[5]").gives("c64[5]");
    fft(Ifft, &[4, 4], "c64[3,4]").gives("c64[3,4]");
    fft(Fft, &[-1], "c64[8]").fails(Attribute, "is negative");
    fft(Fft, &[2, 2], "c64[8]").fails(Attribute, "does not fit c64[8]: it has more dims");
    fft(Fft, &[], "c64[3]").fails(Attribute, "transforms 1 to 3 dims, not 0");
    fft(Fft, &[2; 4], "c64[2,2,2,2]").fails(Attribute, "transforms 1 to 3 dims, not 4");
    fft(Fft, &[4], "f32[4]").fails(Operand, "takes complex arrays, not f32[4]");
    fft(Rfft, &[4], "c64[4]").fails(Operand, "takes f32 or f64 arrays, not c64[4]");
    fft(Rfft, &[4], "f16[4]").fails(Operand, "takes f32 or f64 arrays, not f16[4]");
    fft(Fft, &[4], "c64[4]").declared("c64[5]").fails(Result, "yields c64[4], not c64[5]");
}

#[test]
fn random_numbers_have_the_type_of_their_bounds() {
    let rng = |distribution, operands: &[&str], declared: &str| {
        of(Op::Rng(Box::new(RngAttrs { distribution })), operands).declared(declared)
    };
    use Distribution::*;
    rng(Uniform, &["f32[]", "f32[]"], "f32[4]").gives("f32[4]");
    rng(Uniform, &["s32[]", "s32[]"], "s32[4]").gives("s32[4]");
    rng(Normal, &["s32[]", "s32[]"], "s32[4]").fails(Operand, "cannot draw s32 numbers");
    rng(Uniform, &["f32[]", "f32[]"], "s32[4]").fails(Result, "yields f32[4], not s32[4]");
    rng(Uniform, &["f32[2]", "f32[]"], "f32[4]").fails(Operand, "two scalars of one type");
    rng(Uniform, &["f32[]", "s32[]"], "f32[4]").fails(Operand, "two scalars of one type");
    let undeclared = Op::Rng(Box::new(RngAttrs { distribution: Uniform }));
    of(undeclared, &["f32[]", "f32[]"]).fails(NeedsShape, "`rng`");
}

#[test]
fn random_bits_come_with_their_state() {
    let bits = |operand: &str, declared: &str| {
        let attrs = RngBitGeneratorAttrs { algorithm: RngAlgorithm::ThreeFry };
        of(Op::RngBitGenerator(Box::new(attrs)), &[operand]).declared(declared)
    };
    bits("u64[2]", "(u64[2], u32[5])").gives("(u64[2], u32[5])");
    bits("u64[2]", "u32[5]").gives("u32[5]");
    let part = "or its state u64[3] and an array";
    bits("u64[3]", "(u64[2], u32[5])").fails(Result, part);
    bits("u64[3]", "(u64[3], u32[5], u32[5])").fails(Result, part);
    bits("u64[3]", "token[]").fails(Result, part);
    let state = || Op::RngGetAndUpdateState(Box::new(RngStateAttrs { delta: 1 }));
    of(state(), &[]).gives("u64[2]");
    of(state(), &[]).declared("u64[3]").fails(Result, "yields u64[2], not u64[3]");
}
