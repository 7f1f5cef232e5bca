//! Operations that are more than one instruction, or whose parts lie elsewhere in HLO.

use tilewright_ir::element::NumberClass;
use tilewright_ir::ops::attr::AttrValue;
use tilewright_ir::ops::collective::AllToAllAttrs;
use tilewright_ir::ops::contract::DotAttrs;
use tilewright_ir::ops::control::{DomainAttrs, DomainMetadata, InfeedAttrs, OutfeedAttrs};
use tilewright_ir::ops::elementwise::CompareOrder;
use tilewright_ir::ops::random::{Distribution, RngAttrs};
use tilewright_ir::ops::shaping::{BroadcastAttrs, TransposeAttrs};
use tilewright_ir::{
    ArrayLiteral, ArrayShape, Data, Dims, ElementType, InstId, Literal, Op, Opcode, Shape,
};

use super::attributes::{dims, int, missing, optional_text};
use super::body::Body;
use super::error::{Import, ImportError};
use super::sizes::unknown;
use super::{literal, shardings};
use crate::mlir::Operation;

/// Returns the order that `compare` has for numbers of a type unless it says otherwise.
pub(super) fn default_order(ty: ElementType) -> CompareOrder {
    match ty.class() {
        NumberClass::Signed => CompareOrder::Signed,
        NumberClass::Unsigned | NumberClass::Bool => CompareOrder::Unsigned,
        NumberClass::Float | NumberClass::Complex => CompareOrder::Float,
    }
}

/// The operation is no instruction: `sdy.mesh`.
pub(crate) fn nothing<'p>(_: &mut Body<'_, 'p>, _: &'p Operation) -> Import<()> {
    Ok(())
}

/// The operation yields its operand: `tensor.cast`, by which only the type says more or fewer sizes.
pub(crate) fn same<'p>(body: &mut Body<'_, 'p>, operation: &'p Operation) -> Import<()> {
    let operand = body.operand(operation, 0)?;
    body.bind(operation, operand)
}

impl Body<'_, '_> {
    pub(super) fn array(&self, operation: &Operation, id: InstId) -> Import<ArrayShape> {
        let shape = self.importer.module.array_shape(id).cloned();
        shape.ok_or_else(|| ImportError::malformed(operation, "takes tensors"))
    }

    pub(super) fn result_array(&self, operation: &Operation) -> Import<ArrayShape> {
        match self.result_shape(operation)? {
            Shape::Array(array) => Ok(array),
            _ => Err(ImportError::malformed(operation, "yields one tensor")),
        }
    }

    pub(super) fn operand(&self, operation: &Operation, number: usize) -> Import<InstId> {
        match operation.operands.get(number) {
            Some(&value) => self.value(operation, value),
            None => Err(ImportError::malformed(operation, "has too few operands")),
        }
    }

    pub(super) fn broadcast(
        &mut self,
        from: InstId,
        to: ArrayShape,
        dimensions: Dims,
    ) -> Import<InstId> {
        let op = Op::Broadcast(Box::new(BroadcastAttrs { dimensions }));
        self.emit(op, Shape::Array(to.without_layout()), &[from])
    }

    pub(super) fn reshape(&mut self, from: InstId, to: ArrayShape) -> Import<InstId> {
        let op = Op::Reshape(Box::default());
        self.emit(op, Shape::Array(to), &[from])
    }

    pub(super) fn transpose(
        &mut self,
        from: InstId,
        of: &ArrayShape,
        dimensions: Dims,
    ) -> Import<InstId> {
        let dim = |&dim: &i64| {
            let dim = usize::try_from(dim).ok()?;
            Some((of.dims().get(dim).copied()?, of.dim_is_dynamic(dim)))
        };
        let dims: Option<Vec<(i64, bool)>> = dimensions.iter().map(dim).collect();
        let dims = dims.ok_or_else(|| self.invalid("a transpose names dims that do not exist"))?;
        let (sizes, dynamic): (Dims, Vec<bool>) = dims.into_iter().unzip();
        let op = Op::Transpose(Box::new(TransposeAttrs { dimensions }));
        let to = ArrayShape::new(of.element_type, sizes).with_dynamic(&dynamic);
        self.emit(op, Shape::Array(to), &[from])
    }
}

