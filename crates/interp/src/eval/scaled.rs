//! Evaluates `scaled-dot`: a dot of operands in small floats, in which each block has a scale.

use smallvec::{SmallVec, smallvec};
use tilewright_ir::ops::contract::DotAttrs;
use tilewright_ir::{Data, ElementType};

use super::contract::dot;
use super::linalg::widened;
use super::{Allocation, Cx, unsupported};
use crate::error::{Outcome, WRONG_STORAGE};
use crate::strides::{Level, Nest, extent, row_major};
use crate::value::{Array, Value};

/// Operands: left, right, the scales of the left, the scales of the right. The
/// products of elements and scales are exact in `f64`, and so is their dot but
/// for the one rounding of every sum.
pub(super) fn scaled_dot(cx: &mut Cx<'_, '_>, attrs: &DotAttrs) -> Outcome<Value> {
    if let Some(empty) = cx.empty_result()? {
        return Ok(empty);
    }
    let left = scaled(cx, 0, 2)?;
    let right = scaled(cx, 1, 3)?;
    cx.operands = smallvec![left, right];
    dot(cx, attrs)
}

/// Returns an operand in `f64`, every element times the scale of its block.
fn scaled(cx: &Cx<'_, '_>, operand: usize, scales: usize) -> Outcome<Value> {
    let (operand, scales) = (cx.array(operand)?, cx.array(scales)?);
    cx.spend(operand.len())?;
    let shape = tilewright_ir::ArrayShape::new(ElementType::F64, operand.dims().iter().copied());
    let allocation = cx.allocate(&shape)?;
    let Data::F64(mut values) = widened(operand, ElementType::F64)? else {
        return Err(WRONG_STORAGE);
    };
    // XLA ignores a scalar scale, regardless of its value.
    if scales.rank() != 0 && operand.len() > 0 {
        let _scales = cx.scratch(size_of::<f64>(), scales.len())?;
        scale(&mut values, operand, scales)?;
    }
    Allocation::of(allocation, values)
}

/// A dim's index, divided by how many elements share a scale, is the scale's.
fn scale(values: &mut [f64], operand: &Array, scales: &Array) -> Outcome<()> {
    let Data::F64(factors) = widened(scales, ElementType::F64)? else { return Err(WRONG_STORAGE) };
    let mut levels: SmallVec<[Level<2>; 12]> = SmallVec::new();
    let sizes = operand.dims().iter().zip(scales.dims());
    let strides = row_major(operand.dims()).into_iter().zip(row_major(scales.dims()));
    for ((&size, &blocks), (stride, scale_stride)) in sizes.zip(strides) {
        let (size, blocks) = (extent(size), extent(blocks));
        if operand.rank() != scales.rank() || blocks == 0 || !size.is_multiple_of(blocks) {
            return Err(unsupported(format!(
                "scales of dims {:?} for an operand of dims {:?}; each dim must be a multiple of \
                 that of its scales",
                scales.dims(),
                operand.dims()
            )));
        }
        let block = size / blocks;
        let step = stride.saturating_mul(block.cast_signed());
        levels.push(Level { size: blocks, strides: [step, scale_stride] });
        levels.push(Level { size: block, strides: [stride, 0] });
    }
    let nest = Nest::new(levels);
    let Level { size, strides: [step, scale_step] } = nest.inner();
    for [at, scale] in nest.positions([0, 0]) {
        for i in 0..size.cast_signed() {
            let factor = factors[(scale + i * scale_step).cast_unsigned()];
            values[(at + i * step).cast_unsigned()] *= factor;
        }
    }
    Ok(())
}
