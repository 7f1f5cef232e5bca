//! `ApproxTopK`, the custom call of `jax.lax.approx_max_k` and `approx_min_k`.
//!
//! XLA makes a sort or a reduction of it. For machines that are fast at it, the call
//! `PartialReduce` first leaves the best element of each of many windows, so that nearly all of
//! the top elements are among them.

use tilewright_ir::ops::attr::Verbatim;
use tilewright_ir::ops::control::{CallAttrs, CustomCallAttrs};
use tilewright_ir::ops::dims::SliceDim;
use tilewright_ir::ops::reduce::{ReduceAttrs, SortAttrs};
use tilewright_ir::ops::shaping::SliceAttrs;
use tilewright_ir::{ArrayShape, CompId, ElementType, InstId, Op, Shape};

use super::attributes::{integer, misfit};
use super::body::Body;
use super::error::{Import, ImportError};
use crate::mlir::{Attribute, Operation, value_of};

/// Windows are whole tiles of a vector, or of several for arrays of one dim.
const TILE: i64 = 128;
const TILE_OF_VECTOR: i64 = 1024;

/// The configuration of a call.
struct Request {
    /// The number of elements that are wanted.
    count: i64,
    /// The dim along which they are chosen.
    dim: i64,
    /// The fraction of the top elements that the result has.
    recall: f64,
    /// Whether the result has just the elements that are wanted, and not all candidates.
    aggregates: bool,
    /// The size of the whole array if the operand is a part of it.
    whole: Option<i64>,
    /// Whether the machine has no `PartialReduce`.
    is_fallback: bool,
}

/// Reads what the call asks for.
fn request(operation: &Operation) -> Import<Request> {
    let own = operation.attribute("mhlo.backend_config");
    let config = match own.or_else(|| operation.attribute("backend_config")) {
        Some(Attribute::Dictionary(config)) => config,
        _ => return Err(misfit(operation, "backend_config", "a dictionary")),
    };
    let int = |name| {
        let value = value_of(config, name).and_then(integer);
        value.ok_or_else(|| lacks(operation, name, "an integer"))
    };
    let flag = |name| match value_of(config, name) {
        None => Ok(None),
        Some(Attribute::Bool(value)) => Ok(Some(*value)),
        Some(_) => Err(lacks(operation, name, "a bool")),
    };
    let recall = match value_of(config, "recall_target") {
        #[allow(clippy::cast_possible_truncation, reason = "the attribute has 32 bits")]
        Some(&Attribute::Float(value, _)) if value > 0.0 && value <= 1.0 => (value as f32).into(),
        _ => return Err(lacks(operation, "recall_target", "a float above 0 and up to 1")),
    };
    let whole = int("reduction_input_size_override")?;
    let aggregates = flag("aggregate_to_topk")?;
    Ok(Request {
        count: int("top_k")?,
        dim: int("reduction_dim")?,
        recall,
        aggregates: aggregates.ok_or_else(|| lacks(operation, "aggregate_to_topk", "a bool"))?,
        whole: (whole >= 0).then_some(whole),
        is_fallback: flag("is_fallback")?.unwrap_or(false),
    })
}

fn lacks(operation: &Operation, name: &str, what: &str) -> ImportError {
    let why = format!("calls `ApproxTopK`, which needs {what} as `{name}` in `backend_config`");
    ImportError::malformed(operation, &why)
}

/// How many candidates the windows leave, and how many elements a window has.
#[derive(Debug, PartialEq, Eq)]
struct Windows {
    candidates: i64,
    log2_width: u32,
}

