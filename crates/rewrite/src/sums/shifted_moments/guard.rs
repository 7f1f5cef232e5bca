//! A moment about a shift that is used only where its error is bounded.
//!
//! ```text
//! S  =  guard(sums about k,  sums about c)                      d = c-k
//!
//! sum p*(x-c):    2 * |d| * sum |p|                  <=  sum |p|*|x-k|
//! sum q*(x-c)^2:  2 * (sum q*(x-k)^2 + d^2 * sum q)  <=  3 * S                  q not negative
//! ```
//!
//! Where the test holds, the form about the shift errs by at most 4 times the bound of the original's error,
//! whatever c and k are; `docs/numerics.md` has the proof. Sums that are not finite fail the test, and so do
//! NaNs ([`guard`]).
//!
//! The centre is the original one, as it is rounded: its sum is computed in the first sweep as it was before.
//!
//! Precondition beside those of the pass and of a guard: the sample has so many values that its mean is near
//! that of the array.

use tilewright_ir::{EditError, Module, Op, Opcode, Use};

use super::moments::{Group, Moment};
use super::shift::{self, Shift};
use super::{Sums, offset, recentred, sums_about};
use crate::backend::add_barrier;
use crate::sums::build::{Placed, Replaced};
use crate::sums::guard::{self, Guarded, Guards, Original};
use crate::sums::product::Factor;
use crate::sums::sign::is_not_negative;

/// The fewest values of a sample. Of 400,000 rows each of 512, 768 and 1,024 normal numbers, none failed the test
/// of a square or of a product with other normal numbers.
const LEAST_SAMPLED: i64 = 128;

/// Checks whether a test bounds the error of a moment, and its original can be computed in a branch.
pub(super) fn has_guard(module: &Module, moment: &Moment, guards: &Guards<'_>) -> bool {
    let is_tested = match moment.power {
        1 => true,
        2 => moment.others.iter().all(|weight| is_not_negative(module, weight.value)),
        _ => false,
    };
    is_tested && guards.original(module, moment.sum.id).is_some()
}

/// Guards the moments of a group, all of which [can be](has_guard); returns whether it did.
pub(super) fn guarded(
    module: &mut Module,
    group: &mut Group,
    guards: &Guards<'_>,
    replaced: &mut Replaced,
) -> Result<bool, EditError> {
    let Some(unbarred) = originals(module, group, guards) else { return Ok(false) };
    let barred = end_space_to_batch(module, &unbarred)?;
    group.follow(&barred);
    replaced.extend(barred);
    let Some(originals) = originals(module, group, guards) else { return Ok(false) };
    let Some(first) = group.moments.first() else { return Ok(false) };
    let Some(shift) = shift::add(module, group, &first.sum, LEAST_SAMPLED)? else {
        return Ok(false);
    };
    for (moment, original) in group.moments.iter().zip(&originals) {
        let Some(now) = guard(module, moment, group, &shift, (guards, original))? else {
            return Ok(false);
        };
        replaced.extend(now);
    }
    Ok(true)
}

/// Finds the originals of the moments of a group.
fn originals(module: &Module, group: &Group, guards: &Guards<'_>) -> Option<Vec<Original>> {
    let original = |moment: &Moment| {
        module.is_live(moment.sum.id).then(|| guards.original(module, moment.sum.id))?
    };
    group.moments.iter().map(original).collect()
}

/// Puts barriers behind the convolutions that these read, so that their sums share a kernel
/// ([`crate::backend::convolution_barrier`]); returns the barriers.
fn end_space_to_batch(module: &mut Module, originals: &[Original]) -> Result<Replaced, EditError> {
    let mut barred = Replaced::default();
    for &leaf in originals.iter().flat_map(|original| &original.leaves) {
        if module.opcode(leaf) == Opcode::Convolution && !barred.contains_key(&leaf) {
            let users: Vec<Use> = module.uses(leaf).collect();
            barred.insert(leaf, add_barrier(module, leaf, &users)?);
        }
    }
    Ok(barred)
}

/// Replaces a moment by a guard of its form about the shift.
fn guard(
    module: &mut Module,
    moment: &Moment,
    group: &Group,
    shift: &Shift,
    (guards, original): (&Guards<'_>, &Original),
) -> Result<Option<Replaced>, EditError> {
    let absolute = match moment.power {
        1 => {
            let factors = [&shift.rest].into_iter().chain(&moment.others).cloned();
            guard::absolute(module, moment.sum.id, factors)?
        }
        // The terms of a square are not negative.
        _ => Vec::new(),
    };
    let centres = [&group.c, &shift.shift];
    guards.guard(module, &moment.sum, original, "shifted-moments", |build, at| {
        let sums = sums_about(build, at, moment, group, shift)?;
        let value = recentred(build, at, moment, centres, &sums)?;
        let Sums { values, digits } = sums;
        let [less, more, finite] = match (absolute.as_slice(), values.as_slice()) {
            ([], &[count, _, squares]) => {
                let offset = offset(build, at, centres, &digits)?;
                let square = build.op(at, Op::Multiply, &digits, [offset, offset]);
                let far = build.op(at, Op::Multiply, &digits, [square, count]);
                let both = build.op(at, Op::Add, &digits, [squares, far]);
                let less = build.op(at, Op::Add, &digits, [both, both]);
                let twice = build.op(at, Op::Add, &digits, [value, value]);
                [less, build.op(at, Op::Add, &digits, [twice, value]), less]
            }
            (factors @ [_, others @ ..], &[count, _]) => {
                let mut summed = |factors: &[Factor]| {
                    let placed = build.sum_of(at, factors.to_vec())?;
                    Some(build.cut(at, placed, digits.clone()).value)
                };
                let weight = if others.is_empty() { count } else { summed(others)? };
                let more = summed(factors)?;
                let offset = offset(build, at, centres, &digits)?;
                let distance = build.op(at, Op::Abs, &digits, [offset]);
                let less = build.op(at, Op::Multiply, &digits, [distance, weight]);
                [build.op(at, Op::Add, &digits, [less, less]), more, more]
            }
            _ => return None,
        };
        Some(Guarded { value: Placed { value, digits }, compared: [less, more], finite })
    })
}
