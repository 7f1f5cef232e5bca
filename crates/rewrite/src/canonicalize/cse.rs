//! Common subexpression elimination: equal ops on equal operands become one.
//!
//! Computations that differ only in names count as equal, so reduces with separate but equal
//! reducers (as JAX writes them) are merged.

use std::borrow::Cow;
use std::hash::{Hash as _, Hasher as _};

use rustc_hash::{FxHashMap, FxHashSet, FxHasher};
use smallvec::SmallVec;
use tilewright_ir::{CompId, EditError, InstId, Module, Op, ShapeId};

use crate::analysis::equivalence::representatives;
use crate::driver::numbers::Class;
use crate::driver::{Context, Pass};

/// See the module.
pub struct CommonSubexpressions;

/// The channel by which collectives with channels are compared.
const ANY_CHANNEL: i64 = 1;

/// Instructions with equal keys compute the same value.
type Key<'a> = (Cow<'a, Op>, ShapeId, SmallVec<[InstId; 3]>);

/// The instructions met in a computation, each the first with its key, by the hashes of the keys.
/// Keys are made anew to compare them: ops are large, and few hashes are equal.
#[derive(Default)]
struct Met(FxHashMap<u64, SmallVec<[InstId; 1]>>);

impl Met {
    /// Returns the instruction met with the same key; if there is none, this one is the first.
    fn first_like(
        &mut self,
        module: &Module,
        id: InstId,
        same: &FxHashMap<CompId, CompId>,
    ) -> Option<InstId> {
        let key = key_of(module, id, same);
        let mut hasher = FxHasher::default();
        key.hash(&mut hasher);
        let alike = self.0.entry(hasher.finish()).or_default();
        let found = alike.iter().copied().find(|&other| key_of(module, other, same) == key);
        if found.is_none() {
            alike.push(id);
        }
        found
    }
}

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

    fn run(&self, module: &mut Module, _: &mut Context<'_>) -> Result<usize, EditError> {
        let same = representatives(module);
        let effectful = module.effectful_computations();
        let mut merged = 0;
        for computation in module.computations().to_vec() {
            let mut met = Met::default();
            let instructions: Vec<InstId> = module.instructions(computation).collect();
            for id in instructions {
                if !is_mergeable(module, id, &effectful) {
                    continue;
                }
                if let Some(first) = met.first_like(module, id, &same) {
                    module.replace_uses(id, first)?;
                    if module.is_removable(id) {
                        module.remove(id)?;
                    }
                    merged += 1;
                }
            }
        }
        Ok(merged)
    }
}

fn is_mergeable(module: &Module, id: InstId, effectful: &FxHashSet<CompId>) -> bool {
    module.extras(id).is_none()
        && !is_unlike_all_others(module.op(id))
        && !module.has_side_effect(id, effectful)
}

/// Checks whether an op must not be merged with an equal one.
fn is_unlike_all_others(op: &Op) -> bool {
    matches!(op, Op::Parameter(_)) || matches!(op, Op::Constant(value) if value.is_elided())
}

fn key_of<'a>(module: &'a Module, id: InstId, same: &FxHashMap<CompId, CompId>) -> Key<'a> {
    let representative = |c: CompId| same.get(&c).copied().unwrap_or(c);
    let mut op = Cow::Borrowed(module.op(id));
    let mut is_its_own = true;
    op.for_each_computation(&mut |c| is_its_own &= representative(c) == c);
    if !is_its_own {
        op.to_mut().map_computations(&mut |c| representative(c));
    }
    // The numbers of channels say nothing of what collectives compute.
    if op.channel_id().is_some_and(|channel| channel != ANY_CHANNEL) {
        op.to_mut().set_channel_id(ANY_CHANNEL);
    }
    let mut operands: SmallVec<[InstId; 3]> = module.operands(id).into();
    if op.opcode().is_commutative() {
        operands.sort_unstable();
    }
    (op, module.instruction(id).shape_id(), operands)
}
