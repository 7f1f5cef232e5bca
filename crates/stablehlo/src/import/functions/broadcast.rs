//! CHLO's ops that broadcast their operands first, and StableHLO's older ops that are others with other attributes.

use tilewright_ir::ops::attr::AttrValue;
use tilewright_ir::ops::indexing::GatherAttrs;
use tilewright_ir::{ArrayShape, CompId, Dims, ElementType, InstId, Literal, Op, Opcode, Shape};

use super::super::attributes::{dims, int, misfit, optional_list};
use super::super::body::Body;
use super::super::error::{Import, ImportError};
use super::super::literal;
use super::super::rows::with_values;
use crate::dialect;
use crate::mlir::Operation;

/// `chlo.broadcast_add` and its like: operands have the last dims of the result, or those of `broadcast_dimensions`.
pub(crate) fn elementwise<'p>(body: &mut Body<'_, 'p>, operation: &'p Operation) -> Import<()> {
    let to = body.result_array(operation)?;
    let mut operands = body.operands(operation)?;
    let rank = |&id: &InstId| body.importer.module.array_shape(id).map_or(0, ArrayShape::rank);
    let ranks: Vec<usize> = operands.iter().map(rank).collect();
    let named = optional_list(operation, "broadcast_dimensions")?;
    for (operand, &rank) in operands.iter_mut().zip(&ranks) {
        let places = match &named {
            Some(named) if ranks.iter().any(|&other| other > rank) => {
                named.iter().copied().collect()
            }
            _ => (0..).take(to.rank()).skip(to.rank().saturating_sub(rank)).collect(),
        };
        *operand = body.spread(operation, *operand, &to, places)?;
    }
    let name = operation.name.strip_prefix("chlo.broadcast_").unwrap_or_default();
    let ops = ["stablehlo", "chlo"].map(|dialect| dialect::op(&format!("{dialect}.{name}")));
    let Some(op) = ops.into_iter().flatten().next() else {
        return Err(ImportError::unsupported(operation, "broadcasts the operands of no known op"));
    };
    let id = body.apply(op, operation, &operands)?;
    body.bind(operation, id)
}

impl Body<'_, '_> {
    /// Broadcasts a value to these dims, unless it has them.
    fn spread(
        &mut self,
        operation: &Operation,
        value: InstId,
        to: &ArrayShape,
        places: Dims,
    ) -> Import<InstId> {
        let from = self.array(operation, value)?;
        if from.dims() == to.dims() {
            return Ok(value);
        }
        if places.len() != from.rank() {
            return Err(ImportError::malformed(operation, "takes operands that do not broadcast"));
        }
        let to = to.without_layout().with_element_type(from.element_type);
        self.placed(operation, value, &to, places)
    }
}

/// `stablehlo.broadcast`: new dims come first.
pub(crate) fn broadcast<'p>(body: &mut Body<'_, 'p>, operation: &'p Operation) -> Import<()> {
    let (value, to) = (body.operand(operation, 0)?, body.result_array(operation)?);
    let new = dims(operation, "broadcast_sizes")?.len();
    let id = body.spread(operation, value, &to, (0..).take(to.rank()).skip(new).collect())?;
    body.bind(operation, id)
}

/// `chlo.constant_like`: a number in each element of a tensor of the operand's type.
pub(crate) fn constant_like<'p>(body: &mut Body<'_, 'p>, operation: &'p Operation) -> Import<()> {
    let shape = body.result_array(operation)?;
    let value = operation.attribute("value");
    let one = value.and_then(|value| literal::number(shape.element_type, value));
    let one =
        one.ok_or_else(|| misfit(operation, "value", "a number of the type of the result"))?;
    let id = body.constant(Literal::Array(one), shape)?;
    body.bind(operation, id)
}

/// `stablehlo.cross-replica-sum`: an all-reduce that adds.
pub(crate) fn cross_replica_sum<'p>(
    body: &mut Body<'_, 'p>,
    operation: &'p Operation,
) -> Import<()> {
    let operand = body.operand(operation, 0)?;
    let shape = body.result_array(operation)?;
    let mut values = body.values(operation)?;
    values.insert("to_apply", AttrValue::Computation(body.sum(shape.element_type)?));
    let op = with_values(Opcode::AllReduce, operation, &mut values)?;
    let id = body.emit(op, Shape::Array(shape), &[operand])?;
    body.bind(operation, id)
}

impl Body<'_, '_> {
    /// Adds a computation that adds two scalars.
    pub(in crate::import) fn sum(&mut self, ty: ElementType) -> Import<CompId> {
        let (caller, span, shape) = (self.computation, self.span, Shape::scalar(ty));
        let computation = self.importer.begin("sum", Some(caller), span)?;
        let mut body = Body::new(self.importer, computation, span);
        let left = body.parameter(0, shape.clone(), None)?;
        let right = body.parameter(1, shape.clone(), None)?;
        let root = body.emit(Op::Add, shape, &[left, right])?;
        let set = body.importer.module.set_root(root);
        set.map_err(|error| body.invalid(&error.to_string()))?;
        self.importer.end();
        Ok(computation)
    }
}

/// `stablehlo.torch_index_select`: rows of a dim by their numbers, of the same batch.
pub(crate) fn index_select<'p>(body: &mut Body<'_, 'p>, operation: &'p Operation) -> Import<()> {
    let malformed = || ImportError::malformed(operation, "takes rows of a dim that does not exist");
    let (from, index) = (body.operand(operation, 0)?, body.operand(operation, 1)?);
    let (of, by) = (body.array(operation, from)?, body.array(operation, index)?);
    let to = body.result_array(operation)?;
    let (dim, batch) = (int(operation, "dim")?, int(operation, "batch_dims")?);
    let at = usize::try_from(dim).ok().filter(|&at| at < of.rank()).ok_or_else(malformed)?;
    let batches = usize::try_from(batch).ok().filter(|&count| count <= at);
    let batches = batches.filter(|&count| count <= by.rank()).ok_or_else(malformed)?;
    let mut slice_sizes: Dims = of.dims().iter().copied().collect();
    slice_sizes.iter_mut().take(batches).for_each(|size| *size = 1);
    slice_sizes.iter_mut().skip(at).take(1).for_each(|size| *size = 1);
    // The dims of the index stand where the dim was.
    let picked = by.rank() - batches;
    let is_offset = |place: &usize| *place >= batches && (*place < at || *place >= at + picked);
    let offsets = (0..to.rank()).filter(is_offset).filter_map(|place| i64::try_from(place).ok());
    let batch_dims: Dims = (0..batch).collect();
    let attrs = GatherAttrs {
        offset_dims: offsets.collect(),
        collapsed_slice_dims: [dim].into_iter().collect(),
        start_index_map: [dim].into_iter().collect(),
        operand_batching_dims: batch_dims.clone(),
        start_indices_batching_dims: batch_dims,
        index_vector_dim: i64::try_from(by.rank()).unwrap_or(i64::MAX),
        slice_sizes,
        indices_are_sorted: false,
    };
    // XLA reads wide numbers as unsigned ones, so that those below zero are the last row.
    let index = match by.element_type {
        ElementType::S64 => {
            let unsigned = by.with_element_type(ElementType::U32);
            body.emit(Op::Convert, Shape::Array(unsigned), &[index])?
        }
        _ => index,
    };
    let id = body.emit(Op::Gather(Box::new(attrs)), Shape::Array(to), &[from, index])?;
    body.bind(operation, id)
}