/// jaxlib does not fold a broadcast of a constant to so many elements or more, and gives it metadata.
const FEWEST_BROADCAST: i64 = 32;

/// A constant of several equal elements is a broadcast of one.
pub(crate) fn constant<'p>(body: &mut Body<'_, 'p>, operation: &'p Operation) -> Import<()> {
    let value = operation.attribute("value").ok_or_else(|| missing(operation, "value"))?;
    let malformed = |why: String| ImportError::malformed(operation, &why);
    let shape = body.result_array(operation)?;
    if let Some(number) = literal::number(shape.element_type, value) {
        let id = body.constant(Literal::Array(number), shape)?;
        return body.bind(operation, id);
    }
    let (of, data) = literal::parts(value).map_err(malformed)?;
    if of.num_elements() == Some(1) || data.len() != 1 {
        let value = literal::of(&of, data).map_err(malformed)?;
        if let Some(splat) =
            value.as_array().filter(|array| array.len() > 1).and_then(ArrayLiteral::splat)
        {
            return body.equal(operation, splat, shape);
        }
        let id = body.emit(Op::Constant(Box::new(value)), Shape::Array(shape), &[])?;
        return body.bind(operation, id);
    }
    let scalar = ArrayLiteral::new(of.element_type, [], data);
    body.equal(operation, scalar.map_err(|error| malformed(error.to_string()))?, shape)
}

/// Converts `tensor.empty`, whose elements may be anything, to zeros.
pub(crate) fn empty<'p>(body: &mut Body<'_, 'p>, operation: &'p Operation) -> Import<()> {
    if !operation.operands.is_empty() {
        return Err(unknown(operation));
    }
    let shape = body.result_array(operation)?;
    let zero = ArrayLiteral::new(shape.element_type, [], Data::zeros(shape.element_type, 1));
    let zero = zero.map_err(|error| ImportError::malformed(operation, &error.to_string()))?;
    let id = body.constant(Literal::Array(zero), shape)?;
    body.bind(operation, id)
}

impl Body<'_, '_> {
    /// Adds a constant whose elements are all equal.
    fn equal(&mut self, operation: &Operation, one: ArrayLiteral, shape: ArrayShape) -> Import<()> {
        let sharding = self.scope.sharding.take();
        let scalar = Shape::scalar(shape.element_type);
        let one = self.emit(Op::Constant(Box::new(Literal::Array(one))), scalar, &[])?;
        self.scope.sharding = sharding;
        // XLA folds no larger broadcasts, so that these are no constants, which have no metadata.
        if shape.num_elements().is_some_and(|count| count >= FEWEST_BROADCAST) {
            let location = operation.location.as_deref();
            self.scope.metadata = location.and_then(|l| self.importer.frames.metadata(l));
        }
        let id = self.broadcast(one, shape, Dims::new())?;
        self.bind(operation, id)
    }
}

/// A bitcast reads the elements as they lie in memory, row by row unless its attributes say otherwise.
pub(crate) fn bitcast<'p>(body: &mut Body<'_, 'p>, operation: &'p Operation) -> Import<()> {
    let mut value = body.operand(operation, 0)?;
    let of = body.array(operation, value)?;
    let to = body.result_array(operation)?;
    if let Some(order) = order(operation, "source_layout", of.rank())? {
        value = body.transpose(value, &of, order)?;
    }
    let Some(order) = order(operation, "result_layout", to.rank())? else {
        let id = body.emit(Op::Bitcast, Shape::Array(to), &[value])?;
        return body.bind(operation, id);
    };
    let size = |&dim: &i64| to.dims().get(usize::try_from(dim).ok()?).copied();
    let in_memory =
        ArrayShape::new(to.element_type, order.iter().filter_map(size).collect::<Dims>());
    value = body.emit(Op::Bitcast, Shape::Array(in_memory.clone()), &[value])?;
    let place =
        |dim: i64| order.iter().zip(0..).find_map(|(&at, place)| (at == dim).then_some(place));
    let id =
        body.transpose(value, &in_memory, (0..).take(to.rank()).filter_map(place).collect())?;
    body.bind(operation, id)
}

