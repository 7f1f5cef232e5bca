//! Makes the operations of an expansion.

use smol_str::SmolStr;

use super::word;
use crate::mlir::{
    Attribute, Attributes, DenseElements, Elements, Operation, Scalar, Sign, TensorType, Type,
    Value,
};

/// The operations so far.
pub(super) struct Maker<'v> {
    /// The operation that is expanded.
    of: Operation,
    values: &'v mut Vec<Type>,
    pub(super) operations: Vec<Operation>,
}

impl<'v> Maker<'v> {
    pub(super) fn new(of: &Operation, values: &'v mut Vec<Type>) -> Self {
        let mut of = of.clone();
        of.regions.clear();
        Self { of, values, operations: Vec::new() }
    }

    pub(super) fn tensor(&self, value: Value) -> Option<&TensorType> {
        match self.values.get(usize::try_from(value.0).ok()?)? {
            Type::Tensor(tensor) => Some(tensor),
            _ => None,
        }
    }

    /// Checks that a value has floats.
    pub(super) fn real(&self, value: Value) -> Option<()> {
        matches!(self.tensor(value)?.element, Scalar::Float(_)).then_some(())
    }

    /// Checks that a value has floats of 32 bits.
    pub(super) fn single(&self, value: Value) -> Option<()> {
        match &self.tensor(value)?.element {
            Scalar::Float(name) if name == "f32" => Some(()),
            _ => None,
        }
    }

    fn make(
        &mut self,
        name: &str,
        operands: &[Value],
        attributes: Attributes,
        ty: TensorType,
    ) -> Option<Value> {
        let result = Value(u32::try_from(self.values.len()).ok()?);
        self.values.push(Type::Tensor(ty));
        self.operations.push(Operation {
            name: SmolStr::from(format!("stablehlo.{name}")),
            operands: operands.into(),
            results: std::iter::once(result).collect(),
            attributes,
            regions: Vec::new(),
            location: self.of.location.clone(),
            span: self.of.span,
        });
        Some(result)
    }

    /// Adds an operation whose result has the type of its first operand.
    pub(super) fn op(&mut self, name: &str, operands: &[Value]) -> Option<Value> {
        let ty = self.tensor(*operands.first()?)?.clone();
        self.make(name, operands, Vec::new(), ty)
    }

    /// Adds a constant of the type of a value.
    pub(super) fn number(&mut self, like: Value, value: f64) -> Option<Value> {
        let ty = self.tensor(like)?.clone();
        let Scalar::Float(name) = &ty.element else { return None };
        #[allow(clippy::cast_possible_truncation, reason = "the type has 32 bits")]
        let bytes = match name.as_str() {
            "f64" => value.to_le_bytes().to_vec(),
            "f32" => (value as f32).to_le_bytes().to_vec(),
            "f16" => half::f16::from_f64(value).to_le_bytes().to_vec(),
            "bf16" => half::bf16::from_f64(value).to_le_bytes().to_vec(),
            _ => return None,
        };
        if ty.dims.iter().any(Option::is_none) {
            return None;
        }
        let elements = Elements::Bytes(bytes.into());
        let dense = DenseElements { ty: Box::new(Type::Tensor(ty.clone())), elements };
        self.make("constant", &[], vec![("value".into(), Attribute::Dense(dense))], ty)
    }

    /// Adds the greatest finite number of the type of a value.
    pub(super) fn greatest(&mut self, like: Value) -> Option<Value> {
        let Scalar::Float(name) = &self.tensor(like)?.element else { return None };
        let most = match name.as_str() {
            "f64" => f64::MAX,
            "f32" => f32::MAX.into(),
            "f16" => half::f16::MAX.into(),
            "bf16" => half::bf16::MAX.into(),
            _ => return None,
        };
        self.number(like, most)
    }

    /// Adds an operation that yields bools.
    pub(super) fn predicate(
        &mut self,
        name: &str,
        operands: &[Value],
        direction: Option<&str>,
    ) -> Option<Value> {
        let mut ty = self.tensor(*operands.first()?)?.clone();
        ty.element = Scalar::Integer { bits: 1, sign: Sign::Signless };
        let direction = direction.map(|direction| {
            ("comparison_direction".into(), word("comparison_direction", direction))
        });
        self.make(name, operands, direction.into_iter().collect(), ty)
    }

    pub(super) fn select(&mut self, condition: Value, yes: Value, no: Value) -> Option<Value> {
        let ty = self.tensor(yes)?.clone();
        self.make("select", &[condition, yes, no], Vec::new(), ty)
    }

    /// Adds the real or the imaginary part.
    pub(super) fn part(&mut self, name: &str, value: Value) -> Option<Value> {
        let mut ty = self.tensor(value)?.clone();
        let Scalar::Complex(part) = ty.element else { return None };
        ty.element = *part;
        self.make(name, &[value], Vec::new(), ty)
    }

    /// Adds a complex number of the type of a value.
    pub(super) fn complex(&mut self, real: Value, imaginary: Value, like: Value) -> Option<Value> {
        let ty = self.tensor(like)?.clone();
        self.make("complex", &[real, imaginary], Vec::new(), ty)
    }

    pub(super) fn convert(&mut self, value: Value, element: &Scalar) -> Option<Value> {
        let mut ty = self.tensor(value)?.clone();
        ty.element = element.clone();
        self.make("convert", &[value], Vec::new(), ty)
    }
}
