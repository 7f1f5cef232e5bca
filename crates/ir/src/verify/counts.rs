//! Checks device counts: the counts in the header against groups and pairs of collectives, and
//! the sizes that they split and join.

use super::Report;
use super::devices::Verdict;
use crate::diag::DiagnosticPlace;
use crate::entity::InstId;
use crate::module::Module;
use crate::ops::{Op, Opcode};
use crate::types::devices::{Mesh, ReplicaGroups};
use crate::types::shape::{Shape, UNBOUNDED};

/// The meaning of the numbers in groups and pairs.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Numbers {
    /// Replicas, in each partition separately.
    Replicas,
    /// Replicas, with all their partitions.
    ReplicasWithPartitions,
    /// Partitions, in each replica separately.
    Partitions,
    /// Partitions of replicas, numbered consecutively.
    Devices,
}

pub(super) fn check(module: &Module, id: InstId, report: &mut Report) {
    let mut add = |verdict: Verdict| {
        if let Err((code, message)) = verdict {
            report.add(code, DiagnosticPlace::Instruction(id), message);
        }
    };
    if let Op::CollectivePermute(attrs) | Op::CollectivePermuteStart(attrs) = module.op(id) {
        add(judge_ends(module, attrs.channel_id.is_some(), &attrs.source_target_pairs));
    } else if let Some((groups, numbers)) = groups_of(module.op(id)) {
        add(judge_count(module, groups, numbers));
        add(judge_sizes(module, id, groups, numbers));
    }
}

/// Returns the groups of an op in which all devices must take part, and what their numbers
/// stand for.
fn groups_of(op: &Op) -> Option<(&ReplicaGroups, Numbers)> {
    let of_one = |channel: Option<i64>| match channel {
        Some(_) => Numbers::Partitions,
        None => Numbers::Replicas,
    };
    let of_all = |channel: Option<i64>, global: bool| match channel {
        Some(_) if global => Numbers::Devices,
        Some(_) => Numbers::ReplicasWithPartitions,
        None => Numbers::Replicas,
    };
    Some(match op {
        Op::AllGather(attrs) | Op::AllGatherStart(attrs) => {
            (&attrs.replica_groups, of_all(attrs.channel_id, attrs.use_global_device_ids))
        }
        Op::AllReduce(attrs) | Op::AllReduceStart(attrs) => {
            (&attrs.replica_groups, of_all(attrs.channel_id, attrs.use_global_device_ids))
        }
        Op::ReduceScatter(attrs) => {
            (&attrs.replica_groups, of_all(attrs.channel_id, attrs.use_global_device_ids))
        }
        Op::AllToAll(attrs) => (&attrs.replica_groups, of_one(attrs.channel_id)),
        Op::RaggedAllToAll(attrs) => (&attrs.replica_groups, of_one(attrs.channel_id)),
        _ => return None,
    })
}

/// Returns a count in the header if it is more than one, because 1 is also written if the count
/// is unknown.
fn stated(count: Option<i64>) -> Option<i64> {
    count.filter(|&count| count > 1)
}

fn count_of(module: &Module, numbers: Numbers) -> Option<(&'static str, i64)> {
    let header = &module.header;
    let (replicas, partitions) = (stated(header.replica_count), stated(header.num_partitions));
    match numbers {
        Numbers::Replicas | Numbers::ReplicasWithPartitions => {
            replicas.map(|count| ("replica_count", count))
        }
        Numbers::Partitions => partitions.map(|count| ("num_partitions", count)),
        Numbers::Devices => {
            let count = replicas.unwrap_or(1).checked_mul(partitions.unwrap_or(1))?;
            stated(Some(count)).map(|count| ("replica_count times num_partitions", count))
        }
    }
}

fn judge_ends(module: &Module, has_channel: bool, pairs: &[(i64, i64)]) -> Verdict {
    let numbers = if has_channel { Numbers::Partitions } else { Numbers::Replicas };
    let Some((name, count)) = count_of(module, numbers) else { return Ok(()) };
    match pairs.iter().flat_map(|&(source, target)| [source, target]).find(|&end| end >= count) {
        None => Ok(()),
        Some(end) => {
            let message = format!("source_target_pairs names device {end}, but {name} is {count}");
            Err((super::PAIRS, message))
        }
    }
}

