//! Attributes and types that stand alone, and the numbers of floats.

use super::number::FloatFormat;
use super::{LineColumn, Parse, Parser, SyntaxError};
use crate::mlir::{Attribute, Type};

/// Reads a text that is one attribute.
pub(crate) fn attribute(text: &str) -> Result<Attribute, SyntaxError> {
    whole(text, Parser::attribute)
}

/// Reads a text that is one type.
pub(crate) fn ty(text: &str) -> Result<Type, SyntaxError> {
    whole(text, Parser::ty)
}

fn whole<'s, T>(
    text: &'s str,
    part: impl FnOnce(&mut Parser<'s>) -> Parse<T>,
) -> Result<T, SyntaxError> {
    let mut parser = Parser::new(text);
    let result = part(&mut parser).and_then(|value| match parser.at_end() {
        true => Ok(value),
        false => Err(parser.unexpected("the end of the text")),
    });
    result.map_err(|mut error| {
        error.at = LineColumn::of(text, error.span.start as usize);
        *error
    })
}

/// Returns the number of bits of a float type; `None` if the type is not known.
pub(crate) fn float_width(name: &str) -> Option<u32> {
    FloatFormat::of(name).map(|format| format.bits)
}

/// Returns the number with these bits in a float type.
pub(crate) fn float_of_bits(name: &str, bits: u64) -> Option<f64> {
    FloatFormat::of(name).map(|format| format.decode(bits))
}

/// Returns the bits of a number in a float type.
pub(crate) fn bits_of_float(name: &str, value: f64) -> Option<u64> {
    FloatFormat::of(name).map(|format| format.encode(value))
}
