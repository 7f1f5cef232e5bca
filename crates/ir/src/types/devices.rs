//! Devices: meshes and their axes, and the groups in which devices work.

use smol_str::SmolStr;

/// Device ids `0..n`, laid out row major in `reshape_dims`, transposed by
/// `transpose_perm` and read row major again: `<=[2,2]T(1,0)` is `0 2 1 3`
/// (XLA's `IotaTileAssignment`).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct IotaDevices {
    /// Sizes whose product is the number of devices.
    pub reshape_dims: Vec<i64>,
    /// A permutation of their numbers; the identity is not written.
    pub transpose_perm: Vec<i64>,
}

impl IotaDevices {
    /// How many devices there are; `None` if a size is negative or the product
    /// does not fit.
    pub fn count(&self) -> Option<i64> {
        self.reshape_dims
            .iter()
            .try_fold(1i64, |count, &size| count.checked_mul(size).filter(|&product| product >= 0))
    }

    /// Whether the transposition leaves the order as it is.
    pub fn is_plain(&self) -> bool {
        self.transpose_perm.iter().zip(0..).all(|(&dim, at)| dim == at)
    }
}

/// One axis of a [`Mesh`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct MeshAxis {
    /// Its name.
    pub name: SmolStr,
    /// How many devices lie along it.
    pub size: i64,
}

/// The devices of a mesh, in row-major order of its axes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum MeshDevices {
    /// `0, 1, 2 ...`
    #[default]
    InOrder,
    /// `device_ids=(3,2,1,0)`
    List(Vec<i64>),
    /// `device_ids=([2,4]T(1,0))`
    Iota(IotaDevices),
}

/// Devices with named axes: `mesh['x'=2,'y'=4]` (XLA's `MeshProto`).
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Mesh {
    /// The axes, the major one first.
    pub axes: Vec<MeshAxis>,
    /// Which devices.
    pub devices: MeshDevices,
}

impl Mesh {
    /// The number of the axis with this name.
    pub fn axis(&self, name: &str) -> Option<usize> {
        self.axes.iter().position(|axis| axis.name == name)
    }

    /// Whether these are all axes, whole and in order.
    pub fn is_all(&self, axes: &[AxisRef]) -> bool {
        axes.len() == self.axes.len()
            && axes.iter().enumerate().all(|(at, axis)| *axis == AxisRef::whole(at))
    }
}

/// An axis of a mesh, or a part of one (XLA's `AxisRefProto`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AxisRef {
    /// Its number among the axes of the mesh.
    pub axis: usize,
    /// The part: `'x':(1)2`.
    pub sub_axis: Option<SubAxis>,
}

impl AxisRef {
    /// All of an axis.
    pub const fn whole(axis: usize) -> Self {
        Self { axis, sub_axis: None }
    }
}

/// An axis is cut into `pre_size`, `size` and the rest, the major part first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SubAxis {
    /// The size of the part before.
    pub pre_size: i64,
    /// The size of this part.
    pub size: i64,
}

/// The groups of devices that take part in a collective together.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ReplicaGroups {
    /// `{{0,1},{2,3}}`; no group at all means one of all devices.
    Lists(Vec<Vec<i64>>),
    /// `[2,2]<=[4]`: so many groups of so many devices.
    Iota {
        /// The number of groups.
        groups: i64,
        /// Devices of each group.
        size: i64,
        /// The devices, group by group.
        devices: IotaDevices,
    },
    /// `mesh['x'=2,'y'=2] {'x'}`: devices that differ in these axes alone.
    Mesh {
        /// The mesh.
        mesh: Mesh,
        /// Axes along which a group extends.
        axes: Vec<AxisRef>,
    },
}

impl Default for ReplicaGroups {
    fn default() -> Self {
        Self::Lists(Vec::new())
    }
}
