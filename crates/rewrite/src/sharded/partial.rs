//! Values that devices have yet to combine.

use smallvec::SmallVec;
use tilewright_ir::ops::control::CustomCallAttrs;
use tilewright_ir::ops::reduce::ReduceAttrs;
use tilewright_ir::ops::shaping::{BroadcastAttrs, TransposeAttrs};
use tilewright_ir::{ArrayShape, CompId, Dims, InstId, Module, Op, Patch, Value};

use crate::analysis::reduce::{reshape_op, shape_like};
use crate::analysis::sharding::{Axes, DeviceMesh, Spread};

/// One array per device along some axes, to be combined into one array.
#[derive(Clone, Debug)]
pub(super) struct Partial {
    /// The arrays. If there are axes, one more dim has a place for each device along them.
    pub(super) value: Value,
    /// The dims of the combined array.
    pub(super) dims: Dims,
    /// How the combined array lies over devices.
    pub(super) spread: Spread,
    /// The axes along which devices have arrays of their own.
    pub(super) axes: Axes,
    /// The index of the dim with a place for each device.
    pub(super) at: usize,
}

impl Partial {
    /// Returns a value that is the same on all devices but for the parts that its spread says.
    pub(super) fn whole(value: Value, dims: &[i64], spread: Spread) -> Self {
        Self { value, dims: dims.into(), spread, axes: Axes::new(), at: 0 }
    }

    /// Returns the dims of the arrays.
    pub(super) fn all_dims(&self, mesh: &DeviceMesh) -> Dims {
        let mut dims = self.dims.clone();
        if !self.axes.is_empty() {
            dims.insert(self.at.min(dims.len()), mesh.parts(&self.axes));
        }
        dims
    }

    /// Returns the index of a dim of the combined array among those of the arrays.
    fn place(&self, dim: usize) -> usize {
        dim + usize::from(!self.axes.is_empty() && dim >= self.at)
    }
}

/// Plans instructions on [`Partial`]s.
pub(super) struct PartialPlanner<'a> {
    pub(super) module: &'a Module,
    pub(super) mesh: &'a DeviceMesh,
    pub(super) patch: Patch,
    /// The instruction before which instructions are planned.
    pub(super) before: InstId,
}

/// How the elements of a reduce are combined.
#[derive(Clone, Copy)]
pub(super) struct Combine {
    pub(super) to_apply: CompId,
    pub(super) init: Value,
}

