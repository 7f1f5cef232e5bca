//! Shardings of parameters and results in HLO's older form.
//!
//! XLA gives functions these beside Shardy's, which are among the frontend attributes.

use smol_str::SmolStr;
use tilewright_ir::Sharding;
use tilewright_ir::devices::{AxisRef, IotaDevices, Mesh, MeshDevices};
use tilewright_ir::sdy;
use tilewright_ir::sharding::{
    LeafSharding, NamedSharding, Placement, Subgroup, TileDevices, Tiling,
};

use crate::mlir::{Attribute, Attributes, Block, Operation, Program, Value, value_of};

/// Adds the shardings of functions.
pub(super) fn place(program: &mut Program) {
    let text = frontend(&program.module.attributes, "xla.sdy.meshes");
    let Some(meshes) = text.as_deref().and_then(sdy::meshes) else { return };
    let blocks = program.module.regions.iter_mut().flat_map(|region| &mut region.blocks);
    let all = blocks.flat_map(|block| &mut block.operations);
    for function in all.filter(|operation| operation.name == "func.func") {
        arguments(function, &meshes);
        results(function, &meshes);
    }
}

/// Returns a frontend attribute.
fn frontend(attributes: &Attributes, name: &str) -> Option<String> {
    let Attribute::Dictionary(entries) = value_of(attributes, "mhlo.frontend_attributes")? else {
        return None;
    };
    super::super::attributes::text(value_of(entries, name)?).map(String::from)
}

/// Returns a sharding in HLO's older form as text.
pub(super) fn older(meshes: &[(SmolStr, Mesh)], text: &str) -> Option<String> {
    let placement = placement(&sdy::sharding(text, meshes)?)?;
    let sharding = Sharding::Leaf(LeafSharding::from(placement));
    Some(tilewright_text::print_sharding(&sharding))
}

/// Returns the shardings of an operation's results in HLO's older form; `None` if tiles cannot express them all. The
/// sharding of several results, or of none, is that of a tuple.
pub(super) fn of_results(meshes: &[(SmolStr, Mesh)], text: &str, results: usize) -> Option<String> {
    let leaves = sdy::shardings(text, meshes, |one| placement(&one).map(LeafSharding::from))?;
    let sharding = match &leaves[..] {
        [only] if results == 1 => Sharding::Leaf(only.clone()),
        _ => Sharding::Tuple(leaves),
    };
    Some(tilewright_text::print_sharding(&sharding))
}

fn set(attributes: &mut Attributes, meshes: &[(SmolStr, Mesh)], text: &str) {
    if value_of(attributes, "mhlo.sharding").is_some() {
        return;
    }
    if let Some(text) = older(meshes, text) {
        attributes.push(("mhlo.sharding".into(), Attribute::String(text.into_bytes().into())));
    }
}

fn arguments(function: &mut Operation, meshes: &[(SmolStr, Mesh)]) {
    let list = function.attributes.iter_mut().find(|(name, _)| name == "arg_attrs");
    let Some((_, Attribute::Array(entries))) = list else { return };
    for entry in entries {
        if let Attribute::Dictionary(entry) = entry
            && let Some(text) = frontend(entry, "xla.sdy.sharding")
        {
            set(entry, meshes, &text);
        }
    }
}

/// The shardings of results are those of the custom calls that yield them.
fn results(function: &mut Operation, meshes: &[(SmolStr, Mesh)]) {
    let Some(block) = function.regions.first().and_then(|region| region.blocks.first()) else {
        return;
    };
    let Some(end) = block.operations.last() else { return };
    let texts: Vec<Option<String>> =
        end.operands.iter().map(|&operand| of_result(block, operand)).collect();
    if texts.iter().all(Option::is_none) {
        return;
    }
    if function.attribute("res_attrs").is_none() {
        let none = vec![Attribute::Dictionary(Vec::new()); texts.len()];
        function.attributes.push(("res_attrs".into(), Attribute::Array(none)));
    }
    let list = function.attributes.iter_mut().find(|(name, _)| name == "res_attrs");
    let Some((_, Attribute::Array(entries))) = list else { return };
    for (entry, text) in entries.iter_mut().zip(texts) {
        if let (Attribute::Dictionary(entry), Some(text)) = (entry, text) {
            set(entry, meshes, &text);
        }
    }
}

fn of_result(block: &Block, value: Value) -> Option<String> {
    let call = block.operations.iter().find(|operation| operation.results.contains(&value))?;
    let target = super::super::attributes::text(call.attribute("call_target_name")?)?;
    if target != "xla.sdy.FuncResultSharding" {
        return None;
    }
    frontend(&call.attributes, "xla.sdy.sharding")
}

/// Returns the placement that a sharding by axes means; `None` if it has parts that tiles cannot
/// express.
fn placement(sharding: &NamedSharding) -> Option<Placement> {
    let mesh = &sharding.mesh;
    if mesh.axes.is_empty() {
        return Some(match &mesh.devices {
            MeshDevices::List(ids) if ids.len() == 1 => Placement::Maximal(*ids.first()?),
            _ => Placement::Replicated,
        });
    }
    let mut axes = sharding.dims.iter().flat_map(|dim| &dim.axes);
    if axes.all(|axis| size(mesh, axis) == Some(1)) && sharding.unreduced.is_empty() {
        return Some(Placement::Replicated);
    }
    tiled(sharding).map(Placement::Tiled)
}

