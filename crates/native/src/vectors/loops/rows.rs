//! Rows, each of which becomes one element. Loops over plain slices do not become vectors there.
//!
//! The vectors of a row are combined, which leaves as many accumulators as a vector has lanes. They
//! are merged by halves, those of 16 rows together (8 if lanes have 64 bits): two vectors become one
//! that has their first halves and one that has their second halves, and these are combined. Short
//! rows share a vector from the beginning.

use std::mem::MaybeUninit;

use super::arch;
use super::arch::__m512i;
use super::blocks::{FAR_LINES, LINES, fetch, strip_with_nans};
use super::first;
use super::lanes::{Lanes, Merge};
use crate::kernel::LONG_ROW;
use crate::vectors::UninitParts;

/// How rows fill vectors: a row is longer than one, rows fill one as a whole, or rows leave some lanes.
pub(super) const LONG: u8 = 0;
pub(super) const WHOLE: u8 = 1;
pub(super) const PART: u8 = 2;

/// Calls a function whose parameters are the rows that share a vector, and how they fill it.
macro_rules! by_length {
    ($lanes:expr, $len:expr, $function:ident::<$lanes_of:ident> ($($operand:expr),*)) => {{
        // Functions for each kind keep vectors in registers.
        let lanes = $lanes;
        match $len {
            len if len > lanes => $function::<$lanes_of, 1, LONG>($($operand),*),
            len if len == lanes => $function::<$lanes_of, 1, WHOLE>($($operand),*),
            len if len > lanes / 2 => $function::<$lanes_of, 1, PART>($($operand),*),
            len if len == lanes / 2 => $function::<$lanes_of, 2, WHOLE>($($operand),*),
            len if len > lanes / 4 => $function::<$lanes_of, 2, PART>($($operand),*),
            len if len == lanes / 4 => $function::<$lanes_of, 4, WHOLE>($($operand),*),
            _ => $function::<$lanes_of, 4, PART>($($operand),*),
        }
    }};
}
pub(super) use by_length;

/// Bits for the lanes of rows, each in an equal part of a vector.
#[inline(always)]
pub(super) fn parts<M: Merge, const ROWS: usize>(len: usize) -> u16 {
    let part = M::COUNT / ROWS;
    (0..ROWS).fold(0, |mask, row| mask | first(len) << (row * part))
}

