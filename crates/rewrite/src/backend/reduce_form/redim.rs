//! Plans a value in other dims: the arrays that it is computed from are reshaped, and its ops are
//! computed anew in those dims. `build.rs` uses this for the first step of a form.

use smallvec::SmallVec;
use tilewright_ir::{ElementType, InstId, Module, Op, Opcode, Patch, Shape, Value};

use crate::analysis::digits::Digits;
use crate::analysis::reduce::{reshape_op, shape_like};
use crate::cost::CostModel;
use crate::reshape_motion::broadcast_plan::repeated_through;

/// The most ops that are computed anew for one step.
const MOST_OPS: usize = 16;

/// The plan of values in other dims, under construction.
pub(super) struct RedimPlan<'a> {
    module: &'a Module,
    model: CostModel<'a>,
    /// The instruction before which the planned instructions are inserted.
    before: InstId,
    dims: &'a [i64],
    /// The values that are planned so far.
    known: SmallVec<[(InstId, Value); 4]>,
}

impl<'a> RedimPlan<'a> {
    pub(super) fn new(
        module: &'a Module,
        model: CostModel<'a>,
        before: InstId,
        dims: &'a [i64],
    ) -> Self {
        Self { module, model, before, dims, known: SmallVec::new() }
    }

    /// Plans a value in other dims. `None` if more than [`MOST_OPS`] ops compute it, or if one of
    /// them is neither elementwise nor repeats values along whole dims, or rounds to floats
    /// narrower than 32 bits.
    pub(super) fn value(&mut self, id: InstId, patch: &mut Patch) -> Option<Value> {
        if let Some(&(_, known)) = self.known.iter().find(|&&(known, _)| known == id) {
            return Some(known);
        }
        let planned = self.planned(id, patch)?;
        self.known.push((id, planned));
        (self.known.len() <= MOST_OPS).then_some(planned)
    }

    fn planned(&mut self, id: InstId, patch: &mut Patch) -> Option<Value> {
        let module = self.module;
        let array = module.array_shape(id)?;
        let shape: Shape = shape_like(array, self.dims);
        let (op, operands) = (module.op(id), module.operands(id));
        if !self.model.is_fused(module, id) {
            if array.dims() == self.dims {
                return Some(Value::Old(id));
            }
            let reshaped =
                patch.add_like(id, self.before, reshape_op(), shape.clone(), [Value::Old(id)]);
            let barrier = Op::OptimizationBarrier;
            return Some(patch.add_like(id, self.before, barrier, shape, [reshaped]));
        }
        match (op, operands) {
            (Op::Reshape(_), &[operand]) => self.value(operand, patch),
            (Op::Broadcast(_) | Op::Iota(_), _) => {
                let digits = Digits::of_reshape(self.dims, array.dims())?;
                repeats_as_it_is(module, id, &digits)
                    .then(|| repeated_through(module, id, &digits, patch))?
            }
            _ if op.opcode().is_elementwise()
                && op.opcode() != Opcode::Constant
                && !rounds_narrowly(array.element_type) =>
            {
                let redim = |&operand: &InstId| {
                    let is_scalar = module.array_shape(operand)?.rank() == 0;
                    if is_scalar { Some(Value::Old(operand)) } else { self.value(operand, patch) }
                };
                let operands: Vec<Value> = operands.iter().map(redim).collect::<Option<_>>()?;
                Some(patch.add_like(id, self.before, op.clone(), shape, operands))
            }
            _ => None,
        }
    }
}

/// Checks whether ops on elements of a type round to floats narrower than 32 bits. XLA removes such
/// roundings where it can (`xla_allow_excess_precision`), perhaps in one copy of a value and not in
/// another: the maximum of the copy might then equal no element of the value.
fn rounds_narrowly(element_type: ElementType) -> bool {
    element_type.is_float() && element_type.bits() < 32
}

/// Checks whether the operand of a broadcast can be broadcast in other dims without being made
/// larger first. Iotas and broadcasts of iotas always can: indices are computed wherever they are
/// used.
fn repeats_as_it_is(module: &Module, id: InstId, digits: &Digits) -> bool {
    let (Op::Broadcast(attrs), &[operand]) = (module.op(id), module.operands(id)) else {
        return true;
    };
    let places: Option<SmallVec<[usize; 6]>> =
        attrs.dimensions.iter().map(|&dim| usize::try_from(dim).ok()).collect();
    let plan = places.and_then(|places| digits.broadcast_through(&places));
    module.opcode(operand) == Opcode::Iota || plan.is_some_and(|plan| plan.inner_is_trivial())
}
