//! Rows, each of which becomes one element. Loops over plain slices do not become vectors there.
//!
//! The vectors of a row are combined, which leaves as many accumulators as a vector has lanes. They
//! are merged by halves, those of 16 rows together (8 if lanes have 64 bits): two vectors become one
//! that has their first halves and one that has their second halves, and these are combined. Short
//! rows share a vector from the beginning, each in a half, a quarter or an eighth of it.

use std::mem::MaybeUninit;

use fearless_simd::prelude::*;

use super::UninitParts;
use super::inlined;
use super::instructions::{fetch_behind, is_avx512, load_first};
use super::lanes::{Lane, Lanes, Mask, Merge, SumOf, Vector, first, first_bits};
use super::tree::{halves, merged_lanes, quarters, tree};
use crate::kernel::LONG_ROW;

/// Stands for the number of rows that share a vector where a row is a few vectors, [`MOST_FEW`] at most.
pub(super) const FEW: usize = usize::MAX;
/// Stands for the number of rows that share a vector where a row is longer.
pub(super) const LONG: usize = 0;

/// Whether rows are one vector at most.
pub(super) const fn is_short(rows: usize) -> bool {
    rows != FEW && rows != LONG
}

/// The vectors of as many short rows as a vector has lanes, if so many share one.
pub(super) const fn vectors(lanes: usize, rows: usize) -> usize {
    if is_short(rows) { lanes / rows } else { 0 }
}

/// Whether rows leave lanes of vectors.
pub(super) const fn leaves_lanes(rows: usize, len: usize, lanes: usize) -> bool {
    is_short(rows) && rows * len != lanes
}

/// How many bytes ahead a long row is fetched: loads do not wait for so near lines.
const NEAR: usize = 256;
/// How many bytes ahead short rows are fetched: loads that overlap keep the CPU from fetching them early
/// enough by itself.
pub(super) const FAR: usize = 1024;

/// The most vectors of rows that are gone through side by side.
pub(super) const MOST_FEW: usize = 4;

/// Calls a function whose parameter is the number of rows that share a vector, by their length.
macro_rules! by_length {
    ($simd:ident, $lanes:expr, $len:expr, $function:ident::<$lanes_of:ident> ($($operand:expr),*)) => {{
        // Functions for each number keep vectors in registers.
        macro_rules! call {
            ($rows:expr) => {
                $crate::vectors::apart(
                    $simd,
                    #[inline(always)]
                    || $function::<_, $lanes_of, { $rows }>($simd, $($operand),*),
                )
            };
        }
        let len = $len;
        if const { is_avx512::<S>() } && len > $lanes && len <= MOST_FEW * $lanes {
            call!(FEW)
        } else if len > $lanes {
            call!(LONG)
        } else if len > $lanes / 2 {
            call!(1)
        } else if len > $lanes / 4 {
            call!(2)
        } else if const { $lanes == 8 } || len > $lanes / 8 {
            call!(4)
        } else {
            call!(8)
        }
    }};
}
pub(super) use by_length;

/// A loop of at most 16 turns, written out: vectors of an array that is indexed by a number which is not
/// known lie in memory.
macro_rules! unrolled {
    ($n:ident in 0..$count:expr => $do:block) => {
        unrolled!(@ $n, $count, $do, 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15)
    };
    (@ $n:ident, $count:expr, $do:block, $($number:literal)*) => { $(
        if const { $number < $count } {
            let $n: usize = $number;
            $do
        }
    )* };
}
pub(super) use unrolled;

/// Combines vectors; NaN may be lost if the caller says that all lanes are `NUMBERS`.
#[inline(always)]
fn combined<S: Simd, M: Merge<S>, const NUMBERS: bool>(a: M::Vector, b: M::Vector) -> M::Vector {
    if NUMBERS { M::combine_numbers(a, b) } else { M::combine(a, b) }
}

