//! Sums of products of factors, and of one factor beside.

use fearless_simd::prelude::*;

use super::instructions::{fetch_next, load_first};
use super::lanes::{Lane, Mask, chosen, first, load};
use super::rows::sums_of_row;
use super::{FACTORED, Factors, Prefetch};
use super::{apart, inlined};
use crate::kernel::BLOCKS_PER_STEP;

/// The operands that there are, or have rows, as bits: none; or all, which change nothing if they are
/// missing, and rows as the factors say.
const NONE: u8 = 0;
const AS_SAID: u8 = u8::MAX;
/// The first factor is multiplied by elements of a row, such as the scale of a layer norm.
const FACTOR: u8 = 1 << 1;
/// The second factor is `(y - 3) * 4`, such as elements that were normalized.
const NORMED: u8 = 1 << 3 | 1 << 4;
/// The number of the operand that the first factor is multiplied by for its own sum.
const FACTOR_SUM_OPERAND: usize = 6;

/// The most elements of blocks that are added vector by vector: vectors of longer ones would lie in one
/// set of a cache.
const MOST_COLUMNS: usize = 256;

/// Where the operands of a row are, each repeated if it has one element.
struct Row<T, V> {
    x: *const T,
    y: *const T,
    operands: [*const T; FACTORED],
    ones: [V; FACTORED],
}

/// Checks whether all blocks have the same operands, and are short.
fn is_by_columns<T>(factors: &Factors<T>, lanes: usize) -> bool {
    let is_short = factors.len <= MOST_COLUMNS && factors.len.is_multiple_of(lanes);
    is_short && factors.operands.iter().all(|(_, apart)| *apart == 0)
}

/// The operands of a row by its number, where `present` has bits for those that there are.
///
/// # Safety
/// The elements of the factors must be readable.
#[inline(always)]
unsafe fn row_of<S: Simd, T: Lane<S>>(
    simd: S,
    factors: &Factors<T>,
    row: usize,
    present: u8,
) -> Row<T, T::Vector> {
    let mut operands = [std::ptr::null(); FACTORED];
    let mut ones = [T::Vector::splat(simd, T::ZERO); FACTORED];
    for n in 0..FACTORED {
        if present >> n & 1 == 1 {
            let (from, apart) = factors.operands[n];
            operands[n] = from.wrapping_add(row * apart);
            // SAFETY: the caller promises the operands.
            ones[n] = T::Vector::splat(simd, unsafe { *operands[n] });
        }
    }
    let at = row * factors.len;
    Row { x: factors.x.wrapping_add(at), y: factors.y.wrapping_add(at), operands, ones }
}

/// The product of two factors, and what is added up beside.
#[inline(always)]
fn terms<S: Simd, V: SimdBase<S>, const PRESENT: u8>(
    [x, y]: [V; 2],
    operands: &[V; FACTORED],
) -> [V; 2] {
    let factor = inlined(
        #[inline(always)]
        |mut x: V, from: usize| {
            if PRESENT >> from & 1 == 1 {
                x -= operands[from];
            }
            for n in from + 1..from + 3 {
                if PRESENT >> n & 1 == 1 {
                    x *= operands[n];
                }
            }
            x
        },
    );
    let (x, y) = (factor(x, 0), factor(y, 3));
    let has_factor_sum = PRESENT >> FACTOR_SUM_OPERAND & 1 == 1;
    [x * y, if has_factor_sum { x * operands[FACTOR_SUM_OPERAND] } else { x }]
}

/// The terms at a place of a row; those of the first `count` lanes if they are fewer, then zeros.
///
/// # Safety
/// The elements of the row must be readable, `count` from the place on.
#[inline(always)]
unsafe fn terms_at<S: Simd, T: Lane<S>, const PRESENT: u8, const ROWS: u8>(
    simd: S,
    row: &Row<T, T::Vector>,
    (at, count): (usize, usize),
    per_element: u8,
) -> [T::Vector; 2] {
    let zero = T::Vector::splat(simd, T::ZERO);
    let is_whole = count >= T::Vector::LEN;
    // SAFETY: the caller promises the elements.
    let loaded = inlined(
        #[inline(always)]
        |from: *const T| unsafe {
            if is_whole {
                load::<S, T::Vector>(simd, from.add(at))
            } else {
                load_first(simd, std::slice::from_raw_parts(from.add(at), count), count, zero)
            }
        },
    );
    let mut operands = row.ones;
    for n in 0..FACTORED {
        if (PRESENT & ROWS & per_element) >> n & 1 == 1 {
            operands[n] = loaded(row.operands[n]);
        }
    }
    let terms = terms::<S, T::Vector, PRESENT>([loaded(row.x), loaded(row.y)], &operands);
    if is_whole {
        return terms;
    }
    let mask: Mask<S, T::Vector> = first::<S, T::Vector>(simd, count);
    [chosen(mask, terms[0], zero), chosen(mask, terms[1], zero)]
}

