//! How values are spread over devices, in all forms that XLA has had.

use super::devices::{AxisRef, IotaDevices, Mesh};
use crate::metadata::OpMetadata;

/// The sharding of an instruction (XLA's `OpSharding`).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Sharding {
    /// Of each array of a tuple, depth first: `{{replicated}, {manual}}`.
    Tuple(Vec<LeafSharding>),
    /// Of an array, or of all arrays of a tuple.
    Leaf(LeafSharding),
}

impl Sharding {
    /// The shardings of single arrays.
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
    /// What lies where.
    pub placement: Placement,
    /// Arrays to be sharded alike.
    pub group: Option<ShardGroup>,
    /// Where it comes from; one entry for each source.
    pub metadata: Vec<OpMetadata>,
}

impl From<Placement> for LeafSharding {
    fn from(placement: Placement) -> Self {
        Self { placement, group: None, metadata: Vec::new() }
    }
}

/// What of an array lies on which device.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Placement {
    /// All of it on all: `{replicated}`.
    Replicated,
    /// The program says itself: `{manual}`.
    Manual,
    /// `{unknown}`
    Unknown,
    /// Each device holds a summand: `{unreduced}`.
    Unreduced,
    /// All of it on one device: `{maximal device=3}`.
    Maximal(i64),
    /// `{devices=[2,2]<=[4]}`
    Tiled(Tiling),
    /// `{mesh['x'=2,'y'=4], [{'x'}, {}]}`
    Named(Box<NamedSharding>),
}

/// An array cut into tiles, each on the devices of one entry.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Tiling {
    /// Into how many parts each dim is cut; then the sizes of the subgroups.
    pub dims: Vec<i64>,
    /// The devices, row major in `dims`.
    pub devices: TileDevices,
    /// What the trailing dims, one for each entry, mean instead of cuts.
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

/// What the devices along a trailing dim of a [`Tiling`] hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Subgroup {
    /// The same.
    Replicated,
    /// What the program says.
    Manual,
    /// Summands.
    Unreduced,
}

/// The group whose members are sharded alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ShardGroup {
    /// Exactly: `shard_as 3`.
    As(i64),
    /// Where possible: `shard_like 3`.
    Like(i64),
}

/// A sharding by the axes of a mesh (XLA's `NamedShardingProto`).
///
/// Without axes anywhere it is replicated, which on a mesh of no axes and one
/// device means that one: `{maximal_mesh[device_id=1]}`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct NamedSharding {
    /// The mesh.
    pub mesh: Mesh,
    /// For each dim, the axes along which it is cut.
    pub dims: Vec<DimSharding>,
    /// Axes that dims must not be cut along later.
    pub replicated: Vec<AxisRef>,
    /// Axes along which devices hold summands.
    pub unreduced: Vec<AxisRef>,
    /// Axes of which the program itself takes care.
    pub manual: Vec<AxisRef>,
}

/// The axes along which one dim is cut.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct DimSharding {
    /// The axes, the major one first.
    pub axes: Vec<AxisRef>,
    /// Whether more may be added: `{'x', ?}`.
    pub is_open: bool,
}
