//! Recognises instructions that select the greatest or least elements of rows.

use tilewright_ir::{InstId, Module, Op, Verified};

use crate::codegen::reduce::Selection;

/// The target of the custom call that XLA uses for `topk`.
const CUSTOM_CALL: &str = "TopK";

/// Checks whether an instruction selects the greatest elements of every row (`true`) or the
/// least (`false`). `None` for other instructions.
pub(super) fn largest(module: &Module, id: InstId) -> Option<bool> {
    match module.op(id) {
        Op::TopK(attrs) => Some(attrs.largest),
        Op::CustomCall(attrs) => (attrs.custom_call_target == CUSTOM_CALL).then_some(true),
        _ => None,
    }
}

/// Returns the selection of a `topk` or of XLA's custom call for it. `None` for other
/// instructions.
pub fn selection(module: &Verified, id: InstId) -> Option<Selection> {
    let largest = largest(module, id)?;
    let &[operand] = module.operands(id) else { return None };
    let [values, places] = module.shape(id).as_tuple()? else { return None };
    let array = module.array_shape(operand)?.clone();
    Some(Selection {
        name: module.name_of(id).to_owned(),
        dim: array.rank().checked_sub(1)?,
        array,
        results: [values.as_array()?.clone(), places.as_array()?.clone()],
        largest,
    })
}
