//! Ops that compute each result element from the operands' elements at the
//! same index.

use smallvec::SmallVec;

use super::attr::{Real64, attributes, words};
use crate::infer::{ShapeError, ShapeQuery, scalar};
use crate::types::element::{ElementType, NumberClass};
use crate::types::shape::{ArrayShape, Dims, Shape, UNBOUNDED};

attributes! {
    /// Attributes of `compare`.
    pub struct CompareAttrs {
        /// The relation that is tested.
        direction: Direction = "direction",
        /// The order of numbers; if absent, the default of the operands' type.
        order: Option<CompareOrder> = "type",
    }

    /// Attributes of `reduce-precision`.
    pub struct ReducePrecisionAttrs {
        /// Number of exponent bits kept.
        exponent_bits: i64 = "exponent_bits",
        /// Number of mantissa bits kept.
        mantissa_bits: i64 = "mantissa_bits",
    }

    /// Attributes of functions that devices compute with different accuracy.
    pub struct AccuracyAttrs: Default {
        /// The requested accuracy.
        result_accuracy: ResultAccuracy = "result_accuracy" or ResultAccuracy::Default,
    }
}

/// The required accuracy of a result (XLA's `ResultAccuracy`).
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum ResultAccuracy {
    /// The accuracy of the device's implementation.
    #[default]
    Default,
    /// `{mode=highest}`
    Highest,
    /// `{tolerance={atol=0.1,rtol=0,ulps=2}}`
    Tolerance {
        /// Absolute.
        atol: Real64,
        /// Relative.
        rtol: Real64,
        /// In units in the last place.
        ulps: i64,
    },
}

words! {
    /// The relation that `compare` tests.
    pub enum Direction {
        /// Equal.
        Eq = "EQ",
        /// Not equal.
        Ne = "NE",
        /// Greater or equal.
        Ge = "GE",
        /// Greater.
        Gt = "GT",
        /// Less or equal.
        Le = "LE",
        /// Less.
        Lt = "LT",
    }

    /// The order in which `compare` compares numbers.
    pub enum CompareOrder {
        /// As IEEE 754 does: NaN is unordered, zeros of both signs are equal.
        Float = "FLOAT",
        /// -NaN < -inf < ... < -0 < +0 < ... < inf < NaN.
        TotalOrder = "TOTALORDER",
        /// As two's complement.
        Signed = "SIGNED",
        /// As non-negative numbers.
        Unsigned = "UNSIGNED",
    }
}

/// Returns the common dims of the two operands, which the result has too, with the first
/// operand's type.
fn common_dims(q: &ShapeQuery<'_>) -> Result<ArrayShape, ShapeError> {
    let (first, other) = (q.array(0)?, q.array(1)?);
    first.common_dims(other).ok_or_else(|| {
        ShapeError::operand(format!(
            "the operands of `{}` differ in dims: {first} and {other}; broadcast the smaller one",
            q.op.opcode()
        ))
    })
}

fn without_layout(shape: &ArrayShape) -> ArrayShape {
    shape.clone().with_layout(None)
}

/// Returns the first operand, if the op accepts its element type.
fn numbers<'a>(q: &ShapeQuery<'a>) -> Result<&'a ArrayShape, ShapeError> {
    let (operand, opcode) = (q.array(0)?, q.op.opcode());
    if opcode.takes(operand.element_type.class()) {
        return Ok(operand);
    }
    let takes = |class| opcode.takes(class);
    let integer = match (takes(NumberClass::Signed), takes(NumberClass::Unsigned)) {
        (true, true) => Some("integer"),
        (true, false) => Some("signed integer"),
        (false, true) => Some("unsigned integer"),
        (false, false) => None,
    };
    let kinds = [
        takes(NumberClass::Bool).then_some("pred"),
        integer,
        takes(NumberClass::Float).then_some("float"),
        takes(NumberClass::Complex).then_some("complex"),
    ];
    let taken: Vec<&str> = kinds.into_iter().flatten().collect();
    Err(ShapeError::operand(format!(
        "`{opcode}` takes {} arrays, not {operand}",
        taken.join(" or ")
    )))
}

pub(super) fn unary(q: &ShapeQuery<'_>) -> Result<Shape, ShapeError> {
    Ok(without_layout(numbers(q)?).into())
}

/// `abs` of complex numbers is real.
pub(super) fn abs(q: &ShapeQuery<'_>) -> Result<Shape, ShapeError> {
    let operand = numbers(q)?;
    let result = operand.element_type.complex_part().unwrap_or(operand.element_type);
    Ok(without_layout(operand).with_element_type(result).into())
}

pub(super) fn binary(q: &ShapeQuery<'_>) -> Result<Shape, ShapeError> {
    let (shape, other) = (common_dims(q)?, q.array(1)?);
    numbers(q)?;
    if !q.same_type(shape.element_type, other.element_type) {
        return Err(ShapeError::operand(format!(
            "the operands of `{}` differ in type: {} and {}; convert one of them",
            q.op.opcode(),
            shape.element_type,
            other.element_type
        )));
    }
    let result = shape.element_type.more_precise(other.element_type);
    Ok(shape.with_element_type(result).into())
}

pub(super) fn convert(q: &ShapeQuery<'_>) -> Result<Shape, ShapeError> {
    let result = q.declared_array()?.element_type;
    Ok(without_layout(q.array(0)?).with_element_type(result).into())
}

