//! The cost of a module as a whole, kept up to date while it is edited.
//!
//! The cost of an instruction depends on itself and its operands. The ledger stores it, and
//! computes it anew for edited instructions. Other costs show in a whole computation only:
//! arrays that are read again, values that reductions share, kernels that wait for main
//! memory. The ledger finds them by going once over each edited computation.

use std::collections::VecDeque;

use rustc_hash::{FxHashMap, FxHashSet};
use tilewright_ir::{ArrayShape, CompId, InstId, Module, Opcode, SecondaryMap};

use super::contraction::{beside_contractions, is_contraction};
use super::memory::{is_made, peak};
use super::residency::{AllFacts, Facts};
use super::shared::{fused_computations, shared_values};
use super::sweeps::{MemorySweeps, Places};
use super::{Cost, CostModel, Weighed, as_f64};

/// The costs of a module, its computations and its instructions.
#[derive(Debug)]
pub struct Ledger<'a> {
    model: CostModel<'a>,
    facts: AllFacts,
    /// The costs of the instructions when they were counted last over each, called
    /// computations included.
    costs: SecondaryMap<InstId, Cost>,
    totals: FxHashMap<CompId, Cost>,
    /// Cycles in which the entry's kernels wait for main memory.
    latency: f64,
    /// The bodies of fusions, where it matters what these are.
    fusions: FxHashSet<CompId>,
    /// The state before the last update, unless that was kept or rolled back.
    before: Option<Before>,
}

/// What an update replaced.
#[derive(Debug, Default)]
struct Before {
    facts: Vec<(InstId, Facts)>,
    totals: Vec<(CompId, Option<Cost>)>,
    latency: f64,
}

impl<'a> Ledger<'a> {
    /// The ledger of a module.
    pub fn of(module: &Module, model: CostModel<'a>) -> Self {
        let shares = model.target.fuses_shared;
        let mut ledger = Self {
            model,
            facts: AllFacts::new(),
            costs: SecondaryMap::new(),
            totals: FxHashMap::default(),
            latency: 0.0,
            fusions: if shares { FxHashSet::default() } else { fused_computations(module) },
            before: None,
        };
        ledger.facts.fill(module.instruction_bound());
        for &computation in module.computations() {
            for id in module.instructions(computation) {
                ledger.facts.set(id, model.facts(module, id, &ledger.facts));
            }
            let total = ledger.recount(module, computation);
            ledger.totals.insert(computation, total);
        }
        ledger
    }

    /// Follows the edits of a module: these instructions were made, removed or edited, or
    /// their uses changed. [`Self::roll_back`] undoes it until [`Self::keep`]. Which computation
    /// is the entry, and which are the bodies of fusions, must not change.
    pub fn update(&mut self, module: &Module, edited: &[InstId]) {
        let mut before = Before { latency: self.latency, ..Before::default() };
        // First in, first out, and each once at a time: what has many operands waits for all.
        let mut next: VecDeque<InstId> = edited.iter().copied().collect();
        let mut waiting: FxHashSet<InstId> = edited.iter().copied().collect();
        let mut changed: FxHashSet<CompId> = FxHashSet::default();
        while let Some(id) = next.pop_front() {
            waiting.remove(&id);
            let Some(parent) = module.instruction(id).parent() else { continue };
            changed.insert(parent);
            let facts = self.model.facts(module, id, &self.facts);
            let old = self.facts[id];
            if facts != old {
                self.facts.set(id, facts);
                before.facts.push((id, old));
                if !facts.looks_like(&old) {
                    let users = module.uses(id).map(|one| one.user);
                    next.extend(users.filter(|&user| waiting.insert(user)));
                }
            }
        }
        // What was removed leaves neighbours, which are among the edited ones.
        for &computation in module.computations() {
            for id in callers(module, computation, &changed) {
                changed.insert(computation);
                before.facts.push((id, self.facts[id]));
                self.facts.set(id, self.model.facts(module, id, &self.facts));
            }
            if changed.contains(&computation) || !self.totals.contains_key(&computation) {
                changed.insert(computation);
                let total = self.recount(module, computation);
                let old = self.totals.insert(computation, total);
                before.totals.push((computation, old));
            }
        }
        self.before = Some(before);
    }

