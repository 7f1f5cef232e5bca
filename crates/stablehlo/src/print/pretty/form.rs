//! The writer of the parts of a pretty form.

use smol_str::SmolStr;

use super::super::{attribute, elements, list, quoted, word};
use super::{Fit, Printer, Unfit};
use crate::dialect::{self, Need, Op, Own, Part, ValueKind};
use crate::mlir::{Attribute, DenseArray, DialectAttribute, Operation, Scalar, Sign, Type, Value};

/// How far an operation is written.
pub(super) struct FormState<'p> {
    pub(super) operation: &'p Operation,
    op: &'static Op,
    pub(super) depth: usize,
    /// The operands that are not written yet.
    pub(super) operands: &'p [Value],
    /// The attributes that are written, or whose default is left out.
    pub(super) written: Vec<&'static str>,
    pub(super) has_types: bool,
    pub(super) has_regions: bool,
    /// Whether a space follows what was written before, and whether that was punctuation.
    has_space: bool,
    is_punctuation: bool,
}

impl<'p> Printer<'p> {
    /// Writes an operation in the form of its op.
    pub(super) fn form(&mut self, op: &'static Op, operation: &'p Operation, depth: usize) -> Fit {
        let mut state = FormState {
            operation,
            op,
            depth,
            operands: &operation.operands,
            written: Vec::new(),
            has_types: false,
            has_regions: false,
            has_space: true,
            is_punctuation: false,
        };
        note_attributes(op.form, &mut state);
        self.parts(op.form, &mut state)?;
        let is_complete = state.operands.is_empty()
            && (state.has_regions || operation.regions.is_empty())
            && (state.has_types || (operation.operands.is_empty() && operation.results.is_empty()));
        if is_complete { Ok(()) } else { Err(Unfit) }
    }

    fn parts(&mut self, parts: &'static [Part], state: &mut FormState<'p>) -> Fit {
        parts.iter().try_for_each(|part| self.part(part, state))
    }

    fn part(&mut self, part: &'static Part, state: &mut FormState<'p>) -> Fit {
        match part {
            Part::Text(text) => self.literal(text, state),
            Part::Glued(text) => {
                self.out.push_str(text);
                (state.has_space, state.is_punctuation) = (false, true);
            }
            Part::Operand => {
                let (&first, rest) = state.operands.split_first().ok_or(Unfit)?;
                state.operands = rest;
                self.space(state);
                self.value(first);
            }
            // MLIR cannot read what it writes for a form that has a comma before no operands.
            Part::SomeOperands | Part::OperandsBefore if state.operands.is_empty() => {}
            Part::Operands | Part::SomeOperands => {
                self.space(state);
                self.values(std::mem::take(&mut state.operands));
            }
            Part::OperandsBefore => {
                self.space(state);
                self.values(std::mem::take(&mut state.operands));
                self.out.push(',');
            }
            Part::Attribute(name) => {
                let value = state.operation.attribute(name).ok_or(Unfit)?;
                let kind = state.op.attribute(name).ok_or(Unfit)?.kind;
                self.space(state);
                self.kind(kind, value, state)?;
            }
            Part::Maybe(parts) if is_there(parts, state) => self.parts(parts, state)?,
            Part::Maybe(_) => {}
            Part::Dictionary => {
                self.dictionary(state);
                state.is_punctuation = false;
            }
            Part::Types(rule) => {
                state.has_types = true;
                self.space(state);
                self.form_types(*rule, state.operation)?;
            }
            Part::Own(own) => {
                let is_tight = match own {
                    Own::Precision
                    | Own::GeneratorState
                    | Own::CompositeRegions
                    | Own::Module
                    | Own::Function
                    | Own::Reduce
                    | Own::While => true,
                    Own::OperandsOrNone => state.operands.is_empty(),
                    _ => false,
                };
                if !is_tight {
                    self.space(state);
                }
                self.own(*own, state)?;
            }
        }
        Ok(())
    }

    /// Writes the space before anything but a literal.
    fn space(&mut self, state: &mut FormState<'_>) {
        if state.has_space || !state.is_punctuation {
            self.out.push(' ');
        }
        (state.has_space, state.is_punctuation) = (true, false);
    }

    /// Writes a literal with the spaces that MLIR's generator of printers gives it.
    fn literal(&mut self, text: &str, state: &mut FormState<'_>) {
        let tight = if state.is_punctuation { ">)}]," } else { "<>(){}[]," };
        if state.has_space && !(text.len() == 1 && tight.contains(text)) {
            self.out.push(' ');
        }
        self.out.push_str(text);
        state.has_space = !(text.len() == 1 && "<({[".contains(text));
        state.is_punctuation = !text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    }

    /// Writes the attributes that stand nowhere else in the form.
    pub(super) fn dictionary(&mut self, state: &FormState<'_>) {
        let operation = state.operation;
        self.dictionary_without(operation, |name| state.written.contains(&name));
    }

    /// Writes attributes in braces after a space, if some are left.
    pub(super) fn dictionary_without(
        &mut self,
        operation: &Operation,
        is_written: impl Fn(&str) -> bool,
    ) {
        let rest = rest(operation, is_written);
        if !rest.is_empty() {
            self.out.push(' ');
            attribute::dictionary_of(&mut self.out, &rest, 0);
        }
    }