/// Adds up the products of each row, and the first factor beside, in the order of [`values`](super::rows).
///
/// # Safety
/// As that of [`AddProductsFn`](super::AddProductsFn).
#[inline(always)]
unsafe fn sums_of_rows<S: Simd, T: Lane<S>, const PRESENT: u8, const ROWS: u8>(
    simd: S,
    factors: &Factors<T>,
    to: &mut [T],
    mut factor_sum: Option<&mut [T]>,
) {
    let (len, per_element, mut prefetch) = (factors.len, factors.per_element, factors.prefetch);
    for (number, to) in to.iter_mut().enumerate() {
        // SAFETY: the caller promises a row of elements for each sum.
        let [product, other] = unsafe {
            let row = row_of::<S, T>(simd, factors, number, PRESENT);
            sums_of_row::<S, T, 2>(
                simd,
                len,
                #[inline(always)]
                |at| {
                    fetch_next(&mut prefetch, T::Vector::LEN);
                    terms_at::<S, T, PRESENT, ROWS>(simd, &row, (at, len - at), per_element)
                },
            )
        };
        *to = product;
        if let Some(factor_sum) = factor_sum.as_mut().and_then(|sums| sums.get_mut(number)) {
            *factor_sum = other;
        }
    }
}

/// Adds a vector to accumulators, or its first lanes if these are fewer.
#[inline(always)]
fn add<S: Simd, T: Lane<S>>(sum: T::Vector, to: &mut [T]) {
    let simd = sum.token();
    if let Some(to) = to.get_mut(..T::Vector::LEN) {
        (T::Vector::from_slice(simd, to) + sum).store_slice(to);
        return;
    }
    for (to, &sum) in to.iter_mut().zip(sum.as_slice()) {
        *to = T::add(*to, sum);
    }
}

/// Adds up to [`BLOCKS_PER_STEP`] blocks.
///
/// # Safety
/// As that of [`AddProductsFn`](super::AddProductsFn).
#[inline(always)]
unsafe fn add_together<S: Simd, T: Lane<S>, const PRESENT: u8, const ROWS: u8>(
    simd: S,
    rows: &[Row<T, T::Vector>],
    (per_element, prefetch): (u8, &mut [Prefetch; 2]),
    to: &mut [T],
    mut factor_sum: Option<&mut [T]>,
) {
    let len = to.len();
    for at in (0..len).step_by(T::Vector::LEN) {
        let mut all = [T::Vector::splat(simd, T::ZERO); 2];
        for row in rows {
            fetch_next(prefetch, T::Vector::LEN);
            // SAFETY: the caller promises the elements.
            let terms =
                unsafe { terms_at::<S, T, PRESENT, ROWS>(simd, row, (at, len - at), per_element) };
            all = [all[0] + terms[0], all[1] + terms[1]];
        }
        add::<S, T>(all[0], &mut to[at..]);
        if let Some(factor_sum) = &mut factor_sum {
            add::<S, T>(all[1], &mut factor_sum[at..]);
        }
    }
}

/// Adds up the products of blocks.
///
/// # Safety
/// As that of [`AddProductsFn`](super::AddProductsFn).
#[inline(always)]
unsafe fn sums_of_blocks<S: Simd, T: Lane<S>, const PRESENT: u8, const ROWS: u8>(
    simd: S,
    factors: &Factors<T>,
    to: &mut [T],
    mut factor_sum: Option<&mut [T]>,
) {
    let (mut done, mut prefetch) = (0, factors.prefetch);
    while done < factors.rows {
        let together = if factors.rows - done < BLOCKS_PER_STEP { 1 } else { BLOCKS_PER_STEP };
        // SAFETY: the caller promises the elements of all blocks.
        unsafe {
            let row = inlined(
                #[inline(always)]
                |n: usize| {
                    let row = done + if n < together { n } else { 0 };
                    row_of::<S, T>(simd, factors, row, PRESENT)
                },
            );
            let rows = [row(0), row(1), row(2), row(3), row(4), row(5), row(6), row(7)];
            let how = (factors.per_element, &mut prefetch);
            let factor_sum = factor_sum.as_deref_mut();
            add_together::<S, T, PRESENT, ROWS>(simd, &rows[..together], how, to, factor_sum);
        }
        done += together;
    }
}

