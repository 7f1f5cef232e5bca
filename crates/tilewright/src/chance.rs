//! Decides whether rounding alone determines in the first module whether there is a result, or
//! which one. For example, the root of a variance that cancels is NaN for one order of its sums
//! and a number for another, and `sum(x - mean(x)) == 0` holds for one order only.

use std::collections::{BTreeMap, HashSet};
use std::sync::{Mutex, PoisonError};

use tilewright_interp::algebra::Ties;
use tilewright_interp::{Observer, Seen, Slack, float_elements};
use tilewright_ir::{InstId, Literal, Module, Op, Verified};
use tilewright_rewrite::numbers::MOST_GROWTH;

use crate::algebra::over_field;
use crate::check::{Case, Inputs, Trial, wholes};
use crate::error::Error;
use crate::nudge::EXCUSED;

/// Largest number of elements kept of a run.
const MOST_ELEMENTS: usize = 1 << 24;

impl Trial<'_> {
    /// Excuses elements that are finite in one module only, on devices where the first takes a
    /// root, a logarithm or a quotient of a number that rounding could have made zero or
    /// negative. The error assumed is four times the rounding error, as in the contract for
    /// numbers. Returns `false` if there is no such device.
    pub(crate) fn pardon_chance(
        &self,
        case: &Case<'_>,
        slack: &mut [Slack],
    ) -> Result<bool, Error> {
        let Some((wide, inputs)) = self.wide(case.inputs) else { return Ok(false) };
        let mut any = false;
        let devices = case.expected.iter().zip(case.actual).zip(slack).enumerate();
        for (device, ((expected, actual), slack)) in devices {
            let rounded = self.judged(self.a, case.inputs, device)?;
            let Ok(exact) = self.judged(wide, &inputs, device) else { continue };
            if is_chance(&rounded, &exact) {
                any = true;
                slack.pardon(expected, actual, |_, _, finite| !finite);
            }
        }
        Ok(any)
    }

    /// Widens the tolerance by the results of the first module in which comparisons treat values
    /// that are equal over the reals as equal. Returns `false` if there are no such comparisons.
    pub(crate) fn widen_by_ties(&self, case: &Case<'_>, slack: &mut [Slack]) -> bool {
        let ties = self.ties.get_or_init(|| Ties::of(self.a, &over_field(self.options)));
        if ties.is_empty() {
            return false;
        }
        let Ok(tied) = self.evaluation(self.a).ties(ties).run(case.inputs) else { return false };
        for ((slack, expected), tied) in slack.iter_mut().zip(case.expected).zip(&wholes(tied)) {
            slack.widen(expected, tied, EXCUSED, 0.0);
        }
        true
    }

    /// Returns the values of a module's divisors and of the operands of its roots, logarithms
    /// and powers.
    fn judged(&self, module: &Verified, inputs: &Inputs, device: usize) -> Result<Values, Error> {
        let watch = Watch { module, wanted: wanted(module), state: Mutex::default() };
        self.observe(module, inputs, &watch, device)?;
        Ok(watch.state.into_inner().unwrap_or_else(PoisonError::into_inner).values)
    }
}

/// For each instruction name, its values in the order of evaluation.
type Values = BTreeMap<String, Vec<Vec<f64>>>;

fn is_chance(rounded: &Values, exact: &Values) -> bool {
    let pairs = rounded.iter().filter_map(|(name, values)| Some((values, exact.get(name)?)));
    let turns = pairs.flat_map(|(rounded, exact)| rounded.iter().zip(exact));
    let mut elements = turns.flat_map(|(rounded, exact)| rounded.iter().zip(exact));
    elements.any(|(rounded, exact)| {
        let error = (rounded - exact).abs();
        error > 0.0 && MOST_GROWTH * error >= rounded.abs()
    })
}

/// Returns the operands that have a result on only one side of zero.
fn wanted(module: &Module) -> HashSet<InstId> {
    let all = module.computations().iter().flat_map(|&c| module.instructions(c));
    let operand = |id| match (module.op(id), module.operands(id)) {
        (Op::Sqrt(_) | Op::Rsqrt(_) | Op::Log(_), &[a]) | (Op::Power, &[a, _]) => Some(a),
        (Op::Divide, &[_, b]) => Some(b),
        _ => None,
    };
    all.filter_map(operand).collect()
}

struct Watch<'m> {
    module: &'m Module,
    wanted: HashSet<InstId>,
    state: Mutex<WatchState>,
}

#[derive(Default)]
struct WatchState {
    values: Values,
    elements: usize,
}

impl Observer for Watch<'_> {
    fn evaluated(&self, seen: &Seen<'_>) {
        if !self.wanted.contains(&seen.id()) {
            return;
        }
        let value = seen.literal();
        let floats = value.as_ref().and_then(Literal::as_array).and_then(float_elements);
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(floats) = floats.filter(|all| state.elements + all.len() <= MOST_ELEMENTS) else {
            return;
        };
        state.elements += floats.len();
        let name = self.module.name_of(seen.id()).to_owned();
        state.values.entry(name).or_default().push(floats);
    }
}
