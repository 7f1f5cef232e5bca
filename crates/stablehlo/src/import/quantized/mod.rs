//! Quantised values, which HLO does not have, as the integers that are stored, `real = (stored - zero) scale`
//! (StableHLO's specification, "Quantized types").
//!
//! Ops that move elements move the stored ones. Other ops compute with the floats that these stand for, and their results
//! are stored again; sums of one type, products of matrices and convolutions compute with integers.

mod types;

use tilewright_ir::{ElementType, InstId, Op, Opcode};

use super::body::Body;
use super::error::{Import, ImportError, ImportErrorKind};
use super::functions::expr::{Expr, compute};
use crate::dialect;
use crate::mlir::{Operation, Value};
pub(super) use types::Quantized;

/// How an operation takes elements of quantised types.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Elements {
    /// The integers that are stored.
    #[default]
    Stored,
    /// The floats that they stand for.
    Expressed,
    /// Sums of their products.
    Summed,
}

impl Elements {
    /// The type of elements of a quantised type.
    pub(super) fn of(self, ty: &Quantized) -> ElementType {
        match self {
            Self::Stored => ty.storage,
            Self::Expressed => ty.expressed,
            Self::Summed => ElementType::S32,
        }
    }
}

/// How far the ratio of a product's scales to that of its result may be from 1 and be 1: MLIR prints each of the
/// three with seven digits.
const ROUNDED: f64 = 1.5e-6;

/// The ops that move elements of arrays, by their names without the dialect.
const MOVES: &[&str] = &[
    "bitcast_convert",
    "broadcast",
    "broadcast_in_dim",
    "concatenate",
    "constant",
    "dynamic_broadcast_in_dim",
    "dynamic_gather",
    "dynamic_pad",
    "dynamic_reshape",
    "dynamic_slice",
    "dynamic_update_slice",
    "gather",
    "get_dimension_size",
    "pad",
    "real_dynamic_slice",
    "reshape",
    "reverse",
    "set_dimension_size",
    "slice",
    "torch_index_select",
    "transpose",
];

/// The ops that hand values on whole, or whose regions compute with elements.
const HANDS_ON: &[&str] = &[
    "all_gather",
    "all_reduce",
    "all_to_all",
    "call",
    "case",
    "collective_broadcast",
    "collective_permute",
    "composite",
    "custom_call",
    "get_tuple_element",
    "if",
    "map",
    "optimization_barrier",
    "reduce",
    "reduce_scatter",
    "reduce_window",
    "scatter",
    "select_and_scatter",
    "sort",
    "tuple",
    "uniform_dequantize",
    "uniform_quantize",
    "while",
];

/// `stablehlo.uniform_quantize`, of floats or of values of another quantised type.
pub(crate) fn quantize<'p>(body: &mut Body<'_, 'p>, operation: &'p Operation) -> Import<()> {
    let id = body.operand(operation, 0)?;
    let to = body.quantized_result(operation)?;
    let stored = match body.quantized_operand(operation, 0) {
        Some(from) if from == to => id,
        Some(from) => body.requantize(id, &from, &to)?,
        None => body.quantize(id, &to)?,
    };
    body.bind(operation, stored)
}

/// `stablehlo.uniform_dequantize`.
pub(crate) fn dequantize<'p>(body: &mut Body<'_, 'p>, operation: &'p Operation) -> Import<()> {
    let id = body.operand(operation, 0)?;
    let Some(from) = body.quantized_operand(operation, 0) else {
        return Err(ImportError::malformed(operation, "takes a value of a quantized type"));
    };
    let floats = body.dequantize(id, &from)?;
    body.bind(operation, floats)
}