/// Returns the dims of a layout, the major one first; `None` if they are row major.
fn order(operation: &Operation, name: &str, rank: usize) -> Import<Option<Dims>> {
    let Some(mut order) = super::attributes::optional_list(operation, name)? else {
        return Ok(None);
    };
    order.reverse();
    let mut sorted = order.clone();
    sorted.sort_unstable();
    if !(sorted.len() == rank && sorted.iter().copied().eq((0..).take(rank))) {
        return Err(super::attributes::misfit(operation, name, "every dim once"));
    }
    Ok(if order == sorted { None } else { Some(order.into_iter().collect()) })
}

/// `stablehlo.broadcast_in_dim`.
pub(crate) fn broadcast_in_dim<'p>(
    body: &mut Body<'_, 'p>,
    operation: &'p Operation,
) -> Import<()> {
    let places = dims(operation, "broadcast_dimensions")?;
    let (from, to) = (body.operand(operation, 0)?, body.result_array(operation)?);
    let id = body.placed(operation, from, &to, places)?;
    body.bind(operation, id)
}

impl Body<'_, '_> {
    /// Broadcasts an array whose dims become these. Dims that are not in order are transposed first;
    /// dims of size 1 that grow are removed first. Only the last instruction has the sharding, which is
    /// one of its dims.
    pub(super) fn placed(
        &mut self,
        operation: &Operation,
        mut from: InstId,
        to: &ArrayShape,
        mut places: Dims,
    ) -> Import<InstId> {
        let mut of = self.array(operation, from)?;
        if places.len() != of.rank() {
            let why = "needs one entry of `broadcast_dimensions` for each dim of its operand";
            return Err(ImportError::malformed(operation, why));
        }
        let sharding = self.scope.sharding.take();
        if !places.is_sorted() {
            let mut order: Vec<usize> = (0..places.len()).collect();
            order.sort_by_key(|&dim| places.get(dim).copied());
            let order = order.into_iter().filter_map(|dim| i64::try_from(dim).ok()).collect();
            from = self.transpose(from, &of, order)?;
            of = self.array(operation, from)?;
            places.sort_unstable();
        }
        let (from, places) = self.without_growing(from, &of, to, places)?;
        self.scope.sharding = sharding;
        self.broadcast(from, to.clone(), places)
    }

    /// Removes the dims of size 1 that grow in a broadcast: broadcasts to all dims but those, which are
    /// then reshaped away.
    fn without_growing(
        &mut self,
        from: InstId,
        of: &ArrayShape,
        to: &ArrayShape,
        places: Dims,
    ) -> Import<(InstId, Dims)> {
        let grown = |(&place, &size): (&i64, &i64)| {
            let wanted = usize::try_from(place).ok().and_then(|place| to.dims().get(place));
            size == 1 && wanted.is_some_and(|&wanted| wanted != 1)
        };
        if !places.iter().zip(of.dims()).any(grown) {
            return Ok((from, places));
        }
        let mut between = to.clone();
        for (&place, &size) in places.iter().zip(of.dims()) {
            between = between.with_dim(usize::try_from(place).unwrap_or(usize::MAX), size, false);
        }
        let spread = self.broadcast(from, between.clone(), places)?;
        let same = |dim: &usize| between.dims().get(*dim) == to.dims().get(*dim);
        let kept: Vec<usize> = (0..to.rank()).filter(same).collect();
        let sizes: Dims = kept.iter().filter_map(|&dim| to.dims().get(dim).copied()).collect();
        let kept: Dims = kept.into_iter().filter_map(|dim| i64::try_from(dim).ok()).collect();
        let reshaped = self.reshape(spread, ArrayShape::new(to.element_type, sizes))?;
        Ok((reshaped, kept))
    }
}

