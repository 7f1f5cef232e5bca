//! LAPACK, as JAX calls it on CPUs: `lapack_`, the letter of a type, the name of
//! a routine, `_ffi`. Computed in `f64` and rounded once.
//!
//! Only routines whose results are determined are evaluated: those of
//! eigenvalues and singular values leave signs, and more, to the library.

use num_complex::Complex;
use tilewright_ir::Data;
use tilewright_ir::ops::linalg::{TransposeA, TriangularSolveAttrs};

use super::{householder, pivots, tridiagonal};
use crate::error::{Fault, Outcome};
use crate::eval::linalg::{as_complex, rounded};
use crate::eval::triangular::{matrices, triangular_solve};
use crate::eval::{Cx, tuple, unsupported};
use crate::value::Value;

pub(super) type Number = Complex<f64>;

pub(super) const ZERO: Number = Number::new(0.0, 0.0);

/// A routine, without the letter of its type.
pub(super) struct Call<'a> {
    routine: &'a str,
}

impl<'a> Call<'a> {
    /// The routine that a target names.
    pub(super) fn of(target: &'a str) -> Option<Self> {
        let name = target.strip_prefix("lapack_")?.strip_suffix("_ffi")?;
        name.strip_prefix(['s', 'd', 'c', 'z']).map(|routine| Self { routine })
    }
}

pub(super) fn evaluate(cx: &mut Cx<'_, '_>, call: Call<'_>) -> Outcome<Value> {
    match call.routine {
        "geqrf" => householder::factor(cx),
        "getrf" => pivots::lower_upper(cx),
        "gtsv" => tridiagonal::solve(cx),
        "orgqr" | "ungqr" => householder::product(cx),
        "potrf" => pivots::positive_definite(cx),
        "trsm" => triangular(cx),
        "gees" | "geev" | "gesdd" | "gesvd" | "heevd" | "syevd" => Err(unsupported(format!(
            "LAPACK's `{}` leaves signs and phases of its vectors open, so there is no one result; \
             compare what is made of them instead, and cut the program before it",
            call.routine
        ))),
        other => Err(unsupported(format!(
            "LAPACK's `{other}` has no evaluation; cut the program before it (docs/oracle.md lists \
             the routines that have one)"
        ))),
    }
}

/// Returns a character of the call's configuration, as `uplo = 76 : ui8`.
pub(super) fn option(cx: &Cx<'_, '_>, name: &str) -> Outcome<char> {
    let text = cx.module().extras(cx.id).and_then(|extras| extras.backend_config.as_ref());
    let text = text.map_or("", |text| &*text.0);
    let fields = text.split(['{', '}', ',', '"']).filter_map(|field| field.split_once('='));
    let value = fields.filter(|(key, _)| key.trim() == name).map(|(_, value)| value).next();
    let number = value.and_then(|value| value.split(':').next()?.trim().parse::<u8>().ok());
    number.map(char::from).ok_or_else(|| {
        unsupported(format!(
            "its backend_config does not say `{name}`, as in `{{{name} = 76 : ui8}}`"
        ))
    })
}

/// Batches of matrices in row-major order.
pub(super) struct Matrices {
    pub(super) values: Vec<Number>,
    pub(super) rows: usize,
    pub(super) columns: usize,
    pub(super) batches: usize,
}

impl Matrices {
    /// Returns an operand, with its work and memory counted.
    pub(super) fn of(cx: &Cx<'_, '_>, operand: usize) -> Outcome<Self> {
        let array = cx.array(operand)?;
        let (rows, columns, batches) = matrices(array)?;
        cx.spend(array.len().saturating_mul(rows.min(columns)).max(array.len()))?;
        if array.len() == 0 {
            return Ok(Self { values: Vec::new(), rows, columns, batches: 0 });
        }
        Ok(Self { values: as_complex(array)?, rows, columns, batches })
    }

    /// Returns each matrix.
    pub(super) fn each(&mut self) -> impl Iterator<Item = &mut [Number]> {
        let size = self.rows.saturating_mul(self.columns).max(1);
        self.values.chunks_exact_mut(size)
    }
}

/// Results of several arrays: numbers first, then integers (pivots and what
/// LAPACK calls `info`).
pub(super) fn results(
    cx: &Cx<'_, '_>,
    numbers: Vec<Vec<Number>>,
    integers: Vec<Vec<i32>>,
) -> Outcome<Value> {
    let mut values = Vec::with_capacity(numbers.len() + integers.len());
    for (index, numbers) in numbers.into_iter().enumerate() {
        values.push(rounded(cx, index, &Data::C128(numbers))?);
    }
    for integers in integers {
        let result = cx.allocate(cx.leaf_shape(values.len())?)?;
        values.push(result.of(integers)?);
    }
    match values.pop() {
        Some(only) if cx.shape().as_tuple().is_none() => Ok(only),
        last => Ok(tuple(values.into_iter().chain(last))),
    }
}

/// Returns a position as LAPACK counts, from 1.
pub(super) fn position(index: usize) -> Outcome<i32> {
    let position = i32::try_from(index).ok().and_then(|index| index.checked_add(1));
    position.ok_or(Fault::Internal("a matrix has more than 2^31 rows"))
}

/// Room for the numbers of some operands, in `c128`, a few times over.
pub(super) fn scratch(cx: &Cx<'_, '_>) -> Outcome<crate::limits::Charge> {
    let mut elements: usize = 0;
    for operand in &cx.operands {
        elements = elements.saturating_add(operand.array()?.len());
    }
    cx.scratch(3 * size_of::<Number>(), elements)
}

fn triangular(cx: &mut Cx<'_, '_>) -> Outcome<Value> {
    let mut attrs = TriangularSolveAttrs {
        left_side: option(cx, "side")? == 'L',
        lower: option(cx, "uplo")? == 'L',
        unit_diagonal: option(cx, "diag")? == 'U',
        transpose_a: None,
    };
    attrs.transpose_a = Some(match option(cx, "trans_x")? {
        'T' => TransposeA::Transpose,
        'C' => TransposeA::Adjoint,
        _ => TransposeA::No,
    });
    triangular_solve(cx, &attrs)
}