/// Divides a dim of this size into windows so that of the `k` top elements the fraction `recall` is
/// expected to be alone in its window: of `m` windows, `exp((1 - k) / m)` of them.
fn windows(request: &Request, size: i64, rank: usize) -> Windows {
    let tile = if rank == 1 { TILE_OF_VECTOR } else { TILE };
    let all = Windows { candidates: size, log2_width: 0 };
    let whole = request.whole.unwrap_or(size);
    if size <= tile {
        return all;
    }
    if request.count == 1 {
        return Windows { candidates: tile, log2_width: log2_ceil(whole.div_ceil_of(tile)) };
    }
    if request.recall >= 1.0 {
        return all;
    }
    #[allow(clippy::cast_precision_loss, reason = "XLA computes it so")]
    #[allow(clippy::cast_possible_truncation, reason = "it saturates, and is clamped")]
    let needed = ((1.0 - request.count as f64) / request.recall.ln()) as i64;
    let needed = needed.max(tile).min(whole);
    let log2_width = log2_floor(whole.checked_div(needed).unwrap_or(0));
    if log2_width == 0 {
        return all;
    }
    let log2_width = log2_width.min(log2_ceil(size / tile));
    let width = 1i64.checked_shl(log2_width).unwrap_or(i64::MAX);
    let tiles = size.div_ceil_of(tile).div_ceil_of(width);
    Windows { candidates: tiles.saturating_mul(tile), log2_width }
}

/// Division that rounds up.
trait DivCeil {
    fn div_ceil_of(self, divisor: Self) -> Self;
}

impl DivCeil for i64 {
    /// Both are positive.
    fn div_ceil_of(self, divisor: Self) -> Self {
        let quotient = self / divisor;
        if self % divisor == 0 { quotient } else { quotient.saturating_add(1) }
    }
}

fn log2_floor(value: i64) -> u32 {
    value.checked_ilog2().unwrap_or(0)
}

fn log2_ceil(value: i64) -> u32 {
    log2_floor(value.saturating_sub(1)).saturating_add(u32::from(value > 1))
}

/// The operands of the call: arrays and the values that stand for none of their elements.
struct Operands {
    arrays: Vec<InstId>,
    inits: Vec<InstId>,
    shape: ArrayShape,
}

/// Converts the call.
pub(super) fn approx_top_k<'p>(body: &mut Body<'_, 'p>, operation: &'p Operation) -> Import<()> {
    let request = request(operation)?;
    let comparator = body.callee(operation)?;
    let comparator = comparator.ok_or_else(|| {
        ImportError::malformed(operation, "calls `ApproxTopK`, which needs one comparator")
    })?;
    let mut operands = body.candidates_of(operation)?;
    let size = operands.size(request.dim).filter(|&size| size >= request.count);
    let fits = request.count >= 1 && request.whole.is_none_or(|whole| Some(whole) >= size);
    let Some(size) = size.filter(|_| fits) else {
        let why = "calls `ApproxTopK` for fewer than one or more elements than the dim has, or of \
                   a whole that is smaller than its part";
        return Err(ImportError::malformed(operation, why));
    };
    let windows = windows(&request, size, operands.shape.rank());
    let count = if request.aggregates { request.count } else { windows.candidates };
    if !request.is_fallback && windows.log2_width > 0 {
        let id = body.partial_reduce(&request, &windows, &operands, comparator)?;
        if !request.aggregates {
            return body.bind(operation, id);
        }
        let elements = 0..operands.arrays.len();
        let arrays = elements.map(|number| body.element(id, number)).collect::<Import<_>>()?;
        operands = Operands { arrays, inits: operands.inits, shape: body.array_of(id, 0)? };
    } else if !request.is_fallback && !request.aggregates {
        let id = body.tuple(&operands.arrays)?;
        return body.bind(operation, id);
    }
    let results = if count == 1 {
        body.best(request.dim, &operands, comparator)?
    } else {
        body.top(&request, count, &operands, comparator)?
    };
    let id = body.tuple(&results)?;
    body.bind(operation, id)
}

impl Operands {
    fn size(&self, dim: i64) -> Option<i64> {
        self.shape.dims().get(usize::try_from(dim).ok()?).copied()
    }

    /// The shape with another size of a dim.
    fn sized(&self, dim: i64, size: i64) -> ArrayShape {
        let dim = usize::try_from(dim).unwrap_or(usize::MAX);
        self.shape.without_layout().with_dim(dim, size, false)
    }
}

