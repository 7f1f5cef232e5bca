//! Shardings of all generations.

use tilewright_ir::OpMetadata;
use tilewright_ir::devices::AxisRef;
use tilewright_ir::sharding::{
    DimSharding, LeafSharding, NamedSharding, Placement, ReductionOp, ShardGroup, Sharding,
    Subgroup, TileDevices, Tiling,
};

use crate::devices::{
    decode_axis, decode_iota, decode_mesh, encode_axis, encode_mesh, narrow, widen,
};
use crate::error::{ProtoError, Within as _, each};
use crate::generated::xla::{NamedShardingProto, OpSharding, named_sharding_proto};
use crate::metadata::{self, Payloads};

const REPLICATED: i32 = 0;
const MAXIMAL: i32 = 1;
const TUPLE: i32 = 2;
const OTHER: i32 = 3;
const MANUAL: i32 = 4;
const UNKNOWN: i32 = 5;
const UNREDUCED: i32 = 6;

const AS: i32 = 0;
const LIKE: i32 = 1;

/// Reads a serialised `xla.OpSharding`, as the attribute `mhlo.sharding` had it until 2023.
///
/// # Errors
/// Returns an error if the bytes are no such message, or the sharding is none.
pub fn decode_sharding(bytes: &[u8]) -> Result<Sharding, ProtoError> {
    use prost::Message as _;
    let proto = OpSharding::decode(bytes).map_err(|error| ProtoError::new(error.to_string()))?;
    decode(&proto, &[])
}

pub(crate) fn decode(proto: &OpSharding, payloads: &Payloads<'_>) -> Result<Sharding, ProtoError> {
    if proto.r#type == TUPLE {
        let leaves =
            each("tuple_shardings", &proto.tuple_shardings, |leaf| decode_leaf(leaf, payloads))?;
        return Ok(Sharding::Tuple(leaves));
    }
    decode_leaf(proto, payloads).map(Sharding::Leaf)
}

fn decode_leaf(proto: &OpSharding, payloads: &Payloads<'_>) -> Result<LeafSharding, ProtoError> {
    let named = proto.named_sharding.as_ref();
    let placement = match (named, proto.r#type) {
        (Some(named), _) => {
            let named = decode_named(named).within("named_sharding")?;
            Placement::Named(Box::new(named))
        }
        (None, REPLICATED) => Placement::Replicated,
        (None, MANUAL) => Placement::Manual,
        (None, UNKNOWN) => Placement::Unknown,
        (None, UNREDUCED) => Placement::Unreduced,
        (None, MAXIMAL) => Placement::Maximal(decode_device(proto)?),
        (None, OTHER) => Placement::Tiled(decode_tiling(proto)?),
        (None, TUPLE) => return Err(ProtoError::new("a tuple of shardings within another")),
        (None, other) => return Err(ProtoError::unknown("type of sharding", other).within("type")),
    };
    let sources = named.map_or(&proto.metadata, |named| &named.metadata);
    let sources: Vec<OpMetadata> =
        each("metadata", sources, |source| metadata::decode(source, payloads))?;
    Ok(LeafSharding { placement, group: decode_group(proto)?, metadata: sources })
}

fn decode_device(proto: &OpSharding) -> Result<i64, ProtoError> {
    match proto.tile_assignment_devices[..] {
        [device] => Ok(device),
        _ => Err(ProtoError::new("a maximal sharding that does not name one device")
            .within("tile_assignment_devices")),
    }
}

fn decode_group(proto: &OpSharding) -> Result<Option<ShardGroup>, ProtoError> {
    let group = match (proto.is_shard_group, proto.shard_group_type) {
        (false, _) => return Ok(None),
        (true, AS) => ShardGroup::As(proto.shard_group_id),
        (true, LIKE) => ShardGroup::Like(proto.shard_group_id),
        (true, other) => return Err(ProtoError::unknown("type of shard group", other)),
    };
    Ok(Some(group))
}

fn decode_tiling(proto: &OpSharding) -> Result<Tiling, ProtoError> {
    let devices = if proto.iota_reshape_dims.is_empty() {
        TileDevices::List(proto.tile_assignment_devices.clone())
    } else {
        let permutation = widen(&proto.iota_transpose_perm);
        TileDevices::Iota(
            decode_iota(&proto.iota_reshape_dims, permutation).within("iota_transpose_perm")?,
        )
    };
    let subgroups = if proto.replicate_on_last_tile_dim {
        vec![Subgroup::Replicated]
    } else {
        each("last_tile_dims", &proto.last_tile_dims, |&kind| match kind {
            REPLICATED => Ok(Subgroup::Replicated),
            MANUAL => Ok(Subgroup::Manual),
            UNREDUCED => Ok(Subgroup::Unreduced),
            other => Err(ProtoError::unknown("type of subgroup", other)),
        })?
    };
    let dims = proto.tile_assignment_dimensions.clone();
    if dims.is_empty() || subgroups.len() > dims.len() {
        let message = format!("{} dims of tiles, {} subgroups", dims.len(), subgroups.len());
        return Err(ProtoError::new(message).within("tile_assignment_dimensions"));
    }
    Ok(Tiling { dims, devices, subgroups })
}

