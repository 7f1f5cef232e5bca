//! Ops whose operands say sizes, as HLO's ops whose attributes do.
//!
//! A type of the result that has all dims says them. Otherwise the operand must not depend on the
//! program's arguments; the interpreter then computes it.

use rustc_hash::FxHashMap;
use tilewright_interp::{Limits, evaluate};
use tilewright_ir::ops::attr::AttrValue;
use tilewright_ir::ops::dims::{PadDim, SliceDim};
use tilewright_ir::ops::indexing::DynamicSliceAttrs;
use tilewright_ir::ops::shaping::{PadAttrs, SliceAttrs};
use tilewright_ir::shape::UNBOUNDED;
use tilewright_ir::{
    ArrayLiteral, ArrayShape, Data, Dims, ElementType, InstId, Literal, Module, Op, Opcode,
    Position, Shape, verify,
};

use super::attributes::{dims, missing};
use super::body::Body;
use super::error::{Import, ImportError};
use super::{literal, rows};
use crate::mlir::Operation;

/// Why an operation on dims without bounds is no instruction.
const UNKNOWN_DIMS: &str = "has sizes that only a run tells, which XLA does not convert; \
     refine the shapes first (`stablehlo-opt --stablehlo-refine-shapes`), or export the program \
     with dims that are numbers";

/// The most instructions that compute sizes.
const MOST_INSTRUCTIONS: usize = 1024;

/// The most elements of each of them: sizes are as many as an array has dims.
const MOST_ELEMENTS: i64 = 1024;

/// The limits of the interpreter.
const LIMITS: Limits = Limits { max_steps: 1 << 20, max_bytes: 1 << 24 };

/// Ops on constants that are computed, beside those on each element.
const COMPUTED: &[Opcode] = &[
    Opcode::Broadcast,
    Opcode::Concatenate,
    Opcode::Constant,
    Opcode::DynamicSlice,
    Opcode::Gather,
    Opcode::Iota,
    Opcode::Pad,
    Opcode::Reshape,
    Opcode::Reverse,
    Opcode::Slice,
    Opcode::Transpose,
];

/// Returns the instructions that compute a value, operands first; `None` if they are too many or
/// depend on more than constants.
fn origin(module: &Module, id: InstId) -> Option<Vec<InstId>> {
    let (mut order, mut state) = (Vec::new(), FxHashMap::default());
    let mut stack = vec![id];
    while let Some(&id) = stack.last() {
        match state.get(&id) {
            None => {
                let op = module.op(id);
                let elements = module.array_shape(id)?.num_elements()?;
                let is_computed = op.opcode().is_elementwise() || COMPUTED.contains(&op.opcode());
                if !is_computed || elements > MOST_ELEMENTS || state.len() >= MOST_INSTRUCTIONS {
                    return None;
                }
                state.insert(id, false);
                stack.extend(module.operands(id));
            }
            Some(&is_done) => {
                if !is_done {
                    order.push(id);
                    state.insert(id, true);
                }
                stack.pop();
            }
        }
    }
    Some(order)
}

/// Returns the value of an instruction that depends on constants alone.
fn value(module: &Module, id: InstId) -> Option<Literal> {
    let mut program = Module::new("sizes");
    let main = program.add_computation("main");
    program.set_entry(main);
    let mut copies: FxHashMap<InstId, InstId> = FxHashMap::default();
    for id in origin(module, id)? {
        let operands: Option<Vec<InstId>> =
            module.operands(id).iter().map(|operand| copies.get(operand).copied()).collect();
        let (op, shape) = (module.op(id).clone(), module.shape(id).clone());
        let name = program.fresh_name(op.opcode().name());
        let copy = program.insert(Position::End(main), op, shape, &operands?, name).ok()?;
        copies.insert(id, copy);
    }
    program.set_root(*copies.get(&id)?).ok()?;
    evaluate(&verify(program).ok()?, &[], &LIMITS).ok()
}

