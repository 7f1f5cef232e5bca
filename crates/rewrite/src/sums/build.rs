//! Builds the instructions that compute sums in the stages chosen for them.

use rustc_hash::FxHashMap;
use tilewright_ir::ops::reduce::ReduceAttrs;
use tilewright_ir::ops::shaping::BroadcastAttrs;
use tilewright_ir::{
    ArrayLiteral, ArrayShape, Data, Dims, InstId, Literal, Module, Op, Patch, Shape, Value,
};

use super::factor::{Core, Form, Rest, Sum};
use super::product::{Factor, Law, Tree};
use crate::analysis::index_range::{Cuts, IndexRange, sizes};
use crate::analysis::reduce::{reshape_op, shape_like};

/// Values that were replaced, each with its replacement.
pub(super) type Replaced = FxHashMap<InstId, InstId>;

/// Returns the replacements that a patch made; `made` are the instructions that it added, in
/// the order of the plan.
pub(super) fn replaced_by(patch: &Patch, made: &[InstId]) -> Replaced {
    let by = |&(old, new): &(InstId, Value)| match new {
        Value::Old(new) => Some((old, new)),
        Value::New(place) => Some((old, *made.get(place)?)),
    };
    patch.replaced().iter().filter_map(by).collect()
}

/// A value whose dims are these ranges of an index.
pub(super) struct Placed {
    pub(super) value: Value,
    pub(super) digits: Vec<IndexRange>,
}

/// Sums under construction.
pub(super) struct Build<'a> {
    module: &'a Module,
    pub(super) patch: Patch,
    /// The first stages built so far.
    cores: FxHashMap<Core, (Value, Vec<IndexRange>)>,
}

/// One of the two stages of a sum.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    First,
    Second,
}

/// The place of new instructions: before the sum that they compute, with the element type and
/// layout of `like`, the sum's own shape.
#[derive(Clone, Copy)]
pub(super) struct At<'a> {
    pub(super) sum: &'a Sum,
    like: &'a ArrayShape,
}

impl<'a> At<'a> {
    pub(super) fn new(module: &'a Module, sum: &'a Sum) -> Option<Self> {
        Some(Self { sum, like: module.array_shape(sum.id)? })
    }
}

impl<'a> Build<'a> {
    pub(super) fn new(module: &'a Module) -> Self {
        Self { module, patch: Patch::new(), cores: FxHashMap::default() }
    }

    /// Replaces a sum by a form of it. Sums must be added in the order of the computation, so that a
    /// first stage stands before every sum that shares it.
    pub(super) fn add(&mut self, sum: &Sum, form: &Form) -> Option<()> {
        let at = At::new(self.module, sum)?;
        let first = self.core(at, &form.core, &form.tree)?;
        let Form { between, after, .. } = form;
        let finer = between.factors.iter().chain(&after.factors).flat_map(|factor| &factor.ranges);
        let ends = first.digits.iter().chain(finer).chain(&sum.kept).chain(&sum.summed).copied();
        let digits = Cuts::of(sum.elements, ends)?.digits();
        let left = |digit: &IndexRange| first.digits.iter().any(|range| digit.within(*range));
        let digits: Vec<IndexRange> = digits.into_iter().filter(left).collect();
        let mut placed = self.cut(at, first, digits);
        placed.value = self.times(at, &placed, between)?;
        placed = self.summed(at, placed, &sum.summed, Stage::Second)?;
        placed.value = self.times(at, &placed, after)?;
        self.finish(at, placed);
        Some(())
    }

