//! Extrema of rows with their first places.

use std::mem::MaybeUninit;

use fearless_simd::prelude::*;

use super::instructions::{fetch_behind, is_avx512};
use super::lanes::{Extremum, LeastPlace, Mask, Merge, PlaceVector, Vector, first_bits};
use super::rows::{
    FAR, FEW, LONG, MOST_FEW, by_length, group, is_short, leaves_lanes, none, one_by_one, row,
    side_by_side, unrolled, vectors,
};
use super::tree::{merged_lanes, tree};
use super::{UninitParts, inlined};
use crate::kernel::LONG_ROW;

/// The vectors of the places of elements.
type Places<S, L> = <<L as Merge<S>>::Vector as Vector<S>>::Places;

/// See [`RowsFn`](super::RowsFn): extrema, and the first places of each.
#[inline(always)]
pub(super) fn places<S: Simd, L: Extremum<S>>(
    simd: S,
    elements: &[L::Element],
    len: usize,
    (to, places): UninitParts<'_, L::Element, u32>,
) {
    let grouped = if len > LONG_ROW { 0 } else { to.len() / L::COUNT * L::COUNT };
    let groups = (&mut to[..grouped], &mut places[..grouped]);
    let has_nans = by_length!(simd, L::COUNT, len, groups_of_places::<L>(elements, len, groups));
    let done = if has_nans { 0 } else { grouped };
    let rest = to[done..].iter_mut().zip(&mut places[done..]);
    for (number, (to, place)) in (done..).zip(rest) {
        let elements = &elements[number * len..][..len];
        let most = merged_lanes::<S, L>(simd, row::<S, L>(simd, elements));
        let mut room = [const { MaybeUninit::<L::Element>::uninit() }; 16];
        L::store_elements(most, &mut room);
        *to = room[0];
        place.write(first_place::<S, L>(simd, elements, L::numbers(most)[0]));
    }
}

/// Finds extrema and their places. Returns whether there was NaN, which the results may have lost.
#[inline(always)]
fn groups_of_places<S: Simd, L: Extremum<S>, const ROWS: usize>(
    simd: S,
    mut rows: &[L::Element],
    len: usize,
    (to, places): UninitParts<'_, L::Element, u32>,
) -> bool {
    let groups = to.chunks_exact_mut(L::COUNT).zip(places.chunks_exact_mut(L::COUNT));
    let mut nans = none::<S, L::Vector>(simd);
    let mut found_nans = none::<S, L::Compared>(simd);
    for to in groups {
        let rest = &rows[len * L::COUNT..];
        // SAFETY: the rows of this group are there, since those after them were found.
        unsafe {
            if leaves_lanes(ROWS, len, L::COUNT) {
                fetch_behind(&rows[..len * L::COUNT], FAR);
            }
            if const { is_short(ROWS) } {
                group_by_columns::<S, L, ROWS>(simd, rows, len, to, &mut found_nans);
            } else {
                let most = group::<S, L, ROWS>(simd, rows, len, &mut nans);
                found_nans |= group_by_rows::<S, L>(simd, rows, len, to, most);
            }
        };
        rows = rest;
    }
    nans.any_true() || found_nans.any_true()
}

/// Finds the places of the extrema of as many long rows as a vector has lanes. Returns which are NaN.
///
/// # Safety
/// As that of [`group`].
#[inline(always)]
unsafe fn group_by_rows<S: Simd, L: Extremum<S>>(
    simd: S,
    rows: &[L::Element],
    len: usize,
    (to, places): UninitParts<'_, L::Element, u32>,
    most: L::Vector,
) -> Mask<S, L::Compared> {
    L::store_elements(most, to);
    let wanted = L::numbers(most);
    let all = one_by_one::<S, Places<S, L>>(
        [Places::<S, L>::all(simd, -1); 16],
        #[inline(always)]
        // SAFETY: the caller promises the rows.
        |n| unsafe { places_of_row::<S, L>(simd, rows.get_unchecked(n * len..), len, wanted[n]) },
    );
    tree::<S, LeastPlace<Places<S, L>>, 1>(simd, all).store(places);
    wanted.simd_ne(wanted)
}

