//! Decides which element types can represent the values of others.

use tilewright_ir::ElementType;
use tilewright_ir::element::NumberClass;

/// Checks whether `wide` represents every value of `narrow`, including zeros of both signs,
/// infinities and NaN. Floats of 8 bits and fewer never count as wide, because almost any two
/// of these types differ in their special values.
pub fn holds(wide: ElementType, narrow: ElementType) -> bool {
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

/// Returns the number of value bits of an integer, without the sign.
fn significant_bits(integer: ElementType) -> u32 {
    match integer.class() {
        NumberClass::Signed => integer.bits() - 1,
        _ => integer.bits(),
    }
}

/// Checks the same as [`holds`] for two different float types.
fn holds_float(wide: ElementType, narrow: ElementType) -> bool {
    match wide {
        ElementType::F64 => true,
        ElementType::F32 => narrow != ElementType::F64,
        ElementType::BF16 => narrow.bits() <= 8,
        // F16 cannot represent the powers of two from 2^-127 to 2^127.
        ElementType::F16 => narrow.bits() <= 8 && narrow != ElementType::F8E8M0FNU,
        _ => false,
    }
}
