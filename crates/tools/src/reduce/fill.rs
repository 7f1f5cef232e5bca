//! Scalars that stand for values nobody needs.

use half::{bf16, f16};
use num_complex::Complex;
use tilewright::ir::{ArrayLiteral, Data, ElementType};

/// Returns zero or one in an element type; `None` for the one of floats of 8 bits and fewer.
pub(super) fn scalar(element_type: ElementType, is_one: bool) -> Option<ArrayLiteral> {
    let mut data = Data::zeros(element_type, 1);
    if is_one {
        data = one(element_type, &data)?;
    }
    ArrayLiteral::new(element_type, [], data).ok()
}

fn one(element_type: ElementType, zero: &Data) -> Option<Data> {
    Some(match zero {
        Data::Pred(_) => Data::Pred(vec![true]),
        Data::S8(_) => Data::S8(vec![1]),
        Data::S16(_) => Data::S16(vec![1]),
        Data::S32(_) => Data::S32(vec![1]),
        Data::S64(_) => Data::S64(vec![1]),
        // Small floats are stored by their bits.
        Data::U8(_) if element_type.is_float() => return None,
        Data::U8(_) => Data::U8(vec![1]),
        Data::U16(_) => Data::U16(vec![1]),
        Data::U32(_) => Data::U32(vec![1]),
        Data::U64(_) => Data::U64(vec![1]),
        Data::F16(_) => Data::F16(vec![f16::ONE]),
        Data::BF16(_) => Data::BF16(vec![bf16::ONE]),
        Data::F32(_) => Data::F32(vec![1.0]),
        Data::F64(_) => Data::F64(vec![1.0]),
        Data::C64(_) => Data::C64(vec![Complex::new(1.0, 0.0)]),
        Data::C128(_) => Data::C128(vec![Complex::new(1.0, 0.0)]),
    })
}
