//! **Put reductions of one array that wait for the same reductions side by side.**
//!
//! ```text
//! s = sum x;  a = f(s);  q = sum y;  b = g(q);  t = sum x*y
//! becomes
//! s = sum x;  q = sum y;  t = sum x*y;  a = f(s);  b = g(q)
//! ```
//!
//! A backend that fuses sibling reductions reads their array once. If the backend looks for
//! siblings among neighbours only, or keeps the order of the instructions of the module, siblings
//! have to be neighbours. The pass moves each sibling up to the first one, together with the
//! operands that it waits for. No value changes.
//!
//! The *depth* of an instruction is the length of the longest chain of reductions of arrays in main
//! memory that it waits for. Two reductions of the same depth do not wait for each other.
//!
//! Preconditions: the arrays are in main memory, the target reads them once for all siblings
//! (`shares_sweeps`), and no moved instruction has a side effect.

use petgraph::unionfind::UnionFind;
use rustc_hash::{FxHashMap, FxHashSet};
use tilewright_ir::{CompId, EditError, InstId, Module, Opcode, SecondaryMap};

use crate::analysis::reduce::reduced_arrays;
use crate::cost::{Ledger, Residency};
use crate::driver::numbers::Class;
use crate::driver::{Context, Pass};

/// See the module.
pub struct ClusterSiblingReductions;

impl Pass for ClusterSiblingReductions {
    fn name(&self) -> &'static str {
        "cluster-sibling-reductions"
    }

    fn summary(&self) -> &'static str {
        "put reductions of one array that wait for the same side by side"
    }

    fn class(&self) -> Class {
        Class::Exact
    }

    fn run(&self, module: &mut Module, cx: &mut Context<'_>) -> Result<usize, EditError> {
        if !cx.target.shares_sweeps {
            return Ok(0);
        }
        let effectful = module.effectful_computations();
        let ledger = cx.ledger(module);
        let mut changes = 0;
        for computation in module.computations().to_vec() {
            let order: Vec<InstId> = module.instructions(computation).collect();
            let siblings = siblings(module, &order, ledger);
            if siblings.is_empty() {
                continue;
            }
            let adjacent = Sequence::of(module, &order, &siblings, &effectful);
            if adjacent != order {
                module.order_instructions(computation, &adjacent)?;
                changes += 1;
            }
        }
        Ok(changes)
    }
}

/// Returns the groups of at least two reductions that can read an array together: the first
/// reduction of each group, mapped to the others.
fn siblings(
    module: &Module,
    order: &[InstId],
    ledger: &Ledger<'_>,
) -> FxHashMap<InstId, Vec<InstId>> {
    let depths = depths(module, order, ledger);
    let reductions: Vec<InstId> =
        order.iter().copied().filter(|&id| module.opcode(id) == Opcode::Reduce).collect();
    let mut joined = UnionFind::<usize>::new(reductions.len());
    let mut first: FxHashMap<(InstId, u32), usize> = FxHashMap::default();
    for (place, &reduction) in reductions.iter().enumerate() {
        for source in sources(module, reduction, ledger) {
            joined.union(*first.entry((source, depths[reduction])).or_insert(place), place);
        }
    }
    let mut siblings: FxHashMap<usize, (InstId, Vec<InstId>)> = FxHashMap::default();
    for (place, &reduction) in reductions.iter().enumerate() {
        let of = siblings.entry(joined.find(place));
        of.and_modify(|(_, others)| others.push(reduction)).or_insert((reduction, Vec::new()));
    }
    siblings.into_values().filter(|(_, others)| !others.is_empty()).collect()
}

/// Returns the depth of each instruction: see the module.
fn depths(module: &Module, order: &[InstId], ledger: &Ledger<'_>) -> SecondaryMap<InstId, u32> {
    let mut depths: SecondaryMap<InstId, u32> = SecondaryMap::new();
    for &id in order {
        let of = |&operand: &InstId| {
            let reduces = module.opcode(operand) == Opcode::Reduce
                && reduced_arrays(module, operand).iter().any(|&a| ledger.is_large(a));
            depths[operand].saturating_add(u32::from(reduces))
        };
        let depth = module.operands(id).iter().map(of).max().unwrap_or(0);
        depths.set(id, depth);
    }
    depths
}

