//! Asynchronous ops. StableHLO starts collectives; others are called where they start.

use smallvec::SmallVec;
use tilewright_ir::{CompId, InstId, Module, Op, Opcode, Shape};

use super::body::Body;
use super::error::Export;
use super::value::Yield;
use super::{arguments, forms, operation};
use crate::dialect;
use crate::mlir::{Attribute, Attributes, Block, Region, Type, Value};

/// The collectives that StableHLO starts.
const COLLECTIVES: &[Opcode] = &[
    Opcode::AllGather,
    Opcode::AllReduce,
    Opcode::AllToAll,
    Opcode::CollectiveBroadcast,
    Opcode::CollectivePermute,
    Opcode::ReduceScatter,
];

/// Checks whether a computation is one of these collectives.
fn is_collective(module: &Module, computation: CompId) -> bool {
    let root = module.computation(computation).root();
    let mut others = module.instructions(computation).filter(|&id| Some(id) != root);
    root.is_some_and(|root| COLLECTIVES.contains(&module.opcode(root)))
        && others.all(|id| module.opcode(id) == Opcode::Parameter)
}

/// Checks whether an instruction starts what StableHLO can only call.
pub(super) fn is_called(module: &Module, id: InstId) -> bool {
    match module.op(id) {
        Op::AsyncStart(attrs) => attrs.calls.is_some_and(|calls| !is_collective(module, calls)),
        _ => false,
    }
}

/// `all-gather-start`, `all-reduce-start` and `collective-permute-start`.
pub(super) fn collective<'m>(body: &mut Body<'_, 'm>, id: InstId, op: &'m Op) -> Export<()> {
    let (opcode, shape) = match (op, body.exporter.module.shape(id)) {
        (Op::AllReduceStart(_), shape) => (Opcode::AllReduce, Some(shape)),
        (Op::AllGatherStart(_), Shape::Tuple(parts)) => (Opcode::AllGather, parts.get(1)),
        (_, Shape::Tuple(parts)) => (Opcode::CollectivePermute, parts.get(1)),
        _ => (Opcode::CollectivePermute, None),
    };
    let shape = shape.ok_or_else(|| body.invalid("the start has no result"))?;
    let row =
        dialect::of_opcode(opcode).ok_or_else(|| body.unsupported("StableHLO has no such op"))?;
    let operands = body.operand_values(id)?;
    if opcode == Opcode::CollectivePermute && operands.len() != 1 {
        return Err(body.unsupported("StableHLO permutes one array at a time"));
    }
    let types = operands.iter().filter_map(|&operand| body.exporter.type_of(operand));
    let types: Vec<Type> = types.collect();
    let arguments: Vec<Value> = types.into_iter().map(|ty| body.exporter.value(ty)).collect();
    let results = body.new_values(shape)?.leaves();
    let mut inner = operation(row.name, forms::write(row, op));
    inner.operands = arguments.as_slice().into();
    inner.results = results.as_slice().into();
    inner.regions = body.regions(row, op)?;
    let mut end = operation("stablehlo.return", Attributes::new());
    end.operands = results.as_slice().into();
    let block = Block { arguments, operations: vec![inner, end] };
    start(body, id, &results, Region { blocks: vec![block] })
}

/// `async-start`.
pub(super) fn async_start<'m>(body: &mut Body<'_, 'm>, id: InstId, op: &'m Op) -> Export<()> {
    let Op::AsyncStart(attrs) = op else { return Err(body.invalid("it is no start")) };
    let module = body.exporter.module;
    let Some((calls, root)) =
        attrs.calls.and_then(|calls| Some((calls, module.computation(calls).root()?)))
    else {
        return Err(body.unsupported("it starts no computation"));
    };
    if is_collective(module, calls) {
        let region = body.region(calls)?;
        let end = region.blocks.first().and_then(|block| block.operations.last());
        let results = end.map(|end| end.operands.to_vec()).unwrap_or_default();
        return start(body, id, &results, region);
    }
    let name = body.exporter.name_of(calls);
    let callee = vec![("callee".into(), Attribute::Symbol(SmallVec::from_iter([name])))];
    let operands = body.operand_values(id)?;
    let results = body.new_values(module.shape(root))?;
    body.help_all("func.call", &operands, callee, &results.leaves());
    body.yields.insert(id, results);
    Ok(())
}

/// Adds a `stablehlo.async_start` of a region that returns these values.
fn start(body: &mut Body<'_, '_>, id: InstId, results: &[Value], region: Region) -> Export<()> {
    let types = results.iter().filter_map(|&result| body.exporter.type_of(result)).collect();
    let future = body.exporter.value(Type::Future(types));
    let extras = body.exporter.module.extras(id);
    let mut added =
        operation("stablehlo.async_start", extras.map(arguments::common).unwrap_or_default());
    added.operands = body.operand_values(id)?.into();
    added.results = SmallVec::from_iter([future]);
    added.regions = vec![region];
    added.location = body.location(id);
    body.operations.push(added);
    body.yields.insert(id, Yield::One(future));
    Ok(())
}

/// `copy-start` yields its operand, and `async-update` the value of the start that it continues.
pub(super) fn same<'m>(body: &mut Body<'_, 'm>, id: InstId, _: &'m Op) -> Export<()> {
    let &[operand] = body.exporter.module.operands(id) else {
        return Err(body.unsupported("it takes operands after its start"));
    };
    let yielded = body.yielded(operand)?;
    body.yields.insert(id, yielded);
    Ok(())
}

/// A `..-done` awaits the future of its start; the value of a call or a copy is there already.
pub(super) fn done<'m>(body: &mut Body<'_, 'm>, id: InstId, op: &'m Op) -> Export<()> {
    match body.yielded(body.operand(id, 0)?)? {
        Yield::One(value) if matches!(body.exporter.type_of(value), Some(Type::Future(_))) => {
            body.emit(id, "stablehlo.async_done", &[value], Attributes::new(), Vec::new())
        }
        _ => same(body, id, op),
    }
}
