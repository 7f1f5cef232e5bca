//! Ops whose parts lie elsewhere in StableHLO.

use tilewright_ir::ops::contract::Precision;
use tilewright_ir::{InstId, Op, Opcode, Shape};

use super::attributes::{literal, table, word};
use super::body::{Body, Convert, Special};
use super::error::Export;
use super::forms::text;
use super::value::Yield;
use super::{asynchronous, bitcast, transfer, types};
use crate::mlir::{Attribute, Attributes, DenseArray, Type};

const SPECIAL: &[Special] = &[
    (Opcode::Constant, constant),
    (Opcode::Parameter, parameter),
    (Opcode::AddDependency, add_dependency),
    (Opcode::AllGatherDone, asynchronous::done),
    (Opcode::AllGatherStart, asynchronous::collective),
    (Opcode::AllReduceDone, asynchronous::done),
    (Opcode::AllReduceStart, asynchronous::collective),
    (Opcode::AllToAll, all_to_all),
    (Opcode::AsyncDone, asynchronous::done),
    (Opcode::AsyncStart, asynchronous::async_start),
    (Opcode::AsyncUpdate, asynchronous::same),
    (Opcode::CollectivePermuteDone, asynchronous::done),
    (Opcode::CollectivePermuteStart, asynchronous::collective),
    (Opcode::CopyDone, asynchronous::done),
    (Opcode::CopyStart, asynchronous::same),
    (Opcode::Domain, domain),
    (Opcode::DynamicReshape, dynamic_reshape),
    (Opcode::DynamicSlice, start_indices),
    (Opcode::DynamicUpdateSlice, start_indices),
    (Opcode::Infeed, infeed),
    (Opcode::Outfeed, outfeed),
    (Opcode::Map, map),
    (Opcode::RaggedAllToAll, ragged_all_to_all),
    (Opcode::RaggedDot, ragged_dot),
    (Opcode::Recv, transfer::start),
    (Opcode::RecvDone, transfer::recv),
    (Opcode::Rng, rng),
    (Opcode::Scan, scan),
    (Opcode::Send, transfer::start),
    (Opcode::SendDone, transfer::send),
    (Opcode::TopK, top_k),
    (Opcode::AfterAll, after_all),
    (Opcode::Bitcast, bitcast::bitcast),
    (Opcode::Copy, bitcast::copy),
];

/// Returns how an op is converted, if not by its row.
pub(super) fn find(opcode: Opcode) -> Option<Convert> {
    SPECIAL.iter().find(|(known, _)| *known == opcode).map(|(_, convert)| *convert)
}

fn constant<'m>(body: &mut Body<'_, 'm>, id: InstId, op: &'m Op) -> Export<()> {
    let Op::Constant(value) = op else { return Err(body.invalid("it is no constant")) };
    let Some(array) = value.as_array() else {
        return Err(body.unsupported(
            "its value is no array, or is left out of the text; print the module with large constants",
        ));
    };
    body.emit(id, "stablehlo.constant", &[], vec![("value".into(), literal(array))], Vec::new())
}

fn parameter<'m>(body: &mut Body<'_, 'm>, _: InstId, _: &'m Op) -> Export<()> {
    Err(body.invalid("the parameter is not numbered as its computation says"))
}

fn after_all<'m>(body: &mut Body<'_, 'm>, id: InstId, _: &'m Op) -> Export<()> {
    let operands = body.operand_values(id)?;
    let name = if operands.is_empty() { "stablehlo.create_token" } else { "stablehlo.after_all" };
    body.emit(id, name, &operands, Attributes::new(), Vec::new())
}

/// Sizes are one operand.
fn dynamic_reshape<'m>(body: &mut Body<'_, 'm>, id: InstId, _: &'m Op) -> Export<()> {
    let operands = body.operand_values(id)?;
    let Some((&from, sizes)) = operands.split_first() else {
        return Err(body.invalid("it has no operand"));
    };
    let of = body.array(body.operand(id, 1)?)?.element_type;
    let ty = |count: usize| {
        let count = i64::try_from(count).unwrap_or(0);
        types::tensor(&tilewright_ir::ArrayShape::new(of, [count]))
    };
    let parts: Vec<_> = sizes
        .iter()
        .map(|&size| body.help("stablehlo.reshape", &[size], Vec::new(), ty(1)))
        .collect();
    let dim = vec![("dimension".into(), Attribute::i64(0))];
    let sizes = match parts[..] {
        [only] => only,
        _ => body.help("stablehlo.concatenate", &parts, dim, ty(parts.len())),
    };
    body.emit(id, "stablehlo.dynamic_reshape", &[from, sizes], Vec::new(), Vec::new())
}

