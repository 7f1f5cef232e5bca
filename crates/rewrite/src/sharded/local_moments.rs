//! **Take the variance over devices in the round of the mean.**
//!
//! ```text
//! sum (x-c)^2 = S2 - c (2 S1 - N c)       S1 = sum x, S2 = sum x^2 in f64, c the mean of N values
//! ```
//!
//! The sum of squares about a mean waits for the round of communication that yields the mean. Here
//! each device computes the mean and the sum of squares of its own part, and devices exchange S1 and
//! S2 in f64, which takes one round (`moments.rs`).
//!
//! For values with the mean m and the standard deviation s, the difference has a relative error of
//! the order of `2^-53 (m/s)^2`, where the program's own sum about a rounded mean has one of
//! `2^-48 (m/s)^2` (Chan, Golub, LeVeque, "Algorithms for computing the sample variance", 1983). That
//! takes one more reading of the array, for what is left of it on a device after its rounded mean.
//! With `--fast-math` the pass does without; the error then is of the order of `2^-24 m |m-c| / s^2`
//! for the mean m of a device.
//!
//! Preconditions: a plain sum of an array of f32 and a sum of squares about the mean that is
//! computed from that sum, along the same dims, at least one of which is divided over devices; a
//! target that computes in f64. Devices exchange twice the bytes in half the rounds, so the pass
//! counts on a program that exchanges more than that, or in more rounds; what devices exchange never
//! grows by more than a tenth. See `docs/numerics.md`.
//!
//! A cost-gated pass: it saves rounds.

use rustc_hash::FxHashMap;
use tilewright_ir::reducer::adder;
use tilewright_ir::{CompId, Dims, EditError, ElementType, InstId, Module, Op, Patch, Value};

use super::moments::Moments;
use super::partial::{Combine, Partial, PartialPlanner};
use crate::analysis::index_range::{Cuts, IndexRange, sizes};
use crate::analysis::sharding::{DeviceMesh, Flow, Spread};
use crate::driver::Place;
use crate::driver::module_trial::{Edited, ModuleTrial, RewriteNote, classes};
use crate::driver::numbers::{Class, FloatMode};
use crate::driver::{Context, Pass};
use crate::sums::factor::Sum;
use crate::sums::factored_sums::sums;
use crate::sums::product::{Factor, Law};
use crate::sums::scale::number;

/// See the module.
pub struct LocalMoments;

impl Pass for LocalMoments {
    fn name(&self) -> &'static str {
        "local-moments"
    }

    fn summary(&self) -> &'static str {
        "take the variance over devices in the round of the mean"
    }

    fn class(&self) -> Class {
        Class::Bounded
    }

    fn is_cost_gated(&self) -> bool {
        true
    }

    fn run(&self, module: &mut Module, cx: &mut Context<'_>) -> Result<usize, EditError> {
        let is_allowed = cx.target.has_f64 && cx.float_mode.allow(Class::Bounded);
        let mesh = if is_allowed { DeviceMesh::of(module) } else { None };
        let (Some(mesh), Some(entry)) = (mesh, module.entry()) else { return Ok(0) };
        let pairs = pairs(module, entry, &mesh, cx.float_mode);
        let is_fast = cx.float_mode.allow(Class::FastMath);
        let rewriter = PairRewriter { entry, mesh: &mesh, is_fast };
        if pairs.is_empty() {
            return Ok(0);
        }
        let mut trial = ModuleTrial::of(module, cx)?;
        let mut attempt = |module: &mut Module, pairs: &[Pair]| {
            trial.attempt(self, module, cx, |module| rewriter.rewrite(module, pairs))
        };
        // Norms side by side share their rounds, so that changing one alone saves none.
        let mut changes = attempt(module, &pairs)?.unwrap_or(0);
        if changes == 0 && pairs.len() > 1 {
            for pairs in classes(module, pairs, |pair| [pair.sum.id, pair.squares.id]) {
                changes += attempt(module, &pairs)?.unwrap_or(0);
            }
        }
        trial.leave(cx);
        Ok(changes)
    }
}

/// A mean and the sum of squares about it.
struct Pair {
    /// The array.
    array: Factor,
    /// Its spread.
    spread: Spread,
    /// The sum for the mean.
    sum: Sum,
    /// The sum of squares about the mean.
    squares: Sum,
    /// The mean.
    mean: Factor,
}

