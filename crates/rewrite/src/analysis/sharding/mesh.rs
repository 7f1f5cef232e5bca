//! The mesh of a module, and the shardings that its instructions state.

use smallvec::SmallVec;
use tilewright_ir::devices::{AxisRef, IotaDevices, MeshDevices};
use tilewright_ir::metadata::{Extras, FrontendAttributes};
use tilewright_ir::sharding::{Placement, Sharding, Subgroup, TileDevices, Tiling};
use tilewright_ir::{Module, Opcode, sdy};

use super::spread::{Axes, Spread};
use super::tiles;
use crate::analysis::index_range::IndexRange;

const MESHES: &str = "xla.sdy.meshes";
const SHARDING: &str = "xla.sdy.sharding";

/// The most axes of a mesh.
const MOST_AXES: usize = 16;

/// The one mesh of a module.
#[derive(Clone, Debug)]
pub struct DeviceMesh {
    words: Words,
    /// The number of devices along each axis.
    sizes: SmallVec<[i64; 4]>,
}

/// How the instructions of a module state shardings.
#[derive(Clone, Debug)]
enum Words {
    /// In frontend attributes, by the names of axes.
    Shardy(sdy::Meshes),
    /// As tiles of devices. The axes are ranges of a device's number.
    Gspmd(Vec<IndexRange>),
}

impl DeviceMesh {
    /// Returns the mesh of a module; `None` if it has none or several, or one whose devices are not
    /// in order.
    pub fn of(module: &Module) -> Option<Self> {
        let attributes = &module.header.frontend_attributes;
        let (words, sizes): (Words, SmallVec<[i64; 4]>) = match value_of(attributes, MESHES) {
            Some(text) => {
                let named = sdy::meshes(text)?;
                let [(_, mesh)] = named.as_slice() else { return None };
                (mesh.devices == MeshDevices::InOrder).then_some(())?;
                let sizes = mesh.axes.iter().map(|axis| axis.size).collect();
                (Words::Shardy(named), sizes)
            }
            // Collectives in the entry are what XLA's partitioner leaves.
            None if has_collectives(module) => return None,
            None => {
                let axes = tiles::axes(module)?;
                let sizes = axes.iter().map(|axis| axis.size()).collect();
                (Words::Gspmd(axes), sizes)
            }
        };
        let count = sizes.iter().try_fold(1i64, |count, &size| count.checked_mul(size))?;
        let fits = sizes.len() <= MOST_AXES && sizes.iter().all(|&size| size > 0) && count > 1;
        fits.then_some(Self { words, sizes })
    }

    /// Returns the number of devices.
    pub fn devices(&self) -> i64 {
        self.sizes.iter().product()
    }

    /// Returns the number of devices along an axis.
    pub fn size(&self, axis: u8) -> i64 {
        self.sizes.get(usize::from(axis)).copied().unwrap_or(1)
    }

    /// Returns the number of parts into which axes divide a dim.
    pub fn parts(&self, axes: &[u8]) -> i64 {
        axes.iter().map(|&axis| self.size(axis)).product()
    }

    /// Returns the number of parts into which a value is divided.
    pub fn parts_of(&self, spread: &Spread) -> i64 {
        spread.iter().map(|axes| self.parts(axes)).product()
    }

    /// Returns the sharding that an instruction states for its result, an array of this rank.
    /// `None` if it states none, or one that divides an axis.
    pub fn stated(&self, extras: &Extras, rank: usize) -> Option<Spread> {
        let dims = match &self.words {
            Words::Shardy(named) => {
                let text = value_of(&extras.frontend_attributes, SHARDING)?;
                let sharding = sdy::sharding(text, named)?;
                // What is open may be divided further.
                let is_closed =
                    sharding.unreduced.is_empty() && sharding.dims.iter().all(|dim| !dim.is_open);
                let dims = sharding.dims.iter().map(|dim| whole_axes(&dim.axes));
                dims.collect::<Option<Vec<Axes>>>().filter(|_| is_closed)?
            }
            Words::Gspmd(axes) => match extras.sharding.as_deref()? {
                Sharding::Leaf(leaf) => tiles::dims(&leaf.placement, rank, axes)?,
                Sharding::Tuple(_) => return None,
            },
        };
        (dims.len() == rank).then(|| Spread::new(dims, self))
    }

