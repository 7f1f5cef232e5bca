//! Computes the peak live bytes of a computation: the most memory that its values occupy at once,
//! and what is alive then. The ledger asks for each computation that the entry runs, callees first.

use rustc_hash::{FxHashMap, FxHashSet};
use tilewright_ir::{CompId, InstId, Module, Op, Opcode, SecondaryMap};
use tilewright_target::Footprint;

use super::calls::runs_its_callees;
use super::residency::AllFacts;
use super::sweeps::filled;

/// When a computation holds most.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Peak {
    /// The bytes that its values and those of its callees occupy.
    pub(super) bytes: u64,
    /// The position, in the order of the computation, of the instruction that runs then.
    position: usize,
}

/// Computes the peak of a computation and its callees. `peaks` holds those of the callees, and `padded_bytes`
/// returns the memory that the result of an instruction occupies. The parameters of a computation other than the
/// entry belong to its caller and are not counted.
pub(super) fn peak(
    module: &Module,
    computation: CompId,
    facts: &AllFacts,
    peaks: &FxHashMap<CompId, Peak>,
    padded_bytes: impl Fn(InstId) -> u64,
) -> Peak {
    let order: Vec<InstId> = module.instructions(computation).collect();
    let live_ranges = live_ranges(module, computation, &order, facts);
    // The bytes that begin and end to live with each instruction.
    let mut changes: Vec<[u64; 2]> = vec![[0, 0]; order.len()];
    for &id in order.iter().filter(|&&id| is_counted(module, id, live_ranges[id])) {
        let (bytes, LiveRange { first, last, .. }) = (padded_bytes(id), live_ranges[id]);
        for (position, end) in [(first, 0), (last, 1)] {
            if let Some(change) = changes.get_mut(position) {
                change[end] = change[end].saturating_add(bytes);
            }
        }
    }
    let (mut live, mut most) = (0u64, Peak::default());
    for (position, (&id, [begin, end])) in order.iter().zip(changes).enumerate() {
        live = live.saturating_add(begin);
        let inside = callee_at_peak(module, id, peaks).map_or(0, |(_, peak)| peak.bytes);
        let bytes = live.saturating_add(inside);
        if bytes > most.bytes {
            most = Peak { bytes, position };
        }
        live = live.saturating_sub(end);
    }
    most
}

/// Checks whether the value of an instruction takes memory that is counted in its computation.
fn is_counted(module: &Module, id: InstId, range: LiveRange) -> bool {
    let is_outside = match module.op(id) {
        Op::Constant(_) => true,
        Op::Parameter(_) => module.entry() != module.instruction(id).parent(),
        _ => false,
    };
    range.takes_memory && !is_outside
}

/// Returns the computation that an instruction runs and that holds most, with its peak.
fn callee_at_peak(
    module: &Module,
    id: InstId,
    peaks: &FxHashMap<CompId, Peak>,
) -> Option<(CompId, Peak)> {
    if !runs_on_arrays(module.opcode(id)) {
        return None;
    }
    let known = module.called(id).into_iter();
    known
        .filter_map(|callee| Some((callee, *peaks.get(&callee)?)))
        .max_by_key(|(_, peak)| peak.bytes)
}

/// The arrays that a module holds in memory.
#[derive(Clone, Debug, Default)]
pub struct MemoryUse {
    /// The most bytes that values occupy at once, padding included: see [`super::peak_live_bytes`].
    pub peak_bytes: u64,
    /// The instruction of the entry that runs then; if it runs a computation, the instruction of this one that
    /// runs then, and so on.
    pub peak_at: Vec<InstId>,
    /// The arrays that take memory, in the order of their computations.
    pub arrays: Vec<StoredArray>,
    /// The number of arrays that count whole in a divided module, since nothing tells how they are divided.
    pub counted_whole: usize,
}

/// An array in memory.
#[derive(Clone, Copy, Debug)]
pub struct StoredArray {
    /// The instruction that makes it.
    pub id: InstId,
    /// The memory that it occupies.
    pub footprint: Footprint,
    /// Whether it is alive when the module holds most.
    pub is_alive_at_peak: bool,
}

impl MemoryUse {
    /// Finds what a module holds, with the memory that each result occupies.
    pub(super) fn of(
        module: &Module,
        facts: &AllFacts,
        footprint: impl Fn(InstId) -> Footprint,
    ) -> Self {
        let computations = computations_run(module);
        let mut peaks: FxHashMap<CompId, Peak> = FxHashMap::default();
        for &computation in &computations {
            let padded_bytes = |id| footprint(id).padded_bytes;
            peaks.insert(computation, peak(module, computation, facts, &peaks, padded_bytes));
        }
        let mut at_peak: FxHashMap<CompId, usize> = FxHashMap::default();
        let mut found = Self::default();
        let mut next = module.entry().and_then(|entry| Some((entry, *peaks.get(&entry)?)));
        found.peak_bytes = next.map_or(0, |(_, peak)| peak.bytes);
        while let Some((computation, peak)) = next.take() {
            at_peak.insert(computation, peak.position);
            let Some(id) = module.instructions(computation).nth(peak.position) else { break };
            found.peak_at.push(id);
            next = callee_at_peak(module, id, &peaks);
        }
        for computation in computations {
            let order: Vec<InstId> = module.instructions(computation).collect();
            let live_ranges = live_ranges(module, computation, &order, facts);
            for id in order.into_iter().filter(|&id| is_counted(module, id, live_ranges[id])) {
                let LiveRange { first, last, .. } = live_ranges[id];
                let at_peak = at_peak.get(&computation);
                let is_alive_at_peak = at_peak.is_some_and(|peak| (first..=last).contains(peak));
                found.arrays.push(StoredArray { id, footprint: footprint(id), is_alive_at_peak });
            }
        }
        found
    }
}