/// Returns the pairs of a computation whose array is divided along summed dims.
fn pairs(module: &Module, entry: CompId, mesh: &DeviceMesh, float_mode: FloatMode) -> Vec<Pair> {
    let flow = Flow::of(module, mesh);
    let is_known = |sum: &Sum| {
        sum.monoid.element_type == ElementType::F32
            && sum.law == Law::Times
            && !sum.product.negative
    };
    let all: Vec<Sum> = sums(module, entry, float_mode).into_iter().filter(is_known).collect();
    let mut plain: FxHashMap<(&Factor, &[IndexRange]), &Sum> = FxHashMap::default();
    for sum in &all {
        if let [only] = sum.product.factors.as_slice() {
            plain.entry((only, &sum.summed)).or_insert(sum);
        }
    }
    let pair = |squares: &Sum| {
        let [one, other] = squares.product.factors.as_slice() else { return None };
        let (array, mean) = one.less_constant(module, &squares.summed).filter(|_| one == other)?;
        let sum = *plain.get(&(&array, squares.summed.as_slice()))?;
        let spread = flow.spread(array.value)?.clone();
        let ranges = array.ranges.iter().zip(&spread);
        let is_divided =
            ranges.into_iter().any(|(range, axes)| !axes.is_empty() && sum.sums(*range));
        (is_divided && is_mean(module, mean.value, sum)).then(|| Pair {
            array,
            spread,
            sum: sum.clone(),
            squares: squares.clone(),
            mean,
        })
    };
    all.iter().filter_map(pair).collect()
}

/// Checks whether a value is the mean of the elements of a sum.
fn is_mean(module: &Module, id: InstId, sum: &Sum) -> bool {
    let id = behind_reshapes(module, id);
    let (Some(count), &[a, b]) = (sum.count(), module.operands(id)) else { return false };
    let is_count = |id| number(module, id).zip(whole(count)).is_some_and(|(own, n)| own == n);
    // A factor is the rounded inverse of the count.
    let is_inverse = |id| {
        let product = number(module, id).zip(whole(count)).map(|(own, n)| own * n);
        product.is_some_and(|product| (product - 1.0).abs() <= f64::from(f32::EPSILON))
    };
    let is_sum = |id| behind_reshapes(module, id) == sum.id;
    match module.op(id) {
        Op::Divide => is_sum(a) && is_count(b),
        Op::Multiply => (is_sum(a) && is_inverse(b)) || (is_sum(b) && is_inverse(a)),
        _ => false,
    }
}

/// Returns a count as a float, if it is exact.
fn whole(count: i64) -> Option<f64> {
    i32::try_from(count).ok().map(f64::from)
}

fn behind_reshapes(module: &Module, mut id: InstId) -> InstId {
    while let (Op::Reshape(_), &[operand]) = (module.op(id), module.operands(id)) {
        id = operand;
    }
    id
}

/// How pairs are rewritten.
#[derive(Clone, Copy)]
struct PairRewriter<'a> {
    entry: CompId,
    mesh: &'a DeviceMesh,
    /// Whether a sum on a device may count as exact.
    is_fast: bool,
}

impl PairRewriter<'_> {
    /// Rewrites these pairs; returns their number.
    fn rewrite(
        self,
        module: &mut Module,
        pairs: &[Pair],
    ) -> Result<Option<Edited<usize>>, EditError> {
        let Some(first) = pairs.first() else { return Ok(None) };
        let place = Place::of(module, first.squares.id);
        let what = match pairs {
            [one] => {
                format!("summing the squares `{}` beside the mean", module.name_of(one.squares.id))
            }
            _ => format!("summing {} arrays of squares beside their means", pairs.len()),
        };
        let mut add = |element_type| adder(module, element_type, self.entry);
        let adds = [add(ElementType::F32)?, add(ElementType::F64)?];
        let mut made = 0;
        for pair in pairs {
            let patch = OfPair { module, rewriter: self, pair, adds }.patch();
            if let Some(patch) = patch {
                patch.apply(module)?;
                made += 1;
            }
        }
        Ok((made > 0).then_some((vec![RewriteNote { place, what }], made)))
    }
}