impl Body<'_, '_> {
    /// The first half of the operands are arrays of one shape.
    fn candidates_of(&self, operation: &Operation) -> Import<Operands> {
        let mut arrays = self.operands(operation)?;
        let inits = arrays.split_off(arrays.len() / 2);
        let shape = arrays.first().and_then(|&id| self.importer.module.array_shape(id));
        let same = |&id: &InstId| {
            let other = self.importer.module.array_shape(id);
            other.map(ArrayShape::dims) == shape.map(ArrayShape::dims)
        };
        match shape {
            Some(shape)
                if arrays.iter().all(same)
                    && arrays.len() == inits.len()
                    && arrays.len() == operation.results.len().max(2)
                    && !(0..shape.rank()).any(|dim| shape.dim_is_dynamic(dim)) =>
            {
                Ok(Operands { shape: shape.clone(), arrays, inits })
            }
            _ => {
                let why = "calls `ApproxTopK`, which takes at least two arrays of the same known \
                           dims, and a scalar for each";
                Err(ImportError::malformed(operation, why))
            }
        }
    }

    fn array_of(&self, tuple: InstId, index: usize) -> Import<ArrayShape> {
        let elements = self.importer.module.shape(tuple).as_tuple();
        let shape = elements.and_then(|elements| elements.get(index)).and_then(Shape::as_array);
        shape.cloned().ok_or_else(|| self.invalid("`PartialReduce` yields arrays"))
    }

    /// Returns a shape with the element type of an array.
    fn with_type_of(&self, like: InstId, shape: ArrayShape) -> Shape {
        match self.importer.module.array_shape(like) {
            Some(of) => Shape::Array(shape.with_element_type(of.element_type)),
            None => Shape::Array(shape),
        }
    }

    fn partial_reduce(
        &mut self,
        request: &Request,
        windows: &Windows,
        operands: &Operands,
        comparator: CompId,
    ) -> Import<InstId> {
        let Operands { arrays, inits, .. } = operands;
        let reduced = operands.sized(request.dim, windows.candidates);
        let shapes = arrays.iter().map(|&id| self.with_type_of(id, reduced.clone())).collect();
        let attrs = CustomCallAttrs {
            custom_call_target: "PartialReduce".into(),
            called_computations: [comparator].into_iter().collect(),
            ..CustomCallAttrs::default()
        };
        let all: Vec<InstId> = arrays.iter().chain(inits).copied().collect();
        let id = self.emit(Op::CustomCall(Box::new(attrs)), Shape::Tuple(shapes), &all)?;
        let Request { count, dim, recall, .. } = request;
        let width = windows.log2_width;
        let config = format!(
            r#"{{"log2_reduction": {width}, "reduction_dim": {dim}, "to_apply_type": "comparator", "top_k": {count}, "recall_target": {recall:.6}}}"#
        );
        let mut extras = self.importer.module.extras(id).cloned().unwrap_or_default();
        extras.backend_config = Some(Verbatim(config.into_boxed_str()));
        self.importer.module.set_extras(id, extras);
        Ok(id)
    }

    /// The best element is that of a reduction.
    fn best(&mut self, dim: i64, operands: &Operands, comparator: CompId) -> Import<Vec<InstId>> {
        let Operands { arrays, inits, shape } = operands;
        let to_apply = self.reducer(arrays, comparator)?;
        let kept = shape.dims().iter().zip(0i64..).filter(|&(_, at)| at != dim);
        let kept = ArrayShape::new(shape.element_type, kept.map(|(&size, _)| size));
        let shapes = arrays.iter().map(|&id| self.with_type_of(id, kept.clone())).collect();
        let all: Vec<InstId> = arrays.iter().chain(inits).copied().collect();
        let dimensions = [dim].into_iter().collect();
        let op = Op::Reduce(Box::new(ReduceAttrs { dimensions, to_apply }));
        let reduced = self.emit(op, Shape::Tuple(shapes), &all)?;
        let mut results = Vec::new();
        for (number, &array) in arrays.iter().enumerate() {
            let element = self.element(reduced, number)?;
            let shape = self.with_type_of(array, operands.sized(dim, 1));
            results.push(self.emit(Op::Reshape(Box::default()), shape, &[element])?);
        }
        Ok(results)
    }

