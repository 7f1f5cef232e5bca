//! Linear algebra, transforms and whole norms.

use super::attr::{Real, attributes, words};
use crate::infer::{ShapeError, ShapeQuery, check_dims};
use crate::types::element::ElementType;
use crate::types::shape::{ArrayShape, Dims, Shape, UNBOUNDED, sizes_agree};

attributes! {
    /// Attributes of the `batch-norm` ops.
    pub struct BatchNormAttrs {
        /// Added to the variance.
        epsilon: Real = "epsilon",
        /// The dim of the features.
        feature_index: i64 = "feature_index",
    }

    /// Attributes of `cholesky`.
    pub struct CholeskyAttrs: Default {
        /// Whether the lower triangle is read and written.
        lower: bool = "lower" or false,
    }

    /// Attributes of `fft`.
    pub struct FftAttrs {
        /// The kind of transform.
        fft_type: FftType = "fft_type",
        /// The lengths of the transformed minor dims.
        fft_length: Dims = "fft_length",
    }

    /// Attributes of `triangular-solve`.
    pub struct TriangularSolveAttrs {
        /// Whether the matrix is on the left of the unknown.
        left_side: bool = "left_side" or false,
        /// Whether it is lower triangular.
        lower: bool = "lower" or false,
        /// Whether its diagonal is assumed to be all ones.
        unit_diagonal: bool = "unit_diagonal" or false,
        /// The transposition of the matrix. XLA's text and proto can leave it out; the shape
        /// rule then refuses the op, as XLA does.
        transpose_a: Option<TransposeA> = "transpose_a",
    }
}

impl Default for TriangularSolveAttrs {
    /// An upper triangular matrix on the right of the unknown, not transposed.
    fn default() -> Self {
        Self {
            left_side: false,
            lower: false,
            unit_diagonal: false,
            transpose_a: Some(TransposeA::No),
        }
    }
}

words! {
    /// The kind of Fourier transform.
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

    /// The transposition of a triangular matrix before it is solved.
    pub enum TransposeA {
        /// Not transposed.
        No = "NO_TRANSPOSE",
        /// Transposed.
        Transpose = "TRANSPOSE",
        /// Transposed and conjugated.
        Adjoint = "ADJOINT",
    }
}