/// A mask of no lanes.
#[inline(always)]
pub(super) fn none<S: Simd, V: Vector<S>>(simd: S) -> V::Mask {
    V::Mask::splat(simd, false)
}

/// The accumulators of a row.
#[inline(always)]
fn lanes_of<S: Simd, L: Lanes<S>>(simd: S, row: &[L::Element]) -> L::Vector {
    let mut nans = none::<S, L::Vector>(simd);
    // SAFETY: the row has these elements.
    unsafe {
        let all = vectors_of::<S, L, true>(simd, row, row.len(), &mut nans);
        if L::LOSES_NANS && nans.any_true() {
            return vectors_of::<S, L, false>(simd, row, row.len(), &mut nans);
        }
        all
    }
}

/// The accumulators of the row of `len` elements at the beginning of `row`. All elements are `NUMBERS`, or
/// the caller looks at `nans`.
///
/// # Safety
/// There must be so many elements.
#[inline(always)]
unsafe fn vectors_of<S: Simd, L: Lanes<S>, const NUMBERS: bool>(
    simd: S,
    row: &[L::Element],
    len: usize,
    nans: &mut Mask<S, L::Vector>,
) -> L::Vector {
    let from = row.as_ptr();
    // SAFETY: the caller promises the elements.
    unsafe {
        let load_rest = inlined(
            #[inline(always)]
            |at: usize| L::load_first(simd, row.get_unchecked(at..), len - at),
        );
        if len < L::COUNT {
            let all = load_rest(0);
            *nans = L::nans_of(*nans, all, all);
            return all;
        }
        // NaN is looked for in pairs of vectors. `single` is one in which it was not looked for yet.
        let (mut all, mut at) = (L::load(simd, from), L::COUNT);
        let mut single = all;
        if L::BY_FOUR && len >= 4 * L::COUNT {
            (all, at) = (L::load_four(simd, from), 4 * L::COUNT);
            while at + 4 * L::COUNT <= len {
                all = L::combine(all, L::load_four(simd, from.add(at)));
                at += 4 * L::COUNT;
            }
        }
        while at + 2 * L::COUNT <= len {
            let x = L::load(simd, from.add(at));
            let y = L::load(simd, from.add(at + L::COUNT));
            *nans = L::nans_of(*nans, x, y);
            all = combined::<S, L, NUMBERS>(combined::<S, L, NUMBERS>(all, x), y);
            at += 2 * L::COUNT;
        }
        if at + L::COUNT <= len {
            let x = L::load(simd, from.add(at));
            *nans = L::nans_of(*nans, single, x);
            all = combined::<S, L, NUMBERS>(all, x);
            at += L::COUNT;
            single = x;
        }
        let mut last = single;
        if at < len {
            last = load_rest(at);
            all = combined::<S, L, NUMBERS>(all, last);
        }
        *nans = L::nans_of(*nans, single, last);
        all
    }
}

/// The accumulators of each of as many rows as a vector has lanes. All rows go on by a vector at a time, so
/// that none waits for the one before it.
///
/// # Safety
/// There must be so many rows of `len` elements, each longer than a vector.
#[inline(always)]
unsafe fn few_vectors_of<S: Simd, L: Lanes<S>>(
    simd: S,
    rows: &[L::Element],
    len: usize,
    nans: &mut Mask<S, L::Vector>,
) -> [L::Vector; 16] {
    let mut all = [L::start(simd); 16];
    let mut at = 0;
    while at < len {
        let mut pair = [all[0]; 2];
        unrolled!(n in 0..L::COUNT => {
            // SAFETY: the caller promises the rows.
            let next = unsafe {
                let from = rows.get_unchecked(n * len + at..);
                if at + L::COUNT <= len {
                    L::load(simd, from.as_ptr())
                } else {
                    L::load_first(simd, from, len - at)
                }
            };
            pair[n % 2] = next;
            if n % 2 == 1 {
                *nans = L::nans_of(*nans, pair[0], pair[1]);
            }
            all[n] = L::combine_numbers(all[n], next);
        });
        at += L::COUNT;
    }
    all
}

