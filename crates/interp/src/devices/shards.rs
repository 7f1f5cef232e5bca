//! Computes the part of an array that each partition has. The calls between the shapes of the
//! whole and of a shard define it; through them a program enters and leaves the code that it
//! writes for each device itself (`shard_map`).
//!
//! Shardy's calls state shardings in frontend attributes; GSPMD's are those of the call or of
//! its operand (`xla/hlo/utils/hlo_sharding_util.h`, `shardy/round_trip_import`).

use smallvec::SmallVec;
use tilewright_ir::devices::{AxisRef, Mesh};
use tilewright_ir::metadata::{FrontendAttributes, value_of};
use tilewright_ir::ops::control::Crossing;
use tilewright_ir::sharding::{
    LeafSharding, NamedSharding, Placement, Subgroup, TileDevices, Tiling,
};
use tilewright_ir::{InstId, Module, Op, sdy};

use super::MOST_DEVICES;
use crate::strides::index_of;

/// A division of an array into equal parts, with the part of each partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Shards {
    /// Into how many parts each dim is cut.
    pub(crate) parts: SmallVec<[usize; 4]>,
    /// The parts that each partition has, a row for each.
    places: Vec<u32>,
    /// Partitions with the same number hold the parts of one whole. Others differ in the data
    /// that the surrounding program has on each device.
    groups: Vec<u32>,
}

/// Returns the number of partitions into which the calls of a module cut arrays; 1 if there are
/// no such calls.
pub(super) fn partitions(module: &Module) -> usize {
    let computations = module.computations().iter();
    let all = computations.flat_map(|&computation| module.instructions(computation));
    let mut meshes = None;
    let counts = all.filter(|&id| way_of(module, id).is_some()).filter_map(|id| {
        let meshes = meshes.get_or_insert_with(|| Meshes::of(module));
        Some(meshes.of_call(module, id)?.first()?.partitions())
    });
    counts.max().unwrap_or(1)
}

fn way_of(module: &Module, id: InstId) -> Option<Crossing> {
    let Op::CustomCall(attrs) = module.op(id) else { return None };
    attrs.crossing()
}

/// The meshes of a module that names some, none of more devices than are simulated.
#[derive(Debug)]
pub(crate) struct Meshes(sdy::Meshes);

/// The most places of parts that are kept for a call.
const MOST_PLACES: usize = 1 << 22;

impl Meshes {
    pub(crate) fn of(module: &Module) -> Self {
        let text = value_of(&module.header.frontend_attributes, "xla.sdy.meshes");
        let mut meshes = text.and_then(sdy::meshes).unwrap_or_default();
        meshes.retain(|(_, mesh)| count(mesh).is_some());
        Self(meshes)
    }

    /// Returns the shards of each operand of a call to a shard, or of each result of a call to
    /// the whole; `None` for other instructions, and for calls that do not state a known
    /// sharding.
    pub(crate) fn of_call(&self, module: &Module, id: InstId) -> Option<Vec<Shards>> {
        let way = way_of(module, id)?;
        let attributes = module.extras(id).map(|extras| &extras.frontend_attributes);
        let own = attributes.and_then(|all| value_of(all, "xla.sdy.manual_axes"));
        match (own, attributes) {
            (Some(manual), Some(attributes)) => self.by_axes(attributes, way, manual),
            _ => by_tiles(module, id, way),
        }
    }

    fn by_axes(
        &self,
        attributes: &FrontendAttributes,
        way: Crossing,
        manual: &str,
    ) -> Option<Vec<Shards>> {
        let key = match way {
            Crossing::ToShards => "xla.sdy.in_shardings",
            Crossing::ToWholes => "xla.sdy.out_shardings",
        };
        let manual = sdy::manual_axes(manual)?;
        let is_manual = |mesh: &Mesh, axis: usize| {
            mesh.axes.get(axis).is_some_and(|axis| manual.contains(&axis.name))
        };
        let mut places = 0_usize;
        sdy::shardings(value_of(attributes, key)?, &self.0, |sharding| {
            let shards = Shards::named(&sharding, &is_manual)?;
            places = places.checked_add(shards.places.len())?;
            (places <= MOST_PLACES).then_some(shards)
        })
    }
}

fn by_tiles(module: &Module, id: InstId, way: Crossing) -> Option<Vec<Shards>> {
    let &operand = module.operands(id).first()?;
    let stated = match way {
        Crossing::ToShards => operand,
        Crossing::ToWholes => id,
    };
    let sharding = module.extras(stated)?.sharding.as_ref()?;
    let [LeafSharding { placement, .. }] = sharding.leaves() else { return None };
    let rank = module.array_shape(id)?.rank();
    let shards = match placement {
        Placement::Tiled(tiling) => Shards::tiled(tiling, rank),
        Placement::Named(sharding) => Shards::named(sharding, &|_, _| true),
        _ => None,
    };
    Some(vec![shards?])
}

