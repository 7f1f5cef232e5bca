//! How much memory is in use at once.

use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use tilewright_ir::{CompId, InstId, Module, Op, Opcode, SecondaryMap};

use super::CostModel;
use super::ledger::runs_its_callees;
use super::residency::{AllFacts, Residency};
use super::sweeps::filled;

/// What one computation needs, with those that it calls; its parameters are the
/// caller's unless it is the entry.
pub(super) fn peak(
    module: &Module,
    computation: CompId,
    model: &CostModel<'_>,
    facts: &AllFacts,
    peaks: &FxHashMap<CompId, u64>,
) -> u64 {
    let order: Vec<InstId> = module.instructions(computation).collect();
    let mut made: SecondaryMap<InstId, bool> = filled(module, order.len());
    order.iter().for_each(|&id| made.set(id, is_made(module, id, model, facts)));
    let last = last_readers(module, &order, &made);
    let mut ends: Vec<u64> = vec![0; order.len()];
    let (mut live, mut most) = (0u64, 0u64);
    for (place, &id) in order.iter().enumerate() {
        let is_kept = made[id] && !matches!(module.op(id), Op::Constant(_));
        let bytes = if is_kept { facts[id].footprint.padded_bytes } else { 0 };
        let runs = runs_its_callees(module.opcode(id));
        let callees = if runs { module.called(id) } else { SmallVec::new() };
        let inside = callees.iter().filter_map(|callee| peaks.get(callee)).max().copied();
        let parameter = matches!(module.op(id), Op::Parameter(_));
        if !parameter || module.entry() == Some(computation) {
            live = live.saturating_add(bytes);
            let end = if parameter { None } else { ends.get_mut(last[id]) };
            if let Some(end) = end {
                *end = end.saturating_add(bytes);
            }
        }
        most = most.max(live.saturating_add(inside.unwrap_or(0)));
        live = live.saturating_sub(ends[place]);
    }
    most
}

/// The place of the last instruction that needs each value to be kept.
fn last_readers(
    module: &Module,
    order: &[InstId],
    made: &SecondaryMap<InstId, bool>,
) -> SecondaryMap<InstId, usize> {
    let mut last: SecondaryMap<InstId, usize> = filled(module, order.len());
    for (place, &id) in order.iter().enumerate().rev() {
        let own = if module.is_root(id) { order.len() - 1 } else { last[id].max(place) };
        last.set(id, own);
        let until = if made[id] { place } else { own };
        for &operand in module.operands(id) {
            last.set(operand, last[operand].max(until));
        }
    }
    last
}

/// Whether memory is taken for what an instruction makes: it is neither computed
/// where it is used nor another name for what is there, or for a part of it.
pub(super) fn is_made(
    module: &Module,
    id: InstId,
    model: &CostModel<'_>,
    facts: &AllFacts,
) -> bool {
    let opcode = module.opcode(id);
    let names_a_part = opcode.hands_on_its_operands() || opcode == Opcode::Slice;
    match facts[id].residency {
        Residency::Inlined => module.is_root(id) || model.is_stored(module, id, facts),
        Residency::Alias => false,
        Residency::Stored => !names_a_part,
    }
}
