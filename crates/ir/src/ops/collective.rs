//! Collectives: ops that involve several devices.

use super::Op;
use super::attr::attributes;
use crate::entity::CompId;
use crate::infer::{ShapeError, ShapeQuery, check_dims, scalar};
use crate::types::devices::ReplicaGroups;
use crate::types::element::ElementType;
use crate::types::shape::{ArrayShape, Dims, Shape};

attributes! {
    /// Attributes of `all-gather` and its start.
    pub struct AllGatherAttrs: Default {
        /// The channel, if devices of several partitions take part.
        channel_id: Option<i64> = "channel_id",
        /// The groups of devices that work together.
        replica_groups: Box<ReplicaGroups> = "replica_groups",
        /// Whether layouts must be kept.
        constrain_layout: bool = "constrain_layout" or false,
        /// The one dim along which data is joined.
        dimensions: Dims = "dimensions",
        /// Whether the groups number devices rather than replicas.
        use_global_device_ids: bool = "use_global_device_ids" or false,
    }

    /// Attributes of `all-reduce` and its start.
    pub struct AllReduceAttrs {
        /// The channel, if devices of several partitions take part.
        channel_id: Option<i64> = "channel_id",
        /// The groups of devices that work together.
        replica_groups: Box<ReplicaGroups> = "replica_groups",
        /// Whether layouts must be kept.
        constrain_layout: bool = "constrain_layout" or false,
        /// Whether the groups number devices rather than replicas.
        use_global_device_ids: bool = "use_global_device_ids" or false,
        /// Combines elements of two devices.
        to_apply: CompId = "to_apply",
    }

    /// Attributes of `reduce-scatter`.
    pub struct ReduceScatterAttrs {
        /// The channel, if devices of several partitions take part.
        channel_id: Option<i64> = "channel_id",
        /// The groups of devices that work together.
        replica_groups: Box<ReplicaGroups> = "replica_groups",
        /// Whether layouts must be kept.
        constrain_layout: bool = "constrain_layout" or false,
        /// Whether the groups number devices rather than replicas.
        use_global_device_ids: bool = "use_global_device_ids" or false,
        /// The one dim that is split between the devices.
        dimensions: Dims = "dimensions",
        /// Combines elements of two devices.
        to_apply: CompId = "to_apply",
    }

    /// Attributes of `all-to-all`.
    pub struct AllToAllAttrs: Default {
        /// The channel, if devices of several partitions take part.
        channel_id: Option<i64> = "channel_id",
        /// The groups of devices that work together.
        replica_groups: Box<ReplicaGroups> = "replica_groups",
        /// Whether layouts must be kept.
        constrain_layout: bool = "constrain_layout" or false,
        /// The one dim that is split and joined; if absent, each operand is a part.
        dimensions: Option<Dims> = "dimensions",
    }

    /// Attributes of `collective-broadcast`.
    pub struct CollectiveBroadcastAttrs: Default {
        /// The channel, if devices of several partitions take part.
        channel_id: Option<i64> = "channel_id",
        /// The groups of devices that work together.
        replica_groups: Box<ReplicaGroups> = "replica_groups",
        /// Whether the last operand says which device of each group has the values, by its place in
        /// the group: `s32[n]` for n arrays. Otherwise the first one has them.
        has_dynamic_root: bool = "has_dynamic_root" or false,
    }

    /// Attributes of `collective-reduce`.
    pub struct CollectiveReduceAttrs {
        /// The channel, if devices of several partitions take part.
        channel_id: Option<i64> = "channel_id",
        /// The groups of devices that work together.
        replica_groups: Box<ReplicaGroups> = "replica_groups",
        /// Whether the groups number devices rather than replicas.
        use_global_device_ids: bool = "use_global_device_ids" or false,
        /// Whether the last operand says which device of each group gets the results, by its place in
        /// the group: `s32[n]` for n arrays. Otherwise the first one gets them.
        has_dynamic_root: bool = "has_dynamic_root" or false,
        /// Combines elements of two devices.
        to_apply: CompId = "to_apply",
    }

    /// Attributes of `ragged-all-to-all`.
    pub struct GroupAttrs: Default {
        /// The channel, if devices of several partitions take part.
        channel_id: Option<i64> = "channel_id",
        /// The groups of devices that work together.
        replica_groups: Box<ReplicaGroups> = "replica_groups",
    }

    /// Attributes of `collective-permute` and its start.
    pub struct PermuteAttrs: Default {
        /// The channel, if devices of several partitions take part.
        channel_id: Option<i64> = "channel_id",
        /// Sender and receiver of each transfer.
        source_target_pairs: Vec<(i64, i64)> = "source_target_pairs",
        /// The sizes of the slices sent, if it works in place.
        slice_sizes: Vec<Dims> = "slice_sizes" or Vec::new(),
    }
}

