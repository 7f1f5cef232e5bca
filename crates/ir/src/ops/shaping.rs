//! Ops that move, repeat or name elements and compute none.

use smallvec::SmallVec;

use super::attr::attributes;
use super::dims::{PadDim, SliceDim};
use crate::infer::{ShapeError, ShapeQuery, check_dims, scalar};
use crate::types::element::ElementType;
use crate::types::literal::Literal;
use crate::types::shape::{ArrayShape, Dims, Shape, UNBOUNDED, sizes_agree};

attributes! {
    /// Attributes of `parameter`; the number is written between its parentheses.
    pub struct ParameterAttrs: Default {
        /// The number of the parameter.
        number: i64 = "parameter_number",
    }

    /// Attributes of `broadcast`.
    pub struct BroadcastAttrs: Default {
        /// For each operand dim, the result dim that it becomes.
        dimensions: Dims = "dimensions" or_absent Dims::new(),
    }

    /// Attributes of `concatenate`.
    pub struct ConcatenateAttrs: Default {
        /// The one dim along which the operands are joined.
        dimensions: Dims = "dimensions",
    }

    /// Attributes of `get-dimension-size`.
    pub struct GetDimensionSizeAttrs: Default {
        /// The one dim whose size is read.
        dimensions: Dims = "dimensions",
    }

    /// Attributes of `set-dimension-size`.
    pub struct SetDimensionSizeAttrs: Default {
        /// The one dim whose size is set.
        dimensions: Dims = "dimensions",
    }

    /// Attributes of `iota`.
    pub struct IotaAttrs: Default {
        /// The dim along which the result counts from 0.
        dimension: i64 = "iota_dimension",
    }

    /// Attributes of `pad`.
    pub struct PadAttrs: Default {
        /// The elements added around and between the elements of each dim.
        padding: SmallVec<[PadDim; 4]> = "padding",
    }

    /// Attributes of `reshape`.
    pub struct ReshapeAttrs: Default {
        /// The dim whose size is inferred if sizes are dynamic.
        inferred_dimension: Option<i64> = "inferred_dimension",
    }

    /// Attributes of `reverse`.
    pub struct ReverseAttrs: Default {
        /// The dims that are reversed.
        dimensions: Dims = "dimensions",
    }

    /// Attributes of `slice`.
    pub struct SliceAttrs: Default {
        /// The range kept in each dim.
        slice: SmallVec<[SliceDim; 4]> = "slice",
    }

    /// Attributes of `transpose`.
    pub struct TransposeAttrs: Default {
        /// For each result dim, the number of the operand dim.
        dimensions: Dims = "dimensions",
    }
}

pub(super) fn parameter(q: &ShapeQuery<'_>, _attrs: &ParameterAttrs) -> Result<Shape, ShapeError> {
    q.declared().cloned()
}

pub(super) fn constant(_q: &ShapeQuery<'_>, value: &Literal) -> Result<Shape, ShapeError> {
    Ok(value.shape())
}

pub(super) fn copy(q: &ShapeQuery<'_>) -> Result<Shape, ShapeError> {
    Ok(q.operand(0)?.without_layout())
}

/// A bitcast reads the same buffer with another shape. Buffer sizes depend on the target, so the
/// shapes are not compared.
pub(super) fn bitcast(q: &ShapeQuery<'_>) -> Result<Shape, ShapeError> {
    q.declared().cloned()
}