/// `select` and `clamp`: scalars beside arrays are broadcast.
pub(crate) fn ternary<'p>(body: &mut Body<'_, 'p>, operation: &'p Operation) -> Import<()> {
    let mut operands = body.operands(operation)?;
    let to = body.result_array(operation)?;
    for operand in &mut operands {
        let of = body.array(operation, *operand)?;
        if of.rank() == 0 && to.rank() > 0 {
            let to = to.clone().with_element_type(of.element_type);
            *operand = body.broadcast(*operand, to, Dims::new())?;
        }
    }
    let op = if operation.name.ends_with("clamp") { Op::Clamp } else { Op::Select };
    let id = body.emit(op, Shape::Array(to), &operands)?;
    body.bind(operation, id)
}

/// Only the real part of a complex number becomes a real one.
pub(crate) fn convert<'p>(body: &mut Body<'_, 'p>, operation: &'p Operation) -> Import<()> {
    let mut from = body.operand(operation, 0)?;
    let of = body.array(operation, from)?;
    let to = body.result_array(operation)?;
    if let (Some(part), false) = (of.element_type.complex_part(), to.element_type.is_complex()) {
        let shape = Shape::Array(of.without_layout().with_element_type(part));
        from = body.emit(Op::Real, shape, &[from])?;
    }
    let id = body.emit(Op::Convert, Shape::Array(to), &[from])?;
    body.bind(operation, id)
}

/// `stablehlo.dot`: the last dim of the left operand with the first of the right one.
pub(crate) fn dot<'p>(body: &mut Body<'_, 'p>, operation: &'p Operation) -> Import<()> {
    let operands = body.operands(operation)?;
    let [left, _] = operands[..] else {
        return Err(ImportError::malformed(operation, "takes two operands"));
    };
    let mut op = body.op(Opcode::Dot, operation)?;
    if let Op::Dot(attrs) = &mut op {
        let last = body.array(operation, left)?.rank().saturating_sub(1);
        attrs.lhs_contracting_dims = i64::try_from(last).into_iter().collect();
        attrs.rhs_contracting_dims = [0].into_iter().collect();
    }
    let shape = body.result_shape(operation)?;
    let id = body.emit(op, shape, &operands)?;
    body.bind(operation, id)
}

/// The third operand of StableHLO's op is the shape.
pub(crate) fn rng<'p>(body: &mut Body<'_, 'p>, operation: &'p Operation) -> Import<()> {
    let operands = [body.operand(operation, 0)?, body.operand(operation, 1)?];
    let distribution = match optional_text(operation, "rng_distribution")?.as_deref() {
        Some("UNIFORM") => Distribution::Uniform,
        Some("NORMAL") => Distribution::Normal,
        _ => return Err(missing(operation, "rng_distribution")),
    };
    let shape = body.result_shape(operation)?;
    let id = body.emit(Op::Rng(Box::new(RngAttrs { distribution })), shape, &operands)?;
    body.bind(operation, id)
}

/// Several operands are one tuple in HLO.
pub(crate) fn optimization_barrier<'p>(
    body: &mut Body<'_, 'p>,
    operation: &'p Operation,
) -> Import<()> {
    let operands = body.operands(operation)?;
    if operands.is_empty() {
        return Ok(());
    }
    let operand = body.together(&operands)?;
    let shape = body.importer.module.shape(operand).clone();
    let id = body.emit(Op::OptimizationBarrier, shape, &[operand])?;
    if operands.len() == 1 { body.bind(operation, id) } else { body.bind_elements(operation, id) }
}

/// The data is a tuple beside the token.
pub(crate) fn infeed<'p>(body: &mut Body<'_, 'p>, operation: &'p Operation) -> Import<()> {
    let token = body.operand(operation, 0)?;
    let Some((last, data)) = operation.results.split_last() else {
        return Err(ImportError::malformed(operation, "yields a token"));
    };
    let shapes = data.iter().map(|&value| body.shape_of(operation, value));
    let shapes = shapes.collect::<Import<Vec<_>>>()?;
    let shape = Shape::Tuple(vec![Shape::Tuple(shapes), Shape::Token]);
    let infeed_config = config(operation, "infeed_config")?;
    let id = body.emit(Op::Infeed(Box::new(InfeedAttrs { infeed_config })), shape, &[token])?;
    if !data.is_empty() {
        let all = body.element(id, 0)?;
        for (index, &value) in data.iter().enumerate() {
            let element = body.element(all, index)?;
            body.values.insert(value, element);
        }
    }
    let token = body.element(id, 1)?;
    body.values.insert(*last, token);
    Ok(())
}

