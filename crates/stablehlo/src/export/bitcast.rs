//! Bitcasts and copies between layouts. The values of StableHLO have no layout, so that a copy is the value
//! itself, and a bitcast reads the elements in the order in which they lie in memory.

use tilewright_ir::metadata::value_of;
use tilewright_ir::{ArrayShape, Dims, ElementType, InstId, Op};

use super::body::Body;
use super::error::Export;
use super::types;
use super::value::Yield;
use crate::mlir::{Attribute, Attributes};

/// An operation that helps, with the shape of its result.
struct HelperOp {
    name: &'static str,
    attributes: Attributes,
    shape: ArrayShape,
}

/// A copy is the value itself. One with a sharding is a constraint, as the call `Sharding` is.
pub(super) fn copy<'m>(body: &mut Body<'_, 'm>, id: InstId, _: &'m Op) -> Export<()> {
    same(body, id)
}

/// `bitcast(x) = transpose(reshape(transpose(x)))`, in between as the elements lie in memory.
pub(super) fn bitcast<'m>(body: &mut Body<'_, 'm>, id: InstId, _: &'m Op) -> Export<()> {
    let operand = body.operand(id, 0)?;
    let (from, to) = (body.array(operand)?, body.array(id)?);
    let mut steps = steps(from, to).map_err(|why| body.unsupported(why))?;
    let Some(last) = steps.pop() else { return same(body, id) };
    let [mut value] = body.yielded(operand)?.leaves()[..] else {
        return Err(body.invalid("its operand is no array"));
    };
    for HelperOp { name, attributes, shape } in steps {
        value = body.help(name, &[value], attributes, types::tensor(&shape));
    }
    body.emit(id, last.name, &[value], last.attributes, Vec::new())
}

/// Yields the operand.
fn same(body: &mut Body<'_, '_>, id: InstId) -> Export<()> {
    let yielded = body.yielded(body.operand(id, 0)?)?;
    let is_sharded = body.exporter.module.extras(id).is_some_and(|extras| {
        extras.sharding.is_some()
            || value_of(&extras.frontend_attributes, "xla.sdy.sharding").is_some()
    });
    match yielded {
        Yield::One(value) if is_sharded => {
            let name = vec![("call_target_name".into(), Attribute::text("Sharding"))];
            body.emit(id, "stablehlo.custom_call", &[value], name, Vec::new())
        }
        yielded => {
            body.yields.insert(id, yielded);
            Ok(())
        }
    }
}

/// Returns the operations that read the buffer of one array as another one; none if nothing moves.
fn steps(from: &ArrayShape, to: &ArrayShape) -> Result<Vec<HelperOp>, &'static str> {
    let (order, back) = (order(from)?, order(to)?);
    let in_memory = |shape: &ArrayShape, order: &[usize]| -> Dims {
        order.iter().filter_map(|&dim| shape.dims().get(dim).copied()).collect()
    };
    let (dims, read) = (in_memory(from, &order), in_memory(to, &back));
    let is_dynamic = |shape: &ArrayShape| (0..shape.rank()).any(|dim| shape.dim_is_dynamic(dim));
    let moves = !order.is_sorted() || !back.is_sorted() || from.dims() != to.dims();
    if (moves || from.element_type != to.element_type) && (is_dynamic(from) || is_dynamic(to)) {
        return Err("a bitcast of dynamic dims is no operation of StableHLO");
    }
    if bits_of(from) != bits_of(to) {
        return Err("a bitcast to a buffer of another size is no operation of StableHLO");
    }
    let mut steps = Vec::new();
    if !order.is_sorted() {
        steps.push(transpose(&order, ArrayShape::new(from.element_type, dims.clone())));
    }
    if from.element_type != to.element_type {
        convert(&mut steps, from, to.element_type)?;
    }
    if from.element_type != to.element_type || dims != read {
        steps.push(reshape(ArrayShape::new(to.element_type, read)));
    }
    if !back.is_sorted() {
        let mut inverse = vec![0; back.len()];
        for (place, &dim) in back.iter().enumerate() {
            inverse[dim] = place;
        }
        steps.push(transpose(&inverse, to.without_layout()));
    }
    Ok(steps)
}

/// Returns the size of an array's elements together; `None` if it overflows.
fn bits_of(shape: &ArrayShape) -> Option<i64> {
    shape.num_elements()?.checked_mul(shape.element_type.bits().into())
}

/// Returns the dims as they lie in memory, the major one first.
fn order(shape: &ArrayShape) -> Result<Vec<usize>, &'static str> {
    let Some(layout) = &shape.layout else { return Ok((0..shape.rank()).collect()) };
    let is_plain = layout.tiles.is_empty() && layout.padding.is_none() && layout.rare.is_none();
    if !is_plain || layout.element_size_in_bits != 0 {
        return Err("a bitcast of tiled, padded or packed arrays is no operation of StableHLO");
    }
    let order: Vec<usize> = layout.minor_to_major.iter().rev().map(|&dim| dim as usize).collect();
    let mut sorted = order.clone();
    sorted.sort_unstable();
    if sorted.into_iter().eq(0..shape.rank()) {
        Ok(order)
    } else {
        Err("its layout does not name every dim once")
    }
}

fn transpose(permutation: &[usize], shape: ArrayShape) -> HelperOp {
    let permutation = permutation.iter().filter_map(|&dim| i64::try_from(dim).ok());
    let attributes = vec![("permutation".into(), Attribute::i64s(permutation))];
    HelperOp { name: "stablehlo.transpose", attributes, shape }
}

fn reshape(shape: ArrayShape) -> HelperOp {
    HelperOp { name: "stablehlo.reshape", attributes: Attributes::new(), shape }
}

/// Reads all elements in a row as those of another type.
fn convert(
    steps: &mut Vec<HelperOp>,
    from: &ArrayShape,
    to: ElementType,
) -> Result<(), &'static str> {
    let of = from.element_type;
    let (bits, wanted) = (i64::from(of.bits()), i64::from(to.bits()));
    let is_number = |ty: ElementType| ty.bits() >= 8 && !ty.is_complex();
    if !is_number(of) || !is_number(to) {
        return Err("a bitcast between these types is no operation of StableHLO");
    }
    let count = from.num_elements().ok_or("its number of elements overflows")?;
    let (row, converted): (Dims, Dims) = if bits >= wanted {
        let parts = bits / wanted;
        let with_parts = if parts == 1 { vec![count] } else { vec![count, parts] };
        ([count].into_iter().collect(), with_parts.into_iter().collect())
    } else {
        let parts = wanted / bits;
        ([count / parts, parts].into_iter().collect(), [count / parts].into_iter().collect())
    };
    steps.push(reshape(ArrayShape::new(of, row)));
    let shape = ArrayShape::new(to, converted);
    steps.push(HelperOp {
        name: "stablehlo.bitcast_convert",
        attributes: Attributes::new(),
        shape,
    });
    Ok(())
}
