//! Linear algebra, transforms and whole norms.

use super::attr::{Real, attributes, words};
use crate::infer::{ShapeError, ShapeQuery, check_dims};
use crate::types::shape::{Dims, Shape};

attributes! {
    /// Attributes of the `batch-norm` ops.
    pub struct BatchNormAttrs {
        /// Added to the variance.
        epsilon: Real = "epsilon",
        /// The dim that counts features.
        feature_index: i64 = "feature_index",
    }

    /// Attributes of `cholesky`.
    pub struct CholeskyAttrs {
        /// Whether the lower triangle is read and written.
        lower: bool = "lower" or false,
    }

    /// Attributes of `fft`.
    pub struct FftAttrs {
        /// Which transform.
        fft_type: FftType = "fft_type",
        /// The lengths of the transformed minor dims.
        fft_length: Dims = "fft_length",
    }

    /// Attributes of `triangular-solve`.
    pub struct TriangularSolveAttrs {
        /// Whether the matrix stands left of the unknown.
        left_side: bool = "left_side" or false,
        /// Whether it is lower triangular.
        lower: bool = "lower" or false,
        /// Whether its diagonal is taken to be ones.
        unit_diagonal: bool = "unit_diagonal" or false,
        /// How it is transposed; not at all if absent.
        transpose_a: Option<TransposeA> = "transpose_a",
    }
}

words! {
    /// Which Fourier transform.
    pub enum FftType {
        /// Forward, complex to complex.
        Fft = "FFT",
        /// Inverse, complex to complex.
        Ifft = "IFFT",
        /// Forward, real to complex.
        Rfft = "RFFT",
        /// Inverse, complex to real.
        Irfft = "IRFFT",
    }

    /// How a triangular matrix is transposed before it is solved.
    pub enum TransposeA {
        /// Not at all.
        No = "NO_TRANSPOSE",
        /// Transposed.
        Transpose = "TRANSPOSE",
        /// Transposed and conjugated.
        Adjoint = "ADJOINT",
    }
}

/// Training yields result, mean, variance; gradients those of operand, scale
/// and offset; inference the result.
pub(super) fn batch_norm(q: &ShapeQuery<'_>, attrs: &BatchNormAttrs) -> Result<Shape, ShapeError> {
    let operand = q.array(0)?;
    check_dims("`batch-norm` feature_index", &[attrs.feature_index], operand.rank())?;
    let feature = usize::try_from(attrs.feature_index).unwrap_or(0);
    let per_feature = Shape::array(operand.element_type, [operand.dims()[feature]]);
    for index in 1..q.operands.len() {
        let given = q.operand(index)?;
        let is_gradient = matches!(q.op, super::Op::BatchNormGrad(_)) && index == 4;
        let fits = if is_gradient {
            given.compatible(q.operand(0)?)
        } else {
            given.compatible(&per_feature)
        };
        if !fits {
            return Err(ShapeError::operand(format!(
                "operand {index} of `{}` must be {}, not {given}",
                q.op.opcode(),
                if is_gradient { operand.to_string() } else { per_feature.to_string() }
            )));
        }
    }
    let whole = Shape::Array(operand.clone().with_layout(None));
    if matches!(q.op, super::Op::BatchNormInference(_)) {
        return Ok(whole);
    }
    Ok(Shape::Tuple(vec![whole, per_feature.clone(), per_feature]))
}

pub(super) fn cholesky(q: &ShapeQuery<'_>, _attrs: &CholeskyAttrs) -> Result<Shape, ShapeError> {
    let matrix = q.array(0)?;
    match matrix.dims() {
        [.., rows, columns] if rows == columns => Ok(matrix.clone().with_layout(None).into()),
        _ => Err(ShapeError::operand(format!("`cholesky` takes square matrices, not {matrix}"))),
    }
}

pub(super) fn fft(q: &ShapeQuery<'_>, attrs: &FftAttrs) -> Result<Shape, ShapeError> {
    let operand = q.array(0)?;
    if attrs.fft_length.len() > operand.rank() || attrs.fft_length.iter().any(|&l| l < 0) {
        return Err(ShapeError::attribute(format!(
            "fft_length {:?} does not fit {operand}",
            attrs.fft_length
        )));
    }
    q.declared().cloned()
}

/// The side of the right array that meets the matrix has its size.
pub(super) fn triangular_solve(
    q: &ShapeQuery<'_>,
    attrs: &TriangularSolveAttrs,
) -> Result<Shape, ShapeError> {
    let (matrix, right) = (q.array(0)?, q.array(1)?);
    let fits = match (matrix.dims(), right.dims()) {
        ([batch @ .., rows, columns], [same @ .., left, minor]) => {
            let meets = if attrs.left_side { left } else { minor };
            rows == columns && meets == rows && batch == same
        }
        _ => false,
    };
    if fits && matrix.element_type == right.element_type {
        return Ok(right.clone().with_layout(None).into());
    }
    Err(ShapeError::operand(format!(
        "`triangular-solve` takes square matrices and right sides of their rank, size and type, not {matrix} and {right}"
    )))
}
