//! Reduces of reshapes that can start before the reshape: the mechanism of
//! [`super::reduce_through_reshape`] and [`super::reduce_as_window`].

use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;
use tilewright_ir::{InstId, Module, Op, Patch, Value};

use super::broadcast_plan::cheapest_through;
use super::region_move::same_but_ones;
use crate::analysis::digits::Digits;
use crate::analysis::reduce::{MonoidReduce, is_plain, reduced_arrays, reshape_op, shape_like};
use crate::cost::CostModel;
use crate::driver::attempt::Attempt;
use crate::driver::numbers::FloatMode;
use crate::driver::reason::{Reason, Refusal};

/// A way to reduce before a reshape.
pub(super) struct Way {
    /// Whether it applies to a reduction of these dims of the reshape.
    pub(super) starts: fn(&Digits, &[i64]) -> bool,
    /// Plans the reduction of these arrays, which have the dims before the reshape.
    pub(super) plan: fn(&MonoidReduce, &Module, &Digits, &[Value], &mut Patch) -> Option<Value>,
    /// The words in a note between the shape before the reshape and the shape after it.
    pub(super) how: &'static str,
}

/// A reduce of a reshape that could partly come first.
pub(super) struct ReduceOfReshape<'a> {
    reduce: InstId,
    /// The first reshape among the reduced arrays.
    reshape: InstId,
    /// The operand of the reshape.
    pub(super) source: InstId,
    digits: Digits,
    way: &'a Way,
}

impl<'a> ReduceOfReshape<'a> {
    pub(super) fn at(module: &Module, reduce: InstId, way: &'a Way) -> Option<Self> {
        let mut arrays = reduced_arrays(module, reduce).iter();
        let (reshape, source) = arrays.find_map(|&array| reshaped(module, array))?;
        let digits = digits_of(module, reshape, source)?;
        let Op::Reduce(attrs) = module.op(reduce) else { return None };
        let starts = (way.starts)(&digits, &attrs.dimensions);
        let changes = !same_but_ones(digits.from_dims(), digits.to_dims());
        (starts && changes).then_some(Self { reduce, reshape, source, digits, way })
    }

    /// Passes over an array that a rewrite laid out another way: that it keeps its layout is
    /// nothing to tell the user.
    pub(super) fn unless_laid_out(self, laid_out: &FxHashSet<InstId>) -> Option<Self> {
        let is_laid_out = laid_out.contains(&self.source) || laid_out.contains(&self.reshape);
        (!is_laid_out).then_some(self)
    }

    fn is_plain(&self, module: &Module) -> bool {
        let plain = |id| module.array_shape(id).is_some_and(is_plain);
        plain(self.source) && plain(self.reshape)
    }

    /// Returns the rewrite, or the reason why there is none.
    pub(super) fn plan(
        &self,
        module: &Module,
        model: &CostModel<'_>,
        float_mode: FloatMode,
    ) -> Result<Attempt, Refusal> {
        let but = |reason: Reason, who: &str| {
            let why = reason.of_instruction();
            Refusal { reason, text: format!("it could start before the reshape, but {who} {why}") }
        };
        if module.extras(self.reshape).is_some() {
            return Err(but(Reason::Attached, "the reshape"));
        }
        if !self.is_plain(module) {
            return Err(but(Reason::Layout, "the array that is reshaped"));
        }
        let reduce = MonoidReduce::or_why_not(module, self.reduce, float_mode)
            .map_err(|reason| but(reason, "it"))?;
        let mut brought = Brought::new(self, model);
        let arrays = reduced_arrays(module, self.reduce).iter();
        let sources: Option<SmallVec<[Value; 2]>> =
            arrays.map(|&id| brought.value(module, id)).collect();
        let sources = sources.ok_or_else(|| but(Reason::Layout, "an array that it reduces"))?;
        let Brought { mut patch, frees, .. } = brought;
        let result = (self.way.plan)(&reduce, module, &self.digits, &sources, &mut patch)
            .ok_or_else(|| but(Reason::Identity, "it"))?;
        patch.replace(self.reduce, result);
        let shape = |id| module.shape(id).without_layout();
        let (from, to) = (shape(self.source), shape(self.reshape));
        let how = self.way.how;
        Ok(Attempt {
            patch,
            frees,
            done: format!("reduced {from} {how} {to}"),
            would: format!("reducing {from} {how} {to}"),
        })
    }
}

/// Brings the arrays of a reduce to the dims before the reshape.
struct Brought<'a> {
    found: &'a ReduceOfReshape<'a>,
    model: &'a CostModel<'a>,
    patch: Patch,
    values: FxHashMap<InstId, Value>,
    /// The arrays that the reduce no longer reads.
    frees: SmallVec<[InstId; 2]>,
}

impl<'a> Brought<'a> {
    fn new(found: &'a ReduceOfReshape<'a>, model: &'a CostModel<'a>) -> Self {
        let (patch, values) = (Patch::new(), FxHashMap::default());
        Self { found, model, patch, values, frees: SmallVec::new() }
    }

    /// Returns an array in the dims before the reshape: the operand of a reshape, a broadcast
    /// or iota planned anew, or else a reshape of the array.
    fn value(&mut self, module: &Module, id: InstId) -> Option<Value> {
        if let Some(value) = self.values.get(&id) {
            return Some(*value);
        }
        let value = match self.without(module, id) {
            Some(value) => {
                self.frees.push(id);
                value
            }
            None => {
                let shape = shape_like(module.array_shape(id)?, self.found.digits.from_dims());
                let operand = [Value::Old(id)];
                self.patch.add_like(id, self.found.reduce, reshape_op(), shape, operand)
            }
        };
        self.values.insert(id, value);
        Some(value)
    }

    /// Returns the same, but without reading the array; `None` if that is not possible.
    fn without(&mut self, module: &Module, id: InstId) -> Option<Value> {
        if module.extras(id).is_some() {
            return None;
        }
        if let Some((_, source)) = reshaped(module, id) {
            let shape = module.array_shape(source)?;
            let fits = shape.dims() == self.found.digits.from_dims() && is_plain(shape);
            return fits.then_some(Value::Old(source));
        }
        cheapest_through(module, self.model, id, &self.found.digits, &mut self.patch)
    }
}

/// Returns a reshape, and its operand.
fn reshaped(module: &Module, id: InstId) -> Option<(InstId, InstId)> {
    match (module.op(id), module.operands(id)) {
        (Op::Reshape(_), [source]) => Some((id, *source)),
        _ => None,
    }
}

/// Returns the digits of a reshape between arrays of static dims.
fn digits_of(module: &Module, reshape: InstId, source: InstId) -> Option<Digits> {
    let (from, to) = (module.array_shape(source)?, module.array_shape(reshape)?);
    if !from.is_static() || !to.is_static() {
        return None;
    }
    Digits::of_reshape(from.dims(), to.dims())
}
