//! Extrema that are reduced beside their places.

use tilewright_ir::reducer::Reducer;
use tilewright_ir::{InstId, Module, Op, Opcode};

use crate::analysis::reduce::{MonoidReduce, reduced_arrays};

/// Checks whether an extremum is reduced beside its place, also where a computation that is called
/// finds the place. XLA takes the extremum from there: maxima and places of `f32[672000,2]` along 1 took
/// 1.4 times as long with maxima in steps.
pub(super) fn is_beside_place(module: &Module, reduce: &MonoidReduce) -> bool {
    let greatest = match reduce.reducer.monoid().map(|monoid| monoid.opcode) {
        Some(Opcode::Maximum) => true,
        Some(Opcode::Minimum) => false,
        _ => return false,
    };
    let Some(&array) = reduced_arrays(module, reduce.id).first() else { return false };
    let dims = reduce.dims(module);
    let finds = |user: InstId, of: InstId| {
        let Op::Reduce(attrs) = module.op(user) else { return false };
        if attrs.dimensions.as_slice() != dims || reduced_arrays(module, user).first() != Some(&of)
        {
            return false;
        }
        let reducer = Reducer::of(module, attrs.to_apply);
        matches!(reducer, Some(Reducer::ArgExtremum(found)) if found.greatest == greatest)
    };
    let calls = |user: InstId| {
        let Op::Call(call) = module.op(user) else { return false };
        let operands = module.operands(user).iter();
        let parameters = module.computation(call.to_apply).parameters().iter();
        let mut passed = operands.zip(parameters).filter(|&(&operand, _)| operand == array);
        passed.any(|(_, &parameter)| {
            module.users(parameter).into_iter().any(|inner| finds(inner, parameter))
        })
    };
    module.users(array).into_iter().any(|user| finds(user, array) || calls(user))
}
