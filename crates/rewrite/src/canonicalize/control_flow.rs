//! Loops and branches in their simplest form.
//!
//! - `conditional(c, x0, x1 ...) = call(xi)` where `c` is a constant that takes branch i, or where
//!   all branches are equal and get the same argument;
//! - `while(x) = x` where the condition is constantly false;
//! - `while(x).i = x.i` where the body returns element i unchanged.
//!
//! An instruction with something attached (a sharding, control edges) stays, because the result
//! could not carry it. A branch may have side effects: it still runs once, in the same place. So
//! may a loop: it stays until nothing needs it.

use std::cell::OnceCell;

use rustc_hash::FxHashMap;
use tilewright_ir::ops::control::{CallAttrs, ConditionalAttrs, GetTupleElementAttrs, WhileAttrs};
use tilewright_ir::{
    ArrayLiteral, CompId, Data, EditError, InstId, Literal, Module, Op, Patch, Value,
};

use crate::analysis::equivalence::representatives;
use crate::driver::numbers::Class;
use crate::driver::{Context, Pass};

/// See the module.
pub struct ControlFlow;

impl Pass for ControlFlow {
    fn name(&self) -> &'static str {
        "control-flow"
    }

    fn summary(&self) -> &'static str {
        "take branches that are known, and values around loops that leave them alone"
    }

    fn class(&self) -> Class {
        Class::Exact
    }

    fn run(&self, module: &mut Module, _cx: &mut Context<'_>) -> Result<usize, EditError> {
        let same = OnceCell::new();
        let mut changes = 0;
        for computation in module.computations().to_vec() {
            let instructions: Vec<InstId> = module.instructions(computation).collect();
            for id in instructions {
                let used = module.is_live(id);
                if !used || module.extras(id).is_some() {
                    continue;
                }
                let Some(patch) = simpler(module, id, &same) else { continue };
                patch.apply(module)?;
                // The call runs the branch now, so the conditional must go.
                if matches!(module.op(id), Op::Conditional(_)) {
                    module.remove(id)?;
                }
                changes += 1;
            }
        }
        Ok(changes)
    }
}

/// For each computation, the first one that equals it; found on first use.
type Same = OnceCell<FxHashMap<CompId, CompId>>;

fn simpler(module: &Module, id: InstId, same: &Same) -> Option<Patch> {
    let mut patch = Patch::new();
    let simpler = match module.op(id) {
        Op::Conditional(attrs) => {
            let (to_apply, argument) = only_branch(module, id, attrs, same)?;
            let call = Op::Call(Box::new(CallAttrs { to_apply, is_composite: false }));
            patch.add(id, call, module.shape(id).clone(), [Value::Old(argument)])
        }
        Op::While(attrs) if is_never(module, attrs.condition) => {
            let [state] = *module.operands(id) else { return None };
            Value::Old(state)
        }
        Op::GetTupleElement(attrs) => around_loop(module, id, attrs, &mut patch)?,
        _ => return None,
    };
    if patch.shape(module, simpler) != module.shape(id) {
        return None;
    }
    patch.replace(id, simpler);
    Some(patch)
}

/// Returns the branch that is always taken, and its argument.
fn only_branch(
    module: &Module,
    id: InstId,
    attrs: &ConditionalAttrs,
    same: &Same,
) -> Option<(CompId, InstId)> {
    let two_way = [attrs.true_computation, attrs.false_computation];
    let branches: Vec<CompId> = match two_way {
        [Some(on_true), Some(on_false)] => vec![on_true, on_false],
        _ => attrs.branch_computations.to_vec(),
    };
    let (selector, arguments) = module.operands(id).split_first()?;
    let taken = match module.constant(*selector) {
        Some(value) => branch_of(value, branches.len())?,
        None => {
            let same = same.get_or_init(|| representatives(module));
            let alike = |c: &CompId| same.get(c) == same.get(&branches[0]);
            let one = branches.iter().all(alike) && arguments.windows(2).all(|w| w[0] == w[1]);
            one.then_some(0)?
        }
    };
    Some((*branches.get(taken)?, *arguments.get(taken)?))
}

/// Returns the index of the branch that a constant selects: for a predicate, the first where it
/// is true; for an index out of range, the last.
fn branch_of(value: &Literal, branches: usize) -> Option<usize> {
    let last = branches.checked_sub(1)?;
    match value.as_array()?.data() {
        Data::Pred(values) => values.first().map(|&holds| usize::from(!holds)),
        Data::S32(values) => {
            values.first().map(|&index| usize::try_from(index).map_or(last, |i| i.min(last)))
        }
        _ => None,
    }
}

/// Checks whether a condition never holds.
fn is_never(module: &Module, condition: CompId) -> bool {
    let value = module.computation(condition).root().and_then(|root| module.constant(root));
    let data = value.and_then(Literal::as_array).map(ArrayLiteral::data);
    matches!(data, Some(Data::Pred(values)) if values.as_slice() == [false])
}

/// Returns the initial value of the element that `id` takes from a loop whose body returns it
/// unchanged.
fn around_loop(
    module: &Module,
    id: InstId,
    attrs: &GetTupleElementAttrs,
    patch: &mut Patch,
) -> Option<Value> {
    let [state] = *module.operands(id) else { return None };
    let (Op::While(parts), [init]) = (module.op(state), module.operands(state)) else {
        return None;
    };
    if module.extras(state).is_some() || !hands_on(module, parts, attrs.index) {
        return None;
    }
    match module.op(*init) {
        Op::Tuple => {
            let element = module.operands(*init).get(usize::try_from(attrs.index).ok()?)?;
            Some(Value::Old(*element))
        }
        _ => {
            let element = Op::GetTupleElement(Box::new(attrs.clone()));
            Some(patch.add(id, element, module.shape(id).clone(), [Value::Old(*init)]))
        }
    }
}

/// Checks whether the body returns an element of the state unchanged.
fn hands_on(module: &Module, parts: &WhileAttrs, index: i64) -> bool {
    let body = module.computation(parts.body);
    let (Some(root), [state]) = (body.root(), body.parameters()) else { return false };
    if root == *state {
        return true;
    }
    let (Op::Tuple, Ok(place)) = (module.op(root), usize::try_from(index)) else { return false };
    let Some(&element) = module.operands(root).get(place) else { return false };
    match (module.op(element), module.operands(element)) {
        (Op::GetTupleElement(attrs), [tuple]) => attrs.index == index && tuple == state,
        _ => false,
    }
}
