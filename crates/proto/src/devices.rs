//! Meshes, their axes, and the groups of collectives.

use tilewright_ir::devices::{
    AxisRef, IotaDevices, Mesh, MeshAxis, MeshDevices, ReplicaGroups, SubAxis,
};

use crate::error::{ProtoError, Within as _, each};
use crate::generated::xla::hlo_instruction_proto::ReplicaGroupList;
use crate::generated::xla::{
    AxisRefProto, CollectiveDeviceListProto, HloInstructionProto, IotaReplicaGroupListProto,
    MeshAxesReplicaGroupListProto, MeshProto, ReplicaGroup, axis_ref_proto, mesh_proto,
};

pub(crate) fn decode_iota(
    reshape_dims: &[i64],
    transpose_perm: Vec<i64>,
) -> Result<IotaDevices, ProtoError> {
    let mut sorted = transpose_perm.clone();
    sorted.sort_unstable();
    if !sorted.iter().copied().eq((0i64..).take(reshape_dims.len())) {
        let message =
            format!("{transpose_perm:?} is no permutation of {} dims", reshape_dims.len());
        return Err(ProtoError::new(message));
    }
    Ok(IotaDevices { reshape_dims: reshape_dims.to_vec(), transpose_perm })
}

/// Returns a permutation as two messages hold it.
pub(crate) fn narrow(permutation: &[i64]) -> Result<Vec<i32>, ProtoError> {
    each("iota_transpose_perm", permutation, |&dim| {
        i32::try_from(dim).map_err(|_| ProtoError::new(format!("there is no dim {dim}")))
    })
}

pub(crate) fn widen(permutation: &[i32]) -> Vec<i64> {
    permutation.iter().map(|&dim| i64::from(dim)).collect()
}

pub(crate) fn decode_mesh(proto: &MeshProto) -> Result<Mesh, ProtoError> {
    let axes = proto.axes.iter();
    let axes = axes.map(|axis| MeshAxis { name: axis.name.as_str().into(), size: axis.size });
    let devices = match &proto.iota_transform {
        Some(iota) => {
            let iota = decode_iota(&iota.reshape_dims, iota.transpose_perm.clone());
            MeshDevices::Iota(iota.within("iota_transform")?)
        }
        None if proto.device_ids.is_empty() => MeshDevices::InOrder,
        None => MeshDevices::List(proto.device_ids.clone()),
    };
    Ok(Mesh { axes: axes.collect(), devices })
}

pub(crate) fn encode_mesh(mesh: &Mesh) -> MeshProto {
    let axes = mesh.axes.iter();
    let axes =
        axes.map(|axis| mesh_proto::MeshAxis { name: axis.name.to_string(), size: axis.size });
    let (device_ids, iota_transform) = match &mesh.devices {
        MeshDevices::InOrder => (Vec::new(), None),
        MeshDevices::List(ids) => (ids.clone(), None),
        MeshDevices::Iota(iota) => {
            let iota = mesh_proto::IotaTransform {
                reshape_dims: iota.reshape_dims.clone(),
                transpose_perm: iota.transpose_perm.clone(),
            };
            (Vec::new(), Some(iota))
        }
    };
    MeshProto { axes: axes.collect(), device_ids, iota_transform }
}

pub(crate) fn decode_axis(proto: &AxisRefProto, mesh: &Mesh) -> Result<AxisRef, ProtoError> {
    let index = usize::try_from(proto.mesh_axis_index).ok();
    let axis = index.filter(|&axis| axis < mesh.axes.len()).ok_or_else(|| {
        let message = format!("the mesh has no axis {}", proto.mesh_axis_index);
        ProtoError::new(message).within("mesh_axis_index")
    })?;
    let sub_axis = proto.sub_axis_info.as_ref();
    let sub_axis = sub_axis.map(|sub| SubAxis { pre_size: sub.pre_size, size: sub.size });
    Ok(AxisRef { axis, sub_axis })
}

pub(crate) fn encode_axis(axis: &AxisRef) -> AxisRefProto {
    let sub_axis = axis.sub_axis;
    AxisRefProto {
        // Axes are counted by a list, which is shorter than that.
        mesh_axis_index: i64::try_from(axis.axis).unwrap_or(i64::MAX),
        sub_axis_info: sub_axis
            .map(|sub| axis_ref_proto::SubAxis { pre_size: sub.pre_size, size: sub.size }),
    }
}

pub(crate) fn decode_groups(proto: &HloInstructionProto) -> Result<ReplicaGroups, ProtoError> {
    let lists = |groups: &[ReplicaGroup]| {
        ReplicaGroups::Lists(groups.iter().map(|group| group.replica_ids.clone()).collect())
    };
    match &proto.replica_group_list {
        None => Ok(lists(&proto.replica_groups)),
        Some(ReplicaGroupList::CollectiveDeviceList(list)) => match &list.iota_replica_group_list {
            Some(iota) => decode_iota_groups(iota)
                .within("iota_replica_group_list")
                .within("collective_device_list"),
            None if list.replica_groups.is_empty() => Ok(lists(&proto.replica_groups)),
            None => Ok(lists(&list.replica_groups)),
        },
        Some(ReplicaGroupList::IotaCollectiveDeviceList(iota)) => {
            decode_iota_groups(iota).within("iota_collective_device_list")
        }
        Some(ReplicaGroupList::MeshAxesReplicaGroupList(list)) => {
            decode_mesh_groups(list).within("mesh_axes_replica_group_list")
        }
    }
}

fn decode_iota_groups(iota: &IotaReplicaGroupListProto) -> Result<ReplicaGroups, ProtoError> {
    let devices = decode_iota(&iota.iota_reshape_dims, widen(&iota.iota_transpose_perm))?;
    let (groups, size) = (iota.num_replica_groups, iota.num_devices_per_group);
    Ok(ReplicaGroups::Iota { groups, size, devices })
}

fn decode_mesh_groups(proto: &MeshAxesReplicaGroupListProto) -> Result<ReplicaGroups, ProtoError> {
    let mesh = proto.mesh.as_ref().ok_or_else(|| ProtoError::new("the mesh is missing"))?;
    let mesh = decode_mesh(mesh).within("mesh")?;
    let axes = each("axes", &proto.axes, |axis| decode_axis(axis, &mesh))?;
    Ok(ReplicaGroups::Mesh { mesh, axes })
}

pub(crate) fn encode_groups(groups: &ReplicaGroups) -> Result<ReplicaGroupList, ProtoError> {
    Ok(match groups {
        ReplicaGroups::Lists(lists) => {
            let groups = lists.iter().map(|ids| ReplicaGroup { replica_ids: ids.clone() });
            let replica_groups = groups.collect();
            ReplicaGroupList::CollectiveDeviceList(CollectiveDeviceListProto {
                replica_groups,
                iota_replica_group_list: None,
            })
        }
        ReplicaGroups::Iota { groups, size, devices } => {
            ReplicaGroupList::IotaCollectiveDeviceList(IotaReplicaGroupListProto {
                num_replica_groups: *groups,
                num_devices_per_group: *size,
                iota_reshape_dims: devices.reshape_dims.clone(),
                iota_transpose_perm: narrow(&devices.transpose_perm)?,
            })
        }
        ReplicaGroups::Mesh { mesh, axes } => {
            ReplicaGroupList::MeshAxesReplicaGroupList(MeshAxesReplicaGroupListProto {
                mesh: Some(encode_mesh(mesh)),
                axes: axes.iter().map(encode_axis).collect(),
            })
        }
    })
}