    /// Goes back to what was known of the module before the last update.
    pub fn roll_back(&mut self) {
        let Some(before) = self.before.take() else { return };
        for (id, facts) in before.facts.into_iter().rev() {
            self.facts.set(id, facts);
        }
        for (computation, total) in before.totals {
            match total {
                Some(total) => self.totals.insert(computation, total),
                None => self.totals.remove(&computation),
            };
        }
        self.latency = before.latency;
    }

    /// Holds on to what the last update found.
    pub fn keep(&mut self) {
        self.before = None;
    }

    /// What running a computation once costs, and the computations that it calls.
    pub fn total(&self, computation: CompId) -> Cost {
        self.totals.get(&computation).copied().unwrap_or_default()
    }

    /// The cycles of running the module once.
    pub fn cycles(&self, module: &Module) -> f64 {
        module.entry().map_or(0.0, |entry| self.total(entry).cycles)
    }

    /// What an instruction costs, with what it calls, when they were counted last: it is not
    /// rolled back.
    pub(super) fn instruction(&self, id: InstId) -> Cost {
        self.costs[id]
    }

    /// The cycles in which the entry's kernels wait for main memory.
    pub(super) fn latency(&self) -> f64 {
        self.latency
    }

    /// The most bytes that hold values at once: see [`super::peak_live_bytes`].
    pub fn peak_live_bytes(&self, module: &Module) -> u64 {
        let mut peaks: FxHashMap<CompId, u64> = FxHashMap::default();
        // A computation stands after those that it calls.
        for &computation in module.computations() {
            let peak = peak(module, computation, &self.model, &self.facts, &peaks);
            peaks.insert(computation, peak);
        }
        module.entry().and_then(|entry| peaks.get(&entry).copied()).unwrap_or(0)
    }

    /// In how many passes the entry computation reads images: its arrays of at least
    /// half as many elements as its largest one has.
    pub fn memory_sweeps(&self, module: &Module) -> usize {
        let Some(entry) = module.entry() else { return 0 };
        let elements = |id| module.array_shape(id).and_then(ArrayShape::num_elements).unwrap_or(0);
        let largest = module.instructions(entry).map(elements).max().unwrap_or(0);
        let is_image = |id: InstId| elements(id) > largest / 2;
        let places = Places { facts: &self.facts, is_large: &is_image };
        MemorySweeps::of(module, entry, &self.model, places).count()
    }

    /// Goes over a computation: the costs of its instructions, and the cost of all of it.
    fn recount(&mut self, module: &Module, computation: CompId) -> Cost {
        let (model, is_entry) = (self.model, module.entry() == Some(computation));
        let (mut total, seen) = self.add_up(module, computation);
        if !model.target.fuses_shared && !self.fusions.contains(&computation) {
            total += self.store_shared(module, computation);
        }
        let mut kernels = usize::from(seen.work);
        if seen.large {
            let facts = &self.facts;
            let places = Places { facts, is_large: &|id| facts[id].is_large };
            let sweeps = MemorySweeps::of(module, computation, &model, places);
            // Small arrays share one kernel, but for contractions: each is a kernel of its own.
            kernels = kernels.max(sweeps.count());
            for (id, times) in sweeps.rereads() {
                let again = model.main_memory_read(self.weighed(module, id)).cycles;
                total.cycles +=
                    self.charge(id, again * as_f64(u64::try_from(times).unwrap_or(u64::MAX)));
            }
        }
        if is_entry {
            for (payer, output) in outputs(module, computation, &self.facts, &model) {
                // A result that costs nothing is not stored, but there already.
                let stored = self.costs[payer].cycles;
                let unread = model.written_only(self.weighed(module, output)).min(stored);
                total.cycles += self.charge(payer, -unread);
            }
        }
        if model.target.fuses_contractions && seen.contraction {
            for id in beside_contractions(module, computation, &self.facts) {
                // Storing a result is not free.
                let computed = self.facts[id].cost.cycles.min(self.costs[id].cycles);
                total.cycles += self.charge(id, -computed);
            }
        }
        let kernels = u64::try_from(kernels.saturating_add(seen.alone)).unwrap_or(u64::MAX);
        // Until the first bytes are there, and until the last ones have arrived.
        let latency = 2.0 * as_f64(kernels) * model.target.hbm_latency_cycles;
        total.cycles += latency;
        if is_entry {
            self.latency = latency;
        }
        total
    }