/// Element widths may differ: then the minor dim holds the parts of an element.
pub(super) fn bitcast_convert(q: &ShapeQuery<'_>) -> Result<Shape, ShapeError> {
    let (from, to) = (q.array(0)?, q.declared_array()?);
    let (from_bits, to_bits) = (from.element_type.storage_bits(), to.element_type.storage_bits());
    let expected = if from_bits == to_bits {
        Some(Dims::from(from.dims()))
    } else if from_bits > to_bits {
        let parts = from_bits.is_multiple_of(to_bits).then_some(from_bits / to_bits);
        parts.map(|parts| from.dims().iter().copied().chain([i64::from(parts)]).collect())
    } else {
        let parts = to_bits.is_multiple_of(from_bits).then_some(to_bits / from_bits);
        let (minor, rest) = from.dims().split_last().unzip();
        parts.zip(minor).and_then(|(parts, &minor)| {
            sizes_agree(minor, i64::from(parts)).then(|| Dims::from(rest.unwrap_or_default()))
        })
    };
    let fits = from.element_type.is_complex() == to.element_type.is_complex()
        && expected.is_some_and(|dims| {
            dims.len() == to.rank() && dims.iter().zip(to.dims()).all(|(&a, &b)| sizes_agree(a, b))
        });
    if !fits {
        return Err(ShapeError::result(format!(
            "`bitcast-convert` cannot turn {from} into {to}: only the minor dim may change, by the ratio of the widths, and complex numbers stay complex"
        )));
    }
    Ok(to.clone().into())
}

pub(super) fn reshape(q: &ShapeQuery<'_>, _attrs: &ReshapeAttrs) -> Result<Shape, ShapeError> {
    reshaped(q, q.array(0)?, q.declared_array()?)
}

/// Returns the elements of `from` with the dims of `to`.
fn reshaped(q: &ShapeQuery<'_>, from: &ArrayShape, to: &ArrayShape) -> Result<Shape, ShapeError> {
    let opcode = q.op.opcode();
    if from.element_type != to.element_type {
        return Err(ShapeError::result(format!(
            "`{opcode}` keeps the element type {}, it cannot yield {}",
            from.element_type, to.element_type
        )));
    }
    let (Some(have), Some(want)) = (from.num_elements(), to.num_elements()) else {
        // Sizes that are unknown before run time cannot be compared.
        return Ok(to.clone().into());
    };
    if have != want {
        return Err(ShapeError::result(format!(
            "`{opcode}` keeps the number of elements: {from} has {have}, {to} has {want}"
        )));
    }
    Ok(to.clone().into())
}

pub(super) fn broadcast(q: &ShapeQuery<'_>, attrs: &BroadcastAttrs) -> Result<Shape, ShapeError> {
    let (from, to) = (q.array(0)?, q.declared_array()?);
    if attrs.dimensions.len() != from.rank() {
        return Err(ShapeError::attribute(format!(
            "`broadcast` needs one entry of dimensions for each operand dim: {} for {from}, not {}",
            from.rank(),
            attrs.dimensions.len()
        )));
    }
    check_dims("`broadcast` dimensions", &attrs.dimensions, to.rank())?;
    for (from_dim, to_dim) in attrs.dimensions.iter().enumerate() {
        let to_dim = usize::try_from(*to_dim).unwrap_or(usize::MAX);
        if !sizes_agree(from.dims()[from_dim], to.dims()[to_dim]) {
            return Err(ShapeError::result(format!(
                "`broadcast` keeps the sizes of operand dims: dim {from_dim} of {from} cannot become dim {to_dim} of {to}"
            )));
        }
    }
    if from.element_type != to.element_type {
        return Err(ShapeError::result(format!(
            "`broadcast` keeps the element type {}, it cannot yield {}",
            from.element_type, to.element_type
        )));
    }
    Ok(to.clone().into())
}

pub(super) fn transpose(q: &ShapeQuery<'_>, attrs: &TransposeAttrs) -> Result<Shape, ShapeError> {
    let from = q.array(0)?;
    if attrs.dimensions.len() != from.rank() {
        return Err(ShapeError::attribute(format!(
            "`transpose` of {from} needs {} dimensions, not {}",
            from.rank(),
            attrs.dimensions.len()
        )));
    }
    check_dims("`transpose` dimensions", &attrs.dimensions, from.rank())?;
    let picks: SmallVec<[usize; 6]> =
        attrs.dimensions.iter().filter_map(|&d| usize::try_from(d).ok()).collect();
    let dims: Dims = picks.iter().map(|&d| from.dims()[d]).collect();
    let dynamic: SmallVec<[bool; 6]> = picks.iter().map(|&d| from.dim_is_dynamic(d)).collect();
    Ok(ArrayShape::new(from.element_type, dims).with_dynamic(&dynamic).into())
}

