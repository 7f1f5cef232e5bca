//! Checks devices: meshes, groups of collectives, senders and receivers.

use rustc_hash::{FxHashMap, FxHashSet};

use super::Report;
use crate::diag::{Code, DiagnosticPlace};
use crate::entity::InstId;
use crate::module::Module;
use crate::ops::attr::{AttrKind, AttrValue};
use crate::ops::{Op, Opcode};
use crate::types::devices::{AxisRef, IotaDevices, Mesh, MeshDevices, ReplicaGroups};
use crate::types::shape::Shape;

/// The error in an attribute, if there is one.
pub(super) type Verdict = Result<(), (Code, String)>;

pub(super) fn check(module: &Module, id: InstId, report: &mut Report) {
    let opcode = module.opcode(id);
    if !opcode.attrs().iter().any(|spec| concerns_devices(spec.name, spec.kind)) {
        return;
    }
    let mut uses_global_ids = false;
    let mut has_channel = false;
    let mut has_groups = true;
    let mut add = |verdict: Verdict| {
        if let Err((code, message)) = verdict {
            report.add(code, DiagnosticPlace::Instruction(id), message);
        }
    };
    module.op(id).for_each_attr(&mut |name, value| match value {
        AttrValue::ReplicaGroups(groups) => {
            has_groups = *groups != ReplicaGroups::default();
            add(judge_groups(opcode, &groups));
            add(judge_sizes(module, id, &groups));
        }
        AttrValue::Pairs(pairs) if name == "source_target_pairs" => {
            add(judge_pairs(&pairs, slices_sent(module, id)));
        }
        AttrValue::Int(channel) if name == "channel_id" => {
            has_channel = true;
            add(judge_channel(opcode, channel));
        }
        AttrValue::Bool(uses) if name == "use_global_device_ids" => uses_global_ids = uses,
        _ => {}
    });
    if uses_global_ids && !has_channel {
        let message = "use_global_device_ids needs a channel_id; add one or leave it out";
        add(Err((super::CHANNEL, message.into())));
    } else if uses_global_ids && !has_groups {
        let message = "use_global_device_ids needs replica_groups; write which devices they have";
        add(Err((super::GROUPS, message.into())));
    }
}

/// Checks `constrain_layout`: XLA requires that either all `all-reduce` instructions of a module
/// have it or none.
pub(super) fn check_constrained(module: &Module, report: &mut Report) {
    let all =
        module.computations().iter().flat_map(|&computation| module.instructions(computation));
    let mut reductions = all.filter_map(|id| match module.op(id) {
        Op::AllReduce(attrs) | Op::AllReduceStart(attrs) => Some((id, attrs.constrain_layout)),
        _ => None,
    });
    let Some((first, constrained)) = reductions.next() else { return };
    if let Some((other, _)) = reductions.find(|&(_, other)| other != constrained) {
        let message = format!(
            "constrain_layout is {}, but {constrained} in `{}`; it is the same in all all-reduces",
            !constrained,
            module.name_of(first)
        );
        report.add(super::CONSTRAINED, DiagnosticPlace::Instruction(other), message);
    }
}

fn concerns_devices(name: &str, kind: AttrKind) -> bool {
    kind == AttrKind::ReplicaGroups || matches!(name, "source_target_pairs" | "channel_id")
}

/// XLA writes channel 0 if no channel is needed, except for `all-reduce`.
fn judge_channel(opcode: Opcode, channel: i64) -> Verdict {
    let first = i64::from(opcode == Opcode::AllReduce);
    if channel >= first {
        return Ok(());
    }
    let message =
        format!("channel_id is {channel}; channels of `{opcode}` are numbered from {first}");
    Err((super::CHANNEL, message))
}

/// Returns the number of slices that a device may send: one, or as many as there are starts if
/// `collective-permute` works in place.
fn slices_sent(module: &Module, id: InstId) -> usize {
    let &[input, _, starts, _] = module.operands(id) else { return 1 };
    let starts = module.shape(starts).as_tuple().unwrap_or_default();
    // A tuple of inputs has one tuple of starts per input.
    let starts = match (module.shape(input), starts.first()) {
        (Shape::Tuple(_), Some(of_first)) => of_first.as_tuple().unwrap_or_default(),
        _ => starts,
    };
    starts.len().max(1)
}

