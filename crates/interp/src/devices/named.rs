//! Finds the devices that a module's collectives name, if its header lists none: JAX states
//! them beside the module, when it is compiled.

use tilewright_ir::types::devices::ReplicaGroups;
use tilewright_ir::{Module, Op};

use super::Devices;
use super::groups::Numbers;

/// Returns the devices that the module's collectives name, with each collective's meaning of
/// its numbers; one device if there are none.
pub(super) fn named(module: &Module) -> Devices {
    let computations = module.computations().iter();
    let all = computations.flat_map(|&computation| module.instructions(computation));
    let mut devices = Devices::ONE;
    for (numbers, greatest) in all.filter_map(|id| greatest(module.op(id))) {
        let Some(count) = usize::try_from(greatest).ok().and_then(|most| most.checked_add(1))
        else {
            continue;
        };
        let named = match numbers {
            Numbers::Replicas | Numbers::WholeReplicas => &mut devices.replicas,
            Numbers::Partitions | Numbers::Devices => &mut devices.partitions,
        };
        *named = count.max(*named);
    }
    devices
}

/// Returns the greatest number in a collective, and the meaning of its numbers.
fn greatest(op: &Op) -> Option<(Numbers, i64)> {
    let of = |groups: &ReplicaGroups| groups.lists()?.into_iter().flatten().max();
    let by = |channel, global| Numbers::of(channel, global).ok();
    match op {
        Op::AllReduce(attrs) | Op::AllReduceStart(attrs) => {
            Some((by(attrs.channel_id, attrs.use_global_device_ids)?, of(&attrs.replica_groups)?))
        }
        Op::AllGather(attrs) | Op::AllGatherStart(attrs) => {
            Some((by(attrs.channel_id, attrs.use_global_device_ids)?, of(&attrs.replica_groups)?))
        }
        Op::ReduceScatter(attrs) => {
            Some((by(attrs.channel_id, attrs.use_global_device_ids)?, of(&attrs.replica_groups)?))
        }
        Op::AllToAll(attrs) => {
            Some((Numbers::of_channel(attrs.channel_id), of(&attrs.replica_groups)?))
        }
        Op::CollectiveBroadcast(attrs) => {
            Some((Numbers::of_channel(attrs.channel_id), of(&attrs.replica_groups)?))
        }
        Op::CollectiveReduce(attrs) => {
            Some((by(attrs.channel_id, attrs.use_global_device_ids)?, of(&attrs.replica_groups)?))
        }
        Op::RaggedAllToAll(attrs) => {
            Some((Numbers::of_channel(attrs.channel_id), of(&attrs.replica_groups)?))
        }
        Op::CollectivePermute(attrs) | Op::CollectivePermuteStart(attrs) => {
            let pairs = attrs.source_target_pairs.iter().flat_map(|&(a, b)| [a, b]);
            Some((Numbers::of_channel(attrs.channel_id), pairs.max()?))
        }
        _ => None,
    }
}