impl<'p> Body<'_, 'p> {
    /// Converts an operation that computes with quantised values. `false`: it takes stored elements as they are.
    pub(super) fn convert_quantized(
        &mut self,
        op: &'static dialect::Op,
        operation: &'p Operation,
    ) -> Import<bool> {
        let program = self.importer.program;
        let of = |&value: &Value| program.type_of(value).and_then(Quantized::of);
        let values = || operation.operands.iter().chain(&operation.results);
        let Some(first) = &values().find_map(of) else { return Ok(false) };
        let types: Vec<Option<Quantized>> = values().map(of).collect();
        let scales = types.iter().flatten().map(|ty| ty.scales.len()).sum();
        self.importer.scales = self.importer.scales.checked_sub(scales).ok_or_else(|| {
            let why = "types with as many scales are repeated too often";
            ImportError::new(ImportErrorKind::TooDeep, operation.span, why)
        })?;
        let is_first = |ty: &Option<Quantized>| ty.as_ref() == Some(first);
        let picks =
            types.last().is_some_and(is_first) && types.iter().flatten().all(|ty| ty == first);
        match op.opcode {
            // Scales are positive, so that stored integers are in the order of what they stand for.
            Some(Opcode::Select | Opcode::Maximum | Opcode::Minimum | Opcode::Clamp) if picks => {
                return Ok(false);
            }
            Some(Opcode::Add | Opcode::Subtract) if types.iter().all(is_first) => {
                let id = self.sum_of_one_type(op.opcode == Some(Opcode::Add), operation, first)?;
                self.bind(operation, id)?;
                return Ok(true);
            }
            _ if multiplies(op) => {
                // A scale for each column of the right operand is a scale for each column of the result.
                if let [Some(left), Some(right), Some(to)] = types.as_slice()
                    && left.dim.is_none()
                    && right.dim.is_some() == to.dim.is_some()
                {
                    self.product(op, operation, [left, right, to])?;
                    return Ok(true);
                }
            }
            _ if HANDS_ON.contains(&op.base_name()) => return Ok(false),
            _ if MOVES.contains(&op.base_name()) => {
                if types.iter().flatten().all(|ty| ty.means_the_same(first)) {
                    return Ok(false);
                }
                let why = "moves elements between quantized types; requantize them \
                           (`stablehlo.uniform_quantize`)";
                return Err(ImportError::malformed(operation, why));
            }
            _ if computes(op) => {}
            _ => {
                let why = "is not computed of quantized values here; dequantize them first \
                           (`stablehlo-opt --stablehlo-legalize-quantized-op-to-qdq`)";
                return Err(ImportError::unsupported(operation, why));
            }
        }
        self.compute_floats(op, operation, &types)?;
        Ok(true)
    }

    /// Converts an operation on the floats that its operands stand for, and stores its results.
    fn compute_floats(
        &mut self,
        op: &'static dialect::Op,
        operation: &'p Operation,
        types: &[Option<Quantized>],
    ) -> Import<()> {
        let (operands, results) = types.split_at(operation.operands.len());
        let before = self.operands(operation)?;
        for ((&value, ty), &id) in operation.operands.iter().zip(operands).zip(&before) {
            if let Some(ty) = ty {
                let floats = self.dequantize(id, ty)?;
                self.values.insert(value, floats);
            }
        }
        self.convert_to(op, operation, Elements::Expressed)?;
        self.values.extend(operation.operands.iter().copied().zip(before));
        for (&value, ty) in operation.results.iter().zip(results) {
            if let (Some(ty), Some(&floats)) = (ty, self.values.get(&value)) {
                let stored = self.quantize(floats, ty)?;
                self.values.insert(value, stored);
            }
        }
        Ok(())
    }

    /// Converts an operation by its row, with such elements in place of quantised ones.
    fn convert_to(
        &mut self,
        op: &'static dialect::Op,
        operation: &'p Operation,
        elements: Elements,
    ) -> Import<()> {
        self.elements = elements;
        let converted = self.by_row(op, operation);
        self.elements = Elements::Stored;
        converted
    }

    fn quantized_operand(&self, operation: &Operation, index: usize) -> Option<Quantized> {
        let &value = operation.operands.get(index)?;
        self.importer.program.type_of(value).and_then(Quantized::of)
    }

    fn quantized_result(&self, operation: &Operation) -> Import<Quantized> {
        self.result_shape(operation)?;
        let ty = operation.results.first().and_then(|&value| self.importer.program.type_of(value));
        ty.and_then(Quantized::of)
            .ok_or_else(|| ImportError::malformed(operation, "has a result that is not quantized"))
    }

    fn formula(
        &mut self,
        operands: &[InstId],
        formula: impl for<'f> FnOnce(&[Expr<'f>]) -> Option<Expr<'f>>,
    ) -> Import<InstId> {
        let made = compute(self, operands, formula)?;
        made.ok_or_else(|| self.invalid("a quantised operation has another number of operands"))
    }

    /// `(stored - zero) scale`.
    fn dequantize(&mut self, id: InstId, from: &Quantized) -> Import<InstId> {
        self.formula(&[id], |values| {
            let [stored] = values else { return None };
            let floats = centered(*stored, from).convert(from.computed());
            let floats = floats * floats.along(from.dim, &from.scales);
            Some(as_type(floats, from.expressed))
        })
    }

    /// `round(clamp(real / scale + zero))`.
    fn quantize(&mut self, id: InstId, to: &Quantized) -> Import<InstId> {
        self.formula(&[id], |values| {
            let [floats] = values else { return None };
            let floats = as_type(*floats, to.computed());
            let scaled = floats / floats.along(to.dim, &to.scales);
            Some(stored(scaled + scaled.along(to.dim, &reals(&to.zeros)), to))
        })
    }

    /// `round(clamp(stored ratio + (zero' - zero ratio)))`, where `ratio = scale / scale'`.
    fn requantize(&mut self, id: InstId, from: &Quantized, to: &Quantized) -> Import<InstId> {
        let dim = to.dim.or(from.dim);
        if from.dim.is_some_and(|from| to.dim.is_some_and(|to| to != from)) {
            let floats = self.dequantize(id, from)?;
            return self.quantize(floats, to);
        }
        let ratios = paired(&from.scales, &to.scales, |from, to| from / to);
        let shifts = paired(&reals(&from.zeros), &ratios, |zero, ratio| zero * ratio);
        let shifts = paired(&shifts, &reals(&to.zeros), |shift, zero| zero - shift);
        self.formula(&[id], |values| {
            let [before] = values else { return None };
            let floats = before.convert(ElementType::F32);
            let scaled = floats * floats.along(dim, &ratios);
            Some(stored(scaled + scaled.along(dim, &shifts), to))
        })
    }

    /// `x + y - zero`, or `x - y + zero`, of values of one type.
    fn sum_of_one_type(
        &mut self,
        adds: bool,
        operation: &'p Operation,
        ty: &Quantized,
    ) -> Import<InstId> {
        let operands = self.operands(operation)?;
        self.formula(&operands, |values| {
            let &[x, y] = values else { return None };
            let x = as_type(x, ElementType::S32);
            // The zeros of both cancel out in a difference.
            let total = if adds { x + centered(y, ty) } else { x - centered(y, ty) };
            if ty.storage == ElementType::S32 && ty.is_whole_range() {
                return Some(total);
            }
            let (least, greatest) = ty.range;
            let clamped = total.clamp(total.integer(least), total.integer(greatest));
            Some(clamped.convert(ty.storage))
        })
    }

    /// `round(clamp(sum((x - zero) (y - zero')) (scale scale' / scale'') + zero''))`.
    fn product(
        &mut self,
        op: &'static dialect::Op,
        operation: &'p Operation,
        [left, right, to]: [&Quantized; 3],
    ) -> Import<()> {
        let &[of_left, of_right] = operation.operands.as_slice() else {
            return Err(ImportError::malformed(operation, "takes two operands"));
        };
        let before = self.operands(operation)?;
        let is_direct = left.storage == right.storage && left.is_centered() && right.is_centered();
        if !is_direct {
            for ((value, ty), &id) in [(of_left, left), (of_right, right)].into_iter().zip(&before)
            {
                let integers =
                    self.formula(&[id], |values| Some(centered(*values.first()?, ty)))?;
                self.values.insert(value, integers);
            }
        }
        self.convert_to(op, operation, Elements::Summed)?;
        self.values.extend([of_left, of_right].into_iter().zip(before));
        let result = operation.results.first().and_then(|result| self.values.get(result).copied());
        let Some(sums) = result else { return Ok(()) };
        let dim = right.dim.and_then(|dim| self.dim_of_product(sums, dim));
        if dim != to.dim {
            let why = "has scales along a dim of `rhs` that is not the one of the result";
            return Err(ImportError::malformed(operation, why));
        }
        let scales = paired(&left.scales, &right.scales, |left, right| left * right);
        let ratios = paired(&scales, &to.scales, |scale, to| scale / to);
        let id = self.formula(&[sums], |values| {
            let [sums] = values else { return None };
            // Sums that are stored as they are keep all of their 32 bits.
            if ratios.iter().all(|ratio| (ratio - 1.0).abs() < ROUNDED)
                && to.storage == ElementType::S32
                && to.is_whole_range()
                && to.is_centered()
            {
                return Some(*sums);
            }
            let floats = sums.convert(ElementType::F32);
            let scaled = floats * floats.along(dim, &ratios);
            Some(stored(scaled + scaled.along(to.dim, &reals(&to.zeros)), to))
        })?;
        self.bind(operation, id)
    }

    /// The dim of a product of matrices, or of a convolution, that is this dim of the right operand.
    fn dim_of_product(&self, product: InstId, dim: i64) -> Option<i64> {
        let module = &self.importer.module;
        match module.op(product) {
            Op::Dot(attrs) => {
                let &[left, _] = module.operands(product) else { return None };
                let summed = &attrs.rhs_contracting_dims;
                if let Some(batch) = attrs.rhs_batch_dims.iter().position(|&batch| batch == dim) {
                    return i64::try_from(batch).ok();
                }
                if summed.contains(&dim) {
                    return None;
                }
                let of_left = module
                    .array_shape(left)?
                    .rank()
                    .checked_sub(attrs.lhs_contracting_dims.len())?;
                let is_free =
                    |other: &i64| !summed.contains(other) && !attrs.rhs_batch_dims.contains(other);
                let before = (0..dim).filter(is_free).count();
                i64::try_from(of_left.checked_add(before)?).ok()
            }
            Op::Convolution(attrs) => {
                let labels = &attrs.dim_labels;
                (labels.kernel_output_feature == dim).then_some(labels.output_feature)
            }
            _ => None,
        }
    }
}

