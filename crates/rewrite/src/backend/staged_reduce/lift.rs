//! Computes a value in other dims: reshapes what it is computed from, not the value.

use rustc_hash::FxHashSet;
use smallvec::SmallVec;
use tilewright_ir::{InstId, Module, Op, Opcode, Patch, Shape, Use, Value};

use crate::analysis::reduce::{reshape_op, shape_like};
use crate::cost::CostModel;

/// The most ops that are computed anew.
const MOST_OPS: usize = 16;
/// The most ops that follow a value, and the most users of each, that are looked at.
const MOST_FOLLOWING: usize = 64;

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

/// Checks whether a value, or one that it is computed from, is also the operand of a function such as an
/// exponential whose results are reduced. If the value is then computed in other dims, the other reduction
/// is its only reader, and the library computes the function in that one's rows: log-sum-exps of `relu`,
/// `abs`, `tanh` or squares in rows of 2 to 12 took up to 3 times as long.
pub(super) fn precedes_reduced_function(
    module: &Module,
    model: CostModel<'_>,
    value: InstId,
) -> bool {
    let computes = |&id: &InstId| {
        module.opcode(id).is_elementwise() && model.is_fused(module, id) && !is_constant(module, id)
    };
    let computed = read_by(module, model, value).into_iter().filter(computes);
    let mut met: FxHashSet<InstId> = computed.collect();
    let mut next: Vec<(InstId, bool)> = met.iter().map(|&id| (id, false)).collect();
    while let Some((id, follows_function)) = next.pop() {
        for Use { user, .. } in module.uses(id).take(MOST_FOLLOWING) {
            let opcode = module.opcode(user);
            if follows_function && opcode == Opcode::Reduce {
                return true;
            }
            if opcode.is_elementwise() && met.len() < MOST_FOLLOWING && met.insert(user) {
                next.push((user, follows_function || opcode.is_transcendental()));
            }
        }
    }
    false
}

fn is_constant(module: &Module, id: InstId) -> bool {
    module.opcode(id) == Opcode::Constant
}

/// A value that is computed in other dims.
pub(super) struct Lift<'a> {
    module: &'a Module,
    model: CostModel<'a>,
    /// The instruction before which the new ones stand.
    before: InstId,
    dims: &'a [i64],
    /// The values that are planned.
    known: SmallVec<[(InstId, Value); 4]>,
}

impl<'a> Lift<'a> {
    pub(super) fn new(
        module: &'a Module,
        model: CostModel<'a>,
        before: InstId,
        dims: &'a [i64],
    ) -> Self {
        Self { module, model, before, dims, known: SmallVec::new() }
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
            let barrier = Op::OptimizationBarrier;
            return Some(patch.add_like(id, self.before, barrier, shape, [reshaped]));
        }
        let is_scalar = |id: InstId| module.array_shape(id).is_some_and(|of| of.rank() == 0);
        match (op, operands) {
            (Op::Broadcast(_), &[scalar]) if is_scalar(scalar) => {
                let op = Op::Broadcast(Box::default());
                Some(patch.add_like(id, self.before, op, shape, [Value::Old(scalar)]))
            }
            _ if op.opcode().is_elementwise() && !is_constant(module, id) => {
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
