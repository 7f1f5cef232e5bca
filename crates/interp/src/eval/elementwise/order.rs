//! Comparisons and clamping.

use std::sync::Arc;

use half::{bf16, f16};
use num_complex::Complex;
use tilewright_ir::ops::elementwise::{CompareOrder, Direction};
use tilewright_ir::{Data, ElementType, Native};

use super::float::{Float, Real};
use super::kernel::{Kernel, map2, map3};
use super::narrow::{decoded, narrow_int, small_format};
use super::types::narrow;
use crate::value::Array;

/// Returns the kernel of a comparison.
pub(super) fn compare(
    element_type: ElementType,
    direction: Direction,
    order: Option<CompareOrder>,
) -> Option<Kernel> {
    let total = order == Some(CompareOrder::TotalOrder);
    if let Some(format) = small_format(element_type) {
        if total {
            return Some(by_key(direction, move |a: u8| format.total_key(u16::from(a))));
        }
        let values = Arc::new(decoded(format));
        return Some(by_value(direction, values));
    }
    if let Some(int) = narrow_int(element_type) {
        // They are stored as numbers.
        return Some(if int.signed { by::<i8>(direction) } else { by::<u8>(direction) });
    }
    Some(match element_type {
        ElementType::Pred => by::<bool>(direction),
        ElementType::S8 => by::<i8>(direction),
        ElementType::S16 => by::<i16>(direction),
        ElementType::S32 => by::<i32>(direction),
        ElementType::S64 => by::<i64>(direction),
        ElementType::U8 => by::<u8>(direction),
        ElementType::U16 => by::<u16>(direction),
        ElementType::U32 => by::<u32>(direction),
        ElementType::U64 => by::<u64>(direction),
        ElementType::F16 if total => by_key(direction, |a: f16| total_key16(a.to_bits())),
        ElementType::BF16 if total => by_key(direction, |a: bf16| total_key16(a.to_bits())),
        ElementType::F32 if total => by_key(direction, total_key32),
        ElementType::F64 if total => by_key(direction, total_key64),
        ElementType::F16 => by::<f16>(direction),
        ElementType::BF16 => by::<bf16>(direction),
        ElementType::F32 => by::<f32>(direction),
        ElementType::F64 => by::<f64>(direction),
        ElementType::C64 => return equality::<Complex<f32>>(direction),
        ElementType::C128 => return equality::<Complex<f64>>(direction),
        narrow!() => return None,
    })
}

/// Compares bits by the numbers that they represent.
fn by_value(direction: Direction, values: Arc<[f64; 256]>) -> Kernel {
    let test: fn(&f64, &f64) -> bool = match direction {
        Direction::Eq => f64::eq,
        Direction::Ne => f64::ne,
        Direction::Ge => f64::ge,
        Direction::Gt => f64::gt,
        Direction::Le => f64::le,
        Direction::Lt => f64::lt,
    };
    map2(move |a: u8, b: u8| test(&values[usize::from(a)], &values[usize::from(b)]))
}

/// Compares as Rust does: by IEEE 754 for floats.
fn by<T: Native + PartialOrd>(direction: Direction) -> Kernel {
    by_key(direction, |a: T| a)
}

fn by_key<T: Native, K: PartialOrd>(
    direction: Direction,
    key: impl Fn(T) -> K + Copy + Send + Sync + 'static,
) -> Kernel {
    match direction {
        Direction::Eq => map2(move |a: T, b: T| key(a) == key(b)),
        Direction::Ne => map2(move |a: T, b: T| key(a) != key(b)),
        Direction::Ge => map2(move |a: T, b: T| key(a) >= key(b)),
        Direction::Gt => map2(move |a: T, b: T| key(a) > key(b)),
        Direction::Le => map2(move |a: T, b: T| key(a) <= key(b)),
        Direction::Lt => map2(move |a: T, b: T| key(a) < key(b)),
    }
}

/// Complex numbers have no other relation.
fn equality<T: Native>(direction: Direction) -> Option<Kernel> {
    match direction {
        Direction::Eq => Some(map2(|a: T, b: T| a == b)),
        Direction::Ne => Some(map2(|a: T, b: T| a != b)),
        Direction::Ge | Direction::Gt | Direction::Le | Direction::Lt => None,
    }
}

