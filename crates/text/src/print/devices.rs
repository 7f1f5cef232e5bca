//! Devices: lists of their ids, meshes, the groups of collectives.

use tilewright_ir::devices::{AxisRef, IotaDevices, Mesh, MeshDevices, ReplicaGroups};

use super::attrs::{push_lists, separated};
use super::number::{push_i64, push_list};
use super::string::push_in_single_quotes;

/// Appends the value of `replica_groups`.
pub(super) fn push_groups(out: &mut String, groups: &ReplicaGroups) {
    match groups {
        ReplicaGroups::Lists(groups) => push_lists(out, groups),
        ReplicaGroups::Iota { groups, size, devices } => {
            out.push('[');
            push_list(out, &[*groups, *size], ',');
            out.push_str("]<=");
            push_iota(out, devices);
        }
        ReplicaGroups::Mesh { mesh, axes } => {
            push_mesh(out, mesh);
            out.push(' ');
            push_axes(out, mesh, axes, ",");
        }
    }
}

/// `[2,2]T(1,0)`
pub(super) fn push_iota(out: &mut String, devices: &IotaDevices) {
    out.push('[');
    push_list(out, &devices.reshape_dims, ',');
    out.push(']');
    if !devices.is_plain() {
        out.push_str("T(");
        push_list(out, &devices.transpose_perm, ',');
        out.push(')');
    }
}

/// `mesh['x'=2,'y'=4]`, and which devices, unless they are in order.
pub(super) fn push_mesh(out: &mut String, mesh: &Mesh) {
    out.push_str("mesh[");
    separated(out, &mesh.axes, ",", |out, axis| {
        push_in_single_quotes(out, &axis.name);
        out.push('=');
        push_i64(out, axis.size);
    });
    out.push(']');
    match &mesh.devices {
        MeshDevices::InOrder => {}
        MeshDevices::List(ids) => {
            out.push_str(", device_ids=(");
            push_list(out, ids, ',');
            out.push(')');
        }
        MeshDevices::Iota(devices) => {
            out.push_str(", device_ids=(");
            push_iota(out, devices);
            out.push(')');
        }
    }
}

/// `{'x','y':(1)2}`
pub(super) fn push_axes(out: &mut String, mesh: &Mesh, axes: &[AxisRef], separator: &str) {
    out.push('{');
    separated(out, axes, separator, |out, axis| push_axis(out, mesh, *axis));
    out.push('}');
}

/// `'y':(1)2`
pub(super) fn push_axis(out: &mut String, mesh: &Mesh, axis: AxisRef) {
    push_in_single_quotes(out, mesh.axes.get(axis.axis).map_or("", |axis| &axis.name));
    if let Some(part) = axis.sub_axis {
        out.push_str(":(");
        push_i64(out, part.pre_size);
        out.push(')');
        push_i64(out, part.size);
    }
}