/// The lanes of `ROWS` rows of `len` elements, each in a part of a vector.
#[inline(always)]
fn lanes_of_rows<S: Simd, V: Vector<S>, const ROWS: usize>(simd: S, len: usize) -> V::Mask {
    let part = V::LEN / ROWS;
    let bits = (0..ROWS).fold(0, |bits, row| bits | first_bits(len) << (row * part));
    V::Mask::from_bitmask(simd, bits)
}

/// `ROWS` rows of `len` elements, each in a part of a vector; the lanes beyond a row are `others`.
/// `first` loads as many of the first elements from a row on as it is told.
#[inline(always)]
pub(super) fn side_by_side<S: Simd, V: Vector<S>, const ROWS: usize>(
    simd: S,
    len: usize,
    others: V,
    first: impl Fn(usize, usize) -> V,
) -> V {
    // Eight rows fill a vector.
    if const { ROWS == 1 || ROWS == 8 } || ROWS * len == V::LEN {
        return first(0, ROWS * len);
    }
    if const { is_avx512::<S>() } {
        return first(0, ROWS * len).expand_merge(lanes_of_rows::<S, V, ROWS>(simd, len), others);
    }
    if const { ROWS == 2 } {
        return halves(first(0, len), first(1, len)).0;
    }
    let two = halves(first(0, len), first(1, len)).0;
    quarters(two, halves(first(2, len), first(3, len)).0).0
}

/// The vectors that a function returns for 0, 1 and so on, as many as a vector has lanes.
#[inline(always)]
pub(super) fn one_by_one<S: Simd, V: Vector<S>>(
    mut all: [V; 16],
    mut vector: impl FnMut(usize) -> V,
) -> [V; 16] {
    for n in 0..V::LEN {
        all[n] = vector(n);
    }
    // Those were written to memory.
    let mut loaded = all;
    unrolled!(n in 0..V::LEN => {
        loaded[n] = all[n];
    });
    loaded
}

/// The results of as many rows at the beginning of `rows` as a vector has lanes. NaN may be lost if it is among
/// `nans` then.
///
/// # Safety
/// There must be so many rows of `len` elements.
#[inline(always)]
pub(super) unsafe fn group<S: Simd, L: Lanes<S>, const ROWS: usize>(
    simd: S,
    rows: &[L::Element],
    len: usize,
    nans: &mut Mask<S, L::Vector>,
) -> L::Vector {
    let mut all = [L::start(simd); 16];
    // SAFETY: the caller promises the rows.
    unsafe {
        if const { !is_short(ROWS) } {
            let all = if const { ROWS == FEW } {
                few_vectors_of::<S, L>(simd, rows, len, nans)
            } else {
                one_by_one::<S, L::Vector>(
                    all,
                    #[inline(always)]
                    |n| vectors_of::<S, L, true>(simd, rows.get_unchecked(n * len..), len, nans),
                )
            };
            return L::finish(tree::<S, L, 1>(simd, all));
        }
        unrolled!(n in 0..vectors(L::COUNT, ROWS) => {
            all[n] = side_by_side::<S, L::Vector, ROWS>(
                simd,
                len,
                all[n],
                #[inline(always)]
                |row, count| {
                    let from = rows.get_unchecked((n * ROWS + row) * len..);
                    if count == L::COUNT {
                        L::load(simd, from.as_ptr())
                    } else {
                        L::load_first(simd, from, count)
                    }
                },
            );
            if n % 2 == 1 {
                *nans = L::nans_of(*nans, all[n - 1], all[n]);
            }
        });
    }
    L::finish(tree::<S, L, ROWS>(simd, all))
}

