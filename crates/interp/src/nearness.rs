//! Decides which elements of a result are as near to the exact result as those of another, and
//! which were finite, so that they could be compared.

use tilewright_ir::{ArrayLiteral, Data, Literal};

use crate::compare::is_finite;
use crate::rounding::unit;

/// The factor by which a result may be further from the exact result than another.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Growth {
    /// The factor by which the largest error of an array may grow.
    pub factor: f64,
    /// The additional tolerance, in units in the last place of the largest element.
    pub ulps: f64,
}

/// Returns for each array of a value, for each element, whether `b` is as near to `exact` (the
/// result of the same program in wider floats) as the largest error of `a` in that array
/// allows. An element is `false` if this cannot be decided: in arrays of other types than real
/// floats, without a wider result, or if `a` itself is far off.
pub fn as_near(exact: &Literal, a: &Literal, b: &Literal, growth: Growth) -> Vec<Vec<bool>> {
    let leaves = exact.leaves().into_iter().zip(a.leaves()).zip(b.leaves());
    let of = |((exact, a), b): ((&Literal, &Literal), &Literal)| match (exact, a, b) {
        (Literal::Array(exact), Literal::Array(a), Literal::Array(b)) => {
            array_as_near(exact, a, b, growth)
        }
        _ => None,
    };
    leaves.map(|leaf| of(leaf).unwrap_or_default()).collect()
}

fn array_as_near(
    exact: &ArrayLiteral,
    a: &ArrayLiteral,
    b: &ArrayLiteral,
    growth: Growth,
) -> Option<Vec<bool>> {
    let ulp = 2.0 * unit(a.element_type());
    let (exact, a, b) = (float_elements(exact)?, float_elements(a)?, float_elements(b)?);
    let greatest = |numbers: &mut dyn Iterator<Item = f64>| {
        numbers.filter(|number| number.is_finite()).fold(0.0, f64::max)
    };
    let error = greatest(&mut a.iter().zip(&exact).map(|(a, exact)| (a - exact).abs()));
    let largest = greatest(&mut a.iter().map(|a| a.abs()));
    // A larger error means that the two results are of different things.
    if error > largest {
        return None;
    }
    let bound = growth.factor * error + growth.ulps * ulp * largest;
    let near = |(b, exact): (&f64, &f64)| {
        b == exact || (b.is_nan() && exact.is_nan()) || (b - exact).abs() <= bound
    };
    Some(b.iter().zip(&exact).map(near).collect())
}

/// Returns the elements of an array of real floats of 16 bits and more.
pub fn float_elements(array: &ArrayLiteral) -> Option<Vec<f64>> {
    Some(match array.data() {
        Data::F16(v) => v.iter().map(|x| x.to_f64()).collect(),
        Data::BF16(v) => v.iter().map(|x| x.to_f64()).collect(),
        Data::F32(v) => v.iter().map(|&x| x.into()).collect(),
        Data::F64(v) => v.clone(),
        _ => return None,
    })
}

/// The elements of a result that were finite at least once; the others tell nothing about
/// whether two programs agree.
#[derive(Clone, Debug, Default)]
pub struct Coverage {
    leaves: Vec<Vec<bool>>,
}

impl Coverage {
    /// Takes in a result.
    pub fn add(&mut self, value: &Literal) {
        let leaves = value.leaves();
        self.leaves.resize_with(leaves.len().max(self.leaves.len()), Vec::new);
        for (seen, leaf) in self.leaves.iter_mut().zip(leaves) {
            let Literal::Array(array) = leaf else { continue };
            let finite = is_finite(array);
            seen.resize(finite.len().max(seen.len()), false);
            for (seen, finite) in seen.iter_mut().zip(finite) {
                *seen |= finite;
            }
        }
    }

    /// Returns how many elements of an array, by its number, were finite never, of how many.
    pub fn missing(&self, leaf: usize) -> (usize, usize) {
        let seen = self.leaves.get(leaf).map_or(&[][..], Vec::as_slice);
        (seen.iter().filter(|seen| !**seen).count(), seen.len())
    }
}
