//! Attributes of dialects: `#stablehlo.dot<...>`.

use std::sync::Arc;

use smol_str::SmolStr;

use super::error::SyntaxError;
use super::number::NumberKind;
use super::{Parse, Parser};
use crate::dialect;
use crate::mlir::{Attribute, Attributes, DenseArray, Scalar, Type};

/// The dialects whose attributes have named parameters here.
const MODELLED: &[&str] = &["stablehlo", "chlo", "mhlo"];

/// Attributes of Shardy that people write.
const SHARDINGS: &[&str] = &["sharding", "sharding_per_value", "mesh", "manual_axes"];

/// Attributes whose parameters are known, beside structures and enumerations.
const OTHERS: &[&str] = &[
    "axis_ref",
    "bounds",
    "custom_call_api_version",
    "mesh",
    "mesh_axis",
    "replica_group_mesh_axes",
    "type_extensions",
];

/// Checks whether the parameters of an attribute are known; one of another name is kept as text.
fn is_known(name: &str) -> bool {
    let is_structure = || dialect::structure(|known| known.name == name).is_some();
    OTHERS.contains(&name) || dialect::words(name).is_some() || is_structure()
}

impl<'s> Parser<'s> {
    /// `#alias`, `#dialect.name<...>` or `#dialect<...>`.
    pub(super) fn hash_attribute(&mut self) -> Parse<Attribute> {
        let start = self.position;
        self.position += 1;
        let name = self.name("the name of an attribute")?;
        if let Some((dialect, name)) = name.split_once('.') {
            return self.dialect_attribute(dialect, name);
        }
        if self.byte(0) != b'<' {
            return self.attribute_alias(start);
        }
        let body = self.position + 1;
        if !MODELLED.contains(&name) || !self.begins_structure(body) {
            let text = self.balanced()?;
            let text = text.get(1..text.len().saturating_sub(1)).unwrap_or("");
            let text = opaque_text(name, text.to_owned());
            return Ok(Attribute::Opaque { dialect: name.into(), text });
        }
        self.position = body;
        let inner = self.word("the name of an attribute")?;
        let attribute = match self.peek() {
            b'<' => self.parameters(name, inner)?,
            _ => Attribute::word(name, inner, self.word("a word, as `DEFAULT`")?),
        };
        self.expect(">")?;
        Ok(attribute)
    }

    /// Checks whether the word at an offset names a known structure.
    fn begins_structure(&mut self, offset: usize) -> bool {
        let before = std::mem::replace(&mut self.position, offset);
        let known = is_known(self.peek_word());
        self.position = before;
        known
    }

    /// The part of `#dialect.name<...>` after the name.
    fn dialect_attribute(&mut self, dialect: &str, name: &str) -> Parse<Attribute> {
        let has_parameters = self.byte(0) == b'<';
        if MODELLED.contains(&dialect) && is_known(name) {
            return match has_parameters {
                true => self.parameters(dialect, name),
                false => Ok(Attribute::structure(dialect, name, Attributes::new())),
            };
        }
        let parameters = if has_parameters { self.balanced()? } else { "" };
        let text = opaque_text(dialect, format!("{name}{parameters}"));
        Ok(Attribute::Opaque { dialect: dialect.into(), text })
    }

    /// `<a = 1, b = [2]>`, or `<WORD>`.
    pub(super) fn parameters(&mut self, dialect: &str, name: &str) -> Parse<Attribute> {
        if name == "conv" {
            self.expect("<")?;
            if !self.accept_word("raw") {
                let attribute = self.convolution_dims(dialect)?;
                self.expect(">")?;
                return Ok(attribute);
            }
            let mut parameters = Attributes::new();
            while !self.accept(">") {
                self.parameter(dialect, &mut parameters)?;
                self.accept(",");
            }
            return Ok(Attribute::structure(dialect, name, parameters));
        }
        if name == "bounds" {
            let mut bounds = Vec::new();
            self.list(("<", ">"), |parser| {
                bounds.push(parser.integer_or_dynamic()?);
                Ok(())
            })?;
            return Ok(bounds_of(dialect, bounds));
        }
        let mut parameters = Attributes::new();
        self.list(("<", ">"), |parser| match parser.peek() {
            // MLIR takes a comma after the last parameter, too.
            b'>' if !parameters.is_empty() => Ok(()),
            _ => parser.parameter(dialect, &mut parameters),
        })?;
        match parameters.as_slice() {
            [(_, Attribute::DenseArray(DenseArray::I64(bounds)))] if name == "type_extensions" => {
                Ok(bounds_of(dialect, bounds.clone()))
            }
            _ => Ok(Attribute::structure(dialect, name, parameters)),
        }
    }