fn judge_pairs(pairs: &[(i64, i64)], allowed: usize) -> Verdict {
    let ends = [
        ("source", pairs.iter().map(|pair| pair.0).collect::<Vec<_>>()),
        ("target", pairs.iter().map(|pair| pair.1).collect()),
    ];
    for (what, devices) in ends {
        let mut seen: FxHashMap<i64, usize> = FxHashMap::default();
        for device in devices {
            if device < 0 {
                let message = format!(
                    "source_target_pairs has the {what} {device}; devices are numbered from 0"
                );
                return Err((super::PAIRS, message));
            }
            let count = seen.entry(device).or_default();
            *count = count.saturating_add(1);
            if *count > allowed {
                let message = format!(
                    "device {device} is the {what} of {count} source_target_pairs; keep {allowed} \
                     of them"
                );
                return Err((super::PAIRS, message));
            }
        }
    }
    Ok(())
}

/// A device outside the groups of a broadcast, or of a reduction to one device, gets zeros; other ops
/// require that each device is in a group.
fn judge_groups(opcode: Opcode, groups: &ReplicaGroups) -> Verdict {
    let wrong = |message| Err((super::GROUPS, message));
    match groups {
        ReplicaGroups::Lists(lists) => {
            if lists.iter().any(Vec::is_empty) {
                return wrong("replica_groups has a group without devices; leave it out".into());
            }
            let ids = lists.iter().flatten();
            let has_gaps =
                [Opcode::CollectiveBroadcast, Opcode::CollectiveReduce].contains(&opcode);
            let gap = || id_beyond(ids.clone()).filter(|_| !has_gaps);
            match unlike_ids(ids.clone()).or_else(gap) {
                Some(problem) => wrong(format!("replica_groups {problem}")),
                None => Ok(()),
            }
        }
        ReplicaGroups::Iota { groups, size, devices } => {
            if let Some(problem) = wrong_iota(devices) {
                return wrong(format!("replica_groups {problem}"));
            }
            let counted = groups.checked_mul(*size).filter(|_| *groups > 0 && *size > 0);
            if counted.is_some() && counted == devices.count() {
                return Ok(());
            }
            let count = devices.count().unwrap_or(0);
            wrong(format!("replica_groups has {groups} groups of {size}, but {count} devices"))
        }
        ReplicaGroups::Mesh { mesh, axes } => {
            judge_mesh(mesh)?;
            judge_axes(mesh, axes.iter())
        }
    }
}

/// Checks that groups have the same size if the op splits data by groups, and that it then has as
/// many operands as a group has devices, if each device gets one.
fn judge_sizes(module: &Module, id: InstId, groups: &ReplicaGroups) -> Verdict {
    let opcode = module.opcode(id);
    if !cuts_by_group(opcode) {
        return Ok(());
    }
    let Some(lists) = groups.lists() else { return Ok(()) };
    let Some(first) = lists.first() else { return Ok(()) };
    if let Some(other) = lists.iter().find(|list| list.len() != first.len()) {
        let message = format!(
            "`{opcode}` cuts by the size of its replica_groups, which must be the same: one has \
             {} devices, another {}",
            first.len(),
            other.len()
        );
        return Err((super::GROUPS, message));
    }
    let operands = module.operands(id).len();
    let gives_each_a_part =
        matches!(module.op(id), Op::AllToAll(attrs) if attrs.dimensions.is_none());
    if gives_each_a_part && operands != first.len() {
        let message = format!(
            "`{opcode}` gives each of {} devices of a group an operand, but has {operands}",
            first.len()
        );
        return Err((super::GROUPS, message));
    }
    Ok(())
}

/// Checks whether shapes depend on the number of devices in a group.
fn cuts_by_group(opcode: Opcode) -> bool {
    matches!(
        opcode,
        Opcode::AllGather
            | Opcode::AllGatherStart
            | Opcode::AllToAll
            | Opcode::RaggedAllToAll
            | Opcode::ReduceScatter
    )
}

/// Returns the error in ids that must be distinct.
pub(super) fn unlike_ids<'a>(ids: impl Iterator<Item = &'a i64>) -> Option<String> {
    let mut seen = FxHashSet::default();
    for &id in ids {
        if id < 0 {
            return Some(format!("names device {id}; devices are numbered from 0"));
        }
        if !seen.insert(id) {
            return Some(format!("names device {id} twice"));
        }
    }
    None
}

/// Returns the error in distinct ids that leave a gap.
fn id_beyond<'a>(ids: impl Iterator<Item = &'a i64> + Clone) -> Option<String> {
    let count = i64::try_from(ids.clone().count()).unwrap_or(i64::MAX);
    let beyond = ids.into_iter().find(|&&id| id >= count)?;
    Some(format!("names device {beyond}, but has {count} in all; each below {count} takes part"))
}

