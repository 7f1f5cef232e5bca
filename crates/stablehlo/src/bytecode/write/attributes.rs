//! Attributes and locations.

use std::sync::Arc;

use smol_str::SmolStr;

use super::emitter::Emitter;
use super::tables::Encoding;
use super::types::Encoded;
use super::{Format, Version, Writer};
use crate::bytecode::builtin::code;
use crate::bytecode::{dense, stablehlo};
use crate::dialect::{self, Field, Structure};
use crate::mlir::{
    Attribute, DenseArray, DenseElements, DialectAttribute, Elements, Location, Scalar, Sign,
    TensorType, Type, value_of,
};
use crate::{text, vhlo};

impl Writer<'_> {
    /// Returns the number of an attribute of a dialect with its own encoding.
    pub(super) fn intern(&mut self, dialect: &str, emitter: Emitter) -> u64 {
        let bytes = emitter.bytes.into();
        self.tables.attributes.of(&Encoding { dialect: dialect.into(), bytes, custom: true })
    }

    /// Returns the number of an attribute that has only a text.
    fn intern_text(&mut self, dialect: &SmolStr, text: &str) -> u64 {
        let mut to = Emitter::default();
        to.text(&format!("#{dialect}<{text}>"));
        let (dialect, bytes) = (dialect.clone(), to.bytes.into());
        self.tables.attributes.of(&Encoding { dialect, bytes, custom: false })
    }

    /// Returns the number of a string attribute of MLIR's own dialect.
    pub(super) fn name(&mut self, name: &str) -> u64 {
        let mut to = Emitter::default();
        to.varint(code::STRING);
        to.varint(self.tables.string(name.as_bytes()));
        self.intern("builtin", to)
    }

    /// Returns the number of the dictionary of an operation's attributes. Its names are strings of
    /// MLIR's own dialect in portable artifacts, too.
    pub(super) fn dictionary(
        &mut self,
        attributes: &[(SmolStr, Attribute)],
        format: Format,
    ) -> Encoded {
        let mut to = Emitter::default();
        to.varint(code::DICTIONARY);
        let mut sorted: Vec<_> = attributes.iter().collect();
        sorted.sort_by(|a, b| a.0.cmp(&b.0));
        to.count(sorted.len());
        for (name, value) in sorted {
            to.varint(self.name(name));
            to.varint(self.attribute(value, format)?);
        }
        Ok(self.intern("builtin", to))
    }

    /// Returns the number of an attribute.
    pub(super) fn attribute(&mut self, value: &Attribute, format: Format) -> Encoded {
        match value {
            Attribute::Dialect(attribute) => self.structure(attribute, format),
            Attribute::Opaque { dialect, text } => Ok(self.intern_text(dialect, text)),
            Attribute::Location(location) => self.location(location),
            Attribute::Resource { .. } | Attribute::Unit => self.plain(value),
            _ => match format {
                Format::Plain => self.plain(value),
                Format::Portable(_) => self.portable(value, format),
            },
        }
    }

    pub(super) fn attributes(
        &mut self,
        values: &[Attribute],
        format: Format,
        to: &mut Emitter,
    ) -> Result<(), String> {
        to.count(values.len());
        for value in values {
            to.varint(self.attribute(value, format)?);
        }
        Ok(())
    }

    fn plain(&mut self, value: &Attribute) -> Encoded {
        let format = Format::Plain;
        let mut to = Emitter::default();
        match value {
            Attribute::Unit => to.varint(code::UNIT),
            Attribute::Bool(value) => {
                let ty = Type::Scalar(Scalar::Integer { bits: 1, sign: Sign::Signless });
                to.varint(code::INTEGER);
                to.varint(self.ty(&ty, format)?);
                to.byte(u8::from(*value));
            }
            Attribute::Integer(value, ty) => {
                to.varint(code::INTEGER);
                to.varint(self.ty(ty, format)?);
                integer(*value, ty, &mut to)?;
            }
            Attribute::Float(value, ty) => {
                to.varint(code::FLOAT);
                to.varint(self.ty(ty, format)?);
                float(*value, ty, &mut to)?;
            }
            Attribute::String(string) => {
                to.varint(code::STRING);
                to.varint(self.tables.string(string));
            }
            Attribute::Symbol(names) => self.symbol(names, &mut to),
            Attribute::Array(items) => {
                to.varint(code::ARRAY);
                self.attributes(items, format, &mut to)?;
            }
            Attribute::Dictionary(attributes) => return self.dictionary(attributes, format),
            Attribute::DenseArray(array) => {
                let (element, count, bytes) = contents(array);
                to.varint(code::DENSE_ARRAY);
                to.varint(self.ty(&Type::Scalar(element), format)?);
                to.count(count);
                to.blob(&bytes);
            }
            Attribute::Dense(constant) => self.constant(constant, &mut to)?,
            Attribute::Resource { name, bytes, ty } => {
                to.varint(code::RESOURCE);
                to.varint(self.ty(ty, format)?);
                let number = self.tables.resources.of(name);
                to.varint(number);
                if number as usize >= self.tables.resource_bytes.len() {
                    self.tables.resource_bytes.push(bytes.clone());
                }
            }
            Attribute::Type(ty) => {
                to.varint(code::TYPE);
                to.varint(self.ty(ty, format)?);
            }
            Attribute::Location(_) | Attribute::Dialect(_) | Attribute::Opaque { .. } => {
                return self.attribute(value, format);
            }
        }
        Ok(self.intern("builtin", to))
    }

    fn symbol(&mut self, names: &[SmolStr], to: &mut Emitter) {
        let Some((first, nested)) = names.split_first() else { return };
        if nested.is_empty() {
            to.varint(code::FLAT_SYMBOL);
            to.varint(self.name(first));
            return;
        }
        to.varint(code::SYMBOL);
        to.varint(self.name(first));
        to.count(nested.len());
        for name in nested {
            let mut flat = Emitter::default();
            flat.varint(code::FLAT_SYMBOL);
            flat.varint(self.name(name));
            to.varint(self.intern("builtin", flat));
        }
    }

    fn constant(&mut self, constant: &DenseElements, to: &mut Emitter) -> Result<(), String> {
        let ty = self.ty(&constant.ty, Format::Plain)?;
        match &constant.elements {
            Elements::Bytes(bytes) => {
                to.varint(code::DENSE);
                to.varint(ty);
                to.blob(&packed(&constant.ty, bytes));
            }
            Elements::Strings(strings) => {
                to.varint(code::DENSE_STRINGS);
                to.varint(ty);
                to.varint(u64::from(strings.len() == 1));
                for string in strings {
                    to.varint(self.tables.string(string));
                }
            }
        }
        Ok(())
    }

    /// An attribute of VHLO.
    fn portable(&mut self, value: &Attribute, format: Format) -> Encoded {
        use vhlo::code;
        let mut to = Emitter::default();
        match value {
            Attribute::Bool(value) => {
                to.varint(code::BOOL);
                to.varint(u64::from(*value));
            }
            Attribute::Integer(value, ty) => {
                to.varint(code::INTEGER);
                to.varint(self.ty(ty, format)?);
                integer(*value, ty, &mut to)?;
            }
            Attribute::Float(value, ty) => {
                to.varint(code::FLOAT);
                to.varint(self.ty(ty, format)?);
                float(*value, ty, &mut to)?;
            }
            Attribute::String(string) => {
                to.varint(code::STRING);
                to.varint(self.tables.string(string));
            }
            Attribute::Symbol(names) => match names.as_slice() {
                [name] => {
                    to.varint(code::STRING);
                    to.varint(self.tables.string(name.as_bytes()));
                }
                _ => return Err("portable artifacts have no nested symbols".into()),
            },
            Attribute::Array(items) => {
                to.varint(code::ARRAY);
                self.attributes(items, format, &mut to)?;
            }
            Attribute::Dictionary(named) => self.portable_dictionary(named, format, &mut to)?,
            Attribute::DenseArray(array) => {
                let (element, count, bytes) = contents(array);
                let dims = std::iter::once(i64::try_from(count).ok()).collect();
                let ty = Type::Tensor(TensorType { dims, element, encoding: None });
                to.varint(code::TENSOR);
                to.varint(self.ty(&ty, format)?);
                to.blob(&packed(&ty, &bytes));
            }
            Attribute::Dense(DenseElements { ty, elements: Elements::Bytes(bytes) }) => {
                to.varint(code::TENSOR);
                to.varint(self.ty(ty, format)?);
                to.blob(&packed(ty, bytes));
            }
            Attribute::Type(ty) => {
                to.varint(code::TYPE);
                to.varint(self.ty(ty, format)?);
            }
            _ => return self.plain(value),
        }
        Ok(self.intern("vhlo", to))
    }

    fn portable_dictionary(
        &mut self,
        attributes: &[(SmolStr, Attribute)],
        format: Format,
        to: &mut Emitter,
    ) -> Result<(), String> {
        to.varint(vhlo::code::DICTIONARY);
        to.count(attributes.len());
        for (name, value) in attributes {
            let name = Attribute::String(Arc::from(name.as_bytes()));
            to.varint(self.attribute(&name, format)?);
            to.varint(self.attribute(value, format)?);
        }
        Ok(())
    }

    /// A word or a structure of StableHLO or CHLO.
    fn structure(&mut self, attribute: &DialectAttribute, format: Format) -> Encoded {
        let portable = matches!(format, Format::Portable(_));
        let mut to = Emitter::default();
        let name = attribute.name.as_str();
        if attribute.dialect == "vhlo" {
            if let Some(Attribute::Integer(version, _)) = value_of(&attribute.parameters, "value") {
                to.varint(vhlo::code::API_VERSION);
                to.varint(u64::try_from(*version).map_err(|_| "`api_version` is negative")?);
            }
            return Ok(self.intern("vhlo", to));
        }
        if let Some(number) = self.mesh(attribute, format)? {
            return Ok(number);
        }
        let own = attribute.dialect == "stablehlo";
        let of = if own && portable { "vhlo" } else { attribute.dialect.as_str() };
        let value = value_of(&attribute.parameters, "value");
        match value {
            Some(Attribute::String(word)) => {
                let words = dialect::words(name);
                let code = words.and_then(|words| match (own, portable) {
                    (true, false) => Some(words.codes.0),
                    (true, true) => Some(words.codes.1),
                    (false, _) => stablehlo::chlo_code(words),
                });
                let number = words.and_then(|words| words.number(word));
                if let (Some(code), Some(number)) = (code, number) {
                    to.varint(code);
                    to.varint(number);
                    return Ok(self.intern(of, to));
                }
            }
            Some(Attribute::DenseArray(DenseArray::I64(values))) if own && name == "bounds" => {
                to.varint(if portable { vhlo::code::BOUNDS } else { stablehlo::BOUNDS });
                to.signed_list(values);
                return Ok(self.intern(of, to));
            }
            _ => {}
        }
        let structure = dialect::structure(|known| known.name == name).filter(|_| own);
        let code = structure.and_then(|known| if portable { known.codes.1 } else { known.codes.0 });
        match structure.zip(code) {
            Some((structure, code)) => {
                to.varint(code);
                self.fields(structure, attribute, format, &mut to)?;
                Ok(self.intern(of, to))
            }
            None => match text_of(attribute).filter(|_| !(own && portable)) {
                Some(text) => Ok(self.intern_text(&attribute.dialect, &text)),
                None => {
                    Err(format!("the attribute `#{}.{name}` has no encoding", attribute.dialect))
                }
            },
        }
    }

    fn fields(
        &mut self,
        structure: &Structure,
        attribute: &DialectAttribute,
        format: Format,
        to: &mut Emitter,
    ) -> Result<(), String> {
        for parameter in structure.parameters {
            let name = parameter.name;
            let value = value_of(&attribute.parameters, name);
            match (parameter.field, value) {
                (Field::Number | Field::NumberUnlessZero, Some(Attribute::Integer(value, _))) => {
                    to.signed(i64::try_from(*value).map_err(|_| "a number is too great")?);
                }
                (Field::NumberUnlessZero, None) => to.signed(0),
                (
                    Field::List | Field::ListUnlessEmpty,
                    Some(Attribute::DenseArray(DenseArray::I64(values))),
                ) => to.signed_list(values),
                (Field::ListUnlessEmpty, None) => to.signed_list(&[]),
                (Field::Type, Some(Attribute::Type(ty))) => to.varint(self.ty(ty, format)?),
                (Field::Bool, Some(Attribute::Bool(value))) => to.byte(u8::from(*value)),
                (Field::Double, Some(Attribute::Float(value, _))) => {
                    to.signed(value.to_bits() as i64);
                }
                (Field::Double, None) => to.signed(0),
                (Field::Attribute, Some(value)) => to.varint(self.attribute(value, format)?),
                _ => {
                    let structure = structure.name;
                    return Err(format!(
                        "the parameter `{name}` of `{structure}` is missing or has a value of another kind"
                    ));
                }
            }
        }
        Ok(())
    }

    /// Returns whether readers know locations that have an end.
    fn has_ranges(&self) -> bool {
        match self.format {
            Format::Plain => true,
            Format::Portable(version) => version >= (Version { major: 1, minor: 9 }),
        }
    }

    /// Returns the number of a location.
    pub(super) fn location(&mut self, location: &Arc<Location>) -> Encoded {
        let address = Arc::as_ptr(location) as usize;
        if **location != Location::Unknown
            && let Some(number) = self.locations.get(&address)
        {
            return Ok(*number);
        }
        let mut to = Emitter::default();
        match &**location {
            Location::Unknown => to.varint(code::UNKNOWN),
            Location::File { file, start, end } => {
                let is_point = start == end || !self.has_ranges();
                to.varint(if is_point { code::FILE } else { code::FILE_RANGE });
                to.varint(self.name(file));
                if is_point {
                    to.varint(start.0.into());
                    to.varint(start.1.into());
                } else {
                    to.count(4);
                    [start.0, start.1, end.0, end.1].iter().for_each(|n| to.varint(u64::from(*n)));
                }
            }
            Location::Name { name, child } => {
                to.varint(code::NAME);
                to.varint(self.name(name));
                to.varint(self.location(child)?);
            }
            Location::Call { callee, caller } => {
                to.varint(code::CALL);
                to.varint(self.location(callee)?);
                to.varint(self.location(caller)?);
            }
            Location::Fused { metadata, parts } => {
                to.varint(match metadata {
                    Some(_) => code::FUSED_WITH_METADATA,
                    None => code::FUSED,
                });
                to.count(parts.len());
                for part in parts {
                    to.varint(self.location(part)?);
                }
                if let Some(metadata) = metadata {
                    to.varint(self.attribute(metadata, Format::Plain)?);
                }
            }
        }
        let number = self.intern("builtin", to);
        self.locations.insert(address, number);
        Ok(number)
    }
}

