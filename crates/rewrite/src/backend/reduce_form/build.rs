//! Plans the instructions of a reduction, step by step; `forms.rs` finds the steps.

use smallvec::{SmallVec, smallvec};
use tilewright_ir::ops::dims::{SliceDim, WindowDim};
use tilewright_ir::ops::elementwise::ReducePrecisionAttrs;
use tilewright_ir::ops::shaping::{ConcatenateAttrs, SliceAttrs};
use tilewright_ir::{CompId, Dims, ElementType, Module, Op, Patch, Shape, Value};

use super::forms::{FoldOp, Step, after};
use super::redim::RedimPlan;
use crate::analysis::axes::{Axes, elements};
use crate::analysis::reduce::{
    MonoidReduce, Stages, of_type, reduced_arrays, reshape_op, shape_like,
};
use crate::cost::CostModel;

/// The numbers of exponent and mantissa bits of a `bf16`.
const BF16: ReducePrecisionAttrs = ReducePrecisionAttrs { exponent_bits: 8, mantissa_bits: 7 };

/// The plan of a reduction in steps, under construction.
pub(super) struct StepPlan<'a> {
    module: &'a Module,
    model: CostModel<'a>,
    reduce: &'a MonoidReduce,
    stages: Stages<'a>,
    patch: Patch,
    /// The arrays that are left to reduce after the planned steps.
    values: SmallVec<[Value; 2]>,
    axes: Axes,
}

impl<'a> StepPlan<'a> {
    /// Begins a plan at the arrays that a reduce reduces. The steps reduce by the computation `by`,
    /// in the element types of `shape`.
    pub(super) fn new(
        module: &'a Module,
        model: CostModel<'a>,
        reduce: &'a MonoidReduce,
        by: CompId,
        axes: Axes,
        shape: &'a Shape,
    ) -> Option<Self> {
        let values = reduced_arrays(module, reduce.id).iter().map(|&id| Value::Old(id)).collect();
        let stages = Stages { to_apply: by, result: shape, ..reduce.stages(module)? };
        Some(Self { module, model, reduce, stages, patch: Patch::new(), values, axes })
    }

    /// Plans all steps and returns the edits. `None` if a step cannot be written.
    pub(super) fn all(mut self, steps: &[Step]) -> Option<Patch> {
        self.values = self.widened()?;
        for (number, &step) in steps.iter().enumerate() {
            let is_last = number + 1 == steps.len();
            match step {
                Step::Fold { axis, slices, op } => self.fold((axis, slices, op), is_last)?,
                Step::Outer => self.outer()?,
                Step::Columns => self.columns(is_last)?,
                Step::ReduceAll => self.reduce_all()?,
            }
            self.axes = after(&self.axes, step);
        }
        self.stages.result = self.module.shape(self.reduce.id);
        let leaves = self.stages.result.leaves();
        let dims = leaves.first()?.as_array()?.dims().to_vec();
        self.reshape(&dims);
        self.values = self.converted(self.values.clone());
        let value = self.stages.together(&self.values, &mut self.patch)?;
        self.patch.replace(self.reduce.id, value);
        Some(self.patch)
    }

    /// Returns the values, converted to the types of the stages. XLA removes a conversion to 16
    /// bits and back, so a value that is computed in `bf16` is also rounded by a
    /// `reduce-precision`: otherwise elements that are equal in `bf16` would differ in f32, and
    /// another one could win. `None` for a value that is computed in `f16`, since a
    /// `reduce-precision` turns its subnormal numbers into zero.
    fn widened(&mut self) -> Option<SmallVec<[Value; 2]>> {
        let mut wide = self.converted(self.values.clone());
        for (narrow, wide) in self.values.clone().into_iter().zip(&mut wide) {
            if narrow == *wide || !self.is_computed(narrow) {
                continue;
            }
            match self.patch.shape(self.module, narrow).as_array()?.element_type {
                ElementType::BF16 => {}
                ElementType::F16 => return None,
                _ => continue,
            }
            let shape = self.patch.shape(self.module, *wide).clone();
            let op = Op::ReducePrecision(Box::new(BF16));
            *wide = self.patch.add(self.reduce.id, op, shape, [*wide]);
        }
        Some(wide)
    }

