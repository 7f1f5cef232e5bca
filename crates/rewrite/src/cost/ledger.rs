//! Keeps the cost of a whole module up to date while passes edit it.
//!
//! The cost of an instruction depends on the instruction and its operands; the ledger computes it
//! again for edited instructions. Other costs depend on more: arrays that are read again
//! (`unshared_readers.rs`, `sweeps.rs`) and values that reductions share (`shared_stores.rs`). The
//! ledger updates these from the edited instructions, too. On targets with `shares_sweeps` it
//! instead visits each edited computation once.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};

use rustc_hash::{FxHashMap, FxHashSet};
use tilewright_ir::{CompId, InstId, Module, Opcode, SecondaryMap};

use crate::analysis::sharding::Traffic;

use super::calls::{
    callers, is_of_state, loop_computations, loops_from, outputs, runs, runs_its_callees,
};
use super::contraction::beside_contractions;
use super::devices::Devices;
use super::extra_costs::ExtraCosts;
use super::memory::{Peak, computations_run, peak};
use super::residency::{AllFacts, Facts, Residency};
use super::roles::Role;
use super::shared::fused_computations;
use super::shared_stores::{SharedStores, StoresView};
use super::sweep_count::SweepCount;
use super::sweeps::{MemorySweeps, Scratch};
use super::total::Total;
use super::unshared_readers::{ReadersView, UnsharedReaders};
use super::{Cost, CostModel, SizedShape, as_f64};
use crate::guards::is_guard;

/// The costs of a module, its computations and its instructions.
#[derive(Clone, Debug)]
pub struct Ledger<'a> {
    model: CostModel<'a>,
    entry: Option<CompId>,
    facts: AllFacts,
    /// The contribution of each instruction to the sum of its computation.
    contributions: SecondaryMap<InstId, Contribution>,
    sums: FxHashMap<CompId, ComputationSum>,
    totals: FxHashMap<CompId, Cost>,
    /// The extra costs of the entry's instructions at its last count.
    extra: ExtraCosts,
    /// The cycles in which the entry's kernels wait for main memory and for other devices.
    latency: f64,
    /// The devices that the module is divided over.
    devices: Devices,
    /// The bodies and conditions of loops.
    loops: FxHashSet<CompId>,
    /// The bodies of fusions, on a target without `fuses_shared`.
    fusions: FxHashSet<CompId>,
    /// The values that the last update replaced, unless it was kept or rolled back.
    undo: Option<Undo>,
    /// The instructions that the last update visited.
    visited: Vec<InstId>,
    scratch: Scratch,
    /// The readers of large arrays, on a target without `shares_sweeps`.
    readers: Option<UnsharedReaders>,
    /// The values that reductions share, on a target without `fuses_shared`.
    stores: Option<SharedStores>,
}

/// The contribution of an instruction to the sum of its computation.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Contribution {
    computation: Option<CompId>,
    /// The cost of the instruction and of the computations that it calls.
    cost: Cost,
    /// Whether the result is an array too large for vector memory.
    is_large: bool,
    /// Whether the instruction is a contraction of small arrays, which is a kernel of its own.
    is_small_contraction: bool,
    is_contraction: bool,
    /// Whether the instruction takes cycles itself.
    takes_cycles: bool,
}

/// The sums over the contributions of a computation's instructions: costs, and counts of
/// instructions.
#[derive(Clone, Copy, Debug, Default)]
struct ComputationSum {
    total: Total,
    large: usize,
    small_contractions: usize,
    contractions: usize,
    /// The number of instructions that take cycles.
    taking_cycles: usize,
}

/// The values that an update replaced, which a roll-back restores.
#[derive(Clone, Debug, Default)]
struct Undo {
    facts: Vec<(InstId, Facts, Role)>,
    contributions: Vec<(InstId, Contribution)>,
    totals: Vec<(CompId, Option<Cost>)>,
    latency: f64,
    /// The devices, if the update added computations.
    devices: Option<Devices>,
    /// The bodies and conditions of loops, if the update made or removed loops.
    loops: Option<FxHashSet<CompId>>,
}

