//! Devices: meshes and their axes, and groups of devices.

use smol_str::SmolStr;

/// Device ids `0..n`, laid out row major in `reshape_dims`, transposed by
/// `transpose_perm` and read row major again: `<=[2,2]T(1,0)` is `0 2 1 3`
/// (XLA's `IotaTileAssignment`).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct IotaDevices {
    /// Sizes whose product is the number of devices.
    pub reshape_dims: Vec<i64>,
    /// A permutation of the dims; the identity is not written.
    pub transpose_perm: Vec<i64>,
}

impl IotaDevices {
    /// Returns the number of devices; `None` if a size is negative or the product overflows.
    pub fn count(&self) -> Option<i64> {
        self.reshape_dims
            .iter()
            .try_fold(1i64, |count, &size| count.checked_mul(size).filter(|&product| product >= 0))
    }

    /// Returns the ids in order; `None` if there are more than [`MOST_LISTED`], or the
    /// permutation is not valid.
    pub fn ids(&self) -> Option<Vec<i64>> {
        transposed(&self.reshape_dims, self.transpose_perm.iter().copied())
    }

    /// Checks whether the permutation keeps the order.
    pub fn is_plain(&self) -> bool {
        self.transpose_perm.iter().zip(0..).all(|(&dim, at)| dim == at)
    }
}

/// Largest number of devices that are listed one by one.
pub const MOST_LISTED: i64 = 1 << 20;

/// Returns the numbers `0..n` laid out row major in `sizes`, read with the dims in another
/// order.
fn transposed(sizes: &[i64], order: impl Iterator<Item = i64>) -> Option<Vec<i64>> {
    let mut strides = vec![1i64; sizes.len()];
    let mut count = 1i64;
    for (stride, &size) in strides.iter_mut().zip(sizes).rev() {
        *stride = count;
        count = count.checked_mul(size).filter(|count| (0..=MOST_LISTED).contains(count))?;
    }
    let mut ids = vec![0];
    for dim in order {
        let dim = usize::try_from(dim).ok()?;
        let (size, stride) = (*sizes.get(dim)?, *strides.get(dim)?);
        if i64::try_from(ids.len()).ok()?.checked_mul(size)? > count {
            return None;
        }
        ids = ids.iter().flat_map(|id| (0..size).map(move |at| id + at * stride)).collect();
    }
    (i64::try_from(ids.len()) == Ok(count)).then_some(ids)
}

/// One axis of a [`Mesh`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct MeshAxis {
    /// Its name.
    pub name: SmolStr,
    /// Number of devices along it.
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
    /// The ids of the devices.
    pub devices: MeshDevices,
}

impl Mesh {
    /// Returns the number of the axis with this name.
    pub fn axis(&self, name: &str) -> Option<usize> {
        self.axes.iter().position(|axis| axis.name == name)
    }

    /// Its devices, in row-major order of its axes; `None` if there are more
    /// than [`MOST_LISTED`].
    pub fn ids(&self) -> Option<Vec<i64>> {
        match &self.devices {
            MeshDevices::List(ids) => Some(ids.clone()),
            MeshDevices::Iota(devices) => devices.ids(),
            MeshDevices::InOrder => {
                let sizes: Vec<i64> = self.axes.iter().map(|axis| axis.size).collect();
                transposed(&sizes, (0..).take(sizes.len()))
            }
        }
    }

    /// Returns the groups of devices that differ only in these axes: groups in row-major order
    /// of the other axes, devices in row-major order of these axes.
    fn groups(&self, axes: &[AxisRef]) -> Option<Vec<Vec<i64>>> {
        // Axes with a given part are split at that part.
        let mut sizes = Vec::new();
        let mut parts = Vec::new();
        for (number, axis) in self.axes.iter().enumerate() {
            let mut cuts = vec![1, axis.size];
            for sub in axes.iter().filter(|a| a.axis == number).filter_map(|a| a.sub_axis) {
                cuts.extend([sub.pre_size, sub.pre_size.checked_mul(sub.size)?]);
            }
            cuts.sort_unstable();
            cuts.dedup();
            for pair in cuts.windows(2) {
                parts.push((number, *pair.first()?));
                sizes.push(pair.last()?.checked_div(*pair.first()?)?);
            }
        }
        let part_of = |axis: &AxisRef| {
            let before = axis.sub_axis.map_or(1, |sub| sub.pre_size);
            parts.iter().position(|&part| part == (axis.axis, before))
        };
        // An axis of size 1 has no parts, because it distinguishes no devices.
        let inner: Vec<usize> = axes.iter().filter_map(part_of).collect();
        let outer = (0..sizes.len()).filter(|part| !inner.contains(part));
        let order = outer.chain(inner.iter().copied()).filter_map(|part| i64::try_from(part).ok());
        let places = transposed(&sizes, order)?;
        let size: i64 = inner.iter().filter_map(|&part| sizes.get(part)).product();
        let ids = self.ids()?;
        let ids = places.iter().map(|&place| ids.get(usize::try_from(place).ok()?).copied());
        in_groups(&ids.collect::<Option<Vec<i64>>>()?, size)
    }