impl AllReduceAttrs {
    /// Attributes for a reduction among all replicas, without a channel.
    pub fn new(to_apply: CompId) -> Self {
        Self {
            channel_id: None,
            replica_groups: Box::default(),
            constrain_layout: false,
            use_global_device_ids: false,
            to_apply,
        }
    }
}

impl Op {
    /// Returns the number of the channel of a collective, if it has one. It tells collectives
    /// apart; whether there is one changes what the groups of devices number.
    pub fn channel_id(&self) -> Option<i64> {
        match self {
            Op::AllGather(attrs) => attrs.channel_id,
            Op::AllReduce(attrs) => attrs.channel_id,
            Op::AllToAll(attrs) => attrs.channel_id,
            Op::CollectivePermute(attrs) => attrs.channel_id,
            Op::ReduceScatter(attrs) => attrs.channel_id,
            _ => None,
        }
    }

    /// Gives a collective that has a channel another number of it; returns whether it has one.
    pub fn set_channel_id(&mut self, number: i64) -> bool {
        let channel = match self {
            Op::AllGather(attrs) => &mut attrs.channel_id,
            Op::AllReduce(attrs) => &mut attrs.channel_id,
            Op::AllToAll(attrs) => &mut attrs.channel_id,
            Op::CollectivePermute(attrs) => &mut attrs.channel_id,
            Op::ReduceScatter(attrs) => &mut attrs.channel_id,
            _ => return false,
        };
        channel.as_mut().map(|channel| *channel = number).is_some()
    }
}

impl ReduceScatterAttrs {
    /// Attributes for a reduction among all replicas, without a channel.
    pub fn new(scatter_dimension: i64, to_apply: CompId) -> Self {
        Self {
            channel_id: None,
            replica_groups: Box::default(),
            constrain_layout: false,
            use_global_device_ids: false,
            dimensions: Dims::from_slice(&[scatter_dimension]),
            to_apply,
        }
    }
}

/// Returns a single shape as it is; several shapes as a tuple.
fn together(mut shapes: Vec<Shape>) -> Shape {
    if shapes.len() == 1 { shapes.remove(0) } else { Shape::Tuple(shapes) }
}

fn operands(q: &ShapeQuery<'_>) -> Shape {
    together(q.operands.iter().map(|shape| shape.without_layout()).collect())
}

/// Returns the single entry of `dims`, a dim that each operand has.
fn one_dim(q: &ShapeQuery<'_>, dims: &[i64]) -> Result<usize, ShapeError> {
    let opcode = q.op.opcode();
    let &[dim] = dims else {
        return Err(ShapeError::attribute(format!("`{opcode}` takes one dim, not {}", dims.len())));
    };
    for index in 0..q.operands.len() {
        check_dims(&format!("`{opcode}` dimensions"), dims, q.array(index)?.rank())?;
    }
    Ok(usize::try_from(dim).unwrap_or(0))
}

