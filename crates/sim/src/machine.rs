//! The state of the machine, and the execution of kernels.

mod copies;
mod gather;
mod value;

use std::ops::Range;
use std::rc::Rc;

use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use smol_str::SmolStr;
use tilewright_ir::{Data, ElementType, Op};
use tilewright_lower::kernel::{
    Bound, Buffer, BufferAddress, BufferId, Expr, IndexId, Kernel, RegisterId, Space, Statement,
    lines,
};
use tilewright_target::{Alignment, Target};

use crate::arithmetic::{Arithmetic, Lanes};
use crate::clock::{Clock, Counters, Event, Unit};
use crate::memory::Memory;
use crate::vector::{Bounds, is_under};
use crate::violation::{Fault, Violation};

use copies::Flight;

/// A vector machine as a target describes it.
#[derive(Clone, Copy, Debug)]
pub struct Machine<'a> {
    target: &'a Target,
    arithmetic: &'a dyn Arithmetic,
    max_steps: u64,
    max_bytes: u64,
}

/// The default limit of main memory in bytes.
const MAIN_MEMORY: u64 = 16 << 30;

/// The result of running a kernel.
#[derive(Clone, Debug)]
pub struct Ran {
    /// The contents of its `out` buffers, in order.
    pub outputs: Vec<Memory>,
    /// Its measurements.
    pub counters: Counters,
    /// Busy periods in the order of their start; the first 100,000.
    pub events: Vec<Event>,
}

impl<'a> Machine<'a> {
    /// A machine that computes with this arithmetic.
    pub fn new(target: &'a Target, arithmetic: &'a dyn Arithmetic) -> Self {
        Self { target, arithmetic, max_steps: u64::MAX, max_bytes: MAIN_MEMORY }
    }

    /// Sets the size of main memory in bytes; the default is 16 GiB.
    #[must_use]
    pub fn with_max_bytes(mut self, max_bytes: u64) -> Self {
        self.max_bytes = max_bytes;
        self
    }

    /// Sets the maximum number of statements.
    #[must_use]
    pub fn with_max_steps(mut self, max_steps: u64) -> Self {
        self.max_steps = max_steps;
        self
    }

    /// Runs a kernel on the contents of its `in` buffers, in order.
    ///
    /// # Errors
    /// Returns an error if it breaks a rule of the machine; the error names the line of its
    /// text.
    pub fn run(&self, kernel: &Kernel, inputs: Vec<Memory>) -> Result<Ran, Violation> {
        let whole = |fault| Violation { kernel: kernel.name.clone(), line: 1, fault };
        self.fits(kernel).map_err(whole)?;
        let buffers = self.buffers(kernel, inputs).map_err(whole)?;
        let mut sizes = Vec::new();
        count(&kernel.body, &mut sizes);
        let mut run = KernelRun {
            machine: self,
            kernel,
            lines: lines(kernel),
            sizes,
            number: 0,
            line: 1,
            buffers,
            registers: vec![None; kernel.registers.len()],
            indices: vec![None; kernel.indices.len()],
            flights: Vec::new(),
            clock: Clock::new(self.target),
            prepared: FxHashMap::default(),
            steps: 0,
        };
        let done = run.statements(&kernel.body, 0);
        done.map_err(|fault| Violation { kernel: kernel.name.clone(), line: run.line, fault })?;
        Ok(run.finish())
    }

    fn fits(&self, kernel: &Kernel) -> Result<(), Fault> {
        let (bytes, has) =
            (kernel.vmem_bytes().unwrap_or(u64::MAX), self.target.vector_memory_bytes);
        if bytes > has {
            return Err(Fault::OverCapacity { bytes, has });
        }
        let main = kernel.main_memory_bytes();
        if main > self.max_bytes {
            return Err(Fault::MainMemory { bytes: main, limit: self.max_bytes });
        }
        let (used, has) =
            (kernel.live_registers(self.target), u64::from(self.target.vector_registers));
        if used > has { Err(Fault::OutOfRegisters { used, has }) } else { Ok(()) }
    }

    fn buffers(&self, kernel: &Kernel, inputs: Vec<Memory>) -> Result<Vec<Memory>, Fault> {
        let mut inputs = inputs.into_iter().enumerate();
        let mut buffers = Vec::with_capacity(kernel.buffers.len());
        for buffer in &kernel.buffers {
            let Buffer { name, space, element_type, len } = buffer;
            let places = usize::try_from(*len).map_err(|_| Fault::Overflow)?;
            buffers.push(match space {
                Space::In => {
                    let wrong = |index| Fault::Input { index, buffer: name.clone(), wanted: *len };
                    let (index, memory) = inputs.next().ok_or_else(|| wrong(buffers.len()))?;
                    let fits = memory.len() == places && memory.data().stores(*element_type);
                    if !fits {
                        return Err(wrong(index));
                    }
                    memory
                }
                Space::Out | Space::Workspace | Space::Vmem | Space::VmemTwice => {
                    Memory::poisoned(*element_type, places)
                }
            });
        }
        Ok(buffers)
    }
}