    fn kind(&mut self, kind: ValueKind, value: &Attribute, state: &FormState<'_>) -> Fit {
        let out = &mut self.out;
        match (kind, value) {
            (ValueKind::OneDim, Attribute::Integer(..)) => {
                self.kind(ValueKind::Integer(64, Sign::Signless), value, state)?;
            }
            (ValueKind::Integer(bits, sign), Attribute::Integer(value, ty)) => {
                let own = Type::Scalar(Scalar::Integer { bits, sign });
                if *ty != own {
                    return Err(Unfit);
                }
                out.push_str(&value.to_string());
            }
            (
                ValueKind::Float(64),
                Attribute::Float(value, ty @ Type::Scalar(Scalar::Float(name))),
            ) if name == "f64" && value.is_finite() => {
                elements::float(out, *value, ty);
            }
            (ValueKind::Bool, Attribute::Bool(value)) => {
                out.push_str(if *value { "true" } else { "false" });
            }
            (ValueKind::Dims, Attribute::DenseArray(DenseArray::I64(values))) => {
                integers(out, values);
            }
            (ValueKind::Text, Attribute::String(bytes)) => quoted(out, bytes),
            (ValueKind::Name, Attribute::String(bytes)) => {
                out.push('@');
                word(out, std::str::from_utf8(bytes).map_err(|_| Unfit)?);
            }
            (ValueKind::Symbol, Attribute::Symbol(_)) | (ValueKind::Any, _) => {
                attribute::push(out, value, 0);
            }
            (
                ValueKind::Word(name) | ValueKind::PrefixedWord(name, _),
                Attribute::Dialect(attribute),
            ) => {
                let dialect = state.operation.name.split('.').next().unwrap_or_default();
                out.push_str(word_of(attribute, dialect, name)?);
            }
            (ValueKind::Number(words), Attribute::Integer(number, ty)) => {
                out.push_str(numbered(words, *number, ty)?);
            }
            (ValueKind::Sharding(name), Attribute::Opaque { dialect, text })
                if dialect == "sdy" =>
            {
                let rest = text.strip_prefix(name).filter(|rest| rest.starts_with(['<', '[', '{']));
                out.push_str(rest.ok_or(Unfit)?);
            }
            (ValueKind::Shardings, Attribute::Opaque { dialect, text }) if dialect == "sdy" => {
                let rest = text.strip_prefix("sharding_per_value<");
                out.push_str(rest.and_then(|rest| rest.strip_suffix('>')).ok_or(Unfit)?);
            }
            _ => return Err(Unfit),
        }
        Ok(())
    }
}

/// Returns the attributes that are not written elsewhere and say more than their default, by name.
pub(super) fn rest(
    operation: &Operation,
    is_written: impl Fn(&str) -> bool,
) -> Vec<&(SmolStr, Attribute)> {
    let mut rest: Vec<_> = operation
        .attributes
        .iter()
        .filter(|(key, value)| !is_written(key) && !is_default(operation, key, value))
        .collect();
    rest.sort_by(|(a, _), (b, _)| a.cmp(b));
    rest
}

/// Checks whether MLIR leaves an attribute out, since it says what holds without it.
fn is_default(operation: &Operation, name: &str, value: &Attribute) -> bool {
    let attr = dialect::op(&operation.name).and_then(|op| op.attribute(name));
    match attr.map(|attr| attr.need) {
        Some(Need::Default(initial)) => initial.is(value, &operation.attributes),
        _ => false,
    }
}

/// Notes the attributes that have a place of their own in a form.
fn note_attributes(parts: &'static [Part], state: &mut FormState<'_>) {
    for part in parts {
        match part {
            Part::Attribute(name) => state.written.push(name),
            Part::Maybe(parts) => note_attributes(parts, state),
            Part::Own(own) => state.written.extend(own.attributes()),
            _ => {}
        }
    }
}

/// Checks whether parts that may be missing are there.
fn is_there(parts: &[Part], state: &FormState<'_>) -> bool {
    let operation = state.operation;
    let attribute = parts.iter().find_map(|part| match part {
        Part::Attribute(name) => Some(name),
        _ => None,
    });
    match (attribute, parts) {
        (Some(name), _) => {
            operation.attribute(name).is_some_and(|value| !is_default(operation, name, value))
        }
        (None, _) => !operation.operands.is_empty(),
    }
}

/// Writes `[0, 1]`.
pub(super) fn integers(out: &mut String, values: &[i64]) {
    out.push('[');
    list(out, values, |out, value| out.push_str(&value.to_string()));
    out.push(']');
}

/// Returns the word of an attribute of a dialect.
pub(super) fn word_of<'a>(
    attribute: &'a DialectAttribute,
    dialect: &str,
    name: &str,
) -> Result<&'a str, Unfit> {
    match attribute.parameters.as_slice() {
        [(key, Attribute::String(bytes))]
            if key == "value" && attribute.dialect == dialect && attribute.name == name =>
        {
            let word = std::str::from_utf8(bytes).map_err(|_| Unfit)?;
            let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
            if word.chars().all(is_word) { Ok(word) } else { Err(Unfit) }
        }
        _ => Err(Unfit),
    }
}

/// Returns the word that stands for a number of type `i32`.
pub(super) fn numbered(
    words: &[&'static str],
    number: i128,
    ty: &Type,
) -> Result<&'static str, Unfit> {
    let i32 = Type::Scalar(Scalar::Integer { bits: 32, sign: Sign::Signless });
    let at = usize::try_from(number).ok().filter(|_| *ty == i32).ok_or(Unfit)?;
    words.get(at).copied().ok_or(Unfit)
}
