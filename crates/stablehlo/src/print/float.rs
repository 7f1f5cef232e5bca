//! Floats, letter by letter as MLIR prints them (`APFloat::toString`).

use crate::text::{bits_of_float, float_of_bits};

/// The number of digits that MLIR tries first.
const SHORT: usize = 6;
/// More digits than any `f64` has.
const ALL_DIGITS: usize = 800;

/// Writes the float of a type with these bits: with few digits if they tell it, else with as many
/// as tell it, else as its bits.
pub(super) fn push(out: &mut String, bits: u64, name: &str) {
    let value = float_of_bits(name, bits).filter(|value| value.is_finite());
    let written = value.and_then(|value| {
        quick(value, name).or_else(|| {
            let number = Digits::of(value);
            let kept = kept_digits(&number, value, 6);
            let short = number.clone().cut(kept).rounded(SHORT).scientific(SHORT);
            let exact = reads_as(&short, name) == Some(bits);
            if exact { Some(short) } else { long(&number, value, name) }
        })
    });
    match written {
        Some(text) => out.push_str(&text),
        None => out.push_str(&format!("0x{bits:X}")),
    }
}

/// The digits of most numbers that people write: they are few, and the number is not below them,
/// so that they are its first digits.
fn quick(value: f64, name: &str) -> Option<String> {
    #[allow(clippy::cast_possible_truncation, reason = "the value is one of the type")]
    let written = match name {
        "f32" if (value as f32).is_normal() => format!("{:e}", value as f32),
        _ if value.fract() == 0.0 && value != 0.0 => format!("{value:e}"),
        _ => return None,
    };
    let number = Digits::read(&written)?;
    let is_first =
        number.digits.len() <= SHORT && value.abs() >= written.parse::<f64>().ok()?.abs();
    let text = is_first.then(|| number.scientific(SHORT))?;
    (reads_as(&text, name) == bits_of_float(name, value)).then_some(text)
}

/// Returns the bits that a text is read as.
fn reads_as(text: &str, name: &str) -> Option<u64> {
    match name {
        "f32" => text.parse::<f32>().ok().map(|value| u64::from(value.to_bits())),
        _ => bits_of_float(name, text.parse().ok()?),
    }
}

/// A number with all its digits; `None` if what MLIR makes of it has no point, which it would read
/// as an integer.
fn long(number: &Digits, value: f64, name: &str) -> Option<String> {
    let precision: u32 = match name {
        "f64" => 53,
        "f32" => 24,
        "f16" | "tf32" => 11,
        _ => 8,
    };
    let most = 2_u32.saturating_add(precision.saturating_mul(59) / 196);
    let (digits, kept) = (usize::try_from(most).ok()?, kept_digits(number, value, most));
    let text = number.clone().cut(kept).rounded(digits).padded(digits);
    text.contains('.').then_some(text)
}

/// How many digits MLIR keeps before it rounds: it divides by a power of ten that it guesses from
/// the number of bits.
fn kept_digits(number: &Digits, value: f64, most: u32) -> usize {
    let bits = value.abs().to_bits();
    let (field, fraction) = (bits >> 52, bits & ((1 << 52) - 1));
    let significand = if field == 0 { fraction } else { fraction | 1 << 52 };
    let zeros = significand.trailing_zeros().min(63);
    let odd = significand >> zeros;
    // value = odd · 2^power
    let power = i64::try_from(field.max(1)).unwrap_or(0) - 1075 + i64::from(zeros);
    #[allow(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the number of bits is positive and small, and a logarithm need not be exact"
    )]
    let active = match power {
        0.. => f64::from(64 - odd.leading_zeros()) + power as f64,
        // odd · 5^-power, without the power of ten
        _ => ((odd as f64).log2() - power as f64 * 5_f64.log2()).floor() + 1.0,
    } as u64;
    // The integer that MLIR divides has these digits and, if the power is positive, zeros.
    let all = match power {
        0.. => number.exponent.saturating_add(1),
        _ => number.exponent.saturating_add(1).saturating_sub(power),
    };
    let needed = u64::from(most.saturating_mul(196).div_ceil(59));
    let removed = active.saturating_sub(needed).saturating_mul(59) / 196;
    let kept = all.saturating_sub_unsigned(removed);
    usize::try_from(kept).unwrap_or(usize::MAX)
}

