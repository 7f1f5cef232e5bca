//! Arrays cut into parts that are written at the same time.

use tilewright_ir::Data;

use crate::error::{Fault, Outcome};

/// Declares the mutable part of an array, for each storage.
macro_rules! parts {
    ($($name:ident $type:ty;)*) => {
        /// Some of an array's lanes, to be written.
        pub(crate) enum Part<'a> {
            $($name(&'a mut [$type]),)*
        }

        impl<'a> Part<'a> {
            /// Splits an array into parts with this many lanes.
            pub(crate) fn split(data: &'a mut Data, lanes: usize) -> Vec<Self> {
                match data {
                    $(Data::$name(values) => values.chunks_mut(lanes).map(Self::$name).collect(),)*
                }
            }

            /// Puts lanes from a place on into a register.
            pub(super) fn read(&self, at: usize, count: usize, into: &mut Data) -> Outcome<()> {
                let wrong = Fault::Internal("a region reads what is not there");
                match (self, into) {
                    $((Self::$name(from), Data::$name(into)) => {
                        into.clear();
                        into.extend_from_slice(from.get(at..at + count).ok_or(wrong)?);
                    })*
                    _ => return Err(wrong),
                }
                Ok(())
            }

            /// Writes lanes from a place on.
            pub(crate) fn write(&mut self, at: usize, count: usize, from: &Data) -> Outcome<()> {
                let wrong = Fault::Internal("a region writes what it should not");
                match (self, from) {
                    $((Self::$name(out), Data::$name(values)) => {
                        match (out.get_mut(at..at + count), values.get(..count)) {
                            (Some(out), Some(values)) => out.copy_from_slice(values),
                            _ => return Err(wrong),
                        }
                    })*
                    _ => return Err(wrong),
                }
                Ok(())
            }
        }
    };
}

parts! {
    Pred bool;
    S8 i8;
    S16 i16;
    S32 i32;
    S64 i64;
    U8 u8;
    U16 u16;
    U32 u32;
    U64 u64;
    F16 half::f16;
    BF16 half::bf16;
    F32 f32;
    F64 f64;
    C64 num_complex::Complex<f32>;
    C128 num_complex::Complex<f64>;
}
