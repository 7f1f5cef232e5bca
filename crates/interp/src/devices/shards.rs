//! Which part of an array each partition has: what the calls between the shapes of the whole
//! and of a shard say, by which a program before partitioning leaves and enters what it says
//! for each device itself (`shard_map`).
//!
//! Shardy's calls state shardings in frontend attributes; GSPMD's are those of the call or of
//! its operand (`xla/hlo/utils/hlo_sharding_util.h`, `shardy/round_trip_import`).

use smallvec::SmallVec;
use tilewright_ir::devices::{AxisRef, Mesh};
use tilewright_ir::metadata::FrontendAttributes;
use tilewright_ir::sharding::{LeafSharding, NamedSharding, Placement, TileDevices, Tiling};
use tilewright_ir::{InstId, Module, Op, sdy};

use super::MOST_DEVICES;

/// How an array is cut into equal parts, and which of them each partition has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Shards {
    /// Into how many parts each dim is cut.
    pub(crate) parts: SmallVec<[usize; 4]>,
    /// The part of each dim that a partition has.
    pub(crate) places: Vec<SmallVec<[usize; 4]>>,
}

/// Which way a call goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// From the whole to a shard.
    ToShard,
    /// From shards to the whole.
    ToWhole,
}

impl Way {
    /// That of a custom call target, if it is one of these calls.
    pub(crate) fn of(target: &str) -> Option<Self> {
        match target {
            "SPMDFullToShardShape" | "xla.sdy.GlobalToLocalShape" => Some(Self::ToShard),
            "SPMDShardToFullShape" | "xla.sdy.LocalToGlobalShape" => Some(Self::ToWhole),
            _ => None,
        }
    }
}

/// How many partitions the calls of a module have arrays cut for; 1 if there are none.
pub(super) fn partitions(module: &Module) -> usize {
    let computations = module.computations().iter();
    let all = computations.flat_map(|&computation| module.instructions(computation));
    let counts = all.filter_map(|id| Some(of_call(module, id)?.first()?.places.len()));
    counts.max().unwrap_or(1)
}

/// How each operand of such a call is cut, or each result; `None` if an instruction is none,
/// or says nothing that is known.
pub(crate) fn of_call(module: &Module, id: InstId) -> Option<Vec<Shards>> {
    let Op::CustomCall(attrs) = module.op(id) else { return None };
    let target = attrs.custom_call_target.as_str();
    let way = Way::of(target)?;
    if target.starts_with("xla.sdy.") {
        by_axes(module, id, way)
    } else {
        by_tiles(module, id, way)
    }
}

fn by_axes(module: &Module, id: InstId, way: Way) -> Option<Vec<Shards>> {
    let attributes = &module.extras(id)?.frontend_attributes;
    let meshes = value_of(&module.header.frontend_attributes, "xla.sdy.meshes");
    let meshes = meshes.map_or(Some(Vec::new()), sdy::meshes)?;
    let key = match way {
        Way::ToShard => "xla.sdy.in_shardings",
        Way::ToWhole => "xla.sdy.out_shardings",
    };
    let shardings = sdy::shardings(value_of(attributes, key)?, &meshes)?;
    let manual = sdy::manual_axes(value_of(attributes, "xla.sdy.manual_axes")?)?;
    let is_manual = |mesh: &Mesh, axis: &AxisRef| {
        mesh.axes.get(axis.axis).is_some_and(|axis| manual.contains(&axis.name))
    };
    shardings.iter().map(|sharding| Shards::named(sharding, &is_manual)).collect()
}

fn value_of<'a>(attributes: &'a FrontendAttributes, wanted: &str) -> Option<&'a str> {
    attributes.iter().find(|(name, _)| name == wanted).map(|(_, value)| &**value)
}

