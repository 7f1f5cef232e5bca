//! Indexing by run-time values.

use super::attr::attributes;
use crate::entity::CompId;
use crate::infer::{ShapeError, ShapeQuery, check_dims};
use crate::types::shape::{ArrayShape, Dims, Shape};

attributes! {
    /// Attributes of `dynamic-slice`.
    pub struct DynamicSliceAttrs {
        /// The size of the part of each dim that stays.
        dynamic_slice_sizes: Dims = "dynamic_slice_sizes",
    }

    /// Attributes of `gather`.
    pub struct GatherAttrs {
        /// Result dims that walk within a slice.
        offset_dims: Dims = "offset_dims",
        /// Dims of a slice that vanish, being of size 1.
        collapsed_slice_dims: Dims = "collapsed_slice_dims" or Dims::new(),
        /// For each entry of an index, the operand dim it indexes.
        start_index_map: Dims = "start_index_map",
        /// Operand dims that run along with index dims.
        operand_batching_dims: Dims = "operand_batching_dims" or Dims::new(),
        /// Those index dims.
        start_indices_batching_dims: Dims = "start_indices_batching_dims" or Dims::new(),
        /// The dim of the indices that holds the entries of one index.
        index_vector_dim: i64 = "index_vector_dim",
        /// The size of a slice in each operand dim.
        slice_sizes: Dims = "slice_sizes",
        /// Whether the indices are promised to be sorted.
        indices_are_sorted: bool = "indices_are_sorted" or false,
    }

    /// Attributes of `scatter`.
    pub struct ScatterAttrs {
        /// Dims of the updates that walk within a window.
        update_window_dims: Dims = "update_window_dims",
        /// Window dims of size 1 that the updates lack.
        inserted_window_dims: Dims = "inserted_window_dims" or Dims::new(),
        /// For each entry of an index, the operand dim it indexes.
        scatter_dims_to_operand_dims: Dims = "scatter_dims_to_operand_dims",
        /// Operand dims that run along with index dims.
        input_batching_dims: Dims = "input_batching_dims" or Dims::new(),
        /// Those index dims.
        scatter_indices_batching_dims: Dims = "scatter_indices_batching_dims" or Dims::new(),
        /// The dim of the indices that holds the entries of one index.
        index_vector_dim: i64 = "index_vector_dim",
        /// Whether the indices are promised to be sorted.
        indices_are_sorted: bool = "indices_are_sorted" or false,
        /// Whether no index is promised to occur twice.
        unique_indices: bool = "unique_indices" or false,
        /// Combines an element with an update.
        to_apply: CompId = "to_apply",
    }
}

/// Indices are scalars, one per dim, or one array of them.
fn check_start_indices(q: &ShapeQuery<'_>, from: usize, rank: usize) -> Result<(), ShapeError> {
    let given = q.operands.len().saturating_sub(from);
    let vector = given == 1 && q.array(from)?.rank() == 1;
    if vector && q.array(from)?.dims() == [i64::try_from(rank).unwrap_or(-1)] {
        return Ok(());
    }
    let scalars = (from..q.operands.len()).all(|i| q.array(i).is_ok_and(|s| s.rank() == 0));
    if given == rank && scalars {
        return Ok(());
    }
    Err(ShapeError::operand(format!(
        "`{}` takes {rank} scalar indices, one per dim",
        q.op.opcode()
    )))
}

pub(super) fn dynamic_slice(
    q: &ShapeQuery<'_>,
    attrs: &DynamicSliceAttrs,
) -> Result<Shape, ShapeError> {
    let from = q.array(0)?;
    check_start_indices(q, 1, from.rank())?;
    let sizes = &attrs.dynamic_slice_sizes;
    let fits = sizes.len() == from.rank()
        && sizes.iter().zip(from.dims()).all(|(&size, &whole)| (0..=whole).contains(&size));
    if !fits {
        return Err(ShapeError::attribute(format!(
            "dynamic_slice_sizes {sizes:?} do not fit {from}"
        )));
    }
    Ok(Shape::array(from.element_type, sizes.iter().copied()))
}

