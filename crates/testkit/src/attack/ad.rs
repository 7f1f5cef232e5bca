//! Derivatives of what a [`Draft`] has computed so far, by JAX's rules.
//!
//! Both modes walk over the instructions of the entry and add their own at its end, so
//! that derivatives have derivatives in turn. The derivative of a maximum is divided
//! among the elements that equal it, as JAX does.

use std::collections::BTreeMap;

use tilewright_ir::ops::elementwise::Direction;
use tilewright_ir::{Dims, InstId, Op, Opcode};

use super::draft::{Draft, Made};

/// Returns the instructions of the entry so far, in order.
fn tape(d: &Draft) -> Vec<InstId> {
    let module = d.b.module();
    module.entry().map(|entry| module.instructions(entry).collect()).unwrap_or_default()
}

/// Which instructions depend on any of these through floats.
fn dependents(d: &Draft, tape: &[InstId], on: &[InstId]) -> BTreeMap<InstId, bool> {
    let mut depends = BTreeMap::new();
    for &id in tape {
        let through = d.b.module().operands(id).iter().any(|o| depends.get(o) == Some(&true));
        depends.insert(id, on.contains(&id) || through && d.is_float(id));
    }
    depends
}

/// Returns the cotangents of `of`, given those of `outputs`: a vector-Jacobian product. One
/// that nothing depends on is zero.
pub(super) fn reverse(
    d: &mut Draft,
    outputs: &[(InstId, InstId)],
    of: &[InstId],
) -> Made<Vec<InstId>> {
    let tape = tape(d);
    let depends = dependents(d, &tape, of);
    let mut cotangents: BTreeMap<InstId, InstId> = BTreeMap::new();
    for &(output, cotangent) in outputs {
        accumulate(d, &mut cotangents, output, cotangent)?;
    }
    for &id in tape.iter().rev() {
        let Some(&cotangent) = cotangents.get(&id).filter(|_| depends[&id]) else { continue };
        let operands: Vec<InstId> = d.b.module().operands(id).to_vec();
        for (place, operand) in operands.iter().enumerate() {
            if depends[operand]
                && let Some(part) = transposed(d, id, place, cotangent)?
            {
                accumulate(d, &mut cotangents, *operand, part)?;
            }
        }
    }
    of.iter().map(|id| cotangents.get(id).map_or_else(|| d.splat(*id, 0.0), |&c| Ok(c))).collect()
}

fn accumulate(
    d: &mut Draft,
    cotangents: &mut BTreeMap<InstId, InstId>,
    of: InstId,
    part: InstId,
) -> Made<()> {
    let sum = match cotangents.get(&of) {
        Some(&before) => d.add(before, part)?,
        None => part,
    };
    cotangents.insert(of, sum);
    Ok(())
}

/// Returns the tangents of `outputs`, given those of inputs: a Jacobian-vector product.
pub(super) fn forward(
    d: &mut Draft,
    inputs: &[(InstId, InstId)],
    outputs: &[InstId],
) -> Made<Vec<InstId>> {
    let tape = tape(d);
    let mut tangents: BTreeMap<InstId, InstId> = inputs.iter().copied().collect();
    for &id in &tape {
        if tangents.contains_key(&id) || !d.is_float(id) {
            continue;
        }
        let operands: Vec<InstId> = d.b.module().operands(id).to_vec();
        let mut sum: Option<InstId> = None;
        for (place, operand) in operands.iter().enumerate() {
            let Some(&tangent) = tangents.get(operand) else { continue };
            if let Some(part) = pushed(d, id, place, tangent)? {
                sum = Some(match sum {
                    Some(before) => d.add(before, part)?,
                    None => part,
                });
            }
        }
        if let Some(sum) = sum {
            tangents.insert(id, sum);
        }
    }
    outputs
        .iter()
        .map(|id| tangents.get(id).map_or_else(|| d.splat(*id, 0.0), |&t| Ok(t)))
        .collect()
}

/// Returns what a tangent of an operand adds to the tangent of the result.
fn pushed(d: &mut Draft, id: InstId, place: usize, tangent: InstId) -> Made<Option<InstId>> {
    let op = d.b.module().op(id).clone();
    let result = d.dims(id)?;
    Ok(Some(match &op {
        Op::Broadcast(attrs) => d.b.broadcast(tangent, &result, &attrs.dimensions)?,
        Op::Reshape(_) => d.b.reshape(tangent, &result)?,
        Op::Transpose(attrs) => d.b.transpose(tangent, &attrs.dimensions)?,
        Op::Convert => {
            let element = d.element(id)?;
            d.convert(tangent, element)?
        }
        Op::Reduce(attrs) if place == 0 => {
            let opcode = combines(d, id)?;
            if opcode == Opcode::Add {
                return Ok(Some(d.sum(tangent, &attrs.dimensions)?));
            }
            let Chosen { indicators, counts } = chosen(d, id, &attrs.dimensions)?;
            let product = d.mul(tangent, indicators)?;
            let sum = d.sum(product, &attrs.dimensions)?;
            d.div(sum, counts)?
        }
        _ => return pointwise(d, id, place, tangent),
    }))
}

