//! Types of MLIR as shapes of HLO.

use smallvec::SmallVec;
use tilewright_ir::shape::UNBOUNDED;
use tilewright_ir::{ArrayShape, Dims, ElementType, Shape};

use super::attributes;
use super::quantized::Quantized;
use crate::mlir::{Attribute, Scalar, Sign, TensorType, Type};

/// The deepest nesting of tuples.
const MAX_DEPTH: usize = 128;

/// Returns the shape of a value, or what HLO does not have.
pub(super) fn shape(ty: &Type) -> Result<Shape, String> {
    nested(ty, 0)
}

fn nested(ty: &Type, depth: usize) -> Result<Shape, String> {
    if depth > MAX_DEPTH {
        return Err("tuples that are nested too deeply".into());
    }
    match ty {
        Type::Tensor(tensor) => Ok(Shape::Array(array(tensor)?)),
        Type::Tuple(elements) => {
            let elements = elements.iter().map(|element| nested(element, depth + 1));
            Ok(Shape::Tuple(elements.collect::<Result<_, _>>()?))
        }
        Type::Token => Ok(Shape::Token),
        Type::Scalar(scalar) => Ok(Shape::scalar(element(scalar)?)),
        Type::UnrankedTensor(_) => Err("tensors of unknown rank; give them a rank".into()),
        Type::Future(_) => Err("futures".into()),
        Type::Function(_) => Err("values that are functions".into()),
        Type::None => Err("values without a type".into()),
        Type::Other { text } => match buffer(text) {
            Some(of) => Ok(Shape::Buffer(Box::new(Shape::Array(array(&of)?)))),
            None => Err(format!("the type `{text}`")),
        },
    }
}

/// Returns the tensor that lies in a buffer: `memref<2xf32>`.
fn buffer(text: &str) -> Option<TensorType> {
    let inner = text.strip_prefix("memref<")?;
    match crate::text::ty(&format!("tensor<{inner}")).ok()? {
        Type::Tensor(tensor) => Some(tensor).filter(|tensor| tensor.encoding.is_none()),
        _ => None,
    }
}

/// Returns the shape of a tensor. Its dynamic dims have the bounds of the encoding.
pub(super) fn array(tensor: &TensorType) -> Result<ArrayShape, String> {
    let element = match Quantized::in_tensor(tensor) {
        Some(ty) => ty.storage(),
        None => element(&tensor.element)?,
    };
    let bounds = bounds(tensor.encoding.as_deref());
    let mut dims = Dims::new();
    let mut dynamic: SmallVec<[bool; 6]> = SmallVec::new();
    for (place, dim) in tensor.dims.iter().enumerate() {
        let bound = bounds.get(place).copied().filter(|&bound| bound >= 0);
        dims.push(dim.or(bound).unwrap_or(UNBOUNDED));
        dynamic.push(dim.is_none());
    }
    Ok(ArrayShape::new(element, dims).with_dynamic(&dynamic))
}

fn bounds(encoding: Option<&Attribute>) -> Vec<i64> {
    let list = match encoding {
        Some(Attribute::Dialect(attribute)) => {
            let named = |name| attributes::parameter(attribute, name);
            named("value").or_else(|| named("bounds")).and_then(attributes::integers)
        }
        _ => None,
    };
    list.unwrap_or_default()
}

/// Returns the type of an element.
pub(super) fn element(scalar: &Scalar) -> Result<ElementType, String> {
    let found = match scalar {
        Scalar::Integer { bits, sign } => integer(*bits, *sign),
        Scalar::Float(name) => ElementType::from_name(&name.to_ascii_lowercase()),
        Scalar::Complex(part) => match &**part {
            Scalar::Float(name) if name == "f32" => Some(ElementType::C64),
            Scalar::Float(name) if name == "f64" => Some(ElementType::C128),
            _ => None,
        },
        // XLA has no index type; it counts dims in 64 bits.
        Scalar::Index => Some(ElementType::S64),
        Scalar::Other(_) => None,
    };
    found.ok_or_else(|| match scalar {
        Scalar::Other(text) => format!("elements of type `{text}`"),
        Scalar::Float(name) => format!("elements of type `{name}`"),
        Scalar::Integer { bits, .. } => format!("integers of {bits} bits"),
        Scalar::Complex(_) | Scalar::Index => "complex numbers other than of f32 and f64".into(),
    })
}

fn integer(bits: u32, sign: Sign) -> Option<ElementType> {
    let letter = match (bits, sign) {
        (1, Sign::Signless) => return Some(ElementType::Pred),
        (_, Sign::Unsigned) => 'u',
        (_, Sign::Signless | Sign::Signed) => 's',
    };
    ElementType::from_name(&format!("{letter}{bits}"))
}
