//! Arrays of numbers: `array<i64: 1, 2>`.

use super::error::SyntaxError;
use super::number::FloatFormat;
use super::{Parse, Parser};
use crate::mlir::{Attribute, DenseArray, Scalar, Type};

impl Parser<'_> {
    pub(super) fn dense_array(&mut self) -> Parse<Attribute> {
        self.expect_word("array")?;
        self.expect("<")?;
        self.skip();
        let start = self.position;
        let ty = self.ty()?;
        let place = self.span_since(start);
        let array = match &ty {
            Type::Scalar(Scalar::Integer { bits: 1, .. }) => {
                DenseArray::Bool(self.items(Self::truth)?)
            }
            Type::Scalar(Scalar::Integer { bits: 64, .. }) => {
                DenseArray::I64(self.items(|parser| parser.integer("an integer"))?)
            }
            Type::Scalar(Scalar::Integer { bits: bits @ (8 | 16 | 32), .. }) => {
                DenseArray::Integer(*bits, self.items(|parser| parser.integer("an integer"))?)
            }
            Type::Scalar(Scalar::Float(name)) if name == "f32" => {
                DenseArray::F32(self.items(|parser| Ok(parser.float("f32")? as f32))?)
            }
            Type::Scalar(Scalar::Float(name)) if name == "f64" => {
                DenseArray::F64(self.items(|parser| parser.float("f64"))?)
            }
            _ => {
                let help = "arrays have elements of i1, i8, i16, i32, i64, f32 or f64";
                return Err(SyntaxError::new(place, "an array cannot have this type").help(help));
            }
        };
        self.expect(">")?;
        Ok(Attribute::DenseArray(array))
    }

    /// `: a, b` or nothing.
    fn items<T>(&mut self, mut item: impl FnMut(&mut Self) -> Parse<T>) -> Parse<Vec<T>> {
        let mut items = Vec::new();
        if self.accept(":") {
            items.push(item(self)?);
            while self.accept(",") {
                items.push(item(self)?);
            }
        }
        Ok(items)
    }

    /// `true`, `false`, or an integer, which is true unless it is 0.
    pub(super) fn truth(&mut self) -> Parse<bool> {
        match self.peek_word() {
            word @ ("true" | "false") => {
                self.position += word.len();
                Ok(word == "true")
            }
            _ => Ok(self.integer("`true` or `false`")? != 0),
        }
    }

    /// A float of a type that is known.
    fn float(&mut self, name: &str) -> Parse<f64> {
        let number = self.number("a number")?;
        match FloatFormat::of(name) {
            Some(format) => Ok(format.decode(number.float_bits(&format)?)),
            None => number.decimal(),
        }
    }
}
