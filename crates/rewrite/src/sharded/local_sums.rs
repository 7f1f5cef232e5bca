//! **Reduce within devices first, and exchange once what is left.**
//!
//! ```text
//! reduce(x, h w)            = combine(reduce within devices (x, h w))       one round for all axes
//! reduce(reshape(s * sum x)) = combine(reduce(reshape(s * partial sums x)))  s the same everywhere
//! ```
//!
//! XLA makes one round of communication of each divided dim that is reduced: a sum over batch and
//! space of images that a mesh of two axes divides takes two. Here the sums of each device become
//! places of one dim, which one round combines. What is linear in a sum and small is computed from
//! the sums of each device before that round: group norm exchanges one number for each group and
//! not one for each channel.
//!
//! Preconditions: a reduce by one monoid whose spread is known, of dims that are divided evenly; a
//! factor must not wait for more rounds than the sum does, and must be bounded, since the sum of one
//! device may be larger than that of all. The order in which elements are combined changes, as XLA's
//! partitioner changes it anyway. See `docs/numerics.md`.
//!
//! A cost-gated pass: it saves rounds and bytes.

use rustc_hash::FxHashSet;
use tilewright_ir::reducer::Monoid;
use tilewright_ir::{ArrayShape, CompId, EditError, InstId, Module, Op, Opcode, Patch, Value};

use super::partial::{Combine, Partial, PartialPlanner};
use crate::analysis::reduce::MonoidReduce;
use crate::analysis::sharding::{DeviceMesh, Flow, Spread};
use crate::driver::Place;
use crate::driver::module_trial::{ModuleTrial, RewriteNote};
use crate::driver::numbers::{Class, FloatMode};
use crate::driver::{Context, Pass};
use crate::sums::bound::{is_at_least, is_bounded};

/// The most instructions between a reduce and the exchange of what is computed from it.
const MOST_STEPS: usize = 64;

/// See the module.
pub struct LocalSums;

impl Pass for LocalSums {
    fn name(&self) -> &'static str {
        "local-sums"
    }

    fn summary(&self) -> &'static str {
        "reduce within devices first, and exchange once what is left"
    }

    fn class(&self) -> Class {
        Class::Bounded
    }

    fn is_cost_gated(&self) -> bool {
        true
    }

    fn run(&self, module: &mut Module, cx: &mut Context<'_>) -> Result<usize, EditError> {
        let Some(mesh) = DeviceMesh::of(module) else { return Ok(0) };
        let Plans { flow, plans, .. } = Plans::of(module, &mesh, cx.float_mode);
        let Some(first) = plans.first() else { return Ok(0) };
        let words = words(module, &plans);
        let place = Place::of(module, first.id);
        let Some(patch) = patch(module, &mesh, &flow, &plans) else { return Ok(0) };
        let mut trial = ModuleTrial::of(module, cx)?;
        let made = trial.attempt(self, module, cx, |module| {
            patch.apply(module)?;
            Ok(Some((vec![RewriteNote { place, what: words }], plans.len())))
        })?;
        trial.leave(cx);
        Ok(made.unwrap_or(0))
    }
}

fn words(module: &Module, plans: &[LocalStep]) -> String {
    match plans {
        [plan] => format!("reducing `{}` within devices first", module.name_of(plan.id)),
        _ => format!("reducing {} arrays within devices first", plans.len()),
    }
}

/// An instruction that is computed for each device, and what is computed from it likewise. Where
/// nothing is, devices combine its values.
#[derive(Debug)]
struct LocalStep {
    id: InstId,
    then: Vec<LocalStep>,
}

/// The reduces of a module that are worth splitting.
struct Plans<'a> {
    module: &'a Module,
    mesh: &'a DeviceMesh,
    flow: Flow<'a>,
    float_mode: FloatMode,
    plans: Vec<LocalStep>,
}

