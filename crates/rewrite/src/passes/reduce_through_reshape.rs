//! **T1: reduce before the reshape what the reshape leaves alone.**
//!
//! ```text
//! reduce(reshape(X), D) = reduce(reshape(reduce(X, S), small), R)
//!
//! group norm  X[B,H,W,C] ── reshape [B,H,W,G,C/G] ── reduce {1,2,4} ── [B,G]
//! becomes     X[B,H,W,C] ── reduce {1,2} ── [B,C] ── reshape [B,G,C/G] ── reduce {2} ── [B,G]
//! ```
//!
//! S are the dims of X along which the result does not vary; only dims of
//! which one part is kept and another reduced keep a reshape, on the tensor
//! already reduced. More arithmetic, far fewer elements to realign. Where no
//! such dim is left, the reshape is gone.
//!
//! Several arrays are reduced at once if one of them is such a reshape: the
//! others come to the dims of X as what they are a reshape or a broadcast of, or
//! by a reshape that the result has to pay. An argmax reduces values and an iota,
//! which is reshaped or, where that is cheaper, counted anew along the dims of X.
//!
//! Preconditions: a computation that is a [`Reducer`] (associative and
//! commutative), static row-major shapes. A first stage of sums or products
//! starts from the identity, which must be known, unless the reduce's init is
//! neutral, so that any other init is still applied once; where taking the init
//! twice changes nothing (maxima, choices), both stages start from it. Sums and
//! products of floats are regrouped, as HLO allows, unless the order must be kept
//! (`--exact`); so are choices by floats, where the order decides which NaN's
//! index and which zero's sign is kept.
//!
//! Where parts of dims stay (`H/2` of H), a window that strides over X would do
//! as well as two reduces. It is not offered: the cost model knows a
//! `reduce-window` by its loads and stores alone, not what windows cost that step
//! along lanes, so the two could not be weighed.
//!
//! [`Reducer`]: crate::analysis::reducer::Reducer
//!
//! Source: the patent application "Reshape and broadcast optimizations to avoid
//! unnecessary data movement" (B. A. Hechtman, filed 2020-04-30), the pattern
//! `reduce(reshape(X))`; generalised from unchanged dims to all dims whose
//! digits are all reduced.

use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use tilewright_ir::{EditError, InstId, Module, Op, Opcode, Patch, Value};

use super::attempt::{Attempt, attempt_each};
use super::region_move::same_but_ones;
use crate::analysis::broadcast::{counted_through, repeated_through};
use crate::analysis::cost::CostModel;
use crate::analysis::digits::Digits;
use crate::analysis::reduce::{
    MonoidReduce, first_stage, is_plain, reduced_arrays, reshape_op, shape_like,
};
use crate::pass::{Context, Pass};

/// See the module.
pub struct ReduceThroughReshape;

impl Pass for ReduceThroughReshape {
    fn name(&self) -> &'static str {
        "reduce-through-reshape"
    }

    fn summary(&self) -> &'static str {
        "T1: reduce before a reshape what it leaves alone, so that less is reshaped"
    }

    fn is_heart(&self) -> bool {
        true
    }

    fn run(&self, module: &mut Module, cx: &mut Context<'_>) -> Result<usize, EditError> {
        let model = CostModel { target: cx.target };
        attempt_each(self, Opcode::Reduce, module, cx, |module, id, exact| {
            Some(Found::at(module, id)?.plan(module, &model, exact))
        })
    }
}

/// A reduce of a reshape, of which a part could come first.
struct Found {
    reduce: InstId,
    /// The first reshape among what it reduces.
    reshape: InstId,
    source: InstId,
    digits: Digits,
}

impl Found {
    fn at(module: &Module, reduce: InstId) -> Option<Self> {
        let mut arrays = reduced_arrays(module, reduce).iter();
        let (reshape, source) = arrays.find_map(|&array| reshaped(module, array))?;
        let digits = digits_of(module, reshape, source)?;
        let Op::Reduce(attrs) = module.op(reduce) else { return None };
        first_stage(&digits, &attrs.dimensions)?;
        let changes = !same_but_ones(digits.from_dims(), digits.to_dims());
        changes.then_some(Self { reduce, reshape, source, digits })
    }

