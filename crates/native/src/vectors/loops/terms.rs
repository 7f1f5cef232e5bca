//! Sums of what is computed of elements: of squared deviations, and of products.

use super::arch;
use super::arch::__m512i;
use super::blocks::combine_first;
use super::first;
use super::lanes::{Lanes, SumF32, SumF64};
use super::rows::merged;
use crate::kernel::{LONG_ROW, TOGETHER};

/// A sum of floats. Lanes that are not in `mask` are 0.
pub(super) trait Terms: Lanes {
    unsafe fn repeated(mean: Self::Element) -> __m512i;
    unsafe fn squared(x: __m512i, mean: __m512i, mask: u16) -> __m512i;
    unsafe fn product(x: __m512i, y: __m512i, mask: u16) -> __m512i;
}

macro_rules! terms {
    ($($name:ident, $type:ty, $set:ident, $from:ident, $to:ident, $subtract:ident, $multiply:ident;)*) => { $(
        impl Terms for $name {
            wide! {
                unsafe fn repeated(mean: $type) -> __m512i {
                    arch::$to(arch::$set(mean))
                }
                #[allow(clippy::cast_possible_truncation, reason = "there may be eight lanes")]
                unsafe fn squared(x: __m512i, mean: __m512i, mask: u16) -> __m512i {
                    let apart = arch::$subtract(arch::$from(x), arch::$from(mean));
                    arch::$to(arch::$multiply(mask as _, apart, apart))
                }
                #[allow(clippy::cast_possible_truncation, reason = "there may be eight lanes")]
                unsafe fn product(x: __m512i, y: __m512i, mask: u16) -> __m512i {
                    arch::$to(arch::$multiply(mask as _, arch::$from(x), arch::$from(y)))
                }
            }
        }
    )* };
}

terms! {
    SumF32, f32, _mm512_set1_ps, _mm512_castsi512_ps, _mm512_castps_si512, _mm512_sub_ps, _mm512_maskz_mul_ps;
    SumF64, f64, _mm512_set1_pd, _mm512_castsi512_pd, _mm512_castpd_si512, _mm512_sub_pd, _mm512_maskz_mul_pd;
}

/// Adds up a row, with as many accumulators as other rows of this length have. The expressions are a
/// whole vector at a place, and one whose lanes beyond a mask are 0.
macro_rules! sum_of_row {
    ($lanes:ident, $vectors:literal, $len:ident, |$at:ident| $whole:expr, |$mask:ident| $part:expr) => {{
        let (mut all, mut from) = ([$lanes::start(); $vectors], 0);
        while from + $vectors * $lanes::COUNT <= $len {
            for n in 0..$vectors {
                let $at = from + n * $lanes::COUNT;
                all[n] = $lanes::combine(all[n], $whole);
            }
            from += $vectors * $lanes::COUNT;
        }
        for n in 0..$vectors {
            if from < $len {
                let ($at, $mask) = (from, first($len - from));
                all[n] = $lanes::combine(all[n], $part);
                from += $lanes::COUNT;
            }
        }
        all
    }};
}

/// As [`sum_of_row`], for rows of any length, as one number.
macro_rules! merged_sum_of_row {
    ($lanes:ident, $len:ident, |$at:ident| $whole:expr, |$mask:ident| $part:expr) => {
        if $len > LONG_ROW {
            let [a, b, c, d] = sum_of_row!($lanes, 4, $len, |$at| $whole, |$mask| $part);
            merged::<$lanes>($lanes::combine($lanes::combine(a, c), $lanes::combine(b, d)))
        } else {
            let [all] = sum_of_row!($lanes, 1, $len, |$at| $whole, |$mask| $part);
            merged::<$lanes>(all)
        }
    };
}

wide! {
    /// See [`Deviations`](crate::vectors::Deviations).
    pub(super) unsafe fn deviations<L: Terms>(
        elements: &[L::Element],
        len: usize,
        means: &[L::Element],
        to: &mut [L::Accumulator],
    ) {
        for ((row, mean), to) in elements.chunks_exact(len).zip(means).zip(to) {
            let row = row.as_ptr();
            // SAFETY: the caller promises the level; each load lies within the row.
            unsafe {
                let mean = L::repeated(*mean);
                *to = merged_sum_of_row!(
                    L, len,
                    |at| L::squared(L::load(row.add(at)), mean, u16::MAX),
                    |mask| L::squared(L::load_first(row.add(at), mask), mean, mask)
                );
            }
        }
    }

    /// See [`Products::rows`](crate::vectors::Products).
    pub(super) unsafe fn products_of_rows<L: Terms>(
        [a, b]: [&[L::Element]; 2],
        len: usize,
        to: &mut [L::Accumulator],
    ) {
        for ((a, b), to) in a.chunks_exact(len).zip(b.chunks_exact(len)).zip(to) {
            let (a, b) = (a.as_ptr(), b.as_ptr());
            // SAFETY: the caller promises the level; each load lies within the rows.
            unsafe {
                *to = merged_sum_of_row!(
                    L, len,
                    |at| L::product(L::load(a.add(at)), L::load(b.add(at)), u16::MAX),
                    |mask| {
                        let (x, y) = (L::load_first(a.add(at), mask), L::load_first(b.add(at), mask));
                        L::product(x, y, mask)
                    }
                );
            }
        }
    }

    /// See [`Products::blocks`](crate::vectors::Products).
    pub(super) unsafe fn products_of_blocks<L: Terms>(
        [a, b]: [&[L::Element]; 2],
        to: &mut [L::Accumulator],
    ) {
        let len = to.len();
        let (mut left, mut from) = (a.len() / len, 0);
        while left > 0 {
            let together = if left < TOGETHER { 1 } else { TOGETHER };
            let [a, b] = [a, b].map(|blocks| blocks.as_ptr().wrapping_add(from));
            // SAFETY: the caller promises the level and the elements of all blocks.
            unsafe { add_products::<L>([a, b], together, to) };
            from += together * len;
            left -= together;
        }
    }

    /// Adds the products of `count` blocks to accumulators.
    unsafe fn add_products<L: Terms>(
        [a, b]: [*const L::Element; 2],
        count: usize,
        to: &mut [L::Accumulator],
    ) {
        let len = to.len();
        let mut at = 0;
        // SAFETY: the caller promises the level and the elements.
        unsafe {
            while at + L::COUNT <= len {
                let mut all = L::start();
                for block in 0..count {
                    let (x, y) = (L::load(a.add(block * len + at)), L::load(b.add(block * len + at)));
                    all = L::combine(all, L::product(x, y, u16::MAX));
                }
                let to = to.as_mut_ptr().add(at);
                L::store(L::combine(L::load_accumulators(to), all), to);
                at += L::COUNT;
            }
            if at < len {
                let mask = first(len - at);
                let mut all = L::start();
                for block in 0..count {
                    let [x, y] = [a, b].map(|from| from.add(block * len + at));
                    let (x, y) = (L::load_first(x, mask), L::load_first(y, mask));
                    all = L::combine(all, L::product(x, y, mask));
                }
                combine_first::<L>(all, &mut to[at..]);
            }
        }
    }
}
