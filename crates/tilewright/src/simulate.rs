//! Kernels on the simulated machine, with the interpreter's arithmetic.

use tilewright_interp::Elementwise;
use tilewright_ir::{ArrayLiteral, ArrayShape, Data, ElementType, Literal, Op};
use tilewright_sim::{Arithmetic, Lanes, Memory};
use tilewright_target::{Physical, Target};

/// What the interpreter does to elements.
#[derive(Clone, Copy, Debug, Default)]
pub struct InterpreterArithmetic;

impl Arithmetic for InterpreterArithmetic {
    fn prepare(
        &self,
        op: &Op,
        operands: &[ElementType],
        result: ElementType,
    ) -> Option<Box<dyn Lanes>> {
        let op = Elementwise::new(op, operands, result)?;
        Some(Box::new(Prepared(op)))
    }
}

struct Prepared(Elementwise);

impl Lanes for Prepared {
    fn compute(&self, operands: &[&Data], lanes: usize, out: &mut Data) -> bool {
        self.0.compute(operands, lanes, out)
    }
}

/// A value as it lies in the memory of a target: padding is poison.
///
/// `None` where its shape is none that can be walked there.
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

/// The value that lies in memory; `None` where an element of it is poison.
pub fn value_of(target: &Target, shape: &ArrayShape, memory: &Memory) -> Option<Literal> {
    let elements = u64::try_from(shape.num_elements()?).ok()?;
    let addresses = Physical::of(target, shape).addresses(elements)?;
    let places: Vec<usize> = addresses
        .map(|a| usize::try_from(a).ok().filter(|&a| memory.is_known(a)))
        .collect::<Option<_>>()?;
    let data = memory.data().gather(places.into_iter());
    ArrayLiteral::new(shape.element_type, shape.dims().iter().copied(), data)
        .ok()
        .map(Literal::Array)
}