pub(super) fn reverse(q: &ShapeQuery<'_>, attrs: &ReverseAttrs) -> Result<Shape, ShapeError> {
    let from = q.array(0)?;
    check_dims("`reverse` dimensions", &attrs.dimensions, from.rank())?;
    Ok(from.clone().with_layout(None).into())
}

pub(super) fn iota(q: &ShapeQuery<'_>, attrs: &IotaAttrs) -> Result<Shape, ShapeError> {
    let to = q.declared_array()?;
    check_dims("`iota` iota_dimension", &[attrs.dimension], to.rank())?;
    if to.element_type == ElementType::Pred {
        return Err(ShapeError::result("`iota` yields numbers, not pred"));
    }
    Ok(to.clone().into())
}

pub(super) fn concatenate(
    q: &ShapeQuery<'_>,
    attrs: &ConcatenateAttrs,
) -> Result<Shape, ShapeError> {
    let first = q.array(0)?;
    let dim = single_dim("`concatenate` dimensions", &attrs.dimensions, first.rank())?;
    let mut joined = first.clone().with_layout(None);
    for index in 1..q.operands.len() {
        let other = q.array(index)?;
        let length = total_size(joined.dims()[dim], other.dims().get(dim).copied().unwrap_or(0))
            .ok_or_else(|| {
                ShapeError::operand("`concatenate` yields a dim that exceeds 64 bits")
            })?;
        let dynamic = joined.dim_is_dynamic(dim) || other.dim_is_dynamic(dim);
        let resized = |shape: &ArrayShape| shape.clone().with_dim(dim, length, dynamic);
        let fits = q.same_type(other.element_type, first.element_type);
        let result = joined.element_type.more_precise(other.element_type);
        joined = fits
            .then(|| resized(&joined).common_dims(&resized(other)))
            .flatten()
            .map(|joined| joined.with_element_type(result))
            .ok_or_else(|| {
                ShapeError::operand(format!(
                    "`concatenate` joins arrays that differ only in dim {dim}, not {first} and {other}"
                ))
            })?;
    }
    Ok(joined.into())
}

/// Returns the sum of two sizes; unbounded where one is. `None` if it exceeds 64 bits.
fn total_size(a: i64, b: i64) -> Option<i64> {
    if a == UNBOUNDED || b == UNBOUNDED { Some(UNBOUNDED) } else { a.checked_add(b) }
}

pub(super) fn get_dimension_size(
    q: &ShapeQuery<'_>,
    attrs: &GetDimensionSizeAttrs,
) -> Result<Shape, ShapeError> {
    single_dim("`get-dimension-size` dimensions", &attrs.dimensions, q.array(0)?.rank())?;
    Ok(scalar(ElementType::S32))
}

pub(super) fn set_dimension_size(
    q: &ShapeQuery<'_>,
    attrs: &SetDimensionSizeAttrs,
) -> Result<Shape, ShapeError> {
    let from = q.array(0)?;
    single_dim("`set-dimension-size` dimensions", &attrs.dimensions, from.rank())?;
    let size = q.operand(1)?;
    if !size.compatible(&scalar(ElementType::S32)) {
        return Err(ShapeError::operand(format!(
            "`set-dimension-size` takes the size as s32[], not {size}"
        )));
    }
    // If the size is the bound itself, the dim may be declared static.
    let dim = usize::try_from(attrs.dimensions[0]).unwrap_or(0);
    Ok(from.clone().with_layout(None).with_dim(dim, from.dims()[dim], true).into())
}

