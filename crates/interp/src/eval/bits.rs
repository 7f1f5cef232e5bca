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
    let whole = |t: ElementType| t.bits().is_multiple_of(8);
    if !whole(from) || !whole(to) {
        return Err(unsupported(format!("{from} or {to} is narrower than a byte")));
    }
    match to {
        // Truth values are stored as such, not as bits.
        ElementType::Pred => Err(WRONG_STORAGE),
        to => Ok(data_of_bytes(&to_bytes(data), to)),
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
