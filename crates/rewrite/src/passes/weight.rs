//! Weighs a module as a whole, for rewrites that change what many instructions wait
//! for.

use tilewright_ir::{EditError, Module};

use super::dce::DeadCode;
use crate::analysis::cost::{CostModel, image_passes, module_cost, pays, peak_live_bytes};
use crate::pass::{Context, Pass};
use crate::report::{Note, Verdict};

/// For so many instructions, all in all, a module is weighed to decide on groups.
const MOST_WEIGHED: usize = 1 << 20;

/// How many of so many groups are decided on at once: one, unless the module is large.
pub(super) fn together(module: &Module, groups: usize) -> usize {
    let asked = (MOST_WEIGHED / module.instruction_count().max(1)).max(1);
    groups.div_ceil(asked).max(1)
}

/// A rewrite may make a module hold so much more at once, in percent, besides what
/// stays in vector memory.
const MORE_MEMORY: u64 = 5;

/// What a module costs as a whole, without what nothing uses.
#[derive(Clone, Copy)]
pub(super) struct Weight {
    pub(super) cycles: f64,
    image_passes: usize,
    peak_live_bytes: u64,
    /// Arrays of so many bytes stay in vector memory.
    on_chip: u64,
}

impl Weight {
    /// That of a module without what nothing uses.
    pub(super) fn of(mut module: Module, cx: &mut Context<'_>) -> Result<Self, EditError> {
        DeadCode.run(&mut module, cx)?;
        Ok(Self {
            cycles: module_cost(&module, cx.target).cycles,
            image_passes: image_passes(&module, cx.target),
            peak_live_bytes: peak_live_bytes(&module, cx.target),
            on_chip: CostModel { target: cx.target }.on_chip_bytes(),
        })
    }

    /// Whether the module is better for a rewrite after which this is its weight:
    /// it costs less, and does not hold more at once than it may.
    fn is_improved_by(&self, after: &Self) -> bool {
        let most = u128::from(self.peak_live_bytes) * u128::from(100 + MORE_MEMORY) / 100;
        let fits = u128::from(after.peak_live_bytes) <= most + u128::from(self.on_chip);
        fits && pays(self.cycles, after.cycles)
    }
}

/// Puts a rewritten module in the place of one, if that pays; whether it did. Says so, and
/// what it does, or why not.
pub(super) fn replace(
    pass: &dyn Pass,
    module: &mut Module,
    rewritten: Module,
    (place, what): (String, &str),
    cx: &mut Context<'_>,
) -> Result<bool, EditError> {
    let weights = [Weight::of(module.clone(), cx)?, Weight::of(rewritten.clone(), cx)?];
    let made = judge(pass, place, what, weights.each_ref(), cx);
    if made {
        *module = rewritten;
    }
    Ok(made)
}

/// Whether to make a rewrite that changes the weight of a module so, from the first to
/// the second; says so, and what it does, or why not.
pub(super) fn judge(
    pass: &dyn Pass,
    place: String,
    what: &str,
    [before, after]: [&Weight; 2],
    cx: &mut Context<'_>,
) -> bool {
    let made = before.is_improved_by(after);
    if made && !cx.spend(pass.name(), &place) {
        return false;
    }
    let (verdict, would) = if made { (Verdict::Done, "") } else { (Verdict::Left, " would cost") };
    let passes = match [before, after].map(|weight| weight.image_passes) {
        [before, after] if before == after => String::new(),
        [before, after] => format!("; {after} instead of {before} passes over images"),
    };
    let mut text = format!(
        "{what}{passes}:{would} {:.0} cycles instead of {:.0} on {}",
        after.cycles, before.cycles, cx.target.name
    );
    if !made && pays(before.cycles, after.cycles) {
        text += &format!(
            ", but {} bytes are in use at once instead of {}",
            after.peak_live_bytes, before.peak_live_bytes
        );
    }
    cx.notes.push(Note { pass: pass.name(), verdict, place, text });
    made
}
