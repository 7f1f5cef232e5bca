//! Constants: `dense<[1, 2]> : tensor<2xi32>`.

use std::sync::Arc;

use super::cursor::span;
use super::error::SyntaxError;
use super::number::{FloatFormat, NumberKind};
use super::{Parse, Parser};
use crate::mlir::{Attribute, DenseElements, Elements, Scalar, Sign, TensorType, Type};

/// How elements of a type are written and stored.
enum Format {
    Integer { bits: u32, sign: Sign },
    Float(FloatFormat),
    Complex(Box<Format>),
    String,
}

impl Format {
    fn of(element: &Scalar) -> Option<Self> {
        match element {
            Scalar::Integer { bits: 1..=64, sign } => {
                let Scalar::Integer { bits, .. } = element else { return None };
                Some(Self::Integer { bits: *bits, sign: *sign })
            }
            Scalar::Index => Some(Self::Integer { bits: 64, sign: Sign::Signless }),
            Scalar::Float(name) => FloatFormat::of(name).map(Self::Float),
            Scalar::Complex(part) => match Self::of(part)? {
                Self::Complex(_) | Self::String => None,
                part => Some(Self::Complex(Box::new(part))),
            },
            Scalar::Other(_) => Some(Self::String),
            Scalar::Integer { .. } => None,
        }
    }

    /// The number of bytes of an element.
    fn bytes(&self) -> usize {
        let of_bits = |bits: u32| bits.div_ceil(8) as usize;
        match self {
            Self::Integer { bits, .. } => of_bits(*bits),
            Self::Float(format) => of_bits(format.bits),
            Self::Complex(part) => 2 * part.bytes(),
            Self::String => 0,
        }
    }
}

/// The dims of a constant and the number of its elements.
struct DenseShape {
    dims: Vec<usize>,
    count: usize,
}

impl<'s> Parser<'s> {
    pub(super) fn dense(&mut self) -> Parse<Attribute> {
        self.expect_word("dense")?;
        self.expect("<")?;
        self.skip();
        let start = self.position;
        // The type says how the elements are written, but stands after them.
        self.skip_elements()?;
        self.expect(">")?;
        self.expect(":")?;
        self.skip();
        let type_start = self.position;
        let ty = self.ty()?;
        let end = self.position;
        let wrong = |message: &str| SyntaxError::new(span(type_start, end), message);
        let Type::Tensor(tensor) = &ty else {
            return Err(wrong("a constant has a `tensor` type"));
        };
        let shape = shape(tensor)
            .ok_or_else(|| wrong("a constant has known dims and fewer than 2^63 elements"))?;
        let format = Format::of(&tensor.element)
            .ok_or_else(|| wrong("constants of this type cannot be read"))?;
        self.position = start;
        let elements = self.elements(&format, &shape)?;
        self.position = end;
        Ok(Attribute::Dense(DenseElements { ty: Box::new(ty), elements }))
    }

    /// Skips all up to the `>` after the elements.
    fn skip_elements(&mut self) -> Parse<()> {
        let start = self.position;
        loop {
            let rest = self.rest().as_bytes();
            let Some(at) = rest.iter().position(|b| matches!(b, b'>' | b'"' | b'/')) else {
                return Err(SyntaxError::new(span(start, start), "this constant is never closed"));
            };
            self.position += at;
            match rest.get(at) {
                Some(b'"') => {
                    self.string_end()?;
                }
                Some(b'/') => {
                    let before = self.position;
                    self.skip();
                    if before == self.position {
                        return Err(self.unexpected("a number"));
                    }
                }
                _ => return Ok(()),
            }
        }
    }

    fn elements(&mut self, format: &Format, shape: &DenseShape) -> Parse<Elements> {
        if let Format::String = format {
            return self.strings(shape).map(Elements::Strings);
        }
        if self.peek() == b'"' {
            return self.blob_elements(format, shape).map(|b| Elements::Bytes(b.into()));
        }
        let mut bytes = Vec::new();
        match self.peek() {
            // `dense<>` is a constant without elements.
            b'>' if shape.count == 0 => {}
            b'[' => self.rows(&shape.dims, &mut |parser| parser.element(format, &mut bytes))?,
            _ => self.element(format, &mut bytes)?,
        }
        self.end_of_elements()?;
        Ok(Elements::Bytes(bytes.into()))
    }

    fn end_of_elements(&mut self) -> Parse<()> {
        if self.peek() == b'>' { Ok(()) } else { Err(self.unexpected("`>`")) }
    }

    fn strings(&mut self, shape: &DenseShape) -> Parse<Vec<Arc<[u8]>>> {
        let mut strings = Vec::new();
        let mut item = |parser: &mut Self| {
            strings.push(parser.string("a string in quotes")?);
            Ok(())
        };
        match self.peek() {
            b'>' if shape.count == 0 => {}
            b'[' => self.rows(&shape.dims, &mut item)?,
            _ => item(self)?,
        }
        self.end_of_elements()?;
        Ok(strings)
    }