impl<'a> Ledger<'a> {
    /// Builds the ledger of a module.
    pub fn of(module: &Module, model: CostModel<'a>) -> Self {
        let mut ledger = Self::empty(module, model);
        ledger.fill(module, || false);
        ledger
    }

    /// Builds the ledger of a module, or returns `None` if another thread sets `cancel` meanwhile.
    pub(super) fn with_cancel(
        module: &Module,
        model: CostModel<'a>,
        cancel: &AtomicBool,
    ) -> Option<Self> {
        let mut ledger = Self::empty(module, model);
        ledger.fill(module, || cancel.load(Ordering::Relaxed)).then_some(ledger)
    }

    /// Returns a ledger whose costs are not computed yet.
    fn empty(module: &Module, model: CostModel<'a>) -> Self {
        let stores_shared = !model.target.fuses_shared;
        Self {
            model,
            entry: module.entry(),
            facts: AllFacts::for_all(module),
            contributions: SecondaryMap::new(),
            sums: FxHashMap::default(),
            totals: FxHashMap::default(),
            extra: ExtraCosts::default(),
            latency: 0.0,
            devices: Devices::of(module),
            loops: loop_computations(module),
            fusions: if stores_shared { fused_computations(module) } else { FxHashSet::default() },
            undo: None,
            visited: Vec::new(),
            scratch: Scratch::default(),
            readers: None,
            stores: None,
        }
    }

    /// Computes all costs. Returns whether it finished without being cancelled.
    fn fill(&mut self, module: &Module, is_cancelled: impl Fn() -> bool) -> bool {
        for &computation in module.computations() {
            for id in module.instructions(computation) {
                if is_cancelled() {
                    return false;
                }
                let (facts, role) = self.facts_and_role(module, id);
                self.facts.set(id, facts, role);
            }
        }
        if !self.model.target.fuses_shared {
            self.stores = Some(SharedStores::of(self.stores_view(module)));
        }
        if !self.model.target.shares_sweeps {
            self.readers = Some(self.unshared_readers(module));
        }
        self.contributions.fill(module.instruction_bound());
        for &computation in module.computations() {
            for id in module.instructions(computation) {
                if is_cancelled() {
                    return false;
                }
                self.set_contribution(id, self.contribution(module, id));
            }
            let total = self.computation_cost(module, computation);
            self.totals.insert(computation, total);
        }
        true
    }

    /// Updates the costs after edits: `edited` holds the instructions that were made, removed or
    /// edited, or whose uses changed. [`Self::roll_back`] undoes the update until [`Self::keep`].
    /// The entry and the set of fusion bodies must not change.
    pub fn update(&mut self, module: &Module, edited: &[InstId]) {
        let mut undo = Undo { latency: self.latency, ..Undo::default() };
        let mut changed: FxHashSet<CompId> = FxHashSet::default();
        if module.computations().iter().any(|of| !self.totals.contains_key(of)) {
            undo.devices = self.devices.refresh(module);
        }
        let mut visited = self.update_facts(module, edited, &mut undo);
        self.update_readers_and_stores(module, &mut visited);
        visited.extend(loops_from(module, &visited));
        if edited.iter().any(|&id| module.opcode(id) == Opcode::While) {
            let loops = loop_computations(module);
            for &computation in loops.symmetric_difference(&self.loops) {
                let is_there = module.computations().contains(&computation);
                visited.extend(module.instructions(computation).filter(|_| is_there));
            }
            undo.loops = Some(std::mem::replace(&mut self.loops, loops));
        }
        for &id in &visited {
            changed.extend(self.contributions[id].computation);
            changed.extend(module.instruction(id).parent());
            self.update_contribution(module, id, &mut undo);
        }
        for &computation in module.computations() {
            for id in callers(module, computation, &changed) {
                changed.insert(computation);
                // The cost of a reduction depends on the computation that it reduces by.
                self.find_again(module, id, &mut undo);
                self.update_contribution(module, id, &mut undo);
            }
            if changed.contains(&computation) || !self.totals.contains_key(&computation) {
                changed.insert(computation);
                let total = self.computation_cost(module, computation);
                let old = self.totals.insert(computation, total);
                undo.totals.push((computation, old));
            }
        }
        self.undo = Some(undo);
        self.visited = visited;
    }

