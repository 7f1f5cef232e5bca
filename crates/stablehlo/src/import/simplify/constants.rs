//! Constants: each is kept once, at the beginning of its function.

use std::sync::Arc;

use super::{Simplifier, dense, instead};
use crate::mlir::{Attribute, DenseElements, Elements, Operation, Scalar, TensorType, Type, Value};

/// A constant as a key: its type as text and its bytes.
pub(super) type Key = (String, Arc<[u8]>);

/// A number that a constant has.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::import) enum Number {
    /// An integer, as its type has it.
    Integer(i128),
    /// A float.
    Real(f64),
}

impl Simplifier {
    /// Returns a constant in its simplest form: equal elements are stored once.
    pub(super) fn as_constant(&self, operation: &Operation) -> Option<Operation> {
        if operation.name != "stablehlo.constant" {
            return None;
        }
        let value = dense(&operation.attributes)?;
        let value = splat(value);
        let mut constant = operation.clone();
        for (name, attribute) in &mut constant.attributes {
            if name == "value" {
                *attribute = Attribute::Dense(value.clone());
            }
        }
        Some(constant)
    }

    /// Keeps a constant at the beginning of the function, unless there is an equal one. One that is
    /// there already stays in its place.
    pub(super) fn hoist(&mut self, constant: Operation, is_leading: bool) {
        let (Some(dense), [result]) = (dense(&constant.attributes), &constant.results[..]) else {
            return;
        };
        let Elements::Bytes(bytes) = &dense.elements else { return };
        let result = *result;
        let is_plain = constant.attributes.len() == 1;
        let key = (crate::print::ty(&dense.ty), Arc::clone(bytes));
        match self.constants.get(&key) {
            Some(&known) if is_plain => self.replace(result, known),
            _ => {
                if is_plain {
                    self.constants.insert(key, result);
                }
                self.define(&constant);
                let constants = if is_leading { &mut self.leading } else { &mut self.hoisted };
                constants.push(constant);
            }
        }
    }

    /// Returns the value of a constant.
    pub(super) fn constant(&self, value: Value) -> Option<DenseElements> {
        let definition = self.defined(value, "constant")?;
        dense(&definition.attributes).cloned()
    }

    /// Returns the one number of a constant whose elements are all equal.
    pub(super) fn splat(&self, value: Value) -> Option<Number> {
        let constant = self.constant(value)?;
        match (&constant.elements, &*constant.ty) {
            (Elements::Bytes(bytes), Type::Tensor(tensor))
                if bytes.len() == width(&tensor.element) =>
            {
                number(&tensor.element, bytes)
            }
            _ => None,
        }
    }

    pub(super) fn is_zero(&self, value: Value) -> bool {
        matches!(self.splat(value), Some(Number::Integer(0) | Number::Real(0.0)))
    }

    pub(super) fn is_one(&self, value: Value) -> bool {
        matches!(self.splat(value), Some(Number::Integer(1) | Number::Real(1.0)))
    }

    /// Checks whether a value is an integer constant of ones only, in all bits.
    pub(super) fn is_all_ones(&self, value: Value) -> bool {
        let Some(Number::Integer(number)) = self.splat(value) else { return false };
        match self.tensor(value).map(|ty| &ty.element) {
            Some(Scalar::Integer { bits: 1, .. }) => number == 1,
            Some(Scalar::Integer { bits, sign: crate::mlir::Sign::Unsigned }) => {
                number == (1i128 << (*bits).min(64)) - 1
            }
            _ => number == -1,
        }
    }

    /// Returns a constant in place of an operation.
    pub(super) fn constant_instead(
        &self,
        of: &Operation,
        tensor: &TensorType,
        numbers: &[Number],
    ) -> Option<Operation> {
        if !self.affords(numbers.len()) {
            return None;
        }
        let elements = Elements::Bytes(bytes(&tensor.element, numbers)?.into());
        let ty = Box::new(Type::Tensor(tensor.clone()));
        let value = Attribute::Dense(splat(&DenseElements { ty, elements }));
        let mut constant = instead(of, "constant", &[], vec![("value".into(), value)]);
        constant.attributes.truncate(1);
        Some(constant)
    }
}

