//! Shardings of values over devices, in all forms that XLA has had.

use super::devices::{AxisRef, IotaDevices, Mesh};
use crate::metadata::OpMetadata;

/// The sharding of an instruction (XLA's `OpSharding`).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Sharding {
    /// One sharding per array of a tuple, depth first: `{{replicated}, {manual}}`.
    Tuple(Vec<LeafSharding>),
    /// One sharding for an array, or for all arrays of a tuple.
    Leaf(LeafSharding),
}

impl Sharding {
    /// Returns the shardings of single arrays.
    pub fn leaves(&self) -> &[LeafSharding] {
        match self {
            Self::Tuple(leaves) => leaves,
            Self::Leaf(leaf) => std::slice::from_ref(leaf),
        }
    }
}

/// The sharding of one array.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct LeafSharding {
    /// The placement on devices.
    pub placement: Placement,
    /// The group of arrays to be sharded in the same way.
    pub group: Option<ShardGroup>,
    /// The origin; one entry for each source.
    pub metadata: Vec<OpMetadata>,
}

impl From<Placement> for LeafSharding {
    fn from(placement: Placement) -> Self {
        Self { placement, group: None, metadata: Vec::new() }
    }
}

/// The part of an array that each device holds.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Placement {
    /// Each device holds the whole array: `{replicated}`.
    Replicated,
    /// The program handles it itself: `{manual}`.
    Manual,
    /// `{unknown}`
    Unknown,
    /// Each device holds a summand: `{unreduced}`.
    Unreduced,
    /// One device holds the whole array: `{maximal device=3}`.
    Maximal(i64),
    /// `{devices=[2,2]<=[4]}`
    Tiled(Tiling),
    /// `{mesh['x'=2,'y'=4], [{'x'}, {}]}`
    Named(Box<NamedSharding>),
}

/// An array split into tiles; the devices of one entry hold each tile.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Tiling {
    /// The number of parts of each dim, followed by the sizes of the subgroups.
    pub dims: Vec<i64>,
    /// The devices, row major in `dims`.
    pub devices: TileDevices,
    /// The meaning of each trailing dim that is not a split.
    pub subgroups: Vec<Subgroup>,
}

/// The devices of a [`Tiling`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum TileDevices {
    /// `0,2,1,3`
    List(Vec<i64>),
    /// `<=[2,2]T(1,0)`
    Iota(IotaDevices),
}

/// The data of the devices along a trailing dim of a [`Tiling`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Subgroup {
    /// Each device holds the same data.
    Replicated,
    /// The program handles it itself.
    Manual,
    /// Each device holds a summand.
    Unreduced,
}

/// A group whose members are sharded in the same way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ShardGroup {
    /// Exactly the same: `shard_as 3`.
    As(i64),
    /// The same if possible: `shard_like 3`.
    Like(i64),
}

/// A sharding by the axes of a mesh (XLA's `NamedShardingProto`).
///
/// Without axes it is replicated, which on a mesh of no axes and one device means that device:
/// `{maximal_mesh[device_id=1]}`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct NamedSharding {
    /// The mesh.
    pub mesh: Mesh,
    /// For each dim, the axes that split it.
    pub dims: Vec<DimSharding>,
    /// Axes that must not split dims later.
    pub replicated: Vec<AxisRef>,
    /// Axes along which each device holds a part of the reduction.
    pub unreduced: Vec<AxisRef>,
    /// How the parts are reduced.
    pub reduction: ReductionOp,
    /// Axes that the program handles itself.
    pub manual: Vec<AxisRef>,
}

/// How the parts that devices hold of a value are reduced to it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ReductionOp {
    /// `unreduced={'x'}`
    #[default]
    Sum,
    /// `unreduced=max{'x'}`
    Max,
    /// `unreduced=min{'x'}`
    Min,
}

impl ReductionOp {
    /// All of them, in the order of XLA's `ReductionOpProto`.
    pub const ALL: [Self; 3] = [Self::Sum, Self::Max, Self::Min];

    /// The word before the axes; a sum has none.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Sum => "",
            Self::Max => "max",
            Self::Min => "min",
        }
    }

    /// Returns the one with this word; `sum` may be written.
    pub fn from_word(word: &str) -> Option<Self> {
        if word == "sum" {
            Some(Self::Sum)
        } else {
            Self::ALL.into_iter().find(|r| r.word() == word)
        }
    }
}

/// The axes that split one dim.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct DimSharding {
    /// The axes, the major one first.
    pub axes: Vec<AxisRef>,
    /// Whether more axes may be added: `{'x', ?}`.
    pub is_open: bool,
}
