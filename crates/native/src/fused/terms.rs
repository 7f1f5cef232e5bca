//! Sums of two products, such as the gradient of a norm's input, as one loop. `plan.rs` makes them.
//! For example,
//!
//! ```text
//! ((dy scale - mean) - normed along) inverse,  normed = (x - m) inverse
//! ```
//!
//! is a [`Form::Terms`], which reads `dy` and `x` alone: neither the products nor their factors are
//! stored, unless other steps use them.

use super::chain::FusedChain;
use super::factors::{Args, Definitions, count_uses, joined};
use super::program::Binary;
use super::steps::{Action, Along, Arg, Pass, PassStep};
use crate::vectors::{CHAINED, Form};

/// The places of operands in [`Form::Terms`].
const FIRST_FACTOR: usize = 0;
const SECOND: usize = 3;
const SECOND_FACTOR: usize = 4;
const ADDED: [usize; 2] = [7, 8];
const TIMES: usize = 9;

/// Makes such sums of the steps of passes, and removes the steps whose values no step uses. It
/// begins with the last op of a sum, so that each sum has as many ops as it can have.
pub(super) fn make(passes: &mut [Pass], definitions: &Definitions, uses: &mut [usize]) {
    for pass in passes.iter_mut().rev() {
        for step in pass.steps.iter_mut().rev() {
            if uses.get(step.out) == Some(&0) {
                count_uses(uses, step, |uses| uses - 1);
                continue;
            }
            let is_single = |value: usize| uses.get(value) == Some(&1);
            // With fewer terms, the first value of the sum is a sum itself.
            let mut sums = (1..=MOST_TERMS).rev();
            if let Some(sum) = sums.find_map(|most| found(definitions, step, most, is_single)) {
                count_uses(uses, step, |uses| uses - 1);
                count_uses(uses, &sum, |uses| uses + 1);
                *step = sum;
            }
        }
        pass.steps.retain(|step| uses.get(step.out) != Some(&0));
    }
}

/// A value that is added to the first value of a sum, or subtracted from it.
#[derive(Clone, Copy)]
struct Term {
    arg: Arg,
    is_negated: bool,
}

/// Returns a step as a sum of two products with at most `most` terms besides the first value, if it
/// is one.
fn found(
    definitions: &Definitions,
    step: &PassStep,
    most: usize,
    is_single: impl Fn(usize) -> bool,
) -> Option<PassStep> {
    let set = step.set;
    let (Action::Binary(op), &[a, b]) = (step.action, step.args.as_slice()) else { return None };
    if step.is_tile_invariant {
        return None;
    }
    let mut row = step.row;
    let (op, args, times) = match (op, a.along, b.along) {
        (Binary::Multiply, Along::Full, Along::Full) => return None,
        (Binary::Multiply, ..) => {
            let (of, times) = if a.along == Along::Full { (a, b) } else { (b, a) };
            let (op, args, inner) =
                definitions.op(of.value, set).filter(|_| is_single(of.value))?;
            row = joined(set, row, inner)?;
            (op, args, Some(times))
        }
        _ => (op, [a, b], None),
    };
    let (first, terms) = flat(definitions, (set, most), (op, args), &mut row, is_single)?;
    let second = terms.iter().position(|term| term.arg.along == Along::Full)?;
    let (before, after) = (&terms[..second], &terms[second + 1..]);
    if before.len() > 1 || after.len() > 1 {
        return None;
    }
    let x = definitions.factor(first, set);
    let y = definitions.factor(terms[second].arg.value, set);
    if y.operands.iter().all(Option::is_none) {
        return None;
    }
    row = joined(set, joined(set, row, x.row)?, y.row)?;
    let mut args = Args::new(x.x);
    let mut operands = [0; CHAINED];
    let added = [before.first(), after.first()].map(|term| term.map(|term| term.arg));
    let second_value = Some(Arg { value: y.x, along: Along::Full });
    let placed = (FIRST_FACTOR..).zip(x.operands).chain([(SECOND, second_value)]);
    let placed = placed.chain((SECOND_FACTOR..).zip(y.operands));
    for (place, arg) in placed.chain(ADDED.into_iter().zip(added)).chain([(TIMES, times)]) {
        operands[place] = args.number(arg)?;
    }
    let is_negated = |term: Option<&Term>| term.is_some_and(|term| term.is_negated);
    let negated = [is_negated(before.first()), terms[second].is_negated, is_negated(after.first())];
    let chain = FusedChain { form: Form::Terms, operands, negated };
    Some(PassStep { action: Action::Chain(chain), args: args.into_all(), row, ..step.clone() })
}

/// The most terms of a sum besides the first value.
const MOST_TERMS: usize = 3;

/// Returns a sum as its first value and its terms, in order. No other steps may use the values
/// within.
fn flat(
    definitions: &Definitions,
    (set, most): (u64, usize),
    mut last: (Binary, [Arg; 2]),
    row: &mut u64,
    is_single: impl Fn(usize) -> bool,
) -> Option<(usize, Vec<Term>)> {
    let mut terms = Vec::new();
    let inner = |arg: Arg| {
        let (op, args, row) = definitions.op(arg.value, set)?;
        let is_sum = matches!(op, Binary::Add | Binary::Subtract);
        let is_inner = arg.along == Along::Full && is_sum && is_single(arg.value);
        is_inner.then_some(((op, args), row))
    };
    loop {
        let (op, [a, b]) = last;
        let has_sum = inner(a).is_some();
        let turns = op == Binary::Add && (a.along != Along::Full || !has_sum && inner(b).is_some());
        let (of, arg) = if turns { (b, a) } else { (a, b) };
        if !matches!(op, Binary::Add | Binary::Subtract) || of.along != Along::Full {
            return None;
        }
        terms.push(Term { arg, is_negated: op == Binary::Subtract });
        let next = inner(of).filter(|_| terms.len() < most);
        match next.and_then(|(next, inner)| Some((next, joined(set, *row, inner)?))) {
            Some((next, joined)) => (last, *row) = (next, joined),
            None => {
                terms.reverse();
                return Some((of.value, terms));
            }
        }
    }
}