fn integers(data: &Data) -> Option<Vec<i64>> {
    Some(match data {
        Data::S8(values) => values.iter().map(|&value| value.into()).collect(),
        Data::S16(values) => values.iter().map(|&value| value.into()).collect(),
        Data::S32(values) => values.iter().map(|&value| value.into()).collect(),
        Data::S64(values) => values.clone(),
        Data::U8(values) => values.iter().map(|&value| value.into()).collect(),
        Data::U16(values) => values.iter().map(|&value| value.into()).collect(),
        Data::U32(values) => values.iter().map(|&value| value.into()).collect(),
        Data::U64(values) => {
            values.iter().map(|&value| i64::try_from(value)).collect::<Result<_, _>>().ok()?
        }
        _ => return None,
    })
}

pub(super) fn unknown(operation: &Operation) -> ImportError {
    ImportError::unsupported(operation, UNKNOWN_DIMS)
}

impl Body<'_, '_> {
    /// Returns the integers of a value that depends on constants alone.
    fn known(&mut self, id: InstId) -> Option<Vec<i64>> {
        if let Some(known) = self.sizes.get(&id) {
            return known.clone();
        }
        let value = value(&self.importer.module, id);
        let array = value.as_ref().and_then(Literal::as_array);
        let array = array.filter(|array| array.element_type().is_integer());
        let known = array.and_then(|array| integers(array.data()));
        self.sizes.insert(id, known.clone());
        known
    }

    /// Returns the integers of an operand, which must depend on constants alone.
    fn sizes(&mut self, operation: &Operation, operand: usize) -> Import<Vec<i64>> {
        let id = self.operand(operation, operand)?;
        self.known(id).ok_or_else(|| unknown(operation))
    }

    /// Returns the shape of the result, whose dims an operand has if the type does not.
    fn sized(&mut self, operation: &Operation, operand: usize) -> Import<ArrayShape> {
        let shape = self.result_array(operation)?;
        if !shape.dims().contains(&UNBOUNDED) {
            return Ok(shape);
        }
        let sizes = self.sizes(operation, operand)?;
        let agrees = |(&dim, &size): (&i64, &i64)| dim == UNBOUNDED || dim == size;
        if sizes.len() != shape.rank() || !shape.dims().iter().zip(&sizes).all(agrees) {
            return Err(ImportError::malformed(operation, "has sizes that its type does not have"));
        }
        Ok(ArrayShape::new(shape.element_type, sizes))
    }
}

/// `shape.const_shape`: a list of sizes.
pub(crate) fn const_shape<'p>(body: &mut Body<'_, 'p>, operation: &'p Operation) -> Import<()> {
    let sizes = dims(operation, "shape")?;
    let (ty, count) = (ElementType::S64, i64::try_from(sizes.len()).unwrap_or(i64::MAX));
    let list = ArrayLiteral::new(ty, [count], Data::S64(sizes.to_vec()));
    let list = list.map_err(|error| ImportError::malformed(operation, &error.to_string()))?;
    let op = Op::Constant(Box::new(Literal::Array(list)));
    let id = body.emit(op, Shape::array(ty, [count]), &[])?;
    body.bind(operation, id)
}

/// `stablehlo.dynamic_broadcast_in_dim`.
pub(crate) fn dynamic_broadcast_in_dim<'p>(
    body: &mut Body<'_, 'p>,
    operation: &'p Operation,
) -> Import<()> {
    let from = body.operand(operation, 0)?;
    if body.array(operation, from)?.dims().contains(&UNBOUNDED) {
        return Err(unknown(operation));
    }
    let (to, places) = (body.sized(operation, 1)?, dims(operation, "broadcast_dimensions")?);
    let id = body.placed(operation, from, &to, places)?;
    body.bind(operation, id)
}

/// `stablehlo.dynamic_conv`: an operand has the padding.
pub(crate) fn dynamic_conv<'p>(body: &mut Body<'_, 'p>, operation: &'p Operation) -> Import<()> {
    let mut op = body.op(Opcode::Convolution, operation)?;
    let padding = body.sizes(operation, 2)?;
    if let Op::Convolution(attrs) = &mut op {
        let (pairs, _) = padding.as_chunks::<2>();
        if pairs.len() != attrs.window.len() {
            return Err(ImportError::malformed(operation, "pads other dims than the window has"));
        }
        for (dim, &[low, high]) in attrs.window.iter_mut().zip(pairs) {
            (dim.padding_low, dim.padding_high) = (low, high);
        }
    }
    let operands = [body.operand(operation, 0)?, body.operand(operation, 1)?];
    let shape = body.result_shape(operation)?;
    let id = body.emit(op, shape, &operands)?;
    body.bind(operation, id)
}

