//! Runs one program on several devices at once, each a thread of its own.
//!
//! The results of a device depend on the others only where it waits for their parcels, by place
//! and turn (see [`exchange`]), and never on timing.

pub(crate) mod exchange;
pub(crate) mod groups;
mod named;
mod rows;
pub(crate) mod shards;
pub(crate) mod trade;

use std::sync::Arc;

use tilewright_ir::{Literal, Module, Op};

use exchange::Exchange;
pub use rows::{join_rows, shape_of_rows, split_rows};

/// The most devices that are simulated.
pub const MOST_DEVICES: usize = 1024;

/// The devices that run a program together: `replicas` copies of it, each split
/// into `partitions`. Device `r * partitions + p` is partition `p` of replica
/// `r`, as XLA assigns them unless told otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Devices {
    /// The number of replicas.
    pub replicas: usize,
    /// The number of partitions of each replica.
    pub partitions: usize,
}

impl Devices {
    /// A single device.
    pub const ONE: Self = Self { replicas: 1, partitions: 1 };

    /// Returns the devices in the header of a module. Without a header entry, returns the
    /// devices that its collectives name, and those of its calls between the shapes of the
    /// whole and of a shard.
    pub fn of(module: &Module) -> Self {
        let taken = || shards::partitions(module);
        if module.header.replica_count.is_none() && module.header.num_partitions.is_none() {
            let named = named::named(module);
            return Self { partitions: named.partitions.max(taken()), ..named };
        }
        let count = |count: Option<i64>| {
            count.and_then(|count| usize::try_from(count).ok()).unwrap_or(1).max(1)
        };
        Self {
            replicas: count(module.header.replica_count),
            partitions: match module.header.num_partitions {
                None => taken(),
                stated => count(stated),
            },
        }
    }

    /// Returns the total number of devices; `None` if it exceeds [`MOST_DEVICES`] or is 0.
    pub fn count(self) -> Option<usize> {
        let count = self.replicas.checked_mul(self.partitions)?;
        (1..=MOST_DEVICES).contains(&count).then_some(count)
    }

    /// Returns the number of a device.
    pub(crate) fn number(self, replica: usize, partition: usize) -> usize {
        replica * self.partitions + partition
    }
}

impl Default for Devices {
    fn default() -> Self {
        Self::ONE
    }
}

/// Checks whether a module's results can differ between devices with the same inputs. If not,
/// one device is enough.
pub fn tells_devices_apart(module: &Module) -> bool {
    let computations = module.computations().iter();
    let mut all = computations.flat_map(|&computation| module.instructions(computation));
    all.any(|id| match module.op(id) {
        Op::Send(attrs) | Op::Recv(attrs) => !attrs.is_host_transfer,
        op => op.opcode().tells_devices_apart(),
    }) || takes_parts(module)
}

/// Checks whether the arrays of a module are whole arrays, and calls take each device's part of
/// them.
pub fn takes_parts(module: &Module) -> bool {
    shards::partitions(module) > 1
}

/// The device on which an evaluation runs, and the way to the others.
#[derive(Clone)]
pub(crate) struct Device {
    pub(crate) all: Devices,
    pub(crate) number: usize,
    pub(crate) exchange: Arc<Exchange>,
}

impl Device {
    /// The only one.
    pub(crate) fn single() -> Self {
        Self { all: Devices::ONE, number: 0, exchange: Arc::new(Exchange::new(1)) }
    }

    pub(crate) fn replica(&self) -> usize {
        self.number / self.all.partitions.max(1)
    }

    pub(crate) fn partition(&self) -> usize {
        self.number % self.all.partitions.max(1)
    }
}

/// The values that devices hand each other.
pub(crate) type Parcel = Arc<Vec<Literal>>;