    /// Checks whether these are all axes, whole and in order.
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
    /// A whole axis.
    pub const fn whole(axis: usize) -> Self {
        Self { axis, sub_axis: None }
    }
}

/// A part of an axis. The axis is split into `pre_size`, `size` and the rest, the major part
/// first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SubAxis {
    /// The product of the sizes before the part.
    pub pre_size: i64,
    /// The size of this part.
    pub size: i64,
}

/// The groups of devices that take part in a collective together.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ReplicaGroups {
    /// `{{0,1},{2,3}}`; an empty list means one group of all devices.
    Lists(Vec<Vec<i64>>),
    /// `[2,2]<=[4]`: a number of groups of equal size.
    Iota {
        /// The number of groups.
        groups: i64,
        /// Devices of each group.
        size: i64,
        /// The devices, group by group.
        devices: IotaDevices,
    },
    /// `mesh['x'=2,'y'=2] {'x'}`: each group has devices that differ only in these axes.
    Mesh {
        /// The mesh.
        mesh: Mesh,
        /// The axes along which the devices of a group differ.
        axes: Vec<AxisRef>,
    },
}

impl ReplicaGroups {
    /// Returns the groups as lists of devices; no group at all means one group of all devices.
    /// `None` if there are more than [`MOST_LISTED`] devices, or the groups break the
    /// verifier's rules.
    pub fn lists(&self) -> Option<Vec<Vec<i64>>> {
        match self {
            Self::Lists(lists) => Some(lists.clone()),
            Self::Iota { size, devices, .. } => in_groups(&devices.ids()?, *size),
            Self::Mesh { mesh, axes } => mesh.groups(axes),
        }
    }
}

fn in_groups(ids: &[i64], size: i64) -> Option<Vec<Vec<i64>>> {
    let size = usize::try_from(size).ok().filter(|&size| size > 0)?;
    Some(ids.chunks(size).map(<[i64]>::to_vec).collect())
}

impl Default for ReplicaGroups {
    fn default() -> Self {
        Self::Lists(Vec::new())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mesh(sizes: &[i64]) -> Mesh {
        let axis = |(at, &size): (usize, &i64)| MeshAxis { name: format!("a{at}").into(), size };
        Mesh { axes: sizes.iter().enumerate().map(axis).collect(), devices: MeshDevices::InOrder }
    }

    #[test]
    fn iota_groups_are_listed() {
        // numpy: arange(8).reshape(2, 2, 2).transpose(1, 2, 0).reshape(4, 2)
        let devices = IotaDevices { reshape_dims: vec![2, 2, 2], transpose_perm: vec![1, 2, 0] };
        let groups = ReplicaGroups::Iota { groups: 4, size: 2, devices };
        let expected = vec![vec![0, 4], vec![1, 5], vec![2, 6], vec![3, 7]];
        assert_eq!(groups.lists(), Some(expected));
    }

    #[test]
    fn groups_along_axes_of_a_mesh_are_listed() {
        let along = |sizes: &[i64], axes: Vec<AxisRef>| {
            ReplicaGroups::Mesh { mesh: mesh(sizes), axes }.lists()
        };
        // numpy: arange(6).reshape(2, 3), by columns, by rows, and all by columns.
        let columns = vec![vec![0, 3], vec![1, 4], vec![2, 5]];
        assert_eq!(along(&[2, 3], vec![AxisRef::whole(0)]), Some(columns));
        let rows = vec![vec![0, 1, 2], vec![3, 4, 5]];
        assert_eq!(along(&[2, 3], vec![AxisRef::whole(1)]), Some(rows));
        let all = vec![vec![0, 3, 1, 4, 2, 5]];
        assert_eq!(along(&[2, 3], vec![AxisRef::whole(1), AxisRef::whole(0)]), Some(all));
        let single = vec![vec![0], vec![1]];
        assert_eq!(along(&[1, 2], vec![AxisRef::whole(0)]), Some(single));
        // numpy: arange(8).reshape(2, 2, 2).transpose(0, 2, 1).reshape(4, 2)
        let middle = AxisRef { axis: 0, sub_axis: Some(SubAxis { pre_size: 2, size: 2 }) };
        let expected = vec![vec![0, 2], vec![1, 3], vec![4, 6], vec![5, 7]];
        assert_eq!(along(&[8], vec![middle]), Some(expected));
    }

    #[test]
    fn too_many_devices_are_not_listed() {
        let devices = |reshape_dims: Vec<i64>| IotaDevices {
            transpose_perm: (0..).take(reshape_dims.len()).collect(),
            reshape_dims,
        };
        assert_eq!(devices(vec![MOST_LISTED + 1]).ids(), None);
        assert_eq!(devices(vec![1 << 40, 1 << 40]).ids(), None);
        assert_eq!(devices(vec![2, -3]).ids(), None);
        let twice = IotaDevices { reshape_dims: vec![2, 3], transpose_perm: vec![1, 1] };
        assert_eq!(twice.ids(), None);
    }
}
