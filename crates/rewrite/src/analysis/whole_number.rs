//! Whole numbers as elements of an array.

use half::{bf16, f16};
use tilewright_ir::{Data, ElementType};

/// A whole number of at most 31 bits as an element of a type; integers wrap around, and `Pred` is
/// `true` for any number. `None` for longer numbers, for floats that cannot represent the number,
/// for complex types (an infinite number times a real one differs from the sum of its copies), and
/// for types without arithmetic here.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "integers wrap around, floats are compared"
)]
pub fn whole_number(element_type: ElementType, number: i64) -> Option<Data> {
    let exact = f64::from(i32::try_from(number).ok()?);
    Some(match element_type {
        ElementType::Pred => Data::Pred(vec![true]),
        ElementType::S8 => Data::S8(vec![number as i8]),
        ElementType::S16 => Data::S16(vec![number as i16]),
        ElementType::S32 => Data::S32(vec![number as i32]),
        ElementType::S64 => Data::S64(vec![number]),
        ElementType::U8 => Data::U8(vec![number as u8]),
        ElementType::U16 => Data::U16(vec![number as u16]),
        ElementType::U32 => Data::U32(vec![number as u32]),
        ElementType::U64 => Data::U64(vec![number as u64]),
        ElementType::F16 => Data::F16(vec![whole(f16::from_f64(exact), f16::to_f64, exact)?]),
        ElementType::BF16 => Data::BF16(vec![whole(bf16::from_f64(exact), bf16::to_f64, exact)?]),
        ElementType::F32 => Data::F32(vec![whole(exact as f32, f64::from, exact)?]),
        ElementType::F64 => Data::F64(vec![exact]),
        _ => return None,
    })
}

/// Returns the rounded number, if rounding changed nothing.
fn whole<T: Copy>(rounded: T, to_f64: impl Fn(T) -> f64, exact: f64) -> Option<T> {
    (to_f64(rounded) == exact).then_some(rounded)
}
