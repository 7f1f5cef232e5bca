//! Types that are computed in wider ones: floats of 8 bits and fewer in `f64`,
//! where each is exact, rounded once; integers narrower than a byte in the byte
//! that stores them, wrapped.
//!
//! Everything goes through [`around`], which converts operands and results a block at a time.
//! Functions that depend on an integer's width (shifts to the right, counts of bits, upper
//! halves) have kernels of their own.

use std::ops::Range;

use smallvec::SmallVec;
use tilewright_ir::element::NumberClass;
use tilewright_ir::small_float::{Format, Value};
use tilewright_ir::{Data, ElementType};

use super::convert;
use super::function::{Binary, Unary};
use super::kernel::{BLOCK, Kernel, map1, map2};
use crate::error::{Fault, Outcome};
use crate::lanes::append;
use crate::value::map_data;

/// Returns the type in which elements of a type are computed.
pub(crate) fn wide(element_type: ElementType) -> ElementType {
    if small_format(element_type).is_some() {
        return ElementType::F64;
    }
    match narrow_int(element_type) {
        Some(int) if int.signed => ElementType::S8,
        Some(_) => ElementType::U8,
        None => element_type,
    }
}

/// Returns the format of a float of 8 bits and fewer, whose bits are stored.
pub(crate) fn small_format(element_type: ElementType) -> Option<Format> {
    Format::of(element_type).filter(|_| element_type.bits() <= 8)
}

/// Returns the numbers that all bytes represent; NaN has no payload here.
pub(super) fn decoded(format: Format) -> [f64; 256] {
    let mut table = [0.0; 256];
    for (value, bits) in table.iter_mut().zip(0..=u8::MAX) {
        *value = match format.decode(u16::from(bits)) {
            Value::Real(value) => value,
            Value::Nan { negative, .. } => f64::NAN.copysign(if negative { -1.0 } else { 1.0 }),
        };
    }
    table
}

/// An integer type narrower than a byte.
#[derive(Clone, Copy)]
pub(super) struct NarrowInt {
    pub(super) bits: u32,
    pub(super) signed: bool,
}

/// Returns the integer type, if it is narrower than a byte.
pub(super) fn narrow_int(element_type: ElementType) -> Option<NarrowInt> {
    let bits = element_type.bits();
    match element_type.class() {
        NumberClass::Signed if bits < 8 => Some(NarrowInt { bits, signed: true }),
        NumberClass::Unsigned if bits < 8 => Some(NarrowInt { bits, signed: false }),
        _ => None,
    }
}

impl NarrowInt {
    const fn mask(self) -> u8 {
        (1 << self.bits) - 1
    }

    /// Returns the bits of an element.
    const fn raw(self, stored: u8) -> u8 {
        stored & self.mask()
    }

    /// Returns the number that the lowest bits are.
    pub(super) const fn wrap(self, value: i64) -> i64 {
        let unused = i64::BITS - self.bits;
        let raised = value << unused;
        if self.signed {
            raised >> unused
        } else {
            (raised.cast_unsigned() >> unused).cast_signed()
        }
    }

    /// Returns the number next to a float.
    pub(super) const fn saturate(self, value: f64) -> f64 {
        let (least, greatest) = if self.signed {
            let half = 1i8 << (self.bits - 1);
            (-half, half - 1)
        } else {
            (0, self.mask().cast_signed())
        };
        value.clamp(least as f64, greatest as f64)
    }

    const fn signed(self, raw: u8) -> i8 {
        self.wrap(raw as i64) as i8
    }

    /// Returns the count of a shift, if it is less than the width; a negative one, read without
    /// sign, is more.
    fn count(self, stored: u8) -> Option<u32> {
        Some(u32::from(self.raw(stored))).filter(|&count| count < self.bits)
    }

    fn leading_zeros(self, stored: u8) -> u8 {
        (self.raw(stored).leading_zeros() - (u8::BITS - self.bits)) as u8
    }

    fn shift_right_logical(self, stored: u8, count: u8) -> u8 {
        self.count(count).map_or(0, |count| self.raw(stored) >> count)
    }

    fn shift_right_arithmetic(self, stored: u8, count: u8) -> u8 {
        let count = self.count(count).unwrap_or(self.bits - 1);
        let unused = u8::BITS - self.bits;
        self.raw(((stored << unused).cast_signed() >> unused >> count).cast_unsigned())
    }