impl PartialPlanner<'_> {
    /// Plans an instruction with a result of these dims, of the element type of `like`.
    pub(super) fn op(
        &mut self,
        op: Op,
        like: &ArrayShape,
        dims: &[i64],
        operands: impl IntoIterator<Item = Value>,
    ) -> Value {
        self.patch.add(self.before, op, shape_like(like, dims), operands)
    }

    pub(super) fn array(&self, value: Value) -> Option<ArrayShape> {
        self.patch.shape(self.module, value).as_array().cloned()
    }

    /// Reduces dims of the combined array as far as each device can by itself. Devices along the
    /// axes that divide these dims then have arrays of their own. `None` if a dim is not divided
    /// evenly.
    ///
    /// `reduce(x, d) = reduce(reduce(reshape(x, d -> parts, rest), rest), parts)`
    pub(super) fn reduce(
        &mut self,
        from: &Partial,
        dims: &[usize],
        by: Combine,
    ) -> Option<Partial> {
        let like = self.array(from.value)?;
        let split = Split::of(from, dims, self.mesh)?;
        let value = self.reshaped(from.value, &like, &split.dims);
        let value = self.within(&split, value, by)?;
        self.placed(from, &split, value)
    }

    /// Reduces an array with the dims of a split as far as each device can by itself.
    pub(super) fn within(&mut self, split: &Split, value: Value, by: Combine) -> Option<Value> {
        let like = self.array(value)?;
        let attrs = ReduceAttrs { dimensions: split.reduced.clone(), to_apply: by.to_apply };
        Some(self.op(Op::Reduce(Box::new(attrs)), &like, &split.left, [value, by.init]))
    }

    /// Gives an array with the dims that a split of `from` leaves one dim with a place for each
    /// device.
    pub(super) fn placed(
        &mut self,
        from: &Partial,
        split: &Split,
        value: Value,
    ) -> Option<Partial> {
        let like = self.array(value)?;
        let value = self.transposed(value, &like, &split.left, &split.order)?;
        let mut axes = from.axes.clone();
        axes.extend_from_slice(&split.axes);
        let kept = split.kept.iter().copied();
        let dims = kept.clone().filter_map(|dim| from.dims.get(dim).copied()).collect();
        let spread = from.spread.pick(kept)?;
        let made = Partial { value, dims, spread, axes, at: split.at };
        let value = self.reshaped(value, &like, &made.all_dims(self.mesh));
        Some(Partial { value, ..made })
    }

    /// Gives the combined array other dims, which lie as `spread` says.
    pub(super) fn reshape(
        &mut self,
        from: &Partial,
        dims: &[i64],
        spread: &Spread,
    ) -> Option<Partial> {
        let like = self.array(from.value)?;
        let (before, _) = from.dims.split_at_checked(from.at)?;
        let from = match boundary(dims, before) {
            Some(at) => Partial { at, ..from.clone() },
            None => self.in_front(from)?,
        };
        let made = Partial { dims: dims.into(), spread: spread.clone(), ..from };
        let value = self.reshaped(made.value, &like, &made.all_dims(self.mesh));
        Some(Partial { value, ..made })
    }

    /// Moves the dim with a place for each device to the front.
    fn in_front(&mut self, from: &Partial) -> Option<Partial> {
        let like = self.array(from.value)?;
        let rest = (0..from.dims.len()).map(|dim| from.place(dim));
        let order: Vec<usize> = std::iter::once(from.at).chain(rest).collect();
        let value = self.transposed(from.value, &like, &from.all_dims(self.mesh), &order)?;
        Some(Partial { value, at: 0, ..from.clone() })
    }

    /// Transposes the combined array.
    pub(super) fn transpose(&mut self, from: &Partial, dims: &[i64]) -> Option<Partial> {
        let like = self.array(from.value)?;
        let order: Option<Vec<usize>> = dims.iter().map(|&dim| usize::try_from(dim).ok()).collect();
        let order = order?;
        let mut places: Vec<usize> = order.iter().map(|&dim| from.place(dim)).collect();
        if !from.axes.is_empty() {
            places.insert(from.at.min(places.len()), from.at);
        }
        let value = self.transposed(from.value, &like, &from.all_dims(self.mesh), &places)?;
        let dims = order.iter().filter_map(|&dim| from.dims.get(dim).copied()).collect();
        Some(Partial { value, dims, spread: from.spread.pick(order)?, ..from.clone() })
    }

    /// Applies an op of one operand to each element of the arrays.
    pub(super) fn alone(&mut self, op: Op, from: &Partial) -> Option<Partial> {
        let like = self.array(from.value)?;
        let all = from.all_dims(self.mesh);
        let value = self.op(op, &like, &all, [from.value]);
        Some(Partial { value, ..from.clone() })
    }

    /// Applies an op to each element of the arrays. `other` has the dims of the combined array.
    pub(super) fn with_other(&mut self, op: Op, from: &Partial, other: Value) -> Option<Partial> {
        let like = self.array(from.value)?;
        let all = from.all_dims(self.mesh);
        let other = self.everywhere(from, other)?;
        let value = self.op(op, &like, &all, [from.value, other]);
        Some(Partial { value, ..from.clone() })
    }

    /// Repeats an array with the dims of the combined array for each device.
    pub(super) fn everywhere(&mut self, like: &Partial, other: Value) -> Option<Value> {
        if like.axes.is_empty() {
            return Some(other);
        }
        let array = self.array(other)?;
        let places = (0..like.dims.len()).map(|dim| i64::try_from(like.place(dim)).ok());
        let dimensions = places.collect::<Option<Dims>>()?;
        let op = Op::Broadcast(Box::new(BroadcastAttrs { dimensions }));
        Some(self.op(op, &array, &like.all_dims(self.mesh), [other]))
    }

    /// States that each device has its own of the arrays.
    pub(super) fn constrained(&mut self, from: &Partial) -> Option<Value> {
        self.stated(from, from.axes.clone())
    }

    /// States that these axes divide the dim with a place for each device.
    fn stated(&mut self, from: &Partial, axes: Axes) -> Option<Value> {
        let like = self.array(from.value)?;
        let mut dims: Vec<Axes> = from.spread.iter().cloned().collect();
        dims.insert(from.at.min(dims.len()), axes);
        let spread = Spread::new(dims);
        let attrs = CustomCallAttrs {
            custom_call_target: CustomCallAttrs::SHARDING.into(),
            ..CustomCallAttrs::default()
        };
        let op = Op::CustomCall(Box::new(attrs));
        let value = self.op(op, &like, &from.all_dims(self.mesh), [from.value]);
        self.patch.set_extras(value, self.mesh.constraint(&spread));
        Some(value)
    }

    /// Combines the arrays of all devices.
    pub(super) fn combine(&mut self, from: &Partial, by: Combine) -> Option<Value> {
        let own = self.constrained(from)?;
        self.combined(from, own, by)
    }

    /// Combines arrays with the dims of a partial value.
    pub(super) fn combined(&mut self, from: &Partial, value: Value, by: Combine) -> Option<Value> {
        let like = self.array(value)?;
        let dimensions = Dims::from_iter([i64::try_from(from.at).ok()?]);
        let attrs = ReduceAttrs { dimensions, to_apply: by.to_apply };
        Some(self.op(Op::Reduce(Box::new(attrs)), &like, &from.dims, [value, by.init]))
    }

    pub(super) fn reshaped(&mut self, value: Value, like: &ArrayShape, dims: &[i64]) -> Value {
        if self.array(value).is_some_and(|array| array.dims() == dims) {
            return value;
        }
        self.op(reshape_op(), like, dims, [value])
    }

    fn transposed(
        &mut self,
        value: Value,
        like: &ArrayShape,
        dims: &[i64],
        order: &[usize],
    ) -> Option<Value> {
        if order.iter().copied().eq(0..dims.len()) {
            return Some(value);
        }
        let to: Option<Dims> = order.iter().map(|&dim| dims.get(dim).copied()).collect();
        let dimensions: Option<Dims> = order.iter().map(|&dim| i64::try_from(dim).ok()).collect();
        let op = Op::Transpose(Box::new(TransposeAttrs { dimensions: dimensions? }));
        Some(self.op(op, like, &to?, [value]))
    }
}

