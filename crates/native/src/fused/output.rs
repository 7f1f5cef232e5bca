//! The arrays that a program writes.

use half::{bf16, f16};

use super::program::{Kind, Output, Values};
use super::real::{Real, Stored};
use super::tile::Store;
use super::walk::Place;
use crate::level::{Level, on_level};

/// Memory for `len` elements, none of which is there yet.
pub(super) fn room(kind: Kind, len: usize) -> Values {
    match kind {
        Kind::F32 => Values::F32(Vec::with_capacity(len)),
        Kind::F64 => Values::F64(Vec::with_capacity(len)),
        Kind::Bf16 => Values::Bf16(Vec::with_capacity(len)),
        Kind::F16 => Values::F16(Vec::with_capacity(len)),
        Kind::Bool => Values::Bool(Vec::with_capacity(len)),
    }
}

/// Declares the elements of an output to be there.
///
/// # Safety
/// All elements of its dims were written.
pub(super) unsafe fn complete(output: &mut Output) {
    let len = output.dims.iter().product();
    // SAFETY: `room` made room for so many, and the caller promises that they were written.
    unsafe {
        match &mut output.values {
            Values::F32(data) => data.set_len(len),
            Values::F64(data) => data.set_len(len),
            Values::Bf16(data) => data.set_len(len),
            Values::F16(data) => data.set_len(len),
            Values::Bool(data) => data.set_len(len),
        }
    }
}

/// Where an output is written, from several threads.
#[derive(Clone, Copy)]
pub(super) enum Start {
    F32(*mut f32),
    F64(*mut f64),
    Bf16(*mut bf16),
    F16(*mut f16),
    Bool(*mut bool),
}

impl Start {
    pub(super) fn of(values: &mut Values) -> Self {
        match values {
            Values::F32(data) => Self::F32(data.as_mut_ptr()),
            Values::F64(data) => Self::F64(data.as_mut_ptr()),
            Values::Bf16(data) => Self::Bf16(data.as_mut_ptr()),
            Values::F16(data) => Self::F16(data.as_mut_ptr()),
            Values::Bool(data) => Self::Bool(data.as_mut_ptr()),
        }
    }
}

/// A value of a tile that is written.
pub(super) struct Storing<'a, R> {
    pub(super) level: Level,
    pub(super) set: u64,
    pub(super) place: &'a Place,
    pub(super) a: &'a [R],
}

impl<R: Real> Storing<'_, R> {
    /// Writes it from `start` on, which must be writable at all indices of the tile, by this task
    /// alone.
    pub(super) fn store<E: Stored>(self, start: *mut E, stride: impl Fn(usize) -> isize) {
        if let [only] = self.a {
            // SAFETY: whoever makes this promises that the element is this task's own.
            unsafe { *start = E::written(*only) };
            return;
        }
        let loops = self.place.loops(self.set, stride);
        on_level(self.level, Store { start, loops, a: self.a });
    }
}
