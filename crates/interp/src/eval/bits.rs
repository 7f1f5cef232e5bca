//! Elements as bits, for `bitcast` and `bitcast-convert`.

use tilewright_ir::{Data, ElementType};

use crate::error::{Outcome, WRONG_STORAGE};
use crate::value::data_of_bytes;

/// Returns the same bits as elements of another type, the lowest bits first.
pub(super) fn reinterpret(data: &Data, from: ElementType, to: ElementType) -> Outcome<Data> {
    if from == to {
        return Ok(data.clone());
    }
    let (from_bits, to_bits) = (from.storage_bits(), to.storage_bits());
    if from_bits == to_bits && from_bits < 8 {
        return Ok(stored(stored_bytes(data)?.map(|bits| bits & mask(to)), to));
    }
    let bytes = if from_bits < 8 { packed(data, from)? } else { to_bytes(data) };
    if to_bits < 8 {
        return Ok(stored(unpacked(&bytes, to), to));
    }
    if to.bits() < 8 && to != ElementType::Pred {
        return Ok(stored(bytes.into_iter().map(|bits| bits & mask(to)), to));
    }
    Ok(data_of_bytes(&bytes, to))
}

fn mask(element_type: ElementType) -> u8 {
    u8::MAX >> (u8::BITS - element_type.bits().clamp(1, 8))
}

/// Returns the bytes that store elements of one byte each, in order.
fn stored_bytes(data: &Data) -> Outcome<Box<dyn Iterator<Item = u8> + '_>> {
    Ok(match data {
        Data::Pred(v) => Box::new(v.iter().map(|&x| u8::from(x))),
        Data::S8(v) => Box::new(v.iter().map(|&x| x.cast_unsigned())),
        Data::U8(v) => Box::new(v.iter().copied()),
        _ => return Err(WRONG_STORAGE),
    })
}

/// Elements of fewer than 8 bits, the first in the lowest bits of its byte.
fn packed(data: &Data, element_type: ElementType) -> Outcome<Vec<u8>> {
    let bits = element_type.bits();
    let mut bytes = Vec::with_capacity(data.len().div_ceil(8 / bits as usize));
    let mut shift = 0;
    for element in stored_bytes(data)? {
        if shift == 0 {
            bytes.push(0);
        }
        if let Some(byte) = bytes.last_mut() {
            *byte |= (element & mask(element_type)) << shift;
        }
        shift = (shift + bits) % u8::BITS;
    }
    Ok(bytes)
}

fn unpacked(bytes: &[u8], element_type: ElementType) -> impl Iterator<Item = u8> {
    let bits = element_type.bits();
    bytes.iter().flat_map(move |&byte| {
        (0..u8::BITS / bits).map(move |i| byte >> (i * bits) & mask(element_type))
    })
}

/// Elements of fewer than 8 bits in the storage of their type.
fn stored(raw: impl Iterator<Item = u8>, element_type: ElementType) -> Data {
    match Data::zeros(element_type, 0) {
        Data::Pred(_) => Data::Pred(raw.map(|bits| bits != 0).collect()),
        Data::S8(_) => {
            let unused = u8::BITS - element_type.bits();
            Data::S8(raw.map(|bits| (bits << unused).cast_signed() >> unused).collect())
        }
        _ => Data::U8(raw.collect()),
    }
}

pub(super) fn to_bytes(data: &Data) -> Vec<u8> {
    match data {
        Data::Pred(v) => v.iter().map(|&x| u8::from(x)).collect(),
        Data::S8(v) => v.iter().map(|&x| x.cast_unsigned()).collect(),
        Data::U8(v) => v.clone(),
        Data::S16(v) => v.iter().flat_map(|x| x.to_le_bytes()).collect(),
        Data::S32(v) => v.iter().flat_map(|x| x.to_le_bytes()).collect(),
        Data::S64(v) => v.iter().flat_map(|x| x.to_le_bytes()).collect(),
        Data::U16(v) => v.iter().flat_map(|x| x.to_le_bytes()).collect(),
        Data::U32(v) => v.iter().flat_map(|x| x.to_le_bytes()).collect(),
        Data::U64(v) => v.iter().flat_map(|x| x.to_le_bytes()).collect(),
        Data::F16(v) => v.iter().flat_map(|x| x.to_le_bytes()).collect(),
        Data::BF16(v) => v.iter().flat_map(|x| x.to_le_bytes()).collect(),
        Data::F32(v) => v.iter().flat_map(|x| x.to_le_bytes()).collect(),
        Data::F64(v) => v.iter().flat_map(|x| x.to_le_bytes()).collect(),
        Data::C64(v) => {
            v.iter().flat_map(|x| [x.re.to_le_bytes(), x.im.to_le_bytes()].concat()).collect()
        }
        Data::C128(v) => {
            v.iter().flat_map(|x| [x.re.to_le_bytes(), x.im.to_le_bytes()].concat()).collect()
        }
    }
}
