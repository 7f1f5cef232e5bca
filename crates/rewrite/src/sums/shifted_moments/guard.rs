//! A moment about a shift that is used only where its error is bounded.
//!
//! ```text
//! S  =  guard(sums about k,  sums about c)                      d = c-k
//!
//! sum p*(x-c):    2 * |d| * sum |p|                  <=  sum |p|*|x-k|
//! sum q*(x-c)^2:  2 * (sum q*(x-k)^2 + d^2 * sum q)  <=  3 * S                  q not negative
//! ```
//!
//! Where the test holds, the form about the shift errs by at most 4 times the bound of the original's error,
//! whatever c and k are; `docs/numerics.md` has the proof. Sums that are not finite fail the test, and so do
//! NaNs. If one result fails the test, a branch of a conditional computes all of them again, by the original's
//! instructions.
//!
//! The centre is the original one, as it is rounded: its sum is computed in the first sweep as it was before.
//!
//! Preconditions beside those of the pass: the target knows what a branch costs; the sums read arrays
//! that lie in memory, by elementwise ops, broadcasts and reshapes; the sample has so many values that its
//! mean is near that of the array.

use rustc_hash::FxHashMap;
use tilewright_ir::metadata::Extras;
use tilewright_ir::ops::control::{ConditionalAttrs, GetTupleElementAttrs};
use tilewright_ir::ops::elementwise::{CompareAttrs, Direction};
use tilewright_ir::ops::reduce::ReduceAttrs;
use tilewright_ir::ops::shaping::ParameterAttrs;
use tilewright_ir::{
    ArrayLiteral, CompId, Data, EditError, ElementType, InstId, Literal, Module, Op, Opcode, Patch,
    Position, Shape, Use, Value,
};
use tilewright_target::Target;

use super::moments::{Group, Moment};
use super::shift::{self, Shift};
use super::{Sums, recentred, sums_about};
use crate::analysis::index_range::{IndexRange, sizes};
use crate::analysis::reduce::{of_type, shape_like};
use crate::analysis::whole_number::whole_number;
use crate::backend::add_barrier;
use crate::cost::contraction::moves_space;
use crate::guards::GUARD;
use crate::sums::build::{Build, Placed, Replaced, replaced_by};
use crate::sums::factor::{Core, Sum};
use crate::sums::product::{Factor, Tree};
use crate::sums::sign::is_not_negative;

/// The fewest values of a sample. Of 400,000 rows each of 512, 768 and 1,024 normal numbers, none failed the test
/// of a square or of a product with other normal numbers.
const LEAST_SAMPLED: i64 = 128;

/// The most instructions of the original that a branch computes again.
const MOST_COPIED: usize = 64;

/// Checks whether a test bounds the error of a moment, and its original can be computed in a branch.
pub(super) fn has_guard(module: &Module, moment: &Moment, target: &Target) -> bool {
    let is_tested = match moment.power {
        1 => true,
        2 => moment.others.iter().all(|weight| is_not_negative(module, weight.value)),
        _ => false,
    };
    is_tested && Original::of(module, moment.sum.id, target).is_some()
}

/// Guards the moments of a group, all of which [can be](has_guard); returns whether it did.
pub(super) fn guarded(
    module: &mut Module,
    group: &mut Group,
    target: &Target,
    replaced: &mut Replaced,
) -> Result<bool, EditError> {
    let Some(unbarred) = originals(module, group, target) else { return Ok(false) };
    let barred = end_space_to_batch(module, &unbarred)?;
    group.follow(&barred);
    replaced.extend(barred);
    let Some(originals) = originals(module, group, target) else { return Ok(false) };
    let Some(first) = group.moments.first() else { return Ok(false) };
    let Some(shift) = shift::add(module, group, &first.sum, LEAST_SAMPLED)? else {
        return Ok(false);
    };
    for (moment, original) in group.moments.iter().zip(&originals) {
        let Some(now) = guard(module, moment, group, &shift, original)? else { return Ok(false) };
        replaced.extend(now);
    }
    Ok(true)
}

/// Finds the originals of the moments of a group.
fn originals(module: &Module, group: &Group, target: &Target) -> Option<Vec<Original>> {
    let original = |moment: &Moment| {
        module.is_live(moment.sum.id).then(|| Original::of(module, moment.sum.id, target))?
    };
    group.moments.iter().map(original).collect()
}

