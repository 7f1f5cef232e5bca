//! Checks that a kernel is valid before it runs.
//!
//! Names are known and types agree. Registers are set before they are read. Only vector memory
//! is loaded from and stored to, and copies fit their buffers. On a machine that aligns,
//! accesses are whole vectors on vector boundaries as far as the text shows it; the machine
//! checks the rest at run time. Buffers fit in vector memory, and live values fit in the
//! registers.

mod live;
mod types;

use std::fmt;
use std::ops::RangeInclusive;

use tilewright_target::{Alignment, Target};

use super::{
    Block, Bound, BufferAddress, BufferId, Digit, Expr, IndexId, Kernel, Register, RegisterId,
    Space, Statement, Value, print::lines,
};

/// Why a kernel is not valid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flaw {
    /// The line of the kernel's text, from 1; 1 if the flaw concerns the whole kernel.
    pub line: usize,
    /// The flaw, and the valid alternative.
    pub message: String,
}

impl fmt::Display for Flaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.message)
    }
}

/// Returns all flaws of a kernel on a target; empty if the kernel can run.
pub fn check(kernel: &Kernel, target: &Target) -> Vec<Flaw> {
    let mut flaws: Vec<Flaw> = types::functions(kernel)
        .into_iter()
        .chain(memory(kernel, target))
        .map(|message| Flaw { line: 1, message })
        .collect();
    let lines = lines(kernel);
    let mut checker = Checker {
        kernel,
        target,
        set: vec![false; kernel.registers.len()],
        ranges: vec![None; kernel.indices.len()],
        varying: Vec::new(),
        lines: &lines,
        next: 0,
        flaws: Vec::new(),
    };
    checker.statements(&kernel.body);
    flaws.append(&mut checker.flaws);
    if flaws.is_empty() {
        flaws.extend(live::flaw(kernel, target));
    }
    flaws
}

/// Returns the message for buffers that exceed vector memory together.
fn memory(kernel: &Kernel, target: &Target) -> Option<String> {
    let bytes = kernel.vmem_bytes();
    let fits = bytes.is_some_and(|bytes| bytes <= target.vector_memory_bytes);
    (!fits).then(|| {
        let bytes = bytes.map_or_else(|| "more than 2^64".to_owned(), |bytes| bytes.to_string());
        format!(
            "the buffers take {bytes} bytes of vector memory, and {} has {}: use smaller blocks",
            target.name, target.vector_memory_bytes
        )
    })
}

impl Kernel {
    /// Bytes of the kernel's buffers in main memory; saturates at `u64::MAX`.
    pub fn main_memory_bytes(&self) -> u64 {
        let main = self.buffers.iter().filter(|buffer| match buffer.space {
            Space::In | Space::Out | Space::Workspace => true,
            Space::Vmem | Space::VmemTwice => false,
        });
        let bytes =
            main.map(|buffer| buffer.len.saturating_mul(buffer.element_type.bytes().into()));
        bytes.fold(0, u64::saturating_add)
    }

    /// Bytes of the kernel's buffers in vector memory; `None` if they do not fit in 64 bits.
    pub fn vmem_bytes(&self) -> Option<u64> {
        self.buffers.iter().try_fold(0u64, |sum, buffer| {
            let times = match buffer.space {
                Space::In | Space::Out | Space::Workspace => return Some(sum),
                Space::Vmem => 1,
                Space::VmemTwice => 2,
            };
            let bytes = buffer.len.checked_mul(buffer.element_type.bytes().into())?;
            sum.checked_add(bytes.checked_mul(times)?)
        })
    }
}

struct Checker<'a> {
    kernel: &'a Kernel,
    target: &'a Target,
    /// For each register, whether it is certainly set.
    set: Vec<bool>,
    /// The range of the index of each enclosing loop.
    ranges: Vec<Option<RangeInclusive<i64>>>,
    /// The indices of loops whose counts depend on other indices.
    varying: Vec<IndexId>,
    lines: &'a [usize],
    next: usize,
    flaws: Vec<Flaw>,
}

impl<'a> Checker<'a> {
    fn flaw(&mut self, message: String) {
        let line = self.lines.get(self.next.saturating_sub(1)).copied().unwrap_or(1);
        self.flaws.push(Flaw { line, message });
    }