/// Returns the error in a reshaped and transposed sequence of devices.
pub(super) fn wrong_iota(devices: &IotaDevices) -> Option<String> {
    if let Some(size) = devices.reshape_dims.iter().find(|&&size| size < 1) {
        return Some(format!("reshapes its devices to a size of {size}; sizes are 1 or more"));
    }
    if devices.count().is_none() {
        return Some("has more devices than 64 bits can count".into());
    }
    let mut sorted = devices.transpose_perm.clone();
    sorted.sort_unstable();
    let is_permutation = sorted.iter().copied().eq((0i64..).take(devices.reshape_dims.len()));
    (!is_permutation).then(|| {
        format!("transposes its {} sizes by no permutation of them", devices.reshape_dims.len())
    })
}

pub(super) fn judge_mesh(mesh: &Mesh) -> Verdict {
    let wrong = |message| Err((super::MESH, message));
    let mut names = FxHashSet::default();
    for axis in &mesh.axes {
        if axis.size < 1 {
            return wrong(format!(
                "mesh axis `{}` has size {}, not 1 or more",
                axis.name, axis.size
            ));
        }
        if !names.insert(&axis.name) {
            return wrong(format!("the mesh has two axes `{}`; rename one", axis.name));
        }
    }
    let product = mesh.axes.iter().try_fold(1i64, |count, axis| count.checked_mul(axis.size));
    let Some(count) = product else {
        return wrong("the mesh has more devices than 64 bits can count".into());
    };
    let given = match &mesh.devices {
        MeshDevices::InOrder => return Ok(()),
        // A single device can have any number: `maximal_mesh[device_id=3]`.
        MeshDevices::List(ids) if mesh.axes.is_empty() && ids.len() == 1 => {
            return match unlike_ids(ids.iter()) {
                Some(problem) => wrong(format!("the mesh {problem}")),
                None => Ok(()),
            };
        }
        MeshDevices::List(ids) => i64::try_from(ids.len()).ok(),
        MeshDevices::Iota(devices) => match wrong_iota(devices) {
            Some(problem) => return wrong(format!("the mesh {problem}")),
            None => devices.count(),
        },
    };
    if given != Some(count) {
        let given = given.unwrap_or(0);
        return wrong(format!("the axes of the mesh have {count} devices, but device_ids {given}"));
    }
    judge_mesh_ids(mesh)
}

/// Checks that the devices of a mesh are numbered from 0 without gaps: distinct ids below their
/// count are all the numbers below it.
fn judge_mesh_ids(mesh: &Mesh) -> Verdict {
    let MeshDevices::List(ids) = &mesh.devices else { return Ok(()) };
    match unlike_ids(ids.iter()).or_else(|| id_beyond(ids.iter())) {
        Some(problem) => Err((super::MESH, format!("the mesh {problem}"))),
        None => Ok(()),
    }
}

/// Checks that axes of a mesh, or parts of axes, do not overlap.
pub(super) fn judge_axes<'a>(mesh: &Mesh, axes: impl Iterator<Item = &'a AxisRef>) -> Verdict {
    let wrong = |message| Err((super::MESH, message));
    // The number of the axis, and the products of the sizes before and after the end of a part.
    let mut parts: Vec<(usize, i64, i64)> = Vec::new();
    for reference in axes {
        let Some(axis) = mesh.axes.get(reference.axis) else {
            return wrong(format!("the mesh has no axis number {}", reference.axis));
        };
        let Some(part) = reference.sub_axis else {
            // An axis of size 1 overlaps itself too.
            parts.push((reference.axis, 1, axis.size.max(2)));
            continue;
        };
        let end = part.pre_size.checked_mul(part.size);
        let divides = |end: i64| axis.size.checked_rem(end) == Some(0);
        match end.filter(|&end| part.pre_size > 0 && part.size > 0 && divides(end)) {
            Some(end) => parts.push((reference.axis, part.pre_size, end)),
            None => {
                return wrong(format!(
                    "'{0}':({1}){2} is no part of the axis `{0}`, whose size {3} is no multiple \
                     of {1} times {2}",
                    axis.name, part.pre_size, part.size, axis.size
                ));
            }
        }
    }
    parts.sort_unstable();
    let twice = parts.windows(2).find(|pair| match pair {
        [before, after] => before.0 == after.0 && after.1 < before.2,
        _ => false,
    });
    match twice.and_then(|pair| mesh.axes.get(pair.first()?.0)) {
        Some(axis) => wrong(format!("the axis `{}` is used twice; use it once", axis.name)),
        None => Ok(()),
    }
}