pub(super) fn dynamic_update_slice(q: &ShapeQuery<'_>) -> Result<Shape, ShapeError> {
    let (from, update) = (q.array(0)?, q.array(1)?);
    check_start_indices(q, 2, from.rank())?;
    let fits = update.element_type == from.element_type
        && update.rank() == from.rank()
        && update.dims().iter().zip(from.dims()).all(|(u, f)| u <= f);
    if !fits {
        return Err(ShapeError::operand(format!("the update {update} does not fit into {from}")));
    }
    Ok(from.clone().with_layout(None).into())
}

/// The dims of the indices without the dim that holds one index's entries.
fn index_dims(indices: &ArrayShape, index_vector_dim: i64) -> Result<Dims, ShapeError> {
    let vector_dim = usize::try_from(index_vector_dim).unwrap_or(usize::MAX);
    if vector_dim > indices.rank() {
        return Err(ShapeError::attribute(format!(
            "index_vector_dim {index_vector_dim} does not fit the indices {indices}"
        )));
    }
    let dims = indices.dims().iter().enumerate();
    Ok(dims.filter(|(i, _)| *i != vector_dim).map(|(_, &d)| d).collect())
}

pub(super) fn gather(q: &ShapeQuery<'_>, attrs: &GatherAttrs) -> Result<Shape, ShapeError> {
    let (from, indices) = (q.array(0)?, q.array(1)?);
    let gone: Dims =
        attrs.collapsed_slice_dims.iter().chain(&attrs.operand_batching_dims).copied().collect();
    check_dims("collapsed and batching dims of `gather`", &gone, from.rank())?;
    check_dims("start_index_map of `gather`", &attrs.start_index_map, from.rank())?;
    let sizes = &attrs.slice_sizes;
    let fits = sizes.len() == from.rank()
        && sizes.iter().zip(from.dims()).all(|(&size, &whole)| (0..=whole).contains(&size));
    if !fits {
        return Err(ShapeError::attribute(format!("slice_sizes {sizes:?} do not fit {from}")));
    }
    let mut batch = index_dims(indices, attrs.index_vector_dim)?.into_iter();
    let kept = |dim: &usize| !gone.iter().any(|&g| usize::try_from(g) == Ok(*dim));
    let mut window = (0..from.rank()).filter(kept).map(|d| sizes[d]);
    let rank = batch.len() + window.clone().count();
    check_dims("offset_dims of `gather`", &attrs.offset_dims, rank)?;
    let mut dims = Dims::new();
    for dim in 0..rank {
        let is_offset = attrs.offset_dims.iter().any(|&o| usize::try_from(o) == Ok(dim));
        let next = if is_offset { window.next() } else { batch.next() };
        dims.push(next.ok_or_else(|| {
            ShapeError::attribute("offset_dims of `gather` do not match its slices")
        })?);
    }
    Ok(Shape::array(from.element_type, dims))
}

/// Operands: arrays, indices, as many updates.
pub(super) fn scatter(q: &ShapeQuery<'_>, attrs: &ScatterAttrs) -> Result<Shape, ShapeError> {
    let count = q.operands.len() / 2;
    if q.operands.len().is_multiple_of(2) {
        return Err(ShapeError::operand("`scatter` takes arrays, indices, and as many updates"));
    }
    let first = q.array(0)?;
    check_dims(
        "scatter_dims_to_operand_dims of `scatter`",
        &attrs.scatter_dims_to_operand_dims,
        first.rank(),
    )?;
    index_dims(q.array(count)?, attrs.index_vector_dim)?;
    let mut results = Vec::with_capacity(count);
    for index in 0..count {
        let (array, update) = (q.array(index)?, q.array(count + 1 + index)?);
        if !array.same_dims(first) || update.element_type != array.element_type {
            return Err(ShapeError::operand(format!(
                "`scatter` cannot put {update} into {array}: types or dims differ"
            )));
        }
        check_dims("update_window_dims of `scatter`", &attrs.update_window_dims, update.rank())?;
        results.push(Shape::Array(array.clone().with_layout(None)));
    }
    if let (1, Some(only)) = (results.len(), results.pop()) {
        return Ok(only);
    }
    q.declared().map(Shape::without_layout)
}
