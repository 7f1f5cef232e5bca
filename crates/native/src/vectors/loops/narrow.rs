//! Rows of a few elements: as many as a vector has lanes are transposed, and their columns folded.

use std::ops::RangeInclusive;

use super::arch;
use super::arch::__m512i;
use super::lanes::{Extremum, Merge};
use crate::kernel::MOST_STEPPED;
use crate::vectors::UninitParts;

/// Rows of fewer elements are reduced by the loops of `kernel.rs`, longer ones as they lie.
pub(super) const LENGTHS: RangeInclusive<usize> = MOST_STEPPED + 1..=arch::MOST_NARROW;

wide! {
    /// Finds the extrema of rows of `len` elements, one of [`LENGTHS`], and their first places.
    pub(super) unsafe fn places<L: Extremum>(
        rows: &[L::Element],
        len: usize,
        to: UninitParts<'_, L::Element, u32>,
    ) {
        // SAFETY: the caller promises the level, and a row for each place.
        unsafe {
            match len {
                5 => places_of::<L, 5>(rows, to),
                6 => places_of::<L, 6>(rows, to),
                _ => places_of::<L, 7>(rows, to),
            }
        }
    }

    unsafe fn places_of<L: Extremum, const LEN: usize>(
        rows: &[L::Element],
        (to, places): UninitParts<'_, L::Element, u32>,
    ) {
        let rows = rows.chunks_exact(LEN * L::COUNT);
        let to = to.chunks_exact_mut(L::COUNT).zip(places.chunks_exact_mut(L::COUNT));
        for (rows, (to, places)) in rows.zip(to) {
            // SAFETY: the caller promises the level; these are the rows of the places.
            unsafe {
                let all = columns::<L, LEN>(rows.as_ptr());
                let most = merged::<L::Compared, LEN>(all);
                L::store_numbers(most, to.as_mut_ptr().cast());
                let nans = L::nans(most);
                let mut first = place::<L>(LEN - 1);
                for column in (0..LEN - 1).rev() {
                    let ties = L::equal(all[column], most) | nans & L::nans(all[column]);
                    first = if L::BITS == 64 {
                        #[expect(clippy::cast_possible_truncation, reason = "there are eight lanes")]
                        arch::_mm512_mask_mov_epi64(first, ties as u8, place::<L>(column))
                    } else {
                        arch::_mm512_mask_mov_epi32(first, ties, place::<L>(column))
                    };
                }
                if L::BITS == 64 {
                    let first = arch::_mm512_cvtepi64_epi32(first);
                    arch::_mm256_storeu_si256(places.as_mut_ptr().cast(), first);
                } else {
                    arch::_mm512_storeu_si512(places.as_mut_ptr().cast(), first);
                }
            }
        }
    }

    /// A place in all lanes.
    #[expect(clippy::cast_possible_truncation, clippy::cast_possible_wrap, reason = "below 8")]
    unsafe fn place<M: Merge>(place: usize) -> __m512i {
        if M::BITS == 64 {
            return arch::_mm512_set1_epi64(place as i64);
        }
        arch::_mm512_set1_epi32(place as i32)
    }

    /// The columns of as many rows as a vector has lanes.
    unsafe fn columns<L: Extremum, const LEN: usize>(rows: *const L::Element) -> [__m512i; LEN] {
        // SAFETY: the caller promises the level and the rows.
        unsafe {
            let mut all = [L::Compared::start(); LEN];
            for n in 0..LEN {
                all[n] = L::elements(rows.add(n * L::COUNT), u16::MAX);
            }
            if L::BITS == 64 {
                return arch::columns::<LEN, 2>(all);
            }
            arch::columns::<LEN, 1>(all)
        }
    }

    /// Merges the later half of columns with the earlier one, until one is left, as `kernel.rs` does.
    unsafe fn merged<M: Merge, const LEN: usize>(mut all: [__m512i; LEN]) -> __m512i {
        let mut left = LEN;
        while left > 1 {
            let half = left.div_ceil(2);
            for n in 0..left - half {
                // SAFETY: the caller promises the level.
                all[n] = unsafe { M::combine(all[n], all[n + half]) };
            }
            left = half;
        }
        all[0]
    }
}