/// Writes the bits of a number of this width.
fn bits(value: i128, width: u32, to: &mut Emitter) -> Result<(), String> {
    match width {
        0..=8 => to.byte((value & 0xFF) as u8),
        9..=64 => {
            // The reader takes the bits of the type's width, without its sign.
            let mask = if width == 64 { u64::MAX } else { (1 << width) - 1 };
            to.signed((value as u64 & mask) as i64);
        }
        65..=128 => {
            to.count(2);
            to.signed(value as u64 as i64);
            to.signed((value >> 64) as i64);
        }
        _ => return Err("integers of more than 128 bits cannot be written".into()),
    }
    Ok(())
}

fn integer(value: i128, ty: &Type, to: &mut Emitter) -> Result<(), String> {
    match ty {
        Type::Scalar(Scalar::Integer { bits: width, .. }) => bits(value, *width, to),
        Type::Scalar(Scalar::Index) => bits(value, 64, to),
        _ => Err("an integer has a type that is no integer type".into()),
    }
}

fn float(value: f64, ty: &Type, to: &mut Emitter) -> Result<(), String> {
    let Type::Scalar(Scalar::Float(name)) = ty else {
        return Err("a float has a type that is no float type".into());
    };
    match (text::float_width(name), text::bits_of_float(name, value)) {
        (Some(width), Some(encoded)) => bits(encoded.into(), width, to),
        _ => Err(format!("floats of the type `{name}` cannot be written")),
    }
}