/// For each statement in the order of the text, the number of statements in it, itself included.
fn count(statements: &[Statement], sizes: &mut Vec<usize>) {
    for statement in statements {
        let number = sizes.len();
        sizes.push(1);
        count(statement.body().unwrap_or_default(), sizes);
        sizes[number] = sizes.len() - number;
    }
}

/// Returns the number of vectors of a register with this many elements.
fn vectors_of(target: &Target, element_type: ElementType, len: usize) -> u64 {
    target.vectors_for(element_type, len as u64)
}

/// An op with the types of its operands and of its result.
type Typed = (Op, SmallVec<[ElementType; 3]>, ElementType);

/// A kernel being run.
struct KernelRun<'m> {
    machine: &'m Machine<'m>,
    kernel: &'m Kernel,
    /// The line of each statement, in the order of the text.
    lines: Vec<usize>,
    /// For each statement, the number of statements in it, itself included.
    sizes: Vec<usize>,
    /// The number of the current statement, in the order of the text.
    number: usize,
    /// The line of the current statement, or of the first that failed.
    line: usize,
    buffers: Vec<Memory>,
    registers: Vec<Option<Data>>,
    indices: Vec<Option<i64>>,
    flights: Vec<Flight>,
    clock: Clock<'m>,
    prepared: FxHashMap<Typed, Rc<dyn Lanes>>,
    steps: u64,
}

impl<'m> KernelRun<'m> {
    fn finish(mut self) -> Ran {
        self.wait_for_all();
        let workspaces = self.kernel.buffers.iter().filter(|b| b.space == Space::Workspace);
        let bytes = workspaces.map(|b| b.len.saturating_mul(b.element_type.bytes().into()));
        self.clock.counters.workspace_bytes = bytes.fold(0, u64::saturating_add);
        self.clock.counters.vmem_peak_bytes = self.kernel.vmem_bytes().unwrap_or(u64::MAX);
        let spaces = self.kernel.buffers.iter().map(|buffer| buffer.space);
        let outputs = self.buffers.into_iter().zip(spaces);
        Ran {
            outputs: outputs.filter(|(_, s)| *s == Space::Out).map(|(memory, _)| memory).collect(),
            counters: self.clock.counters,
            events: self.clock.events,
        }
    }

    /// Runs statements; `first` is the number of the first one.
    fn statements(&mut self, statements: &'m [Statement], first: usize) -> Result<(), Fault> {
        let mut number = first;
        for statement in statements {
            self.number = number;
            self.line = self.lines.get(number).copied().unwrap_or(1);
            number += self.sizes.get(number).copied().unwrap_or(1);
            self.steps = self.steps.saturating_add(1);
            if self.steps > self.machine.max_steps {
                return Err(Fault::TooLong(self.machine.max_steps));
            }
            self.statement(statement)?;
        }
        Ok(())
    }

    fn statement(&mut self, statement: &'m Statement) -> Result<(), Fault> {
        let within = self.number + 1;
        match statement {
            Statement::For { index, count, body } => {
                for value in 0..self.value_of(count)? {
                    self.bind(*index, Some(value))?;
                    self.statements(body, within)?;
                }
                self.bind(*index, None)
            }
            Statement::When { equal: [a, b], body } => {
                if self.value_of(a)? == self.value_of(b)? {
                    self.statements(body, within)
                } else {
                    Ok(())
                }
            }
            Statement::Stream { grid, blocks, body } => self.stream(grid, blocks, body),
            Statement::Copy { to, from, len } => self.copy(to, from, len),
            Statement::Wait(buffer) => {
                self.wait(*buffer);
                Ok(())
            }
            Statement::Set { registers, value } => self.set(registers, value),
            Statement::Store { to, from, mask } => self.store(to, *from, mask),
        }
    }

    fn bind(&mut self, index: IndexId, value: Option<i64>) -> Result<(), Fault> {
        *self.indices.get_mut(index.0).ok_or(Fault::Unsound("an index does not exist"))? = value;
        Ok(())
    }

    fn value_of(&self, expr: &Expr) -> Result<i64, Fault> {
        expr.value(&|index| self.indices.get(index.0).copied().flatten()).ok_or(Fault::Overflow)
    }

    /// Returns the bounds that exclude a position.
    fn bounds(&self, mask: &[Bound]) -> Result<Bounds, Fault> {
        let mut bounds = Bounds::new();
        for Bound { digit, from, to } in mask {
            let (from, to) = (self.value_of(from)?, self.value_of(to)?);
            let reaches = u64::try_from(to).is_ok_and(|to| to >= digit.extent);
            if from > 0 || !reaches {
                bounds.push((*digit, from, to));
            }
        }
        Ok(bounds)
    }

