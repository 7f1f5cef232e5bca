//! Linear algebra, transforms, whole norms and random numbers.

use tilewright_ir::ops::attr::Real;
use tilewright_ir::ops::linalg::{
    BatchNormAttrs, CholeskyAttrs, FftAttrs, FftType, TriangularSolveAttrs,
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
            transpose_a: None,
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
}

#[test]
fn transforms_are_declared() {
    let fft = |fft_type, length: &[i64]| {
        Op::Fft(Box::new(FftAttrs { fft_type, fft_length: dims(length) }))
    };
    of(fft(FftType::Rfft, &[8]), &["f32[2,8]"]).declared("c64[2,5]").gives("c64[2,5]");
    of(fft(FftType::Fft, &[8]), &["c64[2,8]"]).fails(NeedsShape, "`fft`");
    of(fft(FftType::Fft, &[2, 2]), &["c64[8]"]).fails(Attribute, "does not fit c64[8]");
    of(fft(FftType::Fft, &[-1]), &["c64[8]"]).fails(Attribute, "does not fit");
}

#[test]
fn random_numbers_are_declared() {
    let rng = Op::Rng(Box::new(RngAttrs { distribution: Distribution::Uniform }));
    of(rng.clone(), &["f32[]", "f32[]"]).declared("f32[4]").gives("f32[4]");
    of(rng, &["f32[]", "f32[]"]).fails(NeedsShape, "`rng`");
    let bits =
        Op::RngBitGenerator(Box::new(RngBitGeneratorAttrs { algorithm: RngAlgorithm::ThreeFry }));
    let pair = "(u64[2], u32[5])";
    of(bits.clone(), &["u64[2]"]).declared(pair).gives(pair);
    of(bits, &["u64[3]"]).declared(pair).fails(Result, "keeps the shape u64[3] of its state");
    let state = Op::RngGetAndUpdateState(Box::new(RngStateAttrs { delta: 1 }));
    of(state, &[]).declared("u64[1]").gives("u64[1]");
}