    /// Returns the upper half of the double-width product of two stored numbers.
    fn mulhi(self, a: u8, b: u8) -> u8 {
        let number = |stored: u8| match self.signed {
            true => i16::from(stored.cast_signed()),
            false => i16::from(stored),
        };
        self.raw(((number(a) * number(b)) >> self.bits) as u8)
    }

    fn map1(self, f: fn(Self, u8) -> u8) -> Kernel {
        if self.signed {
            return map1(move |a: i8| self.signed(f(self, a.cast_unsigned())));
        }
        map1(move |a: u8| f(self, a))
    }

    fn map2(self, f: fn(Self, u8, u8) -> u8) -> Kernel {
        if self.signed {
            return map2(move |a: i8, b: i8| {
                self.signed(f(self, a.cast_unsigned(), b.cast_unsigned()))
            });
        }
        map2(move |a: u8, b: u8| f(self, a, b))
    }
}

/// Returns the kernel of a function that depends on how wide an integer is.
pub(super) fn unary(f: Unary, element_type: ElementType) -> Option<Kernel> {
    let int = narrow_int(element_type)?;
    match f {
        Unary::Clz => Some(int.map1(NarrowInt::leading_zeros)),
        Unary::PopulationCount => Some(int.map1(|int, a| int.raw(a).count_ones() as u8)),
        _ => None,
    }
}

/// Like [`unary`], for two operands.
pub(super) fn binary(f: Binary, element_type: ElementType) -> Option<Kernel> {
    let int = narrow_int(element_type)?;
    match f {
        Binary::ShiftRightLogical => Some(int.map2(NarrowInt::shift_right_logical)),
        Binary::ShiftRightArithmetic => Some(int.map2(NarrowInt::shift_right_arithmetic)),
        Binary::Mulhi => Some(int.map2(NarrowInt::mulhi)),
        _ => None,
    }
}

/// A type and the one in which it is computed.
#[derive(Clone, Copy)]
pub(super) struct By {
    pub(super) element_type: ElementType,
    pub(super) wide: ElementType,
}

impl By {
    /// Returns the wider type in which a type is usually computed.
    pub(super) fn usual(element_type: ElementType) -> Self {
        Self { element_type, wide: wide(element_type) }
    }

    /// Checks whether a type is computed in another one.
    pub(super) fn differs(self) -> bool {
        self.element_type != self.wide
    }
}

/// Returns a kernel of operands and results that `inner` computes in other types.
pub(super) fn around(inner: Kernel, operands: &[By], result: By) -> Option<Kernel> {
    let widen = operands.iter().map(|by| Conversion::new(by.element_type, by.wide));
    let widen: SmallVec<[Conversion; 3]> = widen.collect::<Option<_>>()?;
    let narrow = Conversion::new(result.wide, result.element_type)?;
    Some(Box::new(move |operands, lanes, out| {
        *out = Data::zeros(result.element_type, 0);
        let mut computed = Data::zeros(result.wide, 0);
        for first in (0..lanes).step_by(BLOCK) {
            let range = first..lanes.min(first + BLOCK);
            let wide = operands.iter().zip(&widen);
            let wide = wide.map(|(data, widen)| widen.convert(part(data, range.clone())?));
            let wide: SmallVec<[Data; 3]> = wide.collect::<Outcome<_>>()?;
            inner(&wide.iter().collect::<SmallVec<[&Data; 3]>>(), range.len(), &mut computed)?;
            let computed = std::mem::replace(&mut computed, Data::zeros(result.wide, 0));
            append(out, &narrow.convert(computed)?, 0, range.len())?;
        }
        Ok(())
    }))
}

/// Elements of a range.
fn part(data: &Data, range: Range<usize>) -> Outcome<Data> {
    Ok(map_data!(data, values => {
        values.get(range).ok_or(Fault::Internal("an operand has too few elements"))?.to_vec()
    }))
}

/// A conversion to a type, if there is something to convert.
struct Conversion {
    to: ElementType,
    kernel: Option<Kernel>,
}

impl Conversion {
    /// `None` if the one type cannot become the other.
    fn new(from: ElementType, to: ElementType) -> Option<Self> {
        if from == to {
            return Some(Self { to, kernel: None });
        }
        convert::kernel(from, to).map(|kernel| Self { to, kernel: Some(kernel) })
    }

    fn convert(&self, data: Data) -> Outcome<Data> {
        let Some(kernel) = &self.kernel else { return Ok(data) };
        let mut converted = Data::zeros(self.to, 0);
        kernel(&[&data], data.len(), &mut converted)?;
        Ok(converted)
    }
}