/// Returns what a cotangent of the result adds to the cotangent of an operand.
fn transposed(d: &mut Draft, id: InstId, place: usize, cotangent: InstId) -> Made<Option<InstId>> {
    let op = d.b.module().op(id).clone();
    let operand = d.b.module().operands(id)[place];
    let dims = d.dims(operand)?;
    Ok(Some(match &op {
        Op::Broadcast(attrs) => {
            let rank = d.dims(id)?.len();
            let repeated: Dims =
                (0i64..).take(rank).filter(|dim| !attrs.dimensions.contains(dim)).collect();
            if repeated.is_empty() { cotangent } else { d.sum(cotangent, &repeated)? }
        }
        Op::Reshape(_) => d.b.reshape(cotangent, &dims)?,
        Op::Transpose(attrs) => {
            let mut inverse: Dims = (0i64..).take(dims.len()).collect();
            for (to, &from) in (0i64..).zip(&attrs.dimensions) {
                if let Some(slot) = usize::try_from(from).ok().and_then(|d| inverse.get_mut(d)) {
                    *slot = to;
                }
            }
            d.b.transpose(cotangent, &inverse)?
        }
        Op::Convert => {
            let element = d.element(operand)?;
            d.convert(cotangent, element)?
        }
        Op::Reduce(attrs) if place == 0 => {
            if combines(d, id)? == Opcode::Add {
                return Ok(Some(d.spread(cotangent, operand, &attrs.dimensions)?));
            }
            let Chosen { indicators, counts } = chosen(d, id, &attrs.dimensions)?;
            let share = d.div(cotangent, counts)?;
            let share = d.spread(share, operand, &attrs.dimensions)?;
            d.mul(share, indicators)?
        }
        _ => return pointwise(d, id, place, cotangent),
    }))
}

/// By which op a reduce combines elements.
fn combines(d: &Draft, id: InstId) -> Made<Opcode> {
    let module = d.b.module();
    let root = module.called(id).first().and_then(|&c| module.computation(c).root());
    Ok(root.map_or(Opcode::Add, |root| module.opcode(root)))
}

/// Which elements equal the maximum, and how many.
struct Chosen {
    indicators: InstId,
    counts: InstId,
}

fn chosen(d: &mut Draft, id: InstId, reduced: &[i64]) -> Made<Chosen> {
    let operand = d.b.module().operands(id)[0];
    let spread = d.spread(id, operand, reduced)?;
    let indicators = d.equals(operand, spread)?;
    let counts = d.sum(indicators, reduced)?;
    Ok(Chosen { indicators, counts })
}

/// `g` times the derivative of an elementwise op by one of its operands; `None` where
/// that is zero.
fn pointwise(d: &mut Draft, id: InstId, place: usize, g: InstId) -> Made<Option<InstId>> {
    let operands: Vec<InstId> = d.b.module().operands(id).to_vec();
    let (opcode, x) = (d.b.module().opcode(id), operands[0]);
    Ok(Some(match (opcode, place) {
        (Opcode::Add, _) | (Opcode::Subtract, 0) => g,
        (Opcode::Subtract, _) | (Opcode::Negate, _) => d.un(Opcode::Negate, g)?,
        (Opcode::Multiply, 0) => d.mul(g, operands[1])?,
        (Opcode::Multiply, _) => d.mul(g, x)?,
        (Opcode::Divide, 0) => d.div(g, operands[1])?,
        (Opcode::Divide, _) => {
            let minus = d.un(Opcode::Negate, g)?;
            let product = d.mul(minus, x)?;
            let square = d.mul(operands[1], operands[1])?;
            d.div(product, square)?
        }
        (Opcode::Exp, _) => d.mul(g, id)?,
        (Opcode::Log, _) => d.div(g, x)?,
        (Opcode::Tanh, _) => {
            let square = d.mul(id, id)?;
            let one = d.splat(id, 1.0)?;
            let slope = d.sub(one, square)?;
            d.mul(g, slope)?
        }
        (Opcode::Sqrt, _) => {
            let half = d.splat(id, 0.5)?;
            let slope = d.div(half, id)?;
            d.mul(g, slope)?
        }
        (Opcode::Rsqrt, _) => {
            let quotient = d.div(id, x)?;
            let slope = d.times(quotient, -0.5)?;
            d.mul(g, slope)?
        }
        (Opcode::Abs, _) => {
            let sign = d.un(Opcode::Sign, x)?;
            d.mul(g, sign)?
        }
        (Opcode::Maximum | Opcode::Minimum, place) => {
            let slope = share_of_choice(d, operands[place], operands[1 - place], id)?;
            d.mul(g, slope)?
        }
        (Opcode::Select, 1) => {
            let zero = d.splat(g, 0.0)?;
            d.select(x, g, zero)?
        }
        (Opcode::Select, 2) => {
            let zero = d.splat(g, 0.0)?;
            d.select(x, zero, g)?
        }
        _ => return Ok(None),
    }))
}

/// 1 where a choice between two fell on this one alone, a half where both are equal.
fn share_of_choice(d: &mut Draft, this: InstId, other: InstId, result: InstId) -> Made<InstId> {
    let (one, zero, two) = (d.splat(result, 1.0)?, d.splat(result, 0.0)?, d.splat(result, 2.0)?);
    let is_this = d.b.compare(Direction::Eq, this, result)?;
    let is_other = d.b.compare(Direction::Eq, other, result)?;
    let above = d.select(is_this, one, zero)?;
    let below = d.select(is_other, two, one)?;
    d.div(above, below)
}