/// HLO's indices may be one array; those of StableHLO are scalars.
fn start_indices<'m>(body: &mut Body<'_, 'm>, id: InstId, op: &'m Op) -> Export<()> {
    let name = op.opcode().name().replace('-', "_");
    let (count, attributes) = match op {
        Op::DynamicSlice(attrs) => {
            let sizes = Attribute::i64s(attrs.dynamic_slice_sizes.iter().copied());
            (1, vec![("slice_sizes".into(), sizes)])
        }
        _ => (2, Attributes::new()),
    };
    let mut operands = body.operand_values(id)?;
    let first = body.exporter.module.operands(id).get(count).copied();
    if let Some(first) = first.filter(|&first| body.array(first).is_ok_and(|s| s.rank() == 1)) {
        let shape = body.array(first)?.without_layout();
        let indices = operands.split_off(count);
        for (start, _) in (0..shape.dims().first().copied().unwrap_or(0)).zip(0..64) {
            let slice = vec![
                ("limit_indices".into(), Attribute::i64s([start + 1])),
                ("start_indices".into(), Attribute::i64s([start])),
                ("strides".into(), Attribute::i64s([1])),
            ];
            let one = types::tensor(&tilewright_ir::ArrayShape::new(shape.element_type, [1]));
            let scalar = types::tensor(&tilewright_ir::ArrayShape::scalar(shape.element_type));
            let index = body.help("stablehlo.slice", &indices, slice, one);
            operands.push(body.help("stablehlo.reshape", &[index], Vec::new(), scalar));
        }
    }
    body.emit(id, &format!("stablehlo.{name}"), &operands, attributes, Vec::new())
}

/// The shape is a third operand.
fn rng<'m>(body: &mut Body<'_, 'm>, id: InstId, op: &'m Op) -> Export<()> {
    let Op::Rng(attrs) = op else { return Err(body.invalid("it is no rng")) };
    let mut operands = body.operand_values(id)?;
    let dims = body.array(id)?.dims();
    let bytes = dims.iter().flat_map(|dim| dim.to_le_bytes()).collect();
    let ty = types::i64_tensor(&[i64::try_from(dims.len()).unwrap_or(0)]);
    let value = super::attributes::dense(ty.clone(), bytes);
    operands.push(body.help("stablehlo.constant", &[], vec![("value".into(), value)], ty));
    let name = attrs.distribution.name().trim_start_matches("rng_").to_uppercase();
    let attributes = vec![("rng_distribution".into(), word("rng_distribution", &name))];
    body.emit(id, "stablehlo.rng", &operands, attributes, Vec::new())
}

/// The data comes before the token.
fn infeed<'m>(body: &mut Body<'_, 'm>, id: InstId, op: &'m Op) -> Export<()> {
    let Op::Infeed(attrs) = op else { return Err(body.invalid("it is no infeed")) };
    let operands = body.operand_values(id)?;
    let config = attrs.infeed_config.clone().unwrap_or_default();
    body.emit(id, "stablehlo.infeed", &operands, vec![text("infeed_config", &config)], Vec::new())
}

fn outfeed<'m>(body: &mut Body<'_, 'm>, id: InstId, op: &'m Op) -> Export<()> {
    let Op::Outfeed(attrs) = op else { return Err(body.invalid("it is no outfeed")) };
    let operands = body.operand_values(id)?;
    let config = attrs.outfeed_config.clone().unwrap_or_default();
    body.emit(id, "stablehlo.outfeed", &operands, vec![text("outfeed_config", &config)], Vec::new())
}

