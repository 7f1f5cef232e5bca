//! Collectives.
//!
//! Each device hands its operands to the others of its group and computes its result from theirs
//! in the order of the group, so that all devices of a group compute the same numbers.

use tilewright_ir::ops::collective::{
    AllGatherAttrs, AllReduceAttrs, AllToAllAttrs, CollectiveBroadcastAttrs, CollectiveReduceAttrs,
    GroupAttrs, PermuteAttrs, ReduceScatterAttrs,
};
use tilewright_ir::{ArrayShape, CompId, ElementType, InstId, Opcode, Shape};

use super::asynchronous::{element, started, zero};
use super::control::map_arrays;
use super::shaping::{join, part};
use super::{Cx, static_array, tuple, unsupported};
use crate::devices::groups::{Numbers, group};
use crate::error::{Fault, Outcome};
use crate::strides::extent;
use crate::value::{Array, Value};

/// `partition-id` and `replica-id`.
pub(super) fn device_id(cx: &mut Cx<'_, '_>) -> Outcome<Value> {
    let device = &cx.evaluator.device;
    let id = match cx.module().opcode(cx.id) {
        Opcode::ReplicaId => device.replica(),
        _ => device.partition(),
    };
    let id = u32::try_from(id).map_err(|_| Fault::Internal("there are too many devices"))?;
    cx.allocate_result()?.of(vec![id])
}

/// The values that the devices of a group handed each other.
struct Joined {
    /// The operands of each, in the order of the group.
    operands: Vec<Vec<Value>>,
    /// The number of this device among them.
    me: usize,
}

impl Joined {
    /// One operand, of all devices.
    fn arrays(&self, operand: usize) -> Outcome<Vec<&Array>> {
        let missing = Fault::Internal("a device handed out too little");
        let of_all = self.operands.iter().map(|operands| operands.get(operand));
        of_all.collect::<Option<Vec<_>>>().ok_or(missing)?.into_iter().map(Value::array).collect()
    }
}

/// Joins the devices of a group.
fn join_group(cx: &mut Cx<'_, '_>, devices: &[usize]) -> Outcome<Joined> {
    let number = cx.evaluator.device.number;
    let me = devices
        .iter()
        .position(|&device| device == number)
        .ok_or_else(|| unsupported(format!("device {number} is in none of its groups")))?;
    let operands = std::mem::take(&mut cx.operands);
    Ok(Joined { operands: cx.evaluator.trade(cx.id, operands, devices)?, me })
}

/// Returns the shapes of a result of one array or a tuple of them.
fn shapes(shape: &Shape) -> Outcome<Vec<&ArrayShape>> {
    match shape {
        Shape::Tuple(elements) => elements.iter().map(static_array).collect(),
        other => static_array(other).map(|shape| vec![shape]),
    }
}

/// Returns one value as it is if the shape is one array, several as a tuple.
fn together(shape: &Shape, mut values: Vec<Value>) -> Value {
    match (shape, values.pop()) {
        (Shape::Tuple(_), last) => tuple(values.into_iter().chain(last)),
        (_, Some(only)) => only,
        (_, None) => tuple([]),
    }
}

/// Returns a result for each operand, each made of that operand of all devices.
fn each_operand(
    cx: &mut Cx<'_, '_>,
    devices: &[usize],
    shape: &Shape,
    mut make: impl FnMut(&mut Cx<'_, '_>, &Joined, &ArrayShape, usize) -> Outcome<Value>,
) -> Outcome<Value> {
    let joined = join_group(cx, devices)?;
    let mut results = Vec::new();
    for (operand, result) in shapes(shape)?.into_iter().enumerate() {
        results.push(make(cx, &joined, result, operand)?);
    }
    Ok(together(shape, results))
}

pub(super) fn all_gather(cx: &mut Cx<'_, '_>, attrs: &AllGatherAttrs) -> Outcome<Value> {
    let shape = cx.shape();
    gathered(cx, attrs, shape)
}

pub(super) fn all_gather_start(cx: &mut Cx<'_, '_>, attrs: &AllGatherAttrs) -> Outcome<Value> {
    let shape = cx.shape();
    start(cx, shape, |cx, result| gathered(cx, attrs, result))
}

