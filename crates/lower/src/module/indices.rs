//! Recognises arrays whose elements follow from their indices.

use tilewright_ir::element::NumberClass;
use tilewright_ir::index::row_major_strides;
use tilewright_ir::{InstId, Module, Op};

/// Largest number of instructions that are looked through.
const MOST_STEPS: usize = 8;

/// For each dim the factor by which its index contributes to an element: elements are sums of
/// multiples of their indices. `None` unless the array is an `iota` of integers, possibly
/// broadcast, copied or reshaped.
pub(super) fn indices(module: &Module, id: InstId) -> Option<Vec<i64>> {
    let shape = module.array_shape(id)?;
    if !matches!(shape.element_type.class(), NumberClass::Signed | NumberClass::Unsigned) {
        return None;
    }
    // The instructions between the iota and the array.
    let mut steps = vec![id];
    let mut last = id;
    while !matches!(module.op(last), Op::Iota(_)) {
        let through = matches!(module.op(last), Op::Broadcast(_) | Op::Reshape(_) | Op::Copy);
        let &[operand] = module.operands(last) else { return None };
        if !through || steps.len() > MOST_STEPS {
            return None;
        }
        steps.push(operand);
        last = operand;
    }
    let mut factors: Vec<i64> = Vec::new();
    for &step in steps.iter().rev() {
        let dims = module.array_shape(step)?.dims();
        factors = match module.op(step) {
            Op::Iota(attrs) => {
                let along = usize::try_from(attrs.dimension).ok()?;
                (0..dims.len()).map(|dim| i64::from(dim == along)).collect()
            }
            Op::Broadcast(attrs) => {
                let mut wide = vec![0; dims.len()];
                for (&dim, &factor) in attrs.dimensions.iter().zip(&factors) {
                    *wide.get_mut(usize::try_from(dim).ok()?)? = factor;
                }
                wide
            }
            Op::Reshape(_) => {
                let &[operand] = module.operands(step) else { return None };
                reshaped(module.array_shape(operand)?.dims(), &factors, dims)?
            }
            _ => factors,
        };
    }
    Some(factors)
}

/// Returns the factors after a reshape. A dim with a factor may be split but not merged with
/// others.
fn reshaped(from: &[i64], factors: &[i64], to: &[i64]) -> Option<Vec<i64>> {
    if from.contains(&0) || to.contains(&0) {
        return None;
    }
    let (from_lows, to_lows) = (row_major_strides(from).ok()?, row_major_strides(to).ok()?);
    let mut after = vec![0i64; to.len()];
    for ((&size, &low), &factor) in from.iter().zip(&from_lows).zip(factors) {
        if factor == 0 || size <= 1 {
            continue;
        }
        let end = low.checked_mul(size)?;
        let mut split = 1i64;
        for ((&part, &at), slot) in to.iter().zip(&to_lows).zip(&mut after) {
            if part == 1 || at < low || at >= end {
                continue;
            }
            if at % low != 0 || at.checked_mul(part)? > end {
                return None;
            }
            split = split.checked_mul(part)?;
            *slot = slot.checked_add(factor.checked_mul(at / low)?)?;
        }
        if split != size {
            return None;
        }
    }
    Some(after)
}
