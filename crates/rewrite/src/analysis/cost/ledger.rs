//! What a module costs as a whole, kept up to date while it is edited.
//!
//! What an instruction costs depends on it and its operands: that is looked up, and computed
//! anew for what was edited. What the whole shows besides (what is read again, what
//! reductions share, how often kernels wait) is found in one sweep over the computations
//! that were edited.

use std::collections::VecDeque;

use rustc_hash::{FxHashMap, FxHashSet};
use tilewright_ir::{ArrayShape, CompId, InstId, Module, Opcode, SecondaryMap};

use super::contraction::{beside_contractions, is_contraction};
use super::memory::{is_made, peak};
use super::passes::{Passes, Places};
use super::residency::{AllFacts, Facts};
use super::{Cost, CostModel, Weighed, as_f64};
use crate::analysis::shared::{fused_computations, shared_values};

/// What a module costs, and what its instructions do.
#[derive(Debug)]
pub struct Ledger<'a> {
    model: CostModel<'a>,
    facts: AllFacts,
    /// The costs of the instructions in the sweep that came last over each, called
    /// computations included.
    costs: SecondaryMap<InstId, Cost>,
    totals: FxHashMap<CompId, Cost>,
    /// Cycles in which the entry's kernels wait for main memory.
    latency: f64,
    /// The bodies of fusions, where it matters what these are.
    fusions: FxHashSet<CompId>,
    /// What was known before the last update, unless that was kept or rolled back.
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
            let total = ledger.sweep(module, computation);
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
                let total = self.sweep(module, computation);
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

    /// What an instruction costs, with what it calls, in the sweep that came last: it is not
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
    pub fn image_passes(&self, module: &Module) -> usize {
        let Some(entry) = module.entry() else { return 0 };
        let elements = |id| module.array_shape(id).and_then(ArrayShape::num_elements).unwrap_or(0);
        let largest = module.instructions(entry).map(elements).max().unwrap_or(0);
        let is_image = |id: InstId| elements(id) > largest / 2;
        let places = Places { facts: &self.facts, is_large: &is_image };
        Passes::of(module, entry, &self.model, places).count()
    }

    /// Goes once over a computation: the costs of its instructions, and what all of it costs.
    fn sweep(&mut self, module: &Module, computation: CompId) -> Cost {
        let (model, is_entry) = (self.model, module.entry() == Some(computation));
        let facts = &self.facts;
        let weighed =
            |id: InstId| Weighed { shape: module.shape(id), footprint: facts[id].footprint };
        let costs = &mut self.costs;
        let mut total = Cost::default();
        let (mut any_large, mut any_work, mut any_contraction) = (false, false, false);
        let mut alone = 0usize;
        for id in module.instructions(computation) {
            let own = &facts[id];
            let (mut cost, opcode) = (own.cost, module.opcode(id));
            any_large |= own.is_large;
            alone += usize::from(own.is_small_contraction);
            any_work |= cost.cycles > 0.0;
            any_contraction |= is_contraction(module, id);
            if is_entry && opcode == Opcode::Parameter {
                cost += model.main_memory_read(weighed(id));
            }
            if is_entry && own.is_inlined() && module.is_root(id) {
                cost += model.stored(weighed(id));
            }
            if runs_its_callees(opcode) {
                let totals = &self.totals;
                let of = |callee| totals.get(&callee).copied().unwrap_or_default();
                module.op(id).for_each_computation(&mut |callee| cost += of(callee));
            }
            costs.set(id, cost);
            total += cost;
        }
        if !model.target.fuses_shared && !self.fusions.contains(&computation) {
            let mut stored: FxHashSet<InstId> = FxHashSet::default();
            for shared in shared_values(module, computation, &|id| facts[id].is_inlined()) {
                if stored.insert(shared.value) {
                    let cost = model.stored(weighed(shared.value));
                    *costs.get_mut(shared.value) += cost;
                    total += cost;
                }
            }
        }
        // Small arrays share one kernel, but for contractions: each is a kernel of its own.
        let mut kernels = usize::from(any_work);
        if any_large {
            let places = Places { facts, is_large: &|id| facts[id].is_large };
            let passes = Passes::of(module, computation, &model, places);
            kernels = kernels.max(passes.count());
            for (id, times) in passes.rereads() {
                let mut again = model.main_memory_read(weighed(id));
                again.cycles *= as_f64(u64::try_from(times).unwrap_or(u64::MAX));
                costs.get_mut(id).cycles += again.cycles;
                total.cycles += again.cycles;
            }
        }
        if is_entry {
            for (payer, output) in outputs(module, computation, facts, &model) {
                // What costs nothing is not stored, but there already.
                let stored = costs[payer].cycles;
                let unread = model.written_only(weighed(output)).min(stored);
                costs.get_mut(payer).cycles -= unread;
                total.cycles -= unread;
            }
        }
        if model.target.fuses_contractions && any_contraction {
            for id in beside_contractions(module, computation, facts) {
                // What it takes to store a result is not free.
                let computed = facts[id].cost.cycles.min(costs[id].cycles);
                costs.get_mut(id).cycles -= computed;
                total.cycles -= computed;
            }
        }
        let kernels = u64::try_from(kernels.saturating_add(alone)).unwrap_or(u64::MAX);
        // Until the first bytes are there, and until the last ones have arrived.
        let latency = 2.0 * as_f64(kernels) * model.target.hbm_latency_cycles;
        total.cycles += latency;
        if is_entry {
            self.latency = latency;
        }
        total
    }
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