/// Finds the extrema of as many rows as a vector has lanes: a vector of the first elements of all rows is
/// compared with one of the second elements, and so on.
///
/// # Safety
/// As that of [`group`].
#[inline(always)]
unsafe fn group_by_columns<S: Simd, L: Extremum<S>, const ROWS: usize>(
    simd: S,
    rows: &[L::Element],
    len: usize,
    (to, places): UninitParts<'_, L::Element, u32>,
    nans: &mut Mask<S, L::Compared>,
) {
    let start = L::Numbers::start(simd);
    let mut all = [start; 16];
    unrolled!(n in 0..vectors(L::COUNT, ROWS) => {
        all[n] = side_by_side::<S, L::Compared, ROWS>(
            simd,
            len,
            start,
            #[inline(always)]
            // SAFETY: the caller promises the rows.
            |row, count| unsafe {
                let from = rows.get_unchecked((n * ROWS + row) * len..);
                if count == L::COUNT {
                    L::elements(simd, from.as_ptr())
                } else {
                    L::first_elements(simd, from, count)
                }
            },
        );
        if n % 2 == 1 {
            *nans = L::Numbers::nans_of(*nans, all[n - 1], all[n]);
        }
    });
    let all = columns::<S, L::Compared, ROWS>(all);
    let mut most = all[0];
    for n in 1..L::COUNT / ROWS {
        most = L::Numbers::combine_numbers(most, all[n]);
    }
    L::store_numbers(most, to);
    let mut first = Places::<S, L>::all(simd, 0);
    for n in (0..L::COUNT / ROWS).rev() {
        let ties = all[n].simd_eq(most);
        first = ties.select(Places::<S, L>::all(simd, n as i32), first);
    }
    first.store(places);
}

/// The columns of rows, `ROWS` of which lie in each vector: the first lanes of all parts, and so on.
#[inline(always)]
fn columns<S: Simd, V: Vector<S>, const ROWS: usize>(mut all: [V; 16]) -> [V; 16] {
    let count = V::LEN / ROWS;
    // The index of a lane among all lanes has its lowest bit moved to the highest place, by each step.
    macro_rules! unzip {
        ($($below:literal)*) => { $(
            if const { $below < vectors(V::LEN, ROWS) } {
                let from = all;
                for n in 0..count / 2 {
                    all[n] = from[2 * n].unzip_low(from[2 * n + 1]);
                    all[count / 2 + n] = from[2 * n].unzip_high(from[2 * n + 1]);
                }
            }
        )* };
    }
    unzip!(1 2 4 8);
    all
}

/// The least place in each lane of an element that is wanted, in the row of `len` elements at the
/// beginning of `row`.
///
/// # Safety
/// There must be so many elements.
#[inline(always)]
unsafe fn places_of_row<S: Simd, L: Extremum<S>>(
    simd: S,
    row: &[L::Element],
    len: usize,
    wanted: <L::Compared as SimdBase<S>>::Element,
) -> Places<S, L> {
    let (mut at, mut here) = (0, Places::<S, L>::counted(simd, L::COUNT));
    let mut least = Places::<S, L>::all(simd, -1);
    let wanted = L::Compared::splat(simd, wanted);
    // SAFETY: the caller promises the elements.
    unsafe {
        while at + L::COUNT <= len {
            let ties = L::elements(simd, row.as_ptr().add(at)).simd_eq(wanted);
            least = lesser::<S, L::Compared>(least, ties, here);
            here += Places::<S, L>::all(simd, L::COUNT as i32);
            at += L::COUNT;
        }
        if at < len {
            // An element that is wanted comes before the lanes beyond the row.
            let rest = L::first_elements(simd, row.get_unchecked(at..), len - at);
            least = lesser::<S, L::Compared>(least, rest.simd_eq(wanted), here);
        }
    }
    least
}

/// The lesser of places, of those in a mask.
#[inline(always)]
fn lesser<S: Simd, V: Vector<S>>(a: V::Places, mask: V::Mask, b: V::Places) -> V::Places {
    mask.select(a.min(b), a)
}

/// Returns the first place in a row of an element that ties with a value; `u32::MAX` if there is none.
#[inline(always)]
fn first_place<S: Simd, L: Extremum<S>>(
    simd: S,
    row: &[L::Element],
    value: <L::Compared as SimdBase<S>>::Element,
) -> u32 {
    let wanted = L::Compared::splat(simd, value);
    let is_nan = wanted.simd_ne(wanted).any_true();
    let ties = inlined(
        #[inline(always)]
        |elements: L::Compared| {
            let ties = if is_nan { elements.simd_ne(elements) } else { elements.simd_eq(wanted) };
            ties.to_bitmask()
        },
    );
    let mut at = 0;
    let whole = row.chunks_exact(4 * L::COUNT);
    let mut rest = whole.remainder();
    for four in whole {
        let mut all = 0;
        for n in 0..4 {
            // SAFETY: there are the elements of four vectors.
            let elements = unsafe { L::elements(simd, four[n * L::COUNT..].as_ptr()) };
            all |= ties(elements) << (n * L::COUNT);
        }
        if all != 0 {
            return at + all.trailing_zeros();
        }
        at += 4 * L::COUNT as u32;
    }
    while !rest.is_empty() {
        let count = rest.len().min(L::COUNT);
        let elements = match count < L::COUNT {
            // SAFETY: these are all that are left.
            true => unsafe { L::first_elements(simd, rest, count) },
            // SAFETY: a vector of elements is left.
            false => unsafe { L::elements(simd, rest.as_ptr()) },
        };
        let ties = ties(elements) & first_bits(count);
        if ties != 0 {
            return at + ties.trailing_zeros();
        }
        (at, rest) = (at + count as u32, &rest[count..]);
    }
    u32::MAX
}
