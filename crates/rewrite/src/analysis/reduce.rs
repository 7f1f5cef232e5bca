//! Plans a reduce of a reshape as reduce, small reshape, small reduce.

use smallvec::SmallVec;
use tilewright_ir::ops::reduce::ReduceAttrs;
use tilewright_ir::ops::shaping::ReshapeAttrs;
use tilewright_ir::{ArrayShape, Dims, InstId, Layout, Module, Op, Patch, Shape, Value};

use super::digits::{Digits, ReducePlan};
use super::monoid::Monoid;

/// A reduce whose operand can be regrouped.
#[derive(Clone, Copy, Debug)]
pub struct MonoidReduce {
    /// The reduce.
    pub id: InstId,
    /// What its computation is.
    pub monoid: Monoid,
}

impl MonoidReduce {
    /// The reduce `id`, if it has one array, a monoid for a computation, and
    /// nothing attached that a rewrite could not carry over; under `exact`,
    /// only if regrouping it changes no bit.
    pub fn of(module: &Module, id: InstId, exact: bool) -> Option<Self> {
        Self::or_why_not(module, id, exact).ok()
    }

    /// As [`Self::of`].
    ///
    /// # Errors
    /// What is in the way, in words that follow `it`.
    pub fn or_why_not(module: &Module, id: InstId, exact: bool) -> Result<Self, &'static str> {
        let Op::Reduce(attrs) = module.op(id) else { return Err("is no reduce") };
        let [array, _init] = *module.operands(id) else {
            return Err("reduces several arrays at once");
        };
        let plain = |id| module.array_shape(id).is_some_and(is_plain);
        if !plain(id) || !plain(array) {
            return Err("has dynamic dims or does not lie row major");
        }
        if module.extras(id).is_some() {
            return Err("has a sharding, control edges or other attributes that would be lost");
        }
        let monoid = Monoid::of(module, attrs.to_apply).ok_or(
            "reduces by a computation that is no plain sum, product, minimum, maximum, and, or, xor",
        )?;
        if exact && !monoid.regroups_exactly() {
            return Err("adds or multiplies floats, whose order --exact keeps");
        }
        Ok(Self { id, monoid })
    }

    /// The dims that vanish.
    pub fn dims<'a>(&self, module: &'a Module) -> &'a [i64] {
        match module.op(self.id) {
            Op::Reduce(attrs) => &attrs.dimensions,
            _ => &[],
        }
    }

    /// Adds to `patch` the same reduction of `reshape(source)`, with as much
    /// of it before the reshape as `digits` allow. `None`, and nothing added,
    /// where nothing can come first or the monoid's identity has no literal.
    pub fn through(
        &self,
        module: &Module,
        digits: &Digits,
        source: Value,
        patch: &mut Patch,
    ) -> Option<Value> {
        let Op::Reduce(attrs) = module.op(self.id) else { return None };
        let plan = first_stage(digits, &attrs.dimensions)?;
        let result = module.array_shape(self.id)?;
        let init = *module.operands(self.id).get(1)?;
        // The reduce's own init must be applied once: by the last stage.
        let first_init = match module.constant(init) {
            _ if plan.remaining.is_empty() => Value::Old(init),
            Some(value) if self.monoid.is_neutral(value) => Value::Old(init),
            _ => {
                let identity = Op::Constant(Box::new(self.monoid.identity()?));
                patch.add(self.id, identity, Shape::scalar(self.monoid.element_type), [])
            }
        };
        Some(self.stages(&plan, attrs, result, [source, first_init, Value::Old(init)], patch))
    }

    fn stages(
        &self,
        plan: &ReducePlan,
        attrs: &ReduceAttrs,
        result: &ArrayShape,
        [source, first_init, last_init]: [Value; 3],
        patch: &mut Patch,
    ) -> Value {
        let like = |dims: &[i64]| shape_like(result, dims);
        let reduce = |dims: &[usize]| {
            let dimensions: Dims = dims.iter().filter_map(|&d| i64::try_from(d).ok()).collect();
            Op::Reduce(Box::new(ReduceAttrs { dimensions, to_apply: attrs.to_apply }))
        };
        let first = reduce(&plan.source_dims);
        let mut value = patch.add(self.id, first, like(&plan.source_result), [source, first_init]);
        if !plan.reshape_is_identity() {
            value = patch.add(self.id, reshape_op(), like(&plan.reshape_to), [value]);
        }
        if plan.remaining.is_empty() {
            return value;
        }
        patch.add(self.id, reduce(&plan.remaining), like(result.dims()), [value, last_init])
    }
}

/// What of a reduction of these dims of a reshape can come before it.
pub fn first_stage(digits: &Digits, dims: &[i64]) -> Option<ReducePlan> {
    let reduced: Option<SmallVec<[usize; 6]>> =
        dims.iter().map(|&d| usize::try_from(d).ok()).collect();
    digits.reduce_first(&reduced?)
}

/// Whether an array has static dims and lies row major: what the rewrites
/// understand.
pub fn is_plain(shape: &ArrayShape) -> bool {
    shape.is_static() && shape.has_default_layout()
}

/// A reshape without inferred dims.
pub fn reshape_op() -> Op {
    Op::Reshape(Box::new(ReshapeAttrs { inferred_dimension: None }))
}

/// An array of other dims with the element type of `like`, row major, said so
/// if `like` says its layout.
pub fn shape_like(like: &ArrayShape, dims: &[i64]) -> Shape {
    let layout = like.layout.as_ref().map(|_| Layout::descending(dims.len()));
    ArrayShape::new(like.element_type, dims.iter().copied()).with_layout(layout).into()
}