/// Numbers ordered as the elements of an array are: `s64` or, for floats
/// unless in total order, `f64`.
pub(crate) fn keys(array: &Array, total: bool) -> Option<Data> {
    fn int<T: Copy + Into<i64>>(values: &[T]) -> Option<Data> {
        Some(Data::S64(values.iter().map(|&v| v.into()).collect()))
    }
    if let (Some(format), Data::U8(v)) = (small_format(array.element_type()), array.data()) {
        if total {
            let keys = v.iter().map(|&bits| format.total_key(u16::from(bits)).into());
            return Some(Data::S64(keys.collect()));
        }
        let values = decoded(format);
        return Some(Data::F64(v.iter().map(|&bits| values[usize::from(bits)]).collect()));
    }
    match array.data() {
        Data::Pred(v) => int(v),
        Data::S8(v) => int(v),
        Data::S16(v) => int(v),
        Data::S32(v) => int(v),
        Data::S64(v) => int(v),
        Data::U8(v) => int(v),
        Data::U16(v) => int(v),
        Data::U32(v) => int(v),
        Data::U64(v) => Some(Data::S64(v.iter().map(|&v| v.cast_signed() ^ i64::MIN).collect())),
        Data::F16(v) if total => {
            Some(Data::S64(v.iter().map(|v| total_key16(v.to_bits()).into()).collect()))
        }
        Data::BF16(v) if total => {
            Some(Data::S64(v.iter().map(|v| total_key16(v.to_bits()).into()).collect()))
        }
        Data::F32(v) if total => {
            Some(Data::S64(v.iter().map(|&v| total_key32(v).into()).collect()))
        }
        Data::F64(v) if total => Some(Data::S64(v.iter().map(|&v| total_key64(v)).collect())),
        Data::F16(v) => Some(Data::F64(v.iter().map(|v| v.to_f64()).collect())),
        Data::BF16(v) => Some(Data::F64(v.iter().map(|v| v.to_f64()).collect())),
        Data::F32(v) => Some(Data::F64(v.iter().map(|&v| v.into()).collect())),
        Data::F64(v) => Some(Data::F64(v.clone())),
        Data::C64(_) | Data::C128(_) => None,
    }
}

/// Integers in the total order of floats: negative ones in reverse.
fn total_key16(bits: u16) -> i16 {
    let bits = bits.cast_signed();
    bits ^ ((bits >> 15) & i16::MAX)
}

fn total_key32(value: f32) -> i32 {
    let bits = value.to_bits().cast_signed();
    bits ^ ((bits >> 31) & i32::MAX)
}

fn total_key64(value: f64) -> i64 {
    let bits = value.to_bits().cast_signed();
    bits ^ ((bits >> 63) & i64::MAX)
}

/// Computes `min(max(low, value), high)`; NaN if any of them is.
pub(super) fn clamp(element_type: ElementType) -> Option<Kernel> {
    Some(match element_type {
        ElementType::Pred => clamp_ordered::<bool>(),
        ElementType::S8 => clamp_ordered::<i8>(),
        ElementType::S16 => clamp_ordered::<i16>(),
        ElementType::S32 => clamp_ordered::<i32>(),
        ElementType::S64 => clamp_ordered::<i64>(),
        ElementType::U8 => clamp_ordered::<u8>(),
        ElementType::U16 => clamp_ordered::<u16>(),
        ElementType::U32 => clamp_ordered::<u32>(),
        ElementType::U64 => clamp_ordered::<u64>(),
        ElementType::F16 => clamp_float::<f16>(),
        ElementType::BF16 => clamp_float::<bf16>(),
        ElementType::F32 => clamp_float::<f32>(),
        ElementType::F64 => clamp_float::<f64>(),
        ElementType::C64 | ElementType::C128 | narrow!() => return None,
    })
}

fn clamp_ordered<T: Native + Ord>() -> Kernel {
    map3(|low: T, value: T, high: T| value.max(low).min(high))
}

fn clamp_float<T: Float>() -> Kernel {
    map3(|low: T, value: T, high: T| {
        T::narrow(low.wide().maximum(value.wide()).minimum(high.wide()))
    })
}
