//! The mesh of a module, and the shardings that its instructions state.

use smallvec::SmallVec;
use smol_str::{SmolStr, format_smolstr};
use tilewright_ir::devices::{IotaDevices, MeshDevices};
use tilewright_ir::metadata::{Extras, FrontendAttributes};
use tilewright_ir::sharding::{Placement, Sharding, Subgroup, TileDevices, Tiling};
use tilewright_ir::{Module, sdy};

use super::spread::{Axes, Spread};

const MESHES: &str = "xla.sdy.meshes";
const SHARDING: &str = "xla.sdy.sharding";

/// The most axes of a mesh.
const MOST_AXES: usize = 16;

/// The one mesh of a module.
#[derive(Clone, Debug)]
pub struct DeviceMesh {
    named: sdy::Meshes,
    /// The number of devices along each axis.
    sizes: SmallVec<[i64; 4]>,
}

impl DeviceMesh {
    /// Returns the mesh of a module that Shardy partitions; `None` if it has none or several, or
    /// one whose devices are not in order.
    pub fn of(module: &Module) -> Option<Self> {
        let attributes = &module.header.frontend_attributes;
        let named = sdy::meshes(value_of(attributes, MESHES)?)?;
        let [(_, mesh)] = named.as_slice() else { return None };
        let sizes: SmallVec<[i64; 4]> = mesh.axes.iter().map(|axis| axis.size).collect();
        let fits = mesh.devices == MeshDevices::InOrder && sizes.len() <= MOST_AXES;
        let count = sizes.iter().try_fold(1i64, |count, &size| count.checked_mul(size))?;
        (fits && sizes.iter().all(|&size| size > 0) && count > 1).then_some(Self { named, sizes })
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
        let text = value_of(&extras.frontend_attributes, SHARDING)?;
        let sharding = sdy::sharding(text, &self.named)?;
        let is_plain = sharding.unreduced.is_empty() && sharding.dims.len() == rank;
        let axes = |axes: &[tilewright_ir::devices::AxisRef]| -> Option<Axes> {
            let whole = axes.iter().filter(|axis| axis.sub_axis.is_none());
            let whole: Option<Axes> = whole.map(|axis| u8::try_from(axis.axis).ok()).collect();
            whole.filter(|whole| whole.len() == axes.len())
        };
        let dims: Option<Vec<Axes>> = sharding.dims.iter().map(|dim| axes(&dim.axes)).collect();
        dims.filter(|_| is_plain).map(|dims| Spread::new(dims, self))
    }

    /// Returns the extras of a custom call `Sharding` that states a spread.
    pub fn constraint(&self, spread: &Spread) -> Extras {
        let mut extras = Extras::default();
        extras.sharding = Some(Box::new(Sharding::Leaf(self.placement(spread).into())));
        extras.frontend_attributes = vec![(SHARDING.into(), self.text(spread).into_boxed_str())];
        extras
    }

    /// Returns a spread in Shardy's words, as a custom call has it.
    fn text(&self, spread: &Spread) -> String {
        let name = |axis: &u8| self.name(*axis);
        let dim = |axes: &Axes| {
            let axes: Vec<String> = axes.iter().map(|axis| format!("\"{}\"", name(axis))).collect();
            format!("{{{}}}", axes.join(", "))
        };
        let dims: Vec<String> = spread.iter().map(dim).collect();
        let mesh = self.named.first().map_or("", |(name, _)| name.as_str());
        format!("#sdy.sharding_per_value<[<@{mesh}, [{}]>]>", dims.join(", "))
    }

    fn name(&self, axis: u8) -> SmolStr {
        let axes = self.named.first().map(|(_, mesh)| mesh.axes.as_slice()).unwrap_or_default();
        let axis = usize::from(axis);
        axes.get(axis).map_or_else(|| format_smolstr!("{axis}"), |axis| axis.name.clone())
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
