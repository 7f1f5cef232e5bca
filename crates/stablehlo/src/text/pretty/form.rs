//! The reader of the parts of a pretty form.

use super::super::operation::Draft;
use super::super::{Parse, Parser};
use crate::dialect::{Op, Own, Part, ValueKind};
use crate::mlir::{Attribute, Scalar, Sign, Type};

impl Parser<'_> {
    /// Takes the parts of a form.
    pub(super) fn parts(&mut self, op: &Op, parts: &[Part], draft: &mut Draft) -> Parse<()> {
        parts.iter().try_for_each(|part| self.part(op, part, draft))
    }

    fn part(&mut self, op: &Op, part: &Part, draft: &mut Draft) -> Parse<()> {
        match part {
            Part::Text(text) | Part::Glued(text) => self.fixed(text),
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
            Part::Operands | Part::SomeOperands => self.operands(draft),
            Part::OperandsBefore => {
                while self.peek() == b'%' {
                    draft.operands.push(self.operand()?);
                    self.expect(",")?;
                }
                Ok(())
            }
            Part::Attribute(name) => {
                let kind = op.attribute(name).map_or(ValueKind::Any, |attr| attr.kind);
                let value = self.kind(kind, draft)?;
                draft.set(name, value);
                Ok(())
            }
            Part::Maybe(parts) => self.maybe(op, parts, draft),
            Part::Dictionary => self.optional_dictionary(draft),
            Part::Types(types) => self.form_types(*types, draft),
            Part::Own(own) => self.own(*own, draft),
        }
    }

    /// Takes parts that are there if the literals at their beginning are.
    fn maybe(&mut self, op: &Op, parts: &[Part], draft: &mut Draft) -> Parse<()> {
        let before = self.position;
        let mut rest = parts;
        // Two groups may begin with the same comma.
        for _ in 0..2 {
            let Some((Part::Text(text) | Part::Glued(text), after)) = rest.split_first() else {
                break;
            };
            if !self.accept_fixed(text) {
                self.position = before;
                return Ok(());
            }
            rest = after;
        }
        self.parts(op, rest, draft)
    }

    fn own(&mut self, own: Own, draft: &mut Draft) -> Parse<()> {
        match own {
            Own::Constant => self.constant(draft),
            Own::SliceRanges => self.slice_ranges(draft),
            Own::DotDims => self.dot_dims(draft),
            Own::Precision => self.precision(draft),
            Own::Convolution => self.convolution(draft),
            Own::ReducedFormat => self.reduced_format(draft),
            Own::CompositeRegions => self.composite_regions(draft),
            Own::Scan => self.scan(draft),
            Own::GeneratorState => self.generator_state(draft),
            Own::LabelledRegion => self.labelled_region(draft),
            Own::ReductionKind => self.reduction_kind(draft),
            Own::OperandsOrNone if self.accept("(") => self.expect(")"),
            Own::OperandsOrNone => self.operands(draft),
            Own::Module => self.module(draft),
            Own::Function => self.function(draft),
            Own::Reduce => self.reduce(draft),
            Own::While => self.while_loop(draft),
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

    fn kind(&mut self, kind: ValueKind, draft: &Draft) -> Parse<Attribute> {
        Ok(match kind {
            ValueKind::Integer(bits, sign) => {
                let value = self.number("an integer")?.integer()?;
                Attribute::Integer(value, Type::Scalar(Scalar::Integer { bits, sign }))
            }
            ValueKind::OneDim => self.kind(ValueKind::Integer(64, Sign::Signless), draft)?,
            ValueKind::Float(bits) => {
                let value = self.number("a number")?.decimal()?;
                Attribute::Float(value, Type::Scalar(Scalar::Float(format!("f{bits}").into())))
            }
            ValueKind::Bool => Attribute::Bool(self.truth()?),
            ValueKind::Dims => Attribute::i64s(self.integers()?),
            ValueKind::Text => Attribute::String(self.string("a string in quotes")?),
            ValueKind::Name => Attribute::text(&self.symbol_name()?),
            ValueKind::Symbol => Attribute::Symbol(self.symbol()?),
            ValueKind::Word(name) | ValueKind::PrefixedWord(name, _) => {
                let word = self.word("a word, as `DEFAULT`")?;
                Attribute::word(&draft.dialect(), name, word)
            }
            ValueKind::Number(words) => self.numbered_word(words)?,
            ValueKind::Sharding(name) => self.sharding(name)?,
            ValueKind::Shardings => self.shardings()?,
            // The others are written as they are elsewhere, or by parts of their own.
            ValueKind::Any
            | ValueKind::Accuracy
            | ValueKind::Algorithm
            | ValueKind::Bools
            | ValueKind::Channel
            | ValueKind::Convolution
            | ValueKind::Groups
            | ValueKind::Pairs
            | ValueKind::Precisions
            | ValueKind::Structure(_)
            | ValueKind::Symbols
            | ValueKind::Unit => self.attribute()?,
        })
    }
}
