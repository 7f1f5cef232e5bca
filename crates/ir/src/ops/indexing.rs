//! Indexing by run-time values.

use smallvec::SmallVec;

use super::attr::attributes;
use crate::entity::CompId;
use crate::infer::{ShapeError, ShapeQuery, check_dims};
use crate::types::element::ElementType;
use crate::types::shape::{ArrayShape, Dims, Shape, UNBOUNDED, sizes_agree};

attributes! {
    /// Attributes of `dynamic-slice`.
    pub struct DynamicSliceAttrs: Default {
        /// The size of the slice in each dim.
        dynamic_slice_sizes: Dims = "dynamic_slice_sizes",
    }

    /// Attributes of `gather`.
    pub struct GatherAttrs: Default {
        /// Result dims that are dims of a slice.
        offset_dims: Dims = "offset_dims",
        /// Dims of a slice that are removed because their size is 1.
        collapsed_slice_dims: Dims = "collapsed_slice_dims",
        /// For each entry of an index, the operand dim it indexes.
        start_index_map: Dims = "start_index_map",
        /// Operand dims that are paired with dims of the indices.
        operand_batching_dims: Dims = "operand_batching_dims" or Dims::new(),
        /// The dims of the indices that are paired with them.
        start_indices_batching_dims: Dims = "start_indices_batching_dims" or Dims::new(),
        /// The dim of the indices that holds the entries of one index.
        index_vector_dim: i64 = "index_vector_dim",
        /// The size of a slice in each operand dim.
        slice_sizes: Dims = "slice_sizes",
        /// Whether the indices are guaranteed to be sorted.
        indices_are_sorted: bool = "indices_are_sorted" or false,
    }

    /// Attributes of `scatter`.
    pub struct ScatterAttrs {
        /// Dims of the updates that are dims of a window.
        update_window_dims: Dims = "update_window_dims",
        /// Window dims of size 1 that the updates do not have.
        inserted_window_dims: Dims = "inserted_window_dims",
        /// For each entry of an index, the operand dim it indexes.
        scatter_dims_to_operand_dims: Dims = "scatter_dims_to_operand_dims",
        /// Operand dims that are paired with dims of the indices.
        input_batching_dims: Dims = "input_batching_dims" or Dims::new(),
        /// The dims of the indices that are paired with them.
        scatter_indices_batching_dims: Dims = "scatter_indices_batching_dims" or Dims::new(),
        /// The dim of the indices that holds the entries of one index.
        index_vector_dim: i64 = "index_vector_dim",
        /// Whether the indices are guaranteed to be sorted.
        indices_are_sorted: bool = "indices_are_sorted" or false,
        /// Whether the indices are guaranteed to be distinct.
        unique_indices: bool = "unique_indices" or false,
        /// Combines an element with an update.
        to_apply: CompId = "to_apply",
    }
}

impl ScatterAttrs {
    /// Attributes without dims and without guarantees about the indices.
    pub fn new(to_apply: CompId) -> Self {
        Self {
            update_window_dims: Dims::new(),
            inserted_window_dims: Dims::new(),
            scatter_dims_to_operand_dims: Dims::new(),
            input_batching_dims: Dims::new(),
            scatter_indices_batching_dims: Dims::new(),
            index_vector_dim: 0,
            indices_are_sorted: false,
            unique_indices: false,
            to_apply,
        }
    }
}