/// Stores equal elements once.
fn splat(dense: &DenseElements) -> DenseElements {
    let (Elements::Bytes(bytes), Type::Tensor(tensor)) = (&dense.elements, &*dense.ty) else {
        return dense.clone();
    };
    let width = width(&tensor.element);
    let Some(first) = bytes.get(..width) else { return dense.clone() };
    if bytes.len() == width || bytes.chunks(width).any(|element| element != first) {
        return dense.clone();
    }
    DenseElements { ty: dense.ty.clone(), elements: Elements::Bytes(first.into()) }
}

/// Returns the number of bytes of an element.
pub(in crate::import) fn width(element: &Scalar) -> usize {
    match element {
        Scalar::Integer { bits, .. } => usize::try_from(bits.div_ceil(8)).unwrap_or(1).max(1),
        Scalar::Index => 8,
        Scalar::Complex(part) => width(part).saturating_mul(2),
        Scalar::Float(name) => match name.as_str() {
            "f64" => 8,
            "f32" => 4,
            "f16" | "bf16" => 2,
            _ => 1,
        },
        Scalar::Other(_) => 1,
    }
}

/// Returns the numbers of a constant; those of types that are not computed are missing.
pub(super) fn numbers(dense: &DenseElements) -> Option<Vec<Number>> {
    let (Elements::Bytes(bytes), Type::Tensor(tensor)) = (&dense.elements, &*dense.ty) else {
        return None;
    };
    let read = |element: &[u8]| number(&tensor.element, element);
    bytes.chunks_exact(width(&tensor.element)).map(read).collect()
}

fn number(element: &Scalar, bytes: &[u8]) -> Option<Number> {
    match element {
        Scalar::Integer { bits, sign } => {
            let value = bytes.iter().take(8).rev().fold(0u64, |v, &byte| v << 8 | u64::from(byte));
            let unused = 64u32.saturating_sub((*bits).clamp(1, 64));
            let shifted = value << unused;
            let is_unsigned = *sign == crate::mlir::Sign::Unsigned || *bits == 1;
            Some(Number::Integer(if is_unsigned {
                i128::from(shifted >> unused)
            } else {
                i128::from(shifted.cast_signed() >> unused)
            }))
        }
        Scalar::Float(name) => match (name.as_str(), bytes) {
            ("f64", _) => Some(f64::from_le_bytes(bytes.try_into().ok()?)),
            ("f32", _) => Some(f32::from_le_bytes(bytes.try_into().ok()?).into()),
            ("f16", _) => Some(half::f16::from_le_bytes(bytes.try_into().ok()?).into()),
            ("bf16", _) => Some(half::bf16::from_le_bytes(bytes.try_into().ok()?).into()),
            (name, &[byte]) => small(name, byte),
            _ => None,
        }
        .map(Number::Real),
        Scalar::Complex(_) | Scalar::Index | Scalar::Other(_) => None,
    }
}

/// Returns the value of a float of at most 8 bits.
fn small(name: &str, byte: u8) -> Option<f64> {
    use tilewright_ir::small_float::{Format, Value};
    let ty = tilewright_ir::ElementType::from_name(&name.to_ascii_lowercase())?;
    match Format::of(ty)?.decode(byte.into()) {
        Value::Real(value) => Some(value),
        Value::Nan { .. } => None,
    }
}

/// Returns the byte of a float of at most 8 bits.
fn small_byte(name: &str, value: f64) -> Option<u8> {
    let ty = tilewright_ir::ElementType::from_name(&name.to_ascii_lowercase())?;
    u8::try_from(tilewright_ir::small_float::Format::of(ty)?.encode(value)).ok()
}

/// Returns the bytes of numbers, rounded to a type.
pub(in crate::import) fn bytes(element: &Scalar, numbers: &[Number]) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    for number in numbers {
        match (element, number) {
            (Scalar::Integer { bits, .. }, Number::Integer(value)) => {
                let mask = (1i128 << (*bits).min(64)) - 1;
                let all = (value & mask).to_le_bytes();
                bytes.extend(all.get(..width(element))?);
            }
            #[allow(clippy::cast_possible_truncation, reason = "the type has 32 bits")]
            (Scalar::Float(name), Number::Real(value)) => match name.as_str() {
                "f64" => bytes.extend(value.to_le_bytes()),
                "f32" => bytes.extend((*value as f32).to_le_bytes()),
                "f16" => bytes.extend(half::f16::from_f64(*value).to_le_bytes()),
                "bf16" => bytes.extend(half::bf16::from_f64(*value).to_le_bytes()),
                name => bytes.push(small_byte(name, *value)?),
            },
            _ => return None,
        }
    }
    Some(bytes)
}
