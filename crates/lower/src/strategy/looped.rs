//! Reduces one axis after another: `reduce over {a, b} = reduce over b of reduce over a`.
//!
//! Reduced dims that are adjacent in memory are one axis. The minor-most axis is first, which
//! suits reductions of a single axis best, and every later stage reads the array that the
//! previous one wrote to main memory. The last stage applies the init; the others begin with the
//! identity, which must be known.

use std::collections::BTreeSet;

use tilewright_ir::ElementType;
use tilewright_ir::layout::{Layout, Tile};
use tilewright_ir::shape::ArrayShape;
use tilewright_target::{Alignment, Target};

use super::{Input, Sequence, Stage};
use crate::codegen::reduce::{Elements, Neutral, ReductionSpec, Source};
use crate::error::{LowerError, Unsupported, internal};

/// Returns the kernels of a reduction, one for each axis.
pub(super) fn lowered(reduction: &ReductionSpec, target: &Target) -> Result<Sequence, LowerError> {
    let array =
        reduction.walked().next().ok_or_else(|| internal("a reduction of no array in memory"))?;
    let axes = axes(array, &reduction.axes);
    let Some((last, others)) = axes.split_last().filter(|(_, others)| !others.is_empty()) else {
        return reduction.in_one_stage(target);
    };
    let neutral = reduction.neutral.as_ref().ok_or(Unsupported::NoIdentity)?;
    let between = Between::of(reduction, array, target);
    let mut gone = BTreeSet::new();
    let mut stages = Vec::with_capacity(axes.len());
    let mut present = ReductionSpec { neutral: Some(neutral.clone()), ..reduction.clone() };
    for axis in others {
        let kept = between.kept(&gone);
        present.axes = places(&kept, axis)?;
        gone.extend(axis);
        let types = reduction.by.result_types();
        present.results = types.map(|element_type| between.shape(&gone, element_type)).collect();
        present.name = format!("{}.{}", reduction.name, stages.len() + 1);
        present.inits = present.arrays.iter().map(|array| array.shape.element_type).collect();
        stages.push(stage(&present, target, stages.len(), false)?);
        present = next(present, neutral);
    }
    present.axes = places(&between.kept(&gone), last)?;
    present.results.clone_from(&reduction.results);
    present.inits.clone_from(&reduction.inits);
    present.name = format!("{}.{}", reduction.name, axes.len());
    stages.push(stage(&present, target, stages.len(), true)?);
    Ok(Sequence { stages })
}

/// Returns the kernel of the axis with the given number.
fn stage(
    reduction: &ReductionSpec,
    target: &Target,
    number: usize,
    is_last: bool,
) -> Result<Stage, LowerError> {
    let count = reduction.arrays.len();
    let neutral = reduction.neutral.as_ref().ok_or(Unsupported::NoIdentity)?;
    let input = |place: usize| -> Result<Input, LowerError> {
        match (place.checked_sub(count), number.checked_sub(1)) {
            (None, Some(stage)) => Ok(Input::Result { stage, result: place }),
            (Some(array), _) if !is_last => {
                let identity = neutral
                    .elements
                    .get(array)
                    .ok_or_else(|| internal("an array without an identity"))?;
                Ok(Input::Constant(identity.clone()))
            }
            (Some(_), _) | (None, None) => Ok(Input::Operand(place)),
        }
    };
    let inputs = reduction.inputs().into_iter().map(input).collect::<Result<_, _>>()?;
    let kernel = reduction.fused(target)?;
    Ok(Stage { kernel, inputs, results: reduction.results.clone() })
}

/// Returns the reduction of the results of another one.
fn next(before: ReductionSpec, neutral: &Neutral) -> ReductionSpec {
    let memory = |shape: &ArrayShape| Source { shape: shape.clone(), elements: Elements::Memory };
    let accumulated = neutral.accumulated.clone();
    ReductionSpec {
        arrays: before.results.iter().map(memory).collect(),
        neutral: Some(Neutral { elements: accumulated.clone(), accumulated }),
        ..before
    }
}

