//! The buffers that a task keeps the values of a tile in. Steps read and write them.

use super::plan::TilePlan;
use super::real::Real;
use crate::vectors::Prefetch;

/// The number of bytes of a cache line.
pub(super) const LINE: usize = 64;

/// A buffer for a value. It begins at a cache line, since a vector that spans two lines takes twice
/// as long to load. Its memory is allocated at the first write: many values lie elsewhere.
#[derive(Debug)]
pub(super) struct AlignedBuffer<R> {
    data: Vec<R>,
    from: usize,
}

impl<R: Real> AlignedBuffer<R> {
    pub(super) const EMPTY: Self = Self { data: Vec::new(), from: 0 };

    fn new(len: usize) -> Self {
        let line = LINE / size_of::<R>();
        let data = vec![R::ZERO; len.saturating_add(line)];
        let from = data.as_ptr().align_offset(LINE).min(line);
        Self { data, from }
    }

    /// The first `len` elements of the value that was written.
    pub(super) fn first(&self, len: usize) -> &[R] {
        &self.data[self.from..self.from + len]
    }

    /// Returns `len` elements for a new value, which replaces the one that was there.
    pub(super) fn first_mut(&mut self, len: usize) -> &mut [R] {
        if self.data.len() < self.from.saturating_add(len) {
            *self = Self::new(len);
        }
        &mut self.data[self.from..self.from + len]
    }
}

/// The values of a tile. A value that is contiguous in an operand or an output, and of the type
/// that is computed in, is read where it lies.
pub(super) struct Buffers<R> {
    pub(super) aligned: Vec<AlignedBuffer<R>>,
    /// For each buffer the address of its value, if that lies in an operand or an output.
    pub(super) elsewhere: Vec<Option<*const R>>,
    /// The memory that a later tile probably reads of the two operands that were read last.
    pub(super) prefetch: [Prefetch; 2],
    /// The distance from a tile's own elements to that memory, in elements; 0 stands for the length
    /// of the tile. `None` if a cache has the elements, so that nothing is fetched.
    pub(super) prefetch_distance: Option<usize>,
}

// SAFETY: the addresses are those of operands, which are only read, and of a tile's elements of
// outputs. The task that has the buffers reads there what it wrote, or a task before it that had
// them. Memory ahead is only prefetched.
unsafe impl<R: Send> Send for Buffers<R> {}

impl<R: Real> Buffers<R> {
    pub(super) fn new(plan: &TilePlan) -> Self {
        let aligned = (0..plan.buffers).map(|_| AlignedBuffer::EMPTY).collect();
        Self {
            aligned,
            elsewhere: vec![None; plan.buffers],
            prefetch: [Prefetch::NONE; 2],
            prefetch_distance: Some(0),
        }
    }

    /// The first `len` elements of a value.
    pub(super) fn value(&self, buffer: usize, len: usize) -> &[R] {
        match self.elsewhere[buffer] {
            // SAFETY: `lies_at` found the tile's `len` elements of an operand or an output to be
            // contiguous here and of the type `R`. No other task writes them, and this one writes
            // an output's before it reads them.
            Some(at) => unsafe { std::slice::from_raw_parts(at, len) },
            None => self.aligned[buffer].first(len),
        }
    }
}
