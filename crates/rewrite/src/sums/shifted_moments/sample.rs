//! The sample of an array.
//!
//! ```text
//! slice(f(x, y)) = f(slice(x), slice(y))        f elementwise
//! ```
//!
//! A slice of a value that kernels compute where they use it would have the whole value stored
//! first. So the slice is taken of what the value is computed from.

use rustc_hash::FxHashMap;
use tilewright_ir::ops::dims::SliceDim;
use tilewright_ir::ops::shaping::SliceAttrs;
use tilewright_ir::{Dims, InstId, Module, Op, Patch, Value};

use crate::analysis::reduce::{is_plain, shape_like};

/// The most instructions that are computed anew for a sample.
const MOST_COMPUTED: usize = 64;

/// The most arrays that are sliced for a sample.
const MOST_SLICED: usize = 4;

/// A sample of arrays of the same dims.
pub(super) struct Sample<'a> {
    pub(super) module: &'a Module,
    /// The instruction before which it is computed.
    pub(super) before: InstId,
    /// The part of each dim that is taken.
    pub(super) slice: Vec<SliceDim>,
    /// The dims of the sample.
    pub(super) sizes: &'a [i64],
    /// Whether it may be computed from samples. Where each sum reads its array for itself, the
    /// sample costs more than it saves.
    pub(super) from_samples: bool,
}

impl Sample<'_> {
    /// Plans the sample of an array.
    pub(super) fn of(&self, patch: &mut Patch, array: InstId) -> Option<Value> {
        match self.computed(array).filter(|_| self.from_samples) {
            Some(order) => self.compute(patch, &order),
            None => self.sliced(patch, array, &self.slice),
        }
    }

    /// Plans these parts of an array, unless they are all of it.
    fn sliced(&self, patch: &mut Patch, array: InstId, parts: &[SliceDim]) -> Option<Value> {
        let array_shape = self.module.array_shape(array)?;
        let size = |part: &SliceDim| (part.limit - part.start + part.stride - 1) / part.stride;
        let sizes: Dims = parts.iter().map(size).collect();
        if array_shape.dims() == sizes.as_slice() {
            return Some(Value::Old(array));
        }
        let slice = Op::Slice(Box::new(SliceAttrs { slice: parts.iter().copied().collect() }));
        let shape = shape_like(array_shape, &sizes);
        Some(patch.add(self.before, slice, shape, [Value::Old(array)]))
    }

    /// Returns the instructions that compute an array, operands first, from those that are sliced
    /// or spread over all samples; `None` if they are too many.
    fn computed(&self, array: InstId) -> Option<Vec<InstId>> {
        let (mut order, mut sliced) = (Vec::new(), 0);
        let mut is_there: FxHashMap<InstId, bool> = FxHashMap::default();
        let mut next = vec![array];
        while let Some(&id) = next.last() {
            let waiting = is_there.insert(id, true).is_none() && self.is_computed(id);
            if waiting {
                let new = |operand: &InstId| !is_there.contains_key(operand);
                next.extend(self.module.operands(id).iter().copied().filter(new));
                continue;
            }
            next.pop();
            if order.contains(&id) {
                continue;
            }
            order.push(id);
            sliced += usize::from(!self.is_computed(id) && self.spread(id).is_none());
            if order.len() > MOST_COMPUTED || sliced > MOST_SLICED {
                return None;
            }
        }
        Some(order)
    }

    /// Checks whether the sample of a value is computed from samples of its operands.
    fn is_computed(&self, id: InstId) -> bool {
        let module = self.module;
        let Some(own) = module.array_shape(id).filter(|own| is_plain(own)) else { return false };
        let is_alike = |operand: &InstId| {
            let array = module.array_shape(*operand);
            array.is_some_and(|array| is_plain(array) && array.dims() == own.dims())
        };
        module.opcode(id).is_elementwise()
            && module.extras(id).is_none()
            && module.operands(id).iter().all(is_alike)
    }

    /// Returns the parts of a broadcast's operand that its sample is a broadcast of.
    fn spread(&self, id: InstId) -> Option<Vec<SliceDim>> {
        let (Op::Broadcast(attrs), &[operand]) = (self.module.op(id), self.module.operands(id))
        else {
            return None;
        };
        let is_plain = self.module.array_shape(operand).is_some_and(is_plain);
        if !is_plain || self.module.extras(id).is_some() {
            return None;
        }
        let part = |&dim: &i64| self.slice.get(usize::try_from(dim).ok()?).copied();
        attrs.dimensions.iter().map(part).collect()
    }

    /// Plans the samples of these values; returns that of the last one.
    fn compute(&self, patch: &mut Patch, order: &[InstId]) -> Option<Value> {
        let module = self.module;
        let mut samples: FxHashMap<InstId, Value> = FxHashMap::default();
        let mut last = None;
        for &id in order {
            let operands: Option<Vec<Value>> = if self.is_computed(id) {
                module.operands(id).iter().map(|operand| samples.get(operand).copied()).collect()
            } else if let (Some(parts), &[operand]) = (self.spread(id), module.operands(id)) {
                Some(vec![self.sliced(patch, operand, &parts)?])
            } else {
                None
            };
            let sample = match operands {
                Some(operands) => {
                    let shape = shape_like(module.array_shape(id)?, self.sizes);
                    patch.add(self.before, module.op(id).clone(), shape, operands)
                }
                None => self.sliced(patch, id, &self.slice)?,
            };
            samples.insert(id, sample);
            last = Some(sample);
        }
        last
    }
}
