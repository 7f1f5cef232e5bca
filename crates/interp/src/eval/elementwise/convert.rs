//! Conversions between element types.
//!
//! Integers wrap, floats to integers saturate with NaN as 0, conversions to floats round to
//! nearest with ties to even in one rounding, conversions to `pred` test for "not zero", and
//! complex to real drops the imaginary part. [`Format::encode`] defines the result for numbers
//! that a float of 8 bits and fewer does not have.

use std::ops::Range;

use half::{bf16, f16};
use num_complex::Complex;
use tilewright_ir::element::NumberClass;
use tilewright_ir::small_float::Format;
use tilewright_ir::{Data, ElementType, Native};

use super::float::{Float, shortened, widened};
use super::kernel::{BLOCK, Kernel, grow, map1};
use super::narrow::{NarrowInt, decoded, narrow_int, small_format};
use crate::error::{Fault, Outcome, WRONG_STORAGE};
use crate::value::with_data;

/// Any element's value, exactly.
#[derive(Clone, Copy)]
pub(crate) enum Number {
    Signed(i64),
    Unsigned(u64),
    Float(f64),
    Complex(f64, f64),
}

/// A type that converts to and from [`Number`]. After inlining, the number's kind is known and
/// the enum disappears.
pub(crate) trait Convert: Native {
    fn number(self) -> Number;
    fn of(number: Number) -> Self;
}

macro_rules! integer {
    ($kind:ident $wide:ident: $($type:ident)*) => {$(
        impl Convert for $type {
            #[inline(always)]
            fn number(self) -> Number {
                Number::$kind($wide::from(self))
            }
            #[inline(always)]
            fn of(number: Number) -> Self {
                match number {
                    Number::Signed(value) => value as Self,
                    Number::Unsigned(value) => value as Self,
                    Number::Float(value) | Number::Complex(value, _) => value as Self,
                }
            }
        }
    )*};
}

integer!(Signed i64: i8 i16 i32 i64);
integer!(Unsigned u64: u8 u16 u32 u64);

impl Convert for bool {
    #[inline(always)]
    fn number(self) -> Number {
        Number::Unsigned(u64::from(self))
    }
    #[inline(always)]
    fn of(number: Number) -> Self {
        match number {
            Number::Signed(value) => value != 0,
            Number::Unsigned(value) => value != 0,
            Number::Float(value) => value != 0.0,
            Number::Complex(re, im) => re != 0.0 || im != 0.0,
        }
    }
}

macro_rules! float {
    ($($type:ident)*) => {$(
        impl Convert for $type {
            #[inline(always)]
            fn number(self) -> Number {
                Number::Float(f64::from(self))
            }
            #[inline(always)]
            fn of(number: Number) -> Self {
                match number {
                    Number::Signed(value) => value as Self,
                    Number::Unsigned(value) => value as Self,
                    Number::Float(value) | Number::Complex(value, _) => value as Self,
                }
            }
        }

        impl Convert for Complex<$type> {
            #[inline(always)]
            fn number(self) -> Number {
                Number::Complex(f64::from(self.re), f64::from(self.im))
            }
            #[inline(always)]
            fn of(number: Number) -> Self {
                match number {
                    Number::Complex(re, im) => Self::new(re as $type, im as $type),
                    Number::Signed(_) | Number::Unsigned(_) | Number::Float(_) => {
                        Self::new(<$type as Convert>::of(number), 0.0)
                    }
                }
            }
        }
    )*};
}

float!(f32 f64);

macro_rules! half {
    ($($type:ident)*) => {$(
        impl Convert for $type {
            #[inline(always)]
            fn number(self) -> Number {
                Number::Float(f64::from(self.to_f32()))
            }
            #[inline(always)]
            fn of(number: Number) -> Self {
                Self::from_f32(match number {
                    Number::Signed(value) => {
                        let size = magnitude_to_odd(value.unsigned_abs());
                        if value < 0 { -size } else { size }
                    }
                    Number::Unsigned(value) => magnitude_to_odd(value),
                    Number::Float(value) | Number::Complex(value, _) => to_odd(value),
                })
            }
        }
    )*};
}

half!(f16 bf16);

/// Returns the `f32` next to a number towards zero, made odd if it is not exact: it rounds to
/// 16 bits as the number itself does.
fn to_odd(value: f64) -> f32 {
    let nearest = value as f32;
    let back = f64::from(nearest);
    if back == value || value.is_nan() {
        return nearest;
    }
    let toward_zero =
        if back.abs() > value.abs() { nearest.to_bits() - 1 } else { nearest.to_bits() };
    f32::from_bits(toward_zero | 1)
}

/// Like [`to_odd`], for an integer.
fn magnitude_to_odd(value: u64) -> f32 {
    let excess = (64 - value.leading_zeros()).saturating_sub(24);
    let kept = value >> excess;
    let inexact = kept << excess != value;
    let scale = 2f32.powi(excess.cast_signed());
    (kept | u64::from(inexact)) as f32 * scale
}

/// Returns a float of a type that is stored, in one rounding.
pub(crate) fn round_to<T: Float>(value: f64) -> T {
    T::of(Number::Float(value))
}

