//! The memory of a program's outputs: `program.rs` allocates it, and `compute.rs` stores tiles to
//! it, in the caches or past them.

use std::any::TypeId;
use std::mem::MaybeUninit;

use half::{bf16, f16};

use super::aligned_buffer::LINE;
use super::program::{Kind, Output, Values, ValuesMut};
use super::real::{Real, Stored};
use super::tile::Store;
use super::walk::Loops;
use crate::error::Error;
use crate::level::{Level, on_level};
use crate::pages::empty;
use crate::vectors::copy_past_caches;

/// Returns an empty vector of this type that has room for `len` elements.
///
/// # Errors
/// If that much memory cannot be allocated.
pub(super) fn with_capacity(kind: Kind, len: usize) -> Result<Values, Error> {
    Ok(match kind {
        Kind::F32 => Values::F32(empty(len)?),
        Kind::F64 => Values::F64(empty(len)?),
        Kind::Bf16 => Values::Bf16(empty(len)?),
        Kind::F16 => Values::F16(empty(len)?),
        Kind::Bool => Values::Bool(empty(len)?),
    })
}

/// Sets the length of an output's vector to the number of its elements.
///
/// # Safety
/// The vector must have the capacity for all elements of the output's dims, and all of them must
/// have been written.
pub(super) unsafe fn complete(output: &mut Output) {
    let len = output.dims.iter().product();
    // SAFETY: the caller guarantees a capacity of `len` elements, and that all were written.
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

/// The address of an output's first element, through which several threads write.
#[derive(Clone, Copy)]
pub(super) enum OutputPtr {
    F32(*mut f32),
    F64(*mut f64),
    Bf16(*mut bf16),
    F16(*mut f16),
    Bool(*mut bool),
}

impl OutputPtr {
    pub(super) fn of_slice(slice: &mut ValuesMut<'_>) -> Self {
        match slice {
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

impl OutputPtr {
    /// The address of the first byte.
    pub(super) fn place(self) -> *mut u8 {
        match self {
            Self::F32(start) => start.cast(),
            Self::F64(start) => start.cast(),
            Self::Bf16(start) => start.cast(),
            Self::F16(start) => start.cast(),
            Self::Bool(start) => start.cast(),
        }
    }
}

/// Writes a tile's elements `a` to an output: `loops` go over the elements there, from `start` on.
/// With `non_temporal`, long contiguous runs are stored past the caches.
///
/// # Safety
/// The elements that `loops` reach from `start` must be aligned, writable, and used by nobody else
/// during the call; they may be uninitialised. With `non_temporal`, a
/// [`Fence`](crate::vectors::Fence) must be dropped before other threads learn that the elements
/// were written.
pub(super) unsafe fn store<E: Stored, R: Real>(
    level: Level,
    start: *mut E,
    loops: &Loops,
    a: &[R],
    non_temporal: bool,
) {
    if let [only] = a {
        // SAFETY: for one value the loops reach one element, at `start`, which the caller
        // guarantees to be writable.
        unsafe { start.write(E::written(*only)) };
        return;
    }
    let is_long = loops.stride == 1 && loops.len * size_of::<E>() >= LEAST_STREAMED;
    if !(non_temporal && is_long) {
        return on_level(level, Store { start, loops, a });
    }
    for (at, offset) in loops.runs() {
        let (to, a) = (start.wrapping_offset(offset), &a[at..at + loops.len]);
        // SAFETY: these are contiguous elements that the loops reach, which the caller guarantees
        // to be writable, as it guarantees the fence.
        unsafe { store_non_temporal(level, to, a) };
    }
}

/// Contiguous runs of at least this many bytes are stored past the caches.
const LEAST_STREAMED: usize = 1024;
/// The number of bytes that are converted at a time.
const CONVERTED: usize = 2048;

/// A buffer in which elements are converted before they are stored past the caches.
#[repr(align(64))]
struct Converted(MaybeUninit<[u8; CONVERTED]>);

/// Writes the elements `a` contiguously to `to`, past the caches.
///
/// # Safety
/// `a.len()` elements at `to` must be aligned, writable, and used by nobody else during the call;
/// they may be uninitialised. A [`Fence`](crate::vectors::Fence) must be dropped before other
/// threads learn that the elements were written.
unsafe fn store_non_temporal<E: Stored, R: Real>(level: Level, to: *mut E, a: &[R]) {
    let (head, rest) = a.split_at(to.align_offset(LINE).min(a.len()));
    let lines = rest.len() * size_of::<E>() / LINE;
    let (whole, tail) = rest.split_at(lines * LINE / size_of::<E>());
    let mut to = to;
    // SAFETY: the caller guarantees `a.len()` writable elements at `to`, which are `head`, `whole`
    // and `tail`. `whole` is `lines` cache lines and begins where a line does. The buffer begins at
    // a line, only this call has it, a part is at most `CONVERTED` bytes, and `write` fills the
    // lines of the part before they are read.
    unsafe {
        let write = |part: &[R], to: *mut E| {
            let loops = Loops::side_by_side(part.len());
            on_level(level, Store { start: to, loops: &loops, a: part });
        };
        write(head, to);
        to = to.add(head.len());
        if TypeId::of::<E>() == TypeId::of::<R>() {
            copy_past_caches(whole.as_ptr().cast(), to.cast(), lines);
            to = to.add(whole.len());
        } else {
            let mut buffer = Converted(MaybeUninit::uninit());
            let buffer = buffer.0.as_mut_ptr().cast::<u8>();
            for part in whole.chunks(CONVERTED / size_of::<E>()) {
                write(part, buffer.cast());
                let lines = part.len() * size_of::<E>() / LINE;
                copy_past_caches(buffer.cast_const(), to.cast(), lines);
                to = to.add(part.len());
            }
        }
        write(tail, to);
    }
}
