//! Types.

use smallvec::SmallVec;
use smol_str::SmolStr;

use super::error::SyntaxError;
use super::{Parse, Parser};
use crate::mlir::{FunctionType, Scalar, Sign, TensorType, Type};

/// Types of MLIR that are kept as text: those with parameters.
const OPAQUE: &[&str] = &["vector", "memref", "graph"];

/// Returns the number in a type's name such as `i32`.
fn bits(name: &str, prefix: &str) -> Option<u32> {
    let digits = name.strip_prefix(prefix)?;
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    // MLIR's greatest width.
    digits.parse().ok().filter(|&bits| bits < 1 << 24)
}

/// Returns the scalar type with a name that has no parameters.
fn scalar_of(name: &str) -> Option<Scalar> {
    let integer = |bits, sign| Some(Scalar::Integer { bits, sign });
    if let Some(bits) = bits(name, "i") {
        return integer(bits, Sign::Signless);
    }
    if let Some(bits) = bits(name, "ui") {
        return integer(bits, Sign::Unsigned);
    }
    if let Some(bits) = bits(name, "si") {
        return integer(bits, Sign::Signed);
    }
    let digits = name.trim_start_matches("bf").trim_start_matches("tf").trim_start_matches('f');
    let is_float = digits.len() < name.len()
        && digits.starts_with(|c: char| c.is_ascii_digit())
        && digits.bytes().all(|b| b.is_ascii_alphanumeric());
    match name {
        "index" => Some(Scalar::Index),
        _ if is_float => Some(Scalar::Float(name.into())),
        _ => None,
    }
}

impl<'s> Parser<'s> {
    /// Checks whether a type begins here, but no attribute of another kind.
    pub(super) fn at_type(&mut self) -> bool {
        if matches!(self.peek(), b'!' | b'(') {
            return true;
        }
        let word = self.peek_word();
        matches!(word, "tensor" | "tuple" | "complex" | "none")
            || OPAQUE.contains(&word)
            || scalar_of(word).is_some()
    }

    /// Takes a type.
    pub(super) fn ty(&mut self) -> Parse<Type> {
        match self.peek() {
            b'!' => self.dialect_type(),
            b'(' => self.function_type().map(Type::Function),
            _ => self.nested(1, Self::builtin_type),
        }
    }

    fn builtin_type(&mut self) -> Parse<Type> {
        let start = self.position;
        match self.peek_word() {
            "tensor" => self.tensor(),
            "tuple" => {
                self.word("")?;
                let mut parts = Vec::new();
                self.list(("<", ">"), |parser| {
                    parts.push(parser.ty()?);
                    Ok(())
                })?;
                Ok(Type::Tuple(parts))
            }
            "none" => {
                self.word("")?;
                Ok(Type::None)
            }
            word if OPAQUE.contains(&word) => {
                self.word("")?;
                self.balanced()?;
                Ok(Type::Other { text: self.text(start, self.position).into() })
            }
            _ => self.scalar().map(Type::Scalar),
        }
    }

    /// `(a, b) -> (c)` or `(a, b) -> c`.
    pub(super) fn function_type(&mut self) -> Parse<FunctionType> {
        self.nested(1, |parser| {
            let inputs = parser.type_list()?;
            parser.expect("->")?;
            let results = parser.results()?;
            Ok(FunctionType { inputs, results })
        })
    }

    /// Types in parentheses, or one type without them.
    pub(super) fn results(&mut self) -> Parse<Vec<Type>> {
        if self.peek() == b'(' { self.type_list() } else { Ok(vec![self.ty()?]) }
    }

    /// Types in parentheses.
    pub(super) fn type_list(&mut self) -> Parse<Vec<Type>> {
        let mut types = Vec::new();
        self.list(("(", ")"), |parser| {
            types.push(parser.ty()?);
            Ok(())
        })?;
        Ok(types)
    }

    /// One or more types with commas between them.
    pub(super) fn bare_types(&mut self) -> Parse<Vec<Type>> {
        let mut types = vec![self.ty()?];
        while self.accept(",") {
            types.push(self.ty()?);
        }
        Ok(types)
    }

    /// Takes a type of elements.
    fn scalar(&mut self) -> Parse<Scalar> {
        if self.peek() == b'!' {
            let start = self.position;
            return match self.dialect_type()? {
                Type::Scalar(scalar) => Ok(scalar),
                Type::Other { text } => Ok(Scalar::Other(text)),
                _ => Err(SyntaxError::new(self.span_since(start), "this is no type of elements")),
            };
        }
        let word = self.peek_word();
        if word == "complex" {
            self.word("")?;
            self.expect("<")?;
            let part = self.nested(1, Self::scalar)?;
            self.expect(">")?;
            return Ok(Scalar::Complex(Box::new(part)));
        }
        let Some(scalar) = scalar_of(word) else {
            return Err(self.unexpected("a type, as `tensor<2xf32>`"));
        };
        self.position += word.len();
        Ok(scalar)
    }

    /// `tensor<2x?xf32, encoding>`.
    fn tensor(&mut self) -> Parse<Type> {
        self.word("")?;
        self.expect("<")?;
        if self.accept("*") {
            self.expect("x")?;
            let element = self.scalar()?;
            self.expect(">")?;
            return Ok(Type::UnrankedTensor(element));
        }
        let mut dims = SmallVec::new();
        loop {
            match self.peek() {
                b'?' => {
                    self.position += 1;
                    dims.push(None);
                }
                b'0'..=b'9' => dims.push(Some(self.dim()?)),
                _ => break,
            }
            self.expect("x")?;
        }
        let element = self.scalar()?;
        let encoding = if self.accept(",") { Some(Box::new(self.attribute()?)) } else { None };
        self.expect(">")?;
        Ok(Type::Tensor(TensorType { dims, element, encoding }))
    }

    fn dim(&mut self) -> Parse<i64> {
        let start = self.position;
        while self.byte(0).is_ascii_digit() {
            self.position += 1;
        }
        let error = SyntaxError::new(self.span_since(start), "this dim is too large");
        self.text(start, self.position).parse().map_err(|_| error)
    }

    /// `!alias`, `!dialect.name<...>` or `!dialect<...>`.
    fn dialect_type(&mut self) -> Parse<Type> {
        self.skip();
        let start = self.position;
        self.position += 1;
        let name = self.name("the name of a type")?;
        let has_parameters = self.byte(0) == b'<';
        match name {
            "stablehlo.token" | "mhlo.token" => return Ok(Type::Token),
            "stablehlo.future" if has_parameters => {
                self.position += 1;
                let types = self.nested(1, Self::bare_types)?;
                self.expect(">")?;
                return Ok(Type::Future(types));
            }
            _ if has_parameters => {
                self.balanced()?;
            }
            _ if !name.contains('.') => return self.type_alias(start),
            _ => {}
        }
        Ok(Type::Other { text: SmolStr::new(self.text(start, self.position)) })
    }
}