/// Returns the devices of a mesh, if they can be simulated.
fn count(mesh: &Mesh) -> Option<usize> {
    let sizes = mesh.axes.iter().map(|axis| usize::try_from(axis.size).ok());
    let count = sizes.into_iter().try_fold(1_usize, |count, size| count.checked_mul(size?))?;
    (1..=MOST_DEVICES).contains(&count).then_some(count)
}

impl Shards {
    /// Returns the number of partitions.
    pub(crate) fn partitions(&self) -> usize {
        self.groups.len()
    }

    /// Returns the part of each dim that a partition has.
    pub(crate) fn place(&self, partition: usize) -> impl Iterator<Item = usize> + '_ {
        let rank = self.parts.len();
        let row = self.places.iter().skip(partition.saturating_mul(rank)).take(rank);
        row.map(|&part| usize::try_from(part).unwrap_or(usize::MAX))
    }

    /// Checks whether two partitions have parts of one whole.
    pub(crate) fn together(&self, one: usize, other: usize) -> bool {
        self.groups.get(one) == self.groups.get(other)
    }

    /// Returns the size of the whole, of a shard of these dims.
    pub(crate) fn whole(&self, shard: &[i64]) -> Option<SmallVec<[i64; 6]>> {
        let dims = shard.iter().zip(&self.parts).map(|(&dim, &parts)| {
            let parts = i64::try_from(parts).ok()?;
            dim.checked_mul(parts)
        });
        if shard.len() == self.parts.len() { dims.collect() } else { None }
    }

    /// Reads a sharding by the mesh axes that a program handles itself.
    fn named(sharding: &NamedSharding, is_manual: &dyn Fn(&Mesh, usize) -> bool) -> Option<Self> {
        let NamedSharding { mesh, dims, unreduced, .. } = sharding;
        // Summands are no parts.
        if !unreduced.is_empty() {
            return None;
        }
        count(mesh)?;
        let sizes: Vec<usize> =
            mesh.axes.iter().map(|axis| usize::try_from(axis.size).ok()).collect::<Option<_>>()?;
        let cuts = dims.iter().map(|dim| {
            let axes = dim.axes.iter().filter(|axis| is_manual(mesh, axis.axis));
            axes.map(|axis| Cut::of(axis, &sizes)).collect::<Option<Vec<Cut>>>()
        });
        let cuts = cuts.collect::<Option<Vec<_>>>()?;
        let parts = cuts
            .iter()
            .map(|cuts| cuts.iter().try_fold(1_usize, |parts, cut| parts.checked_mul(cut.size)));
        let parts = parts.collect::<Option<_>>()?;
        let place = |along: &[usize]| {
            let part = |cuts: &Vec<Cut>| {
                cuts.iter().fold(0, |part, cut| part * cut.size + cut.part(along))
            };
            cuts.iter().map(part).collect()
        };
        let others = |along: &[usize]| {
            let axes = along.iter().zip(&sizes).enumerate();
            let others = axes.filter(|&(axis, _)| !is_manual(mesh, axis));
            others.fold(0, |group, (_, (&at, &size))| group * size + at)
        };
        Self::of(parts, &mesh.ids()?, &sizes, place, others)
    }

    /// Reads a sharding by tiles; each device along a manual dim has a whole array.
    fn tiled(tiling: &Tiling, rank: usize) -> Option<Self> {
        let Tiling { dims, devices, subgroups } = tiling;
        let sizes: Vec<usize> =
            dims.iter().map(|&size| usize::try_from(size).ok()).collect::<Option<_>>()?;
        let ids = match devices {
            TileDevices::List(ids) => ids.clone(),
            TileDevices::Iota(devices) => devices.ids()?,
        };
        if subgroups.contains(&Subgroup::Unreduced) {
            return None;
        }
        let place = |along: &[usize]| along.iter().copied().take(rank).collect();
        let others = |along: &[usize]| {
            let trailing = along.iter().zip(&sizes).skip(rank).zip(subgroups);
            let manual = trailing.filter(|&(_, subgroup)| *subgroup == Subgroup::Manual);
            manual.fold(0, |group, ((&at, &size), _)| group * size + at)
        };
        Self::of(sizes.iter().copied().take(rank).collect(), &ids, &sizes, place, others)
    }

    /// Cuts an array by devices. `ids` are the partitions in row-major order of `sizes`. For an
    /// index in these sizes, `place` returns the parts that the partition has, and `others`
    /// returns its group.
    fn of(
        parts: SmallVec<[usize; 4]>,
        ids: &[i64],
        sizes: &[usize],
        place: impl Fn(&[usize]) -> SmallVec<[usize; 4]>,
        others: impl Fn(&[usize]) -> usize,
    ) -> Option<Self> {
        let product = |sizes: &[usize]| {
            sizes.iter().try_fold(1_usize, |count, &size| count.checked_mul(size))
        };
        // Every part belongs to a partition.
        let count = product(&parts)?;
        let fits = product(sizes)? == ids.len() && ids.len() <= MOST_DEVICES;
        if !fits || count == 0 || count > ids.len() {
            return None;
        }
        let mut rows = vec![None; ids.len()];
        for (at, &id) in ids.iter().enumerate() {
            let along = index_of(at, sizes);
            let row = (place(&along), u32::try_from(others(&along)).ok()?);
            *rows.get_mut(usize::try_from(id).ok()?)? = Some(row);
        }
        let rows = rows.into_iter().collect::<Option<Vec<_>>>()?;
        let places = rows.iter().flat_map(|(place, _)| place).map(|&part| u32::try_from(part));
        let places = places.collect::<Result<_, _>>().ok()?;
        Some(Self { parts, places, groups: rows.iter().map(|&(_, group)| group).collect() })
    }
}