/// Checks that results differ from their operands by one factor along one dim. `large` are the
/// shapes with more elements.
fn check_parts(
    q: &ShapeQuery<'_>,
    large: &[&Shape],
    small: &[&Shape],
    dim: usize,
) -> Result<(), ShapeError> {
    let mut factor = None;
    let parts = |large: &ArrayShape, small: &ArrayShape| -> Option<i64> {
        let (whole, part) = (*large.dims().get(dim)?, *small.dims().get(dim)?);
        let others = |shape: &ArrayShape| -> Dims {
            let dims = shape.dims().iter().enumerate();
            dims.filter(|&(at, _)| at != dim).map(|(_, &size)| size).collect()
        };
        let alike =
            others(large) == others(small) && q.same_type(large.element_type, small.element_type);
        match (whole, part) {
            _ if !alike => None,
            (0, 0) => Some(0),
            (whole, part) if part > 0 && whole % part == 0 => Some(whole / part),
            _ => None,
        }
    };
    for (large, small) in large.iter().zip(small) {
        let found = large.as_array().zip(small.as_array()).and_then(|(l, s)| parts(l, s));
        if !found.is_some_and(|found| found == 0 || *factor.get_or_insert(found) == found) {
            return Err(ShapeError::result(format!(
                "`{}` of dim {dim} cannot relate {small} and {large}: all other dims must be \
                 the same, and all its arrays grow by one factor",
                q.op.opcode()
            )));
        }
    }
    Ok(())
}

/// Returns the declared result of an op with as many arrays as operands.
fn declared_arrays<'a>(q: &ShapeQuery<'a>) -> Result<Vec<&'a Shape>, ShapeError> {
    let shape = q.declared()?;
    arrays_of(q, shape)
}

fn arrays_of<'a>(q: &ShapeQuery<'_>, shape: &'a Shape) -> Result<Vec<&'a Shape>, ShapeError> {
    let arrays: Vec<&Shape> = match shape {
        Shape::Tuple(elements) => elements.iter().collect(),
        other => vec![other],
    };
    let (opcode, operands) = (q.op.opcode(), q.operands.len());
    if arrays.len() == operands {
        return Ok(arrays);
    }
    let count = arrays.len();
    Err(ShapeError::result(format!("`{opcode}` of {operands} operands yields {count} arrays")))
}

/// The result concatenates the parts of all devices along the dim.
pub(super) fn all_gather(q: &ShapeQuery<'_>, attrs: &AllGatherAttrs) -> Result<Shape, ShapeError> {
    let dim = one_dim(q, &attrs.dimensions)?;
    check_parts(q, &declared_arrays(q)?, q.operands, dim)?;
    q.declared().cloned()
}

/// The result is a tuple of the operands and the result of `all-gather`.
pub(super) fn all_gather_start(
    q: &ShapeQuery<'_>,
    attrs: &AllGatherAttrs,
) -> Result<Shape, ShapeError> {
    let dim = one_dim(q, &attrs.dimensions)?;
    let shape = q.declared()?;
    let [given, gathered, ..] = shape.as_tuple().unwrap_or_default() else {
        return Err(ShapeError::result(format!(
            "`all-gather-start` yields its operands and the result, not {shape}"
        )));
    };
    check_given(q, given)?;
    check_parts(q, &arrays_of(q, gathered)?, q.operands, dim)?;
    Ok(shape.clone())
}

/// Checks the first element of a start's result: its operands.
fn check_given(q: &ShapeQuery<'_>, given: &Shape) -> Result<(), ShapeError> {
    let expected = operands(q);
    if q.compatible(given, &expected) {
        return Ok(());
    }
    let opcode = q.op.opcode();
    Err(ShapeError::result(format!("`{opcode}` yields {expected} first, not {given}")))
}

/// The computation's signature is not checked, as in XLA.
pub(super) fn all_reduce(q: &ShapeQuery<'_>, _attrs: &AllReduceAttrs) -> Result<Shape, ShapeError> {
    Ok(operands(q))
}

