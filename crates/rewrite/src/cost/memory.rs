//! Computes the peak live bytes of a computation: the most memory that its values occupy at once.
//! The ledger asks for each computation that the entry runs, callees first.

use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;
use tilewright_ir::{CompId, InstId, Module, Op, SecondaryMap};

use super::ledger::runs_its_callees;
use super::residency::AllFacts;
use super::sweeps::filled;

/// Computes the peak live bytes of a computation and its callees. `peaks` holds those of the
/// callees. The parameters of a computation other than the entry belong to its caller and are not
/// counted.
pub(super) fn peak(
    module: &Module,
    computation: CompId,
    facts: &AllFacts,
    peaks: &FxHashMap<CompId, u64>,
) -> u64 {
    let order: Vec<InstId> = module.instructions(computation).collect();
    let lives = lives(module, &order, facts);
    let mut ends: Vec<u64> = vec![0; order.len()];
    let (mut live, mut most) = (0u64, 0u64);
    for (place, &id) in order.iter().enumerate() {
        let (op, life) = (module.op(id), lives[id]);
        let is_kept = life.is_made && !matches!(op, Op::Constant(_));
        let bytes = if is_kept { facts[id].footprint.padded_bytes } else { 0 };
        let runs = runs_its_callees(op.opcode());
        let callees = if runs { module.called(id) } else { SmallVec::new() };
        let inside = callees.iter().filter_map(|callee| peaks.get(callee)).max().copied();
        let parameter = matches!(op, Op::Parameter(_));
        if !parameter || module.entry() == Some(computation) {
            live = live.saturating_add(bytes);
            let end = if parameter { None } else { ends.get_mut(life.last) };
            if let Some(end) = end {
                *end = end.saturating_add(bytes);
            }
        }
        most = most.max(live.saturating_add(inside.unwrap_or(0)));
        live = live.saturating_sub(ends[place]);
    }
    most
}

/// The time for which the value of an instruction is kept.
#[derive(Clone, Copy, Default)]
struct Life {
    /// The position, in the order of the computation, of the last instruction that needs the value.
    last: usize,
    /// Whether the value takes memory of its own: see
    /// [`Role::is_made`](super::roles::Role::is_made).
    is_made: bool,
    /// Whether a user has the value stored, to read it from memory.
    is_stored: bool,
}

/// Computes how long the value of each instruction is kept. A value that takes no memory keeps its
/// operands until its own last use.
fn lives(module: &Module, order: &[InstId], facts: &AllFacts) -> SecondaryMap<InstId, Life> {
    let mut lives: SecondaryMap<InstId, Life> = filled(module, order.len());
    for (place, &id) in order.iter().enumerate().rev() {
        let (role, is_root) = (facts.role(id), module.is_root(id));
        let mut life = lives[id];
        life.last = if is_root { order.len() - 1 } else { life.last.max(place) };
        life.is_made = role.is_made(is_root || life.is_stored);
        lives.set(id, life);
        let until = if life.is_made { place } else { life.last };
        for &operand in module.operands(id) {
            let of = lives.get_mut(operand);
            of.last = of.last.max(until);
            of.is_stored |= role.stores_operands;
        }
    }
    lives
}

/// Returns the entry and all computations that it runs on whole arrays, callees first.
pub(super) fn computations_run(module: &Module) -> Vec<CompId> {
    let mut is_run: FxHashSet<CompId> = module.entry().into_iter().collect();
    let mut run = Vec::new();
    for &computation in module.computations().iter().rev() {
        if !is_run.contains(&computation) {
            continue;
        }
        run.push(computation);
        for id in module.instructions(computation) {
            if runs_its_callees(module.opcode(id)) {
                is_run.extend(module.called(id));
            }
        }
    }
    run.reverse();
    run
}