fn gathered(cx: &mut Cx<'_, '_>, attrs: &AllGatherAttrs, shape: &Shape) -> Outcome<Value> {
    let numbers = Numbers::of(attrs.channel_id, attrs.use_global_device_ids)?;
    let devices = group(&attrs.replica_groups, numbers, &cx.evaluator.device)?;
    let dim = attrs.dimensions.first().map_or(0, |&dim| extent(dim));
    each_operand(cx, &devices, shape, |cx, joined, shape, operand| {
        join(cx, shape, &joined.arrays(operand)?, dim)
    })
}

pub(super) fn all_reduce(cx: &mut Cx<'_, '_>, attrs: &AllReduceAttrs) -> Outcome<Value> {
    let numbers = Numbers::of(attrs.channel_id, attrs.use_global_device_ids)?;
    let devices = group(&attrs.replica_groups, numbers, &cx.evaluator.device)?;
    let shape = cx.shape();
    each_operand(cx, &devices, shape, |cx, joined, _, operand| {
        reduced(cx, attrs.to_apply, &joined.arrays(operand)?)
    })
}

/// The start computes the result of the whole op: nothing is left for the end.
pub(super) fn all_reduce_start(cx: &mut Cx<'_, '_>, attrs: &AllReduceAttrs) -> Outcome<Value> {
    all_reduce(cx, attrs)
}

pub(super) fn all_reduce_done(cx: &mut Cx<'_, '_>) -> Outcome<Value> {
    cx.take(0)
}

/// Returns the arrays of all devices, combined one after the other.
fn reduced(cx: &mut Cx<'_, '_>, combine: CompId, arrays: &[&Array]) -> Outcome<Value> {
    let (first, rest) = arrays.split_first().ok_or(Fault::Internal("a group has no devices"))?;
    let mut total = (*first).clone();
    check_combiner(cx, combine, total.element_type())?;
    let shape = ArrayShape::new(total.element_type(), total.dims().iter().copied());
    for array in rest {
        let allocation = cx.allocate(&shape)?;
        total = map_arrays(cx, combine, &[&total, array], allocation)?.into_array()?;
    }
    Ok(Value::Array(total))
}

/// The verifier does not check the computation's parameters and result.
fn check_combiner(cx: &Cx<'_, '_>, combine: CompId, element_type: ElementType) -> Outcome<()> {
    let (module, computation) = (cx.module(), cx.module().computation(combine));
    let is_element = |id: InstId| module.shape(id).compatible(&Shape::scalar(element_type));
    let parameters = computation.parameters();
    if parameters.len() == 2
        && parameters.iter().copied().all(is_element)
        && computation.root().is_some_and(is_element)
    {
        return Ok(());
    }
    Err(unsupported(format!("`{}` does not make one {element_type}[] of two", computation.name())))
}

pub(super) fn reduce_scatter(cx: &mut Cx<'_, '_>, attrs: &ReduceScatterAttrs) -> Outcome<Value> {
    let numbers = Numbers::of(attrs.channel_id, attrs.use_global_device_ids)?;
    let devices = group(&attrs.replica_groups, numbers, &cx.evaluator.device)?;
    let dim = attrs.dimensions.first().map_or(0, |&dim| extent(dim));
    let shape = cx.shape();
    each_operand(cx, &devices, shape, |cx, joined, shape, operand| {
        let total = reduced(cx, attrs.to_apply, &joined.arrays(operand)?)?;
        nth_part(cx, shape, total.array()?, dim, joined.me)
    })
}

/// Returns the `n`th of the parts that a dim is cut into.
fn nth_part(
    cx: &Cx<'_, '_>,
    shape: &ArrayShape,
    whole: &Array,
    dim: usize,
    n: usize,
) -> Outcome<Value> {
    let size = shape.dims().get(dim).map_or(0, |&size| extent(size));
    let start = n.saturating_mul(size);
    let room = whole.dims().get(dim).map_or(0, |&size| extent(size));
    if start.saturating_add(size) > room {
        return Err(unsupported("its groups have more devices than its result has parts"));
    }
    part(cx, shape, whole, dim, start)
}

