//! Where results go.
//!
//! What is kept lies in vectors of the input in one way and in vectors of the
//! result in another. A dim whose digits are the same in both stays where it is;
//! any other is taken out of the vector, value by value, and stored alone.

use tilewright_ir::shape::ArrayShape;
use tilewright_target::{Alignment, Target};

use super::LowerError;
use super::blocks::signed;
use super::walk::{Inner, Walk};
use crate::kernel::{Bound, Digit, Expr, Mask, after};

/// How the result of one array is laid out, beside the array.
#[derive(Debug)]
pub(crate) struct Placement {
    result: Walk,
    /// The dims of the array that are kept, in order: those of the result.
    kept: Vec<usize>,
    /// The dims of the array whose digits stay where they are.
    direct: Vec<usize>,
    /// The digits that are taken out one by one.
    pub(crate) moved: Vec<Inner>,
    linear: bool,
    /// Elements of a vector of the array.
    vector: u64,
}

impl Placement {
    pub(crate) fn of(
        target: &Target,
        walk: &Walk,
        shape: &ArrayShape,
        reduced: &[usize],
    ) -> Result<Self, LowerError> {
        let result = Walk::of(target, shape, walk.vector)?;
        let kept: Vec<usize> = (0..walk.dims.len()).filter(|dim| !reduced.contains(dim)).collect();
        let stays = |place: usize, dim: usize| {
            let here = walk.inner_of(dim).map(|inner| (inner.unit, inner.digit));
            here.eq(result.inner_of(place).map(|inner| (inner.unit, inner.digit)))
        };
        let direct: Vec<usize> =
            kept.iter().enumerate().filter(|&(p, &d)| stays(p, d)).map(|(_, &d)| d).collect();
        let is_moved = |inner: &&Inner| {
            inner.dim.is_some_and(|dim| kept.contains(&dim) && !direct.contains(&dim))
        };
        let moved = walk.inner.iter().filter(is_moved).copied().collect();
        let linear = target.alignment == Alignment::None;
        // On a linear memory what is taken out alone is stored alone, wherever.
        let is_direct = |inner: &Inner| {
            let dim = inner.dim.and_then(|place| kept.get(place));
            dim.is_some_and(|dim| direct.contains(dim))
        };
        let alone = linear && !result.inner.iter().any(is_direct);
        let result = if alone { Walk::of(target, shape, 1)? } else { result };
        Ok(Self { result, kept, direct, moved, linear, vector: walk.vector })
    }

    /// Elements of the result in memory.
    pub(crate) fn len(&self) -> u64 {
        self.result.len
    }

    /// Where a vector of results is stored and which of its elements are, given
    /// the index along each dim of the array: of a dim that stays, of the first
    /// element in the vector; of any other, of the element.
    pub(crate) fn at(&self, index: &dyn Fn(usize) -> Expr) -> Result<(Expr, Mask), LowerError> {
        let mut address = Expr::ZERO;
        let mut mask = Mask::new();
        for (place, &dim) in self.kept.iter().enumerate() {
            let is_direct = self.direct.contains(&dim);
            let index = index(dim);
            let size = self.result.dims.get(place).copied().unwrap_or(1);
            let mut outer: Vec<_> =
                self.result.outer.iter().filter(|outer| outer.dim == place).collect();
            outer.sort_by_key(|outer| std::cmp::Reverse(outer.unit));
            let mut above = None;
            for outer in outer {
                let digit = digit_of(&index, outer.unit, above, size)?;
                address = address + digit * signed(outer.stride)?;
                above = Some(outer.unit);
            }
            let mut inner: Vec<_> = self.result.inner_of(place).collect();
            inner.sort_by_key(|inner| std::cmp::Reverse(inner.unit));
            for inner in inner {
                if !is_direct {
                    let from = digit_of(&index, inner.unit, above, size)?;
                    let to = after(&from);
                    mask.push(Bound { digit: inner.digit, from, to });
                } else if self.linear && self.result.is_partial(inner) {
                    let left = Expr::from(signed(size)?) + index.clone() * -1;
                    mask.push(Bound { digit: inner.digit, from: Expr::ZERO, to: left });
                }
                above = Some(inner.unit);
            }
        }
        if self.linear && self.result.inner.is_empty() && self.vector > 1 {
            let (from, to) = (Expr::ZERO, Expr::Constant(1));
            mask.push(Bound { digit: Digit { stride: 1, extent: self.vector }, from, to });
        }
        Ok((address, mask))
    }
}

/// The digit of an index at a unit, below the unit of the next greater digit.
fn digit_of(index: &Expr, unit: u64, above: Option<u64>, size: u64) -> Result<Expr, LowerError> {
    let below = match above {
        Some(above) if above < size => index.clone().remainder(signed(above)?),
        Some(_) | None => index.clone(),
    };
    Ok(below.quotient(signed(unit)?))
}
