//! Builds attributes.

use tilewright_ir::{ArrayLiteral, Data};

use super::types;
use crate::mlir::{Attribute, DenseElements, Elements, Scalar, TensorType, Type};

/// Reads an attribute that is kept as MLIR's text.
pub(super) fn parsed(text: &str) -> Option<Attribute> {
    let program = crate::text::parse(&format!("\"a.b\"() {{c = {text}}} : () -> ()\n")).ok()?;
    let operations = program.module.regions.first()?.blocks.first()?.operations.as_slice();
    let [operation] = operations else { return None };
    match operation.attributes.as_slice() {
        [(_, attribute)] => Some(attribute.clone()),
        _ => None,
    }
}

/// `#stablehlo<name VALUE>`.
pub(super) fn word(name: &str, value: &str) -> Attribute {
    Attribute::word("stablehlo", name, value)
}

/// `dense<[[0, 1]]> : tensor<1x2xi64>`. A table without rows has no columns.
pub(super) fn table(rows: &[Vec<i64>]) -> Attribute {
    let count = i64::try_from(rows.len()).unwrap_or(0);
    let width = rows.iter().map(Vec::len).max().unwrap_or(0);
    let mut bytes = Vec::new();
    for row in rows {
        // Shorter rows are filled up with -1.
        let padded = row.iter().copied().chain(std::iter::repeat(-1)).take(width);
        padded.for_each(|value| bytes.extend(value.to_le_bytes()));
    }
    let ty = types::i64_tensor(&[count, i64::try_from(width).unwrap_or(0)]);
    dense(ty, bytes)
}

/// `dense<[1, 0]> : tensor<2xindex>`: an order of dims.
pub(super) fn order(dims: &[u32]) -> Attribute {
    sizes(&dims.iter().map(|&dim| i64::from(dim)).collect::<Vec<_>>())
}

/// `dense<[8, 128]> : tensor<2xindex>`.
pub(super) fn sizes(dims: &[i64]) -> Attribute {
    let bytes = dims.iter().flat_map(|dim| dim.to_le_bytes()).collect();
    let rank = i64::try_from(dims.len()).unwrap_or(0);
    let dims = std::iter::once(Some(rank)).collect();
    dense(Type::Tensor(TensorType { dims, element: Scalar::Index, encoding: None }), bytes)
}

/// `dense<...>` of bytes.
pub(super) fn dense(ty: Type, bytes: Vec<u8>) -> Attribute {
    let elements = Elements::Bytes(bytes.into());
    Attribute::Dense(DenseElements { ty: Box::new(ty), elements })
}

/// The value of a constant.
pub(super) fn literal(array: &ArrayLiteral) -> Attribute {
    let ty = types::tensor(&array.shape());
    let is_large = array.len() > 1;
    match array.splat().filter(|_| is_large) {
        Some(one) => dense(ty, bytes(one.data())),
        None => dense(ty, bytes(array.data())),
    }
}

/// Returns the elements in little-endian order.
fn bytes(data: &Data) -> Vec<u8> {
    match data {
        Data::Pred(values) => values.iter().map(|&value| u8::from(value)).collect(),
        Data::S8(values) => values.iter().map(|value| value.cast_unsigned()).collect(),
        Data::U8(values) => values.clone(),
        Data::S16(values) => values.iter().flat_map(|value| value.to_le_bytes()).collect(),
        Data::S32(values) => values.iter().flat_map(|value| value.to_le_bytes()).collect(),
        Data::S64(values) => values.iter().flat_map(|value| value.to_le_bytes()).collect(),
        Data::U16(values) => values.iter().flat_map(|value| value.to_le_bytes()).collect(),
        Data::U32(values) => values.iter().flat_map(|value| value.to_le_bytes()).collect(),
        Data::U64(values) => values.iter().flat_map(|value| value.to_le_bytes()).collect(),
        Data::F16(values) => values.iter().flat_map(|value| value.to_le_bytes()).collect(),
        Data::BF16(values) => values.iter().flat_map(|value| value.to_le_bytes()).collect(),
        Data::F32(values) => values.iter().flat_map(|value| value.to_le_bytes()).collect(),
        Data::F64(values) => values.iter().flat_map(|value| value.to_le_bytes()).collect(),
        Data::C64(values) => {
            values.iter().flat_map(|v| [v.re, v.im]).flat_map(f32::to_le_bytes).collect()
        }
        Data::C128(values) => {
            values.iter().flat_map(|v| [v.re, v.im]).flat_map(f64::to_le_bytes).collect()
        }
    }
}
