//! Shardings, each in the form that it has.

use tilewright_ir::devices::MeshDevices;
use tilewright_ir::sharding::{
    LeafSharding, NamedSharding, Placement, ShardGroup, Sharding, Subgroup, TileDevices, Tiling,
};

use super::attrs::separated;
use super::devices::{push_axes, push_axis, push_iota, push_mesh};
use super::metadata::push_fields;
use super::number::{push_i64, push_list};

/// Appends the value of `sharding`.
pub(super) fn push(out: &mut String, sharding: &Sharding) {
    match sharding {
        Sharding::Leaf(leaf) => push_leaf(out, leaf),
        Sharding::Tuple(leaves) => {
            out.push('{');
            separated(out, leaves, ", ", push_leaf);
            out.push('}');
        }
    }
}

fn push_leaf(out: &mut String, leaf: &LeafSharding) {
    let is_named = matches!(leaf.placement, Placement::Named(_));
    out.push('{');
    push_placement(out, &leaf.placement);
    match leaf.group {
        None => {}
        Some(ShardGroup::As(id)) => {
            out.push_str(" shard_as ");
            push_i64(out, id);
        }
        Some(ShardGroup::Like(id)) => {
            out.push_str(" shard_like ");
            push_i64(out, id);
        }
    }
    match leaf.metadata.as_slice() {
        [] => {}
        [source] if !is_named => {
            out.push_str(" metadata=");
            push_fields(out, source);
        }
        sources => {
            out.push_str(if is_named { ", metadata={" } else { " metadata={" });
            separated(out, sources, ", ", push_fields);
            out.push('}');
        }
    }
    out.push('}');
}

fn push_placement(out: &mut String, placement: &Placement) {
    match placement {
        Placement::Replicated => out.push_str("replicated"),
        Placement::Manual => out.push_str("manual"),
        Placement::Unknown => out.push_str("unknown"),
        Placement::Unreduced => out.push_str("unreduced"),
        Placement::Maximal(device) => {
            out.push_str("maximal device=");
            push_i64(out, *device);
        }
        Placement::Tiled(tiling) => push_tiling(out, tiling),
        Placement::Named(named) => push_named(out, named),
    }
}

fn push_tiling(out: &mut String, tiling: &Tiling) {
    out.push_str("devices=[");
    push_list(out, &tiling.dims, ',');
    out.push(']');
    match &tiling.devices {
        TileDevices::List(ids) => push_list(out, ids, ','),
        TileDevices::Iota(devices) => {
            out.push_str("<=");
            push_iota(out, devices);
        }
    }
    match tiling.subgroups.as_slice() {
        [] => {}
        [Subgroup::Replicated] => out.push_str(" last_tile_dim_replicate"),
        subgroups => {
            out.push_str(" last_tile_dims={");
            separated(out, subgroups, ", ", |out, subgroup| {
                out.push_str(match subgroup {
                    Subgroup::Replicated => "replicated",
                    Subgroup::Manual => "manual",
                    Subgroup::Unreduced => "unreduced",
                });
            });
            out.push('}');
        }
    }
}

fn push_named(out: &mut String, named: &NamedSharding) {
    let mesh = &named.mesh;
    let no_axes =
        named.replicated.is_empty() && named.unreduced.is_empty() && named.manual.is_empty();
    if let (true, [], MeshDevices::List(ids)) = (no_axes, mesh.axes.as_slice(), &mesh.devices)
        && let &[device] = ids.as_slice()
    {
        out.push_str("maximal_mesh[device_id=");
        push_i64(out, device);
        out.push(']');
        return;
    }
    push_mesh(out, mesh);
    if named.dims.is_empty() && no_axes {
        out.push_str(", replicated");
        return;
    }
    if !named.dims.is_empty() {
        out.push_str(", [");
        separated(out, &named.dims, ", ", |out, dim| {
            out.push('{');
            separated(out, &dim.axes, ", ", |out, axis| push_axis(out, mesh, *axis));
            if dim.is_open {
                out.push_str(if dim.axes.is_empty() { "?" } else { ", ?" });
            }
            out.push('}');
        });
        out.push(']');
    }
    let lists = [
        ("replicated", &named.replicated),
        ("unreduced", &named.unreduced),
        ("manual", &named.manual),
    ];
    for (name, axes) in lists {
        if axes.is_empty() {
            continue;
        }
        out.push_str(", ");
        out.push_str(name);
        // A single word covers all axes if nothing else is specified.
        let reduction = if name == "unreduced" { named.reduction.word() } else { "" };
        let may_be_word = name != "replicated" && reduction.is_empty();
        let is_all = mesh.is_all(axes) && named.dims.is_empty() && may_be_word;
        if !is_all {
            out.push('=');
            out.push_str(reduction);
            push_axes(out, mesh, axes, ", ");
        }
    }
}
