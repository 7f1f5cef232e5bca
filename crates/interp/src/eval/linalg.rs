//! Linear algebra, transforms and whole norms, computed in `f64`.

use num_complex::Complex;
use tilewright_ir::ops::linalg::BatchNormAttrs;
use tilewright_ir::{Data, ElementType};

use super::{Cx, elementwise};
use crate::error::{Fault, Outcome};
use crate::value::{Array, Value};

pub(super) use super::fft::fft;
pub(super) use super::triangular::{cholesky, triangular_solve};

/// Elements as `f64` or, of complex arrays, `c128`.
pub(super) fn widened(array: &Array, wide: ElementType) -> Outcome<Data> {
    let mut out = Data::zeros(wide, 0);
    let convert = elementwise::convert_kernel(array.element_type(), wide)?;
    convert(&[array.data()], array.len(), &mut out)?;
    Ok(out)
}

/// Elements as complex numbers of `f64` parts.
pub(super) fn as_complex(array: &Array) -> Outcome<Vec<Complex<f64>>> {
    match widened(array, ElementType::C128)? {
        Data::C128(values) => Ok(values),
        _ => Err(crate::error::WRONG_STORAGE),
    }
}

/// Converts wide elements to the type of the result, or of one of the results.
pub(super) fn rounded(cx: &Cx<'_, '_>, result: usize, values: &Data) -> Outcome<Value> {
    let wide = match values {
        Data::C128(_) => ElementType::C128,
        _ => ElementType::F64,
    };
    let allocation = cx.allocate(cx.leaf_shape(result)?)?;
    let mut out = Data::zeros(allocation.element_type, 0);
    let convert = elementwise::convert_kernel(wide, allocation.element_type)?;
    convert(&[values], values.len(), &mut out)?;
    allocation.with(out)
}

/// Batch norms are written as plain ops before a program runs.
pub(super) fn batch_norm(_: &mut Cx<'_, '_>, _: &BatchNormAttrs) -> Outcome<Value> {
    Err(Fault::Internal("a batch norm that was not written as plain ops"))
}