    fn statements(&mut self, statements: &'a [Statement]) {
        for statement in statements {
            self.next += 1;
            self.statement(statement);
        }
    }

    /// Checks a body. Registers set only inside count as unset after it, because it may not run.
    fn within(&mut self, body: &'a [Statement]) {
        let before = self.set.clone();
        self.statements(body);
        self.set = before;
    }

    fn statement(&mut self, statement: &'a Statement) {
        match statement {
            Statement::For { index, count, body } => {
                if !matches!(count, Expr::Constant(_)) {
                    self.varying.push(*index);
                }
                let last = self.range(count).map(|count| count.end().saturating_sub(1).max(0));
                self.looped(&[(*index, last)], body);
            }
            Statement::When { equal, body } => {
                equal.iter().for_each(|expr| self.indices(expr));
                self.within(body);
            }
            Statement::Stream { grid, blocks, body } => {
                let last = |n: u64| i64::try_from(n).ok().map(|n| n.saturating_sub(1).max(0));
                let grid: Vec<_> = grid.iter().map(|&(index, n)| (index, last(n))).collect();
                // The addresses of the blocks depend on the grid.
                self.bind(&grid);
                blocks.iter().for_each(|block| self.block(block));
                self.looped(&grid, body);
            }
            Statement::Copy { to, from, len } => self.copy(to, from, len),
            Statement::Wait(buffer) => self.space(*buffer, VMEM, "what is waited for is"),
            Statement::Set { registers, value } => {
                self.value(registers, value);
                for register in registers {
                    if let Some(set) = self.set.get_mut(register.0) {
                        *set = true;
                    }
                }
            }
            Statement::Store { to, from, mask } => {
                self.read(*from);
                self.space(to.buffer, VMEM, "vectors are stored to");
                self.vector_at(to, *from, mask);
            }
        }
    }

    fn block(&mut self, block: &Block) {
        let Block { to, from, len, each } = block;
        let last = |count: RangeInclusive<i64>| count.end().saturating_sub(1).max(0);
        self.indices(len);
        for (_, count) in each {
            self.indices(count);
        }
        let runs: Vec<(IndexId, Option<i64>)> =
            each.iter().map(|(index, count)| (*index, self.range(count).map(last))).collect();
        let varying = each.iter().filter(|(_, count)| !matches!(count, Expr::Constant(_)));
        self.varying.extend(varying.map(|(index, _)| *index));
        self.bind(&runs);
        self.space(to.buffer, &[Space::VmemTwice], "streams fill");
        self.space(from.buffer, &[Space::In, Space::Workspace], "streams read");
        self.same_elements(to.buffer, from.buffer);
        self.within_buffer(from, len, false);
        self.within_buffer(to, len, false);
        self.unbind(&runs);
    }

    fn bind(&mut self, indices: &[(IndexId, Option<i64>)]) {
        for (index, last) in indices {
            if let Some(range) = self.ranges.get_mut(index.0) {
                *range = Some(0..=last.unwrap_or(i64::MAX));
            }
        }
    }

    fn looped(&mut self, indices: &[(IndexId, Option<i64>)], body: &'a [Statement]) {
        self.bind(indices);
        self.within(body);
        self.unbind(indices);
    }

    fn unbind(&mut self, indices: &[(IndexId, Option<i64>)]) {
        for (index, _) in indices {
            if let Some(range) = self.ranges.get_mut(index.0) {
                *range = None;
            }
        }
    }

    fn copy(&mut self, to: &BufferAddress, from: &BufferAddress, len: &Expr) {
        let is_vmem = |id| self.kernel.buffer(id).is_some_and(|b| VMEM.contains(&b.space));
        match (is_vmem(to.buffer), is_vmem(from.buffer)) {
            (true, false) => {
                self.space(from.buffer, &[Space::In, Space::Workspace], "copies read");
            }
            (false, true) => {
                self.space(to.buffer, &[Space::Out, Space::Workspace], "copies write");
            }
            _ => self
                .flaw("a copy goes between main memory (in, out, workspace) and vmem".to_owned()),
        }
        self.same_elements(to.buffer, from.buffer);
        self.within_buffer(to, len, false);
        self.within_buffer(from, len, false);
    }