/// Makes the instructions of a pair.
struct OfPair<'a> {
    module: &'a Module,
    rewriter: PairRewriter<'a>,
    pair: &'a Pair,
    /// The computations that add in f32 and in f64.
    adds: [CompId; 2],
}

impl OfPair<'_> {
    fn patch(&self) -> Option<Patch> {
        let Self { module, rewriter, pair, .. } = *self;
        let Pair { array, sum, squares, mean, .. } = pair;
        let ends = [&array.ranges[..], &sum.summed, &sum.kept, &squares.kept, &mean.ranges];
        let digits = Cuts::of(sum.elements, ends.concat())?.digits();
        let is_whole = |digit: &IndexRange| array.ranges.iter().any(|range| digit.within(*range));
        digits.iter().all(is_whole).then_some(())?;
        let mut planner =
            PartialPlanner { module, mesh: rewriter.mesh, patch: Patch::new(), before: sum.id };
        let moments = self.moments(&mut planner, &digits)?;
        let kept: Vec<IndexRange> = digits.into_iter().filter(|digit| !sum.sums(*digit)).collect();
        let kept = sizes(&kept);
        finish(&mut planner, moments.sum, sum.id)?;
        planner.before = squares.id;
        let about = self.about_mean(&mut planner, &moments, &kept)?;
        finish(&mut planner, about, squares.id)?;
        Some(planner.patch)
    }

    /// Plans the sums of the array and of its squares over all devices.
    fn moments(&self, planner: &mut PartialPlanner<'_>, digits: &[IndexRange]) -> Option<Moments> {
        let Pair { array, spread, sum, .. } = self.pair;
        let shape = self.module.array_shape(array.value)?;
        let (dims, like) = (sizes(digits), self.module.array_shape(sum.id)?);
        let spread = spread.reshaped(shape.dims(), &dims, self.rewriter.mesh)?;
        let mut value = Value::Old(array.value);
        if array.convert.is_some() {
            value = planner.op(Op::Convert, like, shape.dims(), [value]);
        }
        let value = planner.reshaped(value, like, &dims);
        let summed: Vec<usize> =
            (0..digits.len()).filter(|&place| sum.sums(digits[place])).collect();
        let by = [ElementType::F32, ElementType::F64].into_iter().zip(self.adds);
        let by: Option<Vec<Combine>> = by
            .map(|(ty, to_apply)| Some(Combine { to_apply, init: planner.scalar(ty, 0)? }))
            .collect();
        let by: [Combine; 2] = by?.try_into().ok()?;
        planner.moments(&Partial::whole(value, &dims, spread), &summed, by, self.rewriter.is_fast)
    }

    /// Plans the sum of squares about the mean, which is not negative.
    fn about_mean(
        &self,
        planner: &mut PartialPlanner<'_>,
        moments: &Moments,
        kept: &[i64],
    ) -> Option<Value> {
        let mean = self.module.array_shape(self.pair.mean.value)?;
        let elements: i64 = kept.iter().product();
        (mean.num_elements() == Some(elements)).then_some(())?;
        let like = planner.array(moments.sum)?;
        let mean = planner.reshaped(Value::Old(self.pair.mean.value), mean, kept);
        let mean = planner.op(Op::Convert, &like, kept, [mean]);
        let count = planner.number(ElementType::F64, self.pair.sum.count()?, &like, kept)?;
        let zero = planner.number(ElementType::F64, 0, &like, kept)?;
        let mut op = |op: Op, a: Value, b: Value| planner.op(op, &like, kept, [a, b]);
        let twice = op(Op::Add, moments.sum, moments.sum);
        let times = op(Op::Multiply, count, mean);
        let inner = op(Op::Subtract, twice, times);
        let product = op(Op::Multiply, mean, inner);
        let about = op(Op::Subtract, moments.squares, product);
        Some(op(Op::Maximum, about, zero))
    }
}

/// Replaces a sum by a value in f64 with its elements.
fn finish(planner: &mut PartialPlanner<'_>, value: Value, sum: InstId) -> Option<()> {
    let like = planner.module.array_shape(sum)?;
    let dims: Dims = planner.array(value)?.dims().into();
    let value = planner.op(Op::Convert, like, &dims, [value]);
    let value = planner.reshaped(value, like, like.dims());
    planner.patch.replace(sum, value);
    Some(())
}
