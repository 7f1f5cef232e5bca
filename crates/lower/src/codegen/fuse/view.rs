//! Maps indices of a result to indices of its operand, for ops that only move elements.

use tilewright_ir::index::row_major_strides;
use tilewright_ir::{ArrayShape, InstId, Module, Op};

use super::array;
use super::scope::{DimExpr, Scope};
use crate::error::{LowerError, TooLarge, Unsupported, internal};

/// Largest number of nodes of an index. Each reshape whose dims do not nest in those of its
/// operand multiplies them.
pub(super) const MOST_NODES: usize = 256;

/// Returns the index in the operand of the element at an index of the result; `None` for ops
/// that compute or have several operands.
pub(super) fn operand_index(
    module: &Module,
    id: InstId,
    index: &[DimExpr],
    scope: &Scope,
) -> Result<Option<Vec<DimExpr>>, LowerError> {
    let at = |dim: i64| {
        let dim = usize::try_from(dim).map_err(|_| internal("a dim that is negative"))?;
        index.get(dim).cloned().ok_or_else(|| internal("an index with fewer dims than its array"))
    };
    Ok(Some(match module.op(id) {
        Op::Copy => index.to_vec(),
        Op::Broadcast(attrs) => {
            attrs.dimensions.iter().map(|&dim| at(dim)).collect::<Result<_, _>>()?
        }
        Op::Transpose(attrs) => {
            let mut operand = vec![DimExpr::ZERO; index.len()];
            for (&dim, along) in attrs.dimensions.iter().zip(index) {
                let dim = usize::try_from(dim).map_err(|_| internal("a dim that is negative"))?;
                *operand.get_mut(dim).ok_or_else(|| {
                    internal("a transpose of a dim that its operand does not have")
                })? = along.clone();
            }
            operand
        }
        Op::Slice(attrs) => {
            let dims = attrs.slice.iter().zip(index);
            dims.map(|(dim, along)| along.clone() * dim.stride + dim.start.into()).collect()
        }
        Op::Reverse(attrs) => {
            let dims = module.array_shape(id).map(ArrayShape::dims).unwrap_or_default();
            let along = |(place, (&size, along)): (usize, (&i64, &DimExpr))| {
                let turned = attrs.dimensions.iter().any(|&dim| usize::try_from(dim) == Ok(place));
                match turned {
                    true => along.clone() * -1 + size.saturating_sub(1).into(),
                    false => along.clone(),
                }
            };
            dims.iter().zip(index).enumerate().map(along).collect()
        }
        Op::Reshape(_) => reshaped(module, id, index, scope)?,
        _ => return Ok(None),
    }))
}

/// Returns the index in the operand of a reshape: the one with the same row-major position.
fn reshaped(
    module: &Module,
    id: InstId,
    index: &[DimExpr],
    scope: &Scope,
) -> Result<Vec<DimExpr>, LowerError> {
    let to = array(module, id)?;
    let &[operand] = module.operands(id) else {
        return Err(internal("a reshape of several operands"));
    };
    let from = array(module, operand)?;
    let lows =
        |dims: &[i64]| row_major_strides(dims).map_err(|_| LowerError::from(Unsupported::Dynamic));
    let mut place = DimExpr::ZERO;
    for (along, low) in index.iter().zip(lows(to.dims())?) {
        place = place + along.clone() * low;
    }
    let place = scope.simple(place);
    if place.nodes() > MOST_NODES {
        return Err(TooLarge::Indices.into());
    }
    let digit = |(&size, low): (&i64, i64)| {
        let above = place.clone().quotient(low.max(1));
        scope.simple(if size > 0 { above.remainder(size) } else { above })
    };
    Ok(from.dims().iter().zip(lows(from.dims())?).map(digit).collect())
}
