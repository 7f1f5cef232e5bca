//! Guards: sums that are computed in another way where a test holds when the program runs.
//!
//! ```text
//! S  =  guard(the other way,  the original's instructions)
//! ```
//!
//! The test is for all results of a sum at once. If one result fails it, a branch of a conditional computes all of
//! them again, by the original's instructions, from arrays that lie in memory ([`original`]).
//!
//! In a module that is divided over devices, all of them must take the same branch, or each decides for its own part
//! of the results ([`apart`]).
//!
//! Preconditions: the target knows what a branch costs; the sum reads arrays that lie in memory, by elementwise
//! ops, broadcasts and reshapes. See `docs/numerics.md`.

mod apart;
mod original;

use rustc_hash::FxHashMap;
use tilewright_ir::metadata::Extras;
use tilewright_ir::ops::control::ConditionalAttrs;
use tilewright_ir::ops::elementwise::{CompareAttrs, Direction};
use tilewright_ir::ops::reduce::ReduceAttrs;
use tilewright_ir::ops::shaping::ParameterAttrs;
use tilewright_ir::{
    ArrayLiteral, CompId, EditError, ElementType, InstId, Literal, Module, Op, Opcode, Patch,
    Position, Shape, Value,
};
use tilewright_target::Target;

use super::build::{At, Build, Placed, Replaced};
use super::factor::Sum;
use super::product::Factor;
use super::sign::is_not_negative;
use crate::analysis::index_range::sizes;
use crate::analysis::reduce::{of_type, reshape_op, shape_like};
use crate::analysis::sharding::{
    DeviceMesh, Flow, Spread, is_partitioned, manual_bodies, with_callees,
};
use crate::analysis::whole_number::whole_number;
use crate::driver::Context;
use crate::driver::numbers::Class;
use crate::guards::GUARD;
pub(super) use original::Original;

/// Checks whether sums are guarded: floats may change, and the target knows what a branch costs.
pub(super) fn are_made(cx: &Context<'_>) -> bool {
    cx.float_mode.allow(Class::Guarded) && cx.target.guard_cycles > 0.0
}

/// The sums of a module that can be guarded.
pub(super) struct Guards<'a> {
    target: &'a Target,
    mesh: Option<DeviceMesh>,
    /// How the array of each sum lies over devices; `None` if every device has all results of the sum.
    arrays: FxHashMap<InstId, Option<Spread>>,
}

impl<'a> Guards<'a> {
    /// Finds which of these sums can be guarded: every device has all of the results, or each can compute its own from
    /// its parts of the arrays.
    pub(super) fn of(
        module: &Module,
        target: &'a Target,
        sums: impl IntoIterator<Item = InstId>,
    ) -> Self {
        let mesh = DeviceMesh::of(module);
        let arrays = match &mesh {
            Some(mesh) => divided(module, mesh, sums),
            None if is_partitioned(module) => FxHashMap::default(),
            None => sums.into_iter().map(|sum| (sum, None)).collect(),
        };
        Self { target, mesh, arrays }
    }

    /// Returns the instructions by which a branch computes a sum; `None` if it cannot be guarded.
    pub(super) fn original(&self, module: &Module, sum: InstId) -> Option<Original> {
        let parts = match self.arrays.get(&sum)? {
            Some(array) => Some((array, self.mesh.as_ref()?)),
            None => None,
        };
        Original::of(module, sum, self.target, parts)
    }

