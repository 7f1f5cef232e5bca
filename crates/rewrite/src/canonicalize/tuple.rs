//! `get-tuple-element(tuple(x, y), index=1)` is `y`; a tuple of all elements
//! of a tuple, in order, is that tuple. A tuple with something attached, a sharding
//! for one, stays: its elements would lose it.

use tilewright_ir::{EditError, InstId, Module, Op};

use crate::driver::numbers::Class;
use crate::driver::{Context, Pass};

/// See the module.
pub struct TupleSimplify;

impl Pass for TupleSimplify {
    fn name(&self) -> &'static str {
        "tuple"
    }

    fn summary(&self) -> &'static str {
        "take elements of tuples from where the tuples were made"
    }

    fn class(&self) -> Class {
        Class::Exact
    }

    fn run(&self, module: &mut Module, _cx: &mut Context<'_>) -> Result<usize, EditError> {
        let mut changes = 0;
        for computation in module.computations().to_vec() {
            let instructions: Vec<InstId> = module.instructions(computation).collect();
            for id in instructions {
                if module.extras(id).is_some() || !module.is_live(id) {
                    continue;
                }
                let Some(simpler) = element_of_made(module, id).or_else(|| remade(module, id))
                else {
                    continue;
                };
                if module.shape(simpler).compatible(module.shape(id)) {
                    module.replace_uses(id, simpler)?;
                    changes += 1;
                }
            }
        }
        Ok(changes)
    }
}

fn element_of_made(module: &Module, id: InstId) -> Option<InstId> {
    let Op::GetTupleElement(attrs) = module.op(id) else { return None };
    let [tuple] = *module.operands(id) else { return None };
    let Op::Tuple = module.op(tuple) else { return None };
    // A sharding of a tuple is one of its elements, which would lose it.
    if module.extras(tuple).is_some() {
        return None;
    }
    module.operands(tuple).get(usize::try_from(attrs.index).ok()?).copied()
}

fn remade(module: &Module, id: InstId) -> Option<InstId> {
    let Op::Tuple = module.op(id) else { return None };
    let source = |element: InstId| match (module.op(element), module.operands(element)) {
        (Op::GetTupleElement(attrs), [tuple]) => Some((attrs.index, *tuple)),
        _ => None,
    };
    let elements = module.operands(id);
    let (_, tuple) = source(*elements.first()?)?;
    let whole = elements.iter().enumerate().all(|(i, &e)| {
        source(e).is_some_and(|(index, t)| t == tuple && usize::try_from(index) == Ok(i))
    });
    let length = module.shape(tuple).as_tuple()?.len();
    (whole && length == elements.len()).then_some(tuple)
}
