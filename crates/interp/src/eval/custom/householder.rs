//! Reflections: `geqrf`, which makes them, and `orgqr`, which multiplies them.
//!
//! A reflection is `I - tau v v*`, where `v` begins with a 1 that is not stored.

use super::lapack::{Matrices, Number, ZERO, results, scratch};
use crate::error::Outcome;
use crate::eval::linalg::as_complex;
use crate::eval::{Cx, unsupported};
use crate::value::Value;

/// `geqrf`: the upper triangle, the reflections' vectors below it, and their
/// factors.
pub(super) fn factor(cx: &mut Cx<'_, '_>) -> Outcome<Value> {
    let _scratch = scratch(cx)?;
    let mut matrices = Matrices::of(cx, 0)?;
    let (rows, columns) = (matrices.rows, matrices.columns);
    let mut factors = Vec::new();
    for matrix in matrices.each() {
        for k in 0..rows.min(columns) {
            let tau = reflect(matrix, rows, columns, k);
            apply(matrix, rows, columns, k, tau.conj());
            factors.push(tau);
        }
    }
    results(cx, vec![matrices.values, factors], Vec::new())
}

/// Makes column `k` vanish below its diagonal and stores the vector there.
fn reflect(a: &mut [Number], rows: usize, columns: usize, k: usize) -> Number {
    let below: f64 = (k + 1..rows).map(|row| a[row * columns + k].norm_sqr()).sum();
    let alpha = a[k * columns + k];
    if below == 0.0 && alpha.im == 0.0 {
        return ZERO;
    }
    let beta = -(alpha.norm_sqr() + below).sqrt().copysign(alpha.re);
    for row in k + 1..rows {
        a[row * columns + k] /= alpha - beta;
    }
    a[k * columns + k] = Number::new(beta, 0.0);
    Number::new((beta - alpha.re) / beta, -alpha.im / beta)
}

/// Reflects the columns past `k` by the vector in column `k`.
fn apply(a: &mut [Number], rows: usize, columns: usize, k: usize, tau: Number) {
    for column in k + 1..columns {
        let along: Number =
            (k + 1..rows).map(|row| a[row * columns + k].conj() * a[row * columns + column]).sum();
        let along = tau * (a[k * columns + column] + along);
        a[k * columns + column] -= along;
        for row in k + 1..rows {
            let part = a[row * columns + k] * along;
            a[row * columns + column] -= part;
        }
    }
}

/// `orgqr` and `ungqr`: the first columns of the product of the reflections.
pub(super) fn product(cx: &mut Cx<'_, '_>) -> Outcome<Value> {
    let _scratch = scratch(cx)?;
    let mut matrices = Matrices::of(cx, 0)?;
    let (rows, columns) = (matrices.rows, matrices.columns);
    let factors = cx.array(1)?;
    let count = factors.len() / matrices.batches.max(1);
    if count > columns || columns > rows {
        return Err(unsupported("more reflections than columns, or more columns than rows"));
    }
    let factors = as_complex(factors)?;
    let mut each = factors.chunks_exact(count.max(1));
    for matrix in matrices.each() {
        multiply(matrix, rows, columns, each.next().unwrap_or_default());
    }
    results(cx, vec![matrices.values], Vec::new())
}

fn multiply(a: &mut [Number], rows: usize, columns: usize, factors: &[Number]) {
    for column in factors.len()..columns {
        for row in 0..rows {
            a[row * columns + column] = unit(row == column);
        }
    }
    for (k, &tau) in factors.iter().enumerate().rev() {
        apply(a, rows, columns, k, tau);
        for row in k + 1..rows {
            a[row * columns + k] *= -tau;
        }
        a[k * columns + k] = unit(true) - tau;
        for row in 0..k {
            a[row * columns + k] = ZERO;
        }
    }
}

fn unit(one: bool) -> Number {
    if one { Number::new(1.0, 0.0) } else { ZERO }
}