    /// Returns this ledger after edits of any kind, built anew if the entry or the fusion bodies
    /// changed or if more than a quarter of the instructions were edited.
    pub(crate) fn caught_up(mut self, module: &Module, edited: &[InstId]) -> Self {
        let is_same_frame = self.entry == module.entry()
            && (self.stores.is_none() || fused_computations(module) == self.fusions);
        if !is_same_frame || edited.len() > module.instruction_count() / 4 {
            return Self::of(module, self.model);
        }
        if !edited.is_empty() {
            self.update(module, edited);
            self.keep();
        }
        self
    }

    /// Restores the state before the last update.
    pub fn roll_back(&mut self) {
        let Some(undo) = self.undo.take() else { return };
        for (id, facts, role) in undo.facts.into_iter().rev() {
            self.facts.set(id, facts, role);
        }
        for (id, contribution) in undo.contributions.into_iter().rev() {
            self.set_contribution(id, contribution);
        }
        for (computation, total) in undo.totals {
            match total {
                Some(total) => self.totals.insert(computation, total),
                None => self.totals.remove(&computation),
            };
        }
        self.latency = undo.latency;
        if let Some(devices) = undo.devices {
            self.devices = devices;
        }
        if let Some(loops) = undo.loops {
            self.loops = loops;
        }
        self.readers.iter_mut().for_each(UnsharedReaders::roll_back);
        self.stores.iter_mut().for_each(SharedStores::roll_back);
    }

    /// Makes the last update permanent.
    pub fn keep(&mut self) {
        self.undo = None;
        self.readers.iter_mut().for_each(UnsharedReaders::keep);
        self.stores.iter_mut().for_each(SharedStores::keep);
    }

    /// Returns the cost of running a computation once, with the computations that it calls.
    pub fn total(&self, computation: CompId) -> Cost {
        self.totals.get(&computation).copied().unwrap_or_default()
    }

    /// Returns the cycles of running the module once.
    pub fn cycles(&self, module: &Module) -> f64 {
        module.entry().map_or(0.0, |entry| self.total(entry).cycles)
    }

    /// Returns where the result of an instruction lives.
    pub fn residency(&self, id: InstId) -> Residency {
        self.facts.role(id).residency
    }

    /// Checks whether the result of an instruction is an array too large for vector memory.
    pub(crate) fn is_large(&self, id: InstId) -> bool {
        self.facts.role(id).is_large
    }

    /// Returns the cost of an instruction of the entry, its extra costs and its callees included.
    /// [`Self::roll_back`] does not restore the extra costs.
    pub(super) fn instruction(&self, id: InstId) -> Cost {
        let mut cost = self.contributions[id].cost;
        cost += self.extra.of(id);
        cost
    }

    /// Returns the cycles in which the entry's kernels wait for main memory and for other devices.
    pub(super) fn latency(&self) -> f64 {
        self.latency
    }

    /// Computes the most bytes that hold values at once: see [`super::peak_live_bytes`].
    pub fn peak_live_bytes(&self, module: &Module) -> u64 {
        let mut peaks: FxHashMap<CompId, Peak> = FxHashMap::default();
        let padded_bytes = |id: InstId| self.facts[id].footprint.padded_bytes;
        // The callees of a computation come before it.
        for computation in computations_run(module) {
            let peak = peak(module, computation, &self.facts, &peaks, padded_bytes);
            peaks.insert(computation, peak);
        }
        module.entry().and_then(|entry| peaks.get(&entry)).map_or(0, |peak| peak.bytes)
    }