    fn space(&mut self, id: BufferId, allowed: &[Space], what: &str) {
        let Some(buffer) = self.kernel.buffer(id) else {
            return self.flaw(format!("there is no buffer {}", id.0));
        };
        if !allowed.contains(&buffer.space) {
            let names: Vec<String> = allowed
                .iter()
                .map(|space| {
                    let (word, twice) = space.words();
                    format!("{word}{twice}")
                })
                .collect();
            self.flaw(format!("{what} {}, and `{}` is not that", names.join(" or "), buffer.name));
        }
    }

    fn same_elements(&mut self, a: BufferId, b: BufferId) {
        let (Some(a), Some(b)) = (self.kernel.buffer(a), self.kernel.buffer(b)) else { return };
        if a.element_type != b.element_type {
            self.flaw(format!("`{}` and `{}` hold elements of two types", a.name, b.name));
        }
    }

    fn read(&mut self, id: RegisterId) {
        match self.kernel.register(id) {
            None => self.flaw(format!("there is no register {}", id.0)),
            Some(register) if !self.set.get(id.0).copied().unwrap_or(false) => self.flaw(format!(
                "`{}` may not be set yet: set it before the loop or condition",
                register.name
            )),
            Some(_) => {}
        }
    }

    fn value(&mut self, registers: &[RegisterId], value: &'a Value) {
        value.operands().for_each(|operand| self.read(operand));
        for flaw in types::value(self.kernel, registers, value) {
            self.flaw(flaw);
        }
        let (Some(&first), Some(register)) =
            (registers.first(), registers.first().and_then(|&id| self.kernel.register(id)))
        else {
            return;
        };
        match value {
            Value::Load { from, mask, otherwise } => {
                self.space(from.buffer, VMEM, "vectors are loaded from");
                if !mask.is_empty() && otherwise.is_none() {
                    self.flaw("a load under a mask says what the others are: `else`".to_owned());
                }
                self.vector_at(from, first, mask);
            }
            Value::Scalar(place) => {
                self.space(place.buffer, VMEM, "scalars are read from");
                self.within_buffer(place, &Expr::Constant(1), false);
            }
            Value::Gather { from, mask, otherwise } => {
                self.space(from.buffer, VMEM, "elements are gathered from");
                if !mask.is_empty() && otherwise.is_none() {
                    self.flaw("a gather under a mask says what the others are: `else`".to_owned());
                }
                self.mask(mask, register.len);
                self.gathered(from, register);
            }
            Value::Positions(value) => self.loops(value),
            Value::Fold { along, .. } => self.digit(*along, register.len),
            Value::Spread { along, at, .. } => {
                self.indices(at);
                self.digit(*along, register.len);
            }
            Value::Under(mask) => {
                if mask.is_empty() {
                    self.flaw("a mask has bounds: where there are none, `splat true`".to_owned());
                }
                self.mask(mask, register.len);
            }
            Value::Part { of, at } => {
                self.indices(at);
                self.part(*of, register.len, at);
            }
            Value::Splat(_) | Value::Apply(..) | Value::Call(..) => {}
        }
    }

    /// Checks that all parts of a register have the same length.
    fn part(&mut self, of: RegisterId, len: u64, at: &Expr) {
        let whole = self.kernel.register(of).map_or(0, |register| register.len);
        if len == 0 || !whole.is_multiple_of(len) {
            return self.flaw(format!("{len} elements are no part of {whole}"));
        }
        let parts = i64::try_from(whole / len).unwrap_or(i64::MAX);
        if self.range(at).is_some_and(|at| *at.start() >= parts || *at.end() < 0) {
            self.flaw(format!("there are {parts} parts"));
        }
    }

    fn mask(&mut self, mask: &[Bound], len: u64) {
        for Bound { digit, from, to } in mask {
            self.indices(from);
            self.indices(to);
            self.digit(*digit, len);
        }
    }

    /// Checks that a digit divides a vector evenly.
    fn digit(&mut self, digit: Digit, len: u64) {
        let reach = digit.stride.checked_mul(digit.extent).filter(|&reach| reach > 0);
        if reach.is_none_or(|reach| !len.is_multiple_of(reach)) {
            self.flaw(format!("`{digit}` is no digit of positions in {len} elements"));
        }
    }