/// The most instructions that are visited to find the arrays that one reduction reads.
const MOST_STEPS: usize = 256;

/// Returns the arrays in main memory that a reduction reads, directly or through inlined values.
fn sources(module: &Module, reduction: InstId, ledger: &Ledger<'_>) -> Vec<InstId> {
    let mut next = reduced_arrays(module, reduction).to_vec();
    let mut met: Vec<InstId> = Vec::new();
    let mut sources = Vec::new();
    while let Some(id) = next.pop().filter(|_| met.len() < MOST_STEPS) {
        if met.contains(&id) || !ledger.is_large(id) {
            continue;
        }
        met.push(id);
        match ledger.residency(id) {
            Residency::Inlined => next.extend(module.operands(id)),
            Residency::Alias | Residency::Stored => sources.push(id),
        }
    }
    sources
}

/// The most instructions that are visited in one computation to decide which reductions can move.
const MOST_VISITS: usize = 1 << 22;

/// An order of a computation's instructions under construction.
struct Sequence<'a> {
    module: &'a Module,
    effectful: &'a FxHashSet<CompId>,
    /// The position of each instruction in the old order.
    places: SecondaryMap<InstId, usize>,
    /// Whether each instruction is in the new order.
    is_placed: SecondaryMap<InstId, bool>,
    /// The instructions of the new order so far.
    placed: Vec<InstId>,
    /// The number of instructions that may still be visited to decide which reductions can move.
    work: usize,
}

impl<'a> Sequence<'a> {
    /// Returns an order in which siblings are neighbours, behind the instructions that they wait
    /// for. All other instructions keep their order.
    fn of(
        module: &'a Module,
        order: &[InstId],
        siblings: &FxHashMap<InstId, Vec<InstId>>,
        effectful: &'a FxHashSet<CompId>,
    ) -> Vec<InstId> {
        let mut sequence = Self {
            module,
            effectful,
            places: SecondaryMap::new(),
            is_placed: SecondaryMap::new(),
            placed: Vec::with_capacity(order.len()),
            work: MOST_VISITS,
        };
        order.iter().enumerate().for_each(|(place, &id)| sequence.places.set(id, place));
        for &id in order {
            let mut next = vec![id];
            while let Some(id) = next.pop() {
                if sequence.is_placed[id] {
                    continue;
                }
                let before = sequence.missing(id);
                if before.is_empty() {
                    sequence.is_placed.set(id, true);
                    sequence.placed.push(id);
                    for &other in siblings.get(&id).into_iter().flatten().rev() {
                        if sequence.is_movable(other) {
                            next.push(other);
                        }
                    }
                } else {
                    next.push(id);
                    next.extend(before.into_iter().rev());
                }
            }
        }
        sequence.placed
    }

    /// Returns the instructions that `id` waits for, directly or through others, and that are not
    /// in the new order yet, in their old order.
    fn missing(&self, id: InstId) -> Vec<InstId> {
        let mut met: Vec<InstId> = Vec::new();
        let mut seen: FxHashSet<InstId> = FxHashSet::default();
        let mut next = vec![id];
        while let Some(id) = next.pop() {
            for before in self.waits_for(id) {
                if !self.is_placed[before] && seen.insert(before) {
                    met.push(before);
                    next.push(before);
                }
            }
        }
        met.sort_unstable_by_key(|&id| self.places[id]);
        met
    }

    fn waits_for(&self, id: InstId) -> impl Iterator<Item = InstId> + '_ {
        let controls = self.module.extras(id).map(|extras| extras.control_predecessors.iter());
        self.module.operands(id).iter().chain(controls.into_iter().flatten()).copied()
    }

    /// Checks whether a reduction can move: no instruction that it waits for has a side effect.
    /// Returns `false` once the budget of visits is spent.
    fn is_movable(&mut self, id: InstId) -> bool {
        if self.work == 0 {
            return false;
        }
        let before = self.missing(id);
        self.work = self.work.saturating_sub(before.len());
        !before.iter().any(|&id| self.module.has_side_effect(id, self.effectful))
    }
}