/// Returns the positions of dims among the kept dims.
fn places(kept: &[usize], dims: &[usize]) -> Result<Vec<usize>, LowerError> {
    let place = |dim: &usize| {
        kept.iter().position(|kept| kept == dim).ok_or_else(|| internal("a dim that is gone"))
    };
    dims.iter().map(place).collect()
}

/// Returns the reduced dims, grouped by adjacency in memory, from the minor-most axis on. Dims
/// of size 1 belong to the first group.
fn axes(array: &ArrayShape, reduced: &[usize]) -> Vec<Vec<usize>> {
    let layout = array.layout_or_default();
    let padded = layout.padding.as_ref().map_or(&[][..], |padding| &padding.dims);
    let mut axes: Vec<Vec<usize>> = Vec::new();
    let (mut stride, mut end) = (1i64, None);
    for &dim in &layout.minor_to_major {
        let dim = dim as usize;
        let size = array.dims().get(dim).copied().unwrap_or(1);
        match (size, reduced.contains(&dim), axes.last_mut()) {
            (1, _, _) => {}
            (_, false, _) => end = None,
            (_, true, Some(axis)) if end == Some(stride) => {
                axis.push(dim);
                end = stride.checked_mul(size);
            }
            (_, true, _) => {
                axes.push(vec![dim]);
                end = stride.checked_mul(size);
            }
        }
        stride = stride.saturating_mul(padded.get(dim).copied().unwrap_or(size).max(size));
    }
    let ones = reduced.iter().copied().filter(|&dim| array.dims().get(dim) == Some(&1));
    match axes.first_mut() {
        Some(first) => first.extend(ones),
        None => axes.push(ones.collect()),
    }
    axes
}

/// The layout of arrays between stages: the order of the original array and the tiles of its
/// narrowest type, so that arrays of several types have equal layouts and whole vectors of one
/// are whole vectors of the other.
struct Between<'a> {
    array: &'a ArrayShape,
    tile: Option<[u64; 2]>,
}

impl<'a> Between<'a> {
    fn of(reduction: &'a ReductionSpec, array: &'a ArrayShape, target: &Target) -> Self {
        let results = reduction.results.iter();
        let types = reduction.walked().chain(results).map(|shape| shape.element_type);
        let types = types.chain(reduction.by.result_types());
        let tiles = types.map(|element_type| target.tile(element_type.bytes().saturating_mul(8)));
        let tile = tiles.max().filter(|_| target.alignment == Alignment::Tiles);
        Self { array, tile }
    }

    /// Returns the remaining dims.
    fn kept(&self, gone: &BTreeSet<usize>) -> Vec<usize> {
        (0..self.array.rank()).filter(|dim| !gone.contains(dim)).collect()
    }

    /// Returns the shape of an array without some of the dims.
    fn shape(&self, gone: &BTreeSet<usize>, element_type: ElementType) -> ArrayShape {
        let kept = self.kept(gone);
        let place = |dim: u32| kept.iter().position(|&kept| kept == dim as usize);
        let order = self.array.layout_or_default().minor_to_major;
        let order = order.into_iter().filter_map(place).map(|p| u32::try_from(p).unwrap_or(0));
        let mut layout = Layout::new(order);
        if let Some([rows, lanes]) = self.tile {
            let sizes =
                if kept.len() < 2 { vec![rows.saturating_mul(lanes)] } else { vec![rows, lanes] };
            let sizes = sizes.into_iter().map(|size| i64::try_from(size).unwrap_or(i64::MAX));
            layout.tiles.push(Tile { dims: sizes.collect() });
        }
        let dims = kept.iter().filter_map(|&dim| self.array.dims().get(dim).copied());
        ArrayShape::new(element_type, dims).with_layout(Some(layout))
    }
}