    /// The module that sums are built for.
    pub(super) fn module(&self) -> &'a Module {
        self.module
    }

    /// Replaces a sum by a value; see [`Self::finished`].
    pub(super) fn finish(&mut self, at: At<'_>, placed: Placed) {
        let value = self.finished(at, placed);
        self.patch.replace(at.sum.id, value);
    }

    /// Returns a value in place of a sum: negated and reshaped to the sum's dims where necessary.
    pub(super) fn finished(&mut self, at: At<'_>, placed: Placed) -> Value {
        let mut value = placed.value;
        if at.sum.product.negative {
            value = self.op(at, Op::Negate, &placed.digits, [value]);
        }
        if sizes(&placed.digits).as_slice() != at.like.dims() {
            let shape = self.module.shape(at.sum.id).clone();
            value = self.patch.add(at.sum.id, reshape_op(), shape, [value]);
        }
        value
    }

    /// Returns the first stage of a sum. Sums that share a core share its instructions, whose
    /// factors are combined in the order of the first of these sums.
    pub(super) fn core(&mut self, at: At<'_>, core: &Core, tree: &Tree) -> Option<Placed> {
        if let Some((value, digits)) = self.cores.get(core) {
            return Some(Placed { value: *value, digits: digits.clone() });
        }
        let ends = core.factors.iter().flat_map(|factor| &factor.ranges).chain(&core.along);
        let digits = Cuts::of(core.elements, ends.copied())?.digits();
        let factor =
            |build: &mut Self, place: usize| build.spread(at, core.factors.get(place)?, &digits);
        let value = self.product(at, tree, &factor, &digits)?;
        let whole = Placed { value, digits };
        let placed = self.summed(at, whole, &core.along, Stage::First)?;
        self.cores.insert(core.clone(), (placed.value, placed.digits.clone()));
        Some(placed)
    }

    /// Returns the sum of the product of some factors, combined one after the other.
    pub(super) fn sum_of(&mut self, at: At<'_>, mut factors: Vec<Factor>) -> Option<Placed> {
        factors.sort_unstable();
        let tree = Tree::chain(factors.iter().map(|factor| factor.divides))?;
        let Sum { elements, monoid, law, ref summed, .. } = *at.sum;
        let core = Core { factors, along: summed.clone(), elements, monoid, law };
        self.core(at, &core, &tree)
    }

    /// Returns the product of the factors in a tree.
    fn product(
        &mut self,
        at: At<'_>,
        tree: &Tree,
        factor: &dyn Fn(&mut Self, usize) -> Option<Value>,
        digits: &[IndexRange],
    ) -> Option<Value> {
        let (pair, divides) = match tree {
            Tree::Factor(place) => return factor(self, *place),
            Tree::Times(pair) => (pair, false),
            Tree::Over(pair) => (pair, true),
        };
        let first = self.product(at, &pair[0], factor, digits)?;
        let second = self.product(at, &pair[1], factor, digits)?;
        Some(self.op(at, at.sum.law.operation(divides), digits, [first, second]))
    }

    /// Returns a value reshaped to finer dims.
    pub(super) fn cut(&mut self, at: At<'_>, placed: Placed, digits: Vec<IndexRange>) -> Placed {
        if placed.digits == digits {
            return placed;
        }
        let value = self.op(at, reshape_op(), &digits, [placed.value]);
        Placed { value, digits }
    }

    /// Returns a scalar constant broadcast to these dims.
    pub(super) fn number(
        &mut self,
        at: At<'_>,
        number: Data,
        digits: &[IndexRange],
    ) -> Option<Value> {
        let element_type = at.sum.monoid.element_type;
        let number = ArrayLiteral::new(element_type, [], number).ok()?;
        let number = Op::Constant(Box::new(Literal::Array(number)));
        let number = self.patch.add(at.sum.id, number, Shape::scalar(element_type), []);
        let op = Op::Broadcast(Box::new(BroadcastAttrs { dimensions: Dims::new() }));
        Some(self.op(at, op, digits, [number]))
    }

    /// Returns a sum times the factors that were pulled out of it.
    pub(super) fn times(&mut self, at: At<'_>, sum: &Placed, rest: &Rest) -> Option<Value> {
        let factor = |build: &mut Self, place: usize| match place.checked_sub(1) {
            None => Some(sum.value),
            Some(place) => build.spread(at, rest.factors.get(place)?, &sum.digits),
        };
        self.product(at, &rest.tree, &factor, &sum.digits)
    }

    /// Returns a factor broadcast to these dims.
    pub(super) fn spread(
        &mut self,
        at: At<'_>,
        factor: &Factor,
        digits: &[IndexRange],
    ) -> Option<Value> {
        let own = |digit: &IndexRange| factor.ranges.iter().any(|range| digit.within(*range));
        let places = (0i64..).zip(digits).filter(|(_, digit)| own(digit));
        let (places, own): (Dims, Vec<IndexRange>) =
            places.map(|(place, digit)| (place, *digit)).unzip();
        let shape = self.module.array_shape(factor.value)?;
        let mut value = Value::Old(factor.value);
        if factor.convert.is_some() {
            let converted = shape_like(at.like, shape.dims());
            value = self.patch.add(at.sum.id, Op::Convert, converted, [value]);
        }
        if sizes(&own).as_slice() != shape.dims() {
            value = self.op(at, reshape_op(), &own, [value]);
        }
        if own.len() == digits.len() {
            return Some(value);
        }
        let op = Op::Broadcast(Box::new(BroadcastAttrs { dimensions: places }));
        Some(self.op(at, op, digits, [value]))
    }

    /// Returns the init of a stage: the sum's own init for the first stage, the identity for
    /// the second. The identity of a float sum is `-0.0`, so the inits differ and XLA does not
    /// merge the two stages into one sum. The merged sum would read the whole operand of the
    /// first stage again if another instruction uses that stage's result
    /// (`xla/hlo/transforms/simplifiers/algebraic_simplifier.cc`).
    fn init(&mut self, at: At<'_>, stage: Stage) -> Option<Value> {
        let &[_, init] = self.module.operands(at.sum.id) else { return None };
        let sums_again = stage == Stage::Second && at.sum.law == Law::Times;
        let identity = at.sum.monoid.identity().filter(|_| sums_again);
        Some(match identity {
            Some(identity) if self.module.constant(init) != Some(&identity) => {
                let op = Op::Constant(Box::new(identity));
                self.patch.add(at.sum.id, op, self.module.shape(init).clone(), [])
            }
            _ => Value::Old(init),
        })
    }

    /// Returns the sum along the dims that lie within these ranges.
    fn summed(
        &mut self,
        at: At<'_>,
        placed: Placed,
        along: &[IndexRange],
        stage: Stage,
    ) -> Option<Placed> {
        let Op::Reduce(attrs) = self.module.op(at.sum.id) else { return None };
        let is_summed = |digit: &IndexRange| along.iter().any(|range| digit.within(*range));
        let dims = (0i64..).zip(&placed.digits).filter(|(_, digit)| is_summed(digit));
        let dimensions: Dims = dims.map(|(dim, _)| dim).collect();
        if dimensions.is_empty() {
            return Some(placed);
        }
        let digits: Vec<IndexRange> =
            placed.digits.into_iter().filter(|digit| !is_summed(digit)).collect();
        let reduce = ReduceAttrs { dimensions, to_apply: attrs.to_apply };
        let op = Op::Reduce(Box::new(reduce));
        let init = self.init(at, stage)?;
        let value = self.op(at, op, &digits, [placed.value, init]);
        Some(Placed { value, digits })
    }

    pub(super) fn op<const N: usize>(
        &mut self,
        at: At<'_>,
        op: Op,
        digits: &[IndexRange],
        operands: [Value; N],
    ) -> Value {
        let shape: Shape = shape_like(at.like, &sizes(digits));
        self.patch.add(at.sum.id, op, shape, operands)
    }
}