/// Puts barriers behind the convolutions that these read, so that their sums share a kernel
/// ([`crate::backend::convolution_barrier`]); returns the barriers.
fn end_space_to_batch(module: &mut Module, originals: &[Original]) -> Result<Replaced, EditError> {
    let mut barred = Replaced::default();
    for &leaf in originals.iter().flat_map(|original| &original.leaves) {
        if module.opcode(leaf) == Opcode::Convolution && !barred.contains_key(&leaf) {
            let users: Vec<Use> = module.uses(leaf).collect();
            barred.insert(leaf, add_barrier(module, leaf, &users)?);
        }
    }
    Ok(barred)
}

/// Replaces a moment by a guard of its form about the shift.
fn guard(
    module: &mut Module,
    moment: &Moment,
    group: &Group,
    shift: &Shift,
    original: &Original,
) -> Result<Option<Replaced>, EditError> {
    let sum = moment.sum.id;
    let Some(computation) = module.instruction(sum).parent() else { return Ok(None) };
    let absolute = absolute(module, moment, shift)?;
    let branches =
        [identity(module, computation, sum)?, original.computation(module, computation, sum)?];
    let Some(patch) = planned(module, moment, group, (shift, &absolute), original, branches) else {
        return Ok(None);
    };
    let made = patch.apply(module)?;
    Ok(Some(replaced_by(&patch, &made)))
}

/// Plans the sums about the shift, the test and the conditional.
fn planned(
    module: &Module,
    moment: &Moment,
    group: &Group,
    (shift, absolute): (&Shift, &[Factor]),
    original: &Original,
    branches: [CompId; 2],
) -> Option<Patch> {
    let id = moment.sum.id;
    let mut build = Build::new(module);
    let sums = sums_about(&mut build, module, moment, group, shift)?;
    let value = recentred(&mut build, moment, [&group.c, &shift.shift], &sums)?;
    let test = Test { build: &mut build, sums: &sums, moment, group, shift };
    let branch = test.branch(absolute, value)?;
    let value = build.finished(sums.at, Placed { value, digits: sums.digits.clone() });
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
    let mark = (GUARD.into(), "shifted-moments".into());
    let mut extras = Extras::default();
    extras.frontend_attributes.push(mark);
    patch.set_extras(guard, extras);
    patch.replace(id, guard);
    Some(patch)
}

/// Adds the absolute values of the factors of a product, the array less its shift first; of a square, whose
/// terms are not negative, none.
fn absolute(module: &mut Module, moment: &Moment, shift: &Shift) -> Result<Vec<Factor>, EditError> {
    if moment.power != 1 {
        return Ok(Vec::new());
    }
    let mut factors = vec![shift.rest.clone()];
    factors.extend(moment.others.iter().cloned());
    for factor in &mut factors {
        if is_not_negative(module, factor.value) {
            continue;
        }
        let (shape, name) =
            (module.shape(factor.value).clone(), module.fresh_name(Opcode::Abs.name()));
        let before = Position::Before(moment.sum.id);
        factor.value = module.insert(before, Op::Abs, shape, &[factor.value], name)?;
    }
    Ok(factors)
}

/// A test under construction, for all results of a moment at once.
struct Test<'a, 'b> {
    build: &'a mut Build<'b>,
    sums: &'a Sums<'b>,
    moment: &'a Moment,
    group: &'a Group,
    shift: &'a Shift,
}

impl Test<'_, '_> {
    /// Returns the number of the branch to take: 0 if the error of all results is bounded, else 1. The
    /// value is that of the moment by its form about the shift.
    fn branch(mut self, absolute: &[Factor], value: Value) -> Option<Value> {
        let at = self.sums.at;
        let digits = self.sums.digits.clone();
        let centre = self.build.spread(at, &self.group.c, &digits)?;
        let shift = self.build.spread(at, &self.shift.shift, &digits)?;
        let offset = self.build.op(at, Op::Subtract, &digits, [centre, shift]);
        let twice = |build: &mut Build<'_>, of| build.op(at, Op::Add, &digits, [of, of]);
        let [less, more, finite] = match (absolute, self.sums.values.as_slice()) {
            ([], &[count, _, squares]) => {
                let square = self.build.op(at, Op::Multiply, &digits, [offset, offset]);
                let far = self.build.op(at, Op::Multiply, &digits, [square, count]);
                let both = self.build.op(at, Op::Add, &digits, [squares, far]);
                let less = twice(self.build, both);
                let double = twice(self.build, value);
                [less, self.build.op(at, Op::Add, &digits, [double, value]), less]
            }
            (factors @ [_, others @ ..], &[count, _]) => {
                let weight = match others {
                    [] => count,
                    others => self.summed(others, &digits)?,
                };
                let more = self.summed(factors, &digits)?;
                let distance = self.build.op(at, Op::Abs, &digits, [offset]);
                let less = self.build.op(at, Op::Multiply, &digits, [distance, weight]);
                [twice(self.build, less), more, more]
            }
            _ => return None,
        };
        self.all([less, more], finite, &digits)
    }

