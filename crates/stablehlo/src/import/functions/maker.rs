//! Makes the operations of an expansion.

use smallvec::SmallVec;
use smol_str::SmolStr;
use tilewright_ir::ElementType;
use tilewright_ir::small_float::{Format, Value as FloatValue};

use super::super::attributes;
use super::super::simplify::{Number, bytes, width};
use super::word;
use crate::mlir::{
    Attribute, Attributes, Block, DenseElements, Elements, Operation, Region, Scalar, Sign,
    TensorType, Type, Value,
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

    /// Checks whether a value has floats of 64 bits; none if they have not 32 either.
    pub(super) fn is_double(&self, value: Value) -> Option<bool> {
        match &self.tensor(value)?.element {
            Scalar::Float(name) if name == "f32" => Some(false),
            Scalar::Float(name) if name == "f64" => Some(true),
            _ => None,
        }
    }

    /// Returns the name of the operation that is expanded.
    pub(super) fn name(&self) -> &str {
        &self.of.name
    }

    /// Returns the type of its result, if it has one.
    pub(super) fn result(&self) -> Option<&TensorType> {
        self.tensor(*self.of.results.first()?)
    }

    /// Returns its attributes.
    pub(super) fn attributes(&self) -> &Attributes {
        &self.of.attributes
    }

    /// Returns an attribute.
    pub(super) fn attribute(&self, name: &str) -> Option<&Attribute> {
        self.of.attribute(name)
    }

    /// Returns an attribute that is an integer or a list of them.
    pub(super) fn integers(&self, name: &str) -> Option<Vec<i64>> {
        let attribute = self.attribute(name)?;
        attributes::integers(attribute).or_else(|| Some(vec![attributes::integer(attribute)?]))
    }

    /// Adds an operation of StableHLO.
    pub(super) fn make(
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

    /// Gives the last operation a region that combines two elements of the type of a value by an op.
    pub(super) fn reduces_by(&mut self, name: &str, like: Value) -> Option<()> {
        let outer = self.operations.len();
        let scalar = TensorType { dims: SmallVec::new(), ..self.tensor(like)?.clone() };
        let first = u32::try_from(self.values.len()).ok()?;
        let arguments = vec![Value(first), Value(first.checked_add(1)?)];
        self.values.extend([Type::Tensor(scalar.clone()), Type::Tensor(scalar.clone())]);
        let combined = self.make(name, &arguments, Vec::new(), scalar)?;
        let mut operations = self.operations.split_off(outer);
        operations.push(Operation {
            name: "stablehlo.return".into(),
            operands: std::iter::once(combined).collect(),
            results: SmallVec::new(),
            attributes: Vec::new(),
            regions: Vec::new(),
            location: self.of.location.clone(),
            span: self.of.span,
        });
        let region = Region { blocks: vec![Block { arguments, operations }] };
        self.operations.last_mut()?.regions.push(region);
        Some(())
    }

    /// Adds an operation whose result has the type of its first operand.
    pub(super) fn op(&mut self, name: &str, operands: &[Value]) -> Option<Value> {
        let ty = self.tensor(*operands.first()?)?.clone();
        self.make(name, operands, Vec::new(), ty)
    }

    /// Adds a constant of the type of a value.
    pub(super) fn number(&mut self, like: Value, value: f64) -> Option<Value> {
        self.real(like)?;
        self.constant(like, Number::Real(value))
    }

    /// Adds an integer constant of the type of a value.
    pub(super) fn integer(&mut self, like: Value, value: i64) -> Option<Value> {
        self.constant(like, Number::Integer(value.into()))
    }

    fn constant(&mut self, like: Value, value: Number) -> Option<Value> {
        let ty = self.tensor(like)?.clone();
        if ty.dims.iter().any(Option::is_none) {
            return None;
        }
        let elements = Elements::Bytes(bytes(&ty.element, &[value])?.into());
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
            name => greatest_of(name)?,
        };
        self.number(like, most)
    }

    /// Adds the least positive number of the type of a value.
    pub(super) fn least(&mut self, like: Value) -> Option<Value> {
        let least =
            if self.is_double(like)? { f64::from_bits(1) } else { f32::from_bits(1).into() };
        self.number(like, least)
    }

    /// Returns the number of bytes of an element.
    pub(super) fn width(&self, value: Value) -> Option<usize> {
        Some(width(&self.tensor(value)?.element))
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
        self.with_elements("convert", value, element)
    }

    /// Reads the bits of a value as another type.
    pub(super) fn bitcast(&mut self, value: Value, element: &Scalar) -> Option<Value> {
        self.with_elements("bitcast_convert", value, element)
    }

    fn with_elements(&mut self, name: &str, value: Value, element: &Scalar) -> Option<Value> {
        let mut ty = self.tensor(value)?.clone();
        ty.element = element.clone();
        self.make(name, &[value], Vec::new(), ty)
    }

    /// Adds a comparison of two values.
    pub(super) fn compare(&mut self, left: Value, direction: &str, right: Value) -> Option<Value> {
        self.predicate("compare", &[left, right], Some(direction))
    }
}

/// Returns the greatest finite number of a type of at most 8 bits.
fn greatest_of(name: &str) -> Option<f64> {
    let ty = ElementType::from_name(&name.to_ascii_lowercase())?;
    let format = Format::of(ty)?;
    let values = (0..=u16::from(u8::MAX)).filter_map(|bits| match format.decode(bits) {
        FloatValue::Real(value) if value.is_finite() => Some(value),
        _ => None,
    });
    values.reduce(f64::max)
}
