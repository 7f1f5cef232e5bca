//! Guards: sums that are computed in another way where a test holds when the program runs.
//!
//! ```text
//! S  =  guard(the other way,  the original's instructions)
//! ```
//!
//! The test is for all results of a sum at once. If one result fails it, a branch of a conditional computes all of
//! them again, by the original's instructions, from arrays that lie in memory.
//!
//! Preconditions: the target knows what a branch costs; the sum reads arrays that lie in memory, by elementwise
//! ops, broadcasts and reshapes. See `docs/numerics.md`.

use rustc_hash::FxHashMap;
use tilewright_ir::metadata::Extras;
use tilewright_ir::ops::control::{ConditionalAttrs, GetTupleElementAttrs};
use tilewright_ir::ops::elementwise::{CompareAttrs, Direction};
use tilewright_ir::ops::reduce::ReduceAttrs;
use tilewright_ir::ops::shaping::ParameterAttrs;
use tilewright_ir::{
    ArrayLiteral, CompId, Data, EditError, ElementType, InstId, Literal, Module, Op, Opcode, Patch,
    Position, Shape, Value,
};
use tilewright_target::Target;

use super::build::{At, Build, Placed, Replaced, replaced_by};
use super::factor::Sum;
use super::product::Factor;
use super::sign::is_not_negative;
use crate::analysis::index_range::sizes;
use crate::analysis::reduce::{of_type, shape_like};
use crate::analysis::sharding::{is_partitioned, whole_values};
use crate::analysis::whole_number::whole_number;
use crate::cost::contraction::moves_space;
use crate::driver::Context;
use crate::driver::numbers::Class;
use crate::guards::GUARD;

/// The most instructions of the original that a branch computes again.
const MOST_COPIED: usize = 64;

/// Checks whether sums are guarded: floats may change, and the target knows what a branch costs.
pub(super) fn are_made(cx: &Context<'_>) -> bool {
    cx.float_mode.allow(Class::Guarded) && cx.target.guard_cycles > 0.0
}

/// Returns a check of whether a sum can be guarded in a module that is divided over devices: every device must have all
/// of its results, since devices that found different ones would take different branches.
pub(super) fn agreed(module: &Module) -> impl Fn(InstId) -> bool {
    let whole = whole_values(module);
    let is_of_one = whole.is_none() && !is_partitioned(module);
    move |sum| whole.as_ref().map_or(is_of_one, |whole| whole.contains(&sum))
}

/// The end of a note on guarded sums.
pub(super) const WHERE: &str = ", where a guard finds when it runs that this is as exact";

/// A sum in another way, and when it may be used.
pub(super) struct Guarded {
    /// The sum.
    pub(super) value: Placed,
    /// The test: for each result, the first of these is at most the second.
    pub(super) compared: [Value; 2],
    /// A value for each result that is finite where the test holds.
    pub(super) finite: Value,
}

/// Replaces a sum by a guard of what `plan` makes, for the pass of this name.
pub(super) fn guard(
    module: &mut Module,
    sum: &Sum,
    original: &Original,
    pass: &str,
    plan: impl FnOnce(&mut Build<'_>, At<'_>) -> Option<Guarded>,
) -> Result<Option<Replaced>, EditError> {
    let Some(computation) = module.instruction(sum.id).parent() else { return Ok(None) };
    let kept = identity(module, computation, sum.id)?;
    let branches = [kept, original.computation(module, computation, sum.id)?];
    let Some(patch) = planned(module, sum, original, pass, branches, plan) else {
        return Ok(None);
    };
    let made = patch.apply(module)?;
    Ok(Some(replaced_by(&patch, &made)))
}