fn all_to_all<'m>(body: &mut Body<'_, 'm>, id: InstId, op: &'m Op) -> Export<()> {
    let Op::AllToAll(attrs) = op else { return Err(body.invalid("it is no all-to-all")) };
    let operands = body.operand_values(id)?;
    let groups = attrs.replica_groups.lists();
    let groups = groups.ok_or_else(|| body.unsupported("there are too many devices to list"))?;
    let mut attributes = Attributes::new();
    if let Some(channel) = attrs.channel_id {
        let parameters =
            vec![("handle".into(), Attribute::i64(channel)), ("type".into(), Attribute::i64(1))];
        let is_array = attrs.dimensions.is_some();
        let channel = if is_array {
            Attribute::structure("stablehlo", "channel_handle", parameters)
        } else {
            mhlo("channel_handle", parameters)
        };
        attributes.push(("channel_handle".into(), channel));
    }
    let Some(dim) = attrs.dimensions.as_ref().and_then(|dims| dims.first().copied()) else {
        attributes.push(("replica_groups".into(), table(&groups)));
        return body.emit(id, "mhlo.all_to_all", &operands, attributes, Vec::new());
    };
    let count = groups.first().map(Vec::len).and_then(|count| i64::try_from(count).ok());
    let count = count.ok_or_else(|| {
        body.unsupported("StableHLO's all_to_all needs the groups of devices; name them")
    })?;
    attributes.push(("concat_dimension".into(), Attribute::i64(dim)));
    attributes.push(("replica_groups".into(), table(&groups)));
    attributes.push(("split_count".into(), Attribute::i64(count)));
    attributes.push(("split_dimension".into(), Attribute::i64(dim)));
    body.emit(id, "stablehlo.all_to_all", &operands, attributes, Vec::new())
}

fn mhlo(name: &str, parameters: Attributes) -> Attribute {
    Attribute::structure("mhlo", name, parameters)
}

/// A value that waits for a token is the first result of a barrier of both.
fn add_dependency<'m>(body: &mut Body<'_, 'm>, id: InstId, _: &'m Op) -> Export<()> {
    let operands = body.operand_values(id)?;
    let types: Option<Vec<Type>> =
        operands.iter().map(|&operand| body.exporter.type_of(operand)).collect();
    let types = types.ok_or_else(|| body.invalid("an operand has no type"))?;
    let results: Vec<_> = types.into_iter().map(|ty| body.exporter.value(ty)).collect();
    let &[value, _] = results.as_slice() else {
        return Err(body.unsupported("StableHLO has no dependencies of tuples"));
    };
    body.help_all("stablehlo.optimization_barrier", &operands, Attributes::new(), &results);
    body.yields.insert(id, Yield::One(value));
    Ok(())
}

/// CHLO has the largest elements alone.
fn top_k<'m>(body: &mut Body<'_, 'm>, id: InstId, op: &'m Op) -> Export<()> {
    let Op::TopK(attrs) = op else { return Err(body.invalid("it is no topk")) };
    let operands = body.operand_values(id)?;
    let k = ("k".into(), Attribute::i64(attrs.k));
    if attrs.largest {
        return body.emit(id, "chlo.top_k", &operands, vec![k], Vec::new());
    }
    let largest = ("largest".into(), Attribute::Bool(false));
    body.emit(id, "mhlo.topk", &operands, vec![k, largest], Vec::new())
}

/// Every dim is mapped, whether HLO names them or not.
fn map<'m>(body: &mut Body<'_, 'm>, id: InstId, op: &'m Op) -> Export<()> {
    let Op::Map(attrs) = op else { return Err(body.invalid("it is no map")) };
    let region = body.region(attrs.to_apply)?;
    let rank = body.array(id)?.rank();
    let attributes = vec![("dimensions".into(), Attribute::i64s((0..).take(rank)))];
    let operands = body.operand_values(id)?;
    body.emit(id, "stablehlo.map", &operands, attributes, vec![region])
}

fn domain<'m>(body: &mut Body<'_, 'm>, id: InstId, op: &'m Op) -> Export<()> {
    let Op::Domain(attrs) = op else { return Err(body.invalid("it is no domain")) };
    let operands = body.operand_values(id)?;
    let attributes = vec![
        text("entry_metadata", &tilewright_text::print_sharding(&attrs.domain.entry)),
        text("exit_metadata", &tilewright_text::print_sharding(&attrs.domain.exit)),
        ("kind".into(), Attribute::word("mhlo", "kind", "sharding")),
    ];
    body.emit(id, "mhlo.domain", &operands, attributes, Vec::new())
}