/// An axis of a mesh, or a part of one, along which a dim is cut.
struct Cut {
    axis: usize,
    size: usize,
    /// Number of devices along the more minor parts of its axis.
    after: usize,
}

impl Cut {
    fn of(axis: &AxisRef, sizes: &[usize]) -> Option<Self> {
        let whole = *sizes.get(axis.axis)?;
        let (before, size) = match axis.sub_axis {
            None => (1, whole),
            Some(sub) => (usize::try_from(sub.pre_size).ok()?, usize::try_from(sub.size).ok()?),
        };
        let outer = before.checked_mul(size)?;
        let after = whole.checked_div(outer)?;
        // A part has to divide its axis.
        (after.checked_mul(outer)? == whole).then_some(Self { axis: axis.axis, size, after })
    }

    fn part(&self, along: &[usize]) -> usize {
        let at = along.get(self.axis).copied().unwrap_or(0);
        let part = at.checked_div(self.after).unwrap_or(0);
        part.checked_rem(self.size).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tilewright_ir::devices::{MeshAxis, MeshDevices, SubAxis};
    use tilewright_ir::sharding::{DimSharding, ReductionOp};

    /// Returns the parts of dims cut along parts of an axis of 8 devices.
    fn cut(dims: &[&[(i64, i64)]]) -> Option<Shards> {
        let axis = |&(pre_size, size): &(i64, i64)| AxisRef {
            axis: 0,
            sub_axis: Some(SubAxis { pre_size, size }),
        };
        let dim = |axes: &&[(i64, i64)]| DimSharding {
            axes: axes.iter().map(axis).collect(),
            is_open: false,
        };
        let sharding = NamedSharding {
            mesh: Mesh {
                axes: vec![MeshAxis { name: "x".into(), size: 8 }],
                devices: MeshDevices::InOrder,
            },
            dims: dims.iter().map(dim).collect(),
            replicated: Vec::new(),
            unreduced: Vec::new(),
            reduction: ReductionOp::Sum,
            manual: Vec::new(),
        };
        Shards::named(&sharding, &|_, _| true)
    }

    #[test]
    fn parts_of_an_axis_cut() {
        // numpy: [tuple(i[0] for i in np.where(np.arange(8).reshape(2, 2, 2) == d)) ...]
        let shards = cut(&[&[(2, 2)], &[(1, 2), (4, 2)]]).unwrap();
        assert_eq!(shards.parts.as_slice(), [2, 4]);
        let places: Vec<Vec<usize>> = (0..8).map(|p| shards.place(p).collect()).collect();
        assert_eq!(places, [[0, 0], [0, 1], [1, 0], [1, 1], [0, 2], [0, 3], [1, 2], [1, 3]]);
    }

    #[test]
    fn hostile_parts_are_none() {
        for dims in [
            [&[(1_i64, 3_i64)][..], &[]],
            [&[(i64::MAX, 2)], &[]],
            [&[(1, i64::MAX)], &[]],
            [&[(1, -2)], &[]],
            [&[(0, 2)], &[]],
            [&[(1, 8)], &[(1, 8)]],
            [&[(1, 8); 30], &[]],
        ] {
            assert_eq!(cut(&dims), None, "{dims:?}");
        }
    }
}