    /// Replaces a sum by a guard of what `plan` makes, for the pass of this name.
    pub(super) fn guard(
        &self,
        module: &mut Module,
        sum: &Sum,
        original: &Original,
        pass: &str,
        plan: impl FnOnce(&mut Build<'_>, At<'_>) -> Option<Guarded>,
    ) -> Result<Option<Replaced>, EditError> {
        let Some((patch, inputs)) = planned(module, sum, plan) else { return Ok(None) };
        let made = patch.apply(module)?;
        let of = |value| match value {
            Value::Old(id) => Some(id),
            Value::New(place) => made.get(place).copied(),
        };
        let ([Some(failures), Some(value)], Some(computation)) =
            (inputs.map(of), module.instruction(sum.id).parent())
        else {
            return Ok(None);
        };
        let inputs = [&[failures, value], original.leaves.as_slice()].concat();
        let at = Site { computation, position: Position::Before(sum.id), like: sum.id };
        let guard = match &self.mesh {
            Some(mesh) if original.is_apart() => {
                apart::guard(module, at, original, &inputs, mesh, pass)?
            }
            _ => choose(module, at, original, &inputs, pass)?,
        };
        let Some(guard) = guard else { return Ok(None) };
        module.replace_uses(sum.id, guard)?;
        Ok(Some(Replaced::from_iter([(sum.id, guard)])))
    }
}

