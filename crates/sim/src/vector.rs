//! Vectors in registers: masks, folds and moves.

use smallvec::SmallVec;
use tilewright_ir::{Data, ElementType};
use tilewright_lower::kernel::Digit;

/// A mask with numbers for its bounds.
pub(crate) type Bounds = SmallVec<[(Digit, i64, i64); 1]>;

/// Checks whether a position is under a mask.
pub(crate) fn is_under(bounds: &Bounds, position: usize) -> bool {
    bounds.iter().all(|&(digit, from, to)| {
        let value = i64::try_from(digit.at(position as u64)).unwrap_or(i64::MAX);
        (from..to).contains(&value)
    })
}

/// Returns the positions of a vector with one digit replaced.
pub(crate) fn with_digit(
    len: usize,
    along: Digit,
    replace: impl Fn(u64) -> u64,
) -> impl Iterator<Item = usize> {
    (0..len).map(move |position| {
        let digit = along.at(position as u64);
        let base = position as u64 - digit * along.stride;
        let place = base.saturating_add(replace(digit).saturating_mul(along.stride));
        usize::try_from(place).unwrap_or(usize::MAX)
    })
}

/// Numbers, wrapped to an integer type; `None` for other types.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "integers wrap around, as those of an iota do"
)]
pub(crate) fn integers(
    element_type: ElementType,
    values: impl Iterator<Item = i64>,
) -> Option<Data> {
    Some(match element_type {
        ElementType::S8 => Data::S8(values.map(|v| v as i8).collect()),
        ElementType::S16 => Data::S16(values.map(|v| v as i16).collect()),
        ElementType::S32 => Data::S32(values.map(|v| v as i32).collect()),
        ElementType::S64 => Data::S64(values.collect()),
        ElementType::U8 => Data::U8(values.map(|v| v as u8).collect()),
        ElementType::U16 => Data::U16(values.map(|v| v as u16).collect()),
        ElementType::U32 => Data::U32(values.map(|v| v as u32).collect()),
        ElementType::U64 => Data::U64(values.map(|v| v as u64).collect()),
        _ => return None,
    })
}

/// Returns a scalar at every position.
pub(crate) fn splat(data: &Data, at: usize, len: usize) -> Data {
    data.gather(std::iter::repeat_n(at, len))
}
