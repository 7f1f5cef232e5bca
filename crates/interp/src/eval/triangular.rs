//! Triangular matrices: `cholesky` and `triangular-solve`.

use num_complex::Complex;
use tilewright_ir::Data;
use tilewright_ir::ops::linalg::{CholeskyAttrs, TransposeA, TriangularSolveAttrs};
use tilewright_ir::shape::checked_product;

use super::linalg::{as_complex, rounded};
use super::{Cx, unsupported};
use crate::error::{Fault, Outcome};
use crate::strides::extent;
use crate::value::{Array, Value};

type Number = Complex<f64>;

const ZERO: Number = Number::new(0.0, 0.0);

/// Rows, columns and number of matrices of an array.
pub(super) fn matrices(array: &Array) -> Outcome<(usize, usize, usize)> {
    match array.dims() {
        [batch @ .., rows, columns] => {
            // Beside a 0, sizes may be too large to multiply.
            let batches = checked_product(batch).map_or(usize::MAX, extent);
            Ok((extent(*rows), extent(*columns), batches))
        }
        _ => Err(Fault::Internal("its operand is no matrix")),
    }
}

fn check_type(array: &Array) -> Outcome<()> {
    let element_type = array.element_type();
    if element_type.is_float() || element_type.is_complex() {
        return Ok(());
    }
    Err(unsupported(format!("it takes no {element_type} operands")))
}

/// Reads and yields one triangle; the other one is zero. A matrix that is not
/// positive definite yields NaN.
pub(super) fn cholesky(cx: &mut Cx<'_, '_>, attrs: &CholeskyAttrs) -> Outcome<Value> {
    if let Some(empty) = cx.empty_result()? {
        return Ok(empty);
    }
    let operand = cx.array(0)?;
    check_type(operand)?;
    let (n, _, batches) = matrices(operand)?;
    let _scratch = cx.scratch(3 * size_of::<Number>(), operand.len())?;
    cx.spend(operand.len().saturating_mul(n))?;
    let a = as_complex(operand)?;
    let mut out = vec![ZERO; a.len()];
    for batch in 0..batches {
        let range = batch * n * n..(batch + 1) * n * n;
        factor(&a[range.clone()], &mut out[range], n, attrs.lower);
    }
    rounded(cx, 0, &Data::C128(out))
}

fn factor(a: &[Number], out: &mut [Number], n: usize, lower: bool) {
    // The upper factor is the lower one's conjugate transpose.
    let at = |i: usize, j: usize| if lower { i * n + j } else { j * n + i };
    let read = |i: usize, j: usize| if lower { a[i * n + j] } else { a[j * n + i].conj() };
    let mut l = vec![ZERO; n * n];
    let mut positive = true;
    for j in 0..n {
        let before: f64 = (0..j).map(|k| l[j * n + k].norm_sqr()).sum();
        let square = read(j, j).re - before;
        positive &= square > 0.0;
        let pivot = square.sqrt();
        l[j * n + j] = Number::new(pivot, 0.0);
        for i in j + 1..n {
            let sum: Number = (0..j).map(|k| l[i * n + k] * l[j * n + k].conj()).sum();
            l[i * n + j] = (read(i, j) - sum) / pivot;
        }
    }
    for i in 0..n {
        for j in 0..=i {
            let value = if lower { l[i * n + j] } else { l[i * n + j].conj() };
            out[at(i, j)] = if positive { value } else { Number::new(f64::NAN, 0.0) };
        }
    }
}

/// Solves `op(a) x = b` or, from the right, `x op(a) = b`.
pub(super) fn triangular_solve(
    cx: &mut Cx<'_, '_>,
    attrs: &TriangularSolveAttrs,
) -> Outcome<Value> {
    if let Some(empty) = cx.empty_result()? {
        return Ok(empty);
    }
    let (matrix, right) = (cx.array(0)?, cx.array(1)?);
    check_type(matrix)?;
    let (n, _, batches) = matrices(matrix)?;
    let (rows, columns, right_batches) = matrices(right)?;
    let side = if attrs.left_side { rows } else { columns };
    if side != n || batches != right_batches {
        return Err(unsupported("operands whose sizes do not fit each other"));
    }
    let numbers = matrix.len().saturating_add(right.len().saturating_mul(2));
    let _scratch = cx.scratch(size_of::<Number>(), numbers)?;
    cx.spend(right.len().saturating_mul(n))?;
    let a = as_complex(matrix)?;
    let mut x = as_complex(right)?;
    let system = System { n, attrs };
    for batch in 0..batches {
        let a = &a[batch * n * n..(batch + 1) * n * n];
        let x = &mut x[batch * rows * columns..(batch + 1) * rows * columns];
        // From the right, every row is a system of the transposed matrix.
        let (systems, first, step) =
            if attrs.left_side { (columns, 1, columns) } else { (rows, columns, 1) };
        for i in 0..systems {
            system.solve(a, x, i * first, step);
        }
    }
    rounded(cx, 0, &Data::C128(x))
}

struct System<'a> {
    n: usize,
    attrs: &'a TriangularSolveAttrs,
}

impl System<'_> {
    fn is_transposed(&self) -> bool {
        matches!(self.attrs.transpose_a, Some(TransposeA::Transpose | TransposeA::Adjoint))
    }

    /// Returns an element of the matrix that multiplies a column of unknowns.
    fn element(&self, a: &[Number], i: usize, j: usize) -> Number {
        let transposed = self.is_transposed();
        let (i, j) = if transposed == self.attrs.left_side { (j, i) } else { (i, j) };
        let value = a[i * self.n + j];
        if self.attrs.transpose_a == Some(TransposeA::Adjoint) { value.conj() } else { value }
    }

    /// Replaces the right side at `first`, `first + step` ... by the solution.
    fn solve(&self, a: &[Number], x: &mut [Number], first: usize, step: usize) {
        let transposed = self.is_transposed();
        // Transposed once (either way), a lower triangle is an upper one.
        let lower = self.attrs.lower == (transposed != self.attrs.left_side);
        for turn in 0..self.n {
            let i = if lower { turn } else { self.n - 1 - turn };
            let known = if lower { 0..i } else { i + 1..self.n };
            let sum: Number = known.map(|j| self.element(a, i, j) * x[first + j * step]).sum();
            let rest = x[first + i * step] - sum;
            let pivot = self.element(a, i, i);
            x[first + i * step] = if self.attrs.unit_diagonal { rest } else { rest / pivot };
        }
    }
}
