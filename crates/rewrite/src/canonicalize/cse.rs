//! Common subexpression elimination: equal ops on equal operands become one.
//!
//! Computations that differ only in names count as equal, so reduces with separate but equal
//! reducers (as JAX writes them) are merged.

use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use tilewright_ir::{CompId, EditError, InstId, Module, Op, ShapeId};

use crate::analysis::equivalence::representatives;
use crate::driver::numbers::Class;
use crate::driver::{Context, Pass};

/// See the module.
pub struct CommonSubexpressions;

/// Instructions with equal keys compute the same value.
type Key = (Op, ShapeId, SmallVec<[InstId; 3]>);

impl Pass for CommonSubexpressions {
    fn name(&self) -> &'static str {
        "cse"
    }

    fn summary(&self) -> &'static str {
        "merge instructions that compute the same"
    }

    fn class(&self) -> Class {
        Class::Exact
    }

    fn run(&self, module: &mut Module, _cx: &mut Context<'_>) -> Result<usize, EditError> {
        let same = representatives(module);
        let effectful = module.effectful_computations();
        let mut merged = 0;
        for computation in module.computations().to_vec() {
            let mut seen: FxHashMap<Key, InstId> = FxHashMap::default();
            let instructions: Vec<InstId> = module.instructions(computation).collect();
            for id in instructions {
                let mergeable = module.extras(id).is_none()
                    && !is_unlike_all_others(module.op(id))
                    && !module.has_side_effect(id, &effectful);
                if !mergeable {
                    continue;
                }
                match seen.entry(key_of(module, id, &same)) {
                    std::collections::hash_map::Entry::Vacant(entry) => {
                        entry.insert(id);
                    }
                    std::collections::hash_map::Entry::Occupied(entry) => {
                        module.replace_uses(id, *entry.get())?;
                        if module.is_removable(id) {
                            module.remove(id)?;
                        }
                        merged += 1;
                    }
                }
            }
        }
        Ok(merged)
    }
}

/// Checks whether an op must not be merged with an equal one.
fn is_unlike_all_others(op: &Op) -> bool {
    matches!(op, Op::Parameter(_)) || matches!(op, Op::Constant(value) if value.is_elided())
}

fn key_of(module: &Module, id: InstId, same: &FxHashMap<CompId, CompId>) -> Key {
    let mut op = module.op(id).clone();
    op.map_computations(&mut |c| same.get(&c).copied().unwrap_or(c));
    let mut operands: SmallVec<[InstId; 3]> = module.operands(id).into();
    if op.opcode().is_commutative() {
        operands.sort_unstable();
    }
    (op, module.instruction(id).shape_id(), operands)
}
