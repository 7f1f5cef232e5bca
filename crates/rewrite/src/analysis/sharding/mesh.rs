//! The mesh of a module, and the shardings that its instructions state.

use smallvec::SmallVec;
use tilewright_ir::devices::{AxisRef, IotaDevices, Mesh, MeshDevices, ReplicaGroups, SubAxis};
use tilewright_ir::metadata::{Extras, value_of};
use tilewright_ir::sharding::{NamedSharding, Placement, Sharding, Subgroup, TileDevices, Tiling};
use tilewright_ir::{CompId, Dims, Module, Opcode, sdy};

use super::spread::{Axes, Spread};
use super::tiles;
use crate::analysis::index_range::IndexRange;

const MESHES: &str = "xla.sdy.meshes";
const SHARDING: &str = "xla.sdy.sharding";
pub(super) const MANUAL_AXES: &str = "xla.sdy.manual_axes";

/// The most axes of a mesh.
const MOST_AXES: usize = 16;

/// The largest prime by which the devices of an axis are divided.
const LARGEST_PRIME: i64 = 31;

/// The one mesh of a module. Its axes are as short as they can be: an axis of four devices is two
/// axes of two here, since a reshape may divide the devices of an axis between two dims.
#[derive(Clone, Debug)]
pub struct DeviceMesh {
    notation: Notation,
    /// The number of devices along each axis; a prime.
    sizes: SmallVec<[i64; 4]>,
}

/// How the instructions of a module state shardings.
#[derive(Clone, Debug)]
enum Notation {
    /// In frontend attributes, by the names of axes. The short axes are parts of these.
    Shardy(sdy::Meshes, Vec<(usize, SubAxis)>),
    /// As tiles of devices. The axes are ranges of a device's number.
    Gspmd(Vec<IndexRange>),
}

/// A sharding as a program states it.
#[derive(Clone, Debug)]
pub(super) struct Stated {
    /// The axes of each dim.
    pub(super) dims: Vec<Axes>,
    /// Whether XLA may not divide the array further.
    pub(super) is_closed: bool,
}

impl Stated {
    /// Reads a sharding; `None` if it divides an axis further than into these parts.
    fn of(sharding: &NamedSharding, parts: &[(usize, SubAxis)]) -> Option<Self> {
        let is_closed =
            sharding.unreduced.is_empty() && sharding.dims.iter().all(|dim| !dim.is_open);
        let dims = sharding.dims.iter().map(|dim| short_axes(&dim.axes, parts));
        Some(Self { dims: dims.collect::<Option<_>>()?, is_closed })
    }
}

impl DeviceMesh {
    /// Returns the mesh of a module; `None` if it has none or several, or one whose devices are not
    /// in order.
    pub fn of(module: &Module) -> Option<Self> {
        let attributes = &module.header.frontend_attributes;
        let (notation, sizes): (Notation, SmallVec<[i64; 4]>) = match value_of(attributes, MESHES) {
            Some(text) => {
                let mut named = sdy::meshes(text)?;
                // A value on a mesh without axes is whole on each device.
                named.retain(|(_, mesh)| !mesh.axes.is_empty());
                let [(_, mesh)] = named.as_slice() else { return None };
                (mesh.devices == MeshDevices::InOrder).then_some(())?;
                let axes = mesh.axes.iter().enumerate();
                let parts = axes.flat_map(|(number, axis)| {
                    parts_of(axis.size).into_iter().map(move |part| (number, part))
                });
                let parts: Vec<(usize, SubAxis)> = parts.collect();
                let sizes = parts.iter().map(|(_, part)| part.size).collect();
                (Notation::Shardy(named, parts), sizes)
            }
            // The program itself says what devices exchange, or XLA's partitioner has put that in:
            // no axis divides anything.
            None if has_collectives(module, module.entry()) => return Some(Self::without_axes()),
            None => {
                let Some(axes) = tiles::axes(module) else {
                    let all = module.computations().iter().copied();
                    return has_collectives(module, all).then(Self::without_axes);
                };
                let axes: Vec<IndexRange> = axes.into_iter().flat_map(cut_up).collect();
                let sizes = axes.iter().map(|axis| axis.size()).collect();
                (Notation::Gspmd(axes), sizes)
            }
        };
        let count = sizes.iter().try_fold(1i64, |count, &size| count.checked_mul(size))?;
        let fits = sizes.len() <= MOST_AXES && sizes.iter().all(|&size| size > 0) && count > 1;
        fits.then_some(Self { notation, sizes })
    }