/// Each device gets a part of each: the parts that are its own, in the order of
/// the group.
pub(super) fn all_to_all(cx: &mut Cx<'_, '_>, attrs: &AllToAllAttrs) -> Outcome<Value> {
    let numbers = Numbers::of_channel(attrs.channel_id);
    let devices = group(&attrs.replica_groups, numbers, &cx.evaluator.device)?;
    let joined = join_group(cx, &devices)?;
    let Some(dims) = &attrs.dimensions else {
        let mine = |operands: &Vec<Value>| operands.get(joined.me).cloned();
        let parts = joined.operands.iter().map(mine).collect::<Option<Vec<_>>>();
        return parts.map(tuple).ok_or(unsupported("its groups have more devices than operands"));
    };
    let shape = cx.array_shape()?;
    let dim = dims.first().map_or(0, |&dim| extent(dim));
    let mut sizes = shape.dims().to_vec();
    let count = i64::try_from(devices.len()).unwrap_or(i64::MAX);
    if let Some(size) = sizes.get_mut(dim) {
        if *size % count != 0 {
            return Err(unsupported(format!("a dim of {size} for groups of {count} devices")));
        }
        *size /= count;
    }
    let one = ArrayShape::new(shape.element_type, sizes);
    let arrays = joined.arrays(0)?;
    let parts = arrays.iter().map(|array| nth_part(cx, &one, array, dim, joined.me));
    let parts = parts.collect::<Outcome<Vec<_>>>()?;
    let parts = parts.iter().map(Value::array).collect::<Outcome<Vec<_>>>()?;
    join(cx, shape, &parts, dim)
}

/// Returns for each array the place of its root in the group: the last operand says them.
fn roots(cx: &Cx<'_, '_>, is_dynamic: bool, devices: &[usize]) -> Outcome<Vec<usize>> {
    let arrays = cx.operands.len();
    if !is_dynamic {
        return Ok(vec![0; arrays]);
    }
    let places = rows(cx.array(arrays.saturating_sub(1))?)?;
    match places.iter().find(|&&place| place >= devices.len()) {
        Some(place) => Err(unsupported(format!("a root {place} in a group of {}", devices.len()))),
        None => Ok(places),
    }
}

/// Returns the value of the group's root; zeros if a device is in no group.
pub(super) fn broadcast(cx: &mut Cx<'_, '_>, attrs: &CollectiveBroadcastAttrs) -> Outcome<Value> {
    let numbers = Numbers::of_channel(attrs.channel_id);
    let devices = group(&attrs.replica_groups, numbers, &cx.evaluator.device)?;
    let shape = cx.shape();
    if devices.is_empty() {
        return zero(cx, shape);
    }
    let roots = roots(cx, attrs.has_dynamic_root, &devices)?;
    each_operand(cx, &devices, shape, |_, joined, _, operand| {
        let arrays = joined.arrays(operand)?;
        let root = roots.get(operand).and_then(|&root| arrays.get(root));
        let root = root.ok_or(Fault::Internal("a group has no such device"))?;
        Ok(Value::Array((*root).clone()))
    })
}

/// Returns the arrays of a group combined, on its root; zeros on the others, and if a device is in no
/// group.
pub(super) fn reduce(cx: &mut Cx<'_, '_>, attrs: &CollectiveReduceAttrs) -> Outcome<Value> {
    let numbers = Numbers::of(attrs.channel_id, attrs.use_global_device_ids)?;
    let devices = group(&attrs.replica_groups, numbers, &cx.evaluator.device)?;
    let shape = cx.shape();
    if devices.is_empty() {
        return zero(cx, shape);
    }
    let roots = roots(cx, attrs.has_dynamic_root, &devices)?;
    each_operand(cx, &devices, shape, |cx, joined, shape, operand| {
        if roots.get(operand) == Some(&joined.me) {
            return reduced(cx, attrs.to_apply, &joined.arrays(operand)?);
        }
        zero(cx, &Shape::Array(shape.clone()))
    })
}