    /// Converts values to the types of the stages.
    fn converted(&mut self, values: SmallVec<[Value; 2]>) -> SmallVec<[Value; 2]> {
        let leaves = self.stages.result.leaves();
        let types = leaves.iter().filter_map(|leaf| Some(leaf.as_array()?.element_type));
        let one = |(value, element_type): (Value, ElementType)| {
            let shape = self.patch.shape(self.module, value).as_array();
            match shape.filter(|shape| shape.element_type != element_type).cloned() {
                Some(shape) => {
                    let shape = of_type(&shape, element_type).into();
                    self.patch.add(self.reduce.id, Op::Convert, shape, [value])
                }
                None => value,
            }
        };
        values.into_iter().zip(types).map(one).collect()
    }

    /// Returns the inits of a step. The last step applies the inits of the reduce.
    fn inits(&mut self, is_last: bool) -> Option<SmallVec<[Value; 2]>> {
        let inits = self.reduce.first_inits(self.module, is_last, &mut self.patch)?;
        Some(self.converted(inits))
    }

    /// Returns the number of elements of the axes outside of an axis, of the axis, and of the axes
    /// inside of it.
    fn around(&self, axis: usize) -> Option<[i64; 3]> {
        let len = self.axes.get(axis)?.len;
        Some([elements(&self.axes[..axis]), len, elements(&self.axes[axis + 1..])])
    }

    /// Combines `slices` slices of an axis, and appends the elements beside whole slices to the
    /// result.
    fn fold(&mut self, (axis, slices, op): (usize, i64, FoldOp), is_last: bool) -> Option<()> {
        let [before, len, within] = self.around(axis)?;
        let left = len / slices;
        let rest = len - left * slices;
        let side = left.checked_mul(within)?;
        let (at, whole) = around_one(before, len, within);
        let mut rests = None;
        if rest > 0 {
            self.regroup(&whole)?;
            let all = self.values.clone();
            rests = Some(self.sliced(&all, at, [left * slices, rest]));
            self.values = self.sliced(&all, at, [0, left * slices]);
        }
        match op {
            FoldOp::Reduce => {
                let (at, folded) = around_one(before, slices, side);
                self.regroup(&folded)?;
                let inits = self.inits(is_last)?;
                let kept = folded.iter().enumerate().filter(|&(dim, _)| dim != at);
                let dims: Dims = kept.map(|(_, &len)| len).collect();
                let made = self.stages.reduce(&[at], &dims, &self.values, &inits, &mut self.patch);
                self.values = self.stages.apart(made, &dims, &mut self.patch);
            }
            FoldOp::Window => self.window(before, [slices, side], is_last)?,
        }
        if let Some(rests) = rests {
            let mut dims = whole;
            dims[at] = left;
            self.reshape(&dims);
            self.values = self.joined(&rests, at);
        }
        Some(())
    }

    /// Combines `slices` slices of `side` elements each by a window with a dilation of `side`, over
    /// rows that hold all slices. XLA fuses the reshape to these rows with the step before, so that
    /// step computes whole rows. If each slice were a row, the step before would compute it without
    /// vectors wherever `side` is not a multiple of a vector.
    fn window(&mut self, before: i64, [slices, side]: [i64; 2], is_last: bool) -> Option<()> {
        let (at, mut dims) = around_one(before, slices.checked_mul(side)?, 1);
        self.regroup(&dims)?;
        let mut window: Vec<WindowDim> = dims.iter().map(|_| WindowDim::new(1)).collect();
        // XLA turns a window that spans the dim and has no stride into a reduce.
        let stride = if side == 1 { slices } else { 1 };
        window[at] = WindowDim { stride, window_dilation: side, ..WindowDim::new(slices) };
        dims[at] = side;
        let inits = self.inits(is_last)?;
        let made = self.stages.window(&window, &dims, &self.values, &inits, &mut self.patch);
        self.values = self.stages.apart(made, &dims, &mut self.patch);
        Some(())
    }

    /// Checks whether a value of the module is computed where it is used.
    fn is_computed(&self, value: Value) -> bool {
        matches!(value, Value::Old(id) if self.model.is_fused(self.module, id))
    }

