//! `gtsv`: systems of tridiagonal matrices.

use super::lapack::{Matrices, Number, ZERO, position, results, scratch};
use crate::error::Outcome;
use crate::eval::linalg::as_complex;
use crate::eval::{Cx, unsupported};
use crate::value::Value;

/// Operands: the diagonal below (its first element is not looked at), the
/// diagonal, the one above (less its last element), the right sides. Results:
/// the diagonals as elimination leaves them, the solutions, and the first step
/// without a pivot (0 if all have one).
pub(super) fn solve(cx: &mut Cx<'_, '_>) -> Outcome<Value> {
    let _scratch = scratch(cx)?;
    let mut right = Matrices::of(cx, 3)?;
    let (n, columns) = (right.rows, right.columns);
    let mut diagonals = Vec::with_capacity(3);
    for operand in 0..3 {
        let diagonal = cx.array(operand)?;
        if diagonal.len() != n.saturating_mul(right.batches) {
            return Err(unsupported("diagonals of another length than the right sides"));
        }
        diagonals.push(as_complex(diagonal)?);
    }
    let mut failures = Vec::new();
    for (batch, right) in right.each().enumerate() {
        let [below, on, above] = diagonals.as_mut_slice() else { continue };
        let range = batch * n..(batch + 1) * n;
        let mut system = System {
            below: &mut below[range.clone()],
            on: &mut on[range.clone()],
            above: &mut above[range],
            right,
            columns,
        };
        failures.push(system.solve().map_or(Ok(0), position)?);
    }
    diagonals.push(right.values);
    results(cx, diagonals, vec![failures])
}

struct System<'a> {
    below: &'a mut [Number],
    on: &'a mut [Number],
    above: &'a mut [Number],
    right: &'a mut [Number],
    columns: usize,
}

impl System<'_> {
    /// Solves in place. Returns the step at which there is no pivot.
    fn solve(&mut self) -> Option<usize> {
        let n = self.on.len();
        // Where rows were swapped there is a second diagonal above.
        let mut second = vec![ZERO; n];
        for k in 0..n.saturating_sub(1) {
            if self.on[k].l1_norm() >= self.below[k + 1].l1_norm() {
                if self.on[k] == ZERO {
                    return Some(k);
                }
                self.eliminate(k);
            } else {
                self.swap(k, &mut second);
            }
        }
        if n > 0 && self.on[n - 1] == ZERO {
            return Some(n - 1);
        }
        self.substitute(&second);
        for (below, &second) in self.below.iter_mut().skip(1).zip(&second) {
            *below = second;
        }
        None
    }

    fn eliminate(&mut self, k: usize) {
        let factor = self.below[k + 1] / self.on[k];
        self.on[k + 1] -= factor * self.above[k];
        for column in 0..self.columns {
            let from = factor * self.right[k * self.columns + column];
            self.right[(k + 1) * self.columns + column] -= from;
        }
    }

    /// Swaps two rows, then eliminates.
    fn swap(&mut self, k: usize, second: &mut [Number]) {
        let factor = self.on[k] / self.below[k + 1];
        self.on[k] = self.below[k + 1];
        let next = self.on[k + 1];
        self.on[k + 1] = self.above[k] - factor * next;
        self.above[k] = next;
        if k + 2 < self.on.len() {
            second[k] = self.above[k + 1];
            self.above[k + 1] = -factor * second[k];
        }
        for column in 0..self.columns {
            let (upper, lower) = (k * self.columns + column, (k + 1) * self.columns + column);
            self.right.swap(upper, lower);
            let from = factor * self.right[upper];
            self.right[lower] -= from;
        }
    }

    fn substitute(&mut self, second: &[Number]) {
        let n = self.on.len();
        for k in (0..n).rev() {
            for column in 0..self.columns {
                let solved = |row: usize| match self.right.get(row * self.columns + column) {
                    Some(&value) if row < n => value,
                    _ => ZERO,
                };
                let mut rest = self.right[k * self.columns + column];
                if k + 1 < n {
                    rest -= self.above[k] * solved(k + 1);
                }
                if k + 2 < n {
                    rest -= second[k] * solved(k + 2);
                }
                self.right[k * self.columns + column] = rest / self.on[k];
            }
        }
    }
}
