//! Computes a value in other dims: reshapes what it is computed from, not the value.

use smallvec::SmallVec;
use tilewright_ir::{InstId, Module, Op, Opcode, Patch, Shape, Value};

use crate::analysis::reduce::{reshape_op, shape_like};
use crate::cost::CostModel;

/// The most ops that are computed anew.
const MOST_OPS: usize = 16;

/// Returns a value, and what it is computed from where it is used, with the arrays that are reshaped for
/// it: at most [`MOST_OPS`] instructions.
pub(super) fn read_by(module: &Module, model: CostModel<'_>, value: InstId) -> Vec<InstId> {
    let mut all = vec![value];
    let mut at = 0;
    while let Some(&id) = all.get(at).filter(|_| at < MOST_OPS) {
        let is_alias = matches!(module.opcode(id), Opcode::Reshape | Opcode::Bitcast);
        if is_alias || model.is_fused(module, id) {
            all.extend_from_slice(module.operands(id));
        }
        at += 1;
    }
    all
}

/// A value that is computed in other dims.
pub(super) struct Lift<'a> {
    module: &'a Module,
    model: CostModel<'a>,
    /// The instruction before which the new ones stand.
    before: InstId,
    dims: &'a [i64],
    /// Whether barriers keep XLA from moving the reshapes back.
    barriers: bool,
    /// The values that are planned.
    known: SmallVec<[(InstId, Value); 4]>,
}

impl<'a> Lift<'a> {
    pub(super) fn new(
        module: &'a Module,
        model: CostModel<'a>,
        before: InstId,
        dims: &'a [i64],
        barriers: bool,
    ) -> Self {
        Self { module, model, before, dims, barriers, known: SmallVec::new() }
    }

    /// Plans the value in other dims. `None` if it depends on more than stored arrays of its dims
    /// and scalars.
    pub(super) fn value(&mut self, value: Value, patch: &mut Patch) -> Option<Value> {
        let Value::Old(id) = value else { return None };
        if let Some(&(_, known)) = self.known.iter().find(|&&(known, _)| known == id) {
            return Some(known);
        }
        let planned = self.planned(id, patch)?;
        self.known.push((id, planned));
        (self.known.len() <= MOST_OPS).then_some(planned)
    }

    fn planned(&mut self, id: InstId, patch: &mut Patch) -> Option<Value> {
        let module = self.module;
        let shape: Shape = shape_like(module.array_shape(id)?, self.dims);
        let (op, operands) = (module.op(id), module.operands(id));
        if !self.model.is_fused(module, id) {
            let reshaped =
                patch.add_like(id, self.before, reshape_op(), shape.clone(), [Value::Old(id)]);
            if !self.barriers {
                return Some(reshaped);
            }
            let barrier = Op::OptimizationBarrier;
            return Some(patch.add_like(id, self.before, barrier, shape, [reshaped]));
        }
        let is_scalar = |id: InstId| module.array_shape(id).is_some_and(|of| of.rank() == 0);
        match (op, operands) {
            (Op::Broadcast(_), &[scalar]) if is_scalar(scalar) => {
                let op = Op::Broadcast(Box::default());
                Some(patch.add_like(id, self.before, op, shape, [Value::Old(scalar)]))
            }
            _ if op.opcode().is_elementwise() && op.opcode() != Opcode::Constant => {
                let lift = |&operand: &InstId| {
                    if is_scalar(operand) {
                        Some(Value::Old(operand))
                    } else {
                        self.value(Value::Old(operand), patch)
                    }
                };
                let operands: Vec<Value> = operands.iter().map(lift).collect::<Option<_>>()?;
                Some(patch.add_like(id, self.before, op.clone(), shape, operands))
            }
            _ => None,
        }
    }
}