    /// Returns the sum of a product of factors, in the dims of the moment's sums.
    fn summed(&mut self, factors: &[Factor], digits: &[IndexRange]) -> Option<Value> {
        let at = self.sums.at;
        let mut factors = factors.to_vec();
        factors.sort_unstable();
        let tree = Tree::chain(factors.iter().map(|factor| factor.divides))?;
        let Sum { elements, monoid, law, ref summed, .. } = self.moment.sum;
        let core = Core { factors, along: summed.clone(), elements, monoid, law };
        let placed = self.build.core(at, &core, &tree)?;
        Some(self.build.cut(at, placed, digits.to_vec()).value)
    }

    /// Returns 0 if the first of these is at most the second, and `finite` is finite, everywhere, else 1.
    fn all(&mut self, compared: [Value; 2], finite: Value, digits: &[IndexRange]) -> Option<Value> {
        let id = self.moment.sum.id;
        let (module, at) = (self.build.module(), self.sums.at);
        let like = of_type(module.array_shape(id)?, ElementType::Pred);
        let truth = shape_like(&like, &sizes(digits));
        let compare = |direction| Op::Compare(Box::new(CompareAttrs { direction, order: None }));
        let patch = &mut self.build.patch;
        let is_finite = patch.add(id, Op::IsFinite, truth.clone(), [finite]);
        let is_less = patch.add(id, compare(Direction::Le), truth.clone(), compared);
        let holds = patch.add(id, Op::And, truth, [is_finite, is_less]);
        // The results for which it fails are counted by the moment's own computation.
        let element_type = self.moment.sum.monoid.element_type;
        let [none, one] = [0, 1].map(|number| whole_number(element_type, number));
        let (none, one) = (none?, one?);
        let [nothing, failure] =
            [none.clone(), one].map(|data| self.build.number(at, data, digits));
        let (nothing, failure) = (nothing?, failure?);
        let failures = self.build.op(at, Op::Select, digits, [holds, nothing, failure]);
        let zero = scalar(&mut self.build.patch, id, element_type, none)?;
        let failures = if digits.is_empty() {
            failures
        } else {
            let Op::Reduce(attrs) = module.op(id) else { return None };
            let dimensions = (0i64..).zip(digits).map(|(dim, _)| dim).collect();
            let reduce = ReduceAttrs { dimensions, to_apply: attrs.to_apply };
            let operands = [failures, zero];
            let shape = Shape::scalar(element_type);
            self.build.patch.add(id, Op::Reduce(Box::new(reduce)), shape, operands)
        };
        let shape = Shape::scalar(ElementType::Pred);
        let fails = self.build.patch.add(id, compare(Direction::Ne), shape, [failures, zero]);
        // The selector is a number. If it were a truth value, XLA would compute both branches and select one
        // result, since it takes reductions to be cheap (`xla/service/conditional_simplifier.cc`).
        let shape = Shape::scalar(ElementType::S32);
        Some(self.build.patch.add(id, Op::Convert, shape, [fails]))
    }
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
struct Original {
    /// The arrays.
    leaves: Vec<InstId>,
    /// The instructions, operands first; the sum is the last one.
    order: Vec<InstId>,
}

impl Original {
    /// Finds the instructions of a sum; `None` if they are too many, or an array is moved where they
    /// read it: a branch would have it stored first.
    fn of(module: &Module, sum: InstId, target: &Target) -> Option<Self> {
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
        Opcode::Parameter | Opcode::Reduce | Opcode::OptimizationBarrier | Opcode::Conditional => {
            true
        }
        Opcode::Convolution => moves_space(module, id, target),
        _ => false,
    }
}