    /// Adds the computation that takes the left elements if the comparator prefers them.
    fn reducer(&mut self, arrays: &[InstId], comparator: CompId) -> Import<CompId> {
        let types =
            arrays.iter().map(|&id| self.with_type_of(id, ArrayShape::scalar(ElementType::Pred)));
        let types: Vec<Shape> = types.collect();
        let (caller, span) = (self.computation, self.span);
        let computation = self.importer.begin("ReductionFn", Some(caller), span)?;
        let mut body = Body::new(self.importer, computation, span);
        let mut sides = Vec::new();
        for (number, shape) in types.iter().chain(&types).enumerate() {
            sides.push(body.parameter(number, shape.clone(), None)?);
        }
        let right = sides.split_off(types.len());
        let pairs = sides.iter().zip(&right);
        let pairs: Vec<InstId> = pairs.flat_map(|(&left, &right)| [left, right]).collect();
        let op = Op::Call(Box::new(CallAttrs { to_apply: comparator, is_composite: false }));
        let prefers = body.emit(op, Shape::scalar(ElementType::Pred), &pairs)?;
        let mut chosen = Vec::new();
        for ((shape, &left), &right) in types.into_iter().zip(&sides).zip(&right) {
            chosen.push(body.emit(Op::Select, shape, &[prefers, left, right])?);
        }
        let root = body.tuple(&chosen)?;
        let set = body.importer.module.set_root(root);
        set.map_err(|error| self.invalid(&error.to_string()))?;
        self.importer.end();
        Ok(computation)
    }

    /// The top elements are the first ones of a sort.
    fn top(
        &mut self,
        request: &Request,
        count: i64,
        operands: &Operands,
        comparator: CompId,
    ) -> Import<Vec<InstId>> {
        let arrays = &operands.arrays;
        let shapes = arrays.iter().map(|&id| self.with_type_of(id, operands.shape.clone()));
        let attrs = SortAttrs {
            dimensions: [request.dim].into_iter().collect(),
            is_stable: request.is_fallback,
            to_apply: comparator,
        };
        let shape = Shape::Tuple(shapes.collect());
        let sorted = self.emit(Op::Sort(Box::new(attrs)), shape, arrays)?;
        let kept = operands.sized(request.dim, count);
        let mut results = Vec::new();
        for (number, &array) in arrays.iter().enumerate() {
            let element = self.element(sorted, number)?;
            let slice = kept.dims().iter().map(|&size| SliceDim::new(0, size)).collect();
            let shape = self.with_type_of(array, kept.clone());
            let op = Op::Slice(Box::new(SliceAttrs { slice }));
            results.push(self.emit(op, shape, &[element])?);
        }
        Ok(results)
    }
}

#[cfg(test)]
mod tests {
    use super::{Request, Windows, windows};

    /// What `_jax.approx_top_k_reduction_output_size` of jaxlib returns.
    #[test]
    #[allow(clippy::type_complexity, reason = "a row of a table")]
    fn windows_are_those_of_jaxlib() {
        let rows: &[((i64, usize, i64, f64, i64), (i64, u32))] = &[
            ((800, 2, 3, 0.95, -1), (256, 2)),
            ((80_000, 2, 3, 0.95, -1), (256, 9)),
            ((80_000, 2, 10, 0.95, -1), (384, 8)),
            ((80_000, 2, 1, 0.95, -1), (128, 10)),
            ((5_000, 1, 20, 0.8, 10_000), (2_048, 2)),
            ((5_000, 1, 1, 0.9, -1), (1_024, 3)),
            ((2_000, 2, 50, 0.99, 4_000), (2_000, 0)),
            ((2_000, 2, 50, 0.5, -1), (256, 3)),
            ((2_000, 2, 50, 1.0, -1), (2_000, 0)),
            ((300, 3, 1, 0.5, -1), (128, 2)),
            ((129, 2, 2, 0.95, -1), (129, 0)),
            ((128, 2, 2, 0.95, -1), (128, 0)),
            ((1_000_000, 2, 100, 0.99, -1), (15_744, 6)),
            ((1_000_000, 1, 7, 0.3, 1_099_511_627_776), (1_024, 10)),
            ((1_025, 1, 2, 0.9, -1), (1_025, 0)),
            ((1_000, 2, 1, 0.9, 1_073_741_824), (128, 23)),
        ];
        for &((size, rank, count, recall, whole), (candidates, log2_width)) in rows {
            let request = Request {
                count,
                dim: 0,
                recall,
                aggregates: false,
                whole: (whole >= 0).then_some(whole),
                is_fallback: false,
            };
            let expected = Windows { candidates, log2_width };
            assert_eq!(windows(&request, size, rank), expected, "{size} {count} {recall}");
        }
    }
}
