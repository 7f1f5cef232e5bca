//! XLA's enumerations: numbers on the wire, words in text and in the ir.

use smol_str::SmolStr;
use tilewright_ir::ElementType;

use crate::error::ProtoError;

/// An enumeration: its name, its numbers and words.
pub(crate) struct Words(&'static str, &'static [(i32, &'static str)]);

impl Words {
    /// Returns the word of a number.
    pub(crate) fn word(&self, number: i32) -> Result<SmolStr, ProtoError> {
        let found = self.1.iter().find(|(other, _)| *other == number);
        let (_, word) = found.ok_or_else(|| ProtoError::unknown(self.0, number))?;
        Ok(SmolStr::new_static(word))
    }

    /// Returns the number of a word.
    pub(crate) fn number(&self, word: &str) -> Result<i32, ProtoError> {
        let found = self.1.iter().find(|(_, other)| *other == word);
        let (number, _) = found.ok_or_else(|| ProtoError::unknown(self.0, word))?;
        Ok(*number)
    }
}

pub(crate) const CONVOLUTION_KINDS: Words =
    Words("kind of convolution", &[(0, "unset"), (1, "fprop"), (2, "dgrad"), (3, "wgrad")]);

pub(crate) const SCHEDULES: Words = Words(
    "schedule of a custom call",
    &[(0, "SCHEDULE_NONE"), (1, "SCHEDULE_LATEST"), (2, "SCHEDULE_EARLIEST")],
);

pub(crate) const API_VERSIONS: Words = Words(
    "API version",
    &[
        (0, "API_VERSION_UNSPECIFIED"),
        (1, "API_VERSION_ORIGINAL"),
        (2, "API_VERSION_STATUS_RETURNING"),
        (3, "API_VERSION_STATUS_RETURNING_UNIFIED"),
        (4, "API_VERSION_TYPED_FFI"),
    ],
);

pub(crate) const PADDING_TYPES: Words =
    Words("padding type", &[(0, "PADDING_INVALID"), (1, "PADDING_VALID"), (2, "PADDING_SAME")]);

pub(crate) const FFT_TYPES: Words =
    Words("FFT type", &[(0, "FFT"), (1, "IFFT"), (2, "RFFT"), (3, "IRFFT")]);

pub(crate) const TRANSPOSES: Words =
    Words("transposition", &[(1, "NO_TRANSPOSE"), (2, "TRANSPOSE"), (3, "ADJOINT")]);

pub(crate) const DISTRIBUTIONS: Words =
    Words("distribution", &[(1, "rng_uniform"), (2, "rng_normal")]);

pub(crate) const RNG_ALGORITHMS: Words = Words(
    "algorithm of random numbers",
    &[(0, "rng_default"), (1, "rng_three_fry"), (2, "rng_philox")],
);

pub(crate) const PRECISIONS: Words =
    Words("precision", &[(0, "default"), (1, "high"), (2, "highest")]);

pub(crate) const DOT_ALGORITHMS: Words = Words(
    "algorithm of dots",
    &[
        (1, "dot_any_f8_any_f8_f32"),
        (2, "dot_any_f8_any_f8_f32_fast_accum"),
        (3, "dot_f16_f16_f16"),
        (4, "dot_f16_f16_f32"),
        (5, "dot_bf16_bf16_bf16"),
        (6, "dot_bf16_bf16_f32"),
        (7, "dot_bf16_bf16_f32_x3"),
        (8, "dot_bf16_bf16_f32_x6"),
        (9, "dot_tf32_tf32_f32"),
        (10, "dot_tf32_tf32_f32_x3"),
        (11, "dot_f32_f32_f32"),
        (12, "dot_f64_f64_f64"),
        (13, "dot_bf16_bf16_f32_x9"),
    ],
);

/// Element types by their number, without tuples and other kinds of shapes.
const ELEMENT_TYPES: &[(i32, ElementType)] = &[
    (1, ElementType::Pred),
    (2, ElementType::S8),
    (3, ElementType::S16),
    (4, ElementType::S32),
    (5, ElementType::S64),
    (6, ElementType::U8),
    (7, ElementType::U16),
    (8, ElementType::U32),
    (9, ElementType::U64),
    (10, ElementType::F16),
    (11, ElementType::F32),
    (12, ElementType::F64),
    (15, ElementType::C64),
    (16, ElementType::BF16),
    (18, ElementType::C128),
    (19, ElementType::F8E5M2),
    (20, ElementType::F8E4M3FN),
    (21, ElementType::S4),
    (22, ElementType::U4),
    (23, ElementType::F8E4M3B11FNUZ),
    (24, ElementType::F8E5M2FNUZ),
    (25, ElementType::F8E4M3FNUZ),
    (26, ElementType::S2),
    (27, ElementType::U2),
    (28, ElementType::F8E4M3),
    (29, ElementType::F8E3M4),
    (30, ElementType::S1),
    (31, ElementType::U1),
    (32, ElementType::F4E2M1FN),
    (33, ElementType::F8E8M0FNU),
    (35, ElementType::F6E3M2FN),
    (36, ElementType::F6E2M3FN),
];

pub(crate) fn element_type(number: i32) -> Result<ElementType, ProtoError> {
    let found = ELEMENT_TYPES.iter().find(|(other, _)| *other == number);
    found.map(|&(_, element)| element).ok_or_else(|| ProtoError::unknown("element type", number))
}

pub(crate) fn element_number(element: ElementType) -> i32 {
    let found = ELEMENT_TYPES.iter().find(|(_, other)| *other == element);
    // 0 is XLA's invalid type; the test below sees to it that none is missing.
    found.map_or(0, |&(number, _)| number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_element_type_has_a_number() {
        for &element in ElementType::ALL {
            assert_eq!(element_type(element_number(element)), Ok(element));
        }
    }
}
