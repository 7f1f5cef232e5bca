//! The shapes of steps: all that the loops of a step need to know of a tile but where it lies.
//! Tiles of the same extents share the shapes, which `run.rs` computes once for all of them.

use smallvec::SmallVec;

use super::fold::FoldShape;
use super::plan::{ResultLayout, TilePlan};
use super::products::FusedProducts;
use super::steps::{Action, Pass, PassStep};
use super::walk::{Loops, TileBounds, compact};

/// The shapes of all steps of a pass, for tiles of these extents.
#[derive(Debug)]
pub(super) struct Shapes {
    extent: SmallVec<[usize; 8]>,
    pub(super) steps: Vec<StepShape>,
}

/// How a step goes over a tile.
#[derive(Debug)]
pub(super) struct StepShape {
    /// The number of elements of the value that the step makes, folds or stores.
    pub(super) len: usize,
    /// The number of elements of a row of the value.
    pub(super) row: usize,
    /// The number of elements of each argument.
    pub(super) args: SmallVec<[usize; 3]>,
    /// Where the elements lie in the operand or the results that the step reads, or in the
    /// accumulators that it adds to.
    pub(super) from: Option<TileAccess>,
    /// Where the elements lie in the output that the step writes.
    pub(super) to: Option<TileAccess>,
    /// The loops over an argument that is expanded.
    pub(super) repeated: Option<Loops>,
    pub(super) fold: Option<FoldShape>,
}

/// Where the elements of a tile lie in an array.
#[derive(Debug)]
pub(super) struct TileAccess {
    /// The stride along each axis, in elements; 0 along axes outside of slabs if the array has the
    /// results of one slab.
    strides: SmallVec<[isize; 8]>,
    pub(super) loops: Loops,
    /// Whether the elements are contiguous, in the order of the tile.
    pub(super) is_dense: bool,
}

impl TileAccess {
    fn of(bounds: &TileBounds, set: u64, stride: impl Fn(usize) -> isize) -> Self {
        let loops = bounds.loops(set, &stride);
        let is_dense = loops.is_dense();
        Self { strides: (0..bounds.extent.len()).map(stride).collect(), loops, is_dense }
    }

    /// The results of a reduction: those of all slabs if it is a sink, else those of the slab.
    fn results(plan: &TilePlan, layout: &ResultLayout, bounds: &TileBounds, set: u64) -> Self {
        let mut access = Self::of(bounds, set, |axis| layout.strides[axis].cast_signed());
        for (axis, stride) in access.strides.iter_mut().enumerate() {
            if plan.outer >> axis & 1 == 1 && !layout.is_sink {
                *stride = 0;
            }
        }
        access
    }

    /// The distance from the array's first element to the tile's first one, in elements.
    pub(super) fn offset(&self, bounds: &TileBounds) -> isize {
        bounds.from.iter().zip(&self.strides).fold(0isize, |sum, (from, stride)| {
            sum.wrapping_add(from.cast_signed().wrapping_mul(*stride))
        })
    }
}

impl Shapes {
    pub(super) fn are_for(&self, bounds: &TileBounds) -> bool {
        self.extent == bounds.extent
    }

    pub(super) fn of(plan: &TilePlan, pass: &Pass, bounds: &TileBounds) -> Self {
        let steps = pass.steps.iter().map(|step| StepShape::of(plan, step, bounds)).collect();
        Self { extent: bounds.extent.clone(), steps }
    }
}

impl StepShape {
    fn of(plan: &TilePlan, step: &PassStep, bounds: &TileBounds) -> Self {
        let len = bounds.size(step.set);
        let row = bounds.size(step.row);
        let args = step.args.iter().map(|arg| arg.along.len(len, row)).collect();
        let mut shape = Self { len, row, args, from: None, to: None, repeated: None, fold: None };
        let output = match step.action {
            Action::Input(input) => {
                let stride = |axis: usize| plan.space.axes[axis].inputs[input];
                shape.from = Some(TileAccess::of(bounds, step.set, stride));
                None
            }
            Action::Reduced { reduction, .. } => {
                let layout = plan.layouts.get(reduction).and_then(Option::as_ref);
                shape.from =
                    layout.map(|layout| TileAccess::results(plan, layout, bounds, step.set));
                step.stored
            }
            Action::Accumulate { reduction, .. }
            | Action::Products(FusedProducts { reduction, .. }) => {
                let reduced = plan.space.reduced(reduction);
                let layout = plan.layouts.get(reduction).and_then(Option::as_ref);
                let set = step.set & !reduced;
                shape.from = layout.map(|layout| TileAccess::results(plan, layout, bounds, set));
                shape.fold = Some(FoldShape::of(bounds, step.set, reduced));
                None
            }
            Action::Expand(own) => {
                let strides = compact(bounds, own);
                shape.args = SmallVec::from_elem(bounds.size(own), 1);
                shape.repeated = Some(bounds.loops(step.set, |axis| strides[axis]));
                step.stored
            }
            Action::Store { output, .. } => Some(output),
            Action::Constant(_)
            | Action::Unary(_)
            | Action::Binary(_)
            | Action::Select
            | Action::Chain(_) => step.stored,
        };
        shape.to = output.map(|output| {
            let stride = |axis: usize| plan.space.axes[axis].outputs[output].unwrap_or(0);
            TileAccess::of(bounds, step.set, stride)
        });
        shape
    }
}
