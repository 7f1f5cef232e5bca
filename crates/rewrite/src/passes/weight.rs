//! Weighs a module as a whole, for rewrites that change what many instructions wait
//! for.

use tilewright_ir::{InstId, Module};
use tilewright_target::Target;

use crate::analysis::cost::{image_passes, module_cost, pays, peak_live_bytes};
use crate::pass::{Context, Pass};
use crate::report::{Note, Verdict, place_of};

/// A rewrite may make a module hold so much more at once, in percent.
const MORE_MEMORY: u64 = 5;

/// What a module costs as a whole.
pub(super) struct Weight {
    pub(super) cycles: f64,
    image_passes: usize,
    peak_live_bytes: u64,
}

impl Weight {
    pub(super) fn of(module: &Module, target: &Target) -> Self {
        Self {
            cycles: module_cost(module, target).cycles,
            image_passes: image_passes(module, target),
            peak_live_bytes: peak_live_bytes(module, target),
        }
    }

    /// Whether the module is better for a rewrite after which this is its weight:
    /// it costs less, and does not hold more at once than it may.
    fn is_improved_by(&self, after: &Self) -> bool {
        let most = u128::from(self.peak_live_bytes) * u128::from(100 + MORE_MEMORY);
        let fits = u128::from(after.peak_live_bytes) * 100 <= most;
        fits && pays(self.cycles, after.cycles)
    }
}

/// Whether to make a rewrite that changes the weight of a module so; says so, and what
/// it does, or why not.
pub(super) fn judge(
    pass: &dyn Pass,
    module: &Module,
    at: InstId,
    what: &str,
    after: &Weight,
    cx: &mut Context<'_>,
) -> bool {
    let before = Weight::of(module, cx.target);
    let made = before.is_improved_by(after);
    if made && !cx.spend() {
        return false;
    }
    let (verdict, would) = if made { (Verdict::Done, "") } else { (Verdict::Left, " would cost") };
    let mut text = format!(
        "{what}; {} instead of {}:{would} {:.0} cycles instead of {:.0} on {}",
        passes(after.image_passes),
        before.image_passes,
        after.cycles,
        before.cycles,
        cx.target.name
    );
    if !made && pays(before.cycles, after.cycles) {
        text += &format!(
            ", but {} bytes are in use at once instead of {}",
            after.peak_live_bytes, before.peak_live_bytes
        );
    }
    cx.notes.push(Note { pass: pass.name(), verdict, place: place_of(module, at), text });
    made
}

fn passes(count: usize) -> String {
    let plural = if count == 1 { "" } else { "es" };
    format!("{count} pass{plural} over images")
}