pub(super) fn all_reduce_start(
    q: &ShapeQuery<'_>,
    attrs: &AllReduceAttrs,
) -> Result<Shape, ShapeError> {
    all_reduce(q, attrs)
}

pub(super) fn all_reduce_done(q: &ShapeQuery<'_>) -> Result<Shape, ShapeError> {
    Ok(q.operand(0)?.without_layout())
}

/// The result is the second element of the start's result.
pub(super) fn done(q: &ShapeQuery<'_>) -> Result<Shape, ShapeError> {
    let operand = q.operand(0)?;
    match operand.as_tuple() {
        Some([_, result, ..]) => Ok(result.without_layout()),
        _ => Err(ShapeError::operand(format!(
            "`{}` takes what its start yields, a tuple of operands and results, not {operand}",
            q.op.opcode()
        ))),
    }
}

pub(super) fn reduce_scatter(
    q: &ShapeQuery<'_>,
    attrs: &ReduceScatterAttrs,
) -> Result<Shape, ShapeError> {
    let dim = one_dim(q, &attrs.dimensions)?;
    check_parts(q, q.operands, &declared_arrays(q)?, dim)?;
    q.declared().cloned()
}

pub(super) fn all_to_all(q: &ShapeQuery<'_>, attrs: &AllToAllAttrs) -> Result<Shape, ShapeError> {
    let Some(dims) = &attrs.dimensions else {
        let first = q.operand(0)?;
        if let Some(other) = q.operands.iter().find(|shape| !shape.compatible(first)) {
            return Err(ShapeError::operand(format!(
                "`all-to-all` gives each device an operand of one shape, not {first} and {other}"
            )));
        }
        return Ok(Shape::Tuple(q.operands.iter().map(|shape| shape.without_layout()).collect()));
    };
    one_dim(q, dims)?;
    match q.operands {
        [operand] => Ok(operand.without_layout()),
        _ => Err(ShapeError::operand("`all-to-all` along a dim takes one operand")),
    }
}

pub(super) fn broadcast(
    q: &ShapeQuery<'_>,
    attrs: &CollectiveBroadcastAttrs,
) -> Result<Shape, ShapeError> {
    rooted(q, attrs.has_dynamic_root)
}

/// The computation's signature is not checked, as in XLA.
pub(super) fn reduce(
    q: &ShapeQuery<'_>,
    attrs: &CollectiveReduceAttrs,
) -> Result<Shape, ShapeError> {
    rooted(q, attrs.has_dynamic_root)
}

/// The operands, without the last one if that names a root for each of the others.
fn rooted(q: &ShapeQuery<'_>, has_dynamic_root: bool) -> Result<Shape, ShapeError> {
    let Some((roots, arrays)) = q.operands.split_last().filter(|_| has_dynamic_root) else {
        return Ok(operands(q));
    };
    let count = i64::try_from(arrays.len()).unwrap_or(i64::MAX);
    let expected = Shape::array(ElementType::S32, [count]);
    if arrays.is_empty() || !roots.compatible(&expected) {
        return Err(ShapeError::operand(format!(
            "`{}` with has_dynamic_root takes a root for each array last, {expected}, not {roots}",
            q.op.opcode()
        )));
    }
    Ok(match arrays {
        [only] => only.without_layout(),
        several => Shape::Tuple(several.iter().map(|shape| shape.without_layout()).collect()),
    })
}

/// Operands: input, output, and the offsets and sizes of the slices sent and received.
pub(super) fn ragged_all_to_all(
    q: &ShapeQuery<'_>,
    _attrs: &GroupAttrs,
) -> Result<Shape, ShapeError> {
    let (input, output) = (q.array(0)?, q.array(1)?);
    if input.element_type != output.element_type {
        return Err(ShapeError::operand(format!(
            "input {input} and output {output} of `ragged-all-to-all` must have one element type"
        )));
    }
    let first = q.array(2)?;
    for index in 2..q.operands.len() {
        let sizes = q.array(index)?;
        if !matches!(sizes.rank(), 1 | 2) || !sizes.compatible(first) {
            return Err(ShapeError::operand(format!(
                "`ragged-all-to-all` takes offsets and sizes of one shape and rank 1 or 2, not \
                 {first} and {sizes}"
            )));
        }
    }
    Ok(q.operand(1)?.without_layout())
}

