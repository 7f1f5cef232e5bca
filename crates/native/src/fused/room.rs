//! Memory for the values of a tile.

use super::plan::Plan;
use super::real::Real;
use crate::vectors::Ahead;

/// The bytes of a cache line.
pub(super) const LINE: usize = 64;

/// Room for a value. It begins where a cache line does: vectors that lie in two lines take twice as
/// long. It takes memory when it is first written: many values lie elsewhere.
#[derive(Debug)]
pub(super) struct Room<R> {
    data: Vec<R>,
    from: usize,
}

impl<R: Real> Room<R> {
    pub(super) const EMPTY: Self = Self { data: Vec::new(), from: 0 };

    fn new(len: usize) -> Self {
        let line = LINE / size_of::<R>();
        let data = vec![R::ZERO; len.saturating_add(line)];
        let from = data.as_ptr().align_offset(LINE).min(line);
        Self { data, from }
    }

    /// The first elements of the value that was written.
    pub(super) fn first(&self, len: usize) -> &[R] {
        &self.data[self.from..self.from + len]
    }

    /// Room for a value, in place of the one that was there.
    pub(super) fn first_mut(&mut self, len: usize) -> &mut [R] {
        if self.data.len() < self.from.saturating_add(len) {
            *self = Self::new(len);
        }
        &mut self.data[self.from..self.from + len]
    }
}

/// The values of a tile. A value that lies in an operand or an output, side by side and in the
/// type that is computed in, is used where it lies.
pub(super) struct Buffers<R> {
    pub(super) rooms: Vec<Room<R>>,
    /// For each buffer the place of its value, if that is not its room.
    pub(super) elsewhere: Vec<Option<*const R>>,
    /// The elements of the last two operands that a tile to come probably reads.
    pub(super) ahead: [Ahead; 2],
    /// How far these lie from a tile's own elements, 0 if behind them; `None` if a cache has them.
    pub(super) ahead_by: Option<usize>,
}

// SAFETY: a place is that of an operand or an output of a run, which any of its threads may read. The
// task that has the buffers reads there what it or a task before it wrote.
unsafe impl<R: Send> Send for Buffers<R> {}

impl<R: Real> Buffers<R> {
    pub(super) fn new(plan: &Plan) -> Self {
        let rooms = (0..plan.buffers).map(|_| Room::EMPTY).collect();
        Self {
            rooms,
            elsewhere: vec![None; plan.buffers],
            ahead: [Ahead::NONE; 2],
            ahead_by: Some(0),
        }
    }

    /// The first elements of a value.
    pub(super) fn value(&self, buffer: usize, len: usize) -> &[R] {
        match self.elsewhere[buffer] {
            // SAFETY: `Run::lies_in` found the tile's elements of an operand or an output here; no
            // other task writes them, and this one writes them before they are a value.
            Some(at) => unsafe { std::slice::from_raw_parts(at, len) },
            None => self.rooms[buffer].first(len),
        }
    }
}
