//! Shapes of HLO as types of MLIR.

use smallvec::SmallVec;
use tilewright_ir::shape::UNBOUNDED;
use tilewright_ir::{ArrayShape, ElementType, Shape};

use crate::mlir::{Attribute, DenseArray, DialectAttribute, Scalar, Sign, TensorType, Type};

/// Returns the type of a value of a shape; `None` if there is none.
pub(super) fn ty(shape: &Shape) -> Option<Type> {
    match shape {
        // `i1` is a truth value.
        Shape::Array(array) if array.element_type == ElementType::S1 => None,
        Shape::Array(array) => Some(tensor(array)),
        Shape::Tuple(parts) => parts.iter().map(ty).collect::<Option<_>>().map(Type::Tuple),
        Shape::Token => Some(Type::Token),
        Shape::Buffer(_) | Shape::Opaque => None,
    }
}

/// Returns the type of an array. Bounds of dynamic dims are its encoding.
pub(super) fn tensor(array: &ArrayShape) -> Type {
    let mut dims = SmallVec::new();
    let mut bounds = Vec::new();
    for (place, &size) in array.dims().iter().enumerate() {
        let is_dynamic = array.dim_is_dynamic(place) || size == UNBOUNDED;
        dims.push((!is_dynamic).then_some(size));
        bounds.push(if is_dynamic { size } else { i64::MIN });
    }
    let has_bounds = bounds.iter().any(|&bound| bound != UNBOUNDED);
    let encoding = has_bounds.then(|| {
        Box::new(Attribute::Dialect(Box::new(DialectAttribute {
            dialect: "stablehlo".into(),
            name: "bounds".into(),
            parameters: vec![("value".into(), Attribute::DenseArray(DenseArray::I64(bounds)))],
        })))
    });
    Type::Tensor(TensorType { dims, element: element(array.element_type), encoding })
}

/// Returns the type of an element.
pub(super) fn element(ty: ElementType) -> Scalar {
    use tilewright_ir::element::NumberClass;
    match (ty.class(), ty) {
        (NumberClass::Bool, _) => integer(1, Sign::Signless),
        (NumberClass::Signed, _) => integer(ty.bits(), Sign::Signless),
        (NumberClass::Unsigned, _) => integer(ty.bits(), Sign::Unsigned),
        (NumberClass::Complex, ElementType::C64) => Scalar::Complex(Box::new(float("f32"))),
        (NumberClass::Complex, _) => Scalar::Complex(Box::new(float("f64"))),
        // The long names are upper-case, but for their first letter.
        (NumberClass::Float, _) => match ty.name() {
            name @ ("f16" | "bf16" | "f32" | "f64") => float(name),
            name => float(&format!("f{}", name.get(1..).unwrap_or_default().to_uppercase())),
        },
    }
}

fn float(name: &str) -> Scalar {
    Scalar::Float(name.into())
}

/// An integer type.
pub(super) fn integer(bits: u32, sign: Sign) -> Scalar {
    Scalar::Integer { bits, sign }
}

/// A tensor of signless integers of 64 bits.
pub(super) fn i64_tensor(dims: &[i64]) -> Type {
    Type::Tensor(TensorType {
        dims: dims.iter().map(|&dim| Some(dim)).collect(),
        element: integer(64, Sign::Signless),
        encoding: None,
    })
}
