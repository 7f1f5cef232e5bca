//! Types.

use smol_str::SmolStr;

use super::emitter::Emitter;
use super::tables::Encoding;
use super::{Format, Writer};
use crate::bytecode::builtin::{FLOATS, name_of, type_code};
use crate::bytecode::stablehlo;
use crate::mlir::{Scalar, Sign, TensorType, Type};
use crate::vhlo;

/// The result of encoding an attribute or a type: its number, or why it cannot be written.
pub(super) type Encoded = Result<u64, String>;

impl Writer<'_> {
    /// Returns the number of a type.
    pub(super) fn ty(&mut self, ty: &Type, format: Format) -> Encoded {
        let mut emitter = Emitter::default();
        let dialect = match format {
            Format::Plain => self.plain_type(ty, &mut emitter)?,
            Format::Portable(version) => {
                self.portable_type(ty, format, (version.major, version.minor), &mut emitter)?;
                Some("vhlo".into())
            }
        };
        let (dialect, custom) = match dialect {
            Some(dialect) => (dialect, true),
            None => {
                let text = text_of(ty).ok_or("a type cannot be written")?;
                emitter = Emitter::default();
                emitter.text(&text);
                (dialect_of(&text), false)
            }
        };
        let encoding = Encoding { dialect, bytes: emitter.bytes.into(), custom };
        Ok(self.tables.types.of(&encoding))
    }

    fn types(&mut self, types: &[Type], format: Format, to: &mut Emitter) -> Result<(), String> {
        to.count(types.len());
        for ty in types {
            to.varint(self.ty(ty, format)?);
        }
        Ok(())
    }

    fn scalar(&mut self, scalar: &Scalar, format: Format) -> Encoded {
        self.ty(&Type::Scalar(scalar.clone()), format)
    }

    /// Writes a type, and returns the dialect; `None` if it has only a text.
    fn plain_type(&mut self, ty: &Type, to: &mut Emitter) -> Result<Option<SmolStr>, String> {
        let format = Format::Plain;
        match ty {
            Type::Scalar(Scalar::Integer { bits, sign }) => {
                let sign = match sign {
                    Sign::Signless => 0,
                    Sign::Signed => 1,
                    Sign::Unsigned => 2,
                };
                to.varint(type_code::INTEGER);
                to.varint(u64::from(*bits) << 2 | sign);
            }
            Type::Scalar(Scalar::Index) => to.varint(type_code::INDEX),
            Type::Scalar(Scalar::Float(name)) => {
                match FLOATS.iter().find(|(_, known)| known == name) {
                    Some((code, _)) => to.varint(*code),
                    None => return Ok(None),
                }
            }
            Type::Scalar(Scalar::Complex(part)) => {
                to.varint(type_code::COMPLEX);
                to.varint(self.scalar(part, format)?);
            }
            Type::Scalar(Scalar::Other(_)) | Type::Other { .. } => return Ok(None),
            Type::Tensor(tensor) => {
                let codes = (type_code::TENSOR, type_code::TENSOR_WITH_ENCODING);
                self.tensor(tensor, format, codes, to)?;
            }
            Type::UnrankedTensor(element) => {
                to.varint(type_code::UNRANKED);
                to.varint(self.scalar(element, format)?);
            }
            Type::Tuple(types) => {
                to.varint(type_code::TUPLE);
                self.types(types, format, to)?;
            }
            Type::Function(function) => {
                to.varint(type_code::FUNCTION);
                self.types(&function.inputs, format, to)?;
                self.types(&function.results, format, to)?;
            }
            Type::None => to.varint(type_code::NONE),
            Type::Token => {
                to.varint(stablehlo::TOKEN);
                return Ok(Some("stablehlo".into()));
            }
            Type::Future(types) => {
                to.varint(stablehlo::FUTURE);
                self.types(types, format, to)?;
                return Ok(Some("stablehlo".into()));
            }
        }
        Ok(Some("builtin".into()))
    }

    fn tensor(
        &mut self,
        tensor: &TensorType,
        format: Format,
        (plain, encoded): (u64, u64),
        to: &mut Emitter,
    ) -> Result<(), String> {
        match &tensor.encoding {
            None => to.varint(plain),
            Some(encoding) => {
                to.varint(encoded);
                to.varint(self.attribute(encoding, format)?);
            }
        }
        let dims: Vec<i64> = tensor.dims.iter().map(|dim| dim.unwrap_or(i64::MIN)).collect();
        to.signed_list(&dims);
        to.varint(self.scalar(&tensor.element, format)?);
        Ok(())
    }

    fn portable_type(
        &mut self,
        ty: &Type,
        format: Format,
        version: (u32, u32),
        to: &mut Emitter,
    ) -> Result<(), String> {
        use vhlo::type_code as code;
        match ty {
            Type::Scalar(Scalar::Complex(part)) => {
                to.varint(code::COMPLEX);
                to.varint(self.scalar(part, format)?);
            }
            Type::Scalar(scalar) => {
                let name = name_of(scalar);
                match vhlo::SCALARS.iter().find(|(_, known, _)| *known == name) {
                    Some((code, _, since)) if *since <= version => to.varint(*code),
                    Some((_, _, (major, minor))) => {
                        return Err(format!("the type `{name}` needs StableHLO {major}.{minor}"));
                    }
                    None => return Err(format!("portable artifacts have no type `{name}`")),
                }
            }
            Type::Tensor(tensor) => {
                self.tensor(tensor, format, (code::TENSOR, code::TENSOR_WITH_ENCODING), to)?;
            }
            Type::UnrankedTensor(element) => {
                to.varint(code::UNRANKED);
                to.varint(self.scalar(element, format)?);
            }
            Type::Tuple(types) => {
                to.varint(code::TUPLE);
                self.types(types, format, to)?;
            }
            Type::Function(function) => {
                to.varint(code::FUNCTION);
                self.types(&function.inputs, format, to)?;
                self.types(&function.results, format, to)?;
            }
            Type::None => to.varint(code::NONE),
            Type::Token => to.varint(code::TOKEN),
            Type::Future(types) => {
                to.varint(code::FUTURE);
                self.types(types, format, to)?;
            }
            Type::Other { text } => {
                return Err(format!("portable artifacts have no type `{text}`"));
            }
        }
        Ok(())
    }
}

/// The text of a type that has no other encoding.
fn text_of(ty: &Type) -> Option<SmolStr> {
    match ty {
        Type::Scalar(scalar) => Some(name_of(scalar)),
        Type::Other { text } => Some(text.clone()),
        _ => None,
    }
}

/// The dialect of a type by its text: `!quant.uniform<...>`.
fn dialect_of(text: &str) -> SmolStr {
    let name = text.strip_prefix('!').and_then(|name| name.split(['.', '<']).next());
    SmolStr::new(name.unwrap_or("builtin"))
}
