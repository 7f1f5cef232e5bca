//! Types as text.

use super::{MAX_DEPTH, attribute, list};
use crate::mlir::{FunctionType, Scalar, Sign, TensorType, Type};

/// Writes a type.
pub(super) fn push(out: &mut String, ty: &Type, depth: usize) {
    if depth > MAX_DEPTH {
        out.push_str("none");
        return;
    }
    match ty {
        Type::Scalar(element) => scalar(out, element),
        Type::Tensor(ty) => tensor(out, ty, depth),
        Type::UnrankedTensor(element) => {
            out.push_str("tensor<*x");
            scalar(out, element);
            out.push('>');
        }
        Type::Other { text } => out.push_str(text),
        Type::Tuple(parts) => {
            out.push_str("tuple<");
            list(out, parts, |out, part| push(out, part, depth + 1));
            out.push('>');
        }
        Type::Token => out.push_str("!stablehlo.token"),
        Type::Future(parts) => {
            out.push_str("!stablehlo.future<");
            list(out, parts, |out, part| push(out, part, depth + 1));
            out.push('>');
        }
        Type::Function(ty) => function(out, ty, depth),
        Type::None => out.push_str("none"),
    }
}

/// Writes the type of a function.
pub(super) fn function(out: &mut String, ty: &FunctionType, depth: usize) {
    signature(out, ty.inputs.iter(), ty.results.iter(), depth);
}

/// Writes types of operands and results.
pub(super) fn signature<'t>(
    out: &mut String,
    inputs: impl Iterator<Item = &'t Type>,
    results: impl ExactSizeIterator<Item = &'t Type>,
    depth: usize,
) {
    out.push('(');
    list(out, inputs, |out, input| push(out, input, depth + 1));
    out.push_str(") -> ");
    let mut results = results.peekable();
    let is_plain = results.len() == 1 && !matches!(results.peek(), Some(Type::Function(_)));
    if !is_plain {
        out.push('(');
    }
    list(out, results, |out, result| push(out, result, depth + 1));
    if !is_plain {
        out.push(')');
    }
}

/// Writes the type of an element.
pub(super) fn scalar(out: &mut String, element: &Scalar) {
    match element {
        Scalar::Integer { bits, sign } => {
            out.push_str(match sign {
                Sign::Signless => "i",
                Sign::Signed => "si",
                Sign::Unsigned => "ui",
            });
            out.push_str(&bits.to_string());
        }
        Scalar::Float(name) | Scalar::Other(name) => out.push_str(name),
        Scalar::Complex(part) => {
            out.push_str("complex<");
            match &**part {
                // No complex number has parts that are complex.
                Scalar::Complex(_) => out.push_str("none"),
                part => scalar(out, part),
            }
            out.push('>');
        }
        Scalar::Index => out.push_str("index"),
    }
}

fn tensor(out: &mut String, ty: &TensorType, depth: usize) {
    out.push_str("tensor<");
    for dim in &ty.dims {
        match dim {
            Some(size) => out.push_str(&size.to_string()),
            None => out.push('?'),
        }
        out.push('x');
    }
    scalar(out, &ty.element);
    if let Some(encoding) = &ty.encoding {
        out.push_str(", ");
        attribute::push(out, encoding, depth + 1);
    }
    out.push('>');
}