/// Whether an op sums products of its operands' elements.
fn multiplies(op: &dialect::Op) -> bool {
    matches!(op.base_name(), "dot" | "dot_general" | "convolution")
}

/// Whether an op computes with the numbers that elements stand for.
fn computes(op: &dialect::Op) -> bool {
    let by_opcode = |opcode: Opcode| match opcode {
        Opcode::BatchNormGrad
        | Opcode::BatchNormInference
        | Opcode::BatchNormTraining
        | Opcode::Cholesky
        | Opcode::TriangularSolve => true,
        _ => opcode.is_elementwise(),
    };
    op.function.is_some() || multiplies(op) || op.opcode.is_some_and(by_opcode)
}

/// The stored integers without their zero.
fn centered<'f>(stored: Expr<'f>, ty: &Quantized) -> Expr<'f> {
    let integers = as_type(stored, ElementType::S32);
    match ty.is_centered() {
        true => integers,
        false => integers - integers.along(ty.dim, &reals(&ty.zeros)),
    }
}

/// Rounds to the integers that a type stores.
fn stored<'f>(scaled: Expr<'f>, ty: &Quantized) -> Expr<'f> {
    #[allow(clippy::cast_precision_loss, reason = "bounds of at most 32 bits are doubles")]
    let (least, greatest) = (ty.range.0 as f64, ty.range.1 as f64);
    scaled.clamp(scaled.number(least), scaled.number(greatest)).round().convert(ty.storage)
}

fn as_type(value: Expr<'_>, ty: ElementType) -> Expr<'_> {
    if value.ty() == ty { value } else { value.convert(ty) }
}

fn reals(integers: &[i64]) -> Vec<f64> {
    #[allow(clippy::cast_precision_loss, reason = "stored integers have at most 32 bits")]
    integers.iter().map(|&integer| integer as f64).collect()
}

/// Pairs the numbers of two types; a single one is paired with each of the other.
fn paired(left: &[f64], right: &[f64], of: impl Fn(f64, f64) -> f64) -> Vec<f64> {
    let count = left.len().max(right.len());
    left.iter()
        .cycle()
        .zip(right.iter().cycle())
        .take(count)
        .map(|(&left, &right)| of(left, right))
        .collect()
}
