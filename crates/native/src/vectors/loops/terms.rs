//! Sums of squared deviations.

use super::arch;
use super::arch::__m512i;
use super::first;
use super::lanes::{Lanes, SumF32, SumF64};
use super::rows::merged;
use crate::kernel::LONG_ROW;

/// A sum of floats. Lanes that are not in `mask` are 0.
pub(super) trait Terms: Lanes {
    unsafe fn repeated(x: Self::Element) -> __m512i;
    unsafe fn difference(x: __m512i, y: __m512i) -> __m512i;
    unsafe fn squared(x: __m512i, mean: __m512i, mask: u16) -> __m512i;
    unsafe fn product(x: __m512i, y: __m512i, mask: u16) -> __m512i;
}

macro_rules! terms {
    ($($name:ident, $type:ty, $set:ident, $from:ident, $to:ident, $subtract:ident, $multiply:ident;)*) => { $(
        impl Terms for $name {
            wide! {
                unsafe fn repeated(x: $type) -> __m512i {
                    arch::$to(arch::$set(x))
                }
                unsafe fn difference(x: __m512i, y: __m512i) -> __m512i {
                    arch::$to(arch::$subtract(arch::$from(x), arch::$from(y)))
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
    /// See [`DeviationsFn`](crate::vectors::DeviationsFn).
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
}