fn decode_named(proto: &NamedShardingProto) -> Result<NamedSharding, ProtoError> {
    let mesh = proto.mesh.as_ref().ok_or_else(|| ProtoError::new("the mesh is missing"))?;
    let mesh = decode_mesh(mesh).within("mesh")?;
    let axes = |field: &str, axes: &[_]| -> Result<Vec<AxisRef>, ProtoError> {
        each(field, axes, |axis| decode_axis(axis, &mesh))
    };
    let dims = each("dim_shardings", &proto.dim_shardings, |dim| {
        Ok(DimSharding { axes: axes("axes", &dim.axes)?, is_open: !dim.is_closed })
    })?;
    let replicated = axes("replicated_axes", &proto.replicated_axes)?;
    let unreduced = axes("unreduced_axes", &proto.unreduced_axes)?;
    let manual = axes("manual_axes", &proto.manual_axes)?;
    let reduction = usize::try_from(proto.reduction_op).ok();
    let reduction = reduction.and_then(|number| ReductionOp::ALL.get(number).copied());
    let reduction = reduction.ok_or_else(|| {
        let message = format!("there is no reduction {}", proto.reduction_op);
        ProtoError::new(message).within("reduction_op")
    })?;
    Ok(NamedSharding { mesh, dims, replicated, unreduced, reduction, manual })
}

pub(crate) fn encode(sharding: &Sharding) -> Result<OpSharding, ProtoError> {
    match sharding {
        Sharding::Leaf(leaf) => encode_leaf(leaf),
        Sharding::Tuple(leaves) => Ok(OpSharding {
            r#type: TUPLE,
            tuple_shardings: each("tuple_shardings", leaves, encode_leaf)?,
            ..OpSharding::default()
        }),
    }
}

fn encode_leaf(leaf: &LeafSharding) -> Result<OpSharding, ProtoError> {
    let mut proto = OpSharding::default();
    let sources = each("metadata", &leaf.metadata, metadata::encode)?;
    match &leaf.placement {
        Placement::Replicated => proto.r#type = REPLICATED,
        Placement::Manual => proto.r#type = MANUAL,
        Placement::Unknown => proto.r#type = UNKNOWN,
        Placement::Unreduced => proto.r#type = UNREDUCED,
        Placement::Maximal(device) => {
            proto.r#type = MAXIMAL;
            proto.tile_assignment_devices = vec![*device];
        }
        Placement::Tiled(tiling) => encode_tiling(tiling, &mut proto)?,
        Placement::Named(named) => proto.named_sharding = Some(encode_named(named)),
    }
    match &mut proto.named_sharding {
        Some(named) => named.metadata = sources,
        None => proto.metadata = sources,
    }
    if let Some(group) = leaf.group {
        proto.is_shard_group = true;
        (proto.shard_group_type, proto.shard_group_id) = match group {
            ShardGroup::As(id) => (AS, id),
            ShardGroup::Like(id) => (LIKE, id),
        };
    }
    Ok(proto)
}

fn encode_tiling(tiling: &Tiling, proto: &mut OpSharding) -> Result<(), ProtoError> {
    proto.r#type = OTHER;
    proto.tile_assignment_dimensions.clone_from(&tiling.dims);
    match &tiling.devices {
        TileDevices::List(devices) => proto.tile_assignment_devices.clone_from(devices),
        TileDevices::Iota(iota) => {
            proto.iota_reshape_dims.clone_from(&iota.reshape_dims);
            proto.iota_transpose_perm = narrow(&iota.transpose_perm)?;
        }
    }
    if tiling.subgroups == [Subgroup::Replicated] {
        proto.replicate_on_last_tile_dim = true;
        return Ok(());
    }
    let kinds = tiling.subgroups.iter().map(|subgroup| match subgroup {
        Subgroup::Replicated => REPLICATED,
        Subgroup::Manual => MANUAL,
        Subgroup::Unreduced => UNREDUCED,
    });
    proto.last_tile_dims = kinds.collect();
    Ok(())
}

fn encode_named(named: &NamedSharding) -> NamedShardingProto {
    let axes = |axes: &[AxisRef]| axes.iter().map(encode_axis).collect();
    let dims = named.dims.iter().map(|dim| named_sharding_proto::DimensionSharding {
        axes: axes(&dim.axes),
        is_closed: !dim.is_open,
    });
    NamedShardingProto {
        mesh: Some(encode_mesh(&named.mesh)),
        dim_shardings: dims.collect(),
        replicated_axes: axes(&named.replicated),
        unreduced_axes: axes(&named.unreduced),
        metadata: Vec::new(),
        manual_axes: axes(&named.manual),
        reduction_op: named.reduction as i32,
    }
}
