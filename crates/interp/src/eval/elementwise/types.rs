//! Lists the functions of the element types.

use half::{bf16, f16};
use tilewright_ir::ElementType;

use super::function::{Binary, Unary};
use super::kernel::Kernel;
use super::{complex, float, int};

/// Types that are computed in wider ones, see [`super::narrow`]: narrower than
/// a byte, or floats of 8 bits and less.
macro_rules! narrow {
    () => {
        ElementType::S1
            | ElementType::S2
            | ElementType::S4
            | ElementType::U1
            | ElementType::U2
            | ElementType::U4
            | ElementType::F4E2M1FN
            | ElementType::F6E2M3FN
            | ElementType::F6E3M2FN
            | ElementType::F8E3M4
            | ElementType::F8E4M3
            | ElementType::F8E4M3FN
            | ElementType::F8E4M3B11FNUZ
            | ElementType::F8E4M3FNUZ
            | ElementType::F8E5M2
            | ElementType::F8E5M2FNUZ
            | ElementType::F8E8M0FNU
    };
}
pub(super) use narrow;

pub(super) fn unary(f: Unary, element_type: ElementType) -> Option<Kernel> {
    match element_type {
        ElementType::Pred => int::pred_unary(f),
        ElementType::S8 => int::unary::<i8>(f),
        ElementType::S16 => int::unary::<i16>(f),
        ElementType::S32 => int::unary::<i32>(f),
        ElementType::S64 => int::unary::<i64>(f),
        ElementType::U8 => int::unary::<u8>(f),
        ElementType::U16 => int::unary::<u16>(f),
        ElementType::U32 => int::unary::<u32>(f),
        ElementType::U64 => int::unary::<u64>(f),
        ElementType::F16 => float::unary::<f16>(f),
        ElementType::BF16 => float::unary::<bf16>(f),
        ElementType::F32 => float::unary::<f32>(f),
        ElementType::F64 => float::unary::<f64>(f),
        ElementType::C64 => complex::unary::<f32>(f),
        ElementType::C128 => complex::unary::<f64>(f),
        narrow!() => None,
    }
}

pub(super) fn binary(f: Binary, element_type: ElementType) -> Option<Kernel> {
    match element_type {
        ElementType::Pred => int::pred_binary(f),
        ElementType::S8 => int::binary::<i8>(f),
        ElementType::S16 => int::binary::<i16>(f),
        ElementType::S32 => int::binary::<i32>(f),
        ElementType::S64 => int::binary::<i64>(f),
        ElementType::U8 => int::binary::<u8>(f),
        ElementType::U16 => int::binary::<u16>(f),
        ElementType::U32 => int::binary::<u32>(f),
        ElementType::U64 => int::binary::<u64>(f),
        ElementType::F16 => float::binary::<f16>(f),
        ElementType::BF16 => float::binary::<bf16>(f),
        ElementType::F32 => float::binary::<f32>(f),
        ElementType::F64 => float::binary::<f64>(f),
        ElementType::C64 => complex::binary::<f32>(f),
        ElementType::C128 => complex::binary::<f64>(f),
        narrow!() => None,
    }
}

pub(super) fn is_finite(element_type: ElementType) -> Option<Kernel> {
    match element_type {
        ElementType::F16 => Some(float::is_finite::<f16>()),
        ElementType::BF16 => Some(float::is_finite::<bf16>()),
        ElementType::F32 => Some(float::is_finite::<f32>()),
        ElementType::F64 => Some(float::is_finite::<f64>()),
        ElementType::Pred
        | ElementType::S8
        | ElementType::S16
        | ElementType::S32
        | ElementType::S64
        | ElementType::U8
        | ElementType::U16
        | ElementType::U32
        | ElementType::U64
        | ElementType::C64
        | ElementType::C128
        | narrow!() => None,
    }
}
