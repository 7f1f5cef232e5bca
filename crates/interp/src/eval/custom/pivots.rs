//! Factors of matrices by elimination: `getrf` and `potrf`.

use super::lapack::{Matrices, Number, ZERO, option, position, results, scratch};
use crate::error::Outcome;
use crate::eval::Cx;
use crate::value::Value;

/// `getrf`: both triangles in one matrix, the rows swapped at each step, and the
/// first step without a pivot (0 if all have one).
pub(super) fn lower_upper(cx: &mut Cx<'_, '_>) -> Outcome<Value> {
    let _scratch = scratch(cx)?;
    let mut matrices = Matrices::of(cx, 0)?;
    let (rows, columns) = (matrices.rows, matrices.columns);
    let (mut pivots, mut failures) = (Vec::new(), Vec::new());
    for matrix in matrices.each() {
        let swaps = eliminate(matrix, rows, columns);
        let singular = swaps.iter().position(|&(_, found)| !found);
        failures.push(singular.map_or(Ok(0), position)?);
        for (row, _) in swaps {
            pivots.push(position(row)?);
        }
    }
    results(cx, vec![matrices.values], vec![pivots, failures])
}

/// Eliminates in place. For each step: the row that its pivot stood in, and
/// whether the pivot is a number other than 0.
fn eliminate(a: &mut [Number], rows: usize, columns: usize) -> Vec<(usize, bool)> {
    let mut swaps = Vec::with_capacity(rows.min(columns));
    for k in 0..rows.min(columns) {
        let pivot = largest(a, rows, columns, k);
        let found = a[pivot * columns + k] != ZERO;
        swaps.push((pivot, found));
        if !found {
            continue;
        }
        for column in 0..columns {
            a.swap(k * columns + column, pivot * columns + column);
        }
        for row in k + 1..rows {
            let factor = a[row * columns + k] / a[k * columns + k];
            a[row * columns + k] = factor;
            for column in k + 1..columns {
                let below = factor * a[k * columns + column];
                a[row * columns + column] -= below;
            }
        }
    }
    swaps
}

/// Returns the first row from `k` on with the largest element in column `k`; the size of a
/// complex number is the sum of its parts' sizes, as in LAPACK.
fn largest(a: &[Number], rows: usize, columns: usize, k: usize) -> usize {
    let size = |row: usize| a[row * columns + k].l1_norm();
    (k + 1..rows).fold(k, |best, row| if size(row) > size(best) { row } else { best })
}

/// Evaluates `potrf`: one triangle becomes the factor, the other stays as it is. The second
/// result is the first leading part that is not positive definite (0 if all are).
pub(super) fn positive_definite(cx: &mut Cx<'_, '_>) -> Outcome<Value> {
    let lower = option(cx, "uplo")? == 'L';
    let _scratch = scratch(cx)?;
    let mut matrices = Matrices::of(cx, 0)?;
    let n = matrices.rows;
    let mut failures = Vec::new();
    for matrix in matrices.each() {
        failures.push(square_root(matrix, n, lower).map_or(Ok(0), position)?);
    }
    results(cx, vec![matrices.values], vec![failures])
}

/// Returns the step at which it fails.
fn square_root(a: &mut [Number], n: usize, lower: bool) -> Option<usize> {
    // The same holds for the upper factor, which is the conjugate transpose.
    let at = |i: usize, j: usize| if lower { i * n + j } else { j * n + i };
    for j in 0..n {
        let before: f64 = (0..j).map(|k| a[at(j, k)].norm_sqr()).sum();
        let square = a[at(j, j)].re - before;
        if square.is_nan() || square <= 0.0 {
            return Some(j);
        }
        let pivot = square.sqrt();
        a[at(j, j)] = Number::new(pivot, 0.0);
        for i in j + 1..n {
            let sum: Number = (0..j).map(|k| a[at(i, k)] * a[at(j, k)].conj()).sum();
            a[at(i, j)] = (a[at(i, j)] - sum) / pivot;
        }
    }
    None
}
