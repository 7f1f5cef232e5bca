//! Cuts long loops into nested loops.
//!
//! A chain of n combinations rounds n times. If every level of nested loops has its own
//! accumulator, a value is rounded as often as the sum of the levels' lengths, not their
//! product.

use super::blocks::{Loop, signed};
use super::walk::Outer;
use crate::error::{LowerError, TooLarge};
use crate::kernel::{Expr, IndexId};

/// Largest number of roundings of a value in one loop, while there are enough registers.
pub(crate) const LONGEST: u64 = 8;

/// Replaces one loop by nested loops of at most `longest` steps, outermost first.
pub(crate) fn cut(
    mut long: Loop,
    longest: u64,
    mut index: impl FnMut(&Outer) -> IndexId,
) -> Result<Vec<Loop>, LowerError> {
    let mut loops = Vec::new();
    while long.outer.count > longest.max(2) {
        let whole = long.outer;
        let steps = inner_steps(whole.count, longest.max(2));
        let unit = whole.unit.checked_mul(steps).ok_or(TooLarge::Elements)?;
        let stride = whole.stride.checked_mul(steps).ok_or(TooLarge::Elements)?;
        let outer = Outer { dim: whole.dim, unit, count: whole.count.div_ceil(steps), stride };
        let id = index(&outer);
        let by = signed(steps)?;
        // Count the last, partial step too.
        let count = (long.count.clone() + Expr::Constant(by.saturating_sub(1))).quotient(by);
        let left = long.count.clone() + Expr::from(id) * -by;
        let even = matches!(long.count, Expr::Constant(_)) && whole.count.is_multiple_of(steps);
        let inner = if even { by.into() } else { Expr::from(by).least(left) };
        loops.push(Loop { outer, reduced: long.reduced, count, index: id });
        long.outer.count = steps;
        long.count = inner;
        long.index = index(&long.outer);
    }
    loops.push(long);
    Ok(loops)
}

/// Returns the number of steps left to the inner loops, so that all levels have about the same
/// length and no level is unnecessary. The steps divide the count evenly if possible.
fn inner_steps(count: u64, longest: u64) -> u64 {
    let power = |base: u64, levels: u32| base.checked_pow(levels).unwrap_or(u64::MAX);
    let levels = (1..u64::BITS).find(|&levels| power(longest, levels) >= count).unwrap_or(1);
    let least = (2..longest).find(|&each| power(each, levels) >= count).unwrap_or(longest);
    let inner = levels.saturating_sub(1);
    let steps = power(least, inner)..=power(longest, inner);
    let even = steps.clone().take(MOST_TRIED).find(|&steps| count.is_multiple_of(steps));
    even.unwrap_or(*steps.start())
}

/// Largest number of candidates that are tried as divisors of a count.
pub(super) const MOST_TRIED: usize = 4096;
