//! What the instructions of a module cost together.

use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;
use tilewright_ir::{ArrayShape, CompId, InstId, Module, Opcode, SecondaryMap, ShapeId};
use tilewright_target::{Footprint, Target};

use super::contraction::{beside_contractions, is_contraction};
use super::memory::is_made;
use super::passes::{Passes, Places};
use super::{Cost, CostModel, Operand, Weighed, as_f64, regroups};
use crate::analysis::shared::{fused_computations, shared_values};

/// The cost of one instruction of a module.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct InstructionCost {
    /// The instruction.
    pub id: InstId,
    /// Its cost; that of the computations it calls included.
    pub cost: Cost,
}

/// The modelled cost of running a module's entry once. Loop bodies count
/// once, and every branch of a conditional counts.
pub fn module_cost(module: &Module, target: &Target) -> Cost {
    let costs = Costs::of(module, target);
    module.entry().map_or_else(Cost::default, |entry| costs.total(entry))
}

/// The modelled cost of each instruction of the entry computation, in order, and the cycles
/// in which the entry's kernels wait for main memory; all together are [`module_cost`].
pub fn instruction_costs(module: &Module, target: &Target) -> (Vec<InstructionCost>, f64) {
    let costs = Costs::of(module, target);
    let Some(entry) = module.entry() else { return Default::default() };
    let instructions = module.instructions(entry);
    (instructions.map(|id| InstructionCost { id, cost: costs.of[id] }).collect(), costs.latency)
}

/// In how many passes the entry computation reads images: its arrays of at least
/// half as many elements as its largest one has.
pub fn image_passes(module: &Module, target: &Target) -> usize {
    let Some(entry) = module.entry() else { return 0 };
    let model = CostModel { target };
    let elements = |id| module.array_shape(id).and_then(ArrayShape::num_elements).unwrap_or(0);
    let largest = module.instructions(entry).map(elements).max().unwrap_or(0);
    let (mut large, mut fused) = (SecondaryMap::new(), SecondaryMap::new());
    for id in module.instructions(entry) {
        large.set(id, elements(id) > largest / 2);
        fused.set(id, model.is_fused(module, id));
    }
    Passes::of(module, entry, &model, Places { large: &large, fused: &fused }).count()
}

/// The costs of all instructions of a module.
struct Costs {
    of: SecondaryMap<InstId, Cost>,
    totals: FxHashMap<CompId, Cost>,
    /// Cycles in which the entry's kernels wait for main memory.
    latency: f64,
}