/// `stablehlo.dynamic_gather`: an operand has the sizes of the slices.
pub(crate) fn dynamic_gather<'p>(body: &mut Body<'_, 'p>, operation: &'p Operation) -> Import<()> {
    let mut values = body.values(operation)?;
    let sizes = body.sizes(operation, 2)?;
    values.insert("slice_sizes", AttrValue::Dims(sizes.into_iter().collect()));
    let op = rows::with_values(Opcode::Gather, operation, &mut values)?;
    let operands = [body.operand(operation, 0)?, body.operand(operation, 1)?];
    let shape = body.result_shape(operation)?;
    let id = body.emit(op, shape, &operands)?;
    body.bind(operation, id)
}

/// `stablehlo.dynamic_iota`.
pub(crate) fn dynamic_iota<'p>(body: &mut Body<'_, 'p>, operation: &'p Operation) -> Import<()> {
    let op = body.op(Opcode::Iota, operation)?;
    let shape = body.sized(operation, 0)?;
    let id = body.emit(op, Shape::Array(shape), &[])?;
    body.bind(operation, id)
}

/// `stablehlo.dynamic_pad`.
pub(crate) fn dynamic_pad<'p>(body: &mut Body<'_, 'p>, operation: &'p Operation) -> Import<()> {
    let (low, high) = (body.sizes(operation, 2)?, body.sizes(operation, 3)?);
    let interior = body.sizes(operation, 4)?;
    if low.len() != high.len() || low.len() != interior.len() {
        return Err(ImportError::malformed(operation, "pads as many dims in each way"));
    }
    let dims = low.iter().zip(&high).zip(&interior);
    let padding = dims.map(|((&low, &high), &interior)| PadDim { low, high, interior }).collect();
    let operands = [body.operand(operation, 0)?, body.operand(operation, 1)?];
    let shape = body.result_shape(operation)?;
    let id = body.emit(Op::Pad(Box::new(PadAttrs { padding })), shape, &operands)?;
    body.bind(operation, id)
}

/// `stablehlo.dynamic_reshape`. The sizes of one with bounds are the elements of one operand, and an
/// operand each in HLO.
pub(crate) fn dynamic_reshape<'p>(body: &mut Body<'_, 'p>, operation: &'p Operation) -> Import<()> {
    let (from, sizes) = (body.operand(operation, 0)?, body.operand(operation, 1)?);
    let to = body.sized(operation, 1)?;
    if to.is_static() {
        let id = body.reshape(from, to)?;
        return body.bind(operation, id);
    }
    let mut operands = vec![from];
    operands.extend(body.scalars(operation, sizes, to.rank())?);
    let id = body.emit(Op::DynamicReshape, Shape::Array(to), &operands)?;
    body.bind(operation, id)
}

impl Body<'_, '_> {
    /// Returns the elements of an array of one dim.
    fn scalars(
        &mut self,
        operation: &Operation,
        array: InstId,
        count: usize,
    ) -> Import<Vec<InstId>> {
        let ty = self.array(operation, array)?.element_type;
        let starts = (0..count).map(|start| i64::try_from(start).unwrap_or(i64::MAX));
        let scalar = |start: i64| {
            let slice = [SliceDim::new(start, start.saturating_add(1))].into_iter().collect();
            let op = Op::Slice(Box::new(SliceAttrs { slice }));
            let one = self.emit(op, Shape::array(ty, [1]), &[array])?;
            self.reshape(one, ArrayShape::scalar(ty))
        };
        starts.map(scalar).collect()
    }

    /// Returns the sizes of a slice that ends so far after its beginning.
    fn span(&mut self, start: InstId, limit: InstId) -> Option<Vec<i64>> {
        let module = &self.importer.module;
        let size = match (module.opcode(limit), module.operands(limit)) {
            (Opcode::Add, &[left, right]) if left == start => right,
            (Opcode::Add, &[left, right]) if right == start => left,
            _ => return None,
        };
        self.known(size)
    }
}

