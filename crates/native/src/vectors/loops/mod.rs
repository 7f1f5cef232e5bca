//! Reductions of rows and of blocks in vectors of 512 bits, which may be made of shorter ones. This is
//! compiled for each set of instructions: `arch` has them, and `wide!` makes functions of their level.
//!
//! Loops over plain slices become vectors where the elements of a row meet accumulators side by
//! side, as in `kernel.rs`. They do not where a row becomes one element; those loops are here.
//!
//! The vectors of a row are combined, which leaves as many accumulators as a vector has lanes. They
//! are merged by halves, those of 16 rows together (8 if lanes have 64 bits): two vectors become one
//! that has their first halves and one that has their second halves, and these are combined. Short
//! rows share a vector from the beginning. Sums have the same bits as those of `kernel.rs`.

#![expect(clippy::needless_range_loop, reason = "vectors are known by their numbers")]

mod lanes;
mod narrow;
mod places;

use std::any::{Any, TypeId};
use std::mem::MaybeUninit;

use half::{bf16, f16};

use lanes::{
    Deviating, Highest, Lanes, Lowest, MaxF32, MaxF64, MaxI32, MaxI64, MaxU32, MaxU64, Merge,
    MinF32, MinF64, MinI32, MinI64, MinU32, MinU64, SumF32, SumF64, SumI32, SumI64, SumOfShort,
    SumU32, SumU64,
};

use places::places;

use super::arch;
use super::arch::__m512i;
use crate::elements::Element;
use crate::folds::{ArgMax, ArgMax32, ArgMin, ArgMin32, Fold, Max, Min, Sum};
use crate::kernel::{self, LONG_ROW, TOGETHER};
use crate::vectors::{Blocks, Deviations, Rows};

/// Calls a macro with each type and its folds.
macro_rules! for_all_types {
    ($use:ident) => {
        $use!(f32, SumF32, MaxF32, MinF32);
        $use!(f64, SumF64, MaxF64, MinF64);
        $use!(bf16, SumOfShort<bf16>, Highest<bf16>, Lowest<bf16>);
        $use!(f16, SumOfShort<f16>, Highest<f16>, Lowest<f16>);
        $use!(i32, SumI32, MaxI32, MinI32);
        $use!(u32, SumU32, MaxU32, MinU32);
        $use!(i64, SumI64, MaxI64, MinI64);
        $use!(u64, SumU64, MaxU64, MinU64);
    };
}

/// Returns a function from the function that uses the macro, if it is for the fold `$wanted`.
macro_rules! found {
    ($wanted:ident, $fold:ty, $function:expr, $as:ty) => {
        if $wanted == TypeId::of::<$fold>() {
            const FUNCTION: $as = $function;
            return Some(&FUNCTION);
        }
    };
}

/// Returns the function that adds up squared deviations of rows, if there is one.
pub(in crate::vectors) fn deviations_of<T: Element>() -> Option<Deviations<T>> {
    let (wide, narrow): (Deviations<f64>, Deviations<f32>) =
        (deviations::<SumF64>, deviations::<SumF32>);
    let (wide, narrow): (&dyn Any, &dyn Any) = (&wide, &narrow);
    wide.downcast_ref().or_else(|| narrow.downcast_ref()).copied()
}

/// Returns the function that adds blocks by a fold, if there is one.
pub(in crate::vectors) fn blocks_of<T: Element, F: Fold<T>>() -> Option<Blocks<T, F::First>> {
    blocks_for(TypeId::of::<T>(), TypeId::of::<F>())?.downcast_ref().copied()
}

/// Returns the function that reduces rows by a fold, if there is one.
pub(in crate::vectors) fn rows_of<T: Element, F: Fold<T>>() -> Option<Rows<T, F::First, F::Second>>
{
    rows_for(TypeId::of::<T>(), TypeId::of::<F>())?.downcast_ref().copied()
}

// The functions below have no type parameters: crates that reduce do not compile the loops again.