    fn buffer(&self, id: BufferId) -> Result<&'m Buffer, Fault> {
        self.kernel.buffer(id).ok_or(Fault::Unsound("a buffer does not exist"))
    }

    /// Checks a range of a buffer and returns it.
    fn range(&self, place: &BufferAddress, len: i64) -> Result<Range<usize>, Fault> {
        let address = self.value_of(&place.at)?;
        let end = address.checked_add(len.max(0)).ok_or(Fault::Overflow)?;
        let buffer = self.buffer(place.buffer)?;
        let inside = |place: i64| usize::try_from(place).ok().filter(|&p| p as u64 <= buffer.len);
        match (inside(address), inside(end)) {
            (Some(from), Some(to)) => Ok(from..to),
            (None, _) => Err(self.out_of_bounds(buffer, address)),
            (_, None) => Err(self.out_of_bounds(buffer, end.saturating_sub(1))),
        }
    }

    fn out_of_bounds(&self, buffer: &Buffer, address: i64) -> Fault {
        Fault::OutOfBounds { buffer: buffer.name.clone(), address, len: buffer.len }
    }

    /// Returns the address of a vector of this many elements. On a machine that aligns it must
    /// be a vector boundary.
    fn vector_at(&self, place: &BufferAddress, len: usize) -> Result<i64, Fault> {
        let address = self.value_of(&place.at)?;
        let buffer = self.buffer(place.buffer)?;
        let unit = self.machine.target.vector_elements(buffer.element_type);
        let whole =
            |n: i64| n.checked_rem_euclid(i64::try_from(unit).unwrap_or(i64::MAX)) == Some(0);
        let aligned = whole(address) && (len as u64).is_multiple_of(unit);
        if self.machine.target.alignment == Alignment::Tiles && !aligned {
            return Err(Fault::Misaligned { buffer: buffer.name.clone(), address, unit });
        }
        Ok(address)
    }

    fn register(&self, id: RegisterId) -> Result<&Data, Fault> {
        let register = self.registers.get(id.0).and_then(Option::as_ref);
        register.ok_or(Fault::Unsound("a register is read before it is set"))
    }

    fn name(&self, id: BufferId) -> SmolStr {
        self.kernel.buffer(id).map_or_else(SmolStr::default, |buffer| buffer.name.clone())
    }

    fn store(&mut self, to: &BufferAddress, from: RegisterId, mask: &[Bound]) -> Result<(), Fault> {
        let bounds = self.bounds(mask)?;
        let data = self.registers.get_mut(from.0).and_then(Option::take);
        let data = data.ok_or(Fault::Unsound("a register is stored before it is set"))?;
        let stored = self.store_data(to, &data, &bounds);
        let element_type = self.buffer(to.buffer)?.element_type;
        let vectors = vectors_of(self.machine.target, element_type, data.len());
        let slots = f64::from(self.machine.target.store_slots.max(1));
        self.clock.work(Unit::Store, vectors, 1.0 / slots);
        self.registers[from.0] = Some(data);
        stored
    }

    fn store_data(
        &mut self,
        to: &BufferAddress,
        data: &Data,
        bounds: &Bounds,
    ) -> Result<(), Fault> {
        let at = self.vector_at(to, data.len())?;
        let types = Fault::Unsound("a register is stored to a buffer of another type");
        if bounds.is_empty() {
            let range = self.range(to, i64::try_from(data.len()).unwrap_or(i64::MAX))?;
            self.not_in_flight(to.buffer, &range, true)?;
            return if self.buffers[to.buffer.0].store(range.start, data) {
                Ok(())
            } else {
                Err(types)
            };
        }
        let positions: Vec<usize> = (0..data.len()).filter(|&p| is_under(bounds, p)).collect();
        let pairs = self.places(to.buffer, at, &positions)?;
        if let (Some(first), Some(last)) = (pairs.first(), pairs.last()) {
            self.not_in_flight(to.buffer, &(first.0..last.0 + 1), true)?;
        }
        let stored = self.buffers[to.buffer.0].set_from(data, pairs.iter().copied());
        if stored { Ok(()) } else { Err(types) }
    }

    /// Returns the places of a buffer at which positions of a vector lie, with these.
    fn places(
        &self,
        id: BufferId,
        at: i64,
        positions: &[usize],
    ) -> Result<Vec<(usize, usize)>, Fault> {
        let buffer = self.buffer(id)?;
        let place = |&position: &usize| {
            let offset = i64::try_from(position).map_err(|_| Fault::Overflow)?;
            let address = at.checked_add(offset).ok_or(Fault::Overflow)?;
            let place = usize::try_from(address).ok().filter(|&place| (place as u64) < buffer.len);
            Ok((place.ok_or_else(|| self.out_of_bounds(buffer, address))?, position))
        };
        positions.iter().map(place).collect()
    }
}
