//! Linear algebra, transforms and whole norms.

use tilewright_ir::ops::linalg::{BatchNormAttrs, CholeskyAttrs, FftAttrs, TriangularSolveAttrs};

use super::{Cx, unsupported};
use crate::error::Outcome;
use crate::value::Value;

pub(super) fn batch_norm(_cx: &mut Cx<'_, '_>, _attrs: &BatchNormAttrs) -> Outcome<Value> {
    Err(unsupported("it is not implemented"))
}

pub(super) fn cholesky(_cx: &mut Cx<'_, '_>, _attrs: &CholeskyAttrs) -> Outcome<Value> {
    Err(unsupported("it is not implemented"))
}

pub(super) fn fft(_cx: &mut Cx<'_, '_>, _attrs: &FftAttrs) -> Outcome<Value> {
    Err(unsupported("it is not implemented"))
}

pub(super) fn triangular_solve(
    _cx: &mut Cx<'_, '_>,
    _attrs: &TriangularSolveAttrs,
) -> Outcome<Value> {
    Err(unsupported("it is not implemented"))
}