/// Plans the sum, the test and the conditional.
fn planned(
    module: &Module,
    sum: &Sum,
    original: &Original,
    pass: &str,
    branches: [CompId; 2],
    plan: impl FnOnce(&mut Build<'_>, At<'_>) -> Option<Guarded>,
) -> Option<Patch> {
    let (id, at) = (sum.id, At::new(module, sum)?);
    let mut build = Build::new(module);
    let guarded = plan(&mut build, at)?;
    let branch = branch(&mut build, at, &guarded)?;
    let value = build.finished(at, guarded.value);
    let mut patch = build.patch;
    let leaves = original.leaves.iter().map(|&leaf| module.shape(leaf).clone()).collect();
    let leaves = patch.add(
        id,
        Op::Tuple,
        Shape::Tuple(leaves),
        original.leaves.iter().map(|&leaf| Value::Old(leaf)),
    );
    let attrs = ConditionalAttrs {
        branch_computations: branches.into_iter().collect(),
        ..ConditionalAttrs::default()
    };
    let shape = module.shape(id).clone();
    // XLA moves an instruction that only one branch reads into that branch, where a sum would read its array
    // again.
    let value = patch.add(id, Op::OptimizationBarrier, shape.clone(), [value]);
    let guard = patch.add(id, Op::Conditional(Box::new(attrs)), shape, [branch, value, leaves]);
    let mut extras = Extras::default();
    extras.frontend_attributes.push((GUARD.into(), pass.into()));
    patch.set_extras(guard, extras);
    patch.replace(id, guard);
    Some(patch)
}

/// Returns the number of the branch to take: 0 if the test holds for all results, else 1.
fn branch(build: &mut Build<'_>, at: At<'_>, guarded: &Guarded) -> Option<Value> {
    let module = build.module();
    let Sum { id, ref monoid, .. } = *at.sum;
    let digits = &guarded.value.digits;
    let like = of_type(module.array_shape(id)?, ElementType::Pred);
    let truth = shape_like(&like, &sizes(digits));
    let compare = |direction| Op::Compare(Box::new(CompareAttrs { direction, order: None }));
    let patch = &mut build.patch;
    let is_finite = patch.add(id, Op::IsFinite, truth.clone(), [guarded.finite]);
    let is_less = patch.add(id, compare(Direction::Le), truth.clone(), guarded.compared);
    let holds = patch.add(id, Op::And, truth, [is_finite, is_less]);
    // The results for which it fails are counted by the sum's own computation.
    let element_type = monoid.element_type;
    let (none, one) = (whole_number(element_type, 0)?, whole_number(element_type, 1)?);
    let nothing = build.number(at, none.clone(), digits)?;
    let failure = build.number(at, one, digits)?;
    let failures = build.op(at, Op::Select, digits, [holds, nothing, failure]);
    let zero = scalar(&mut build.patch, id, element_type, none)?;
    let failures = if digits.is_empty() {
        failures
    } else {
        let Op::Reduce(attrs) = module.op(id) else { return None };
        let dimensions = (0i64..).zip(digits).map(|(dim, _)| dim).collect();
        let reduce = ReduceAttrs { dimensions, to_apply: attrs.to_apply };
        let operands = [failures, zero];
        build.patch.add(id, Op::Reduce(Box::new(reduce)), Shape::scalar(element_type), operands)
    };
    let shape = Shape::scalar(ElementType::Pred);
    let fails = build.patch.add(id, compare(Direction::Ne), shape, [failures, zero]);
    // The selector is a number. If it were a truth value, XLA would compute both branches and select one
    // result, since it takes reductions to be cheap (`xla/service/conditional_simplifier.cc`).
    Some(build.patch.add(id, Op::Convert, Shape::scalar(ElementType::S32), [fails]))
}

/// Adds the absolute values of these factors, before an instruction.
pub(super) fn absolute(
    module: &mut Module,
    before: InstId,
    factors: impl IntoIterator<Item = Factor>,
) -> Result<Vec<Factor>, EditError> {
    let absolute = |mut factor: Factor| {
        if !is_not_negative(module, factor.value) {
            let (shape, name) =
                (module.shape(factor.value).clone(), module.fresh_name(Opcode::Abs.name()));
            let before = Position::Before(before);
            factor.value = module.insert(before, Op::Abs, shape, &[factor.value], name)?;
        }
        Ok(factor)
    };
    factors.into_iter().map(absolute).collect()
}

fn scalar(patch: &mut Patch, at: InstId, element_type: ElementType, data: Data) -> Option<Value> {
    let number = ArrayLiteral::new(element_type, [], data).ok()?;
    let op = Op::Constant(Box::new(Literal::Array(number)));
    Some(patch.add(at, op, Shape::scalar(element_type), []))
}

/// Adds a branch that returns its argument, of the shape of `like`.
fn identity(module: &mut Module, caller: CompId, like: InstId) -> Result<CompId, EditError> {
    let name = module.fresh_computation_name("kept");
    let branch = module.add_computation_before(name, caller);
    let shape = module.shape(like).clone();
    let root = parameter(module, branch, shape)?;
    module.set_root(root)?;
    Ok(branch)
}

