//! Measures the first module's own errors as a tolerance for the second: its error against the
//! result in wider floats, and overflow of intermediate values.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use tilewright_interp::{Growth, Observer, Seen, Slack, as_near, widened, widened_literal};
use tilewright_ir::{Data, InstId, Literal, Module, Op, Verified};
use tilewright_rewrite::numbers::{MOST_GROWTH, SLACK_ULPS};

use crate::check::{Case, Inputs, Trial};
use crate::error::Error;

impl Trial<'_> {
    /// Excuses elements of the second module that are as near to the result in wider floats as
    /// the contract for numbers requires (`docs/numerics.md`). Returns `false` if there is no
    /// such result.
    pub(crate) fn pardon_near(&self, case: &Case<'_>, slack: &mut [Slack]) -> bool {
        let Some(exact) = self.exact(case.inputs) else { return false };
        let growth = Growth { factor: MOST_GROWTH, ulps: SLACK_ULPS };
        let devices = exact.iter().zip(case.expected).zip(case.actual).zip(slack);
        for (((exact, expected), actual), slack) in devices {
            let near = as_near(exact, expected, actual, growth);
            slack.pardon(expected, actual, |leaf, place, _| {
                near.get(leaf).and_then(|near| near.get(place)).is_some_and(|near| *near)
            });
        }
        true
    }

    /// Returns the outputs of each device in wider floats; `None` if the module has no such
    /// form or exceeds the limits then.
    fn exact(&self, inputs: &Inputs) -> Option<Vec<Literal>> {
        let (wide, inputs) = self.wide(inputs)?;
        self.run(wide, &inputs, None).ok()
    }

    /// Returns the first module in wider floats, and its inputs.
    pub(crate) fn wide(&self, inputs: &Inputs) -> Option<(&Verified, Inputs)> {
        let wide = self.wide.get_or_init(|| wider(self.a)).as_ref()?;
        let of_device = |inputs: &Vec<Literal>| inputs.iter().map(widened_literal).collect();
        Some((wide, inputs.iter().map(of_device).collect::<Result<Inputs, _>>().ok()?))
    }

    /// Excuses elements that are finite in one module only, on devices where the first module
    /// computes an infinity or a NaN from finite numbers, because the result without overflow is
    /// unknown there. Returns `false` if nothing overflows.
    pub(crate) fn pardon_overflow(
        &self,
        case: &Case<'_>,
        slack: &mut [Slack],
    ) -> Result<bool, Error> {
        let mut any = false;
        let devices = case.expected.iter().zip(case.actual).zip(slack).enumerate();
        for (device, ((expected, actual), slack)) in devices {
            if self.overflows(self.a, case.inputs, device)? {
                any = true;
                slack.pardon(expected, actual, |_, _, finite| !finite);
            }
        }
        Ok(any)
    }

    fn overflows(&self, module: &Verified, inputs: &Inputs, device: usize) -> Result<bool, Error> {
        let watch = Overflow { module, state: Mutex::default() };
        self.observe(module, inputs, &watch, device)?;
        Ok(watch.state.into_inner().unwrap_or_else(PoisonError::into_inner).found)
    }
}

/// Returns the module in wider floats; `None` if it draws random floats, whose values would
/// differ.
fn wider(module: &Verified) -> Option<Verified> {
    let mut all = module.computations().iter().flat_map(|&c| module.instructions(c));
    if all.any(|id| matches!(module.op(id), Op::Rng(_))) { None } else { widened(module).ok() }
}

/// Finds instructions that compute infinities or NaN from finite numbers.
struct Overflow<'m> {
    module: &'m Module,
    state: Mutex<OverflowState>,
}

#[derive(Default)]
struct OverflowState {
    found: bool,
    /// Whether the last value of each instruction was finite.
    finite: HashMap<InstId, bool>,
}

impl Observer for Overflow<'_> {
    fn evaluated(&self, seen: &Seen<'_>) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.found {
            return;
        }
        let finite = seen.literal().is_none_or(|value| all_finite(&value));
        state.finite.insert(seen.id(), finite);
        if finite || !computes(self.module, seen.id()) {
            return;
        }
        let operands = self.module.operands(seen.id());
        let known = |operand| state.finite.get(operand).copied().unwrap_or(true);
        state.found = operands.iter().all(known);
    }
}

/// Checks whether an instruction itself computes its result. Instructions of computations that
/// it calls as a whole are examined separately.
fn computes(module: &Module, id: InstId) -> bool {
    let calls = matches!(
        module.op(id),
        Op::Call(_) | Op::Fusion(_) | Op::While(_) | Op::Conditional(_) | Op::AsyncStart(_)
    );
    !calls && !module.operands(id).is_empty()
}

fn all_finite(value: &Literal) -> bool {
    let array = |literal: &&Literal| {
        literal.as_array().is_none_or(|array| match array.data() {
            Data::F16(v) => v.iter().all(|x| x.is_finite()),
            Data::BF16(v) => v.iter().all(|x| x.is_finite()),
            Data::F32(v) => v.iter().all(|x| x.is_finite()),
            Data::F64(v) => v.iter().all(|x| x.is_finite()),
            Data::C64(v) => v.iter().all(|x| x.is_finite()),
            Data::C128(v) => v.iter().all(|x| x.is_finite()),
            _ => true,
        })
    };
    value.leaves().iter().all(array)
}
