//! Conversions in their simplest form.
//!
//! - `convert(x) = x` where the type stays;
//! - `convert(convert(x: A): B): C = convert(x): C` where B has every value of
//!   A, and C takes them from both types in the same way: it has them all, or A
//!   and B are both integers, or neither is. (An integer that is too large for C
//!   wraps around; one that goes by way of a float is clamped.)
//!
//! A conversion is not moved through broadcasts, reshapes or transposes: it is
//! computed where it is read, so that nothing is gained by its place.

use tilewright_ir::element::NumberClass;
use tilewright_ir::{EditError, ElementType, InstId, Module, Op, Patch, Value};

use super::simplify;
use crate::pass::{Context, Pass};

/// See the module.
pub struct ConvertCanonical;

impl Pass for ConvertCanonical {
    fn name(&self) -> &'static str {
        "convert"
    }

    fn summary(&self) -> &'static str {
        "merge conversions and drop those that change nothing"
    }

    fn run(&self, module: &mut Module, _cx: &mut Context<'_>) -> Result<usize, EditError> {
        simplify(module, simpler)
    }
}

fn simpler(module: &Module, id: InstId) -> Option<Patch> {
    let mut source = operand_of_convert(module, id)?;
    let to = module.array_shape(id)?;
    let (from, to_type) = (module.array_shape(source)?.element_type, to.element_type);
    if from != to_type {
        let inner = operand_of_convert(module, source)?;
        if !merges(module.array_shape(inner)?.element_type, from, to_type) {
            return None;
        }
        source = inner;
    }
    let origin = module.array_shape(source)?;
    if !origin.same_dims(to) || origin.layout_or_default() != to.layout_or_default() {
        return None;
    }
    let mut patch = Patch::new();
    let simpler = if origin.element_type == to_type {
        Value::Old(source)
    } else {
        patch.add(id, Op::Convert, module.shape(id).clone(), [Value::Old(source)])
    };
    patch.replace(id, simpler);
    Some(patch)
}

/// What is converted, by a conversion with nothing attached.
fn operand_of_convert(module: &Module, id: InstId) -> Option<InstId> {
    match (module.op(id), module.operands(id)) {
        (Op::Convert, [operand]) if module.extras(id).is_none() => Some(*operand),
        _ => None,
    }
}

/// Whether a value of type `a` becomes the same in type `c` directly and by way
/// of type `b`.
fn merges(a: ElementType, b: ElementType, c: ElementType) -> bool {
    holds(b, a) && (a.is_integer() == b.is_integer() && a != ElementType::Pred || holds(c, a))
}

/// Whether every value of `narrow`, zeros of both signs, infinities and NaN
/// included, is one of `wide`. Floats of 8 bits and fewer are not taken for
/// wide ones: hardly two of them have the same special values.
fn holds(wide: ElementType, narrow: ElementType) -> bool {
    if wide == narrow {
        return true;
    }
    if let Some(part) = wide.complex_part() {
        return holds(part, narrow.complex_part().unwrap_or(narrow));
    }
    let digits = significant_bits(narrow);
    match (narrow.class(), wide.class()) {
        (NumberClass::Float, NumberClass::Float) => holds_float(wide, narrow),
        (NumberClass::Float | NumberClass::Complex, _) => false,
        (NumberClass::Signed, NumberClass::Unsigned) => false,
        (_, NumberClass::Signed | NumberClass::Unsigned) => digits <= significant_bits(wide),
        (_, NumberClass::Float) => match wide {
            ElementType::F16 => digits <= 11,
            ElementType::BF16 => digits <= 8,
            ElementType::F32 => digits <= 24,
            ElementType::F64 => digits <= 53,
            _ => false,
        },
        (_, NumberClass::Bool | NumberClass::Complex) => false,
    }
}

/// The bits of an integer's largest value; a truth value is 0 or 1.
fn significant_bits(integer: ElementType) -> u32 {
    match integer.class() {
        NumberClass::Signed => integer.bits() - 1,
        _ => integer.bits(),
    }
}

/// As [`holds`], for two floats that differ.
fn holds_float(wide: ElementType, narrow: ElementType) -> bool {
    match wide {
        ElementType::F64 => true,
        ElementType::F32 => narrow != ElementType::F64,
        ElementType::BF16 => narrow.bits() <= 8,
        // Powers of two from 2^-127 to 2^127 are beyond it.
        ElementType::F16 => narrow.bits() <= 8 && narrow != ElementType::F8E8M0FNU,
        _ => false,
    }
}
