//! Copies between main memory and vector memory, which run beside the core.

use std::ops::Range;

use tilewright_ir::ElementType;
use tilewright_lower::kernel::{Block, BufferAddress, BufferId, Expr, IndexId, Space, Statement};

use super::KernelRun;
use crate::violation::Fault;

/// A copy under way.
#[derive(Clone, Debug)]
pub(super) struct Flight {
    /// The destination and the source.
    to: (BufferId, Range<usize>),
    from: (BufferId, Range<usize>),
    /// The cycle at which it is done.
    done: f64,
}

impl<'m> KernelRun<'m> {
    pub(super) fn copy(
        &mut self,
        to: &BufferAddress,
        from: &BufferAddress,
        len: &Expr,
    ) -> Result<(), Fault> {
        let len = self.value_of(len)?;
        if len <= 0 {
            return Ok(());
        }
        let (to_range, from_range) = (self.range(to, len)?, self.range(from, len)?);
        self.not_in_flight(to.buffer, &to_range, true)?;
        self.not_in_flight(from.buffer, &from_range, false)?;
        let source = self.buffers[from.buffer.0].clone_range(&from_range);
        if !self.buffers[to.buffer.0].copy_from(to_range.start, &source, 0..source.len()) {
            return Err(Fault::Unsound("a copy between buffers of two types"));
        }
        let reads = !matches!(self.buffer(from.buffer)?.space, Space::Vmem | Space::VmemTwice);
        let done = self.transfer(self.buffer(from.buffer)?.element_type, len, reads);
        self.flights.push(Flight {
            to: (to.buffer, to_range),
            from: (from.buffer, from_range),
            done,
        });
        Ok(())
    }

    /// Returns the time that a copy takes, from or to main memory.
    fn transfer(&mut self, element_type: ElementType, len: i64, reads: bool) -> f64 {
        let bytes = len.max(0).unsigned_abs().saturating_mul(element_type.bytes().into());
        let counters = &mut self.clock.counters;
        let counted =
            if reads { &mut counters.hbm_read_bytes } else { &mut counters.hbm_write_bytes };
        *counted = counted.saturating_add(bytes);
        self.clock.copy(bytes, self.line)
    }

    /// Checks that no copy under way writes a range or, before a write, reads it.
    pub(super) fn not_in_flight(
        &self,
        id: BufferId,
        range: &Range<usize>,
        writes: bool,
    ) -> Result<(), Fault> {
        let meets = |part: &(BufferId, Range<usize>)| {
            let overlap = part.1.start.max(range.start)..part.1.end.min(range.end);
            (part.0 == id && !overlap.is_empty()).then_some(overlap.start)
        };
        let meeting = |flight: &Flight| {
            meets(&flight.to).or_else(|| writes.then(|| meets(&flight.from)).flatten())
        };
        match self.flights.iter().find_map(meeting) {
            Some(place) => {
                let address = i64::try_from(place).unwrap_or(i64::MAX);
                Err(Fault::Race { buffer: self.name(id), address })
            }
            None => Ok(()),
        }
    }

    pub(super) fn wait(&mut self, id: BufferId) {
        let of = |flight: &Flight| flight.to.0 == id || flight.from.0 == id;
        let until = self.flights.iter().filter(|f| of(f)).map(|f| f.done).fold(0.0, f64::max);
        self.flights.retain(|flight| !of(flight));
        self.clock.wait(until, self.line);
    }

    pub(super) fn wait_for_all(&mut self) {
        let until = self.flights.drain(..).map(|flight| flight.done).fold(0.0, f64::max);
        self.clock.wait(until, self.line);
    }

    /// Processes one block while the next one is copied.
    pub(super) fn stream(
        &mut self,
        grid: &'m [(IndexId, u64)],
        blocks: &'m [Block],
        body: &'m [Statement],
    ) -> Result<(), Fault> {
        let steps = grid.iter().try_fold(1u64, |steps, &(_, n)| steps.checked_mul(n));
        let steps = steps.ok_or(Fault::Overflow)?;
        let (line, within) = (self.line, self.number + 1);
        let mut next = None;
        if steps > 0 {
            next = Some(self.fetch(grid, blocks, 0)?);
        }
        for step in 0..steps {
            self.line = line;
            let done = next.take().unwrap_or(0.0);
            if step + 1 < steps {
                next = Some(self.fetch(grid, blocks, step + 1)?);
            }
            self.at_step(grid, step)?;
            self.fill(blocks)?;
            self.clock.wait(done, line);
            self.statements(body, within)?;
            // The slot that was read is free for the block after the next.
            self.clock.settle(line);
        }
        grid.iter().try_for_each(|&(index, _)| self.bind(index, None))
    }

    /// Sets the indices for a step: the last one is fastest.
    fn at_step(&mut self, grid: &[(IndexId, u64)], step: u64) -> Result<(), Fault> {
        let mut rest = step;
        for &(index, n) in grid.iter().rev() {
            let value = i64::try_from(rest % n.max(1)).map_err(|_| Fault::Overflow)?;
            self.bind(index, Some(value))?;
            rest /= n.max(1);
        }
        Ok(())
    }

    /// Starts to copy the blocks of a step; returns the cycle in which they have arrived.
    fn fetch(
        &mut self,
        grid: &[(IndexId, u64)],
        blocks: &'m [Block],
        step: u64,
    ) -> Result<f64, Fault> {
        self.at_step(grid, step)?;
        let mut done: f64 = 0.0;
        for block in blocks {
            let mut elements = 0i64;
            self.runs(&block.each, &mut |run| {
                let len = run.value_of(&block.len)?.max(0);
                let range = run.range(&block.from, len)?;
                elements = elements.checked_add(len).ok_or(Fault::Overflow)?;
                run.not_in_flight(block.from.buffer, &range, false)
            })?;
            let element_type = self.buffer(block.from.buffer)?.element_type;
            done = done.max(self.transfer(element_type, elements, true));
        }
        Ok(done)
    }

    /// Does something for each run of a block.
    fn runs(
        &mut self,
        each: &'m [(IndexId, Expr)],
        then: &mut dyn FnMut(&mut Self) -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        let Some(((index, count), rest)) = each.split_first() else { return then(self) };
        for value in 0..self.value_of(count)? {
            self.bind(*index, Some(value))?;
            self.runs(rest, then)?;
        }
        self.bind(*index, None)
    }

    /// Fills in the blocks of the current step; the remaining elements are poisoned.
    fn fill(&mut self, blocks: &'m [Block]) -> Result<(), Fault> {
        for block in blocks {
            self.buffers[block.to.buffer.0].poison();
            self.runs(&block.each, &mut |run| {
                let len = run.value_of(&block.len)?;
                let from = run.range(&block.from, len)?;
                let to = run.range(&block.to, len)?;
                let source = run.buffers[block.from.buffer.0].clone_range(&from);
                let memory = &mut run.buffers[block.to.buffer.0];
                if memory.copy_from(to.start, &source, 0..source.len()) {
                    Ok(())
                } else {
                    Err(Fault::Unsound("a stream between buffers of two types"))
                }
            })?;
        }
        Ok(())
    }
}