/// Returns the kernel that converts between two types.
///
/// All but the commonest pairs go by way of the widest type of the kind that
/// is converted from, a block at a time: a loop for every pair would be most of
/// the interpreter's code.
pub(super) fn kernel(from: ElementType, to: ElementType) -> Option<Kernel> {
    match (from, to) {
        (ElementType::BF16, ElementType::F32) => return Some(map1(widened)),
        (ElementType::F32, ElementType::BF16) => return Some(map1(shortened)),
        (ElementType::F16, ElementType::F32) => return Some(map1(f16::to_f32)),
        (ElementType::F32, ElementType::F16) => return Some(map1(f16::from_f32)),
        (ElementType::F32, ElementType::F64) => return Some(map1(|x: f32| f64::from(x))),
        (ElementType::F64, ElementType::F32) => return Some(map1(|x: f64| x as f32)),
        (ElementType::Pred, ElementType::F32) => {
            return Some(map1(|x: bool| f32::from(u8::from(x))));
        }
        (ElementType::S32, ElementType::F32) => return Some(map1(|x: i32| x as f32)),
        _ => {}
    }
    Some(match from.class() {
        NumberClass::Signed => through(from, to, |x: i64| Number::Signed(x)),
        NumberClass::Unsigned | NumberClass::Bool => {
            through(from, to, |x: u64| Number::Unsigned(x))
        }
        NumberClass::Float => through(from, to, |x: f64| Number::Float(x)),
        NumberClass::Complex => through(from, to, |x: Complex<f64>| Number::Complex(x.re, x.im)),
    })
}

/// Returns a conversion by way of `W`, which `from` converts to exactly.
fn through<W: Convert>(
    from: ElementType,
    to: ElementType,
    number: impl Fn(W) -> Number + Copy + Send + Sync + 'static,
) -> Kernel {
    let widen = match small_format(from) {
        Some(format) => decode::<W>(format),
        None => with_data!(&Data::zeros(from, 0), values => widen::<_, W>(values)),
    };
    if let Some(format) = small_format(to) {
        return narrow_to(widen, move |value| format.encode(to_f64(number(value))) as u8);
    }
    if let Some(int) = narrow_int(to) {
        let number = move |value| limited(number(value), int);
        return match int.signed {
            true => narrow_to(widen, move |value| i8::of(number(value))),
            false => narrow_to(widen, move |value| u8::of(number(value))),
        };
    }
    fn storage<R: Convert, W: Convert>(
        _: &[R],
        widen: Widen<W>,
        number: impl Fn(W) -> Number + Send + Sync + 'static,
    ) -> Kernel {
        narrow_to(widen, move |value| R::of(number(value)))
    }
    with_data!(&Data::zeros(to, 0), values => storage(values, widen, number))
}

/// Returns the `f64` that rounds to fewer bits as the number itself would: the nearest, or (of
/// an integer of more than 53 bits) one made odd, as in [`to_odd`].
fn to_f64(number: Number) -> f64 {
    let magnitude = |value: u64| {
        let excess = (64 - value.leading_zeros()).saturating_sub(53);
        let kept = value >> excess;
        let inexact = u64::from(kept << excess != value);
        ((kept | inexact) << excess) as f64
    };
    match number {
        Number::Signed(value) if value < 0 => -magnitude(value.unsigned_abs()),
        Number::Signed(value) => magnitude(value.unsigned_abs()),
        Number::Unsigned(value) => magnitude(value),
        Number::Float(value) | Number::Complex(value, _) => value,
    }
}

/// Returns a number made to fit an integer type narrower than a byte: integers wrap, floats
/// saturate.
fn limited(number: Number, int: NarrowInt) -> Number {
    match number {
        Number::Signed(value) => Number::Signed(int.wrap(value)),
        Number::Unsigned(value) => Number::Signed(int.wrap(value.cast_signed())),
        Number::Float(value) | Number::Complex(value, _) => Number::Float(int.saturate(value)),
    }
}

/// Appends elements of a range in another type.
type Widen<W> = Box<dyn Fn(&Data, Range<usize>, &mut Vec<W>) -> Outcome<()> + Send + Sync>;

fn widen<T: Convert, W: Convert>(_: &[T]) -> Widen<W> {
    Box::new(|data, range, wide| {
        let values: &[T] = data.as_slice().ok_or(WRONG_STORAGE)?;
        let values = values.get(range).ok_or(Fault::Internal("an operand has too few elements"))?;
        wide.clear();
        for (wide, value) in grow(wide, values.len()).iter_mut().zip(values) {
            *wide = W::of(value.number());
        }
        Ok(())
    })
}

/// Like [`widen`], for a float of 8 bits and fewer.
fn decode<W: Convert>(format: Format) -> Widen<W> {
    let table = decoded(format);
    Box::new(move |data, range, wide| {
        let bits: &[u8] = data.as_slice().ok_or(WRONG_STORAGE)?;
        let bits = bits.get(range).ok_or(Fault::Internal("an operand has too few elements"))?;
        wide.clear();
        wide.extend(bits.iter().map(|&bits| W::of(Number::Float(table[usize::from(bits)]))));
        Ok(())
    })
}

fn narrow_to<R: Native, W: Convert>(
    widen: Widen<W>,
    narrow: impl Fn(W) -> R + Send + Sync + 'static,
) -> Kernel {
    Box::new(move |operands, lanes, out| {
        let operand = operands.first().ok_or(WRONG_STORAGE)?;
        let out = R::view_mut(out).ok_or(WRONG_STORAGE)?;
        out.clear();
        out.reserve_exact(lanes);
        let mut wide = Vec::with_capacity(BLOCK.min(lanes));
        for first in (0..lanes).step_by(BLOCK) {
            widen(operand, first..lanes.min(first + BLOCK), &mut wide)?;
            for (out, &value) in grow(out, wide.len()).iter_mut().zip(&wide) {
                *out = narrow(value);
            }
        }
        Ok(())
    })
}
