//! Attributes.

use rustc_hash::FxHashSet;
use smol_str::SmolStr;

use super::error::SyntaxError;
use super::number::{FloatFormat, NumberKind};
use super::{Parse, Parser};
use crate::mlir::{Attribute, Attributes, Scalar, Sign, Type};

/// Lists of names up to this length are searched.
const SEARCHED: usize = 16;

/// A signless integer type.
pub(super) fn integer_type(bits: u32) -> Type {
    Type::Scalar(Scalar::Integer { bits, sign: Sign::Signless })
}

impl<'s> Parser<'s> {
    /// Takes an attribute.
    pub(super) fn attribute(&mut self) -> Parse<Attribute> {
        self.nested(1, |parser| match parser.peek() {
            b'"' => {
                let text = parser.string("").map(Attribute::String)?;
                if parser.accept(":") {
                    parser.ty()?;
                }
                Ok(text)
            }
            b'@' => parser.symbol().map(Attribute::Symbol),
            b'#' => parser.hash_attribute(),
            b'{' => parser.dictionary().map(Attribute::Dictionary),
            b'[' => {
                let mut items = Vec::new();
                parser.list(("[", "]"), |parser| {
                    items.push(parser.attribute()?);
                    Ok(())
                })?;
                Ok(Attribute::Array(items))
            }
            b'-' | b'0'..=b'9' => parser.number_attribute(),
            _ => parser.named_attribute(),
        })
    }

    /// An attribute that begins with a word, or a type.
    fn named_attribute(&mut self) -> Parse<Attribute> {
        let start = self.position;
        let word = self.peek_word();
        match word {
            "true" | "false" => {
                self.position += word.len();
                Ok(Attribute::Bool(word == "true"))
            }
            "unit" => {
                self.position += word.len();
                Ok(Attribute::Unit)
            }
            "dense" => self.dense(),
            "dense_resource" => self.dense_resource(),
            "array" => self.dense_array(),
            "loc" => self.location().map(Attribute::Location),
            "affine_map" | "affine_set" | "strided" | "sparse" | "distinct" | "opaque" => {
                self.position += word.len();
                self.balanced()?;
                // `distinct[0]<unit>` has two brackets.
                if self.byte(0) == b'<' {
                    self.balanced()?;
                }
                let text = self.text(start, self.position).into();
                Ok(Attribute::Opaque { dialect: "builtin".into(), text })
            }
            _ if self.at_type() => Ok(Attribute::Type(Box::new(self.ty()?))),
            _ => Err(self.unexpected("an attribute, as `1 : i64`")),
        }
    }

    /// `3`, `3 : i32`, `1.5`, `0x7FC00000 : f32`.
    fn number_attribute(&mut self) -> Parse<Attribute> {
        let number = self.number("a number")?;
        let ty = if self.accept(":") { Some(self.ty()?) } else { None };
        let float = match &ty {
            Some(Type::Scalar(Scalar::Float(name))) => Some(name.as_str()),
            None if number.kind == NumberKind::Decimal => Some("f64"),
            _ => None,
        };
        let Some(name) = float else {
            let ty = ty.unwrap_or_else(|| integer_type(64));
            return match ty {
                Type::Scalar(Scalar::Integer { .. } | Scalar::Index) => {
                    Ok(Attribute::Integer(number.integer()?, ty))
                }
                _ => Err(SyntaxError::new(number.span, "a number has no such type")),
            };
        };
        let value = match FloatFormat::of(name) {
            Some(format) => format.decode(number.float_bits(&format)?),
            None if number.kind == NumberKind::Hex => {
                let message = format!("the bits of `{name}` are not known");
                return Err(SyntaxError::new(number.span, message));
            }
            None => number.decimal()?,
        };
        Ok(Attribute::Float(value, Type::Scalar(Scalar::Float(name.into()))))
    }

    /// `{a = 1, b}`.
    pub(super) fn dictionary(&mut self) -> Parse<Attributes> {
        let mut attributes = Attributes::new();
        self.dictionary_into(&mut attributes)?;
        Ok(attributes)
    }

    /// Adds the entries of `{a = 1, b}`.
    pub(super) fn dictionary_into(&mut self, attributes: &mut Attributes) -> Parse<()> {
        let mut known = FxHashSet::default();
        self.list(("{", "}"), |parser| {
            parser.skip();
            let start = parser.position;
            let name = match parser.byte(0) {
                b'"' => parser.string_text("")?,
                _ => SmolStr::new(parser.word("the name of an attribute")?),
            };
            let place = parser.span_since(start);
            if attributes.len() >= SEARCHED && known.is_empty() {
                known.extend(attributes.iter().map(|(name, _)| name.clone()));
            }
            let repeated = match known.is_empty() {
                true => attributes.iter().any(|(other, _)| *other == name),
                false => !known.insert(name.clone()),
            };
            if repeated {
                let message = format!("the attribute `{name}` is here twice");
                return Err(SyntaxError::new(place, message));
            }
            let value = if parser.accept("=") { parser.attribute()? } else { Attribute::Unit };
            attributes.push((name, value));
            Ok(())
        })
    }
}
