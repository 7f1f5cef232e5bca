//! Which of two modules comes first, whatever the order in which they are given.

use std::cmp::Ordering;

use tilewright::ir::{Entity as _, InstId};
use tilewright::text::print_instruction;

use super::side::{Side, attributes, control_predecessors};

/// Checks whether the first module comes before the second: the smaller one, else that with the
/// lesser name or text where they first differ.
pub(super) fn comes_first(a: &Side<'_>, b: &Side<'_>) -> bool {
    let size =
        |side: &Side<'_>| (side.module.instruction_count(), side.module.computations().len());
    size(a).cmp(&size(b)).then_with(|| by_content(a, b)) == Ordering::Less
}

fn by_content(a: &Side<'_>, b: &Side<'_>) -> Ordering {
    let both = || instructions(a).zip(instructions(b));
    let by_name = both().find_map(|(x, y)| {
        let of_a = (a.module.opcode(x), a.module.name_of(x));
        Some(of_a.cmp(&(b.module.opcode(y), b.module.name_of(y)))).filter(|of| of.is_ne())
    });
    let by_text = || {
        let (x, y) = both().find(|(x, y)| a.full[x.index()] != b.full[y.index()])?;
        let text = |side: &Side<'_>, id: InstId| {
            (print_instruction(side.module, id), attributes(side.module, id, side.metadata))
        };
        Some(text(a, x).cmp(&text(b, y)))
    };
    let by_wiring =
        || both().map(|(x, y)| wiring(a, x).cmp(&wiring(b, y))).find(|ordering| ordering.is_ne());
    by_name.or_else(by_text).or_else(by_wiring).unwrap_or(Ordering::Equal)
}

/// The names of all that an instruction refers to, and whether it is a root.
fn wiring<'s>(side: &'s Side<'_>, id: InstId) -> (Vec<&'s str>, Vec<&'s str>, bool) {
    let module = side.module;
    let before = control_predecessors(module, id);
    let values = module.operands(id).iter().chain(&before).map(|&id| module.name_of(id));
    let called = module.called(id);
    let called = called.iter().map(|&id| module.computation(id).name());
    (values.collect(), called.collect(), module.is_root(id))
}

fn instructions<'s>(side: &'s Side<'_>) -> impl Iterator<Item = InstId> + 's {
    side.module.computations().iter().flat_map(|&id| side.module.instructions(id))
}