    /// Returns the extras of a custom call `Sharding` that states a spread.
    pub fn constraint(&self, spread: &Spread) -> Extras {
        let mut extras = Extras::default();
        extras.sharding = Some(Box::new(Sharding::Leaf(self.placement(spread).into())));
        if let Words::Shardy(named) = &self.words {
            let text = text(named, spread).into_boxed_str();
            extras.frontend_attributes = vec![(SHARDING.into(), text)];
        }
        extras
    }

    /// Returns the devices in the order of these axes, which are all axes, in the form that XLA
    /// prints: axes that stay side by side are one.
    fn in_order(&self, axes: impl Iterator<Item = u8>) -> IotaDevices {
        let mut runs: Vec<(u8, i64)> = Vec::new();
        let mut next = None;
        for axis in axes.filter(|&axis| self.size(axis) > 1) {
            match runs.last_mut() {
                Some((_, size)) if next == Some(axis) => *size *= self.size(axis),
                _ => runs.push((axis, self.size(axis))),
            }
            let rest = (0u8..).take(self.sizes.len()).filter(|&later| later > axis);
            next = rest.into_iter().find(|&later| self.size(later) > 1);
        }
        let mut sorted = runs.clone();
        sorted.sort_unstable();
        let place = |run: &(u8, i64)| sorted.iter().position(|other| other == run);
        let places = runs.iter().filter_map(place).filter_map(|place| i64::try_from(place).ok());
        IotaDevices {
            transpose_perm: places.collect(),
            reshape_dims: sorted.into_iter().map(|(_, size)| size).collect(),
        }
    }

    /// Returns a spread as tiles of devices.
    fn placement(&self, spread: &Spread) -> Placement {
        if spread.is_whole() {
            return Placement::Replicated;
        }
        let used: Vec<u8> = spread.iter().flatten().copied().collect();
        let all = (0u8..).take(self.sizes.len());
        let rest: Vec<u8> = all.filter(|axis| !used.contains(axis)).collect();
        let copies = self.parts(&rest);
        let mut dims: Vec<i64> = spread.iter().map(|axes| self.parts(axes)).collect();
        let subgroups = if copies > 1 { vec![Subgroup::Replicated] } else { Vec::new() };
        dims.extend(subgroups.iter().map(|_| copies));
        let devices = TileDevices::Iota(self.in_order(used.into_iter().chain(rest)));
        Placement::Tiled(Tiling { dims, devices, subgroups })
    }
}

/// Returns the value of an attribute.
fn value_of<'a>(attributes: &'a FrontendAttributes, key: &str) -> Option<&'a str> {
    attributes.iter().find(|(name, _)| name == key).map(|(_, value)| &**value)
}

/// Checks whether the entry has collectives.
fn has_collectives(module: &Module) -> bool {
    let mut all = module.entry().into_iter().flat_map(|entry| module.instructions(entry));
    all.any(|id| {
        matches!(
            module.opcode(id),
            Opcode::AllReduce
                | Opcode::AllGather
                | Opcode::AllToAll
                | Opcode::ReduceScatter
                | Opcode::CollectivePermute
                | Opcode::PartitionId
        )
    })
}

/// Returns the numbers of axes, if none of them is a part of an axis.
fn whole_axes(axes: &[AxisRef]) -> Option<Axes> {
    let whole = axes.iter().map(|axis| match axis.sub_axis {
        None => u8::try_from(axis.axis).ok(),
        Some(_) => None,
    });
    whole.collect()
}

/// Returns a spread in Shardy's words, as a custom call has it.
fn text(named: &sdy::Meshes, spread: &Spread) -> String {
    let Some((mesh, axes)) = named.first().map(|(name, mesh)| (name, &mesh.axes)) else {
        return String::new();
    };
    let name = |axis: &u8| axes.get(usize::from(*axis)).map_or("", |axis| axis.name.as_str());
    let dim = |of_dim: &Axes| {
        let names: Vec<String> = of_dim.iter().map(|axis| format!("\"{}\"", name(axis))).collect();
        format!("{{{}}}", names.join(", "))
    };
    let dims: Vec<String> = spread.iter().map(dim).collect();
    format!("#sdy.sharding_per_value<[<@{mesh}, [{}]>]>", dims.join(", "))
}
