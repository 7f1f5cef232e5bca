//! Quantised types, as the text that MLIR prints for them, but with all digits of the scales.

use smol_str::SmolStr;

use crate::bytecode::read::{Cursor, Entries, Read, numbers};
use crate::mlir::{Scalar, Type};

/// The flag of types whose storage has a sign.
const SIGNED: u64 = 1;

/// The types of a quantized type.
struct Types {
    storage: String,
    bits: u32,
    signed: bool,
    expressed: SmolStr,
}

/// Takes the type of a whole tensor: `!quant.uniform<i8:f32, 3.4e1:16>`.
pub(super) fn whole(entries: &mut Entries<'_>, cursor: &mut Cursor<'_>) -> Read<Type> {
    let types = types(entries, cursor)?;
    let scale = numbers::double(cursor)?;
    let zero = cursor.signed()?;
    let storage = types.with_range(cursor.signed()?, cursor.signed()?);
    let text = format!("!quant.uniform<{storage}:{}, {}>", types.expressed, pair(scale, zero));
    Ok(Type::Other { text: text.into() })
}

/// Takes a type with a scale for each index of a dim: `!quant.uniform<i8:f32:0, {...}>`.
pub(super) fn per_axis(entries: &mut Entries<'_>, cursor: &mut Cursor<'_>) -> Read<Type> {
    let types = types(entries, cursor)?;
    let dim = cursor.varint()?;
    let storage = types.with_range(cursor.signed()?, cursor.signed()?);
    let count = cursor.count("scales")?;
    let scales = (0..count).map(|_| numbers::double(cursor)).collect::<Read<Vec<f64>>>()?;
    let before = *cursor;
    let zeros = cursor.signed_list()?;
    if zeros.len() != scales.len() {
        let message = format!("there are {} zeros for {} scales", zeros.len(), scales.len());
        return Err(before.error(message));
    }
    let pairs: Vec<String> =
        scales.iter().zip(&zeros).map(|(scale, zero)| pair(*scale, *zero)).collect();
    let pairs = pairs.join(",");
    let text = format!("!quant.uniform<{storage}:{}:{dim}, {{{pairs}}}>", types.expressed);
    Ok(Type::Other { text: text.into() })
}

/// Takes the flags, the type of the storage and the type that it stands for.
fn types(entries: &mut Entries<'_>, cursor: &mut Cursor<'_>) -> Read<Types> {
    let signed = cursor.varint()? & SIGNED != 0;
    let before = *cursor;
    let (storage, expressed) = (entries.ty(cursor)?, entries.ty(cursor)?);
    match (storage, expressed) {
        (Type::Scalar(Scalar::Integer { bits, .. }), Type::Scalar(Scalar::Float(expressed))) => {
            let storage = format!("{}{bits}", if signed { 'i' } else { 'u' });
            Ok(Types { storage, bits, signed, expressed })
        }
        _ => Err(before.error("a quantized type should store integers for floats")),
    }
}

impl Types {
    /// The storage, with its least and greatest number where they are not those of the type.
    fn with_range(&self, least: i64, greatest: i64) -> String {
        let whole = 1_i128 << self.bits.min(64);
        let default = match self.signed {
            true => (-(whole / 2), whole / 2 - 1),
            false => (0, whole - 1),
        };
        match (i128::from(least), i128::from(greatest)) == default {
            true => self.storage.clone(),
            false => format!("{}<{least}:{greatest}>", self.storage),
        }
    }
}

/// A scale, which is not rounded, and a zero where it is not zero.
fn pair(scale: f64, zero: i64) -> String {
    if zero == 0 { format!("{scale:e}") } else { format!("{scale:e}:{zero}") }
}