/// Indices are scalars, one per dim, or one array of them.
fn check_start_indices(q: &ShapeQuery<'_>, from: usize, rank: usize) -> Result<(), ShapeError> {
    let given = q.operands.len().saturating_sub(from);
    for index in from..q.operands.len() {
        check_integers(q, q.array(index)?)?;
    }
    let first = q.array(from).ok().map(|index| index.element_type);
    if (from..q.operands.len()).any(|i| q.array(i).ok().map(|s| s.element_type) != first) {
        let opcode = q.op.opcode();
        return Err(ShapeError::operand(format!("the indices of `{opcode}` differ in type")));
    }
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
    if !are_parts(sizes, from) {
        return Err(ShapeError::attribute(format!(
            "dynamic_slice_sizes {sizes:?} do not fit {from}"
        )));
    }
    // One element of a dynamic dim is static, as in `slice`.
    let is_dynamic = |(dim, &size): (_, &i64)| size != 1 && is_dynamic_part(from, dim, size);
    let dynamic: SmallVec<[bool; 6]> = sizes.iter().enumerate().map(is_dynamic).collect();
    Ok(ArrayShape::new(from.element_type, sizes.iter().copied()).with_dynamic(&dynamic).into())
}

/// Checks whether a part of these sizes fits into an array. An unbounded dim is large enough.
fn are_parts(sizes: &[i64], whole: &ArrayShape) -> bool {
    let fits = |(&size, &whole): (&i64, &i64)| size >= 0 && (size <= whole || whole == UNBOUNDED);
    sizes.len() == whole.rank() && sizes.iter().zip(whole.dims()).all(fits)
}

/// Checks whether a part of a dim is dynamic: it is if it is the whole of a dynamic dim.
fn is_dynamic_part(whole: &ArrayShape, dim: usize, size: i64) -> bool {
    whole.dim_is_dynamic(dim) && whole.dims().get(dim) == Some(&size)
}

/// A buffer is updated like the array that it contains, and the result is a buffer.
pub(super) fn dynamic_update_slice(q: &ShapeQuery<'_>) -> Result<Shape, ShapeError> {
    let (whole, update) = (q.operand(0)?, q.array(1)?);
    let held = match whole {
        Shape::Buffer(held) => held.as_array(),
        Shape::Array(_) | Shape::Tuple(_) | Shape::Token | Shape::Opaque => None,
    };
    let from = held.map_or_else(|| q.array(0), Ok)?;
    check_start_indices(q, 2, from.rank())?;
    let fits = q.same_type(update.element_type, from.element_type)
        && update.rank() == from.rank()
        && update.dims().iter().zip(from.dims()).all(|(u, f)| u <= f || *f == UNBOUNDED);
    if !fits {
        return Err(ShapeError::operand(format!("the update {update} does not fit into {from}")));
    }
    Ok(whole.without_layout())
}

fn check_integers(q: &ShapeQuery<'_>, indices: &ArrayShape) -> Result<(), ShapeError> {
    if indices.element_type.is_integer() {
        return Ok(());
    }
    let opcode = q.op.opcode();
    Err(ShapeError::operand(format!("the indices of `{opcode}` are integers, not {indices}")))
}

fn contains(dims: &[i64], dim: usize) -> bool {
    dims.iter().any(|&d| usize::try_from(d) == Ok(dim))
}

/// The way indices refer to an array; common to `gather` and `scatter`.
struct Indexing<'a> {
    array: &'a ArrayShape,
    indices: &'a ArrayShape,
    /// The dim of the indices that holds the entries of one index.
    vector_dim: i64,
    /// For each entry, the dim of the array; with the name of the attribute.
    entries: (&'static str, &'a [i64]),
    /// Paired dims of the array and of the indices.
    batching: [&'a [i64]; 2],
}