    /// Gives the arrays other dims for a step. Arrays in memory are reshaped behind a barrier;
    /// values that are computed from them are computed in those dims. `None` if a value cannot be.
    fn regroup(&mut self, dims: &[i64]) -> Option<()> {
        let values = std::mem::take(&mut self.values);
        let mut redim = RedimPlan::new(self.module, self.model, self.reduce.id, dims);
        for value in values {
            let regrouped = match value {
                Value::Old(id) => redim.value(id, &mut self.patch)?,
                Value::New(_) => self.reshaped(value, dims),
            };
            self.values.push(regrouped);
        }
        Some(())
    }

    /// Combines the columns of the innermost axis, neighbours first.
    fn columns(&mut self, is_last: bool) -> Option<()> {
        let [before, len, _] = self.around(self.axes.len().checked_sub(1)?)?;
        let op = self.reduce.reducer.monoid()?.op()?;
        self.regroup(&[before, len])?;
        let &[all] = self.values.as_slice() else { return None };
        let shape = self.like(all, &[before, 1])?;
        let id = self.reduce.id;
        let rows = SliceDim::new(0, before);
        let mut columns: Vec<Value> = (0..len)
            .map(|column| {
                let slice = smallvec![rows, SliceDim::new(column, column + 1)];
                let op = Op::Slice(Box::new(SliceAttrs { slice }));
                self.patch.add(id, op, shape.clone(), [all])
            })
            .collect();
        while columns.len() > 1 {
            let pairs = columns.chunks(2);
            columns = pairs
                .map(|pair| match *pair {
                    [one, other] => self.patch.add(id, op.clone(), shape.clone(), [one, other]),
                    _ => pair[0],
                })
                .collect();
        }
        let &[mut column] = columns.as_slice() else { return None };
        if is_last && self.init_counts() {
            let &[init] = self.reduce.inits(self.module).as_slice() else { return None };
            let broadcast = Op::Broadcast(Box::default());
            let everywhere = self.patch.add(id, broadcast, shape.clone(), [init]);
            column = self.patch.add(id, op, shape, [column, everywhere]);
        }
        self.values = smallvec![column];
        Some(())
    }

    /// Checks whether the init of the reduce may change a value, even if only from `-0.0` to `0.0`.
    fn init_counts(&self) -> bool {
        let Some(monoid) = self.reduce.reducer.monoid() else { return true };
        let operands = self.module.operands(self.reduce.id);
        let init = operands.last().and_then(|&init| self.module.constant(init));
        monoid.rounds() || !init.is_some_and(|value| monoid.is_neutral(value))
    }

    /// Reduces all axes but the innermost one, in the dims of the array, so that the ops that
    /// compute the array stay fused.
    fn outer(&mut self) -> Option<()> {
        let innermost = self.axes.last()?.len;
        let &[all] = self.values.as_slice() else { return None };
        let dims = self.patch.shape(self.module, all).as_array()?.dims().to_vec();
        let (mut inner, mut count) = (dims.len(), 1i64);
        while count < innermost {
            inner = inner.checked_sub(1)?;
            count = count.checked_mul(dims[inner])?;
        }
        let own = self.reduce.dims(self.module);
        let is_reduced =
            |dim: usize| dim < inner && own.iter().any(|&own| usize::try_from(own) == Ok(dim));
        let (reduced, kept): (Vec<usize>, Vec<usize>) =
            (0..dims.len()).partition(|&dim| is_reduced(dim));
        let kept: Vec<i64> = kept.into_iter().map(|dim| dims[dim]).collect();
        let inits = self.inits(false)?;
        let made = self.stages.reduce(&reduced, &kept, &self.values, &inits, &mut self.patch);
        self.values = self.stages.apart(made, &kept, &mut self.patch);
        Some(())
    }

    /// Reduces all axes that remain, at once.
    fn reduce_all(&mut self) -> Option<()> {
        let dims: Vec<i64> = self.axes.iter().map(|axis| axis.len).collect();
        self.regroup(&dims)?;
        let all = self.axes.iter().enumerate();
        let reduced: Vec<usize> = all.filter(|(_, a)| a.reduced).map(|(dim, _)| dim).collect();
        let kept: Vec<i64> = self.axes.iter().filter(|a| !a.reduced).map(|a| a.len).collect();
        let inits = self.inits(true)?;
        let made = self.stages.reduce(&reduced, &kept, &self.values, &inits, &mut self.patch);
        self.values = self.stages.apart(made, &kept, &mut self.patch);
        Some(())
    }

    fn like(&self, value: Value, dims: &[i64]) -> Option<Shape> {
        Some(shape_like(self.patch.shape(self.module, value).as_array()?, dims))
    }