    /// `a = 1`, or a word, which is the parameter `value`.
    fn parameter(&mut self, dialect: &str, parameters: &mut Attributes) -> Parse<()> {
        self.skip();
        let start = self.position;
        let word = self.word("the name of a parameter")?;
        let place = self.span_since(start);
        let (name, value) = match self.accept("=") {
            true => (word, self.parameter_value(dialect)?),
            false => ("value", Attribute::text(word)),
        };
        if parameters.iter().any(|(other, _)| other == name) {
            let message = format!("the parameter `{name}` is here twice");
            return Err(SyntaxError::new(place, message));
        }
        parameters.push((SmolStr::new(name), value));
        Ok(())
    }

    fn parameter_value(&mut self, dialect: &str) -> Parse<Attribute> {
        self.nested(1, |parser| match parser.peek() {
            b'[' => parser.parameter_list(dialect),
            b'(' => parser.sub_axis(dialect),
            b'-' | b'0'..=b'9' => {
                let number = parser.number("a number")?;
                match number.kind {
                    NumberKind::Decimal => {
                        let ty = Type::Scalar(Scalar::Float("f64".into()));
                        Ok(Attribute::Float(number.decimal()?, ty))
                    }
                    _ => Ok(Attribute::Integer(
                        number.integer()?,
                        super::attribute::integer_type(64),
                    )),
                }
            }
            _ => parser.attribute(),
        })
    }

    /// `[0, 1]`, or a list of attributes. In a list, `<...>` is an axis of a mesh.
    fn parameter_list(&mut self, dialect: &str) -> Parse<Attribute> {
        let before = self.position;
        self.expect("[")?;
        let next = self.peek();
        self.position = before;
        if matches!(next, b']' | b'?' | b'-' | b'0'..=b'9') {
            return Ok(Attribute::DenseArray(DenseArray::I64(self.integers()?)));
        }
        let mut items = Vec::new();
        self.list(("[", "]"), |parser| {
            items.push(match parser.peek() {
                b'<' => parser.parameters(dialect, "mesh_axis")?,
                _ => parser.attribute()?,
            });
            Ok(())
        })?;
        Ok(Attribute::Array(items))
    }

    /// `(1)2`: a part of an axis.
    fn sub_axis(&mut self, dialect: &str) -> Parse<Attribute> {
        self.expect("(")?;
        let before = self.integer("an integer")?;
        self.expect(")")?;
        let size = self.integer("an integer")?;
        let parameters = vec![
            ("pre_size".into(), Attribute::i64(before)),
            ("size".into(), Attribute::i64(size)),
        ];
        Ok(Attribute::structure(dialect, "sub_axis_info", parameters))
    }
}

/// Returns the text of an attribute as MLIR prints it, as far as people may write it otherwise:
/// shardings have spaces after commas only.
pub(super) fn opaque_text(dialect: &str, text: String) -> Arc<str> {
    let name = text.split(['<', '{']).next().unwrap_or("");
    if dialect != "sdy" || !SHARDINGS.contains(&name) {
        return text.into();
    }
    let mut spaced = String::with_capacity(text.len());
    let (mut is_string, mut is_escaped) = (false, false);
    for letter in text.chars() {
        if is_string || !letter.is_ascii_whitespace() {
            spaced.push(letter);
        }
        if letter == ',' && !is_string {
            spaced.push(' ');
        }
        is_string ^= letter == '"' && !is_escaped;
        is_escaped = letter == '\\' && !is_escaped;
    }
    spaced.into()
}

/// Bounds of dynamic dims.
fn bounds_of(dialect: &str, bounds: Vec<i64>) -> Attribute {
    let value = Attribute::DenseArray(DenseArray::I64(bounds));
    Attribute::structure(dialect, "bounds", vec![("value".into(), value)])
}