/// StableHLO has a custom call for it, whose configuration has the groups and the channel.
fn ragged_all_to_all<'m>(body: &mut Body<'_, 'm>, id: InstId, op: &'m Op) -> Export<()> {
    let Op::RaggedAllToAll(attrs) = op else { return Err(body.invalid("it is no exchange")) };
    let groups = attrs.replica_groups.lists();
    let groups = groups.ok_or_else(|| body.unsupported("its groups cannot be listed"))?;
    let channel = attrs.channel_id.map(|id| ("channel_id".into(), Attribute::i64(id)));
    let groups = ("replica_groups".into(), table(&groups));
    let attributes = vec![
        ("api_version".into(), Attribute::integer(4, 32)),
        (
            "backend_config".into(),
            Attribute::Dictionary(channel.into_iter().chain([groups]).collect()),
        ),
        text("call_target_name", "ragged_all_to_all"),
    ];
    let operands = body.operand_values(id)?;
    body.emit(id, "stablehlo.custom_call", &operands, attributes, Vec::new())
}

fn ragged_dot<'m>(body: &mut Body<'_, 'm>, id: InstId, op: &'m Op) -> Export<()> {
    let Op::RaggedDot(attrs) = op else { return Err(body.invalid("it is no ragged dot")) };
    let lists = |lists: &[(&str, &[i64])]| -> Attributes {
        let given = lists.iter().filter(|(_, dims)| !dims.is_empty());
        given.map(|(name, dims)| ((*name).into(), Attribute::i64s(dims.iter().copied()))).collect()
    };
    let dot = lists(&[
        ("lhs_batching_dimensions", &attrs.lhs_batch_dims),
        ("rhs_batching_dimensions", &attrs.rhs_batch_dims),
        ("lhs_contracting_dimensions", &attrs.lhs_contracting_dims),
        ("rhs_contracting_dimensions", &attrs.rhs_contracting_dims),
    ]);
    let mut numbers: Attributes = vec![("dot_dimension_numbers".into(), mhlo("dot", dot))];
    numbers.extend(lists(&[
        ("lhs_ragged_dimensions", &attrs.lhs_ragged_dims),
        ("rhs_group_dimensions", &attrs.rhs_group_dims),
    ]));
    let mut attributes = Attributes::new();
    if !attrs.operand_precision.is_empty() {
        let name = |&precision: &Precision| {
            Attribute::word("mhlo", "precision", &precision.name().to_uppercase())
        };
        let words = attrs.operand_precision.iter().map(name).collect();
        attributes.push(("precision_config".into(), Attribute::Array(words)));
    }
    let numbers = mhlo("ragged_dot", numbers);
    attributes.push(("ragged_dot_dimension_numbers".into(), numbers));
    let operands = body.operand_values(id)?;
    body.emit(id, "mhlo.ragged_dot", &operands, attributes, Vec::new())
}

fn scan<'m>(body: &mut Body<'_, 'm>, id: InstId, op: &'m Op) -> Export<()> {
    let Op::Scan(attrs) = op else { return Err(body.invalid("it is no scan")) };
    let operands = body.operand_values(id)?;
    let mut region = body.region(attrs.to_apply)?;
    for end in region.blocks.iter_mut().filter_map(|block| block.operations.last_mut()) {
        end.name = "mhlo.return".into();
    }
    let carries = attrs.num_carries;
    let others = |count: usize| i64::try_from(count).unwrap_or(0).saturating_sub(carries);
    let segments =
        |count: usize| Attribute::DenseArray(DenseArray::Integer(32, vec![others(count), carries]));
    let results = body.exporter.module.shape(id).as_tuple().map_or(1, <[Shape]>::len);
    let mut attributes =
        vec![("dimension".into(), Attribute::i64(attrs.dimensions.first().copied().unwrap_or(0)))];
    if let Some(is_associative) = attrs.is_associative {
        attributes.push(("is_associative".into(), Attribute::Bool(is_associative)));
    }
    attributes.push(("is_reverse".into(), Attribute::Bool(attrs.is_reverse)));
    attributes.push(("operandSegmentSizes".into(), segments(operands.len())));
    attributes.push(("resultSegmentSizes".into(), segments(results)));
    body.emit(id, "mhlo.scan", &operands, attributes, vec![region])
}
