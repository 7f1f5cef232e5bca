//! Blocks that are added to accumulators, element by element.

use std::mem::MaybeUninit;

use super::arch;
use super::arch::__m512i;
use super::first;
use super::lanes::Lanes;
use crate::kernel::{BLOCKS_PER_STEP, StridedBlocks};
use crate::vectors::Prefetch;

/// The bytes of a line of a cache.
const LINE: isize = 64;

/// A loop fetches ahead: nothing, the bytes that follow in memory, from the third cache or from main
/// memory, or the same vectors of the blocks that are [`BLOCKS_PER_STEP`] blocks away.
const NOTHING: u8 = 0;
pub(super) const LINES: u8 = 1;
pub(super) const FAR_LINES: u8 = 2;
const BLOCKS: u8 = 3;
/// The distance in bytes of those that follow: loads do not wait for lines, and the CPU's own fetching
/// goes on.
const NEAR: usize = 256;
const FAR: usize = 2048;

wide! {
    /// See [`BlocksFn`](crate::vectors::BlocksFn).
    pub(super) unsafe fn add<L: Lanes>(blocks: StridedBlocks<L::Element>, to: &mut [L::Accumulator]) {
        let mut left = blocks.count;
        let mut start = blocks.start;
        let stride_bytes = blocks.block_stride.wrapping_mul(size_of::<L::Element>().cast_signed());
        while left > 0 {
            // Several blocks are combined before accumulators get them.
            let together = if left < BLOCKS_PER_STEP { 1 } else { BLOCKS_PER_STEP };
            let (mut block, mut rest) = (start, &mut *to);
            macro_rules! strips {
                ($fetched:tt: $($vectors:literal)*) => { $(
                    let (strips, others) =
                        rest.split_at_mut(rest.len() / ($vectors * L::COUNT) * ($vectors * L::COUNT));
                    for to in strips.chunks_exact_mut($vectors * L::COUNT) {
                        // SAFETY: the caller promises the level, and elements for all accumulators.
                        unsafe {
                            strip::<L, $vectors, $fetched>(block, blocks.block_stride, together, to);
                            block = block.add($vectors * L::COUNT);
                        }
                    }
                    rest = others;
                )* };
            }
            // Loads that cross no line of a cache are faster. Where all blocks lie alike, the elements
            // before the first line are a part of a vector.
            let strip = if arch::REGISTERS >= 32 { 16 } else { 4 } * L::COUNT;
            if rest.len() > strip && stride_bytes % LINE == 0 {
                let (head, others) = rest.split_at_mut(block.align_offset(L::BYTES) % L::COUNT);
                if !head.is_empty() {
                    // SAFETY: as for the last elements.
                    unsafe { last_strip::<L>(block, blocks.block_stride, together, head) };
                }
                block = block.wrapping_add(head.len());
                rest = others;
            }
            // Several strips read parts of eight blocks in turn, which the CPU does not foresee: what comes
            // from main memory is fetched ahead.
            if rest.len() > strip && blocks.in_main_memory && left >= 2 * BLOCKS_PER_STEP {
                strips!(BLOCKS: 4);
            } else if rest.len() > strip {
                strips!(NOTHING: 4);
            } else if arch::REGISTERS >= 32 {
                strips!(NOTHING: 16 8 4);
            }
            strips!(NOTHING: 4 1);
            if !rest.is_empty() {
                // SAFETY: as above.
                unsafe { last_strip::<L>(block, blocks.block_stride, together, rest) };
            }
            start = start.wrapping_offset(blocks.block_stride.wrapping_mul(together.cast_signed()));
            left -= together;
        }
    }

    /// Adds `count` blocks to the accumulators of `VECTORS` vectors, and fetches others.
    unsafe fn strip<L: Lanes, const VECTORS: usize, const FETCHED: u8>(
        block: *const L::Element,
        block_stride: isize,
        count: usize,
        to: &mut [L::Accumulator],
    ) {
        // SAFETY: the caller promises the level, the elements, and so many accumulators.
        unsafe {
            let mut all = [L::start(); VECTORS];
            let mut nans = arch::no_nans();
            let mut at = block;
            for _ in 0..count {
                fetch::<L, VECTORS, FETCHED>(at, block_stride);
                if VECTORS == 1 {
                    all[0] = L::combine(all[0], L::load(at));
                } else {
                    for n in (0..VECTORS).step_by(2) {
                        let x = L::load(at.add(n * L::COUNT));
                        let y = L::load(at.add((n + 1) * L::COUNT));
                        nans = L::nans_of(nans, x, y);
                        (all[n], all[n + 1]) = (L::combine_numbers(all[n], x), L::combine_numbers(all[n + 1], y));
                    }
                }
                at = at.wrapping_offset(block_stride);
            }
            if arch::any_nans(nans) {
                all = strip_with_nans::<L, VECTORS>(block, block_stride, count);
            }
            for n in 0..VECTORS {
                let to = to.as_mut_ptr().add(n * L::COUNT);
                L::store(L::combine(L::load_accumulators(to), all[n]), to);
            }
        }
    }

    /// Fetches as many vectors as are read now, which are read later.
    pub(super) fn fetch<L: Lanes, const VECTORS: usize, const FETCHED: u8>(
        vectors: *const L::Element,
        block_stride: isize,
    ) {
        let next = match FETCHED {
            NOTHING => return,
            LINES => vectors.cast::<i8>().wrapping_add(NEAR),
            FAR_LINES => vectors.cast::<i8>().wrapping_add(FAR),
            _ => vectors.wrapping_offset(block_stride.wrapping_mul(BLOCKS_PER_STEP as isize)).cast(),
        };
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

    /// Adds `count` blocks to fewer accumulators than a vector has.
    unsafe fn last_strip<L: Lanes>(
        mut block: *const L::Element,
        block_stride: isize,
        count: usize,
        to: &mut [L::Accumulator],
    ) {
        let mask = first(to.len());
        // SAFETY: the caller promises the level and the elements.
        unsafe {
            let mut all = L::start();
            for _ in 0..count {
                all = L::combine(all, L::load_first(block, mask));
                block = block.wrapping_offset(block_stride);
            }
            combine_first::<L>(all, to);
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
