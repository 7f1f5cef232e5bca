//! The groups of devices in a collective.
//!
//! The meaning of the numbers in its groups depends on its attributes, as in XLA's
//! `GetCollectiveOpGroupMode` and `GetParticipatingDevices`
//! (`xla/service/collective_ops_utils.cc`).

use tilewright_ir::types::devices::ReplicaGroups;

use super::{Device, Devices};
use crate::error::{Fault, Outcome};
use crate::eval::unsupported;

/// The meaning of the numbers in groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Numbers {
    /// Replicas, of the same partition.
    Replicas,
    /// Partitions, of the same replica.
    Partitions,
    /// Replicas, with all their partitions.
    WholeReplicas,
    /// Devices.
    Devices,
}

impl Numbers {
    /// Returns the meaning for an op that has `use_global_device_ids`.
    pub(crate) fn of(channel: Option<i64>, global: bool) -> Outcome<Self> {
        match (channel, global) {
            (None, false) => Ok(Self::Replicas),
            (Some(_), false) => Ok(Self::WholeReplicas),
            (Some(_), true) => Ok(Self::Devices),
            (None, true) => Err(unsupported("use_global_device_ids needs a channel_id")),
        }
    }

    /// The meaning for an op without it.
    pub(crate) fn of_channel(channel: Option<i64>) -> Self {
        if channel.is_some() { Self::Partitions } else { Self::Replicas }
    }

    /// Returns the number of devices with these numbers.
    fn count(self, all: Devices) -> usize {
        match self {
            Self::Replicas | Self::WholeReplicas => all.replicas,
            Self::Partitions => all.partitions,
            Self::Devices => all.replicas.saturating_mul(all.partitions),
        }
    }

    /// Returns the number of a device.
    pub(crate) fn name(self, device: &Device) -> usize {
        match self {
            Self::Replicas | Self::WholeReplicas => device.replica(),
            Self::Partitions => device.partition(),
            Self::Devices => device.number,
        }
    }

    /// Returns the devices of this name that can meet `me`.
    pub(crate) fn devices(self, name: usize, me: &Device) -> std::ops::Range<usize> {
        let all = me.all;
        let one = |number: usize| number..number + 1;
        match self {
            Self::Replicas => one(all.number(name, me.partition())),
            Self::Partitions => one(all.number(me.replica(), name)),
            Self::WholeReplicas => all.number(name, 0)..all.number(name, all.partitions),
            Self::Devices => one(name),
        }
    }

    /// Returns a number of the text as an index, if it is valid.
    pub(crate) fn checked(self, number: i64, all: Devices) -> Outcome<usize> {
        let count = self.count(all);
        usize::try_from(number).ok().filter(|&number| number < count).ok_or_else(|| {
            let Devices { replicas, partitions } = all;
            unsupported(format!(
                "it names device {number}, but the program runs on {replicas} replicas of \
                 {partitions} partitions"
            ))
        })
    }
}

/// Returns the devices that work together with `me`, in order; an empty list if no group has
/// `me`.
pub(crate) fn group(groups: &ReplicaGroups, numbers: Numbers, me: &Device) -> Outcome<Vec<usize>> {
    let lists = groups.lists().ok_or(Fault::Internal("its groups are malformed"))?;
    let mut mine = None;
    for list in &lists {
        let list: Vec<usize> =
            list.iter().map(|&number| numbers.checked(number, me.all)).collect::<Outcome<_>>()?;
        if list.contains(&numbers.name(me)) {
            mine = Some(list);
        }
    }
    let mine = match mine {
        Some(list) => list,
        None if lists.is_empty() => (0..numbers.count(me.all)).collect(),
        None => Vec::new(),
    };
    Ok(mine.into_iter().flat_map(|name| numbers.devices(name, me)).collect())
}
