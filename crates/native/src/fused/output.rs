//! The arrays that a program writes.

use half::{bf16, f16};

use super::program::{Kind, Output, Values, ValuesMut};
use super::real::{Real, Stored};
use super::tile::Store;
use super::walk::Loops;
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
    pub(super) fn of_room(room: &mut ValuesMut<'_>) -> Self {
        match room {
            ValuesMut::F32(data) => Self::F32(data.as_mut_ptr()),
            ValuesMut::F64(data) => Self::F64(data.as_mut_ptr()),
            ValuesMut::Bf16(data) => Self::Bf16(data.as_mut_ptr()),
            ValuesMut::F16(data) => Self::F16(data.as_mut_ptr()),
            ValuesMut::Bool(data) => Self::Bool(data.as_mut_ptr()),
        }
    }

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

/// Writes a tile's elements of an output from `start` on, in these loops.
///
/// # Safety
/// All elements that the loops reach must be writable, by this task alone.
pub(super) unsafe fn store<E: Stored, R: Real>(
    level: Level,
    start: *mut E,
    loops: &Loops,
    a: &[R],
) {
    if let [only] = a {
        // SAFETY: the caller promises it.
        unsafe { *start = E::written(*only) };
        return;
    }
    on_level(level, Store { start, loops, a });
}