/// As [`sums_of_blocks`] where all blocks have the same operands, which are loaded once for all.
///
/// # Safety
/// As that of [`AddProductsFn`](super::AddProductsFn).
#[inline(always)]
unsafe fn sums_of_columns<S: Simd, T: Lane<S>, const PRESENT: u8>(
    simd: S,
    factors: &Factors<T>,
    to: &mut [T],
    mut factor_sum: Option<&mut [T]>,
) {
    let zero = T::Vector::splat(simd, T::ZERO);
    let mut prefetch = factors.prefetch;
    // SAFETY: the caller promises the elements.
    unsafe {
        let row = row_of::<S, T>(simd, factors, 0, PRESENT);
        for at in (0..factors.len).step_by(T::Vector::LEN) {
            let mut operands = row.ones;
            for n in 0..FACTORED {
                if (PRESENT & factors.per_element) >> n & 1 == 1 {
                    operands[n] = load::<S, T::Vector>(simd, row.operands[n].add(at));
                }
            }
            let mut sums = [load::<S, T::Vector>(simd, to[at..].as_ptr()), zero];
            if let Some(factor_sum) = &factor_sum {
                sums[1] = load(simd, factor_sum[at..].as_ptr());
            }
            let mut done = 0;
            while done < factors.rows {
                let together =
                    if factors.rows - done < BLOCKS_PER_STEP { 1 } else { BLOCKS_PER_STEP };
                let mut all = [zero; 2];
                for block in done..done + together {
                    fetch_next(&mut prefetch, T::Vector::LEN);
                    let at = at + block * factors.len;
                    let xy = [load(simd, row.x.add(at)), load(simd, row.y.add(at))];
                    let terms = terms::<S, T::Vector, PRESENT>(xy, &operands);
                    all = [all[0] + terms[0], all[1] + terms[1]];
                }
                sums = [sums[0] + all[0], sums[1] + all[1]];
                done += together;
            }
            sums[0].store_slice(&mut to[at..][..T::Vector::LEN]);
            if let Some(factor_sum) = &mut factor_sum {
                sums[1].store_slice(&mut factor_sum[at..][..T::Vector::LEN]);
            }
        }
    }
}

/// See [`ProductFns::rows`](super::ProductFns).
///
/// # Safety
/// As that of [`AddProductsFn`](super::AddProductsFn).
#[inline(always)]
pub(super) unsafe fn products_of_rows<S: Simd, T: Lane<S>>(
    simd: S,
    factors: &Factors<T>,
    to: &mut [T],
    factor_sum: Option<&mut [T]>,
) {
    macro_rules! sums {
        ($present:ident, $rows:ident) => {
            apart(
                simd,
                #[inline(always)]
                // SAFETY: the caller promises the same.
                || unsafe { sums_of_rows::<S, T, $present, $rows>(simd, factors, to, factor_sum) },
            )
        };
    }
    match (factors.present, factors.per_element) {
        (NONE, _) => sums!(NONE, NONE),
        (NORMED, NONE) => sums!(NORMED, NONE),
        (_, NONE) => sums!(AS_SAID, NONE),
        (_, FACTOR) => sums!(AS_SAID, FACTOR),
        _ => sums!(AS_SAID, AS_SAID),
    }
}

/// See [`ProductFns::blocks`](super::ProductFns).
///
/// # Safety
/// As that of [`AddProductsFn`](super::AddProductsFn).
#[inline(always)]
pub(super) unsafe fn products_of_blocks<S: Simd, T: Lane<S>>(
    simd: S,
    factors: &Factors<T>,
    to: &mut [T],
    factor_sum: Option<&mut [T]>,
) {
    macro_rules! sums {
        ($function:ident::<$($bits:ident),*>) => {
            // SAFETY: the caller promises the same.
            apart(simd, #[inline(always)] || unsafe {
                $function::<S, T, $($bits),*>(simd, factors, to, factor_sum)
            })
        };
    }
    match (factors.present, factors.per_element) {
        (NONE, _) => sums!(sums_of_blocks::<NONE, NONE>),
        _ if is_by_columns(factors, T::Vector::LEN) => sums!(sums_of_columns::<AS_SAID>),
        (NORMED, NONE) => sums!(sums_of_blocks::<NORMED, NONE>),
        (_, NONE) => sums!(sums_of_blocks::<AS_SAID, NONE>),
        _ => sums!(sums_of_blocks::<AS_SAID, AS_SAID>),
    }
}