wide! {
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

    /// Combines vectors; NaN may be lost if the caller says that all lanes are `NUMBERS`.
    unsafe fn combined<M: Merge, const NUMBERS: bool>(a: __m512i, b: __m512i) -> __m512i {
        // SAFETY: the caller promises the level.
        unsafe { if NUMBERS { M::combine_numbers(a, b) } else { M::combine(a, b) } }
    }

    /// The accumulators of one row. If the memory is `padded`, as many elements as there are lanes are
    /// readable behind it.
    pub(super) unsafe fn lanes_of<L: Lanes>(
        row: *const L::Element,
        len: usize,
        padded: bool,
    ) -> __m512i {
        let mut nans = arch::no_nans();
        // SAFETY: the caller promises the same.
        unsafe {
            let all = vectors_of::<L, true>(row, len, padded, &mut nans);
            if arch::any_nans(nans) {
                return vectors_of::<L, false>(row, len, padded, &mut nans);
            }
            all
        }
    }

    /// As [`lanes_of`], where all elements are `NUMBERS`, or the caller looks at `nans`.
    unsafe fn vectors_of<L: Lanes, const NUMBERS: bool>(
        row: *const L::Element,
        len: usize,
        padded: bool,
        nans: &mut arch::Nans,
    ) -> __m512i {
        // SAFETY: the caller promises the level and `len` elements; each load lies within them, or
        // within those behind.
        unsafe {
            if len < L::COUNT {
                let all = load_part::<L>(row, first(len), padded);
                *nans = L::nans_of(*nans, all, all);
                return all;
            }
            // NaN is looked for in pairs of vectors. `single` is one in which it was not looked for yet.
            let (mut all, mut at) = (L::load(row), L::COUNT);
            let mut single = all;
            if L::BY_FOUR && len >= 4 * L::COUNT {
                (all, at) = (L::load_four(row), 4 * L::COUNT);
                while at + 4 * L::COUNT <= len {
                    all = L::combine(all, L::load_four(row.add(at)));
                    at += 4 * L::COUNT;
                }
            }
            while at + 2 * L::COUNT <= len {
                let (x, y) = (L::load(row.add(at)), L::load(row.add(at + L::COUNT)));
                *nans = L::nans_of(*nans, x, y);
                all = combined::<L, NUMBERS>(combined::<L, NUMBERS>(all, x), y);
                at += 2 * L::COUNT;
            }
            if at + L::COUNT <= len {
                let x = L::load(row.add(at));
                *nans = L::nans_of(*nans, single, x);
                all = combined::<L, NUMBERS>(all, x);
                at += L::COUNT;
                single = x;
            }
            let x = if at < len {
                let x = load_part::<L>(row.add(at), first(len - at), padded);
                all = combined::<L, NUMBERS>(all, x);
                x
            } else {
                single
            };
            *nans = L::nans_of(*nans, single, x);
            all
        }
    }

    /// Moves the rows at the beginning of a vector each to an equal part of it.
    pub(super) unsafe fn spread<M: Merge, const ROWS: usize>(packed: __m512i, len: usize) -> __m512i {
        // SAFETY: the caller promises the level.
        let others = unsafe { M::start() };
        if M::BITS == 64 {
            return arch::spread_epi64::<ROWS>(others, packed, len);
        }
        arch::spread_epi32::<ROWS>(others, packed, len)
    }

    /// Merges the lanes of vectors, `ROWS` rows of which share one, to one lane for each row.
    pub(super) unsafe fn tree<M: Merge, const ROWS: usize, const NUMBERS: bool>(
        mut all: [__m512i; 16],
    ) -> __m512i {
        // SAFETY: the caller promises the level.
        unsafe {
            let mut left = M::COUNT / ROWS;
            if ROWS == 1 {
                left /= 2;
                for n in 0..left {
                    let (a, b) = (all[2 * n], all[2 * n + 1]);
                    let low = arch::_mm512_shuffle_i32x4::<0x44>(a, b);
                    all[n] = combined::<M, NUMBERS>(low, arch::_mm512_shuffle_i32x4::<0xee>(a, b));
                }
            }
            if ROWS <= 2 {
                left /= 2;
                for n in 0..left {
                    let (a, b) = (all[2 * n], all[2 * n + 1]);
                    let low = arch::_mm512_shuffle_i32x4::<0x88>(a, b);
                    all[n] = combined::<M, NUMBERS>(low, arch::_mm512_shuffle_i32x4::<0xdd>(a, b));
                }
            }
            for n in 0..left / 2 {
                let (a, b) = (all[2 * n], all[2 * n + 1]);
                let low = arch::_mm512_unpacklo_epi64(a, b);
                all[n] = combined::<M, NUMBERS>(low, arch::_mm512_unpackhi_epi64(a, b));
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
            arch::_mm512_permutexvar_epi32(order, combined::<M, NUMBERS>(low, high))
        }
    }

    /// The results of as many rows as a vector has lanes, `ROWS` of which share a vector; see
    /// [`lanes_of`].
    pub(super) unsafe fn group<L: Lanes, const ROWS: usize, const FILL: u8>(
        rows: *const L::Element,
        len: usize,
        padded: bool,
    ) -> __m512i {
        let mut nans = arch::no_nans();
        // SAFETY: the caller promises the level and these rows.
        unsafe {
            let mut all = group_of::<L, ROWS, FILL, true>(rows, len, padded, &mut nans);
            if arch::any_nans(nans) {
                all = group_of::<L, ROWS, FILL, false>(rows, len, padded, &mut nans);
            }
            // A sum begins with 0.0: it is not -0.0.
            L::combine(all, L::start())
        }
    }

    /// As [`group`], where all elements are `NUMBERS`, or the caller looks at `nans`.
    unsafe fn group_of<L: Lanes, const ROWS: usize, const FILL: u8, const NUMBERS: bool>(
        rows: *const L::Element,
        len: usize,
        padded: bool,
        nans: &mut arch::Nans,
    ) -> __m512i {
        // SAFETY: the caller promises the level and these rows.
        unsafe {
            let mut all = [L::start(); 16];
            let mask = first(len * ROWS);
            for n in 0..L::COUNT / ROWS {
                let rows = rows.add(n * ROWS * len);
                if FILL == LONG {
                    all[n] = vectors_of::<L, NUMBERS>(rows, len, padded, nans);
                    continue;
                }
                all[n] = match FILL {
                    WHOLE => L::load(rows),
                    _ if ROWS == 1 => load_part::<L>(rows, mask, padded),
                    _ => spread::<L, ROWS>(load_part::<L>(rows, mask, padded), len),
                };
                if n % 2 == 1 {
                    *nans = L::nans_of(*nans, all[n - 1], all[n]);
                }
            }
            tree::<L, ROWS, NUMBERS>(all)
        }
    }

    /// Reduces groups of rows, `ROWS` of which share a vector.
    unsafe fn groups_of<L: Lanes, const ROWS: usize, const FILL: u8>(
        mut rows: &[L::Element],
        len: usize,
        to: &mut [MaybeUninit<L::Accumulator>],
    ) {
        for to in to.chunks_exact_mut(L::COUNT) {
            let padded = rows.len() >= (len + 1) * L::COUNT;
            // SAFETY: the caller promises the level, and a row for each accumulator.
            unsafe { L::store(group::<L, ROWS, FILL>(rows.as_ptr(), len, padded), to.as_mut_ptr().cast()) };
            rows = &rows[len * L::COUNT..];
        }
    }

    /// See [`RowsFn`](crate::vectors::RowsFn).
    pub(super) unsafe fn values<L: Lanes>(
        elements: &[L::Element],
        len: usize,
        (to, _): UninitParts<'_, L::Accumulator, ()>,
        in_main_memory: bool,
    ) {
        debug_assert!(elements.len() >= len * to.len(), "whole rows");
        let grouped = if len > LONG_ROW { 0 } else { to.len() / L::COUNT * L::COUNT };
        let (groups, rest) = to.split_at_mut(grouped);
        // SAFETY: the caller promises the level, and a row for each accumulator.
        unsafe {
            by_length!(L::COUNT, len, groups_of::<L>(elements, len, groups));
        }
        let mut rows = &elements[grouped * len..];
        for to in rest {
            let padded = rows.len() >= len + L::COUNT;
            // SAFETY: as above.
            unsafe {
                to.write(merged::<L>(if len > LONG_ROW {
                    long_row::<L>(rows.as_ptr(), len, in_main_memory)
                } else {
                    lanes_of::<L>(rows.as_ptr(), len, padded)
                }));
            }
            rows = &rows[len..];
        }
    }

    /// Merges the lanes of a vector; the first lane has the result.
    pub(super) unsafe fn merged_lanes<L: Lanes>(lanes: __m512i) -> __m512i {
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
    pub(super) unsafe fn merged<L: Lanes>(lanes: __m512i) -> L::Accumulator {
        let mut room = [const { MaybeUninit::<L::Accumulator>::uninit() }; 16];
        // SAFETY: the caller promises the level. The room has all lanes, and all are written.
        unsafe {
            L::store(merged_lanes::<L>(lanes), room.as_mut_ptr().cast());
            room[0].assume_init()
        }
    }

    /// Reduces a long row, by the accumulators of four vectors.
    pub(super) unsafe fn long_row<L: Lanes>(
        row: *const L::Element,
        len: usize,
        in_main_memory: bool,
    ) -> __m512i {
        // SAFETY: the caller promises the level and `len` elements; each load lies within them.
        unsafe {
            let whole = len / (4 * L::COUNT);
            let mut all = if in_main_memory {
                long_vectors::<L, FAR_LINES>(row, whole)
            } else {
                long_vectors::<L, LINES>(row, whole)
            };
            // Lanes that are indexed by a number which is not known lie in memory.
            macro_rules! rest {
                ($($n:literal)*) => { $(
                    let at = (4 * whole + $n) * L::COUNT;
                    if at < len {
                        let last = L::load_first(row.add(at), first(len - at));
                        all[$n] = L::combine(all[$n], last);
                    }
                )* };
            }
            rest!(0 1 2 3);
            let [a, b, c, d] = all;
            L::combine(L::combine(a, c), L::combine(b, d))
        }
    }

    /// Combines `count` times four vectors of a row.
    unsafe fn long_vectors<L: Lanes, const FETCHED: u8>(
        row: *const L::Element,
        count: usize,
    ) -> [__m512i; 4] {
        let stride = 4 * L::COUNT as isize;
        // SAFETY: the caller promises the level and the elements.
        unsafe {
            let (mut from, mut nans) = (row, arch::no_nans());
            let mut all = [L::start(); 4];
            for _ in 0..count {
                fetch::<L, 4, FETCHED>(from);
                all = L::add_four(all, from, &mut nans);
                from = from.offset(stride);
            }
            if arch::any_nans(nans) {
                return strip_with_nans::<L, 4>(row, stride, count);
            }
            L::in_order(all)
        }
    }
}