/// Returns a [`Blocks`] for a type of elements and a fold.
fn blocks_for(element: TypeId, fold: TypeId) -> Option<&'static dyn Any> {
    macro_rules! blocks {
        ($type:ty, $sum:ty, $max:ty, $min:ty) => {
            if element == TypeId::of::<$type>() {
                found!(fold, Sum, add::<$sum>, Blocks<$type, <Sum as Fold<$type>>::First>);
                // The loops of `kernel.rs` keep twice as many ranks of 16 bits in a vector.
                if size_of::<$type>() > 2 {
                    found!(fold, Max, add::<$max>, Blocks<$type, <Max as Fold<$type>>::First>);
                    found!(fold, Min, add::<$min>, Blocks<$type, <Min as Fold<$type>>::First>);
                }
                return None;
            }
        };
    }
    for_all_types!(blocks);
    None
}

/// Returns a [`Rows`] for a type of elements and a fold.
fn rows_for(element: TypeId, fold: TypeId) -> Option<&'static dyn Any> {
    macro_rules! rows {
        ($type:ty, $sum:ty, $max:ty, $min:ty) => {
            if element == TypeId::of::<$type>() {
                found!(fold, Sum, values::<$sum>, Rows<$type, <Sum as Fold<$type>>::First, ()>);
                found!(fold, Max, values::<$max>, Rows<$type, <Max as Fold<$type>>::First, ()>);
                found!(fold, Min, values::<$min>, Rows<$type, <Min as Fold<$type>>::First, ()>);
                found!(fold, ArgMax, places::<$max>, Rows<$type, $type, u32>);
                found!(fold, ArgMin, places::<$min>, Rows<$type, $type, u32>);
                found!(fold, ArgMax32, places::<$max>, Rows<$type, $type, u32>);
                found!(fold, ArgMin32, places::<$min>, Rows<$type, $type, u32>);
                return None;
            }
        };
    }
    for_all_types!(rows);
    None
}

/// Bits for the lanes of rows, each in an equal part of a vector.
#[inline(always)]
fn parts<M: Merge, const ROWS: usize>(len: usize) -> u16 {
    let part = M::COUNT / ROWS;
    (0..ROWS).fold(0, |mask, row| mask | first(len) << (row * part))
}

/// Bits for the first of 16 lanes.
#[inline(always)]
const fn first(count: usize) -> u16 {
    if count >= 16 { u16::MAX } else { (1 << count) - 1 }
}

