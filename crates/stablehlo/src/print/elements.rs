//! Numbers and the elements of constants as text.

use std::sync::Arc;

use smol_str::SmolStr;

use super::{list, quoted, types, word};
use crate::mlir::{Attribute, DenseElements, Elements, Scalar, TensorType, Type, value_of};
use crate::text::bits_of_float;

/// The largest number of elements that are written one by one.
const MOST_LISTED: usize = 100;

/// Writes a float of a type.
pub(super) fn float(out: &mut String, value: f64, ty: &Type) {
    let name = match ty {
        Type::Scalar(Scalar::Float(name)) => name.as_str(),
        _ => "f64",
    };
    match bits_of_float(name, value) {
        Some(bits) => super::float::push(out, bits, name),
        None => super::float::push(out, value.to_bits(), "f64"),
    }
}

/// Writes `dense<...>` with its type.
pub(super) fn dense(out: &mut String, dense: &DenseElements, depth: usize) {
    out.push_str("dense<");
    match (&dense.elements, &*dense.ty) {
        (Elements::Strings(strings), Type::Tensor(tensor)) => strings_of(out, strings, tensor),
        (Elements::Strings(_), _) => {}
        (Elements::Bytes(bytes), Type::Tensor(tensor)) => numbers(out, bytes, tensor),
        (Elements::Bytes(_), _) => {}
    }
    out.push_str("> : ");
    types::push(out, &dense.ty, depth + 1);
}

/// Writes the contents of a resource as a constant, as names of resources mean nothing elsewhere.
pub(super) fn resource(
    out: &mut String,
    name: &str,
    bytes: Option<&[u8]>,
    ty: &Type,
    depth: usize,
) {
    match (bytes, ty) {
        (Some(bytes), Type::Tensor(tensor)) => {
            out.push_str("dense<");
            numbers(out, bytes, tensor);
        }
        _ => {
            out.push_str("dense_resource<");
            word(out, name);
        }
    }
    out.push_str("> : ");
    types::push(out, ty, depth + 1);
}

/// Returns the number of bytes of an element.
fn width(element: &Scalar) -> usize {
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

fn dims_of(tensor: &TensorType) -> Vec<usize> {
    let dims = tensor.dims.iter();
    dims.map(|dim| dim.and_then(|dim| dim.try_into().ok()).unwrap_or(0)).collect()
}

fn strings_of(out: &mut String, strings: &[Arc<[u8]>], tensor: &TensorType) {
    match strings {
        [] => {}
        [string] => quoted(out, string),
        _ => {
            let mut strings = strings.iter();
            nested(out, &dims_of(tensor), &mut |out: &mut String| {
                if let Some(string) = strings.next() {
                    quoted(out, string);
                }
            });
        }
    }
}

fn numbers(out: &mut String, bytes: &[u8], tensor: &TensorType) {
    let width = width(&tensor.element);
    let count = bytes.len() / width;
    let dims = dims_of(tensor);
    if count == 0 {
        return;
    }
    // MLIR keeps equal elements as one.
    let first = bytes.get(..width).unwrap_or(bytes);
    if bytes.chunks_exact(width).all(|element| element == first) {
        number(out, first, &tensor.element);
        return;
    }
    // Booleans are packed in the raw form of some versions of MLIR and not in that of others.
    let is_bool = matches!(tensor.element, Scalar::Integer { bits: 1, .. });
    if count <= MOST_LISTED || is_bool {
        let mut elements = bytes.chunks_exact(width);
        nested(out, &dims, &mut |out: &mut String| {
            if let Some(element) = elements.next() {
                number(out, element, &tensor.element);
            }
        });
        return;
    }
    out.push_str("\"0x");
    for byte in bytes {
        out.push_str(&format!("{byte:02X}"));
    }
    out.push('"');
}

fn nested(out: &mut String, dims: &[usize], element: &mut dyn FnMut(&mut String)) {
    match dims {
        [] => element(out),
        [size, rest @ ..] => {
            out.push('[');
            list(out, 0..*size, |out, _| nested(out, rest, element));
            out.push(']');
        }
    }
}

fn number(out: &mut String, bytes: &[u8], element: &Scalar) {
    match element {
        Scalar::Integer { bits: 1, .. } => {
            out.push_str(if bytes.iter().any(|&byte| byte != 0) { "true" } else { "false" });
        }
        Scalar::Integer { bits, sign } => {
            let value = integer(bytes, *bits, *sign == crate::mlir::Sign::Unsigned);
            out.push_str(&value.to_string());
        }
        Scalar::Index => out.push_str(&integer(bytes, 64, false).to_string()),
        Scalar::Complex(part) => {
            let (real, imaginary) = bytes.split_at(bytes.len() / 2);
            out.push('(');
            number(out, real, part);
            out.push(',');
            number(out, imaginary, part);
            out.push(')');
        }
        Scalar::Float(name) => real(out, bytes, name),
        Scalar::Other(_) => out.push('0'),
    }
}

fn integer(bytes: &[u8], bits: u32, is_unsigned: bool) -> i128 {
    let value = bytes.iter().take(8).rev().fold(0u64, |value, &byte| value << 8 | u64::from(byte));
    let unused = 64u32.saturating_sub(bits.min(64));
    let shifted = value << unused;
    if is_unsigned {
        i128::from(shifted >> unused)
    } else {
        i128::from(shifted.cast_signed() >> unused)
    }
}

fn real(out: &mut String, bytes: &[u8], name: &SmolStr) {
    let bits = bytes.iter().take(8).rev().fold(0, |bits, &byte| bits << 8 | u64::from(byte));
    super::float::push(out, bits, name);
}

/// Writes `[b, 0, f]x[0, i, o]->[b, 0, f]`.
pub(super) fn convolution(out: &mut String, parameters: &[(SmolStr, Attribute)]) {
    let one = |name: &str| match value_of(parameters, name) {
        Some(Attribute::Integer(value, _)) => i64::try_from(*value).unwrap_or(-1),
        _ => -1,
    };
    let spatial = |name: &str| match value_of(parameters, name) {
        Some(Attribute::DenseArray(crate::mlir::DenseArray::I64(dims))) => dims.clone(),
        _ => Vec::new(),
    };
    let groups = [
        ("input", ["b", "f"], ["input_batch_dimension", "input_feature_dimension"]),
        (
            "kernel",
            ["i", "o"],
            ["kernel_input_feature_dimension", "kernel_output_feature_dimension"],
        ),
        ("output", ["b", "f"], ["output_batch_dimension", "output_feature_dimension"]),
    ];
    for ((array, letters, names), before) in groups.into_iter().zip(["", "x", "->"]) {
        let spatial = spatial(&format!("{array}_spatial_dimensions"));
        let numbered = spatial.iter().enumerate().map(|(at, &dim)| (dim, at.to_string()));
        let mut all: Vec<(i64, String)> = numbered.collect();
        all.extend(letters.iter().zip(names).map(|(&letter, name)| (one(name), letter.to_owned())));
        all.sort();
        out.push_str(before);
        out.push('[');
        list(out, all, |out, (_, label)| out.push_str(&label));
        out.push(']');
    }
}
