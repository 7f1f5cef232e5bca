//! What the instructions of a module cost together.

use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use tilewright_ir::{CompId, InstId, Module, Opcode, SecondaryMap, ShapeId};
use tilewright_target::{Footprint, Target};

use super::{Cost, CostModel, Operand, Weighed, regroups};

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

/// The modelled cost of each instruction of the entry computation, in order.
pub fn instruction_costs(module: &Module, target: &Target) -> Vec<InstructionCost> {
    let costs = Costs::of(module, target);
    let Some(entry) = module.entry() else { return Vec::new() };
    module.instructions(entry).map(|id| InstructionCost { id, cost: costs.of[id] }).collect()
}

/// The costs of all instructions of a module.
struct Costs {
    of: SecondaryMap<InstId, Cost>,
    totals: FxHashMap<CompId, Cost>,
}

impl Costs {
    fn of(module: &Module, target: &Target) -> Self {
        let mut costs = Self { of: Default::default(), totals: Default::default() };
        let mut fused = SecondaryMap::<InstId, bool>::new();
        let mut regrouped = SecondaryMap::<InstId, bool>::new();
        let model = CostModel { target };
        let mut shapes = Shapes { module, target, footprints: SecondaryMap::new() };
        for &computation in module.computations() {
            let is_entry = module.entry() == Some(computation);
            let mut total = Cost::default();
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
                let source = operands.first().map(|operand| operand.value.shape);
                regrouped.set(id, fused[id] && regroups(op, source, shape.shape));
                let mut cost = model.instruction(op, shape, &operands);
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
            costs.totals.insert(computation, total);
        }
        costs
    }

    fn total(&self, computation: CompId) -> Cost {
        self.totals.get(&computation).copied().unwrap_or_default()
    }
}

/// Whether called computations work on whole arrays; those of reduces, sorts
/// and the like work on elements and are counted with their caller.
fn runs_its_callees(opcode: Opcode) -> bool {
    matches!(
        opcode,
        Opcode::Call | Opcode::Fusion | Opcode::While | Opcode::Conditional | Opcode::AsyncStart
    )
}

/// The shapes of a module, each distinct one weighed once.
struct Shapes<'a> {
    module: &'a Module,
    target: &'a Target,
    footprints: SecondaryMap<ShapeId, Option<Footprint>>,
}

impl<'a> Shapes<'a> {
    fn weighed(&mut self, id: InstId) -> Weighed<'a> {
        let id = self.module.instruction(id).shape_id();
        let shape = self.module.shape_of(id);
        let footprint = self.footprints.get_mut(id);
        let footprint = footprint.get_or_insert_with(|| self.target.shape_footprint(shape));
        Weighed { shape, footprint: *footprint }
    }
}