fn judge_count(module: &Module, groups: &ReplicaGroups, numbers: Numbers) -> Verdict {
    let Some((name, count)) = count_of(module, numbers) else { return Ok(()) };
    let given = match groups {
        ReplicaGroups::Lists(lists) if lists.is_empty() => return Ok(()),
        ReplicaGroups::Lists(lists) => {
            i64::try_from(lists.iter().map(Vec::len).sum::<usize>()).ok()
        }
        ReplicaGroups::Iota { devices, .. } => devices.count(),
        ReplicaGroups::Mesh { mesh, .. } => mesh_size(mesh),
    };
    match given {
        Some(given) if given != count => {
            let message =
                format!("replica_groups has {given} devices in all, but {name} is {count}");
            Err((super::GROUPS, message))
        }
        Some(_) | None => Ok(()),
    }
}

pub(super) fn mesh_size(mesh: &Mesh) -> Option<i64> {
    mesh.axes.iter().try_fold(1i64, |count, axis| count.checked_mul(axis.size))
}

/// Returns the number of devices in each group; another check compares groups of different
/// sizes.
fn group_size(module: &Module, groups: &ReplicaGroups, numbers: Numbers) -> Option<i64> {
    let size = match groups {
        ReplicaGroups::Lists(lists) => match lists.first() {
            Some(first) => i64::try_from(first.len()).ok()?,
            None => count_of(module, numbers)?.1,
        },
        ReplicaGroups::Iota { size, .. } => *size,
        ReplicaGroups::Mesh { mesh, axes } => axes.iter().try_fold(1i64, |size, axis| {
            let whole = mesh.axes.get(axis.axis)?.size;
            size.checked_mul(axis.sub_axis.map_or(whole, |part| part.size))
        })?,
    };
    let partitions = match numbers {
        // The number of partitions is optional in the header, and proto does not contain it.
        Numbers::ReplicasWithPartitions => module.header.num_partitions?,
        Numbers::Replicas | Numbers::Partitions | Numbers::Devices => 1,
    };
    stated(size.checked_mul(partitions))
}

/// Checks that the part of each device times the devices of a group is the whole.
fn judge_sizes(module: &Module, id: InstId, groups: &ReplicaGroups, numbers: Numbers) -> Verdict {
    let Some(devices) = group_size(module, groups, numbers) else { return Ok(()) };
    let Some((dim, whole, part)) = whole_and_part(module, id) else { return Ok(()) };
    let opcode = module.opcode(id);
    let fits = match part {
        Some(part) => {
            whole == UNBOUNDED || part == UNBOUNDED || part.checked_mul(devices) == Some(whole)
        }
        None => whole == UNBOUNDED || whole.checked_rem(devices) == Some(0),
    };
    if fits {
        return Ok(());
    }
    let message = match part {
        Some(part) => format!(
            "`{opcode}` among {devices} devices of a group relates {part} and {whole} elements of \
             dim {dim}; one is {devices} times the other"
        ),
        None => format!(
            "`{opcode}` among {devices} devices of a group cannot cut the {whole} elements of dim \
             {dim} into as many parts"
        ),
    };
    Err((super::GROUPS, message))
}

/// Returns the sizes that an op relates for its first array: the dim that is split or joined,
/// the whole size of that dim, and the size of a part if a shape contains it.
fn whole_and_part(module: &Module, id: InstId) -> Option<(i64, i64, Option<i64>)> {
    let first = |shape: &Shape| match shape {
        Shape::Tuple(elements) => elements.first()?.as_array().cloned(),
        other => other.as_array().cloned(),
    };
    let operand = first(module.shape(*module.operands(id).first()?))?;
    let result = module.shape(id);
    let result = match module.opcode(id) {
        Opcode::AllGatherStart => result.as_tuple()?.get(1)?,
        _ => result,
    };
    let size = |shape: &crate::types::shape::ArrayShape, dim: i64| {
        shape.dims().get(usize::try_from(dim).ok()?).copied()
    };
    match module.op(id) {
        Op::AllGather(attrs) | Op::AllGatherStart(attrs) => {
            let dim = *attrs.dimensions.first()?;
            Some((dim, size(&first(result)?, dim)?, Some(size(&operand, dim)?)))
        }
        Op::ReduceScatter(attrs) => {
            let dim = *attrs.dimensions.first()?;
            Some((dim, size(&operand, dim)?, Some(size(&first(result)?, dim)?)))
        }
        Op::AllToAll(attrs) => {
            let dim = *attrs.dimensions.as_ref()?.first()?;
            Some((dim, size(&operand, dim)?, None))
        }
        _ => None,
    }
}
