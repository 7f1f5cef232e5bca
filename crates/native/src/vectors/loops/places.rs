//! Extrema of rows with their first places.

use std::mem::MaybeUninit;

use super::arch;
use super::arch::__m512i;
use super::lanes::{Extremum, Merge};
use super::rows::{
    LONG, PART, WHOLE, by_length, group, lanes_of, long_row, merged_lanes, parts, spread, tree,
};
use super::{first, narrow};
use crate::kernel::LONG_ROW;
use crate::vectors::UninitParts;

wide! {
    /// The element that the first lane stands for.
    unsafe fn first_element<L: Extremum>(lanes: __m512i) -> L::Element {
        let mut room = [const { MaybeUninit::<L::Element>::uninit() }; 16];
        // SAFETY: as above.
        unsafe {
            L::store_elements(lanes, room.as_mut_ptr().cast());
            room[0].assume_init()
        }
    }

    /// See [`RowsFn`]: extrema, and the first places of each.
    pub(super) unsafe fn places<L: Extremum>(
        elements: &[L::Element],
        len: usize,
        (to, places): UninitParts<'_, L::Element, u32>,
        in_main_memory: bool,
    ) {
        let grouped = if len > LONG_ROW { 0 } else { to.len() / L::COUNT * L::COUNT };
        let rest = &elements[grouped * len..];
        let (to, to_rest) = to.split_at_mut(grouped);
        let (places, places_rest) = places.split_at_mut(grouped);
        // SAFETY: the caller promises the level, and a row for each accumulator.
        unsafe {
            if narrow::LENGTHS.contains(&len) {
                narrow::places::<L>(elements, len, (to, places));
            } else {
                by_length!(L::COUNT, len, groups_of_places::<L>(elements, len, (to, places)));
            }
            let rest = rest.chunks_exact(len).zip(to_rest.iter_mut().zip(places_rest));
            for (row, (to, place)) in rest {
                let row_lanes = if len > LONG_ROW {
                    long_row::<L>(row.as_ptr(), len, in_main_memory)
                } else {
                    lanes_of::<L>(row.as_ptr(), len, false)
                };
                let most = to.write(first_element::<L>(merged_lanes::<L>(row_lanes)));
                place.write(first_place::<L>(row, *most));
            }
        }
    }

    /// Finds extrema and their places, `ROWS` rows in a vector.
    unsafe fn groups_of_places<L: Extremum, const ROWS: usize, const FILL: u8>(
        elements: &[L::Element],
        len: usize,
        (to, places): UninitParts<'_, L::Element, u32>,
    ) {
        let groups = to.chunks_exact_mut(L::COUNT).zip(places.chunks_exact_mut(L::COUNT));
        for (number, (to, places)) in groups.enumerate() {
            let rows = &elements[number * len * L::COUNT..];
            let padded = rows.len() >= (len + 1) * L::COUNT;
            // SAFETY: the caller promises the level; there are as many rows and places as lanes.
            unsafe {
                let most = group::<L, ROWS, FILL>(rows.as_ptr(), len, padded);
                L::store_elements(most, to.as_mut_ptr().cast());
                let wanted = L::numbers(most);
                if L::nans(wanted) != 0 {
                    for (row, (place, most)) in places.iter_mut().zip(&*to).enumerate() {
                        let row = &rows[row * len..(row + 1) * len];
                        place.write(first_place::<L>(row, most.assume_init()));
                    }
                    continue;
                }
                let found = group_of_places::<L, ROWS>(rows.as_ptr(), len, (wanted, padded));
                if L::BITS == 64 {
                    let found = arch::_mm512_cvtepi64_epi32(found);
                    arch::_mm256_storeu_si256(places.as_mut_ptr().cast(), found);
                } else {
                    arch::_mm512_storeu_si512(places.as_mut_ptr().cast(), found);
                }
            }
        }
    }

    /// The first places of elements that are wanted, each in its row.
    unsafe fn group_of_places<L: Extremum, const ROWS: usize>(
        rows: *const L::Element,
        len: usize,
        (wanted, padded): (__m512i, bool),
    ) -> __m512i {
        let part = L::COUNT / ROWS;
        // The elements that are loaded where fewer count: see `load_part`.
        let loaded = |mask| if arch::HAS_MASKS || !padded { mask } else { u16::MAX };
        // SAFETY: the caller promises the level and as many rows as there are lanes.
        unsafe {
            let mut all = [L::Places::start(); 16];
            for n in 0..part {
                let rows = rows.add(n * ROWS * len);
                let wanted = repeated::<L, ROWS>(wanted, n);
                if ROWS > 1 {
                    let packed = L::elements(rows, loaded(first(len * ROWS)));
                    let ties = L::equal(spread::<L, ROWS>(packed, len), wanted);
                    let ties = ties & parts::<L, ROWS>(len);
                    all[n] = lesser::<L::Places>(all[n], ties, counted::<L>(part));
                    continue;
                }
                let (mut at, mut here) = (0, counted::<L>(L::COUNT));
                while at + L::COUNT <= len {
                    let ties = L::equal(L::elements(rows.add(at), u16::MAX), wanted);
                    all[n] = lesser::<L::Places>(all[n], ties, here);
                    here = farther::<L>(here);
                    at += L::COUNT;
                }
                if at < len {
                    let mask = first(len - at);
                    let ties = L::equal(L::elements(rows.add(at), loaded(mask)), wanted) & mask;
                    all[n] = lesser::<L::Places>(all[n], ties, here);
                }
            }
            tree::<L::Places, ROWS, false>(all)
        }
    }

    /// The lanes of the `n`th `ROWS` rows, each in all lanes of the row's part.
    unsafe fn repeated<M: Merge, const ROWS: usize>(lanes: __m512i, n: usize) -> __m512i {
        let part = M::COUNT / ROWS;
        #[expect(clippy::cast_possible_wrap, reason = "there are 16 lanes at most")]
        let row = |lane: usize| (n * ROWS + lane / part) as i64;
        if M::BITS == 64 {
            let rows = arch::_mm512_setr_epi64(
                row(0), row(1), row(2), row(3), row(4), row(5), row(6), row(7),
            );
            return arch::_mm512_permutexvar_epi64(rows, lanes);
        }
        #[expect(clippy::cast_possible_truncation, reason = "as above")]
        let row = |lane: usize| row(lane) as i32;
        let rows = arch::_mm512_setr_epi32(
            row(0), row(1), row(2), row(3), row(4), row(5), row(6), row(7), row(8), row(9),
            row(10), row(11), row(12), row(13), row(14), row(15),
        );
        arch::_mm512_permutexvar_epi32(rows, lanes)
    }

    /// The number of each lane in its part of a vector.
    unsafe fn counted<M: Merge>(part: usize) -> __m512i {
        #[expect(clippy::cast_possible_wrap, reason = "there are 16 lanes at most")]
        let last = part as i64 - 1;
        if M::BITS == 64 {
            let all = arch::_mm512_setr_epi64(0, 1, 2, 3, 4, 5, 6, 7);
            return arch::_mm512_and_si512(all, arch::_mm512_set1_epi64(last));
        }
        let all = arch::_mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
        #[expect(clippy::cast_possible_truncation, reason = "as above")]
        let last = last as i32;
        arch::_mm512_and_si512(all, arch::_mm512_set1_epi32(last))
    }

    /// The places a whole vector later.
    unsafe fn farther<M: Merge>(places: __m512i) -> __m512i {
        if M::BITS == 64 {
            return arch::_mm512_add_epi64(places, arch::_mm512_set1_epi64(8));
        }
        arch::_mm512_add_epi32(places, arch::_mm512_set1_epi32(16))
    }

    /// The lesser of places, of those in a mask.
    unsafe fn lesser<P: Merge>(a: __m512i, mask: u16, b: __m512i) -> __m512i {
        if P::BITS == 64 {
            #[expect(clippy::cast_possible_truncation, reason = "there are eight lanes")]
            return arch::_mm512_mask_min_epu64(a, mask as u8, a, b);
        }
        arch::_mm512_mask_min_epu32(a, mask, a, b)
    }

    /// Returns the first place in a row of an element that ties with a value; `u32::MAX` if there is
    /// none.
    unsafe fn first_place<L: Extremum>(row: &[L::Element], value: L::Element) -> u32 {
        let (mut at, start) = (0, row.as_ptr());
        // SAFETY: the caller promises the level; each load lies within the row.
        unsafe {
            let wanted = repeated::<L, 1>(L::elements(&raw const value, 1), 0);
            let is_nan = L::nans(wanted) != 0;
            let ties = |elements| if is_nan { L::nans(elements) } else { L::equal(elements, wanted) };
            while at + 4 * L::COUNT <= row.len() {
                let mut all = 0u64;
                for n in 0..4 {
                    let ties = ties(L::elements(start.add(at + n * L::COUNT), u16::MAX));
                    all |= u64::from(ties) << (n * L::COUNT);
                }
                if all != 0 {
                    return at as u32 + all.trailing_zeros();
                }
                at += 4 * L::COUNT;
            }
            while at < row.len() {
                let mask = first(row.len() - at);
                let ties = ties(L::elements(start.add(at), mask)) & mask;
                if ties != 0 {
                    return at as u32 + ties.trailing_zeros();
                }
                at += L::COUNT;
            }
        }
        u32::MAX
    }
}