/// Finds which sums can be guarded in a module that is divided over the devices of a mesh: see [`Guards::arrays`].
fn divided(
    module: &Module,
    mesh: &DeviceMesh,
    sums: impl IntoIterator<Item = InstId>,
) -> FxHashMap<InstId, Option<Spread>> {
    let flow = Flow::of(module, mesh);
    let manual = with_callees(module, manual_bodies(module, mesh));
    let is_outside =
        |sum| module.instruction(sum).parent().is_some_and(|parent| !manual.contains_key(&parent));
    let found = sums.into_iter().filter_map(|sum| {
        if flow.spread(sum).is_some_and(Spread::is_whole) {
            return Some((sum, None));
        }
        let &array = module.operands(sum).first()?;
        let array = flow.spread(array).filter(|_| mesh.is_named() && is_outside(sum))?;
        Some((sum, Some(array.clone())))
    });
    found.collect()
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

/// Plans the sum in another way, and a number for each result that is 0 where the test holds.
fn planned(
    module: &Module,
    sum: &Sum,
    plan: impl FnOnce(&mut Build<'_>, At<'_>) -> Option<Guarded>,
) -> Option<(Patch, [Value; 2])> {
    let at = At::new(module, sum)?;
    let mut build = Build::new(module);
    let guarded = plan(&mut build, at)?;
    let failures = failures(&mut build, at, &guarded)?;
    let value = build.finished(at, guarded.value);
    Some((build.patch, [failures, value]))
}

/// Plans a number for each result: 0 where the test holds, else 1.
fn failures(build: &mut Build<'_>, at: At<'_>, guarded: &Guarded) -> Option<Value> {
    let module = build.module();
    let Sum { id, ref monoid, .. } = *at.sum;
    let digits = &guarded.value.digits;
    let like = of_type(module.array_shape(id)?, ElementType::Pred);
    let truth = shape_like(&like, &sizes(digits));
    let compare = Op::Compare(Box::new(CompareAttrs { direction: Direction::Le, order: None }));
    let patch = &mut build.patch;
    let is_finite = patch.add(id, Op::IsFinite, truth.clone(), [guarded.finite]);
    let is_less = patch.add(id, compare, truth.clone(), guarded.compared);
    let holds = patch.add(id, Op::And, truth, [is_finite, is_less]);
    let element_type = monoid.element_type;
    let nothing = build.number(at, whole_number(element_type, 0)?, digits)?;
    let failure = build.number(at, whole_number(element_type, 1)?, digits)?;
    let failures = build.op(at, Op::Select, digits, [holds, nothing, failure]);
    if sizes(digits).as_slice() == like.dims() {
        return Some(failures);
    }
    Some(build.patch.add(id, reshape_op(), module.shape(id).clone(), [failures]))
}

/// Adds the conditional to a computation: the value in another way if no result fails, else what the original
/// computes. `inputs` are the failures, the value and the arrays of the original.
fn choose(
    module: &mut Module,
    at: Site,
    original: &Original,
    inputs: &[InstId],
    pass: &str,
) -> Result<Option<InstId>, EditError> {
    let &[failures, value, ref leaves @ ..] = inputs else { return Ok(None) };
    let Some(branch) = branch(module, at, failures)? else { return Ok(None) };
    let shape = original.shape(module, at.like);
    let arrays = leaves.iter().map(|&leaf| module.shape(leaf).clone()).collect();
    let arrays = at.add(module, Op::Tuple, Shape::Tuple(arrays), leaves)?;
    // XLA moves an instruction that only one branch reads into that branch, where a sum would read its array
    // again.
    let value = at.add(module, Op::OptimizationBarrier, shape.clone(), &[value])?;
    let branches =
        [identity(module, at.computation, &shape)?, original.branch(module, at.computation)?];
    let attrs = ConditionalAttrs {
        branch_computations: branches.into_iter().collect(),
        ..ConditionalAttrs::default()
    };
    let guard =
        at.add(module, Op::Conditional(Box::new(attrs)), shape, &[branch, value, arrays])?;
    let mut extras = Extras::default();
    extras.frontend_attributes.push((GUARD.into(), pass.into()));
    module.set_extras(guard, extras);
    Ok(Some(guard))
}

/// Adds the number of the branch to take: 0 if no result fails, else 1.
fn branch(module: &mut Module, at: Site, failures: InstId) -> Result<Option<InstId>, EditError> {
    let (Op::Reduce(attrs), Some(like)) = (module.op(at.like), module.array_shape(failures)) else {
        return Ok(None);
    };
    let scalar = Shape::scalar(like.element_type);
    // The results that fail are counted by the sum's own computation.
    let dimensions = (0i64..).take(like.rank()).collect();
    let count = Op::Reduce(Box::new(ReduceAttrs { dimensions, to_apply: attrs.to_apply }));
    let zero = whole_number(like.element_type, 0);
    let zero = zero.and_then(|zero| ArrayLiteral::new(like.element_type, [], zero).ok());
    let Some(zero) = zero else { return Ok(None) };
    let zero = Op::Constant(Box::new(Literal::Array(zero)));
    let zero = at.add(module, zero, scalar.clone(), &[])?;
    let is_one = module.shape(failures) == &scalar;
    let count = if is_one { failures } else { at.add(module, count, scalar, &[failures, zero])? };
    let differs = Op::Compare(Box::new(CompareAttrs { direction: Direction::Ne, order: None }));
    let fails = at.add(module, differs, Shape::scalar(ElementType::Pred), &[count, zero])?;
    // The selector is a number. If it were a truth value, XLA would compute both branches and select one
    // result, since it takes reductions to be cheap (`xla/service/conditional_simplifier.cc`).
    at.add(module, Op::Convert, Shape::scalar(ElementType::S32), &[fails]).map(Some)
}

/// Where instructions are added.
#[derive(Clone, Copy)]
struct Site {
    computation: CompId,
    position: Position,
    /// The instruction whose metadata they get: the sum.
    like: InstId,
}

impl Site {
    fn add(
        self,
        module: &mut Module,
        op: Op,
        shape: Shape,
        operands: &[InstId],
    ) -> Result<InstId, EditError> {
        let name = op.opcode().name();
        self.add_named(module, name, op, shape, operands)
    }

    /// Adds an instruction whose name begins like this.
    fn add_named(
        self,
        module: &mut Module,
        name: &str,
        op: Op,
        shape: Shape,
        operands: &[InstId],
    ) -> Result<InstId, EditError> {
        let name = module.fresh_name(name);
        let added = module.insert(self.position, op, shape, operands, name)?;
        module.copy_metadata(self.like, added);
        Ok(added)
    }
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

/// Adds a branch that returns its argument, of this shape.
fn identity(module: &mut Module, caller: CompId, shape: &Shape) -> Result<CompId, EditError> {
    let name = module.fresh_computation_name("kept");
    let branch = module.add_computation_before(name, caller);
    let root = parameter(module, branch, 0, shape.clone())?;
    module.set_root(root)?;
    Ok(branch)
}

fn parameter(
    module: &mut Module,
    computation: CompId,
    number: i64,
    shape: Shape,
) -> Result<InstId, EditError> {
    let op = Op::Parameter(Box::new(ParameterAttrs { number }));
    let name = module.fresh_name(Opcode::Parameter.name());
    module.insert(Position::End(computation), op, shape, &[], name)
}