impl<'a> Plans<'a> {
    fn of(module: &'a Module, mesh: &'a DeviceMesh, float_mode: FloatMode) -> Self {
        let flow = Flow::of(module, mesh);
        let mut plans = Self { module, mesh, flow, float_mode, plans: Vec::new() };
        let mut within: FxHashSet<InstId> = FxHashSet::default();
        let entered: Vec<CompId> = module.computations().to_vec();
        let entered = entered.into_iter().filter(|&one| plans.flow.has_entered(one));
        let all: Vec<InstId> = entered.flat_map(|one| module.instructions(one)).collect();
        for id in all {
            if within.contains(&id) || !module.is_live(id) {
                continue;
            }
            let Some((monoid, axes)) = plans.across(id) else { continue };
            let Some(&[array, init]) = module.operands(id).first_chunk() else { continue };
            // An init that counts is applied once, to the result.
            let counts = module.constant(init).is_none_or(|init| !monoid.is_neutral(init));
            let mut steps = if counts { 0 } else { MOST_STEPS };
            let waits = plans.flow.level(array);
            let (step, _) = plans.below(id, monoid, waits, &mut steps);
            // One round is all that XLA needs for one dim.
            if axes > 1 || !step.then.is_empty() {
                collect(&step, &mut within);
                plans.plans.push(step);
            }
        }
        plans
    }

    /// Returns the monoid of a reduce of divided dims, and the number of these dims.
    fn across(&self, id: InstId) -> Option<(Monoid, usize)> {
        let monoid = MonoidReduce::of(self.module, id, self.float_mode)?;
        let count = self.divided(id)?;
        let monoid = monoid.reducer.monoid()?;
        (count > 0 && monoid.identity().is_some()).then_some((monoid, count))
    }

    /// Counts the divided dims of a reduce; `None` if one is not divided evenly.
    fn divided(&self, id: InstId) -> Option<usize> {
        let Op::Reduce(attrs) = self.module.op(id) else { return None };
        let &array = self.module.operands(id).first()?;
        let (from, sizes) = (self.flow.spread(array)?, self.module.array_shape(array)?.dims());
        let mut count = 0;
        for &dim in &attrs.dimensions {
            let dim = usize::try_from(dim).ok()?;
            let parts = self.mesh.parts(&from[dim]);
            (sizes.get(dim)? % parts == 0).then_some(())?;
            count += usize::from(parts > 1);
        }
        Some(count)
    }

    /// Decides where devices combine what is computed from an instruction. Returns the plan and the
    /// number of elements that each device hands over.
    fn below(&self, id: InstId, monoid: Monoid, waits: u32, steps: &mut usize) -> (LocalStep, u64) {
        let here = |elements| (LocalStep { id, then: Vec::new() }, elements);
        let own = self.elements(id);
        let users: Vec<InstId> = self.module.uses(id).map(|found| found.user).collect();
        let fits = !users.is_empty() && users.len() <= *steps && !self.module.is_root(id);
        if !fits || !users.iter().all(|&user| self.is_linear(user, id, monoid, waits)) {
            return here(own);
        }
        *steps -= users.len();
        let mut total: u64 = 0;
        let mut then = Vec::new();
        for user in users {
            let (step, elements) = self.below(user, monoid, waits, steps);
            total = total.saturating_add(elements);
            then.push(step);
        }
        if total < own { (LocalStep { id, then }, total) } else { here(own) }
    }

    /// Returns the number of elements of a value on one device.
    fn elements(&self, id: InstId) -> u64 {
        let elements = self.module.array_shape(id).and_then(ArrayShape::num_elements);
        let parts = self.flow.spread(id).map_or(1, |spread| self.mesh.parts_of(spread)).max(1);
        elements.map_or(u64::MAX, |elements| (elements / parts).unsigned_abs())
    }

    /// Checks whether an instruction is linear in the value `of`, with all else known on each device
    /// before the devices exchange that.
    fn is_linear(&self, id: InstId, of: InstId, monoid: Monoid, waits: u32) -> bool {
        let module = self.module;
        let is_plain = module.extras(id).is_none() && self.flow.spread(id).is_some();
        let is_sum = monoid.opcode == Opcode::Add && monoid.element_type.is_float();
        let operands = module.operands(id);
        is_plain
            && match module.op(id) {
                Op::Reshape(_) | Op::Transpose(_) => true,
                Op::Reduce(_) => {
                    let again = MonoidReduce::of(module, id, self.float_mode);
                    let init = operands.get(1).and_then(|&init| module.constant(init));
                    operands.first() == Some(&of)
                        && self.divided(id).is_some()
                        && again.and_then(|again| again.reducer.monoid()) == Some(monoid)
                        && init.is_some_and(|init| monoid.is_neutral(init))
                }
                Op::Multiply | Op::Divide if is_sum => {
                    let &[a, b] = operands else { return false };
                    let other = if a == of { b } else { a };
                    let is_divided = module.opcode(id) == Opcode::Divide && b == of;
                    let grows = match module.opcode(id) {
                        Opcode::Divide => !is_at_least(module, other),
                        _ => !is_bounded(module, other),
                    };
                    other != of && !is_divided && self.flow.level(other) <= waits && !grows
                }
                Op::Negate => is_sum,
                _ => false,
            }
    }
}

