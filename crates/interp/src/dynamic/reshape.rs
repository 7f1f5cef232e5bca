//! A reshape of dims known only at run time: which of the result's dims has
//! which size.

use std::ops::Range;

use tilewright_ir::shape::checked_product;
use tilewright_ir::{ArrayShape, Dims};

use crate::error::Outcome;
use crate::eval::unsupported;

/// Returns the dims of a reshape to `to` of an array that is declared as `from` and has the
/// dims `actual`. Bounds are cut where both shapes have a boundary; in each piece, the result's
/// single dynamic dim follows from the others.
pub(super) fn dims(from: &ArrayShape, actual: &[i64], to: &ArrayShape) -> Outcome<Dims> {
    let pieces = match (from.num_elements(), to.num_elements()) {
        (Some(have), Some(want)) if have == want && have > 0 => pieces(from.dims(), to.dims()),
        // Unbounded or empty dims share no useful boundaries.
        _ => vec![(0..from.rank(), 0..to.rank())],
    };
    let mut dims = Dims::from(to.dims());
    for (inputs, outputs) in pieces {
        let given = part(actual, &inputs);
        let dynamic: Vec<usize> = outputs.clone().filter(|&dim| to.dim_is_dynamic(dim)).collect();
        match *dynamic {
            [] => {}
            [only] => dims[only] = rest(given, &dims, &outputs, only)?,
            // Dim by dim, as long as bounds are equal.
            _ if part(from.dims(), &inputs) == part(to.dims(), &outputs) => {
                dims[outputs].copy_from_slice(given);
            }
            _ => {
                return Err(unsupported(format!(
                    "{from} does not say which of the dynamic dims of {to} has which size"
                )));
            }
        }
    }
    check_count(actual, &dims)?;
    Ok(dims)
}

/// Whether dims have as many elements as others.
pub(super) fn check_count(from: &[i64], to: &[i64]) -> Outcome<()> {
    if checked_product(from).is_some() && checked_product(from) == checked_product(to) {
        return Ok(());
    }
    Err(unsupported(format!("dims {from:?} do not have as many elements as {to:?}")))
}

fn part<'a>(dims: &'a [i64], range: &Range<usize>) -> &'a [i64] {
    dims.get(range.clone()).unwrap_or_default()
}

/// Returns the size of one dim of a piece, given the others.
fn rest(given: &[i64], dims: &[i64], piece: &Range<usize>, dim: usize) -> Outcome<i64> {
    let others: Dims =
        piece.clone().filter(|&other| other != dim).map(|other| dims[other]).collect();
    let quotient =
        checked_product(given).zip(checked_product(&others)).and_then(|(given, others)| {
            let even = given.checked_rem(others)? == 0;
            even.then(|| given.checked_div(others)).flatten()
        });
    quotient.ok_or_else(|| {
        unsupported(format!("dims {given:?} do not divide into {others:?} and one more"))
    })
}

/// Returns the least pieces of two lists of positive dims with equal products, such that the
/// products agree piece by piece.
fn pieces(from: &[i64], to: &[i64]) -> Vec<(Range<usize>, Range<usize>)> {
    let mut pieces = Vec::new();
    let (mut i, mut j) = (0, 0);
    while i < from.len() || j < to.len() {
        let (first_i, first_j) = (i, j);
        let (mut have, mut want) = (1i64, 1i64);
        let mut begun = false;
        // The products are parts of one that fits.
        while !begun || have != want {
            let more_have = i < from.len() && (have <= want);
            let more_want = j < to.len() && (want <= have);
            if more_have {
                have = have.saturating_mul(from[i]);
                i += 1;
            }
            if more_want {
                want = want.saturating_mul(to[j]);
                j += 1;
            }
            if !more_have && !more_want {
                break;
            }
            begun = true;
        }
        pieces.push((first_i..i, first_j..j));
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_end_where_both_have_a_boundary() {
        let ends = |from: &[i64], to: &[i64]| -> Vec<(usize, usize)> {
            pieces(from, to).into_iter().map(|(i, j)| (i.end, j.end)).collect()
        };
        assert_eq!(ends(&[2, 3, 4], &[6, 4]), [(2, 1), (3, 2)]);
        assert_eq!(ends(&[5], &[1, 5]), [(1, 2)]);
        assert_eq!(ends(&[5, 1], &[5]), [(1, 1), (2, 1)]);
        assert_eq!(ends(&[1, 5], &[1, 5]), [(1, 1), (2, 2)]);
        assert_eq!(ends(&[4, 6], &[6, 4]), [(2, 2)]);
        assert_eq!(ends(&[], &[1, 1]), [(0, 1), (0, 2)]);
        assert_eq!(ends(&[], &[]), []);
    }
}