wide! {
    /// See [`Blocks`].
    unsafe fn add<L: Lanes>(blocks: kernel::Rows<L::Element>, to: &mut [L::Accumulator]) {
        let mut left = blocks.count;
        let mut start = blocks.start;
        while left > 0 {
            // Several blocks are combined before accumulators get them.
            let together = if left < TOGETHER { 1 } else { TOGETHER };
            let (mut block, mut rest) = (start, &mut *to);
            macro_rules! strips {
                ($ahead:literal: $($vectors:literal)*) => { $(
                    let (strips, others) =
                        rest.split_at_mut(rest.len() / ($vectors * L::COUNT) * ($vectors * L::COUNT));
                    for to in strips.chunks_exact_mut($vectors * L::COUNT) {
                        // SAFETY: the caller promises the level, and elements for all accumulators.
                        unsafe {
                            strip::<L, $vectors, $ahead>(block, blocks.apart, together, to);
                            block = block.add($vectors * L::COUNT);
                        }
                    }
                    rest = others;
                )* };
            }
            // One strip reads memory in order. Several read parts of eight blocks in turn, which the CPU
            // does not foresee: what comes from main memory is fetched ahead.
            let is_wide = arch::REGISTERS >= 32;
            let several = if is_wide { 16 } else { 4 } * L::COUNT;
            if rest.len() > several && blocks.is_far && left >= 2 * TOGETHER {
                strips!(true: 4);
            } else if is_wide && rest.len() < 2 * several {
                strips!(false: 16);
            }
            if is_wide {
                strips!(false: 8);
            }
            strips!(false: 4 1);
            if !rest.is_empty() {
                // SAFETY: as above.
                unsafe { last_strip::<L>(block, blocks.apart, together, rest) };
            }
            start = start.wrapping_offset(blocks.apart.wrapping_mul(together.cast_signed()));
            left -= together;
        }
    }

    /// Adds `count` blocks to the accumulators of `VECTORS` vectors; fetches the next blocks `AHEAD`.
    unsafe fn strip<L: Lanes, const VECTORS: usize, const AHEAD: bool>(
        mut block: *const L::Element,
        apart: isize,
        count: usize,
        to: &mut [L::Accumulator],
    ) {
        // SAFETY: the caller promises the level, the elements, and so many accumulators.
        unsafe {
            let mut all = [L::start(); VECTORS];
            for _ in 0..count {
                if AHEAD {
                    let next = block.wrapping_offset(apart.wrapping_mul(TOGETHER as isize));
                    for n in 0..VECTORS {
                        let next = next.wrapping_add(n * L::COUNT).cast();
                        arch::_mm_prefetch::<{ arch::_MM_HINT_T1 }>(next);
                    }
                }
                for n in 0..VECTORS {
                    all[n] = L::combine(all[n], L::load(block.add(n * L::COUNT)));
                }
                block = block.wrapping_offset(apart);
            }
            for n in 0..VECTORS {
                let to = to.as_mut_ptr().add(n * L::COUNT);
                L::store(L::combine(L::load_accumulators(to), all[n]), to);
            }
        }
    }

    /// Adds `count` blocks to fewer accumulators than a vector has.
    unsafe fn last_strip<L: Lanes>(
        mut block: *const L::Element,
        apart: isize,
        count: usize,
        to: &mut [L::Accumulator],
    ) {
        let mask = first(to.len());
        let mut room = [const { MaybeUninit::<L::Accumulator>::uninit() }; 16];
        // SAFETY: the caller promises the level and the elements; the room has all lanes, and all of
        // it is written before it is read.
        unsafe {
            let mut all = L::start();
            for _ in 0..count {
                all = L::combine(all, L::load_first(block, mask));
                block = block.wrapping_offset(apart);
            }
            let room = room.as_mut_ptr().cast::<L::Accumulator>();
            L::store(L::start(), room);
            room.copy_from_nonoverlapping(to.as_ptr(), to.len());
            L::store(L::combine(L::load_accumulators(room), all), room);
            to.as_mut_ptr().copy_from_nonoverlapping(room, to.len());
        }
    }

    /// The accumulators of the first elements, one for each bit of `mask`. If the memory is `padded`, a
    /// whole vector is readable there: levels without masked loads read it and drop the other lanes.
    unsafe fn load_part<L: Lanes>(from: *const L::Element, mask: u16, padded: bool) -> __m512i {
        // SAFETY: the caller promises the level and the elements.
        unsafe {
            if arch::HAS_MASKS || !padded {
                return L::load_first(from, mask);
            }
            let (others, all) = (L::start(), L::load(from));
            if L::BITS == 64 {
                #[expect(clippy::cast_possible_truncation, reason = "there are eight lanes")]
                return arch::_mm512_mask_mov_epi64(others, mask as u8, all);
            }
            arch::_mm512_mask_mov_epi32(others, mask, all)
        }
    }

    /// The accumulators of one row. If the memory is `padded`, as many elements as there are lanes are
    /// readable behind it.
    unsafe fn lanes_of<L: Lanes>(row: *const L::Element, len: usize, padded: bool) -> __m512i {
        // SAFETY: the caller promises the level and `len` elements; each load lies within them, or
        // within those behind.
        unsafe {
            if len < L::COUNT {
                return load_part::<L>(row, first(len), padded);
            }
            let mut all = L::load(row);
            let mut at = L::COUNT;
            while at + L::COUNT <= len {
                all = L::combine(all, L::load(row.add(at)));
                at += L::COUNT;
            }
            if at < len {
                all = L::combine(all, load_part::<L>(row.add(at), first(len - at), padded));
            }
            all
        }
    }

    /// Moves the rows at the beginning of a vector each to an equal part of it.
    unsafe fn spread<M: Merge, const ROWS: usize>(packed: __m512i, len: usize) -> __m512i {
        // SAFETY: the caller promises the level.
        let others = unsafe { M::start() };
        if M::BITS == 64 {
            return arch::spread_epi64::<ROWS>(others, packed, len);
        }
        arch::spread_epi32::<ROWS>(others, packed, len)
    }

    /// Merges the lanes of vectors, `ROWS` rows of which share one, to one lane for each row.
    unsafe fn tree<M: Merge, const ROWS: usize>(mut all: [__m512i; 16]) -> __m512i {
        // SAFETY: the caller promises the level.
        unsafe {
            let mut left = M::COUNT / ROWS;
            if ROWS == 1 {
                left /= 2;
                for n in 0..left {
                    let (a, b) = (all[2 * n], all[2 * n + 1]);
                    let low = arch::_mm512_shuffle_i32x4::<0x44>(a, b);
                    all[n] = M::combine(low, arch::_mm512_shuffle_i32x4::<0xee>(a, b));
                }
            }
            if ROWS <= 2 {
                left /= 2;
                for n in 0..left {
                    let (a, b) = (all[2 * n], all[2 * n + 1]);
                    let low = arch::_mm512_shuffle_i32x4::<0x88>(a, b);
                    all[n] = M::combine(low, arch::_mm512_shuffle_i32x4::<0xdd>(a, b));
                }
            }
            for n in 0..left / 2 {
                let (a, b) = (all[2 * n], all[2 * n + 1]);
                let low = arch::_mm512_unpacklo_epi64(a, b);
                all[n] = M::combine(low, arch::_mm512_unpackhi_epi64(a, b));
            }
            if M::BITS == 64 {
                let order = arch::_mm512_setr_epi64(0, 2, 4, 6, 1, 3, 5, 7);
                return arch::_mm512_permutexvar_epi64(order, all[0]);
            }
            let (a, b) = (arch::_mm512_castsi512_ps(all[0]), arch::_mm512_castsi512_ps(all[1]));
            let low = arch::_mm512_castps_si512(arch::_mm512_shuffle_ps::<0x88>(a, b));
            let high = arch::_mm512_castps_si512(arch::_mm512_shuffle_ps::<0xdd>(a, b));
            let order =
                arch::_mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
            arch::_mm512_permutexvar_epi32(order, M::combine(low, high))
        }
    }

    /// The results of as many rows as a vector has lanes, `ROWS` of which share a vector; see
    /// [`lanes_of`].
    unsafe fn group<L: Lanes, const ROWS: usize>(
        rows: *const L::Element,
        len: usize,
        padded: bool,
    ) -> __m512i {
        // SAFETY: the caller promises the level and these rows.
        unsafe {
            let mut all = [L::start(); 16];
            for n in 0..L::COUNT / ROWS {
                let rows = rows.add(n * ROWS * len);
                all[n] = if ROWS == 1 {
                    lanes_of::<L>(rows, len, padded)
                } else if ROWS * len == L::COUNT {
                    L::load(rows)
                } else {
                    spread::<L, ROWS>(load_part::<L>(rows, first(len * ROWS), padded), len)
                };
            }
            // A sum begins with 0.0: it is not -0.0.
            L::combine(tree::<L, ROWS>(all), L::start())
        }
    }

    /// Reduces groups of rows, `ROWS` of which share a vector.
    unsafe fn groups<L: Lanes, const ROWS: usize>(
        mut rows: &[L::Element],
        len: usize,
        to: &mut [L::Accumulator],
    ) {
        for to in to.chunks_exact_mut(L::COUNT) {
            let padded = rows.len() >= (len + 1) * L::COUNT;
            // SAFETY: the caller promises the level, and a row for each accumulator.
            unsafe { L::store(group::<L, ROWS>(rows.as_ptr(), len, padded), to.as_mut_ptr()) };
            rows = &rows[len * L::COUNT..];
        }
    }

    /// See [`Deviations`].
    unsafe fn deviations<L: Deviating>(
        elements: &[L::Element],
        len: usize,
        means: &[L::Element],
        to: &mut [L::Accumulator],
    ) {
        for ((row, mean), to) in elements.chunks_exact(len).zip(means).zip(to) {
            // SAFETY: the caller promises the level; each load lies within the row.
            unsafe {
                let mean = L::repeated(*mean);
                // As many accumulators as other rows of this length have.
                let vectors = if len > LONG_ROW { 4 } else { 1 };
                let (mut all, mut at) = ([L::start(); 4], 0);
                while at + vectors * L::COUNT <= len {
                    for n in 0..vectors {
                        let x = L::load(row.as_ptr().add(at + n * L::COUNT));
                        all[n] = L::combine(all[n], L::squared(x, mean, u16::MAX));
                    }
                    at += vectors * L::COUNT;
                }
                for lanes in &mut all {
                    if at < len {
                        let mask = first(len - at);
                        let x = L::load_first(row.as_ptr().add(at), mask);
                        *lanes = L::combine(*lanes, L::squared(x, mean, mask));
                        at += L::COUNT;
                    }
                }
                let [a, b, c, d] = all;
                *to = merged::<L>(L::combine(L::combine(a, c), L::combine(b, d)));
            }
        }
    }

    /// Reduces rows, one for each accumulator.
    unsafe fn reduce<L: Lanes>(elements: &[L::Element], len: usize, to: &mut [L::Accumulator]) {
        debug_assert!(elements.len() >= len * to.len(), "whole rows");
        let grouped = if len > LONG_ROW { 0 } else { to.len() / L::COUNT * L::COUNT };
        let (groups, rest) = to.split_at_mut(grouped);
        // SAFETY: the caller promises the level, and a row for each accumulator.
        unsafe {
            match L::COUNT / len {
                0 | 1 => self::groups::<L, 1>(elements, len, groups),
                2 | 3 => self::groups::<L, 2>(elements, len, groups),
                _ => self::groups::<L, 4>(elements, len, groups),
            }
        }
        let mut rows = &elements[grouped * len..];
        for to in rest {
            let padded = rows.len() >= len + L::COUNT;
            // SAFETY: as above.
            unsafe {
                *to = merged::<L>(if len > LONG_ROW {
                    long_row::<L>(rows.as_ptr(), len)
                } else {
                    lanes_of::<L>(rows.as_ptr(), len, padded)
                });
            }
            rows = &rows[len..];
        }
    }

    /// See [`Rows`].
    unsafe fn values<L: Lanes>(
        elements: &[L::Element],
        len: usize,
        (to, _): (&mut [L::Accumulator], &mut [()]),
    ) {
        // SAFETY: the caller promises the same.
        unsafe { reduce::<L>(elements, len, to) }
    }

    /// Merges the lanes of a vector; the first lane has the result.
    unsafe fn merged_lanes<L: Lanes>(lanes: __m512i) -> __m512i {
        // SAFETY: the caller promises the level.
        unsafe {
            let mut all = lanes;
            all = L::combine(all, arch::_mm512_shuffle_i32x4::<0x0e>(all, all));
            all = L::combine(all, arch::_mm512_shuffle_i32x4::<0x01>(all, all));
            all = L::combine(all, arch::_mm512_unpackhi_epi64(all, all));
            if L::BITS == 32 {
                all = L::combine(all, arch::_mm512_srli_epi64::<32>(all));
            }
            L::combine(all, L::start())
        }
    }

    /// Merges the accumulators of a vector.
    unsafe fn merged<L: Lanes>(lanes: __m512i) -> L::Accumulator {
        let mut room = [const { MaybeUninit::<L::Accumulator>::uninit() }; 16];
        // SAFETY: the caller promises the level. The room has all lanes, and all are written.
        unsafe {
            L::store(merged_lanes::<L>(lanes), room.as_mut_ptr().cast());
            room[0].assume_init()
        }
    }

    /// Reduces a long row, by the accumulators of four vectors.
    unsafe fn long_row<L: Lanes>(row: *const L::Element, len: usize) -> __m512i {
        // SAFETY: the caller promises the level and `len` elements; each load lies within them.
        unsafe {
            let (mut a, mut b, mut c, mut d) = (L::start(), L::start(), L::start(), L::start());
            let mut at = 0;
            while at + 4 * L::COUNT <= len {
                let from = row.add(at);
                a = L::combine(a, L::load(from));
                b = L::combine(b, L::load(from.add(L::COUNT)));
                c = L::combine(c, L::load(from.add(2 * L::COUNT)));
                d = L::combine(d, L::load(from.add(3 * L::COUNT)));
                at += 4 * L::COUNT;
            }
            for lanes in [&mut a, &mut b, &mut c, &mut d] {
                if at < len {
                    *lanes = L::combine(*lanes, L::load_first(row.add(at), first(len - at)));
                    at += L::COUNT;
                }
            }
            L::combine(L::combine(a, c), L::combine(b, d))
        }
    }
}
