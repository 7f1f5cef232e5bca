//! The parts of a pretty form, and their reader.

use super::super::operation::Draft;
use super::super::{Parse, Parser};
use super::Reader;
use super::types::Types;
use crate::mlir::{Attribute, Sign, Type};
use crate::mlir::{DenseArray, Scalar};

use super::super::attribute::integer_type;
use super::super::dialect::word_attribute;

/// A part of a pretty form.
pub(super) enum Part {
    /// A word or punctuation.
    Text(&'static str),
    /// One operand.
    Operand,
    /// Operands with commas between them, or none.
    Operands,
    /// Operands, each with a comma after it.
    OperandsBefore,
    /// An attribute with this name.
    Attribute(&'static str, Kind),
    /// Parts that are there if the first of them is.
    Maybe(&'static [Part]),
    /// `{a = 1}` or nothing.
    Dictionary,
    /// Types of operands and results.
    Types(Types),
    /// The parts that only one form has.
    Own(Reader),
}

/// How an attribute is written in a pretty form.
#[derive(Clone, Copy)]
pub(super) enum Kind {
    /// An integer without its type: the number of bits and the sign.
    Integer(u32, Sign),
    /// A number without its type `f64`.
    Float,
    /// `true` or `false`.
    Bool,
    /// `[0, 1]`.
    Integers,
    /// `"text"`.
    Text,
    /// `@name`, as a string.
    Name,
    /// `@name`.
    Symbol,
    /// A word of an attribute of the operation's dialect: `FLOAT` of `comparison_type`.
    Word(&'static str),
    /// One of these words, as its number of type `i32`.
    Number(&'static [&'static str]),
    /// The part of an attribute of Shardy after its name: `<@mesh, [{}]>` of `sharding`.
    Sharding(&'static str),
    /// `[<@mesh, [{}]>, ...]`.
    Shardings,
    /// An attribute as it is elsewhere.
    Any,
}

impl Parser<'_> {
    /// Takes the parts of a form.
    pub(super) fn parts(&mut self, parts: &[Part], draft: &mut Draft) -> Parse<()> {
        parts.iter().try_for_each(|part| self.part(part, draft))
    }

    fn part(&mut self, part: &Part, draft: &mut Draft) -> Parse<()> {
        match part {
            Part::Text(text) => self.fixed(text),
            Part::Operand => {
                self.skip();
                let start = self.position;
                let operand = self.operand()?;
                if draft.operands.is_empty() {
                    draft.place = self.span_since(start);
                }
                draft.operands.push(operand);
                Ok(())
            }
            Part::Operands => self.operands(draft),
            Part::OperandsBefore => {
                while self.peek() == b'%' {
                    draft.operands.push(self.operand()?);
                    self.expect(",")?;
                }
                Ok(())
            }
            Part::Attribute(name, kind) => {
                let value = self.kind(*kind, draft)?;
                draft.set(name, value);
                Ok(())
            }
            Part::Maybe(parts) => match parts.split_first() {
                Some((Part::Text(text), rest)) if self.accept_fixed(text) => {
                    self.parts(rest, draft)
                }
                _ => Ok(()),
            },
            Part::Dictionary => self.optional_dictionary(draft),
            Part::Types(types) => self.form_types(*types, draft),
            Part::Own(reader) => reader(self, draft),
        }
    }

    /// Takes operands with commas between them, or none.
    pub(super) fn operands(&mut self, draft: &mut Draft) -> Parse<()> {
        if self.peek() != b'%' {
            return Ok(());
        }
        draft.operands.push(self.operand()?);
        while self.accept(",") {
            draft.operands.push(self.operand()?);
        }
        Ok(())
    }

    pub(super) fn optional_dictionary(&mut self, draft: &mut Draft) -> Parse<()> {
        if self.peek() == b'{' { self.dictionary_into(&mut draft.attributes) } else { Ok(()) }
    }

    fn accept_fixed(&mut self, text: &str) -> bool {
        if text.starts_with(|c: char| c.is_ascii_alphabetic()) {
            self.accept_word(text)
        } else {
            self.accept(text)
        }
    }

    fn fixed(&mut self, text: &str) -> Parse<()> {
        if self.accept_fixed(text) { Ok(()) } else { Err(self.unexpected(format!("`{text}`"))) }
    }

    fn kind(&mut self, kind: Kind, draft: &Draft) -> Parse<Attribute> {
        Ok(match kind {
            Kind::Integer(bits, sign) => {
                let value = self.number("an integer")?.integer()?;
                let ty = match sign {
                    Sign::Signless => integer_type(bits),
                    _ => Type::Scalar(Scalar::Integer { bits, sign }),
                };
                Attribute::Integer(value, ty)
            }
            Kind::Float => {
                let value = self.number("a number")?.decimal()?;
                Attribute::Float(value, Type::Scalar(Scalar::Float("f64".into())))
            }
            Kind::Bool => Attribute::Bool(self.truth()?),
            Kind::Integers => Attribute::DenseArray(DenseArray::I64(self.integers()?)),
            Kind::Text => Attribute::String(self.string("a string in quotes")?),
            Kind::Name => Attribute::String(self.symbol_name()?.as_bytes().into()),
            Kind::Symbol => Attribute::Symbol(self.symbol()?),
            Kind::Word(name) => {
                let word = self.word("a word, as `DEFAULT`")?;
                word_attribute(&draft.dialect(), name, word)
            }
            Kind::Number(words) => self.numbered_word(words)?,
            Kind::Sharding(name) => self.sharding(name)?,
            Kind::Shardings => self.shardings()?,
            Kind::Any => self.attribute()?,
        })
    }
}