/// Operands: the array, then the size of each dim of the result. The result shape bounds the
/// sizes.
pub(super) fn dynamic_reshape(q: &ShapeQuery<'_>) -> Result<Shape, ShapeError> {
    let (from, to) = (q.array(0)?, q.declared_array()?);
    let sizes = q.operands.get(1..).unwrap_or_default();
    if sizes.len() != to.rank() || sizes.iter().any(|s| !s.compatible(&scalar(ElementType::S32))) {
        return Err(ShapeError::operand(format!(
            "`dynamic-reshape` to {to} takes the sizes of its {} dims, each as s32[]",
            to.rank()
        )));
    }
    reshaped(q, from, to)
}

pub(super) fn pad(q: &ShapeQuery<'_>, attrs: &PadAttrs) -> Result<Shape, ShapeError> {
    let (from, value) = (q.array(0)?, q.array(1)?);
    if value.rank() != 0 || !q.same_type(value.element_type, from.element_type) {
        return Err(ShapeError::operand(format!(
            "`pad` takes a scalar of type {} to pad with, not {value}",
            from.element_type
        )));
    }
    if attrs.padding.len() != from.rank() {
        return Err(ShapeError::attribute(format!(
            "`pad` of {from} needs padding for {} dims, not {}",
            from.rank(),
            attrs.padding.len()
        )));
    }
    let dims: Option<Dims> =
        from.dims().iter().zip(&attrs.padding).map(|(&d, p)| padded_size(d, p)).collect();
    let dims = dims.ok_or_else(|| {
        ShapeError::attribute("`pad` yields a negative or too large dim, or has negative interior")
    })?;
    let dynamic: SmallVec<[bool; 6]> = (0..from.rank()).map(|d| from.dim_is_dynamic(d)).collect();
    let result = from.element_type.more_precise(value.element_type);
    Ok(ArrayShape::new(result, dims).with_dynamic(&dynamic).into())
}

fn padded_size(size: i64, pad: &PadDim) -> Option<i64> {
    if pad.interior >= 0 && size == UNBOUNDED {
        return Some(UNBOUNDED);
    }
    if pad.interior < 0 || size < 0 {
        return None;
    }
    let holes = (size - 1).max(0).checked_mul(pad.interior)?;
    let padded = size.checked_add(holes)?.checked_add(pad.low)?.checked_add(pad.high)?;
    (padded >= 0).then_some(padded)
}

pub(super) fn slice(q: &ShapeQuery<'_>, attrs: &SliceAttrs) -> Result<Shape, ShapeError> {
    let from = q.array(0)?;
    if attrs.slice.len() != from.rank() {
        return Err(ShapeError::attribute(format!(
            "`slice` of {from} needs {} ranges, not {}",
            from.rank(),
            attrs.slice.len()
        )));
    }
    let mut dims = Dims::new();
    for (dim, (s, &size)) in attrs.slice.iter().zip(from.dims()).enumerate() {
        if s.start < 0 || s.limit < s.start || (s.limit > size && size != UNBOUNDED) || s.stride < 1
        {
            return Err(ShapeError::attribute(format!(
                "`slice` range [{}:{}:{}] does not fit dim {dim} of {from}",
                s.start, s.limit, s.stride
            )));
        }
        let length = s.limit - s.start;
        dims.push(length / s.stride + i64::from(length % s.stride != 0));
    }
    // A slice of an unbounded dim has a static length, and so has one element of a dynamic dim.
    let is_dynamic = |d: usize| from.dim_is_dynamic(d) && from.dims()[d] != UNBOUNDED;
    let dynamic: SmallVec<[bool; 6]> =
        dims.iter().enumerate().map(|(d, &size)| size != 1 && is_dynamic(d)).collect();
    Ok(ArrayShape::new(from.element_type, dims).with_dynamic(&dynamic).into())
}

/// Returns the only entry of a list of dims.
pub(super) fn single_dim(what: &str, dims: &[i64], rank: usize) -> Result<usize, ShapeError> {
    check_dims(what, dims, rank)?;
    match dims {
        [dim] => Ok(usize::try_from(*dim).unwrap_or(0)),
        _ => Err(ShapeError::attribute(format!("{what} names {} dims, not one", dims.len()))),
    }
}
