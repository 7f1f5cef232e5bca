//! Guards: conditionals whose first branch returns its argument, and whose second branch, which is
//! seldom taken, computes the same value in another way.

use tilewright_ir::metadata::value_of;
use tilewright_ir::{
    ArrayLiteral, Data, ElementType, InstId, Literal, Module, Op, Opcode, Position, Shape,
    Verified, verify,
};

/// The frontend attribute that marks a guard; its value says what it guards.
pub(crate) const GUARD: &str = "tilewright_guard";

/// The number of the branch that a guard takes where its test holds.
pub const HELD: usize = 0;

/// The number of the branch that it takes where its test fails.
pub const FAILED: usize = 1;

/// Checks whether an instruction is a guard.
pub(crate) fn is_guard(module: &Module, id: InstId) -> bool {
    module.opcode(id) == Opcode::Conditional
        && module
            .extras(id)
            .is_some_and(|extras| value_of(&extras.frontend_attributes, GUARD).is_some())
}

/// Checks whether an instruction calls a computation that returns the result of a guard.
pub(crate) fn calls_guard(module: &Module, id: InstId) -> bool {
    let Op::Call(attrs) = module.op(id) else { return false };
    module.computation(attrs.to_apply).root().is_some_and(|root| is_guard(module, root))
}

/// Returns the guards of a module.
pub fn guards(module: &Module) -> Vec<InstId> {
    let all =
        module.computations().iter().flat_map(|&computation| module.instructions(computation));
    all.filter(|&id| is_guard(module, id)).collect()
}

/// Returns the module with guards whose tests fail, whatever the data, so that their second branches can be
/// tried; `None` if it has no guards.
pub fn failing(module: &Verified) -> Option<Verified> {
    let guards = guards(module);
    if guards.is_empty() {
        return None;
    }
    let mut module = module.clone().into_inner();
    for guard in guards {
        let failed = ArrayLiteral::new(ElementType::S32, [], Data::S32(vec![1])).ok()?;
        let failed = Op::Constant(Box::new(Literal::Array(failed)));
        let (before, name) = (Position::Before(guard), module.fresh_name(Opcode::Constant.name()));
        let failed =
            module.insert(before, failed, Shape::scalar(ElementType::S32), &[], name).ok()?;
        module.set_operand(guard, 0, failed).ok()?;
    }
    verify(module).ok()
}