fn parameter(module: &mut Module, computation: CompId, shape: Shape) -> Result<InstId, EditError> {
    let op = Op::Parameter(Box::new(ParameterAttrs { number: 0 }));
    let name = module.fresh_name(Opcode::Parameter.name());
    module.insert(Position::End(computation), op, shape, &[], name)
}

/// The instructions by which the original computes a sum from arrays in memory.
pub(super) struct Original {
    /// The arrays.
    pub(super) leaves: Vec<InstId>,
    /// The instructions, operands first; the sum is the last one.
    order: Vec<InstId>,
}

impl Original {
    /// Finds the instructions of a sum; `None` if they are too many, or an array is moved where they
    /// read it: a branch would have it stored first.
    pub(super) fn of(module: &Module, sum: InstId, target: &Target) -> Option<Self> {
        let (mut leaves, mut order) = (Vec::new(), Vec::new());
        let mut is_there: FxHashMap<InstId, bool> = FxHashMap::default();
        let mut next = vec![sum];
        while let Some(&id) = next.last() {
            let waits = is_there.insert(id, true).is_none() && (id == sum || is_copied(module, id));
            if waits {
                let new = |operand: &InstId| !is_there.contains_key(operand);
                next.extend(module.operands(id).iter().copied().filter(new));
                continue;
            }
            next.pop();
            if leaves.contains(&id) || order.contains(&id) {
                continue;
            }
            if id == sum || is_copied(module, id) {
                order.push(id);
            } else if is_stored(module, id, target) {
                leaves.push(id);
            } else {
                return None;
            }
            let is_plain = module.extras(id).is_none() || leaves.last() == Some(&id);
            if !is_plain || order.len() > MOST_COPIED {
                return None;
            }
        }
        Some(Self { leaves, order })
    }

    /// Adds a branch that computes the sum from a tuple of the arrays.
    fn computation(
        &self,
        module: &mut Module,
        caller: CompId,
        sum: InstId,
    ) -> Result<CompId, EditError> {
        let name = module.fresh_computation_name("again");
        let branch = module.add_computation_before(name, caller);
        let shapes = self.leaves.iter().map(|&leaf| module.shape(leaf).clone()).collect();
        let argument = parameter(module, branch, Shape::Tuple(shapes))?;
        let mut copies: FxHashMap<InstId, InstId> = FxHashMap::default();
        for (index, &leaf) in (0i64..).zip(&self.leaves) {
            let op = Op::GetTupleElement(Box::new(GetTupleElementAttrs { index }));
            let (shape, name) =
                (module.shape(leaf).clone(), module.fresh_name(Opcode::GetTupleElement.name()));
            let element = module.insert(Position::End(branch), op, shape, &[argument], name)?;
            copies.insert(leaf, element);
        }
        for &id in &self.order {
            let map = |old| copies.get(&old).copied();
            let copy = module.copy_instruction(id, Position::End(branch), map)?;
            copies.insert(id, copy);
        }
        if let Some(&root) = copies.get(&sum) {
            module.set_root(root)?;
        }
        Ok(branch)
    }
}

/// Checks whether a branch computes a value again.
fn is_copied(module: &Module, id: InstId) -> bool {
    let opcode = module.opcode(id);
    opcode.is_elementwise()
        || matches!(
            opcode,
            Opcode::Broadcast | Opcode::Iota | Opcode::Constant | Opcode::Reshape | Opcode::Bitcast
        )
}

/// Checks whether a value lies in memory anyway, so that a branch can read it at no cost.
///
/// The kernels of convolutions and products also compute sums of their results, for which a guard would read the
/// results again. This does not hold for convolutions with space in their batch: they get a barrier. The state of a loop is made by the iteration before, where a compiler computes its
/// sum for the mean, too: a guard would save nothing.
fn is_stored(module: &Module, id: InstId, target: &Target) -> bool {
    match module.opcode(id) {
        Opcode::GetTupleElement => {
            let of = module.operands(id).first();
            let is_state = |&of: &InstId| module.opcode(of) == Opcode::Parameter;
            module.instruction(id).parent() == module.entry() || !of.is_some_and(is_state)
        }
        Opcode::Parameter
        | Opcode::Reduce
        | Opcode::AllReduce
        | Opcode::OptimizationBarrier
        | Opcode::Conditional => true,
        Opcode::Convolution => moves_space(module, id, target),
        _ => false,
    }
}