impl Costs {
    fn of(module: &Module, target: &Target) -> Self {
        let mut costs = Self { of: Default::default(), totals: Default::default(), latency: 0.0 };
        let mut fused = SecondaryMap::<InstId, bool>::new();
        let mut regrouped = SecondaryMap::<InstId, bool>::new();
        let mut large = SecondaryMap::<InstId, bool>::new();
        let model = CostModel { target };
        let fusions =
            if target.fuses_shared { FxHashSet::default() } else { fused_computations(module) };
        let mut shapes = Shapes { module, model, footprints: SecondaryMap::new() };
        for &computation in module.computations() {
            let is_entry = module.entry() == Some(computation);
            let mut total = Cost::default();
            let mut any_large = false;
            let (mut any_work, mut alone) = (false, 0usize);
            for id in module.instructions(computation) {
                let operands: SmallVec<[Operand<'_>; 4]> = module
                    .operands(id)
                    .iter()
                    .map(|&o| Operand {
                        value: shapes.weighed(o),
                        fused: fused[o],
                        regrouped: regrouped[o],
                    })
                    .collect();
                let (op, shape) = (module.op(id), shapes.weighed(id));
                fused.set(id, model.fuses(op, shape.shape, &operands));
                let is_large = shape.shape.as_array().is_some() && !model.stays_on_chip(shape);
                large.set(id, is_large);
                any_large |= is_large;
                let is_small = !is_large && operands.iter().all(|o| model.stays_on_chip(o.value));
                alone += usize::from(is_small && is_contraction(module, id));
                let source = operands.first().map(|operand| operand.value.shape);
                regrouped.set(id, fused[id] && regroups(op, source, shape.shape));
                let mut cost = model.in_module(module, op, shape, &operands);
                any_work |= cost.cycles > 0.0;
                if is_entry && op.opcode() == Opcode::Parameter {
                    cost += model.main_memory_read(shape);
                }
                if is_entry && fused[id] && module.is_root(id) {
                    cost += model.stored(shape);
                }
                if runs_its_callees(op.opcode()) {
                    op.for_each_computation(&mut |callee| cost += costs.total(callee));
                }
                costs.of.set(id, cost);
                total += cost;
            }
            if !target.fuses_shared && !fusions.contains(&computation) {
                let mut stored = SecondaryMap::<InstId, bool>::new();
                for shared in shared_values(module, computation, &|id| fused[id]) {
                    if !std::mem::replace(stored.get_mut(shared.value), true) {
                        let cost = model.stored(shapes.weighed(shared.value));
                        *costs.of.get_mut(shared.value) += cost;
                        total += cost;
                    }
                }
            }
            if target.fuses_contractions {
                for id in beside_contractions(module, computation, &fused) {
                    let cost = costs.of.get_mut(id);
                    total.cycles -= std::mem::take(&mut cost.cycles);
                }
            }
            // Small arrays share one kernel, but for contractions: each is a kernel of its own.
            let mut kernels = usize::from(any_work);
            if any_large {
                let places = Places { large: &large, fused: &fused };
                let passes = Passes::of(module, computation, &model, places);
                kernels = kernels.max(passes.count());
                for (id, times) in passes.rereads() {
                    let mut again = model.main_memory_read(shapes.weighed(id));
                    again.cycles *= as_f64(u64::try_from(times).unwrap_or(u64::MAX));
                    costs.of.get_mut(id).cycles += again.cycles;
                    total.cycles += again.cycles;
                }
            }
            if is_entry {
                for (payer, output) in outputs(module, computation, &fused, &model) {
                    // What costs nothing is not stored, but there already.
                    let stored = costs.of[payer].cycles;
                    let unread = model.written_only(shapes.weighed(output)).min(stored);
                    costs.of.get_mut(payer).cycles -= unread;
                    total.cycles -= unread;
                }
            }
            let kernels = u64::try_from(kernels.saturating_add(alone)).unwrap_or(u64::MAX);
            // Until the first bytes are there, and until the last ones have arrived.
            let latency = 2.0 * as_f64(kernels) * target.hbm_latency_cycles;
            total.cycles += latency;
            if is_entry {
                costs.latency = latency;
            }
            costs.totals.insert(computation, total);
        }
        costs
    }

    fn total(&self, computation: CompId) -> Cost {
        self.totals.get(&computation).copied().unwrap_or_default()
    }
}

/// The results of the entry that nothing reads again, and whose cost has what storing each
/// of them takes.
fn outputs(
    module: &Module,
    entry: CompId,
    fused: &SecondaryMap<InstId, bool>,
    model: &CostModel<'_>,
) -> Vec<(InstId, InstId)> {
    let Some(root) = module.computation(entry).root() else { return Vec::new() };
    let is_tuple = module.opcode(root) == Opcode::Tuple;
    let results = if is_tuple { module.operands(root) } else { std::slice::from_ref(&root) };
    let mut seen = FxHashSet::default();
    let once = results.iter().filter(|&&result| seen.insert(result));
    let pairs = once.filter_map(|&result| {
        let is_read = module.users(result).iter().any(|&user| user != root);
        let is_new = !matches!(module.opcode(result), Opcode::Parameter | Opcode::Constant);
        match fused[result] {
            true => Some((root, result)),
            false if is_new && !is_read && is_made(module, result, model) => Some((result, result)),
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

/// The shapes of a module, each distinct one weighed once.
struct Shapes<'a> {
    module: &'a Module,
    model: CostModel<'a>,
    footprints: SecondaryMap<ShapeId, Option<Footprint>>,
}

impl<'a> Shapes<'a> {
    fn weighed(&mut self, id: InstId) -> Weighed<'a> {
        let id = self.module.instruction(id).shape_id();
        let shape = self.module.shape_of(id);
        let footprint = self.footprints.get_mut(id);
        let footprint = footprint.get_or_insert_with(|| self.model.footprint(shape));
        Weighed { shape, footprint: *footprint }
    }
}