/// Reduces groups of rows. Returns whether there was NaN, which the results may have lost.
#[inline(always)]
fn groups_of<S: Simd, L: Lanes<S>, const ROWS: usize>(
    simd: S,
    mut rows: &[L::Element],
    len: usize,
    to: &mut [MaybeUninit<L::Accumulator>],
) -> bool {
    let mut nans = none::<S, L::Vector>(simd);
    for to in to.chunks_exact_mut(L::COUNT) {
        let rest = &rows[len * L::COUNT..];
        if leaves_lanes(ROWS, len, L::COUNT) {
            fetch_behind(&rows[..len * L::COUNT], FAR);
        }
        // SAFETY: the rows of this group are there, since those after them were found.
        L::store(unsafe { group::<S, L, ROWS>(simd, rows, len, &mut nans) }, to);
        rows = rest;
    }
    nans.any_true()
}

/// See [`RowsFn`](super::RowsFn).
#[inline(always)]
pub(super) fn values<S: Simd, L: Lanes<S>>(
    simd: S,
    elements: &[L::Element],
    len: usize,
    (to, _): UninitParts<'_, L::Accumulator, ()>,
) {
    let grouped = if len > LONG_ROW { 0 } else { to.len() / L::COUNT * L::COUNT };
    let groups = &mut to[..grouped];
    let has_nans = by_length!(simd, L::COUNT, len, groups_of::<L>(elements, len, groups));
    let done = if has_nans { 0 } else { grouped };
    for (number, to) in (done..).zip(&mut to[done..]) {
        let elements = &elements[number * len..][..len];
        to.write(merged::<S, L>(simd, row::<S, L>(simd, elements)));
    }
}

/// The accumulators of a row of any length.
#[inline(always)]
pub(super) fn row<S: Simd, L: Lanes<S>>(simd: S, row: &[L::Element]) -> L::Vector {
    if row.len() > LONG_ROW { long_row::<S, L>(simd, row) } else { lanes_of::<S, L>(simd, row) }
}

/// Merges the accumulators of a vector.
#[inline(always)]
fn merged<S: Simd, L: Lanes<S>>(simd: S, lanes: L::Vector) -> L::Accumulator {
    let mut room = [const { MaybeUninit::<L::Accumulator>::uninit() }; 16];
    L::store(merged_lanes::<S, L>(simd, lanes), &mut room);
    // SAFETY: `store` writes all lanes.
    unsafe { room[0].assume_init() }
}

/// Reduces a long row, by the accumulators of four vectors.
#[inline(always)]
fn long_row<S: Simd, L: Lanes<S>>(simd: S, row: &[L::Element]) -> L::Vector {
    let fours = row.chunks_exact(4 * L::COUNT);
    let mut rest = fours.remainder();
    let [mut a, mut b, mut c, mut d] = long_vectors::<S, L>(simd, fours);
    // Vectors of an array that is indexed by a number which is not known lie in memory.
    macro_rules! add_rest {
        ($($all:ident)*) => { $(
            if rest.len() >= L::COUNT {
                // SAFETY: a vector of elements is left.
                $all = L::combine($all, unsafe { L::load(simd, rest.as_ptr()) });
                rest = &rest[L::COUNT..];
            } else if !rest.is_empty() {
                // SAFETY: these are all that are left.
                $all = L::combine($all, unsafe { L::load_first(simd, rest, rest.len()) });
                rest = &[];
            }
        )* };
    }
    add_rest!(a b c d);
    L::combine(L::combine(a, c), L::combine(b, d))
}

/// Combines four vectors of a row at a time.
#[inline(always)]
fn long_vectors<S: Simd, L: Lanes<S>>(
    simd: S,
    fours: std::slice::ChunksExact<'_, L::Element>,
) -> [L::Vector; 4] {
    let mut nans = none::<S, L::Vector>(simd);
    let mut all = [L::start(simd); 4];
    for four in fours.clone() {
        fetch_behind(four, NEAR);
        // SAFETY: there are the elements of four vectors.
        all = unsafe { L::add_four(simd, all, four.as_ptr(), &mut nans) };
    }
    if L::LOSES_NANS && nans.any_true() {
        let [mut a, mut b, mut c, mut d] = [L::start(simd); 4];
        for four in fours {
            // SAFETY: as above.
            let [w, x, y, z] = unsafe { L::four(simd, four.as_ptr()) };
            (a, b) = (L::combine(a, w), L::combine(b, x));
            (c, d) = (L::combine(c, y), L::combine(d, z));
        }
        return [a, b, c, d];
    }
    L::in_order(all)
}

