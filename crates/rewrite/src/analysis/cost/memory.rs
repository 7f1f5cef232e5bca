//! How much memory is in use at once.

use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use tilewright_ir::{CompId, InstId, Module, Op, SecondaryMap};
use tilewright_target::Target;

use super::CostModel;
use super::module::runs_its_callees;
use super::passes::{is_other_name, is_stored};

/// The most bytes, padding included, that hold values at once while a module runs,
/// instructions in the order in which they stand. What is computed where it is used
/// takes none, but what it is computed from is kept for it; parameters are kept
/// throughout, constants and what only gets another name are not counted.
pub fn peak_live_bytes(module: &Module, target: &Target) -> u64 {
    let model = CostModel { target };
    let mut peaks: FxHashMap<CompId, u64> = FxHashMap::default();
    // A computation stands after those that it calls.
    for &computation in module.computations() {
        let peak = peak(module, computation, &model, &peaks);
        peaks.insert(computation, peak);
    }
    module.entry().and_then(|entry| peaks.get(&entry).copied()).unwrap_or(0)
}

/// What one computation needs, with those that it calls; its parameters are the
/// caller's unless it is the entry.
fn peak(
    module: &Module,
    computation: CompId,
    model: &CostModel<'_>,
    peaks: &FxHashMap<CompId, u64>,
) -> u64 {
    let order: Vec<InstId> = module.instructions(computation).collect();
    let mut made: SecondaryMap<InstId, bool> = SecondaryMap::new();
    order.iter().for_each(|&id| made.set(id, is_made(module, id, model)));
    let last = last_readers(module, &order, &made);
    let mut ends: Vec<u64> = vec![0; order.len()];
    let (mut live, mut most) = (0u64, 0u64);
    for (place, &id) in order.iter().enumerate() {
        let is_kept = made[id] && !matches!(module.op(id), Op::Constant(_));
        let bytes = if is_kept { model.weigh(module.shape(id)).footprint.padded_bytes } else { 0 };
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
    let mut last: SecondaryMap<InstId, usize> = SecondaryMap::new();
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
pub(super) fn is_made(module: &Module, id: InstId, model: &CostModel<'_>) -> bool {
    let is_fused = |id| model.is_fused(module, id);
    if is_fused(id) {
        return module.is_root(id) || is_stored(module, id, model, &is_fused);
    }
    let is_name = match module.op(id) {
        Op::Tuple
        | Op::GetTupleElement(_)
        | Op::OptimizationBarrier
        | Op::AddDependency
        | Op::Slice(_) => true,
        _ => is_other_name(module, id, model),
    };
    !is_name
}
