//! Converts between values and their memory layout.

use tilewright_ir::{ArrayLiteral, ArrayShape, Literal};
use tilewright_target::{Physical, Target};

use crate::memory::Memory;

/// Returns a value in its layout in the memory of a target, with poisoned padding; `None` if
/// kernels cannot walk its shape on the target.
pub fn memory_of(target: &Target, shape: &ArrayShape, value: &Literal) -> Option<Memory> {
    let array = value.as_array()?;
    let physical = Physical::of(target, shape);
    let places = usize::try_from(physical.places()?).ok()?;
    let addresses = physical.addresses(array.len() as u64)?;
    let addresses = addresses.map(|address| usize::try_from(address).unwrap_or(usize::MAX));
    let pairs: Vec<(usize, usize)> = addresses.enumerate().map(|(i, a)| (a, i)).collect();
    let mut memory = Memory::poisoned(array.element_type(), places);
    memory.set_from(array.data(), pairs.into_iter()).then_some(memory)
}

/// Returns the value of an array in memory; `None` if one of its elements is poisoned.
pub fn value_of(target: &Target, shape: &ArrayShape, memory: &Memory) -> Option<Literal> {
    let elements = u64::try_from(shape.num_elements()?).ok()?;
    let addresses = Physical::of(target, shape).addresses(elements)?;
    let known = addresses.map(|a| usize::try_from(a).ok().filter(|&a| memory.is_known(a)));
    let places: Vec<usize> = known.collect::<Option<_>>()?;
    let data = memory.data().gather(places.into_iter());
    let array = ArrayLiteral::new(shape.element_type, shape.dims().iter().copied(), data);
    array.ok().map(Literal::Array)
}