fn config(operation: &Operation, name: &str) -> Import<Option<smol_str::SmolStr>> {
    Ok(optional_text(operation, name)?.filter(|config| !config.is_empty()))
}

/// The data is a tuple, even a single array.
pub(crate) fn outfeed<'p>(body: &mut Body<'_, 'p>, operation: &'p Operation) -> Import<()> {
    let mut operands = body.operands(operation)?;
    let Some(token) = operands.pop() else {
        return Err(ImportError::malformed(operation, "takes a token"));
    };
    let data = body.tuple(&operands)?;
    let outfeed_shape = Some(body.importer.module.shape(data).clone());
    let outfeed_config = config(operation, "outfeed_config")?;
    let op = Op::Outfeed(Box::new(OutfeedAttrs { outfeed_shape, outfeed_config }));
    let id = body.emit(op, Shape::Token, &[data, token])?;
    body.bind(operation, id)
}

/// Splits along one dim and joins along another one, which HLO can only do along one and the
/// same.
pub(crate) fn all_to_all<'p>(body: &mut Body<'_, 'p>, operation: &'p Operation) -> Import<()> {
    let operands = body.operands(operation)?;
    let mut op = body.op(Opcode::AllToAll, operation)?;
    let is_tuple = operands.len() > 1 || operation.attribute("split_dimension").is_none();
    let (&[operand], false) = (operands.as_slice(), is_tuple) else {
        let shapes = operands.iter().map(|&id| body.importer.module.shape(id).clone()).collect();
        let id = body.emit(op, Shape::Tuple(shapes), &operands)?;
        return body.bind_elements(operation, id);
    };
    let split = int(operation, "split_dimension")?;
    let concat = int(operation, "concat_dimension")?;
    let count = int(operation, "split_count")?;
    if let Op::AllToAll(attrs) = &mut op {
        let AllToAllAttrs { dimensions, .. } = &mut **attrs;
        *dimensions = Some([split].into_iter().collect());
    }
    let of = body.array(operation, operand)?;
    let id = body.emit(op, Shape::Array(of.clone()), &[operand])?;
    if split == concat {
        return body.bind(operation, id);
    }
    let at = usize::try_from(split).ok().filter(|&at| at < of.rank());
    let (Some(at), Some(&whole)) = (at, at.and_then(|at| of.dims().get(at))) else {
        return Err(super::attributes::misfit(operation, "split_dimension", "a dim"));
    };
    if whole < 0 {
        return Err(super::sizes::unknown(operation));
    }
    let part = whole.checked_div(count).filter(|_| count > 0);
    let part =
        part.ok_or_else(|| super::attributes::misfit(operation, "split_count", "a divisor"))?;
    let mut sizes = Dims::from_slice(of.dims());
    sizes.splice_parts(at, [count, part]);
    let divided = body.reshape(id, ArrayShape::new(of.element_type, sizes))?;
    let divided_shape = body.array(operation, divided)?;
    let mut order = Dims::new();
    for dim in 0..i64::try_from(of.rank()).unwrap_or(0) {
        if dim == concat {
            order.push(split);
        }
        order.push(if dim >= split { dim + 1 } else { dim });
    }
    let moved = body.transpose(divided, &divided_shape, order)?;
    let to = body.result_array(operation)?;
    let joined = body.reshape(moved, to)?;
    body.bind(operation, joined)
}

/// Replaces one entry of a list by two.
trait SpliceParts {
    fn splice_parts(&mut self, at: usize, parts: [i64; 2]);
}

impl SpliceParts for Dims {
    fn splice_parts(&mut self, at: usize, [first, second]: [i64; 2]) {
        if let Some(entry) = self.get_mut(at) {
            *entry = second;
            self.insert(at, first);
        }
    }
}