fn size(mesh: &Mesh, axis: &AxisRef) -> Option<i64> {
    match axis.sub_axis {
        Some(part) => Some(part.size),
        None => mesh.axes.get(axis.axis).map(|axis| axis.size),
    }
}

/// The axes of dims come first, those that split nothing last.
fn tiled(sharding: &NamedSharding) -> Option<Tiling> {
    let mesh = &sharding.mesh;
    let used: Vec<AxisRef> = sharding
        .dims
        .iter()
        .flat_map(|dim| dim.axes.iter().copied())
        .chain(sharding.unreduced.iter().copied())
        .collect();
    let parts = parts(mesh, &used)?;
    let mut dims = Vec::new();
    for dim in &sharding.dims {
        let mut sizes = dim.axes.iter().map(|axis| size(mesh, axis));
        dims.push(sizes.try_fold(1i64, |product, size| product.checked_mul(size?))?);
    }
    let mut subgroups = Vec::new();
    if !sharding.unreduced.is_empty() {
        let mut sizes = sharding.unreduced.iter().map(|axis| size(mesh, axis));
        dims.push(sizes.try_fold(1i64, |product, size| product.checked_mul(size?))?);
        subgroups.push(Subgroup::Unreduced);
    }
    let place = |axis: &AxisRef| {
        let before = axis.sub_axis.map_or(1, |part| part.pre_size);
        parts.iter().position(|&(number, pre, _)| (number, pre) == (axis.axis, before))
    };
    let mut order: Vec<usize> =
        used.iter().filter(|axis| size(mesh, axis) != Some(1)).map(place).collect::<Option<_>>()?;
    let free: Vec<usize> = (0..parts.len()).filter(|part| !order.contains(part)).collect();
    let count = free.iter().filter_map(|&part| parts.get(part));
    let count = count.map(|&(_, _, size)| size).try_fold(1i64, i64::checked_mul)?;
    if count > 1 {
        dims.push(count);
        subgroups.push(Subgroup::Replicated);
    }
    order.extend(free);
    let sizes: Vec<i64> = parts.iter().map(|&(_, _, size)| size).collect();
    Some(Tiling { dims, devices: devices(mesh, &sizes, &order)?, subgroups })
}

/// Returns the parts into which the used axes cut the axes of a mesh: the axis, the size before
/// the part, and its size. Parts of size 1 are left out.
fn parts(mesh: &Mesh, used: &[AxisRef]) -> Option<Vec<(usize, i64, i64)>> {
    let mut parts = Vec::new();
    for (number, axis) in mesh.axes.iter().enumerate() {
        let mut cuts = vec![1, axis.size];
        for part in used.iter().filter(|a| a.axis == number).filter_map(|a| a.sub_axis) {
            cuts.extend([part.pre_size, part.pre_size.checked_mul(part.size)?]);
        }
        cuts.sort_unstable();
        cuts.dedup();
        for pair in cuts.windows(2) {
            let (&from, &to) = (pair.first()?, pair.last()?);
            parts.push((number, from, to.checked_div(from)?));
        }
    }
    Some(parts)
}

/// Returns the devices in the order of the parts.
fn devices(mesh: &Mesh, sizes: &[i64], order: &[usize]) -> Option<TileDevices> {
    let iota = simplest(sizes, order)?;
    match &mesh.devices {
        MeshDevices::InOrder => Some(TileDevices::Iota(iota)),
        MeshDevices::List(ids) => {
            let places = iota.ids()?;
            let ids = places.iter().map(|&at| ids.get(usize::try_from(at).ok()?).copied());
            ids.collect::<Option<_>>().map(TileDevices::List)
        }
        MeshDevices::Iota(_) => None,
    }
}

/// Returns the shortest form of a transposed iota: neighbours that stay together are one dim.
fn simplest(sizes: &[i64], order: &[usize]) -> Option<IotaDevices> {
    let mut groups: Vec<Vec<usize>> = Vec::new();
    for &part in order {
        match groups.last_mut() {
            Some(group) if group.last().is_some_and(|&last| last + 1 == part) => group.push(part),
            _ => groups.push(vec![part]),
        }
    }
    let mut sorted: Vec<&Vec<usize>> = groups.iter().collect();
    sorted.sort_by_key(|group| group.first().copied());
    let product = |group: &Vec<usize>| {
        let sizes = group.iter().filter_map(|&part| sizes.get(part));
        sizes.copied().try_fold(1i64, i64::checked_mul)
    };
    let reshape_dims: Vec<i64> =
        sorted.iter().map(|group| product(group)).collect::<Option<_>>()?;
    let at = |group: &Vec<usize>| sorted.iter().position(|known| *known == group);
    let permutation = groups.iter().map(|group| i64::try_from(at(group)?).ok());
    let transpose_perm: Vec<i64> = permutation.collect::<Option<_>>()?;
    if reshape_dims.is_empty() {
        return Some(IotaDevices { reshape_dims: vec![1], transpose_perm: vec![0] });
    }
    Some(IotaDevices { reshape_dims, transpose_perm })
}