/// The element type, the number of elements and the bytes of an array.
fn contents(array: &DenseArray) -> (Scalar, usize, Vec<u8>) {
    let integer = |bits| Scalar::Integer { bits, sign: Sign::Signless };
    match array {
        DenseArray::Bool(values) => {
            (integer(1), values.len(), values.iter().map(|&value| u8::from(value)).collect())
        }
        DenseArray::I64(values) => {
            (integer(64), values.len(), values.iter().flat_map(|v| v.to_le_bytes()).collect())
        }
        DenseArray::Integer(bits, values) => {
            let width = dense::bytes_of(&integer(*bits)).unwrap_or(8);
            let bytes = values.iter().flat_map(|v| v.to_le_bytes().into_iter().take(width));
            (integer(*bits), values.len(), bytes.collect())
        }
        DenseArray::F32(values) => {
            let bytes = values.iter().flat_map(|v| v.to_le_bytes()).collect();
            (Scalar::Float("f32".into()), values.len(), bytes)
        }
        DenseArray::F64(values) => {
            let bytes = values.iter().flat_map(|v| v.to_le_bytes()).collect();
            (Scalar::Float("f64".into()), values.len(), bytes)
        }
    }
}

/// The bytes of a constant as they are stored: truth values as bits.
fn packed(ty: &Type, bytes: &[u8]) -> Vec<u8> {
    let truth = Scalar::Integer { bits: 1, sign: Sign::Signless };
    match (ty, bytes) {
        (Type::Tensor(tensor), [only]) if tensor.element == truth => {
            vec![if *only == 0 { 0 } else { 0xFF }]
        }
        (Type::Tensor(tensor), _) if tensor.element == truth => {
            let bit = |(index, &byte): (usize, &u8)| u8::from(byte != 0) << index;
            bytes.chunks(8).map(|group| group.iter().enumerate().map(bit).sum()).collect()
        }
        _ => bytes.to_vec(),
    }
}

/// The text of an attribute of words and lists after the name of its dialect.
fn text_of(attribute: &DialectAttribute) -> Option<String> {
    let name = &attribute.name;
    if let [(_, Attribute::String(word))] = attribute.parameters.as_slice() {
        return Some(format!("{name} {}", std::str::from_utf8(word).ok()?));
    }
    let parameter = |(name, value): &(SmolStr, Attribute)| match value {
        Attribute::DenseArray(DenseArray::I64(values)) => Some(format!("{name} = {values:?}")),
        Attribute::Integer(value, _) => Some(format!("{name} = {value}")),
        _ => None,
    };
    let parameters: Option<Vec<String>> = attribute.parameters.iter().map(parameter).collect();
    Some(format!("{name}<{}>", parameters?.join(", ")))
}
