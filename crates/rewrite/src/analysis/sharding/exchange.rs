//! Exchanges of data between devices.

use std::fmt;
use std::hash::{Hash, Hasher};

use rustc_hash::{FxHashMap, FxHasher};
use tilewright_ir::devices::ReplicaGroups;
use tilewright_ir::{ElementType, InstId, Module, Opcode};
use tilewright_target::Target;

use super::flow::Flow;
use super::mesh::DeviceMesh;

/// The operation of an exchange on the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ExchangeKind {
    /// Devices combine their parts by this op: an all-reduce.
    Combine(Opcode),
    /// Devices get parts of others: an all-gather, or any other move.
    Move,
}

/// The devices that exchange data with each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Over {
    /// Those along axes of the mesh, one bit for each.
    Axes(u16),
    /// Explicit groups, by their hash.
    Groups(u64),
}

impl From<&ReplicaGroups> for Over {
    fn from(groups: &ReplicaGroups) -> Self {
        let mut hasher = FxHasher::default();
        groups.hash(&mut hasher);
        Self::Groups(hasher.finish())
    }
}

/// One exchange of data between devices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exchange {
    /// The number of exchanges that wait for each other, up to this one: from 1.
    pub level: u32,
    /// The number of exchanges of its kind among these that are in the same loop.
    pub depth: u32,
    /// Its operation on the data.
    pub kind: ExchangeKind,
    /// The devices that take part in it.
    pub over: Over,
    /// The type of the elements.
    pub element_type: ElementType,
    /// The bytes that each device hands over each time.
    pub bytes: u64,
    /// The innermost loop that it is in.
    pub of_loop: Option<InstId>,
    /// How often it is made: the product of the turns of all loops that it is in.
    pub turns: u64,
}

/// A wait that is at most so many times as long counts as equal: what is known of rounds and links is rough.
const MOST_LONGER: f64 = 1.1;

/// How much the devices of a module communicate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// The rounds of communication.
    pub rounds: usize,
    /// The largest number of rounds that wait for each other.
    pub chain: u32,
    /// The bytes that each device hands over.
    pub bytes: u64,
}

impl Traffic {
    /// Finds how much the devices of a module communicate; `None` if it is not divided.
    pub fn of(module: &Module) -> Option<Self> {
        let mesh = DeviceMesh::of(module)?;
        Some(Flow::of(module, &mesh).exchanges().traffic())
    }

    /// Checks whether this is more than `other`: more rounds, a longer chain, or a wait for them and for their bytes
    /// that is over a tenth longer.
    pub fn exceeds(&self, other: &Self, target: &Target) -> bool {
        self.rounds > other.rounds
            || self.chain > other.chain
            || self.cycles(target) > other.cycles(target) * MOST_LONGER
    }

    /// Computes the cycles for which each device waits.
    #[expect(clippy::cast_precision_loss, reason = "costs are estimates")]
    pub fn cycles(&self, target: &Target) -> f64 {
        let latency = self.rounds as f64 * target.round_cycles;
        latency + self.bytes as f64 / target.link_bytes_per_cycle
    }
}

impl fmt::Display for Traffic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { rounds, chain, bytes } = self;
        write!(f, "{rounds} rounds of communication, {chain} one after another, with {bytes} bytes")
    }
}

/// All exchanges of a module.
#[derive(Clone, Debug, Default)]
pub struct Exchanges(Vec<Exchange>);

impl Exchanges {
    pub(super) fn push(&mut self, exchange: Exchange) {
        self.0.push(exchange);
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Forgets all exchanges but the first ones.
    pub(super) fn truncate(&mut self, count: usize) {
        self.0.truncate(count);
    }

    /// Returns the exchanges in the order of the instructions.
    pub fn iter(&self) -> std::slice::Iter<'_, Exchange> {
        self.0.iter()
    }

    /// Returns the exchanges after the first `count`.
    pub(super) fn since(&mut self, count: usize) -> &mut [Exchange] {
        self.0.get_mut(count..).unwrap_or_default()
    }

    /// Counts the rounds. XLA makes one exchange of those of one kind and type between the same
    /// devices, in the same loop, of which none waits for another.
    pub fn rounds(&self) -> usize {
        let mut deepest: FxHashMap<(ExchangeKind, Over, ElementType, Option<InstId>), u64> =
            FxHashMap::default();
        for one in self.iter() {
            let rounds = deepest.entry((one.kind, one.over, one.element_type, one.of_loop));
            let rounds = rounds.or_default();
            *rounds = u64::from(one.depth).saturating_mul(one.turns).max(*rounds);
        }
        let rounds = deepest.into_values().fold(0, u64::saturating_add);
        usize::try_from(rounds).unwrap_or(usize::MAX)
    }

    /// Returns the largest number of exchanges that wait for each other.
    pub fn chain(&self) -> u32 {
        self.iter().map(|one| one.level).max().unwrap_or(0)
    }

    /// Returns the bytes that each device hands over.
    pub fn bytes(&self) -> u64 {
        let bytes = self.iter().map(|one| one.bytes.saturating_mul(one.turns));
        bytes.fold(0, u64::saturating_add)
    }

    /// Sums up the exchanges.
    pub fn traffic(&self) -> Traffic {
        Traffic { rounds: self.rounds(), chain: self.chain(), bytes: self.bytes() }
    }
}
