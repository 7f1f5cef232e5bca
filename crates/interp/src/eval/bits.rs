//! Values as bits in memory: `bitcast` and `bitcast-convert`.

use tilewright_ir::index::{AddressMap, PositionIterator};
use tilewright_ir::{ArrayShape, Data, ElementType};

use super::{Cx, unsupported};
use crate::error::{Fault, Outcome, WRONG_STORAGE};
use crate::lanes::fill;
use crate::limits::Charge;
use crate::value::{Value, data_of_bytes, map_data};

/// A bitcast between layouts, or between types: elements go to memory as the
/// one layout says and are read back as the other says.
pub(super) fn bitcast(cx: &Cx<'_, '_>, from: &ArrayShape, to: &ArrayShape) -> Outcome<Value> {
    let allocation = cx.allocate_result()?;
    let source = cx.array(0)?.data();
    let stored = addresses(cx, from)?;
    // The memory itself, as bytes, and as elements of the other type.
    let _memory = cx.scratch(3 * from.element_type.bytes() as usize, stored.buffer)?;
    let memory = in_memory(source, &stored)?;
    let memory = reinterpret(&memory, from.element_type, to.element_type)?;
    drop(stored);
    let read = addresses(cx, to)?;
    if read.places.iter().any(|&place| place >= memory.len()) {
        return Err(unsupported(format!("{to} needs a larger buffer than {from}")));
    }
    let mut out = Data::zeros(to.element_type, 0);
    fill(&mut out, &memory, read.places.iter().copied())?;
    allocation.with(out)
}

/// Where the elements of an array lie, in row-major order.
struct Addresses {
    places: Vec<usize>,
    /// Elements of the buffer.
    buffer: usize,
    _charge: Charge,
}

fn addresses(cx: &Cx<'_, '_>, shape: &ArrayShape) -> Outcome<Addresses> {
    let map = AddressMap::new(shape).map_err(|error| unsupported(error.to_string()))?;
    let out_of_range = || Fault::Internal("an address is out of range");
    let buffer = usize::try_from(map.buffer_elements()).map_err(|_| out_of_range())?;
    let mut walk = PositionIterator::over(shape.dims()).map_err(|_| out_of_range())?;
    let count = shape.num_elements().and_then(|count| usize::try_from(count).ok());
    let count = count.ok_or_else(out_of_range)?;
    let charge = cx.scratch(size_of::<usize>(), count)?;
    cx.spend(count)?;
    let mut places = Vec::with_capacity(count);
    while let Some(position) = walk.current() {
        let place = map.linear(position).map_err(|_| out_of_range())?;
        places.push(usize::try_from(place).map_err(|_| out_of_range())?);
        walk.advance();
    }
    Ok(Addresses { places, buffer, _charge: charge })
}

fn in_memory(source: &Data, stored: &Addresses) -> Outcome<Data> {
    Ok(map_data!(source, values => {
        let padding = values.first().copied().into_iter().cycle();
        let mut memory: Vec<_> = padding.take(stored.buffer).collect();
        for (&value, &place) in values.iter().zip(&stored.places) {
            *memory.get_mut(place).ok_or(Fault::Internal("an address is out of range"))? = value;
        }
        memory
    }))
}

/// The same bits as elements of another type, the lowest bits first.
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

/// The bytes that store elements of a byte each, one by one.
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

fn to_bytes(data: &Data) -> Vec<u8> {
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
