//! The elements of constants.

use tilewright_ir::ElementType;
use tilewright_ir::element::NumberClass;

use super::decimal::{F32, F64, Format};
use super::{Parse, Parser, SyntaxError, small};

const A_NUMBER: &str = "a number, as `1.5`, `-inf` or `nan`";

impl<'s> Parser<'s> {
    /// Returns the text of a number and its position.
    fn number_text(&mut self) -> (&'s str, usize) {
        self.cursor.skip_space();
        let start = self.cursor.pos();
        (self.cursor.number(), start)
    }

    /// `truth := "true" | "false" | integer`
    pub(super) fn truth(&mut self) -> Parse<bool> {
        let (text, start) = self.number_text();
        match text {
            "true" | "1" => Ok(true),
            "false" | "0" => Ok(false),
            other => match other.parse::<i64>() {
                Ok(value) => Ok(value != 0),
                Err(_) => self.not_a_number(start, "`true`, `false`, `1` or `0`"),
            },
        }
    }

    /// Returns an integer within the range of its type.
    pub(super) fn whole<T: TryFrom<i128>>(&mut self, element_type: ElementType) -> Parse<T> {
        let (text, start) = self.number_text();
        let bits = element_type.bits().min(64);
        let (low, high) = if element_type.class() == NumberClass::Signed {
            (-(1i128 << (bits - 1)), (1i128 << (bits - 1)) - 1)
        } else {
            (0, (1i128 << bits) - 1)
        };
        // Most numbers fit 64 bits, which are read faster.
        let value = match text.parse::<i64>() {
            Ok(value) => Some(i128::from(value)),
            Err(_) => text.parse::<i128>().ok(),
        };
        match value {
            Some(value) if (low..=high).contains(&value) => match T::try_from(value) {
                Ok(value) => Ok(value),
                Err(_) => self.out_of_range(start, element_type, &low, &high),
            },
            None if text.is_empty() || !text.bytes().skip(1).all(|b| b.is_ascii_digit()) => {
                self.not_a_number(start, &format!("an integer, being {element_type}"))
            }
            Some(value) => match wrapped(element_type, value).map(T::try_from) {
                Some(Ok(value)) => Ok(value),
                Some(Err(_)) | None => self.out_of_range(start, element_type, &low, &high),
            },
            None => self.out_of_range(start, element_type, &low, &high),
        }
    }

    #[cold]
    fn not_a_number<T>(&mut self, start: usize, what: &str) -> Parse<T> {
        self.cursor.set_pos(start);
        self.unexpected(what)
    }

    #[cold]
    fn out_of_range<T>(
        &mut self,
        start: usize,
        element_type: ElementType,
        low: &dyn std::fmt::Display,
        high: &dyn std::fmt::Display,
    ) -> Parse<T> {
        let span = self.span_since(start);
        let text = self.cursor.since(start);
        let shown = if text.len() > 40 { "this number" } else { text };
        let message = format!("{shown} is out of the range of {element_type}, {low} to {high}");
        self.fail(SyntaxError::new(span, message))
    }

    pub(super) fn single(&mut self) -> Parse<f32> {
        let (text, start) = self.number_text();
        match text.parse::<f32>() {
            Ok(value) if value.is_finite() => Ok(value),
            parsed => match self.special(start, F32)? {
                // This is in range: it has 32 bits.
                Some(bits) => Ok(f32::from_bits(u32::try_from(bits).unwrap_or_default())),
                None if parsed.is_ok() && has_digit(text) => {
                    self.out_of_range(start, ElementType::F32, &"-3.4e38", &"3.4e38")
                }
                None => self.not_a_number(start, A_NUMBER),
            },
        }
    }

    pub(super) fn double(&mut self) -> Parse<f64> {
        let (text, start) = self.number_text();
        match text.parse::<f64>() {
            Ok(value) if value.is_finite() => Ok(value),
            parsed => match self.special(start, F64)? {
                Some(bits) => Ok(f64::from_bits(bits)),
                None if parsed.is_ok() && has_digit(text) => {
                    self.out_of_range(start, ElementType::F64, &"-1.8e308", &"1.8e308")
                }
                None => self.not_a_number(start, A_NUMBER),
            },
        }
    }