/// Training returns result, mean and variance; gradients are those of operand, scale and offset;
/// inference returns the result.
pub(super) fn batch_norm(q: &ShapeQuery<'_>, attrs: &BatchNormAttrs) -> Result<Shape, ShapeError> {
    let operand = q.array(0)?;
    if !operand.element_type.is_float() {
        let opcode = q.op.opcode();
        return Err(ShapeError::operand(format!("`{opcode}` takes float arrays, not {operand}")));
    }
    check_dims("`batch-norm` feature_index", &[attrs.feature_index], operand.rank())?;
    let feature = usize::try_from(attrs.feature_index).unwrap_or(0);
    let per_feature = ArrayShape::new(operand.element_type, [operand.dims()[feature]]);
    let per_feature = Shape::Array(per_feature.with_dynamic(&[operand.dim_is_dynamic(feature)]));
    for index in 1..q.operands.len() {
        let given = q.operand(index)?;
        let is_gradient = matches!(q.op, super::Op::BatchNormGrad(_)) && index == 4;
        let fits = if is_gradient {
            q.compatible(given, q.operand(0)?)
        } else {
            q.compatible(given, &per_feature) || given.agrees(&per_feature)
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

/// Checks for floats or complex numbers, which the ops of linear algebra require.
fn check_field(q: &ShapeQuery<'_>, array: &ArrayShape) -> Result<(), ShapeError> {
    if array.element_type.is_float() || array.element_type.is_complex() {
        return Ok(());
    }
    let opcode = q.op.opcode();
    Err(ShapeError::operand(format!("`{opcode}` takes float or complex arrays, not {array}")))
}

pub(super) fn cholesky(q: &ShapeQuery<'_>, _attrs: &CholeskyAttrs) -> Result<Shape, ShapeError> {
    let matrix = q.array(0)?;
    check_field(q, matrix)?;
    match *matrix.dims() {
        [.., rows, columns] if sizes_agree(rows, columns) => {
            Ok(matrix.clone().with_layout(None).into())
        }
        _ => Err(ShapeError::operand(format!("`cholesky` takes square matrices, not {matrix}"))),
    }
}

/// The minor dims are transformed. Of a real signal of `n` elements only `n / 2 + 1` are kept,
/// because the others mirror them.
pub(super) fn fft(q: &ShapeQuery<'_>, attrs: &FftAttrs) -> Result<Shape, ShapeError> {
    let operand = q.array(0)?;
    let lengths = attrs.fft_length.as_slice();
    let Some(&last) = lengths.last().filter(|_| lengths.len() <= 3) else {
        return Err(ShapeError::attribute(format!(
            "`fft` transforms 1 to 3 dims, not {}",
            lengths.len()
        )));
    };
    let Some(first) = operand.rank().checked_sub(lengths.len()) else {
        return Err(ShapeError::attribute(format!(
            "fft_length {lengths:?} does not fit {operand}: it has more dims"
        )));
    };
    if lengths.iter().any(|&length| length < 0) {
        return Err(ShapeError::attribute(format!("fft_length {lengths:?} is negative")));
    }
    let result = match attrs.fft_type {
        // The dims may have other lengths, as in XLA.
        FftType::Fft | FftType::Ifft => {
            of_complex(q, operand)?;
            return Ok(operand.without_layout().into());
        }
        FftType::Rfft => of_real(q, operand)?,
        FftType::Irfft => {
            let complex = of_complex(q, operand)?;
            complex.complex_part().unwrap_or(complex)
        }
    };
    // One half and the middle element; nothing of an empty signal.
    let half = if last == 0 { 0 } else { last / 2 + 1 };
    let minor = operand.rank() - 1;
    let (given, yielded) = match attrs.fft_type {
        FftType::Rfft => (last, half),
        // XLA allows one element for an empty signal.
        _ if last == 0 && operand.dims()[minor] == 1 => (1, last),
        _ => (half, last),
    };
    for (dim, &length) in (first..).zip(lengths) {
        let expected = if dim == minor { given } else { length };
        if !sizes_agree(operand.dims()[dim], expected) {
            return Err(ShapeError::attribute(format!(
                "fft_length {lengths:?} does not fit {operand}: its dim {dim} should have size {expected}"
            )));
        }
    }
    let dynamic = operand.dim_is_dynamic(minor) && operand.dims()[minor] != UNBOUNDED;
    let result = operand.clone().with_layout(None).with_element_type(result);
    Ok(result.with_dim(minor, yielded, dynamic).into())
}

fn of_complex(q: &ShapeQuery<'_>, operand: &ArrayShape) -> Result<ElementType, ShapeError> {
    if operand.element_type.is_complex() {
        return Ok(operand.element_type);
    }
    let opcode = q.op.opcode();
    Err(ShapeError::operand(format!("this `{opcode}` takes complex arrays, not {operand}")))
}

fn of_real(q: &ShapeQuery<'_>, operand: &ArrayShape) -> Result<ElementType, ShapeError> {
    match operand.element_type {
        ElementType::F32 => Ok(ElementType::C64),
        ElementType::F64 => Ok(ElementType::C128),
        _ => Err(ShapeError::operand(format!(
            "this `{}` takes f32 or f64 arrays, not {operand}",
            q.op.opcode()
        ))),
    }
}

/// The dim of the right array that is multiplied with the matrix must have its size.
pub(super) fn triangular_solve(
    q: &ShapeQuery<'_>,
    attrs: &TriangularSolveAttrs,
) -> Result<Shape, ShapeError> {
    let (matrix, right) = (q.array(0)?, q.array(1)?);
    check_field(q, matrix)?;
    if attrs.transpose_a.is_none() {
        return Err(ShapeError::attribute(
            "`triangular-solve` needs transpose_a: NO_TRANSPOSE, TRANSPOSE or ADJOINT",
        ));
    }
    let fits = match (matrix.dims(), right.dims()) {
        ([batch @ .., rows, columns], [same @ .., left, minor]) => {
            let meets = if attrs.left_side { left } else { minor };
            sizes_agree(*rows, *columns) && sizes_agree(*meets, *rows) && batch == same
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
