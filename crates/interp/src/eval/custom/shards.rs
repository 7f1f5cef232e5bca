//! Calls between the shapes of the whole and of a shard.
//!
//! Before partitioning, every device has whole arrays. A program that defines the work of each
//! device itself (`shard_map`) takes the device's part of them, and joins the parts of all
//! devices again.

use smallvec::SmallVec;
use tilewright_ir::ops::control::Crossing;
use tilewright_ir::{ArrayShape, Shape};

use super::{identity, opaque};
use crate::devices::Device;
use crate::devices::shards::{Meshes, Shards};
use crate::error::{Fault, Outcome};
use crate::eval::shaping::join;
use crate::eval::{Cx, tuple, unsupported};
use crate::strides::{Level, Nest, collect, extent, row_major};
use crate::value::{Array, Value};

/// Returns a device's part of whole arrays.
pub(super) fn to_shard(cx: &mut Cx<'_, '_>) -> Outcome<Value> {
    between(cx, Crossing::ToShards)
}

/// Whole arrays of the parts of all devices.
pub(super) fn to_whole(cx: &mut Cx<'_, '_>) -> Outcome<Value> {
    between(cx, Crossing::ToWholes)
}

/// Returns the operands on a single partition, if they have the results' shapes. A partitioner
/// decides the meaning of a call without a sharding: if the caller wants that, the result is
/// made up with the right shape.
fn between(cx: &mut Cx<'_, '_>, way: Crossing) -> Outcome<Value> {
    let partitions = cx.evaluator.device.all.partitions;
    let module = cx.evaluator.module;
    let meshes = cx.evaluator.meshes.get_or_insert_with(|| Meshes::of(module));
    let known = if partitions > 1 { meshes.of_call(module, cx.id) } else { None };
    let known = known.filter(|all| all.iter().all(|shards| shards.partitions() == partitions));
    match (known, way) {
        (Some(all), Crossing::ToShards) => each(cx, &all, part_of_whole),
        (Some(all), Crossing::ToWholes) => of_all_parts(cx, &all),
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

/// Joins the parts of all partitions into whole arrays.
fn of_all_parts(cx: &mut Cx<'_, '_>, all: &[Shards]) -> Outcome<Value> {
    if all.iter().all(|shards| shards.parts.iter().all(|&parts| parts == 1)) {
        return each(cx, all, part_of_whole);
    }
    let Device { all: devices, .. } = cx.evaluator.device;
    let (replica, me) = (cx.evaluator.device.replica(), cx.evaluator.device.partition());
    let mine = |other: &usize| all.iter().all(|shards| shards.together(me, *other));
    let partitions: Vec<usize> = (0..devices.partitions).filter(mine).collect();
    let group: Vec<usize> = partitions.iter().map(|&p| devices.number(replica, p)).collect();
    let operands = std::mem::take(&mut cx.operands);
    let handed = cx.evaluator.trade(cx.id, operands, &group)?;
    each(cx, all, |cx, to, shards, number| {
        let missing = || Fault::Internal("a device handed out too little");
        let parts = handed.iter().zip(&partitions).map(|(operands, &partition)| {
            let part = operands.get(number).ok_or_else(missing)?;
            Ok((partition, array_of(part, to)?))
        });
        whole_of_parts(cx, to, shards, &parts.collect::<Outcome<Vec<_>>>()?)
    })
}

/// Returns an array of the type of the result.
fn array_of<'v>(value: &'v Value, to: &ArrayShape) -> Outcome<&'v Array> {
    let array = value.array().ok().filter(|array| array.element_type() == to.element_type);
    array.ok_or_else(|| unsupported(format!("an operand is no array of {}", to.element_type)))
}

/// Returns a result for each operand.
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
    let operand = cx.operands.get(number);
    let operand = operand.ok_or_else(|| unsupported("an operand is missing".to_owned()))?;
    let whole = array_of(operand, to)?;
    if shards.whole(to.dims()).as_deref() != Some(whole.dims()) {
        return Err(not_its_parts(to, shards));
    }
    let place = shards.place(cx.evaluator.device.partition());
    let strides = row_major(whole.dims());
    let steps = place.zip(to.dims()).zip(&strides);
    let first = steps.map(|((at, &size), &stride)| {
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

/// Joins the `parts` of partitions. If several partitions have the same part, this one's
/// counts, or else the first one's.
fn whole_of_parts(
    cx: &Cx<'_, '_>,
    to: &ArrayShape,
    shards: &Shards,
    parts: &[(usize, &Array)],
) -> Outcome<Value> {
    let fits = |part: &Array| shards.whole(part.dims()).as_deref() == Some(to.dims());
    if !parts.iter().all(|(_, part)| fits(part)) {
        return Err(not_its_parts(to, shards));
    }
    let me = cx.evaluator.device.partition();
    let mut pieces: Vec<Option<Array>> = vec![None; shards.parts.iter().product()];
    for &(partition, part) in parts {
        let place = shards.place(partition).zip(&shards.parts);
        let at = place.fold(0, |at, (index, &size)| at * size + index);
        let piece = pieces.get_mut(at).filter(|piece| piece.is_none() || partition == me);
        if let Some(piece) = piece {
            *piece = Some(part.clone());
        }
    }
    let missing = || unsupported(format!("no partition has some part of {to}"));
    let mut pieces = pieces.into_iter().collect::<Option<Vec<Array>>>().ok_or_else(missing)?;
    let cut = shards.parts.iter().enumerate().filter(|&(_, &count)| count > 1);
    for (dim, &count) in cut.rev() {
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