impl Indexing<'_> {
    /// Checks the indices and returns the sizes of the dims that count them, and whether each is
    /// dynamic.
    fn index_dims(&self, q: &ShapeQuery<'_>) -> Result<Vec<(i64, bool)>, ShapeError> {
        let Self { array, indices, vector_dim, entries: (name, entries), .. } = *self;
        let opcode = q.op.opcode();
        check_integers(q, indices)?;
        let at = usize::try_from(vector_dim).unwrap_or(usize::MAX);
        if at > indices.rank() {
            return Err(ShapeError::attribute(format!(
                "index_vector_dim {vector_dim} does not fit the indices {indices}"
            )));
        }
        check_dims(&format!("{name} of `{opcode}`"), entries, array.rank())?;
        let size = indices.dims().get(at).copied().unwrap_or(1);
        if size >= 0 && i64::try_from(entries.len()) != Ok(size) {
            return Err(ShapeError::attribute(format!(
                "{name} of `{opcode}` names {} dims, but an index has {size} entries",
                entries.len()
            )));
        }
        self.check_batching(q, at)?;
        let dims = indices.dims().iter().enumerate();
        let counted = dims.filter(|(i, _)| *i != at);
        Ok(counted.map(|(i, &size)| (size, indices.dim_is_dynamic(i))).collect())
    }

    fn check_batching(&self, q: &ShapeQuery<'_>, vector_dim: usize) -> Result<(), ShapeError> {
        let Self { array, indices, batching: [of_array, of_indices], .. } = *self;
        let what = format!("the batching dims of `{}`", q.op.opcode());
        check_sorted_dims(&what, of_array, array.rank())?;
        check_dims(&what, of_indices, indices.rank())?;
        // As XLA does, the rule asks neither whether paired dims have one size nor whether they are
        // indexed, too.
        if of_array.len() == of_indices.len() && !contains(of_indices, vector_dim) {
            return Ok(());
        }
        Err(ShapeError::attribute(format!(
            "{what} must pair dims of {array} with dims of {indices} other than its index_vector_dim"
        )))
    }
}

/// Checks dims that must be sorted, distinct and below `rank`.
fn check_sorted_dims(what: &str, dims: &[i64], rank: usize) -> Result<(), ShapeError> {
    check_dims(what, dims, rank)?;
    if dims.is_sorted() {
        return Ok(());
    }
    Err(ShapeError::attribute(format!("{what} must name dims in order, not {dims:?}")))
}

pub(super) fn gather(q: &ShapeQuery<'_>, attrs: &GatherAttrs) -> Result<Shape, ShapeError> {
    let (from, indices) = (q.array(0)?, q.array(1)?);
    let gone: Dims =
        attrs.collapsed_slice_dims.iter().chain(&attrs.operand_batching_dims).copied().collect();
    check_dims("collapsed and batching dims of `gather`", &gone, from.rank())?;
    let collapsed = &attrs.collapsed_slice_dims;
    check_sorted_dims("collapsed_slice_dims of `gather`", collapsed, from.rank())?;
    let sizes = &attrs.slice_sizes;
    let fits = are_parts(sizes, from)
        && sizes.iter().enumerate().all(|(dim, &size)| size <= 1 || !contains(&gone, dim));
    if !fits {
        return Err(ShapeError::attribute(format!(
            "slice_sizes {sizes:?} of `gather` do not fit {from}, where dims that vanish have size 1"
        )));
    }
    let indexing = Indexing {
        array: from,
        indices,
        vector_dim: attrs.index_vector_dim,
        entries: ("start_index_map", &attrs.start_index_map),
        batching: [&attrs.operand_batching_dims, &attrs.start_indices_batching_dims],
    };
    let mut batch = indexing.index_dims(q)?.into_iter();
    let mut window = (0..from.rank())
        .filter(|&dim| !contains(&gone, dim))
        .map(|dim| (sizes[dim], is_dynamic_part(from, dim, sizes[dim])));
    let rank = batch.len() + window.clone().count();
    check_sorted_dims("offset_dims of `gather`", &attrs.offset_dims, rank)?;
    let (mut dims, mut dynamic) = (Dims::new(), SmallVec::<[bool; 6]>::new());
    for dim in 0..rank {
        let next = if contains(&attrs.offset_dims, dim) { window.next() } else { batch.next() };
        let (size, is_dynamic) = next.ok_or_else(|| {
            ShapeError::attribute("offset_dims of `gather` do not match its slices")
        })?;
        dims.push(size);
        dynamic.push(is_dynamic);
    }
    Ok(ArrayShape::new(from.element_type, dims).with_dynamic(&dynamic).into())
}