/// In place, the operands are input, output, and the start indices of the slices in each.
pub(super) fn permute(q: &ShapeQuery<'_>, attrs: &PermuteAttrs) -> Result<Shape, ShapeError> {
    if attrs.slice_sizes.is_empty() {
        return Ok(operands(q));
    }
    if q.operands.len() != 4 {
        return Err(ShapeError::operand(format!(
            "`{}` with slice_sizes takes input, output and the starts in each, not {} operands",
            q.op.opcode(),
            q.operands.len()
        )));
    }
    check_slices(q)?;
    Ok(q.operand(1)?.without_layout())
}

/// Operands are single arrays or tuples of equally many arrays: inputs, outputs, and the start
/// indices of their slices.
fn check_slices(q: &ShapeQuery<'_>) -> Result<(), ShapeError> {
    let (input, output) = (q.operand(0)?, q.operand(1)?);
    let (inputs, outputs) = match (input, output) {
        (Shape::Tuple(inputs), Shape::Tuple(outputs)) if inputs.len() == outputs.len() => {
            (inputs.as_slice(), outputs.as_slice())
        }
        (Shape::Array(_), Shape::Array(_)) => {
            (std::slice::from_ref(input), std::slice::from_ref(output))
        }
        _ => {
            return Err(ShapeError::operand(format!(
                "`{}` with slice_sizes takes as many inputs as outputs, not {input} and {output}",
                q.op.opcode()
            )));
        }
    };
    for (number, buffers) in [(2, inputs), (3, outputs)] {
        let starts = q.operand(number)?;
        let each = match input {
            Shape::Tuple(_) => starts.as_tuple().unwrap_or_default(),
            _ => std::slice::from_ref(starts),
        };
        let fits = each.len() == buffers.len()
            && each.iter().zip(buffers).all(|(starts, buffer)| are_starts(starts, buffer));
        if !fits {
            return Err(ShapeError::operand(format!(
                "`{}` takes for each slice of operand {} an index for each dim of it, not {starts}",
                q.op.opcode(),
                number - 2
            )));
        }
    }
    Ok(())
}

/// Checks whether a tuple has an index for each dim of an array, or one tuple of these indices
/// for each slice.
fn are_starts(starts: &Shape, array: &Shape) -> bool {
    let (Some(starts), Some(array)) = (starts.as_tuple(), array.as_array()) else { return false };
    let is_start = |start: &Shape| start.as_tuple().is_some_and(|s| s.len() == array.rank());
    if starts.iter().all(|start| start.as_tuple().is_some()) {
        return starts.iter().all(is_start);
    }
    starts.len() == array.rank() && starts.iter().all(|start| start.as_array().is_some())
}

/// The result is a tuple of the operands, the result of `collective-permute`, and contexts of
/// the device.
pub(super) fn permute_start(q: &ShapeQuery<'_>, attrs: &PermuteAttrs) -> Result<Shape, ShapeError> {
    let expected = permute(q, attrs)?;
    let shape = q.declared()?;
    match shape.as_tuple() {
        Some([_, result, ..]) if q.compatible(result, &expected) => Ok(shape.clone()),
        _ => Err(ShapeError::result(format!(
            "`collective-permute-start` yields its operands and {expected}, not {shape}"
        ))),
    }
}

/// `partition-id` and `replica-id`.
pub(super) fn device_id(_q: &ShapeQuery<'_>) -> Result<Shape, ShapeError> {
    Ok(scalar(ElementType::U32))
}
