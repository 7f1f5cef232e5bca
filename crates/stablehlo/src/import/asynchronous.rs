//! `stablehlo.async_start` and `stablehlo.async_done`.
//!
//! Three collectives have ops of their own for that in HLO. Others run as a computation.

use tilewright_ir::ops::control::AsyncAttrs;
use tilewright_ir::{Op, Opcode, Shape};

use super::attributes::symbol;
use super::body::Body;
use super::error::{Import, ImportError};
use crate::dialect;
use crate::mlir::{Block, Operation};

/// Returns the only operation of a block, if it takes the block's arguments and the block returns its results.
fn only(block: &Block) -> Option<&Operation> {
    let [operation, end] = block.operations.as_slice() else { return None };
    let is_whole = operation.operands.as_slice() == block.arguments.as_slice()
        && operation.results.as_slice() == end.operands.as_slice();
    is_whole.then_some(operation)
}

/// Returns a collective that HLO starts by an op of its own.
fn own(operation: &Operation) -> Option<Opcode> {
    let own = [Opcode::AllGather, Opcode::AllReduce, Opcode::CollectivePermute];
    dialect::op(&operation.name)?.opcode.filter(|opcode| own.contains(opcode))
}

/// Converts `stablehlo.async_start`.
pub(crate) fn start<'p>(body: &mut Body<'_, 'p>, operation: &'p Operation) -> Import<()> {
    // MHLO's older form names a function, which jaxlib calls.
    if operation.attribute("called_computation").is_some() {
        let function = symbol(operation, "called_computation")?;
        let computation = body.importer.called(operation, &function, body.computation)?;
        return body.emit_call(operation, computation, false);
    }
    let [region] = operation.regions.as_slice() else {
        return Err(ImportError::malformed(operation, "has no region, where its op is"));
    };
    let operands = body.operands(operation)?;
    let shape_of = |id| body.importer.module.shape(id).clone();
    let shapes: Vec<Shape> = operands.iter().map(|&id| shape_of(id)).collect();
    let collective = region.blocks.first().and_then(only);
    if let Some((inner, opcode)) = collective.and_then(|inner| Some((inner, own(inner)?))) {
        let result = body.result_shape(inner)?;
        let both = |result: Shape| match shapes.as_slice() {
            [only] => Shape::Tuple(vec![only.clone(), result]),
            _ => Shape::Tuple(vec![Shape::Tuple(shapes.clone()), result]),
        };
        let (op, shape) = match body.op(opcode, inner)? {
            Op::AllReduce(attrs) => (Op::AllReduceStart(attrs), result),
            Op::AllGather(mut attrs) => {
                // XLA's builder sets it.
                attrs.constrain_layout = true;
                (Op::AllGatherStart(attrs), both(result))
            }
            Op::CollectivePermute(attrs) => (Op::CollectivePermuteStart(attrs), both(result)),
            _ => return Err(ImportError::unsupported(inner, "is not started here")),
        };
        let id = body.emit(op, shape, &operands)?;
        return body.bind(operation, id);
    }
    let calls = body.region(operation, region)?;
    let root = body.importer.module.computation(calls).root();
    let result =
        root.map_or(Shape::Tuple(Vec::new()), |root| body.importer.module.shape(root).clone());
    let attrs = AsyncAttrs { calls: Some(calls), ..AsyncAttrs::default() };
    let shape = Shape::Tuple(vec![Shape::Tuple(shapes), result]);
    let id = body.emit(Op::AsyncStart(Box::new(attrs)), shape, &operands)?;
    body.bind(operation, id)
}

/// Converts `stablehlo.async_done`.
pub(crate) fn done<'p>(body: &mut Body<'_, 'p>, operation: &'p Operation) -> Import<()> {
    let operands = body.operands(operation)?;
    let &[start] = operands.as_slice() else {
        return Err(ImportError::malformed(operation, "takes what an `async_start` yields"));
    };
    let op = match body.importer.module.op(start) {
        Op::AllReduceStart(_) => Op::AllReduceDone,
        Op::AllGatherStart(_) => Op::AllGatherDone,
        Op::CollectivePermuteStart(_) => Op::CollectivePermuteDone,
        Op::AsyncStart(_) => Op::AsyncDone(Box::default()),
        Op::Call(_) => return body.bind(operation, start),
        _ => {
            return Err(ImportError::malformed(operation, "takes what an `async_start` yields"));
        }
    };
    let shape = body.result_shape(operation)?;
    let id = body.emit(op, shape, &operands)?;
    body.bind(operation, id)
}