/// Operands: arrays, indices, and as many updates as arrays.
pub(super) fn scatter(q: &ShapeQuery<'_>, attrs: &ScatterAttrs) -> Result<Shape, ShapeError> {
    let count = q.operands.len() / 2;
    if q.operands.len().is_multiple_of(2) {
        return Err(ShapeError::operand("`scatter` takes arrays, indices, and as many updates"));
    }
    let first = q.array(0)?;
    let indexing = Indexing {
        array: first,
        indices: q.array(count)?,
        vector_dim: attrs.index_vector_dim,
        entries: ("scatter_dims_to_operand_dims", &attrs.scatter_dims_to_operand_dims),
        batching: [&attrs.input_batching_dims, &attrs.scatter_indices_batching_dims],
    };
    let index_dims: Dims = indexing.index_dims(q)?.into_iter().map(|(size, _)| size).collect();
    let window = window_of(attrs, first)?;
    let mut results = Vec::with_capacity(count);
    let mut types: SmallVec<[ElementType; 2]> = SmallVec::new();
    for index in 0..count {
        let (array, update) = (q.array(index)?, q.array(count + 1 + index)?);
        if !array.same_dims(first) || !q.same_type(update.element_type, array.element_type) {
            return Err(ShapeError::operand(format!(
                "`scatter` cannot put {update} into {array}: types or dims differ"
            )));
        }
        check_update(attrs, update, &index_dims, &window)?;
        types.push(array.element_type);
        results.push(Shape::Array(array.clone().with_layout(None)));
    }
    q.check_reducer(attrs.to_apply, &types, &types)?;
    match results.pop() {
        Some(only) if results.is_empty() => Ok(only),
        last => Ok(Shape::Tuple(results.into_iter().chain(last).collect())),
    }
}

/// Returns the sizes of the array's dims that are dims of an update's window.
fn window_of(attrs: &ScatterAttrs, array: &ArrayShape) -> Result<Dims, ShapeError> {
    let without: Dims =
        attrs.inserted_window_dims.iter().chain(&attrs.input_batching_dims).copied().collect();
    check_dims("inserted and batching dims of `scatter`", &without, array.rank())?;
    let inserted = &attrs.inserted_window_dims;
    check_sorted_dims("inserted_window_dims of `scatter`", inserted, array.rank())?;
    let window: Dims =
        (0..array.rank()).filter(|&d| !contains(&without, d)).map(|d| array.dims()[d]).collect();
    if window.len() == attrs.update_window_dims.len() {
        return Ok(window);
    }
    Err(ShapeError::attribute(format!(
        "`scatter` has {} update_window_dims, but {array} leaves {} window dims",
        attrs.update_window_dims.len(),
        window.len()
    )))
}

/// Checks that an update has one window for each index.
fn check_update(
    attrs: &ScatterAttrs,
    update: &ArrayShape,
    index_dims: &[i64],
    window: &[i64],
) -> Result<(), ShapeError> {
    let misfit = || {
        ShapeError::operand(format!(
            "an update of `scatter` has a window of at most {window:?} for each index of {index_dims:?}, not {update}"
        ))
    };
    if update.rank() != index_dims.len() + window.len() {
        return Err(misfit());
    }
    let window_dims = &attrs.update_window_dims;
    check_sorted_dims("update_window_dims of `scatter`", window_dims, update.rank())?;
    let (mut window, mut counted) = (window.iter(), index_dims.iter());
    let fits = update.dims().iter().enumerate().all(|(dim, size)| {
        if contains(window_dims, dim) {
            window.next().is_some_and(|most| size <= most || *most == UNBOUNDED)
        } else {
            counted.next().is_some_and(|&count| sizes_agree(count, *size))
        }
    });
    if fits { Ok(()) } else { Err(misfit()) }
}