/// A number in decimal: `d.ddd · 10^exponent`, without zeros at the end.
#[derive(Clone)]
struct Digits {
    is_negative: bool,
    digits: Vec<u8>,
    exponent: i64,
}

impl Digits {
    /// All digits of a number.
    fn of(value: f64) -> Self {
        let empty = Self { is_negative: value.is_sign_negative(), digits: Vec::new(), exponent: 0 };
        Self::read(&format!("{value:.ALL_DIGITS$e}")).unwrap_or(empty)
    }

    /// Reads `-1.25e-3`.
    fn read(text: &str) -> Option<Self> {
        let (is_negative, size) = match text.strip_prefix('-') {
            Some(size) => (true, size),
            None => (false, text),
        };
        let (mantissa, exponent) = size.split_once('e')?;
        let digits = mantissa.bytes().filter(u8::is_ascii_digit).collect();
        Some(Self { is_negative, digits, exponent: exponent.parse().ok()? }.trimmed())
    }

    fn trimmed(mut self) -> Self {
        while self.digits.last() == Some(&b'0') {
            self.digits.pop();
        }
        self
    }

    /// The first digits.
    fn cut(mut self, count: usize) -> Self {
        self.digits.truncate(count);
        self.trimmed()
    }

    /// Rounded to so many digits, a half away from zero.
    fn rounded(mut self, count: usize) -> Self {
        let is_up = self.digits.get(count).is_some_and(|&digit| digit >= b'5');
        self.digits.truncate(count);
        if is_up {
            while self.digits.last() == Some(&b'9') {
                self.digits.pop();
            }
            match self.digits.last_mut() {
                Some(last) => *last = last.saturating_add(1),
                None => {
                    self.digits.push(b'1');
                    self.exponent = self.exponent.saturating_add(1);
                }
            }
        }
        self.trimmed()
    }

    fn sign(&self) -> String {
        if self.is_negative { "-".to_owned() } else { String::new() }
    }

    /// `1.250000e-03`, with so many digits after the point.
    fn scientific(&self, places: usize) -> String {
        let mut out = self.sign();
        let (first, rest) = self.split();
        let sign = if self.exponent < 0 { '-' } else { '+' };
        let exponent = self.exponent.unsigned_abs();
        out.push_str(&format!("{first}.{rest:0<places$}e{sign}{exponent:02}"));
        out
    }

    fn split(&self) -> (char, String) {
        let digit = |&digit: &u8| char::from(digit);
        let first = self.digits.first().map_or('0', digit);
        (first, self.digits.iter().skip(1).map(digit).collect())
    }

    /// `0.00125`, `12.5` or `1.25E-7`: without an exponent if there are few zeros to write.
    fn padded(&self, most: usize) -> String {
        let count = i64::try_from(self.digits.len()).unwrap_or(i64::MAX);
        // The power of ten of the last digit.
        let last = self.exponent.saturating_add(1).saturating_sub(count);
        let limit = i64::try_from(most).unwrap_or(i64::MAX);
        let is_scientific = match last {
            0.. => last > 3 || count.saturating_add(last) > limit,
            _ => self.exponent < -3,
        };
        let mut out = self.sign();
        let (first, rest) = self.split();
        if is_scientific {
            let rest = if rest.is_empty() { "0" } else { &rest };
            let sign = if self.exponent < 0 { '-' } else { '+' };
            out.push_str(&format!("{first}.{rest}E{sign}{}", self.exponent.unsigned_abs()));
            return out;
        }
        let all: String = std::iter::once(first).chain(rest.chars()).collect();
        let zeros = |count: i64| "0".repeat(usize::try_from(count).unwrap_or(0));
        match (last, usize::try_from(self.exponent.saturating_add(1))) {
            (0.., _) => out.push_str(&format!("{all}{}", zeros(last))),
            (_, Ok(whole)) if whole > 0 => {
                let (whole, part) = all.split_at_checked(whole).unwrap_or((&all, ""));
                out.push_str(&format!("{whole}.{part}"));
            }
            _ => {
                let zeros = zeros(self.exponent.saturating_add(1).saturating_neg());
                out.push_str(&format!("0.{zeros}{all}"));
            }
        }
        out
    }
}
