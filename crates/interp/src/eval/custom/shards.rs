//! Calls between the shapes of the whole and of a shard.
//!
//! Before partitioning, every device has whole arrays. A program that says itself what each
//! device does (`shard_map`) takes the device's part of them, and puts the parts of all
//! devices together again.

use smallvec::SmallVec;
use tilewright_ir::{ArrayShape, Shape};

use super::{identity, opaque};
use crate::devices::shards::{Shards, Way, of_call};
use crate::error::{Fault, Outcome};
use crate::eval::shaping::join;
use crate::eval::{Cx, tuple, unsupported};
use crate::strides::{Level, Nest, collect, extent, row_major};
use crate::value::{Array, Value};

/// A device's part of whole arrays.
pub(super) fn to_shard(cx: &mut Cx<'_, '_>) -> Outcome<Value> {
    between(cx, Way::ToShard)
}

/// Whole arrays of the parts of all devices.
pub(super) fn to_whole(cx: &mut Cx<'_, '_>) -> Outcome<Value> {
    between(cx, Way::ToWhole)
}

/// On one device the operands, if their shapes are those of the results. What a call that
/// says nothing of its parts does, a partitioner decides: it is something of the right
/// shape, if the caller wants that.
fn between(cx: &mut Cx<'_, '_>, way: Way) -> Outcome<Value> {
    let partitions = cx.evaluator.device.all.partitions;
    let known = of_call(cx.module(), cx.id)
        .filter(|all| partitions > 1 && all.iter().all(|shards| shards.places.len() == partitions));
    match (known, way) {
        (Some(all), Way::ToShard) => each(cx, &all, part_of_whole),
        (Some(all), Way::ToWhole) => {
            let device = &cx.evaluator.device;
            let (replica, of_all) = (device.replica(), device.all);
            let group: Vec<usize> = (0..partitions).map(|p| of_all.number(replica, p)).collect();
            let operands = std::mem::take(&mut cx.operands);
            let handed = cx.evaluator.trade(cx.id, operands, &group)?;
            each(cx, &all, |cx, to, shards, number| {
                let missing = || Fault::Internal("a device handed out too little");
                let parts = handed.iter().map(|operands| operands.get(number).ok_or_else(missing));
                let parts = parts.map(|part| part?.array()).collect::<Outcome<Vec<_>>>()?;
                whole_of_parts(cx, to, shards, &parts)
            })
        }
        (None, _) if cx.evaluator.invents => opaque::between_shards(cx),
        (None, _) => identity::same_value(cx).map_err(|_| {
            unsupported(format!(
                "what each of {partitions} partitions has of {} is not known; run as many \
                 partitions as the program is for (`--partitions`), or partition it first",
                cx.shape()
            ))
        }),
    }
}

/// A result for each operand.
fn each(
    cx: &Cx<'_, '_>,
    all: &[Shards],
    make: impl Fn(&Cx<'_, '_>, &ArrayShape, &Shards, usize) -> Outcome<Value>,
) -> Outcome<Value> {
    let of = |(number, shape): (usize, &Shape)| match (shape, all.get(number)) {
        (Shape::Array(to), Some(shards)) => make(cx, to, shards, number),
        (Shape::Token, _) => Ok(Value::Token),
        _ => Err(unsupported(format!("it says nothing of the parts of {shape}"))),
    };
    match cx.shape() {
        Shape::Tuple(shapes) => {
            Ok(tuple(shapes.iter().enumerate().map(of).collect::<Outcome<Vec<_>>>()?))
        }
        shape => of((0, shape)),
    }
}

fn part_of_whole(
    cx: &Cx<'_, '_>,
    to: &ArrayShape,
    shards: &Shards,
    number: usize,
) -> Outcome<Value> {
    let whole = cx.array(number)?;
    if shards.whole(to.dims()).as_deref() != Some(whole.dims()) {
        return Err(not_its_parts(to, shards));
    }
    let missing = Fault::Internal("a partition has no place");
    let place = shards.places.get(cx.evaluator.device.partition()).ok_or(missing)?;
    let strides = row_major(whole.dims());
    let steps = place.iter().zip(to.dims()).zip(&strides);
    let first = steps.map(|((&at, &size), &stride)| {
        isize::try_from(at.saturating_mul(extent(size)))
            .unwrap_or(isize::MAX)
            .saturating_mul(stride)
    });
    let first = first.fold(0, isize::saturating_add);
    let allocation = cx.allocate(to)?;
    cx.spend(allocation.len)?;
    let levels = to.dims().iter().zip(&strides);
    let levels = levels.map(|(&size, &stride)| Level { size: extent(size), strides: [stride] });
    let data = collect(whole.data(), &Nest::new(levels), first);
    allocation.with(data)
}

/// `parts` are those of all partitions; where several have the same part, the first counts.
fn whole_of_parts(
    cx: &Cx<'_, '_>,
    to: &ArrayShape,
    shards: &Shards,
    parts: &[&Array],
) -> Outcome<Value> {
    let fits = parts.iter().all(|part| shards.whole(part.dims()).as_deref() == Some(to.dims()));
    if !fits {
        return Err(not_its_parts(to, shards));
    }
    let mut pieces: Vec<Option<Array>> = vec![None; shards.parts.iter().product()];
    for (place, part) in shards.places.iter().zip(parts) {
        let at = place.iter().zip(&shards.parts).fold(0, |at, (&index, &size)| at * size + index);
        if let Some(piece) = pieces.get_mut(at) {
            piece.get_or_insert_with(|| (*part).clone());
        }
    }
    let missing = || Fault::Internal("nobody has a part of an array");
    let mut pieces = pieces.into_iter().collect::<Option<Vec<Array>>>().ok_or_else(missing)?;
    for (dim, &count) in shards.parts.iter().enumerate().rev() {
        let rows = pieces.chunks(count).map(|row| {
            let mut dims: SmallVec<[i64; 6]> = row.first().ok_or_else(missing)?.dims().into();
            if let (Some(size), Some(whole)) = (dims.get_mut(dim), to.dims().get(dim)) {
                *size = *whole;
            }
            let joined = ArrayShape::new(to.element_type, dims);
            join(cx, &joined, &row.iter().collect::<Vec<_>>(), dim)?.into_array()
        });
        pieces = rows.collect::<Outcome<_>>()?;
    }
    pieces.pop().map(Value::Array).ok_or_else(missing)
}

fn not_its_parts(to: &ArrayShape, shards: &Shards) -> Fault {
    unsupported(format!("arrays cut into {:?} parts are none of {to}", shards.parts))
}