    /// Returns the mesh without axes, of a program that says itself what devices exchange.
    fn without_axes() -> Self {
        Self { notation: Notation::Gspmd(Vec::new()), sizes: SmallVec::new() }
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

    /// Returns the bits of the axes along which the devices of each of these groups lie; `None` if
    /// the groups are not those of any axes.
    pub fn axes_of(&self, groups: &ReplicaGroups) -> Option<u16> {
        let lists = groups.lists()?;
        let Some(first) = lists.first() else { return Some(self.bits_of(|_| true)) };
        let &one = first.first()?;
        let mut below = self.devices();
        let mut strides: SmallVec<[i64; 4]> = SmallVec::new();
        for size in &self.sizes {
            below /= size;
            strides.push(below);
        }
        let differs = |axis: usize| {
            let place = |device: i64| device / strides[axis] % self.sizes[axis];
            first.iter().any(|&device| place(device) != place(one))
        };
        let bits = self.bits_of(differs);
        let sizes = self.sizes.iter().enumerate().filter(|&(axis, _)| differs(axis));
        let count: i64 = sizes.map(|(_, size)| size).product();
        (i64::try_from(first.len()) == Ok(count)).then_some(bits)
    }

    fn bits_of(&self, is_one: impl Fn(usize) -> bool) -> u16 {
        let axes = (0..self.sizes.len()).filter(|&axis| is_one(axis));
        axes.fold(0, |bits, axis| bits | (1u16 << axis.min(MOST_AXES - 1)))
    }

    /// Returns the sharding that an instruction states for its result, an array of this rank.
    /// `None` if it states none, or one that divides an axis.
    pub fn stated(&self, extras: &Extras, rank: usize) -> Option<Spread> {
        let dims = match &self.notation {
            Notation::Shardy(named, parts) => {
                let text = value_of(&extras.frontend_attributes, SHARDING)?;
                let stated = Stated::of(&sdy::sharding(text, named)?, parts)?;
                stated.is_closed.then_some(stated.dims)?
            }
            // JAX lists there the dims that XLA may divide as it likes.
            Notation::Gspmd(_) if extras.backend_config.is_some() => return None,
            Notation::Gspmd(axes) => match extras.sharding.as_deref()? {
                Sharding::Leaf(leaf) => tiles::dims(&leaf.placement, rank, axes)?,
                Sharding::Tuple(_) => return None,
            },
        };
        (dims.len() == rank).then(|| Spread::new(dims))
    }

    /// Returns the shardings that an attribute of this key states for several values, each `None` if
    /// it divides an axis. `None` if there is no such attribute.
    pub(super) fn stated_per_value(
        &self,
        extras: &Extras,
        key: &str,
    ) -> Option<Vec<Option<Stated>>> {
        let Notation::Shardy(named, parts) = &self.notation else { return None };
        let text = value_of(&extras.frontend_attributes, key)?;
        sdy::shardings(text, named, |sharding| Some(Stated::of(&sharding, parts)))
    }

    /// Returns the axes that the program handles itself, in the order of the mesh.
    pub(super) fn manual_axes(&self, extras: &Extras) -> Option<Axes> {
        let Notation::Shardy(named, parts) = &self.notation else { return None };
        let names = sdy::manual_axes(value_of(&extras.frontend_attributes, MANUAL_AXES)?)?;
        let (_, mesh) = named.first()?;
        let is_manual =
            |of: usize| mesh.axes.get(of).is_some_and(|axis| names.contains(&axis.name));
        let axes = (0u8..).zip(parts).filter(|(_, (of, _))| is_manual(*of));
        Some(axes.map(|(axis, _)| axis).collect())
    }

    /// Returns the extras of a custom call `Sharding` that states a spread.
    pub fn constraint(&self, spread: &Spread) -> Extras {
        let mut extras = Extras::default();
        extras.sharding = Some(Box::new(Sharding::Leaf(self.placement(spread).into())));
        if let Some(text) = self.per_value(&[spread]) {
            extras.frontend_attributes = vec![(SHARDING.into(), text.into_boxed_str())];
        }
        extras
    }

    /// Checks whether the axes have names, as they have in Shardy.
    pub fn is_named(&self) -> bool {
        matches!(self.notation, Notation::Shardy(..))
    }

    /// Returns the names of all axes in Shardy's words; `None` if they have none.
    pub(super) fn axis_names(&self) -> Option<String> {
        let Notation::Shardy(named, _) = &self.notation else { return None };
        let names = named.first()?.1.axes.iter().map(|axis| format!("\"{}\"", axis.name));
        Some(names.collect::<Vec<_>>().join(", "))
    }

    /// Returns spreads in Shardy's words, as a custom call has them; `None` if the axes have no names.
    pub(super) fn per_value(&self, spreads: &[&Spread]) -> Option<String> {
        let Notation::Shardy(named, parts) = &self.notation else { return None };
        let (name, mesh) = named.first()?;
        let sharding = |spread: &&Spread| {
            let dims: Vec<String> = spread.iter().map(|axes| dim_text(mesh, parts, axes)).collect();
            format!("<@{name}, [{}]>", dims.join(", "))
        };
        let shardings: Vec<String> = spreads.iter().map(sharding).collect();
        Some(format!("#sdy.sharding_per_value<[{}]>", shardings.join(", ")))
    }

    /// Returns the dims of the part of an array that each device has; `None` if the parts are not equal.
    pub fn part_of(&self, dims: &[i64], spread: &Spread) -> Option<Dims> {
        let part = |(&dim, axes): (&i64, &Axes)| {
            let parts = self.parts(axes);
            (dim.checked_rem(parts)? == 0).then(|| dim / parts)
        };
        (dims.len() == spread.iter().len()).then(|| dims.iter().zip(spread).map(part).collect())?
    }

    /// Returns the devices in the order of these axes, which are all axes, in the form that XLA
    /// prints: axes that stay side by side are one.
    fn in_order(&self, axes: impl Iterator<Item = u8>) -> IotaDevices {
        let mut runs: Vec<(u8, i64)> = Vec::new();
        let mut next = None;
        for axis in axes {
            match runs.last_mut() {
                Some((_, size)) if next == Some(axis) => *size *= self.size(axis),
                _ => runs.push((axis, self.size(axis))),
            }
            next = axis.checked_add(1);
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

/// Checks whether these computations have collectives.
fn has_collectives(module: &Module, computations: impl IntoIterator<Item = CompId>) -> bool {
    let mut all = computations.into_iter().flat_map(|one| module.instructions(one));
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

/// Returns the parts of an axis of this size that have a prime number of devices, major to minor;
/// none if there are no devices.
fn parts_of(size: i64) -> Vec<SubAxis> {
    let (mut parts, mut pre_size, mut left) = (Vec::new(), 1, size);
    while left > 1 && parts.len() <= MOST_AXES {
        let size = (2..=LARGEST_PRIME).find(|prime| left % prime == 0).unwrap_or(left);
        parts.push(SubAxis { pre_size, size });
        (pre_size, left) = (pre_size * size, left / size);
    }
    parts
}

/// Returns a range of a device's number in such parts.
fn cut_up(range: IndexRange) -> Vec<IndexRange> {
    let part = |part: SubAxis| {
        let high = range.high / part.pre_size;
        IndexRange { low: high / part.size, high }
    };
    parts_of(range.size()).into_iter().map(part).collect()
}

/// Returns the numbers of the short axes that axes consist of; `None` if one divides a short axis.
fn short_axes(axes: &[AxisRef], parts: &[(usize, SubAxis)]) -> Option<Axes> {
    let mut short = Axes::new();
    for axis in axes {
        let (pre_size, size) = match axis.sub_axis {
            Some(SubAxis { pre_size, size }) => (pre_size, Some(size)),
            None => (1, None),
        };
        let mut next = pre_size;
        let end = size.and_then(|size| pre_size.checked_mul(size));
        for (number, (of, part)) in parts.iter().enumerate() {
            let is_within = end.is_none_or(|end| next < end);
            if *of == axis.axis && part.pre_size == next && is_within {
                short.push(u8::try_from(number).ok()?);
                next = next.checked_mul(part.size)?;
            }
        }
        end.is_none_or(|end| end == next).then_some(())?;
    }
    Some(short)
}

/// Returns the axes of one dim in Shardy's words: `{"x", "y":(2)2}`. Short axes that follow each
/// other in an axis are one.
fn dim_text(mesh: &Mesh, parts: &[(usize, SubAxis)], axes: &[u8]) -> String {
    let mut joined: Vec<(usize, SubAxis)> = Vec::new();
    for (of, part) in axes.iter().filter_map(|&axis| parts.get(usize::from(axis))) {
        match joined.last_mut() {
            Some((last, whole)) if last == of && whole.pre_size * whole.size == part.pre_size => {
                whole.size *= part.size;
            }
            _ => joined.push((*of, *part)),
        }
    }
    let word = |&(of, SubAxis { pre_size, size }): &(usize, SubAxis)| {
        let (name, whole) = mesh.axes.get(of).map_or(("", 0), |axis| (&axis.name, axis.size));
        let part = if size == whole { String::new() } else { format!(":({pre_size}){size}") };
        format!("\"{name}\"{part}")
    };
    let words: Vec<String> = joined.iter().map(word).collect();
    format!("{{{}}}", words.join(", "))
}