/// Adds the instructions of a plan to a set.
fn collect(step: &LocalStep, ids: &mut FxHashSet<InstId>) {
    ids.insert(step.id);
    step.then.iter().for_each(|then| collect(then, ids));
}

/// Returns the edits of these plans.
fn patch(
    module: &Module,
    mesh: &DeviceMesh,
    flow: &Flow<'_>,
    plans: &[LocalStep],
) -> Option<Patch> {
    let mut patch = Patch::new();
    for plan in plans {
        let &array = module.operands(plan.id).first()?;
        let dims = module.array_shape(array)?.dims();
        let from = Partial::whole(Value::Old(array), dims, flow.spread(array)?.clone());
        let planner = PartialPlanner { module, mesh, patch, before: plan.id };
        let monoid = MonoidReduce::of(module, plan.id, FloatMode::Fast)?.reducer.monoid()?;
        let mut builder = StepBuilder { planner, flow, root: plan.id, monoid };
        builder.step(plan, &from, array)?;
        patch = builder.planner.patch;
    }
    Some(patch)
}

/// Makes the instructions of a plan.
struct StepBuilder<'a> {
    planner: PartialPlanner<'a>,
    flow: &'a Flow<'a>,
    /// The first reduce of the plan.
    root: InstId,
    monoid: Monoid,
}

impl StepBuilder<'_> {
    /// Makes an instruction for each device, from the partial value that stands for `of`, and all
    /// that follows.
    fn step(&mut self, step: &LocalStep, from: &Partial, of: InstId) -> Option<()> {
        let module = self.planner.module;
        self.planner.before = step.id;
        let operands = module.operands(step.id);
        let made = match module.op(step.id) {
            Op::Reduce(attrs) => {
                let dims: Vec<usize> =
                    attrs.dimensions.iter().filter_map(|&dim| usize::try_from(dim).ok()).collect();
                let by = self.within()?;
                self.planner.reduce(from, &dims, by)?
            }
            Op::Reshape(_) => {
                let dims = module.array_shape(step.id)?.dims();
                let spread: &Spread = self.flow.spread(step.id)?;
                self.planner.reshape(from, dims, spread)?
            }
            Op::Transpose(attrs) => self.planner.transpose(from, &attrs.dimensions)?,
            Op::Negate => self.planner.alone(Op::Negate, from)?,
            op => {
                let &other = operands.iter().find(|&&operand| operand != of)?;
                self.planner.with_other(op.clone(), from, Value::Old(other))?
            }
        };
        if step.then.is_empty() {
            let by = self.across()?;
            let value = self.planner.combine(&made, by)?;
            self.planner.patch.replace(step.id, value);
        }
        step.then.iter().try_for_each(|then| self.step(then, &made, step.id))
    }

    /// Returns how each device combines elements: the init is applied later.
    fn within(&mut self) -> Option<Combine> {
        let identity = self.monoid.identity()?;
        let shape = identity.shape();
        let op = Op::Constant(Box::new(identity));
        let init = self.planner.patch.add(self.planner.before, op, shape, []);
        Some(Combine { init, ..self.across()? })
    }

    /// Returns how devices combine their values.
    fn across(&self) -> Option<Combine> {
        let module = self.planner.module;
        let (Op::Reduce(attrs), &[_, init]) = (module.op(self.root), module.operands(self.root))
        else {
            return None;
        };
        Some(Combine { to_apply: attrs.to_apply, init: Value::Old(init) })
    }
}