    /// What to do; or why it is left.
    fn plan(&self, module: &Module, model: &CostModel<'_>, exact: bool) -> Result<Attempt, String> {
        let but = |why: &str| format!("it could start before the reshape, but {why}");
        if module.extras(self.reshape).is_some() {
            return Err(but("the reshape has attributes or control edges that would be lost"));
        }
        let plain = |id| module.array_shape(id).is_some_and(is_plain);
        if !plain(self.source) || !plain(self.reshape) {
            return Err(but("what is reshaped does not lie row major"));
        }
        let reduce = MonoidReduce::or_why_not(module, self.reduce, exact)
            .map_err(|why| but(&format!("it {why}")))?;
        let mut brought = Brought::new(self, model);
        let arrays = reduced_arrays(module, self.reduce).iter();
        let sources: Option<SmallVec<[Value; 2]>> =
            arrays.map(|&id| brought.value(module, id)).collect();
        let sources = sources.ok_or_else(|| but("it reduces what is no array"))?;
        let Brought { mut patch, frees, .. } = brought;
        let result = reduce
            .through(module, &self.digits, &sources, &mut patch)
            .ok_or_else(|| but("its type has no known identity"))?;
        patch.replace(self.reduce, result);
        let shape = |id| module.shape(id).without_layout();
        let (from, to) = (shape(self.source), shape(self.reshape));
        Ok(Attempt {
            patch,
            frees,
            done: format!("reduced {from} before it becomes {to}"),
            would: format!("reducing {from} before it becomes {to}"),
        })
    }
}

/// The arrays of a reduce being brought to the dims of what is reshaped.
struct Brought<'a> {
    found: &'a Found,
    model: &'a CostModel<'a>,
    patch: Patch,
    values: FxHashMap<InstId, Value>,
    /// The arrays that are not needed any more.
    frees: SmallVec<[InstId; 2]>,
}

impl<'a> Brought<'a> {
    fn new(found: &'a Found, model: &'a CostModel<'a>) -> Self {
        let (patch, values) = (Patch::new(), FxHashMap::default());
        Self { found, model, patch, values, frees: SmallVec::new() }
    }

    /// An array in those dims: what it is a reshape or a broadcast of, or else
    /// the array reshaped.
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

    /// The array in those dims, made without the array itself.
    fn without(&mut self, module: &Module, id: InstId) -> Option<Value> {
        if module.extras(id).is_some() {
            return None;
        }
        if let Some((_, source)) = reshaped(module, id) {
            let shape = module.array_shape(source)?;
            let fits = shape.dims() == self.found.digits.from_dims() && is_plain(shape);
            return fits.then_some(Value::Old(source));
        }
        // The cheaper of two ways, where there are two.
        let ways = [repeated_through, counted_through];
        let cycles = ways.map(|way| {
            let mut patch = Patch::new();
            way(module, id, &self.found.digits, &mut patch)
                .map(|_| self.model.patch(module, &patch).cycles)
        });
        let counts = matches!(cycles, [Some(repeated), Some(counted)] if counted < repeated);
        ways[usize::from(counts)](module, id, &self.found.digits, &mut self.patch)
    }
}

/// A reshape, and its operand.
fn reshaped(module: &Module, id: InstId) -> Option<(InstId, InstId)> {
    match (module.op(id), module.operands(id)) {
        (Op::Reshape(_), [source]) => Some((id, *source)),
        _ => None,
    }
}

/// The digits of a reshape between arrays of static dims.
fn digits_of(module: &Module, reshape: InstId, source: InstId) -> Option<Digits> {
    let (from, to) = (module.array_shape(source)?, module.array_shape(reshape)?);
    if !from.is_static() || !to.is_static() {
        return None;
    }
    Digits::of_reshape(from.dims(), to.dims())
}
