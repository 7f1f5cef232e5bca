//! Costs by the lines of the user's program.

use std::collections::BTreeMap;

use tilewright::Target;
use tilewright::ir::Module;
use tilewright::report::cycles;
use tilewright::{Place, run_costs};

/// The most lines that are shown.
const MOST_LINES: usize = 20;

/// A line of the user's program, with the modelled cycles of its instructions.
pub(super) struct SourceRow {
    pub(super) line: String,
    pub(super) cycles: String,
    pub(super) share: String,
}

/// Returns the lines whose instructions take most cycles, the dearest first, of the module before in its simplest form.
/// Rewrites merge code of several lines, so that cycles after them belong to no line.
pub(super) fn rows(before: &Module, target: &Target) -> Vec<SourceRow> {
    let mut of: BTreeMap<String, f64> = BTreeMap::new();
    for one in run_costs(before, target) {
        let source = Place::of(before, one.id).source;
        let line = source.map(|(file, line)| format!("{file}:{line}"));
        *of.entry(line.unwrap_or_else(|| "no line is known".to_owned())).or_default() +=
            one.cost.cycles;
    }
    let all: f64 = of.values().sum::<f64>().max(1.0);
    let mut lines: Vec<(String, f64)> =
        of.into_iter().filter(|(_, cycles)| *cycles > 0.0).collect();
    lines.sort_by(|(_, a), (_, b)| b.total_cmp(a));
    let row = |(line, of): (String, f64)| SourceRow {
        line,
        cycles: cycles(of),
        share: format!("{:.1} %", 100.0 * of / all),
    };
    lines.into_iter().take(MOST_LINES).map(row).collect()
}
