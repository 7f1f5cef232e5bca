//! Costs by the lines of the user's program.

use std::collections::BTreeMap;

use tilewright::Target;
use tilewright::ir::Module;
use tilewright::report::cycles;
use tilewright::{Place, instruction_costs};

use super::ratio;

/// The most lines that are shown.
const MOST_LINES: usize = 20;

/// A line of the user's program, with the modelled cycles of its instructions.
pub(super) struct SourceRow {
    pub(super) line: String,
    pub(super) before: String,
    pub(super) after: String,
    pub(super) ratio: String,
}

/// Returns the lines whose instructions take most cycles before, the dearest first; of modules before and after,
/// both in their simplest form.
pub(super) fn rows(forms: [&Module; 2], target: &Target) -> Vec<SourceRow> {
    let mut of: BTreeMap<String, [f64; 2]> = BTreeMap::new();
    for (when, module) in forms.into_iter().enumerate() {
        for one in instruction_costs(module, target).0 {
            let source = Place::of(module, one.id).source;
            let line = source.map(|(file, line)| format!("{file}:{line}"));
            let line = line.unwrap_or_else(|| "no line is known".to_owned());
            if let Some(sum) = of.entry(line).or_default().get_mut(when) {
                *sum += one.cost.cycles;
            }
        }
    }
    let mut lines: Vec<(String, [f64; 2])> = of.into_iter().collect();
    lines.sort_by(|(_, a), (_, b)| b[0].total_cmp(&a[0]));
    let row = |(line, [before, after]): (String, [f64; 2])| SourceRow {
        line,
        before: cycles(before),
        after: cycles(after),
        ratio: ratio(before, after),
    };
    lines.into_iter().take(MOST_LINES).map(row).collect()
}
