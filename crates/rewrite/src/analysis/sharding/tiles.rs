//! Tiles of devices, as GSPMD's shardings have them, as axes of a mesh.
//!
//! `{devices=[2,1,4]<=[4,2]T(1,0) last_tile_dim_replicate}` lists the devices in the order of a
//! transposed grid, and cuts this list into tiles. Each tile dim then is one range of the device's
//! number, or several. Cut at the ends of all these ranges, the number has digits, which are the axes of
//! a mesh: here of 4 and 2 devices.

use smallvec::SmallVec;
use tilewright_ir::Module;
use tilewright_ir::sharding::{Placement, Sharding, Subgroup, TileDevices, Tiling};

use super::spread::Axes;
use crate::analysis::index_range::{Cuts, IndexRange, index_ranges};

/// Returns the axes of the mesh to which the tiles of a module's entry belong, as ranges of the
/// number of a device, major to minor. `None` if there are none, or they belong to no mesh.
pub(super) fn axes(module: &Module) -> Option<Vec<IndexRange>> {
    let mut devices = None;
    let mut ends = Vec::new();
    for id in module.instructions(module.entry()?) {
        let stated = module.extras(id).and_then(|extras| extras.sharding.as_deref());
        for leaf in stated.map(Sharding::leaves).unwrap_or_default() {
            let Placement::Tiled(tiling) = &leaf.placement else { continue };
            let count = tiling.dims.iter().try_fold(1i64, |n, &dim| n.checked_mul(dim))?;
            (*devices.get_or_insert(count) == count).then_some(())?;
            let tiles = tiles(tiling)?;
            ends.extend(tiles.into_iter().flatten());
        }
    }
    Some(Cuts::of(devices?, ends)?.digits())
}

/// Returns the axes that divide each dim of an array, by their numbers; `None` if the tiles are not
/// tiles of a mesh with these axes.
pub(super) fn dims(placement: &Placement, rank: usize, axes: &[IndexRange]) -> Option<Vec<Axes>> {
    let tiling = match placement {
        Placement::Replicated => return Some(vec![Axes::new(); rank]),
        Placement::Tiled(tiling) => tiling,
        _ => return None,
    };
    let is_plain = tiling.subgroups.iter().all(|group| *group == Subgroup::Replicated);
    let tiles = tiles(tiling).filter(|tiles| is_plain && tiles.len() >= rank)?;
    let within = |ranges: SmallVec<[IndexRange; 2]>| -> Option<Axes> {
        let places = ranges.iter().flat_map(|range| {
            axes.iter().enumerate().filter(|(_, axis)| axis.within(*range)).map(|(place, _)| place)
        });
        places.map(|place| u8::try_from(place).ok()).collect()
    };
    tiles.into_iter().take(rank).map(within).collect()
}

/// Returns the ranges of a device's number that each tile dim is; `None` if the devices are listed
/// one by one, or a tile dim cuts a range unevenly.
fn tiles(tiling: &Tiling) -> Option<Vec<SmallVec<[IndexRange; 2]>>> {
    let TileDevices::Iota(devices) = &tiling.devices else { return None };
    let grid = index_ranges(&devices.reshape_dims)?;
    let order = devices.transpose_perm.iter().map(|&dim| usize::try_from(dim).ok());
    // The major one comes last.
    let mut left: Vec<IndexRange> =
        order.map(|dim| grid.get(dim?).copied()).rev().collect::<Option<_>>()?;
    left.retain(|range| range.size() > 1);
    let take = |&count: &i64| {
        let (mut wanted, mut taken) = (count, SmallVec::new());
        while wanted > 1 {
            let range = left.pop()?;
            if wanted % range.size() == 0 {
                wanted /= range.size();
                taken.push(range);
            } else if range.size() % wanted == 0 {
                let cut = range.high / wanted;
                taken.push(IndexRange { low: cut, high: range.high });
                left.push(IndexRange { low: range.low, high: cut });
                wanted = 1;
            } else {
                return None;
            }
        }
        Some(taken)
    };
    tiling.dims.iter().map(take).collect()
}
