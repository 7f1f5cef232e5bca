//! How the steps of a pass go over tiles of the same extents: what does not depend on where a tile
//! lies is computed once for all of them.

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
    /// The elements of the value that the step makes, folds or stores.
    pub(super) len: usize,
    /// The elements of a row of it.
    pub(super) row: usize,
    /// The elements of each argument.
    pub(super) args: SmallVec<[usize; 3]>,
    /// The array that the step reads, or the accumulators that it adds to.
    pub(super) from: Option<Reach>,
    /// The output that the step writes.
    pub(super) to: Option<Reach>,
    /// The loops of an argument that is repeated.
    pub(super) repeated: Option<Loops>,
    pub(super) fold: Option<FoldShape>,
}

/// The elements of an array that a tile has.
#[derive(Debug)]
pub(super) struct Reach {
    /// The distance of neighbours along each axis; 0 along those whose first index is not that of
    /// the array.
    strides: SmallVec<[isize; 8]>,
    pub(super) loops: Loops,
    /// Whether they lie side by side, in the order of the tile.
    pub(super) is_dense: bool,
}

impl Reach {
    fn of(place: &Place, set: u64, stride: impl Fn(usize) -> isize) -> Self {
        let loops = place.loops(set, &stride);
        let is_dense = loops.is_dense();
        Self { strides: (0..place.extent.len()).map(stride).collect(), loops, is_dense }
    }

    /// The results of a reduction: those of a slab alone, unless it goes on over all slabs.
    fn results(plan: &Plan, layout: &Layout, place: &Place, set: u64) -> Self {
        let mut reach = Self::of(place, set, |axis| layout.strides[axis].cast_signed());
        for (axis, stride) in reach.strides.iter_mut().enumerate() {
            if plan.outer >> axis & 1 == 1 && !layout.is_sink {
                *stride = 0;
            }
        }
        reach
    }

    /// How far the first element of a tile lies from the array's first one.
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