/// `stablehlo.real_dynamic_slice`: a slice between constants, or one of known sizes.
pub(crate) fn real_dynamic_slice<'p>(
    body: &mut Body<'_, 'p>,
    operation: &'p Operation,
) -> Import<()> {
    let operand = |number| body.operand(operation, number);
    let (from, start, limit) = (operand(0)?, operand(1)?, operand(2)?);
    let strides = body.sizes(operation, 3)?;
    let shape = body.result_array(operation)?;
    let id = if let (Some(starts), Some(limits)) = (body.known(start), body.known(limit)) {
        let dims = starts.iter().zip(&limits).zip(&strides);
        let dim = |((&start, &limit), &stride)| SliceDim { start, limit, stride };
        let op = Op::Slice(Box::new(SliceAttrs { slice: dims.map(dim).collect() }));
        body.emit(op, Shape::Array(shape), &[from])?
    } else {
        let sizes = body.span(start, limit).ok_or_else(|| unknown(operation))?;
        if strides.iter().any(|&stride| stride != 1) {
            let why = "takes steps of other sizes than 1 from a place that only a run tells";
            return Err(ImportError::unsupported(operation, why));
        }
        let mut operands = vec![from];
        operands.extend(body.scalars(operation, start, sizes.len())?);
        let dynamic_slice_sizes: Dims = sizes.into_iter().collect();
        let op = Op::DynamicSlice(Box::new(DynamicSliceAttrs { dynamic_slice_sizes }));
        body.emit(op, Shape::Array(shape), &operands)?
    };
    body.bind(operation, id)
}

/// `stablehlo.get_dimension_size`: a constant unless the dim is dynamic.
pub(crate) fn get_dimension_size<'p>(
    body: &mut Body<'_, 'p>,
    operation: &'p Operation,
) -> Import<()> {
    let op = body.op(Opcode::GetDimensionSize, operation)?;
    let from = body.operand(operation, 0)?;
    let of = body.array(operation, from)?;
    let declared = match operation.operands.first() {
        Some(&value) => body.shape_of(operation, value)?,
        None => return Err(missing(operation, "operand")),
    };
    let Op::GetDimensionSize(attrs) = &op else { return Err(missing(operation, "dimension")) };
    let dim = attrs.dimensions.first().and_then(|&dim| usize::try_from(dim).ok());
    // A size that the type names holds, whatever a `set_dimension_size` said.
    let known = [declared.as_array(), Some(&of)].into_iter().flatten();
    let size = dim.and_then(|dim| {
        known.filter(|of| !of.dim_is_dynamic(dim)).find_map(|of| of.dims().get(dim))
    });
    let id = match size.and_then(|&size| literal::whole(ElementType::S32, size)) {
        Some(size) => body.constant(Literal::Array(size), ArrayShape::scalar(ElementType::S32))?,
        None => {
            let shape = body.result_shape(operation)?;
            body.emit(op, shape, &[from])?
        }
    };
    body.bind(operation, id)
}

/// `stablehlo.set_dimension_size`: the bound is the size that the dim had, whether the type says so
/// or not. A dim of its whole bound is static.
pub(crate) fn set_dimension_size<'p>(
    body: &mut Body<'_, 'p>,
    operation: &'p Operation,
) -> Import<()> {
    let op = body.op(Opcode::SetDimensionSize, operation)?;
    let (from, size) = (body.operand(operation, 0)?, body.operand(operation, 1)?);
    let of = body.array(operation, from)?;
    let Op::SetDimensionSize(attrs) = &op else { return Err(missing(operation, "dimension")) };
    let dim = attrs.dimensions.first().and_then(|&dim| usize::try_from(dim).ok());
    let dim = dim.unwrap_or(usize::MAX);
    let bound = of.dims().get(dim).copied().unwrap_or(0);
    let is_whole = body.known(size).is_some_and(|size| size == [bound]);
    if is_whole && !of.dim_is_dynamic(dim) {
        return body.bind(operation, from);
    }
    let shape = of.without_layout().with_dim(dim, bound, !is_whole);
    let id = body.emit(op, Shape::Array(shape), &[from, size])?;
    body.bind(operation, id)
}