/// See [`DeviationsFn`](super::DeviationsFn).
#[inline(always)]
pub(super) fn deviations<S: Simd, T: Lane<S>>(
    simd: S,
    elements: &[T],
    len: usize,
    means: &[T],
    to: &mut [T],
) {
    let zero = T::Vector::splat(simd, T::ZERO);
    for (number, (mean, to)) in means.iter().zip(to).enumerate() {
        let row = &elements[number * len..];
        let squared = inlined(
            #[inline(always)]
            |x: T::Vector| {
                let apart = x - *mean;
                apart * apart
            },
        );
        *to = sum_of_row::<S, T>(
            simd,
            len,
            #[inline(always)]
            |at| {
                if at + T::Vector::LEN <= len {
                    return squared(T::Vector::from_slice(simd, &row[at..][..T::Vector::LEN]));
                }
                // SAFETY: the row has these elements.
                let rest = squared(unsafe { load_first(simd, &row[at..], len - at, zero) });
                first::<S, T::Vector>(simd, len - at).select(rest, zero)
            },
        );
    }
}

/// Adds up the vectors of a row of `len` elements, with as many accumulators as other rows of this
/// length have. `terms` returns the terms from a place on; lanes beyond the row are 0.
#[inline(always)]
pub(super) fn sum_of_row<S: Simd, T: Lane<S>>(
    simd: S,
    len: usize,
    mut terms: impl FnMut(usize) -> T::Vector,
) -> T {
    let [sum] = sums_of_row::<S, T, 1>(
        simd,
        len,
        #[inline(always)]
        |at| [terms(at)],
    );
    sum
}

/// As [`sum_of_row`], of several terms at each place.
#[inline(always)]
pub(super) fn sums_of_row<S: Simd, T: Lane<S>, const SUMS: usize>(
    simd: S,
    len: usize,
    mut terms: impl FnMut(usize) -> [T::Vector; SUMS],
) -> [T; SUMS] {
    let zero = T::Vector::splat(simd, T::ZERO);
    let mut add = inlined(
        #[inline(always)]
        |all: &mut [T::Vector; SUMS], at: usize| {
            let terms = terms(at);
            for n in 0..SUMS {
                all[n] += terms[n];
            }
        },
    );
    let count = T::Vector::LEN;
    if len <= LONG_ROW {
        let mut all = [zero; SUMS];
        for at in (0..len).step_by(count) {
            add(&mut all, at);
        }
        return results::<S, T, SUMS>(simd, &all);
    }
    let mut all = [[zero; SUMS]; 4];
    let mut at = 0;
    while at + 4 * count <= len {
        for (n, all) in all.iter_mut().enumerate() {
            add(all, at + n * count);
        }
        at += 4 * count;
    }
    for all in &mut all {
        if at < len {
            add(all, at);
            at += count;
        }
    }
    let [a, b, c, d] = all;
    let mut all = a;
    for n in 0..SUMS {
        all[n] = (a[n] + c[n]) + (b[n] + d[n]);
    }
    results::<S, T, SUMS>(simd, &all)
}

/// Merges the lanes of each sum.
#[inline(always)]
fn results<S: Simd, T: Lane<S>, const SUMS: usize>(simd: S, sums: &[T::Vector; SUMS]) -> [T; SUMS] {
    let mut results = [T::ZERO; SUMS];
    for (result, &sum) in results.iter_mut().zip(sums) {
        *result = merged::<S, SumOf<T>>(simd, sum);
    }
    results
}