/// `mhlo.domain`.
pub(crate) fn domain<'p>(body: &mut Body<'_, 'p>, operation: &'p Operation) -> Import<()> {
    let sharding = |name: &str| {
        let value = operation.attribute(name).ok_or_else(|| missing(operation, name))?;
        shardings::read(operation, name, value)
    };
    let (entry, exit) = (sharding("entry_metadata")?, sharding("exit_metadata")?);
    let domain = Box::new(DomainMetadata { kind: "sharding".into(), entry, exit });
    let operand = body.operand(operation, 0)?;
    let shape = body.result_shape(operation)?;
    let id = body.emit(Op::Domain(Box::new(DomainAttrs { domain })), shape, &[operand])?;
    body.bind(operation, id)
}

/// A product of rows in groups.
pub(crate) fn ragged_dot<'p>(body: &mut Body<'_, 'p>, operation: &'p Operation) -> Import<()> {
    const NUMBERS: &str = "ragged_dot_dimension_numbers";
    if operation.attribute(NUMBERS).is_none() {
        return Err(missing(operation, NUMBERS));
    }
    let mut op = body.op(Opcode::RaggedDot, operation)?;
    let mut operands = body.operands(operation)?;
    // CHLO's groups of a batch are products of the same matrices.
    if let Op::RaggedDot(attrs) = &mut op
        && operation.name.starts_with("chlo.")
        && attrs.lhs_ragged_dims.iter().any(|dim| attrs.lhs_batch_dims.contains(dim))
    {
        operands.truncate(2);
        op = Op::Dot(Box::new(DotAttrs {
            lhs_batch_dims: std::mem::take(&mut attrs.lhs_batch_dims),
            lhs_contracting_dims: std::mem::take(&mut attrs.lhs_contracting_dims),
            rhs_batch_dims: std::mem::take(&mut attrs.rhs_batch_dims),
            rhs_contracting_dims: std::mem::take(&mut attrs.rhs_contracting_dims),
            operand_precision: std::mem::take(&mut attrs.operand_precision),
            algorithm: None,
        }));
    }
    let shape = body.result_shape(operation)?;
    let id = body.emit(op, shape, &operands)?;
    body.bind(operation, id)
}

/// `mhlo.scan`, which yields a tuple even of one value.
pub(crate) fn scan<'p>(body: &mut Body<'_, 'p>, operation: &'p Operation) -> Import<()> {
    let segments = super::attributes::optional_list(operation, "operandSegmentSizes")?;
    let carries = match segments.as_deref() {
        Some(&[_, carries]) => carries,
        _ => return Err(missing(operation, "operandSegmentSizes")),
    };
    let mut values = body.values(operation)?;
    values.insert("num_carries", AttrValue::Int(carries));
    let op = super::rows::with_values(Opcode::Scan, operation, &mut values)?;
    let operands = body.operands(operation)?;
    let shapes = operation.results.iter().map(|&result| body.shape_of(operation, result));
    let shape = Shape::Tuple(shapes.collect::<Import<_>>()?);
    let id = body.emit(op, shape, &operands)?;
    body.bind_elements(operation, id)
}

/// Ops that yield a tuple in HLO.
pub(crate) fn tupled<'p>(body: &mut Body<'_, 'p>, operation: &'p Operation) -> Import<()> {
    let opcode = crate::dialect::op(&operation.name).and_then(|op| op.opcode);
    let opcode = opcode.ok_or_else(|| ImportError::unsupported(operation, "has no op in HLO"))?;
    let op = body.op(opcode, operation)?;
    let shapes = operation.results.iter().map(|&result| body.shape_of(operation, result));
    let shape = match shapes.collect::<Import<Vec<_>>>()?.as_slice() {
        [tuple @ Shape::Tuple(_)] => tuple.clone(),
        shapes => Shape::Tuple(shapes.to_vec()),
    };
    let operands = body.operands(operation)?;
    let id = body.emit(op, shape, &operands)?;
    body.bind(operation, id)
}

/// The element keeps its layout.
pub(crate) fn get_tuple_element<'p>(
    body: &mut Body<'_, 'p>,
    operation: &'p Operation,
) -> Import<()> {
    let tuple = body.operand(operation, 0)?;
    let index = usize::try_from(int(operation, "index")?).unwrap_or(usize::MAX);
    let id = body.element(tuple, index)?;
    body.bind(operation, id)
}