/// Rows of the first dim go to the places that their sender names.
///
/// Operands: input, output, then for each device of the group (or several in a
/// row for each): where in the input its rows begin, how many they are, where
/// in its output they go, and how many come from it.
pub(super) fn ragged_all_to_all(cx: &mut Cx<'_, '_>, attrs: &GroupAttrs) -> Outcome<Value> {
    let numbers = Numbers::of_channel(attrs.channel_id);
    let devices = group(&attrs.replica_groups, numbers, &cx.evaluator.device)?;
    let output = cx.array(1)?.clone();
    let row: usize = output.dims().iter().skip(1).map(|&size| extent(size)).product();
    let joined = join_group(cx, &devices)?;
    let (inputs, starts) = (joined.arrays(0)?, joined.arrays(2)?);
    let (counts, places) = (joined.arrays(3)?, joined.arrays(4)?);
    cx.spend(output.len())?;
    output.modify(&cx.evaluator.ledger, |out| {
        for sender in 0..devices.len() {
            let (start, count, place) =
                (rows(starts[sender])?, rows(counts[sender])?, rows(places[sender])?);
            let each = start.len() / devices.len().max(1);
            for update in joined.me * each..(joined.me + 1) * each {
                let from = start[update].saturating_mul(row);
                let to = place[update].saturating_mul(row);
                let length = count[update].saturating_mul(row);
                copy_run(inputs[sender], from, out, to, length)?;
            }
        }
        Ok(())
    })
}

/// Numbers of rows.
fn rows(array: &Array) -> Outcome<Vec<usize>> {
    let wide = super::indexing::index_values(array)?;
    let number = |&row: &i64| {
        usize::try_from(row).map_err(|_| unsupported(format!("a number of rows of {row}")))
    };
    wide.iter().map(number).collect()
}

fn copy_run(
    source: &Array,
    from: usize,
    out: &mut tilewright_ir::Data,
    to: usize,
    length: usize,
) -> Outcome<()> {
    crate::value::with_data!(out, out => {
        let values = crate::value::alike(out, source.data())?;
        let source = values.get(from..from.saturating_add(length));
        let target = out.get_mut(to..to.saturating_add(length));
        match (source, target) {
            (Some(source), Some(target)) => target.copy_from_slice(source),
            _ => return Err(unsupported("rows beyond the end of its input or output")),
        }
    });
    Ok(())
}

pub(super) fn permute(cx: &mut Cx<'_, '_>, attrs: &PermuteAttrs) -> Outcome<Value> {
    let shape = cx.shape();
    permuted(cx, attrs, shape)
}

pub(super) fn permute_start(cx: &mut Cx<'_, '_>, attrs: &PermuteAttrs) -> Outcome<Value> {
    let shape = cx.shape();
    start(cx, shape, |cx, result| permuted(cx, attrs, result))
}

/// Returns the value of this device's source; zeros if it has none.
fn permuted(cx: &mut Cx<'_, '_>, attrs: &PermuteAttrs, shape: &Shape) -> Outcome<Value> {
    if !attrs.slice_sizes.is_empty() {
        return Err(unsupported("it works in place, by slices"));
    }
    let numbers = Numbers::of_channel(attrs.channel_id);
    let pairs = attrs.source_target_pairs.as_slice();
    let operands = std::mem::take(&mut cx.operands);
    let results = cx.evaluator.pass(cx.id, operands, pairs, numbers)?;
    match results {
        Some(results) => Ok(together(shape, results)),
        None => zero(cx, shape),
    }
}

/// Returns the result of a start: its operands, and the result, which is computed at once.
fn start(
    cx: &mut Cx<'_, '_>,
    shape: &Shape,
    make: impl FnOnce(&mut Cx<'_, '_>, &Shape) -> Outcome<Value>,
) -> Outcome<Value> {
    let [given, result, ..] = shape.as_tuple().unwrap_or_default() else {
        return Err(Fault::Internal("a start yields operands and results"));
    };
    let operands = together(given, cx.operands.to_vec());
    let result = make(cx, result)?;
    started(cx, shape, [operands, result])
}

/// Returns the result, which the start made.
pub(super) fn done(cx: &mut Cx<'_, '_>) -> Outcome<Value> {
    element(cx, 1)
}