    /// Checks a vector that is loaded or stored.
    fn vector_at(&mut self, place: &BufferAddress, register: RegisterId, mask: &[Bound]) {
        self.mask(mask, self.kernel.register(register).map_or(0, |register| register.len));
        let (Some(register), Some(buffer)) =
            (self.kernel.register(register), self.kernel.buffer(place.buffer))
        else {
            return;
        };
        if register.element_type != buffer.element_type {
            self.flaw(format!(
                "`{}` holds {}, `{}` {}",
                register.name,
                register.element_type.name(),
                buffer.name,
                buffer.element_type.name()
            ));
        }
        let len = i64::try_from(register.len).unwrap_or(i64::MAX);
        self.within_buffer(place, &Expr::Constant(len), !mask.is_empty());
        if self.target.alignment == Alignment::Tiles {
            let unit = self.target.vector_elements(register.element_type);
            let unit = i64::try_from(unit).unwrap_or(i64::MAX);
            if !place.at.is_multiple_of(unit) || len % unit.max(1) != 0 {
                self.flaw(format!(
                    "vectors of {} begin on multiples of {unit} elements and hold as many",
                    register.element_type.name()
                ));
            }
        }
    }

    /// Checks the type of gathered elements, and that not all of them are out of bounds.
    fn gathered(&mut self, from: &BufferAddress, register: &Register) {
        self.loops(&from.at);
        let Some(buffer) = self.kernel.buffer(from.buffer) else { return };
        if register.element_type != buffer.element_type {
            let names = (register.element_type.name(), buffer.element_type.name());
            self.flaw(format!(
                "`{}` holds {}, `{}` {}",
                register.name, names.0, buffer.name, names.1
            ));
        }
        let size = i64::try_from(buffer.len).unwrap_or(i64::MAX);
        let last = i64::try_from(register.len).unwrap_or(i64::MAX).saturating_sub(1);
        let index = |index: IndexId| self.ranges.get(index.0).cloned().flatten();
        let range = from.at.range_at(Some(0..=last), &index);
        if let Some(range) = range.filter(|range| *range.start() >= size || *range.end() < 0) {
            self.flaw(format!(
                "it reaches element {} of `{}`, which has {size}",
                range.start(),
                buffer.name
            ));
        }
    }

    /// Checks that a range is within a buffer. If only some values of the indices exceed it, the
    /// machine reports that at run time.
    fn within_buffer(&mut self, place: &BufferAddress, len: &Expr, masked: bool) {
        self.indices(&place.at);
        self.indices(len);
        let Some(buffer) = self.kernel.buffer(place.buffer) else { return };
        let (Some(at), Some(count)) = (self.range(&place.at), self.range(len)) else {
            return;
        };
        let size = i64::try_from(buffer.len).unwrap_or(i64::MAX);
        let exact = !masked && self.is_exact(&place.at) && self.is_exact(len);
        let last = if exact { *at.end() } else { *at.start() };
        let count = if masked { 1 } else { *count.start() };
        let first = if exact { *at.start() } else { *at.end() };
        if first < 0 || last.saturating_add(count.max(0)) > size {
            self.flaw(format!(
                "it reaches element {} of `{}`, which has {size}",
                last.saturating_add(count.max(1)).saturating_sub(1),
                buffer.name
            ));
        }
    }

    /// Checks whether an expression takes every value of its range, which holds for sums of
    /// multiples of indices whose loops do not depend on other loops.
    fn is_exact(&self, expr: &Expr) -> bool {
        expr.is_linear() && expr.indices().iter().all(|index| !self.varying.contains(index))
    }

    fn range(&self, expr: &Expr) -> Option<RangeInclusive<i64>> {
        expr.range(&|index: IndexId| self.ranges.get(index.0).cloned().flatten())
    }

    fn indices(&mut self, expr: &Expr) {
        if expr.has_position() {
            self.flaw("`p` is the position in a vector: here there is none".to_owned());
        }
        self.loops(expr);
    }

    /// Checks that the indices of an expression belong to enclosing loops.
    fn loops(&mut self, expr: &Expr) {
        for index in expr.indices() {
            if self.ranges.get(index.0).is_none_or(Option::is_none) {
                let name = self.kernel.indices.get(index.0).map_or("?", |name| name).to_owned();
                self.flaw(format!("`{name}` is the index of no loop around"));
            }
        }
    }
}

const VMEM: &[Space] = &[Space::Vmem, Space::VmemTwice];