    /// Nested lists, one level for each dim.
    fn rows(
        &mut self,
        dims: &[usize],
        element: &mut dyn FnMut(&mut Self) -> Parse<()>,
    ) -> Parse<()> {
        let Some((&dim, inner)) = dims.split_first() else { return element(self) };
        self.skip();
        let start = self.position;
        let mut length = 0_usize;
        self.nested(1, |parser| {
            parser.list(("[", "]"), |parser| {
                length += 1;
                parser.rows(inner, element)
            })
        })?;
        if length != dim {
            let message = format!("this list has {length} items, but the type says {dim}");
            return Err(SyntaxError::new(span(start, start + 1), message));
        }
        Ok(())
    }

    /// One element, as little-endian bytes.
    fn element(&mut self, format: &Format, bytes: &mut Vec<u8>) -> Parse<()> {
        match format {
            Format::Integer { bits, sign } => {
                let value = self.integer_element(*bits, *sign)?;
                push(bytes, value, format.bytes());
            }
            Format::Float(float) => {
                let number = self.number("a number")?;
                push(bytes, number.float_bits(float)?, format.bytes());
            }
            Format::Complex(part) => {
                self.expect("(")?;
                self.element(part, bytes)?;
                self.expect(",")?;
                self.element(part, bytes)?;
                self.expect(")")?;
            }
            Format::String => return Err(self.unexpected("a number")),
        }
        Ok(())
    }

    /// An integer; its bits above the width are 0.
    fn integer_element(&mut self, bits: u32, sign: Sign) -> Parse<u64> {
        if let word @ ("true" | "false") = self.peek_word() {
            if bits != 1 {
                return Err(self.unexpected("an integer"));
            }
            self.position += word.len();
            return Ok(u64::from(word == "true"));
        }
        let number = self.number("an integer")?;
        let value = number.integer()?;
        let least = if sign == Sign::Unsigned { 0 } else { -(1_i128 << (bits - 1)) };
        let most = if sign == Sign::Signed { 1_i128 << (bits - 1) } else { 1_i128 << bits };
        // Hexadecimal digits are bits.
        let most = if number.kind == NumberKind::Hex { 1_i128 << bits } else { most };
        if value < least || value >= most {
            let message = format!("this integer does not fit into {bits} bits");
            return Err(SyntaxError::new(number.span, message));
        }
        Ok(u64::try_from(value & ((1_i128 << bits) - 1)).unwrap_or_default())
    }

    /// The bytes of all elements, or of one that all are equal to.
    fn blob_elements(&mut self, format: &Format, shape: &DenseShape) -> Parse<Vec<u8>> {
        let start = self.position;
        let mut bytes = self.blob()?;
        self.end_of_elements()?;
        let all = shape.count.checked_mul(format.bytes());
        if matches!(format, Format::Integer { bits: 1, .. }) {
            if let Some(bytes) = truth_values(&bytes, shape.count) {
                return Ok(bytes);
            }
        } else if all == Some(bytes.len()) || bytes.len() == format.bytes() {
            if let Format::Integer { bits, .. } | Format::Float(FloatFormat { bits, .. }) = format {
                clear_unused_bits(&mut bytes, *bits);
            }
            return Ok(bytes);
        }
        let (count, size) = (shape.count, format.bytes());
        let message = format!(
            "the string has {} bytes, but the type has {count} elements of {size}",
            bytes.len()
        );
        Err(SyntaxError::new(span(start, start + 1), message))
    }
}

/// Truth values with one byte each. MLIR wrote them with one bit each before 2026.
fn truth_values(bytes: &[u8], count: usize) -> Option<Vec<u8>> {
    match bytes {
        &[value @ (0 | 1 | 0xFF)] => Some(vec![u8::from(value != 0)]),
        _ if bytes.len() == count => Some(bytes.iter().map(|&b| u8::from(b != 0)).collect()),
        _ if bytes.len() == count.div_ceil(8) => {
            let bits = bytes.iter().flat_map(|byte| (0..8).map(move |bit| byte >> bit & 1));
            Some(bits.take(count).collect())
        }
        _ => None,
    }
}

/// Clears the bits of the last byte of each element that its type does not use. MLIR ignores them:
/// elements that differ in them alone are equal.
pub(crate) fn clear_unused_bits(bytes: &mut [u8], bits: u32) {
    let used = bits % 8;
    if used == 0 {
        return;
    }
    for element in bytes.chunks_exact_mut(bits.div_ceil(8) as usize) {
        if let Some(last) = element.last_mut() {
            *last &= !(0xFF << used);
        }
    }
}

/// Appends the low bytes of a number.
fn push(bytes: &mut Vec<u8>, value: u64, count: usize) {
    bytes.extend(value.to_le_bytes().iter().take(count));
}

fn shape(tensor: &TensorType) -> Option<DenseShape> {
    let dims: Option<Vec<usize>> =
        tensor.dims.iter().map(|dim| usize::try_from((*dim)?).ok()).collect();
    let dims = dims?;
    let known = || dims.iter().try_fold(1_usize, |count, &dim| count.checked_mul(dim));
    let count = if dims.contains(&0) { 0 } else { known()? };
    i64::try_from(count).ok().map(|_| DenseShape { dims, count })
}