fn by_tiles(module: &Module, id: InstId, way: Way) -> Option<Vec<Shards>> {
    let &operand = module.operands(id).first()?;
    let stated = match way {
        Way::ToShard => operand,
        Way::ToWhole => id,
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

impl Shards {
    /// By the axes of a mesh of which a program takes care itself.
    fn named(
        sharding: &NamedSharding,
        is_manual: &dyn Fn(&Mesh, &AxisRef) -> bool,
    ) -> Option<Self> {
        let NamedSharding { mesh, dims, .. } = sharding;
        let sizes: Vec<usize> =
            mesh.axes.iter().map(|axis| usize::try_from(axis.size).ok()).collect::<Option<_>>()?;
        let cuts = dims.iter().map(|dim| {
            let axes = dim.axes.iter().filter(|axis| is_manual(mesh, axis));
            axes.map(|axis| Cut::of(axis, &sizes)).collect::<Option<Vec<Cut>>>()
        });
        let cuts = cuts.collect::<Option<Vec<_>>>()?;
        let parts = cuts
            .iter()
            .map(|cuts| cuts.iter().try_fold(1_usize, |parts, cut| parts.checked_mul(cut.size)));
        let parts = parts.collect::<Option<_>>()?;
        let place = |at: usize| {
            let along = unravelled(at, &sizes);
            let part = |cuts: &Vec<Cut>| {
                cuts.iter().fold(0, |part, cut| part * cut.size + cut.part(&along))
            };
            cuts.iter().map(part).collect()
        };
        Self::of(parts, &mesh.ids()?, place)
    }

    /// By tiles; what the devices of a subgroup have is the same, or their own affair.
    fn tiled(tiling: &Tiling, rank: usize) -> Option<Self> {
        let sizes: Vec<usize> =
            tiling.dims.iter().map(|&size| usize::try_from(size).ok()).collect::<Option<_>>()?;
        let ids = match &tiling.devices {
            TileDevices::List(ids) => ids.clone(),
            TileDevices::Iota(devices) => devices.ids()?,
        };
        let place = |at: usize| unravelled(at, &sizes).into_iter().take(rank).collect();
        Self::of(sizes.iter().copied().take(rank).collect(), &ids, place)
    }

    /// `ids` are the partitions, `place` the parts that the one at a place of them has.
    fn of(
        parts: SmallVec<[usize; 4]>,
        ids: &[i64],
        place: impl Fn(usize) -> SmallVec<[usize; 4]>,
    ) -> Option<Self> {
        // Every part is somebody's.
        let count = parts.iter().try_fold(1_usize, |count, &size| count.checked_mul(size))?;
        if count == 0 || count > ids.len() || ids.len() > MOST_DEVICES {
            return None;
        }
        let mut places = vec![None; ids.len()];
        for (at, &id) in ids.iter().enumerate() {
            let slot = places.get_mut(usize::try_from(id).ok()?)?;
            *slot = Some(place(at));
        }
        Some(Self { parts, places: places.into_iter().collect::<Option<_>>()? })
    }

    /// The size of the whole, of a shard of these dims.
    pub(crate) fn whole(&self, shard: &[i64]) -> Option<SmallVec<[i64; 6]>> {
        let dims = shard.iter().zip(&self.parts).map(|(&dim, &parts)| {
            let parts = i64::try_from(parts).ok()?;
            dim.checked_mul(parts)
        });
        if shard.len() == self.parts.len() { dims.collect() } else { None }
    }
}

/// An axis of a mesh, or a part of one, along which a dim is cut.
struct Cut {
    axis: usize,
    size: usize,
    /// How many devices lie along what is minor to it in its axis.
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
        // What does not divide the axis is no part of it.
        (after.checked_mul(outer)? == whole).then_some(Self { axis: axis.axis, size, after })
    }

    fn part(&self, along: &[usize]) -> usize {
        let at = along.get(self.axis).copied().unwrap_or(0);
        let part = at.checked_div(self.after).unwrap_or(0);
        part.checked_rem(self.size).unwrap_or(0)
    }
}

/// The index of a place in row-major order.
fn unravelled(mut at: usize, sizes: &[usize]) -> SmallVec<[usize; 4]> {
    let mut index: SmallVec<[usize; 4]> = sizes
        .iter()
        .rev()
        .map(|&size| {
            let along = at.checked_rem(size).unwrap_or(0);
            at = at.checked_div(size).unwrap_or(0);
            along
        })
        .collect();
    index.reverse();
    index
}

#[cfg(test)]
mod tests {
    use super::*;
    use tilewright_ir::devices::{MeshAxis, MeshDevices, SubAxis};
    use tilewright_ir::sharding::DimSharding;

    /// The parts of dims cut along parts of an axis of 8 devices.
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
            manual: Vec::new(),
        };
        Shards::named(&sharding, &|_, _| true)
    }

    #[test]
    fn parts_of_an_axis_cut() {
        // numpy: [tuple(i[0] for i in np.where(np.arange(8).reshape(2, 2, 2) == d)) ...]
        let shards = cut(&[&[(2, 2)], &[(1, 2), (4, 2)]]).unwrap();
        assert_eq!(shards.parts.as_slice(), [2, 4]);
        let places: Vec<_> = shards.places.iter().map(|place| (place[0], place[1])).collect();
        assert_eq!(places, [(0, 0), (0, 1), (1, 0), (1, 1), (0, 2), (0, 3), (1, 2), (1, 3)]);
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