/// The time for which the value of an instruction is kept.
#[derive(Clone, Copy, Default)]
struct LiveRange {
    /// The position, in the order of the computation, of the instruction; 0 for the entry's parameters.
    first: usize,
    /// The position, in the order of the computation, of the last instruction that needs the value; the last of
    /// all for the entry's parameters.
    last: usize,
    /// Whether the value takes memory of its own: see
    /// [`Role::takes_memory`](super::roles::Role::takes_memory).
    takes_memory: bool,
    /// Whether a user has the value stored, to read it from memory.
    is_stored: bool,
}

/// Computes how long the value of each instruction of a computation is kept, in this order. A value that takes
/// no memory keeps its operands until its own last use. A result that is written into the memory of a donated
/// parameter takes none.
fn live_ranges(
    module: &Module,
    computation: CompId,
    order: &[InstId],
    facts: &AllFacts,
) -> SecondaryMap<InstId, LiveRange> {
    let mut live_ranges: SecondaryMap<InstId, LiveRange> = filled(module, order.len());
    for (position, &id) in order.iter().enumerate().rev() {
        let (role, is_root) = (facts.role(id), module.is_root(id));
        let mut range = live_ranges[id];
        range.first = position;
        range.last = if is_root { order.len() - 1 } else { range.last.max(position) };
        range.takes_memory = role.takes_memory(is_root || range.is_stored);
        live_ranges.set(id, range);
        let until = if range.takes_memory { position } else { range.last };
        for &operand in module.operands(id) {
            let of = live_ranges.get_mut(operand);
            of.last = of.last.max(until);
            of.is_stored |= role.stores_operands;
        }
    }
    for [result, parameter] in donated(module, computation) {
        let (last_read, made) = (live_ranges[parameter].last, live_ranges[result].first);
        let opcode = module.opcode(result);
        let works_in_place = opcode.is_elementwise() || opcode == Opcode::DynamicUpdateSlice;
        if last_read < made || last_read == made && works_in_place && result != parameter {
            live_ranges.get_mut(result).takes_memory = false;
        }
    }
    if module.entry() == Some(computation) {
        for &parameter in module.computation(computation).parameters() {
            let range = live_ranges.get_mut(parameter);
            (range.first, range.last) = (0, order.len().saturating_sub(1));
        }
    }
    live_ranges
}

/// Returns the results of the entry that may be written into the memory of a parameter, each with this parameter.
fn donated(module: &Module, computation: CompId) -> impl Iterator<Item = [InstId; 2]> {
    let is_entry = module.entry() == Some(computation);
    let aliases = if is_entry { module.header.input_output_alias.as_slice() } else { &[] };
    let computation = module.computation(computation);
    let at = |ids: &[InstId], number: i64| ids.get(usize::try_from(number).ok()?).copied();
    let result = move |output: &[i64]| match (computation.root()?, output) {
        (root, []) => Some(root),
        (root, &[index]) if module.opcode(root) == Opcode::Tuple => {
            at(module.operands(root), index)
        }
        _ => None,
    };
    let whole = aliases.iter().filter(|alias| alias.parameter_part.is_empty());
    whole.filter_map(move |alias| {
        Some([result(&alias.output)?, at(computation.parameters(), alias.parameter)?])
    })
}

/// Checks whether an instruction runs computations on arrays in memory. What a fusion computes is stored when it is
/// done.
fn runs_on_arrays(opcode: Opcode) -> bool {
    runs_its_callees(opcode) && opcode != Opcode::Fusion
}

/// Returns the entry and all computations that it runs on arrays in memory, callees first.
pub(super) fn computations_run(module: &Module) -> Vec<CompId> {
    run_by(module, |id| runs_on_arrays(module.opcode(id)))
}

/// Returns the entry and all computations that these instructions run, callees first.
pub(super) fn run_by(module: &Module, runs: impl Fn(InstId) -> bool) -> Vec<CompId> {
    let mut is_run: FxHashSet<CompId> = module.entry().into_iter().collect();
    let mut run = Vec::new();
    for &computation in module.computations().iter().rev() {
        if !is_run.contains(&computation) {
            continue;
        }
        run.push(computation);
        for id in module.instructions(computation).filter(|&id| runs(id)) {
            is_run.extend(module.called(id));
        }
    }
    run.reverse();
    run
}
