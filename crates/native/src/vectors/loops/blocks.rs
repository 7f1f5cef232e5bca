//! What loops over rows and over blocks share: fetches ahead, and sums with accumulators.

use std::mem::MaybeUninit;

use super::arch;
use super::arch::__m512i;
use super::lanes::Lanes;
use crate::vectors::Prefetch;

/// The bytes of a line of a cache.
const LINE: isize = 64;

/// A loop fetches ahead the bytes that follow in memory, from the third cache or from main memory.
pub(super) const LINES: u8 = 1;
pub(super) const FAR_LINES: u8 = 2;
/// The distance in bytes of those that follow: loads do not wait for lines, and the CPU's own fetching
/// goes on.
const NEAR: usize = 256;
const FAR: usize = 2048;

wide! {
    /// Fetches as many vectors as are read now, which are read later.
    pub(super) fn fetch<L: Lanes, const VECTORS: usize, const FETCHED: u8>(
        vectors: *const L::Element,
    ) {
        let apart = if FETCHED == LINES { NEAR } else { FAR };
        let next = vectors.cast::<i8>().wrapping_add(apart);
        for line in 0..(VECTORS * L::BYTES).div_ceil(LINE as usize) {
            let line = next.wrapping_add(line * LINE as usize);
            if FETCHED == LINES {
                arch::_mm_prefetch::<{ arch::_MM_HINT_T0 }>(line);
            } else {
                arch::_mm_prefetch::<{ arch::_MM_HINT_T1 }>(line);
            }
        }
    }

    /// Fetches `count` elements of both, and goes on.
    pub(super) fn fetch_next(prefetch: &mut [Prefetch; 2], count: usize) {
        if prefetch[1].bytes == 0 {
            return;
        }
        for next in prefetch {
            arch::_mm_prefetch::<{ arch::_MM_HINT_T1 }>(next.from);
            next.from = next.from.wrapping_add(next.bytes * count);
        }
    }

    /// Combines `count` blocks, among whose elements NaN may be.
    pub(super) unsafe fn strip_with_nans<L: Lanes, const VECTORS: usize>(
        mut block: *const L::Element,
        block_stride: isize,
        count: usize,
    ) -> [__m512i; VECTORS] {
        // SAFETY: the caller promises the level and the elements.
        unsafe {
            let mut all = [L::start(); VECTORS];
            for _ in 0..count {
                for n in 0..VECTORS {
                    all[n] = L::combine(all[n], L::load(block.add(n * L::COUNT)));
                }
                block = block.wrapping_offset(block_stride);
            }
            all
        }
    }

    /// Combines the first lanes with accumulators, fewer than a vector has.
    pub(super) unsafe fn combine_first<L: Lanes>(lanes: __m512i, to: &mut [L::Accumulator]) {
        let mut room = [const { MaybeUninit::<L::Accumulator>::uninit() }; 16];
        // SAFETY: the caller promises the level; all of the room is written before it is read.
        unsafe {
            let room = room.as_mut_ptr().cast::<L::Accumulator>();
            L::store(L::start(), room);
            room.copy_from_nonoverlapping(to.as_ptr(), to.len());
            L::store(L::combine(L::load_accumulators(room), lanes), room);
            to.as_mut_ptr().copy_from_nonoverlapping(room, to.len());
        }
    }
}
