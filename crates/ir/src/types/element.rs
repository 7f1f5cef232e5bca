//! Element types of arrays.

use std::fmt;

macro_rules! element_types {
    ($($(#[$doc:meta])* $name:ident $text:literal $bits:literal $class:ident;)*) => {
        /// The type of an array's elements (XLA's `PrimitiveType` without tuple, token, opaque
        /// and buffer, which are shapes here).
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum ElementType {
            $($(#[$doc])* $name,)*
        }

        impl ElementType {
            /// Every element type, in XLA's naming order.
            pub const ALL: &'static [Self] = &[$(Self::$name),*];

            /// Returns the name in HLO text, for example `bf16`.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$name => $text,)*
                }
            }

            /// Bits of information in an element: 1 for `pred`, 4 for `s4`.
            pub const fn bits(self) -> u32 {
                match self {
                    $(Self::$name => $bits,)*
                }
            }

            /// Returns the kind of number.
            pub const fn class(self) -> NumberClass {
                match self {
                    $(Self::$name => NumberClass::$class,)*
                }
            }

            /// The type with this name in HLO text.
            pub fn from_name(name: &str) -> Option<Self> {
                match name {
                    $($text => Some(Self::$name),)*
                    _ => None,
                }
            }
        }
    };
}

/// The kind of number of an [`ElementType`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NumberClass {
    /// `pred`.
    Bool,
    /// Two's complement.
    Signed,
    /// Non-negative.
    Unsigned,
    /// Binary floating point, of any width.
    Float,
    /// A pair of floats.
    Complex,
}

element_types! {
    /// A truth value.
    Pred "pred" 1 Bool;
    /// 1-bit signed integer.
    S1 "s1" 1 Signed;
    /// 2-bit signed integer.
    S2 "s2" 2 Signed;
    /// 4-bit signed integer.
    S4 "s4" 4 Signed;
    /// 8-bit signed integer.
    S8 "s8" 8 Signed;
    /// 16-bit signed integer.
    S16 "s16" 16 Signed;
    /// 32-bit signed integer.
    S32 "s32" 32 Signed;
    /// 64-bit signed integer.
    S64 "s64" 64 Signed;
    /// 1-bit unsigned integer.
    U1 "u1" 1 Unsigned;
    /// 2-bit unsigned integer.
    U2 "u2" 2 Unsigned;
    /// 4-bit unsigned integer.
    U4 "u4" 4 Unsigned;
    /// 8-bit unsigned integer.
    U8 "u8" 8 Unsigned;
    /// 16-bit unsigned integer.
    U16 "u16" 16 Unsigned;
    /// 32-bit unsigned integer.
    U32 "u32" 32 Unsigned;
    /// 64-bit unsigned integer.
    U64 "u64" 64 Unsigned;
    /// 4-bit float, 2 exponent and 1 mantissa bits, no infinity.
    F4E2M1FN "f4e2m1fn" 4 Float;
    /// 6-bit float, 2 exponent bits.
    F6E2M3FN "f6e2m3fn" 6 Float;
    /// 6-bit float, 3 exponent bits.
    F6E3M2FN "f6e3m2fn" 6 Float;
    /// 8-bit float, 3 exponent bits.
    F8E3M4 "f8e3m4" 8 Float;
    /// 8-bit float, 4 exponent bits, IEEE-like.
    F8E4M3 "f8e4m3" 8 Float;
    /// 8-bit float, 4 exponent bits, no infinity.
    F8E4M3FN "f8e4m3fn" 8 Float;
    /// 8-bit float, 4 exponent bits, bias 11, no infinity, no negative zero.
    F8E4M3B11FNUZ "f8e4m3b11fnuz" 8 Float;
    /// 8-bit float, 4 exponent bits, no infinity, no negative zero.
    F8E4M3FNUZ "f8e4m3fnuz" 8 Float;
    /// 8-bit float, 5 exponent bits, IEEE-like.
    F8E5M2 "f8e5m2" 8 Float;
    /// 8-bit float, 5 exponent bits, no infinity, no negative zero.
    F8E5M2FNUZ "f8e5m2fnuz" 8 Float;
    /// A power of two without sign: the scale of microscaling formats.
    F8E8M0FNU "f8e8m0fnu" 8 Float;
    /// IEEE binary16.
    F16 "f16" 16 Float;
    /// The upper half of IEEE binary32.
    BF16 "bf16" 16 Float;
    /// IEEE binary32.
    F32 "f32" 32 Float;
    /// IEEE binary64.
    F64 "f64" 64 Float;
    /// A pair of [`ElementType::F32`].
    C64 "c64" 64 Complex;
    /// A pair of [`ElementType::F64`].
    C128 "c128" 128 Complex;
}

impl ElementType {
    /// Bytes of one element in memory, unpacked: sub-byte types take one.
    pub const fn bytes(self) -> u32 {
        self.bits().div_ceil(8)
    }

    /// Returns the width in bitcasts: `pred` and floats of 6 bits take a byte.
    pub const fn storage_bits(self) -> u32 {
        match self {
            Self::Pred | Self::F6E2M3FN | Self::F6E3M2FN => 8,
            other => other.bits(),
        }
    }

    /// Checks whether it is a (real) floating-point type.
    pub const fn is_float(self) -> bool {
        matches!(self.class(), NumberClass::Float)
    }

    /// Checks whether it is a signed or unsigned integer type, `pred` excluded.
    pub const fn is_integer(self) -> bool {
        matches!(self.class(), NumberClass::Signed | NumberClass::Unsigned)
    }

    /// Checks whether it is a complex type.
    pub const fn is_complex(self) -> bool {
        matches!(self.class(), NumberClass::Complex)
    }

    /// The more precise of two types: complex over real, then the float of the larger range,
    /// then of more digits; floats over integers, the wider integer, signed over unsigned.
    #[must_use]
    pub fn more_precise(self, other: Self) -> Self {
        if other.precision() > self.precision() { other } else { self }
    }

    /// Returns the key that [`ElementType::more_precise`] compares: whether it is complex; for
    /// its parts the exponent at which they overflow, the digits, the bits, and whether they
    /// are signed integers.
    fn precision(self) -> (bool, u16, u8, u32, bool) {
        let part = self.complex_part().unwrap_or(self);
        let (overflow, digits) = match part {
            Self::F4E2M1FN => (3, 2),
            Self::F6E2M3FN => (3, 4),
            Self::F8E3M4 => (4, 5),
            Self::F6E3M2FN => (5, 3),
            Self::F8E4M3B11FNUZ => (5, 4),
            Self::F8E4M3 | Self::F8E4M3FNUZ => (8, 4),
            Self::F8E4M3FN => (9, 4),
            Self::F8E5M2 | Self::F8E5M2FNUZ => (16, 3),
            Self::F16 => (16, 11),
            Self::F8E8M0FNU => (128, 1),
            Self::BF16 => (128, 8),
            Self::F32 => (128, 24),
            Self::F64 => (1024, 53),
            _ => (0, 0),
        };
        let signed = part.class() == NumberClass::Signed;
        (self.is_complex(), overflow, digits, part.bits(), signed)
    }

    /// The type of a complex type's parts.
    pub const fn complex_part(self) -> Option<Self> {
        match self {
            Self::C64 => Some(Self::F32),
            Self::C128 => Some(Self::F64),
            _ => None,
        }
    }
}

impl fmt::Display for ElementType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