    /// Returns the bits of a float of 16 bits, rounded once.
    pub(super) fn narrow(&mut self, format: Format) -> Parse<u16> {
        let (text, start) = self.number_text();
        if let Some(bits) = format.round(text) {
            return Ok(bits);
        }
        let is_number = text.parse::<f64>().is_ok() && has_digit(text);
        match self.special(start, format)? {
            // This is in range: it has 16 bits.
            Some(bits) => Ok(u16::try_from(bits).unwrap_or_default()),
            None if is_number => {
                let largest = match format.largest() {
                    x if x < 1e6 => x.to_string(),
                    x => format!("{x:.2e}"),
                };
                self.out_of_range(start, format.element_type, &format!("-{largest}"), &largest)
            }
            None => self.not_a_number(start, A_NUMBER),
        }
    }

    /// Returns the bits of a float of 8 bits and fewer.
    pub(super) fn small(&mut self, element_type: ElementType) -> Parse<u8> {
        let (text, start) = self.number_text();
        if let Some(bits) = small::round(element_type, text) {
            return Ok(bits);
        }
        let (negative, word) = sign_and_word(text);
        let nan = match word {
            "inf" => None,
            "nan" if self.cursor.eat(b'(') => Some(Some(self.payload()?)),
            "nan" => Some(None),
            _ => return self.not_small(start, element_type),
        };
        match small::special(element_type, negative, nan) {
            Some(bits) => Ok(bits),
            None => {
                let span = self.span_since(start);
                let text = self.cursor.since(start);
                let message = format!("{element_type} has no {text}");
                self.fail(SyntaxError::new(span, message))
            }
        }
    }

    #[cold]
    fn not_small(&mut self, start: usize, element_type: ElementType) -> Parse<u8> {
        let text = self.cursor.since(start);
        if text.parse::<f64>().is_err() || !has_digit(text) {
            return self.not_a_number(start, A_NUMBER);
        }
        let largest = small::largest(element_type);
        let least = if element_type == ElementType::F8E8M0FNU { 2f64.powi(-127) } else { -largest };
        self.out_of_range(start, element_type, &least, &largest)
    }

    /// `complex := "(" real "," imaginary ")"`
    pub(super) fn complex<T>(
        &mut self,
        part: impl Fn(&mut Self) -> Parse<T>,
    ) -> Parse<num_complex::Complex<T>> {
        self.expect(b'(', "`(` and the parts of a complex number, as `(1, -2)`")?;
        let re = part(self)?;
        self.expect(b',', "`,` and the imaginary part")?;
        let im = part(self)?;
        self.expect(b')', "`)`")?;
        Ok(num_complex::Complex { re, im })
    }

    /// ```text
    /// special := ["-"] ("inf" | "nan" [payload])
    /// ```
    /// The bits of the one whose word was just read; `None` if it is another.
    fn special(&mut self, start: usize, format: Format) -> Parse<Option<u64>> {
        let (negative, word) = sign_and_word(self.cursor.since(start));
        let mantissa = match word {
            "inf" => 0,
            "nan" if self.cursor.eat(b'(') => {
                let payload = self.payload()?;
                if !format.is_payload(payload) {
                    let span = self.span_since(start);
                    let message =
                        format!("a NaN of {} cannot have this payload", format.element_type);
                    return self.fail(SyntaxError::new(span, message));
                }
                payload
            }
            "nan" => format.quiet(),
            _ => return Ok(None),
        };
        Ok(Some(format.special(negative, mantissa)))
    }

    /// `payload := "(" "0x" hex digits ")"`, after its `(`.
    fn payload(&mut self) -> Parse<u64> {
        let start = self.cursor.pos();
        let digits = self.cursor.number();
        match digits.strip_prefix("0x").and_then(|hex| u64::from_str_radix(hex, 16).ok()) {
            Some(payload) => {
                self.expect(b')', "`)` after the payload of the NaN")?;
                Ok(payload)
            }
            None => self.not_a_number(start, "the payload of the NaN, as `0x1`"),
        }
    }
}

/// Checks for a digit. The standard library also parses texts without one, such as `infinity`,
/// which are not numbers of HLO.
fn has_digit(text: &str) -> bool {
    text.bytes().any(|b| b.is_ascii_digit())
}

fn sign_and_word(text: &str) -> (bool, &str) {
    match text.strip_prefix('-') {
        Some(word) => (true, word),
        None => (false, text),
    }
}

/// XLA reads integers as 64 bits, signed or not, so that either kind of number
/// may be written as the other: `u64[] constant(-1)`.
fn wrapped(element_type: ElementType, value: i128) -> Option<i128> {
    match element_type {
        ElementType::U64 => i64::try_from(value).ok().map(|value| value.cast_unsigned().into()),
        ElementType::S64 => u64::try_from(value).ok().map(|value| value.cast_signed().into()),
        _ => None,
    }
}