    /// Reshapes all arrays to these dims, except those that have them.
    fn reshape(&mut self, dims: &[i64]) {
        let mut values = std::mem::take(&mut self.values);
        for value in &mut values {
            *value = self.reshaped(*value, dims);
        }
        self.values = values;
    }

    fn reshaped(&mut self, value: Value, dims: &[i64]) -> Value {
        let shape = self.patch.shape(self.module, value);
        match shape.as_array() {
            Some(array) if array.dims() != dims => {
                let shape = shape_like(array, dims);
                self.patch.add(self.reduce.id, reshape_op(), shape, [value])
            }
            _ => value,
        }
    }

    /// Slices `len` indices of a dim of each array, from the index `first` on.
    fn sliced(
        &mut self,
        values: &[Value],
        dim: usize,
        [first, len]: [i64; 2],
    ) -> SmallVec<[Value; 2]> {
        let one = |&value: &Value| {
            let array = self.patch.shape(self.module, value).as_array()?;
            let mut slice: SmallVec<[SliceDim; 4]> =
                array.dims().iter().map(|&len| SliceDim::new(0, len)).collect();
            *slice.get_mut(dim)? = SliceDim::new(first, first + len);
            let dims: Dims = slice.iter().map(|range| range.limit - range.start).collect();
            let shape = shape_like(array, &dims);
            let op = Op::Slice(Box::new(SliceAttrs { slice }));
            Some(self.patch.add(self.reduce.id, op, shape, [value]))
        };
        values.iter().filter_map(one).collect()
    }

    /// Concatenates each array with one of the others along a dim.
    fn joined(&mut self, others: &[Value], dim: usize) -> SmallVec<[Value; 2]> {
        let values = std::mem::take(&mut self.values);
        let one = |(&value, &other): (&Value, &Value)| {
            let array = self.patch.shape(self.module, value).as_array()?;
            let mut dims: Dims = array.dims().iter().copied().collect();
            let more = self.patch.shape(self.module, other).as_array()?;
            *dims.get_mut(dim)? += more.dims().get(dim)?;
            let shape = shape_like(array, &dims);
            let dimensions = smallvec![i64::try_from(dim).ok()?];
            let op = Op::Concatenate(Box::new(ConcatenateAttrs { dimensions }));
            Some(self.patch.add(self.reduce.id, op, shape, [value, other]))
        };
        values.iter().zip(others).filter_map(one).collect()
    }
}

/// Returns the dims of an array with `before`, `len` and `within` elements, dims of size 1 around
/// `len` left out, and the index of the dim of size `len`.
fn around_one(before: i64, len: i64, within: i64) -> (usize, Dims) {
    let outer = (before > 1).then_some(before);
    let inner = (within > 1).then_some(within);
    (usize::from(outer.is_some()), outer.into_iter().chain([len]).chain(inner).collect())
}

/// Plans a sum of `narrow` floats that the computation `by` accumulates in `wide` ones, and that is
/// rounded once:
/// `sum x = round(sum wide(x))`.
pub(super) fn in_f32(
    module: &Module,
    reduce: &MonoidReduce,
    [narrow, wide]: [ElementType; 2],
    by: CompId,
) -> Option<Patch> {
    let (id, stages) = (reduce.id, reduce.stages(module)?);
    let mut patch = Patch::new();
    let mut converted = |value: Value, element_type| {
        let shape = of_type(patch.shape(module, value).as_array()?, element_type).into();
        Some(patch.add(id, Op::Convert, shape, [value]))
    };
    let arrays = [converted(Value::Old(*reduced_arrays(module, id).first()?), wide)?];
    let inits = [converted(*reduce.inits(module).first()?, wide)?];
    let result = of_type(module.array_shape(id)?, wide);
    let dims: Vec<usize> = reduce
        .dims(module)
        .iter()
        .map(|&dim| usize::try_from(dim))
        .collect::<Result<_, _>>()
        .ok()?;
    let stages = Stages { to_apply: by, result: &result.clone().into(), ..stages };
    let sum = stages.reduce(&dims, result.dims(), &arrays, &inits, &mut patch);
    let rounded = patch.add(id, Op::Convert, of_type(&result, narrow).into(), [sum]);
    patch.replace(id, rounded);
    Some(patch)
}
