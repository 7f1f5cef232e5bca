//! The shapes of steps: all that the loops of a step need to know of a tile but where it lies.
//! Tiles of the same extents share the shapes, which `run.rs` computes once for all of them.

use smallvec::SmallVec;

use super::fold::FoldShape;
use super::plan::{Layout, Plan};
use super::products::Products;
use super::steps::{Action, Pass, Step};
use super::walk::{Loops, Place, compact};

/// The shapes of all steps of a pass, for tiles of these extents.
#[derive(Debug)]
pub(super) struct Shapes {
    extent: SmallVec<[usize; 8]>,
    pub(super) steps: Vec<Shape>,
}

/// How a step goes over a tile.
#[derive(Debug)]
pub(super) struct Shape {
    /// The number of elements of the value that the step makes, folds or stores.
    pub(super) len: usize,
    /// The number of elements of a row of the value.
    pub(super) row: usize,
    /// The number of elements of each argument.
    pub(super) args: SmallVec<[usize; 3]>,
    /// Where the elements lie in the operand or the results that the step reads, or in the
    /// accumulators that it adds to.
    pub(super) from: Option<Reach>,
    /// Where the elements lie in the output that the step writes.
    pub(super) to: Option<Reach>,
    /// The loops over an argument that is expanded.
    pub(super) repeated: Option<Loops>,
    pub(super) fold: Option<FoldShape>,
}

/// Where the elements of a tile lie in an array.
#[derive(Debug)]
pub(super) struct Reach {
    /// The stride along each axis, in elements; 0 along axes outside of slabs if the array has the
    /// results of one slab.
    strides: SmallVec<[isize; 8]>,
    pub(super) loops: Loops,
    /// Whether the elements are contiguous, in the order of the tile.
    pub(super) is_dense: bool,
}

impl Reach {
    fn of(place: &Place, set: u64, stride: impl Fn(usize) -> isize) -> Self {
        let loops = place.loops(set, &stride);
        let is_dense = loops.is_dense();
        Self { strides: (0..place.extent.len()).map(stride).collect(), loops, is_dense }
    }

    /// The results of a reduction: those of all slabs if it is a sink, else those of the slab.
    fn results(plan: &Plan, layout: &Layout, place: &Place, set: u64) -> Self {
        let mut reach = Self::of(place, set, |axis| layout.strides[axis].cast_signed());
        for (axis, stride) in reach.strides.iter_mut().enumerate() {
            if plan.outer >> axis & 1 == 1 && !layout.is_sink {
                *stride = 0;
            }
        }
        reach
    }

    /// The distance from the array's first element to the tile's first one, in elements.
    pub(super) fn offset(&self, place: &Place) -> isize {
        place.from.iter().zip(&self.strides).fold(0isize, |sum, (from, stride)| {
            sum.wrapping_add(from.cast_signed().wrapping_mul(*stride))
        })
    }
}

impl Shapes {
    pub(super) fn are_for(&self, place: &Place) -> bool {
        self.extent == place.extent
    }

    pub(super) fn of(plan: &Plan, pass: &Pass, place: &Place) -> Self {
        let steps = pass.steps.iter().map(|step| Shape::of(plan, step, place)).collect();
        Self { extent: place.extent.clone(), steps }
    }
}

impl Shape {
    fn of(plan: &Plan, step: &Step, place: &Place) -> Self {
        let len = place.size(step.set);
        let row = place.size(step.row);
        let args = step.args.iter().map(|arg| arg.along.len(len, row)).collect();
        let mut shape = Self { len, row, args, from: None, to: None, repeated: None, fold: None };
        let output = match step.action {
            Action::Input(input) => {
                let stride = |axis: usize| plan.space.axes[axis].inputs[input];
                shape.from = Some(Reach::of(place, step.set, stride));
                None
            }
            Action::Reduced { reduction, .. } => {
                let layout = plan.layouts.get(reduction).and_then(Option::as_ref);
                shape.from = layout.map(|layout| Reach::results(plan, layout, place, step.set));
                step.stored
            }
            Action::Accumulate { reduction, .. } | Action::Products(Products { reduction, .. }) => {
                let reduced = plan.space.reduced(reduction);
                let layout = plan.layouts.get(reduction).and_then(Option::as_ref);
                let set = step.set & !reduced;
                shape.from = layout.map(|layout| Reach::results(plan, layout, place, set));
                shape.fold = Some(FoldShape::of(place, step.set, reduced));
                None
            }
            Action::Expand(own) => {
                let strides = compact(place, own);
                shape.args = SmallVec::from_elem(place.size(own), 1);
                shape.repeated = Some(place.loops(step.set, |axis| strides[axis]));
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
            Reach::of(place, step.set, stride)
        });
        shape
    }
}