/// Operands: floats, and for each as many random bits as it has.
pub(super) fn stochastic_convert(q: &ShapeQuery<'_>) -> Result<Shape, ShapeError> {
    let result = q.declared_array()?.element_type;
    let (from, random) = (q.array(0)?.element_type, q.array(1)?.element_type);
    let is_unsigned = random.class() == NumberClass::Unsigned;
    if !from.is_float() || !is_unsigned || from.bits() != random.bits() {
        return Err(ShapeError::operand(format!(
            "`stochastic-convert` takes floats and unsigned integers of as many bits, not {from} and {random}"
        )));
    }
    Ok(common_dims(q)?.with_element_type(result).into())
}

pub(super) fn is_finite(q: &ShapeQuery<'_>) -> Result<Shape, ShapeError> {
    Ok(without_layout(numbers(q)?).with_element_type(ElementType::Pred).into())
}

/// `real` and `imag`; `real` of a real array is the array itself.
pub(super) fn complex_part(q: &ShapeQuery<'_>) -> Result<Shape, ShapeError> {
    let operand = numbers(q)?;
    let part = operand.element_type.complex_part().unwrap_or(operand.element_type);
    Ok(without_layout(operand).with_element_type(part).into())
}

pub(super) fn complex(q: &ShapeQuery<'_>) -> Result<Shape, ShapeError> {
    let result = match q.array(0)?.element_type {
        ElementType::F32 => ElementType::C64,
        ElementType::F64 => ElementType::C128,
        other => {
            return Err(ShapeError::operand(format!(
                "`complex` takes f32 or f64 parts, not {other}"
            )));
        }
    };
    let Shape::Array(shape) = binary(q)? else { return Err(ShapeError::operand("not an array")) };
    Ok(shape.with_element_type(result).into())
}

pub(super) fn reduce_precision(
    q: &ShapeQuery<'_>,
    attrs: &ReducePrecisionAttrs,
) -> Result<Shape, ShapeError> {
    if attrs.exponent_bits < 1 || attrs.mantissa_bits < 0 {
        return Err(ShapeError::attribute(
            "`reduce-precision` needs exponent_bits >= 1 and mantissa_bits >= 0",
        ));
    }
    unary(q)
}

pub(super) fn compare(q: &ShapeQuery<'_>, attrs: &CompareAttrs) -> Result<Shape, ShapeError> {
    let Shape::Array(shape) = binary(q)? else { return Err(ShapeError::operand("not an array")) };
    let class = shape.element_type.class();
    let fits = match attrs.order {
        None => true,
        Some(CompareOrder::Float | CompareOrder::TotalOrder) => {
            matches!(class, NumberClass::Float | NumberClass::Complex)
        }
        Some(CompareOrder::Signed) => class == NumberClass::Signed,
        Some(CompareOrder::Unsigned) => matches!(class, NumberClass::Unsigned | NumberClass::Bool),
    };
    if !fits {
        return Err(ShapeError::attribute(format!(
            "`compare` cannot order {} as its `type` says",
            shape.element_type
        )));
    }
    Ok(shape.with_element_type(ElementType::Pred).into())
}

/// The condition is a scalar or has the dims of the values.
pub(super) fn select(q: &ShapeQuery<'_>) -> Result<Shape, ShapeError> {
    let condition = q.operand(0)?;
    let (on_true, on_false) = (q.array(1)?, q.array(2)?);
    let same_type = q.same_type(on_true.element_type, on_false.element_type);
    let result = on_true.element_type.more_precise(on_false.element_type);
    let chosen = same_type.then(|| on_true.common_dims(on_false)).flatten();
    let chosen = chosen.map(|chosen| chosen.with_element_type(result));
    let chosen = chosen.ok_or_else(|| {
        ShapeError::operand(format!(
            "`select` chooses between values of one shape, not {on_true} and {on_false}"
        ))
    })?;
    let condition = condition.as_array().filter(|c| c.element_type == ElementType::Pred);
    match condition {
        Some(condition) if condition.rank() == 0 => Ok(chosen.into()),
        Some(condition) if condition.dims_agree(&chosen) => {
            Ok(as_dynamic_as(condition, &chosen).into())
        }
        _ => Err(ShapeError::operand(format!(
            "the condition of `select` must be {} or have the dims of the values, not {}",
            scalar(ElementType::Pred),
            q.operand(0)?
        ))),
    }
}

/// Returns the shape of the selected values, with the dynamic dims of the condition.
fn as_dynamic_as(condition: &ArrayShape, chosen: &ArrayShape) -> ArrayShape {
    let dim = |dim: usize| match condition.dims()[dim] {
        UNBOUNDED => (UNBOUNDED, true),
        size => (size, condition.dim_is_dynamic(dim) || chosen.dim_is_dynamic(dim)),
    };
    let (dims, dynamic): (Dims, SmallVec<[bool; 6]>) = (0..condition.rank()).map(dim).unzip();
    ArrayShape::new(chosen.element_type, dims).with_dynamic(&dynamic)
}

/// Bounds are scalars or have the dims of the value.
pub(super) fn clamp(q: &ShapeQuery<'_>) -> Result<Shape, ShapeError> {
    let value = q.array(1)?;
    for index in [0, 2] {
        let bound = q.array(index)?;
        if !q.same_type(bound.element_type, value.element_type)
            || !(bound.rank() == 0 || bound.dims_agree(value))
        {
            return Err(ShapeError::operand(format!(
                "the bounds of `clamp` must be scalars or have the value's shape {value}, not {bound}"
            )));
        }
    }
    Ok(without_layout(value).into())
}

/// Like [`unary`], with an accuracy.
pub(super) fn approximate(q: &ShapeQuery<'_>, _attrs: &AccuracyAttrs) -> Result<Shape, ShapeError> {
    unary(q)
}