/// Returns the index at which these dims begin to follow those in `before`, if they can be divided
/// there: the dims up to it have as many elements.
fn boundary(dims: &[i64], before: &[i64]) -> Option<usize> {
    let wanted: i64 = before.iter().product();
    let mut elements = 1i64;
    for (at, &size) in dims.iter().enumerate() {
        if elements == wanted {
            return Some(at);
        }
        elements = elements.checked_mul(size)?;
    }
    (elements == wanted).then_some(dims.len())
}

/// A reduce of a partial value with its divided dims split.
pub(super) struct Split {
    /// All dims, with each divided one among the reduced as its number of parts and the rest.
    pub(super) dims: Dims,
    /// The dims to reduce.
    reduced: Dims,
    /// The dims that are left.
    pub(super) left: Dims,
    /// The order in which the dims with a place for each device stand side by side.
    order: SmallVec<[usize; 6]>,
    /// The index of the first of these in that order.
    at: usize,
    /// The dims of the combined array that are left.
    kept: Vec<usize>,
    /// The axes that divide the reduced dims.
    axes: Axes,
}

impl Split {
    pub(super) fn of(from: &Partial, dims: &[usize], mesh: &DeviceMesh) -> Option<Self> {
        let (mut split, mut left, mut reduced) = (Dims::new(), Dims::new(), Dims::new());
        let (mut devices, mut rest) = (SmallVec::<[usize; 6]>::new(), Vec::new());
        let (mut kept, mut axes) = (Vec::new(), Axes::new());
        let place_of_devices = (!from.axes.is_empty()).then_some(from.at);
        for dim in 0..=from.dims.len() {
            if place_of_devices == Some(dim) {
                // These axes come first.
                devices.insert(0, left.len());
                split.push(mesh.parts(&from.axes));
                left.push(mesh.parts(&from.axes));
            }
            let Some(&size) = from.dims.get(dim) else { break };
            if !dims.contains(&dim) {
                rest.push(left.len());
                kept.push(dim);
                split.push(size);
                left.push(size);
                continue;
            }
            let count = mesh.parts(&from.spread[dim]);
            (count > 0 && size % count == 0).then_some(())?;
            if count > 1 {
                devices.push(left.len());
                axes.extend_from_slice(&from.spread[dim]);
                split.push(count);
                left.push(count);
            }
            reduced.push(i64::try_from(split.len()).ok()?);
            split.push(size / count);
        }
        // One such dim stays where it is.
        let (order, at) = match devices.as_slice() {
            [] => ((0..left.len()).collect(), 0),
            &[only] => ((0..left.len()).collect(), only),
            _ => (devices.into_iter().chain(rest).collect(), 0),
        };
        Some(Self { dims: split, reduced, left, order, at, kept, axes })
    }

    /// Returns the number of elements that each device reduces to one; `None` if that overflows.
    pub(super) fn count(&self) -> Option<i64> {
        let sizes = self.reduced.iter().map(|&dim| self.dims.get(usize::try_from(dim).ok()?));
        sizes.into_iter().try_fold(1i64, |count, size| count.checked_mul(*size?))
    }

    /// Returns the indices of the dims that are left, among all.
    pub(super) fn places_left(&self) -> Dims {
        let all = (0i64..).take(self.dims.len());
        all.filter(|dim| !self.reduced.contains(dim)).collect()
    }
}
