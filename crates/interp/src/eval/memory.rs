//! Arrays in memory: `bitcast` between layouts and types.
//!
//! A buffer holds elements at the addresses of the layout, the layout's padding value in
//! explicit padding, and unknown values elsewhere (in partial tiles and after the end).

use tilewright_ir::element::NumberClass;
use tilewright_ir::index::{AddressMap, PositionIterator};
use tilewright_ir::layout::Padding;
use tilewright_ir::small_float::{self, Format};
use tilewright_ir::{ArrayShape, Data, ElementType, Layout, PaddingValue};

use super::bits::reinterpret;
use super::elementwise::{convert_kernel, repeat};
use super::{Cx, unsupported};
use crate::error::{Fault, Outcome};
use crate::lanes::{fill, spread};
use crate::limits::Charge;
use crate::strides::extent;
use crate::value::Value;

const OUT_OF_RANGE: Fault = Fault::Internal("an address is out of range");

/// Writes elements to memory in one layout and reads them back in the other.
pub(super) fn bitcast(cx: &Cx<'_, '_>, from: &ArrayShape, to: &ArrayShape) -> Outcome<Value> {
    check_packing(from, to)?;
    let allocation = cx.allocate_result()?;
    let memory = Memory::write(cx, from, cx.array(0)?.data())?.read_as(cx, to.element_type)?;
    let places = Places::new(cx, to)?;
    memory.check_known(&places, from, to)?;
    memory.check_padding(cx, from, to)?;
    let mut out = Data::zeros(to.element_type, 0);
    fill(&mut out, &memory.data, places.list.iter().copied())?;
    allocation.with(out)
}

/// Elements of fewer than 8 bits lie one or several in a byte.
fn check_packing(from: &ArrayShape, to: &ArrayShape) -> Outcome<()> {
    let bits = |shape: &ArrayShape| shape.layout.as_ref().map_or(0, |l| l.element_size_in_bits);
    if from.element_type != to.element_type || bits(from) == bits(to) {
        return Ok(());
    }
    Err(unsupported(format!("{from} and {to} pack their elements differently")))
}

/// A buffer, as elements of some type.
struct Memory {
    element_type: ElementType,
    data: Data,
    /// For each element whether it is known.
    known: Vec<bool>,
    charges: Vec<Charge>,
}

impl Memory {
    /// Returns the buffer of an array of these elements.
    fn write(cx: &Cx<'_, '_>, shape: &ArrayShape, elements: &Data) -> Outcome<Self> {
        let element_type = shape.element_type;
        let places = Places::new(cx, shape)?;
        let bytes = element_type.bytes() as usize;
        let charge = cx.scratch(bytes.saturating_add(1), places.buffer)?;
        let data = Data::zeros(element_type, places.buffer);
        let known = vec![false; places.buffer];
        let mut memory = Self { element_type, data, known, charges: vec![charge] };
        if let Some((padding, value)) = known_padding(shape)? {
            let padded = Places::padded(cx, shape, padding)?;
            let _values = cx.scratch(bytes, padded.list.len())?;
            memory.put(&repeat(&value, padded.list.len()), &padded)?;
        }
        memory.put(elements, &places)?;
        Ok(memory)
    }

    fn put(&mut self, values: &Data, places: &Places) -> Outcome<()> {
        for &place in &places.list {
            *self.known.get_mut(place).ok_or(OUT_OF_RANGE)? = true;
        }
        spread(&mut self.data, values, places.list.iter().copied())
    }

    /// Returns the same bytes as elements of another type, known where all their bits are.
    fn read_as(mut self, cx: &Cx<'_, '_>, to: ElementType) -> Outcome<Self> {
        let from = self.element_type;
        if from == to {
            return Ok(self);
        }
        // Three bytes for each: as bytes, as elements, and whether each of at least 1 bit is
        // known.
        let bytes = (from.bytes() as usize).saturating_mul(3);
        let bits = from.storage_bits() as usize;
        self.charges.push(cx.scratch(bytes.saturating_add(bits), self.data.len())?);
        let data = reinterpret(&self.data, from, to)?;
        let to_bits = to.storage_bits() as usize;
        let is_known = |element: usize| {
            let first = element.checked_mul(to_bits)?.checked_div(bits)?;
            let end = element.checked_add(1)?.checked_mul(to_bits)?.div_ceil(bits);
            Some(self.known.get(first..end)?.iter().all(|&known| known))
        };
        let known = (0..data.len()).map(|element| is_known(element).unwrap_or(false)).collect();
        Ok(Self { element_type: to, data, known, charges: self.charges })
    }

    fn is_known(&self, place: usize) -> bool {
        self.known.get(place).copied().unwrap_or(false)
    }

    /// Every element that is read is there.
    fn check_known(&self, places: &Places, from: &ArrayShape, to: &ArrayShape) -> Outcome<()> {
        if places.list.iter().any(|&place| place >= self.data.len()) {
            return Err(unsupported(format!("{to} needs a larger buffer than {from}")));
        }
        match places.list.iter().position(|&place| !self.is_known(place)) {
            Some(element) => Err(unsupported(format!(
                "element {element} of {to} lies in padding of {from}, whose value is undefined"
            ))),
            None => Ok(()),
        }
    }