    /// The cost of the instructions of a computation, each by itself, and what there is in it.
    fn add_up(&mut self, module: &Module, computation: CompId) -> (Cost, Seen) {
        let (model, is_entry) = (self.model, module.entry() == Some(computation));
        let (mut total, mut seen) = (Cost::default(), Seen::default());
        for id in module.instructions(computation) {
            let own = &self.facts[id];
            let (mut cost, opcode) = (own.cost, module.opcode(id));
            seen.large |= own.is_large;
            seen.alone += usize::from(own.is_small_contraction);
            seen.work |= cost.cycles > 0.0;
            seen.contraction |= is_contraction(module, id);
            if is_entry && opcode == Opcode::Parameter {
                cost += model.main_memory_read(self.weighed(module, id));
            }
            if is_entry && own.is_inlined() && module.is_root(id) {
                cost += model.stored(self.weighed(module, id));
            }
            if runs_its_callees(opcode) {
                module.op(id).for_each_computation(&mut |callee| cost += self.total(callee));
            }
            self.costs.set(id, cost);
            total += cost;
        }
        (total, seen)
    }

    /// The cost of storing the values that reductions share.
    fn store_shared(&mut self, module: &Module, computation: CompId) -> Cost {
        let (facts, many) = (&self.facts, self.model.target.library_elements);
        let found = shared_values(module, computation, many, &|id| facts[id].is_inlined());
        let (mut total, mut stored) = (Cost::default(), FxHashSet::default());
        for shared in found {
            if stored.insert(shared.value) {
                let cost = self.model.stored(self.weighed(module, shared.value));
                *self.costs.get_mut(shared.value) += cost;
                total += cost;
            }
        }
        total
    }

    /// Has an instruction cost so many more cycles; as many.
    fn charge(&mut self, id: InstId, cycles: f64) -> f64 {
        self.costs.get_mut(id).cycles += cycles;
        cycles
    }

    fn weighed<'m>(&self, module: &'m Module, id: InstId) -> Weighed<'m> {
        Weighed { shape: module.shape(id), footprint: self.facts[id].footprint }
    }
}

/// What [`Ledger::recount`] met in a computation.
#[derive(Default)]
struct Seen {
    /// An array too large for vector memory.
    large: bool,
    /// An instruction that takes cycles.
    work: bool,
    contraction: bool,
    /// How many contractions are kernels of their own, of small arrays.
    alone: usize,
}

/// The instructions of a computation that call any of others.
fn callers(module: &Module, computation: CompId, of: &FxHashSet<CompId>) -> Vec<InstId> {
    // Nothing calls the entry, where most edits are.
    if of.iter().all(|&callee| module.entry() == Some(callee)) {
        return Vec::new();
    }
    let calls = |id: &InstId| module.called(*id).iter().any(|callee| of.contains(callee));
    module.instructions(computation).filter(calls).collect()
}

/// The results of the entry that nothing reads again, and whose cost has what storing each
/// of them takes.
fn outputs(
    module: &Module,
    entry: CompId,
    facts: &AllFacts,
    model: &CostModel<'_>,
) -> Vec<(InstId, InstId)> {
    let Some(root) = module.computation(entry).root() else { return Vec::new() };
    let is_tuple = module.opcode(root) == Opcode::Tuple;
    let results = if is_tuple { module.operands(root) } else { std::slice::from_ref(&root) };
    let mut seen = FxHashSet::default();
    let once = results.iter().filter(|&&result| seen.insert(result));
    let pairs = once.filter_map(|&result| {
        let is_read = module.uses(result).any(|one| one.user != root);
        let is_new = !matches!(module.opcode(result), Opcode::Parameter | Opcode::Constant);
        match facts[result].is_inlined() {
            true => Some((root, result)),
            false if is_new && !is_read && is_made(module, result, model, facts) => {
                Some((result, result))
            }
            false => None,
        }
    });
    pairs.collect()
}

/// Whether called computations work on whole arrays; those of reduces, sorts
/// and the like work on elements and are counted with their caller.
pub(super) fn runs_its_callees(opcode: Opcode) -> bool {
    matches!(
        opcode,
        Opcode::Call | Opcode::Fusion | Opcode::While | Opcode::Conditional | Opcode::AsyncStart
    )
}
