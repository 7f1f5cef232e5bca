//! Numbers.

use half::{bf16, f16};
use tilewright_ir::ElementType;
use tilewright_ir::small_float::Format;

use super::error::SyntaxError;
use super::{Parse, Parser};
use crate::mlir::Span;

/// A number as it is written.
#[derive(Clone, Copy)]
pub(super) struct Number<'s> {
    pub(super) text: &'s str,
    pub(super) kind: NumberKind,
    pub(super) span: Span,
}

/// How a number is written.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum NumberKind {
    /// `-12`.
    Integer,
    /// `0x7F`.
    Hex,
    /// `1.5e-3`.
    Decimal,
}

impl Number<'_> {
    /// Returns the value of an integer.
    pub(super) fn integer(&self) -> Parse<i128> {
        let value = match self.kind {
            NumberKind::Integer => self.text.parse().ok(),
            NumberKind::Hex => match self.text.strip_prefix('-') {
                Some(text) => hex(text).map(|value| -value),
                None => hex(self.text),
            },
            NumberKind::Decimal => {
                return Err(SyntaxError::new(self.span, "this is no integer"));
            }
        };
        value.ok_or_else(|| SyntaxError::new(self.span, "this integer is too large"))
    }

    /// Returns the value of a decimal number.
    pub(super) fn decimal(&self) -> Parse<f64> {
        // All that the reader takes as a number is one in Rust, too.
        self.text.parse().map_err(|_| SyntaxError::new(self.span, "this is no number"))
    }

    /// Returns the bits of a float of this type.
    pub(super) fn float_bits(&self, format: &FloatFormat) -> Parse<u64> {
        if self.kind != NumberKind::Hex {
            return Ok(format.encode(self.decimal()?));
        }
        let bits = u64::try_from(self.integer()?).ok();
        bits.filter(|&bits| format.bits >= 64 || bits >> format.bits == 0).ok_or_else(|| {
            let message = format!("these bits do not fit into {}", format.bits);
            SyntaxError::new(self.span, message)
        })
    }
}

fn hex(text: &str) -> Option<i128> {
    i128::from_str_radix(text.strip_prefix("0x")?, 16).ok()
}

/// A float type.
pub(super) struct FloatFormat {
    kind: FloatKind,
    /// The number of bits.
    pub(super) bits: u32,
}

enum FloatKind {
    F64,
    F32,
    F16,
    Bf16,
    Small(Format),
}

impl FloatFormat {
    /// Returns the format of a type by its MLIR name.
    pub(super) fn of(name: &str) -> Option<Self> {
        let (kind, bits) = match name {
            "f64" => (FloatKind::F64, 64),
            "f32" => (FloatKind::F32, 32),
            "f16" => (FloatKind::F16, 16),
            "bf16" => (FloatKind::Bf16, 16),
            _ => {
                let ty = ElementType::from_name(&name.to_ascii_lowercase())?;
                (FloatKind::Small(Format::of(ty)?), ty.bits())
            }
        };
        Some(Self { kind, bits })
    }

    /// Rounds a number to the type, as MLIR does it.
    pub(super) fn encode(&self, value: f64) -> u64 {
        match self.kind {
            FloatKind::F64 => value.to_bits(),
            FloatKind::F32 => u64::from((value as f32).to_bits()),
            FloatKind::F16 => u64::from(f16::from_f64(value).to_bits()),
            FloatKind::Bf16 => u64::from(bf16::from_f64(value).to_bits()),
            FloatKind::Small(format) => u64::from(format.encode(value)),
        }
    }

    /// Returns the number with these bits.
    pub(super) fn decode(&self, bits: u64) -> f64 {
        // The bits are those of the type: `encode` and `float_bits` give no others.
        let half = u16::try_from(bits & 0xFFFF).unwrap_or_default();
        match self.kind {
            FloatKind::F64 => f64::from_bits(bits),
            FloatKind::F32 => {
                f64::from(f32::from_bits(u32::try_from(bits & 0xFFFF_FFFF).unwrap_or_default()))
            }
            FloatKind::F16 => f16::from_bits(half).to_f64(),
            FloatKind::Bf16 => bf16::from_bits(half).to_f64(),
            FloatKind::Small(format) => match format.decode(half) {
                tilewright_ir::small_float::Value::Real(value) => value,
                tilewright_ir::small_float::Value::Nan { .. } => f64::NAN,
            },
        }
    }
}

impl<'s> Parser<'s> {
    /// Checks whether a number begins here.
    pub(super) fn at_number(&mut self) -> bool {
        matches!(self.peek(), b'0'..=b'9' | b'-')
    }

    /// Takes a number.
    pub(super) fn number(&mut self, expected: &str) -> Parse<Number<'s>> {
        self.skip();
        let start = self.position;
        let negative = usize::from(self.byte(0) == b'-');
        if !self.byte(negative).is_ascii_digit() {
            return Err(self.unexpected(expected));
        }
        self.position += negative;
        let kind = self.magnitude();
        let text = self.text(start, self.position);
        Ok(Number { text, kind, span: self.span_since(start) })
    }

    /// Takes the digits of a number.
    fn magnitude(&mut self) -> NumberKind {
        if self.byte(0) == b'0' && self.byte(1) == b'x' && self.byte(2).is_ascii_hexdigit() {
            self.position += 2;
            self.while_byte(u8::is_ascii_hexdigit);
            return NumberKind::Hex;
        }
        self.while_byte(u8::is_ascii_digit);
        if self.byte(0) != b'.' {
            return NumberKind::Integer;
        }
        self.position += 1;
        self.while_byte(u8::is_ascii_digit);
        if matches!(self.byte(0), b'e' | b'E') {
            let sign = usize::from(matches!(self.byte(1), b'+' | b'-'));
            if self.byte(1 + sign).is_ascii_digit() {
                self.position += 1 + sign;
                self.while_byte(u8::is_ascii_digit);
            }
        }
        NumberKind::Decimal
    }

    fn while_byte(&mut self, belongs: impl Fn(&u8) -> bool) {
        while belongs(&self.byte(0)) {
            self.position += 1;
        }
    }

    /// Takes an integer of 64 bits.
    pub(super) fn integer(&mut self, expected: &str) -> Parse<i64> {
        let number = self.number(expected)?;
        i64::try_from(number.integer()?)
            .map_err(|_| SyntaxError::new(number.span, "this integer is too large"))
    }

    /// Takes a small number that has no sign.
    pub(super) fn small_number(&mut self, expected: &str) -> Parse<u32> {
        let number = self.number(expected)?;
        u32::try_from(number.integer()?)
            .map_err(|_| SyntaxError::new(number.span, "this number is too large"))
    }

    /// Takes `[1, 2]`; `?` is [`i64::MIN`].
    pub(super) fn integers(&mut self) -> Parse<Vec<i64>> {
        let mut values = Vec::new();
        self.list(("[", "]"), |parser| {
            values.push(parser.integer_or_dynamic()?);
            Ok(())
        })?;
        Ok(values)
    }

    /// Takes an integer or `?`.
    pub(super) fn integer_or_dynamic(&mut self) -> Parse<i64> {
        if self.accept("?") { Ok(i64::MIN) } else { self.integer("an integer") }
    }
}