    /// Checks that the layout's statement about its padding is true.
    fn check_padding(&self, cx: &Cx<'_, '_>, from: &ArrayShape, to: &ArrayShape) -> Outcome<()> {
        let Some((padding, value)) = known_padding(to)? else { return Ok(()) };
        let mut places = Places::padded(cx, to, padding)?;
        let mut position = PositionIterator::over(&padding.dims).map_err(|_| OUT_OF_RANGE)?;
        places.list.retain(|_| {
            let is_element = position
                .current()
                .is_some_and(|at| at.iter().zip(to.dims()).all(|(index, size)| index < size));
            position.advance();
            !is_element
        });
        let _values = cx.scratch(2 * to.element_type.bytes() as usize, places.list.len())?;
        let wrong = || {
            unsupported(format!(
                "the padding of {to} would not be {}: there is something else of {from}",
                padding.value.name()
            ))
        };
        if !places.list.iter().all(|&place| self.is_known(place)) {
            return Err(wrong());
        }
        let mut found = Data::zeros(to.element_type, 0);
        fill(&mut found, &self.data, places.list.iter().copied())?;
        if found == repeat(&value, places.list.len()) { Ok(()) } else { Err(wrong()) }
    }
}

/// The addresses of an array's elements, in row-major order.
struct Places {
    list: Vec<usize>,
    /// Elements of the buffer.
    buffer: usize,
    _charge: Charge,
}

impl Places {
    fn new(cx: &Cx<'_, '_>, shape: &ArrayShape) -> Outcome<Self> {
        let map = AddressMap::new(shape).map_err(|error| unsupported(error.to_string()))?;
        let buffer = usize::try_from(map.buffer_elements()).map_err(|_| OUT_OF_RANGE)?;
        let mut walk = PositionIterator::over(shape.dims()).map_err(|_| OUT_OF_RANGE)?;
        let count = shape.num_elements().map(extent).ok_or(OUT_OF_RANGE)?;
        let charge = cx.scratch(size_of::<usize>(), count)?;
        cx.spend(count)?;
        let mut list = Vec::with_capacity(count);
        while let Some(position) = walk.current() {
            let place = map.linear(position).map_err(|_| OUT_OF_RANGE)?;
            list.push(usize::try_from(place).map_err(|_| OUT_OF_RANGE)?);
            walk.advance();
        }
        Ok(Self { list, buffer, _charge: charge })
    }

    /// Returns the addresses of elements and explicit padding together.
    fn padded(cx: &Cx<'_, '_>, shape: &ArrayShape, padding: &Padding) -> Outcome<Self> {
        let layout = shape.layout.clone().map(|layout| Layout { padding: None, ..layout });
        let dims = padding.dims.iter().copied();
        Self::new(cx, &ArrayShape::new(shape.element_type, dims).with_layout(layout))
    }
}

/// Returns the explicit padding of a layout, and the element that it holds.
fn known_padding(shape: &ArrayShape) -> Outcome<Option<(&Padding, Data)>> {
    let padding = shape.layout.as_ref().and_then(|layout| layout.padding.as_deref());
    let padding = padding.filter(|padding| &*padding.dims != shape.dims());
    match padding {
        Some(padding) => {
            let value = padding_value(padding.value, shape.element_type)?;
            Ok(value.map(|value| (padding, value)))
        }
        None => Ok(None),
    }
}

/// Returns an element of padding; `None` if nothing may be assumed about it.
fn padding_value(value: PaddingValue, element_type: ElementType) -> Outcome<Option<Data>> {
    let has_bounds = element_type.is_integer();
    let (number, from) = match value {
        PaddingValue::Unknown => return Ok(None),
        PaddingValue::Zero => (Data::S64(vec![0]), ElementType::S64),
        PaddingValue::One => (Data::S64(vec![1]), ElementType::S64),
        PaddingValue::Lowest if has_bounds => {
            (Data::S64(vec![least(element_type)]), ElementType::S64)
        }
        PaddingValue::Highest if has_bounds => {
            (Data::U64(vec![greatest(element_type)]), ElementType::U64)
        }
        PaddingValue::MinusInfinity | PaddingValue::Infinity if has_infinities(element_type) => {
            let negative = value == PaddingValue::MinusInfinity;
            let infinity = if negative { f64::NEG_INFINITY } else { f64::INFINITY };
            (Data::F64(vec![infinity]), ElementType::F64)
        }
        // XLA does not specify whether the least float is finite.
        PaddingValue::Lowest
        | PaddingValue::Highest
        | PaddingValue::MinusInfinity
        | PaddingValue::Infinity => {
            let name = value.name();
            return Err(unsupported(format!("padding of {element_type} that is `{name}`")));
        }
    };
    let mut element = Data::zeros(element_type, 0);
    convert_kernel(from, element_type)?(&[&number], 1, &mut element)?;
    Ok(Some(element))
}

/// Returns the least integer of a type.
fn least(element_type: ElementType) -> i64 {
    match element_type.class() {
        NumberClass::Signed => i64::MIN >> 64u32.saturating_sub(element_type.bits()).min(63),
        _ => 0,
    }
}

/// Returns the greatest integer of a type.
fn greatest(element_type: ElementType) -> u64 {
    let sign = u32::from(element_type.class() == NumberClass::Signed);
    let bits = element_type.bits().saturating_sub(sign);
    if bits == 0 { 0 } else { u64::MAX >> 64u32.saturating_sub(bits).min(63) }
}

fn has_infinities(element_type: ElementType) -> bool {
    let read_back = |small: Format| small.decode(small.encode(f64::INFINITY));
    let infinity = Format::of(element_type).map(read_back);
    let is_infinite = |value| matches!(value, small_float::Value::Real(x) if x.is_infinite());
    element_type.is_float() && infinity.is_none_or(is_infinite)
}