    /// Counts the sweeps in which the entry computation reads its largest arrays: see
    /// [`SweepCount`].
    pub fn memory_sweeps(&self, module: &Module) -> usize {
        SweepCount::of(self, module).get()
    }

    pub(super) fn model(&self) -> CostModel<'a> {
        self.model
    }

    pub(super) fn facts(&self) -> &AllFacts {
        &self.facts
    }

    /// Returns the instructions that the last update visited.
    pub(super) fn visited(&self) -> &[InstId] {
        &self.visited
    }

    fn stores_view<'m>(&'m self, module: &'m Module) -> StoresView<'m> {
        let (many, fusions) = (self.model.target.library_elements, &self.fusions);
        StoresView { module, facts: &self.facts, many, fusions }
    }

    /// Finds the readers of the large arrays of all computations.
    fn unshared_readers(&self, module: &Module) -> UnsharedReaders {
        let is_large = |id: InstId| self.facts.role(id).is_large;
        let view = ReadersView { module, facts: &self.facts, is_large: &is_large };
        let mut readers = UnsharedReaders::default();
        module.computations().iter().for_each(|&computation| readers.enter(computation, view));
        readers
    }

    /// Finds the facts of the edited instructions again, then those of their users, for as long as
    /// users see a difference. Returns all visited instructions, each once.
    fn update_facts(&mut self, module: &Module, edited: &[InstId], undo: &mut Undo) -> Vec<InstId> {
        // The queue holds each instruction once, mostly behind all of its edited operands.
        let mut next: VecDeque<InstId> = edited.iter().copied().collect();
        let mut waiting: FxHashSet<InstId> = edited.iter().copied().collect();
        let mut visited: Vec<InstId> = edited.to_vec();
        let mut is_visited = waiting.clone();
        while let Some(id) = next.pop_front() {
            waiting.remove(&id);
            if module.instruction(id).parent().is_none() {
                continue;
            }
            if self.find_again(module, id, undo) {
                for user in module.uses(id).map(|one| one.user) {
                    if waiting.insert(user) {
                        next.push_back(user);
                    }
                    if is_visited.insert(user) {
                        visited.push(user);
                    }
                }
            }
        }
        visited
    }

    /// Finds the facts of an instruction again. Returns whether its users see a difference.
    fn find_again(&mut self, module: &Module, id: InstId, undo: &mut Undo) -> bool {
        let (facts, role) = self.facts_and_role(module, id);
        let (old, old_role) = (self.facts[id], self.facts.role(id));
        if facts == old && role == old_role {
            return false;
        }
        self.facts.set(id, facts, role);
        undo.facts.push((id, old, old_role));
        !facts.looks_like(&old)
    }

    /// Updates the readers of large arrays and the values that reductions share after edits of
    /// `visited`, and adds to `visited` the instructions for which these changed.
    fn update_readers_and_stores(&mut self, module: &Module, visited: &mut Vec<InstId>) {
        let facts = &self.facts;
        let edited = visited.len();
        if let Some(readers) = &mut self.readers {
            let is_large = |id: InstId| facts.role(id).is_large;
            readers.update(&visited[..edited], ReadersView { module, facts, is_large: &is_large });
            visited.extend(readers.changed());
        }
        if let Some(stores) = &mut self.stores {
            let (many, fusions) = (self.model.target.library_elements, &self.fusions);
            stores.update(&visited[..edited], StoresView { module, facts, many, fusions });
            visited.extend(stores.changed());
        }
    }

    /// Returns the facts and the role of an instruction, found from those of its operands.
    fn facts_and_role(&self, module: &Module, id: InstId) -> (Facts, Role) {
        let mut facts = self.model.facts(module, id, &self.facts);
        if let (true, Some(of)) = (is_guard(module, id), module.instruction(id).parent()) {
            facts.cost.cycles *= self.devices.guard_factor(of);
        }
        (facts, self.model.role(module, id, &facts))
    }

    /// Computes the contribution of an instruction to the sum of its computation.
    fn contribution(&self, module: &Module, id: InstId) -> Contribution {
        let Some(computation) = module.instruction(id).parent() else {
            return Contribution::default();
        };
        let (model, facts) = (&self.model, &self.facts[id]);
        let (mut cost, opcode) = (facts.cost, module.opcode(id));
        if module.entry() == Some(computation) {
            if opcode == Opcode::Parameter {
                cost += model.main_memory_read(self.sized_shape(module, id));
            }
            if facts.is_inlined() && module.is_root(id) {
                cost += model.store_cost(self.sized_shape(module, id));
            }
        }
        if runs_its_callees(opcode) && !is_guard(module, id) {
            module.op(id).for_each_computation(&mut |callee| {
                let repeats = self.devices.repeats(callee).saturating_mul(runs(module, id, callee));
                cost += self.total(callee).times(repeats);
            });
        }
        if self.stores.as_ref().is_some_and(|stores| stores.holds(id)) {
            cost += model.store_cost(self.sized_shape(module, id));
        }
        if let Some(readers) = &self.readers {
            cost.cycles += self.further_reads(module, id, readers.reads(id));
        }
        Contribution {
            computation: Some(computation),
            cost,
            is_large: facts.is_large,
            is_small_contraction: facts.is_small_contraction,
            is_contraction: self.facts.role(id).is_contraction,
            takes_cycles: facts.cost.cycles > 0.0,
        }
    }

    fn update_contribution(&mut self, module: &Module, id: InstId, undo: &mut Undo) {
        let (old, new) = (self.contributions[id], self.contribution(module, id));
        if old != new {
            undo.contributions.push((id, old));
            self.set_contribution(id, new);
        }
    }

    /// Replaces the contribution of an instruction in the sum of its computation.
    fn set_contribution(&mut self, id: InstId, contribution: Contribution) {
        let old = std::mem::replace(self.contributions.get_mut(id), contribution);
        for (contribution, is_there) in [(old, false), (contribution, true)] {
            let Some(computation) = contribution.computation else { continue };
            let sum = self.sums.entry(computation).or_default();
            let step = |count: &mut usize, counts: bool| {
                let step = usize::from(counts);
                *count = if is_there { *count + step } else { count.saturating_sub(step) };
            };
            step(&mut sum.large, contribution.is_large);
            step(&mut sum.small_contractions, contribution.is_small_contraction);
            step(&mut sum.contractions, contribution.is_contraction);
            step(&mut sum.taking_cycles, contribution.takes_cycles);
            if is_there {
                sum.total.add(contribution.cost);
            } else {
                sum.total.subtract(contribution.cost);
            }
        }
    }

    /// Computes the cost of a computation, whose contributions must have been set:
    /// `contributions + extra costs + 2 * kernels * hbm_latency_cycles`,
    /// plus the waits of devices in the entry.
    fn computation_cost(&mut self, module: &Module, computation: CompId) -> Cost {
        let (model, is_entry) = (self.model, module.entry() == Some(computation));
        let sum = self.sums.get(&computation).copied().unwrap_or_default();
        let mut extra = ExtraCosts::default();
        // XLA inlines manual computations: the small work in them shares a kernel of the caller.
        let is_inlined = self.devices.is_manual(computation);
        let mut kernels = usize::from(sum.taking_cycles > 0 && !is_inlined);
        if sum.large > 0 {
            // Each sweep is a kernel. The work on small arrays shares one of these kernels, but
            // each contraction of small arrays is a kernel of its own (`small_contractions`).
            let sweeps = match &self.readers {
                Some(readers) => readers.count(computation),
                None => self.read_again(module, computation, &mut extra),
            };
            kernels = kernels.max(sweeps);
        }
        // The next turn of a loop reads its state, and is charged for that.
        if is_entry || self.loops.contains(&computation) {
            for (payer, output) in outputs(module, computation, &self.facts) {
                // An instruction without cost stores nothing: its result is in memory already.
                let stored = self.cycles_with(&extra, payer);
                let unread = model.read_back_cycles(self.sized_shape(module, output)).min(stored);
                extra.add_cycles(payer, -unread);
            }
        }
        if model.target.fuses_contractions && sum.contractions > 0 {
            for id in beside_contractions(module, computation, &self.facts) {
                // The cycles of storing the result stay charged.
                let computed = self.facts[id].cost.cycles.min(self.cycles_with(&extra, id));
                extra.add_cycles(id, -computed);
            }
        }
        let kernels =
            u64::try_from(kernels.saturating_add(sum.small_contractions)).unwrap_or(u64::MAX);
        // A kernel waits for its first bytes to arrive, and for its last bytes to be written.
        let mut latency = 2.0 * as_f64(kernels) * model.target.hbm_latency_cycles;
        if is_entry {
            latency += self.devices.waits(module, self.model.target);
        }
        let mut total = sum.total.cost();
        total.cycles += extra.total.cost().cycles;
        total.cycles += latency;
        if is_entry {
            self.latency = latency;
            self.extra = extra;
        }
        total
    }

    /// Returns how much devices communicate; `None` if the module is not divided.
    pub(crate) fn traffic(&self, module: &Module) -> Option<Traffic> {
        self.devices.traffic(module)
    }

    /// Returns the cycles of an instruction, its extra costs included.
    fn cycles_with(&self, extra: &ExtraCosts, id: InstId) -> f64 {
        self.contributions[id].cost.cycles + extra.of(id).cycles
    }

    /// Charges large arrays for each read but the first. Returns the number of sweeps that read.
    fn read_again(
        &mut self,
        module: &Module,
        computation: CompId,
        extra: &mut ExtraCosts,
    ) -> usize {
        let (model, mut scratch) = (self.model, std::mem::take(&mut self.scratch));
        let facts = &self.facts;
        let is_large = |id: InstId| facts.role(id).is_large;
        let sweeps =
            MemorySweeps::of((module, computation), &model, facts, &is_large, &mut scratch);
        for (id, reads) in sweeps.reads() {
            extra.add_cycles(id, self.further_reads(module, id, reads));
            // A slice of the array reads its own part of it.
            let users = module.uses(id).map(|one| one.user);
            for part in users.filter(|&user| module.opcode(user) == Opcode::Slice) {
                let read = model.main_memory_read(self.sized_shape(module, part)).cycles;
                extra.add_cycles(part, read);
            }
        }
        self.scratch = scratch;
        sweeps.count()
    }

    /// Returns the cycles of reading a large array this often from main memory, without those that its maker is charged
    /// for: the first, but for what a loop carries, which each turn reads.
    fn further_reads(&self, module: &Module, id: InstId, reads: usize) -> f64 {
        if reads == 0 {
            return 0.0;
        }
        let is_in_loop = module.instruction(id).parent().is_some_and(|of| self.loops.contains(&of));
        let is_carried = is_in_loop && is_of_state(module, id);
        let further = if is_carried { reads } else { reads.saturating_sub(1) };
        let again = self.model.main_memory_read(self.sized_shape(module, id)).cycles;
        again * as_f64(u64::try_from(further).unwrap_or(u64::MAX))
    }

    fn sized_shape<'m>(&self, module: &'m Module, id: InstId) -> SizedShape<'m> {
        SizedShape { shape: module.shape(id), footprint: self.facts[id].footprint }
    }
}
