//! Chains of elementwise ops over rows.

use std::ops::Neg;

use fearless_simd::prelude::*;
use fearless_simd::{f32x16, f64x8, u32x16};

use super::exp::exp;
use super::instructions::{fetch_next, store_past_caches};
use super::lanes::{Lane, Vector, load};
use super::{CHAINED, Chain, Form};
use super::{apart, inlined};

/// Floats that chains compute with.
pub(super) trait Chained<S: Simd>:
    Lane<S, Vector: SimdFloat<S>> + Neg<Output = Self>
{
    /// The exponential, if chains of this type have one.
    fn exp(x: Self::Vector) -> Self::Vector;
}

macro_rules! chained {
    ($type:ty, $vector:ident, $exp:expr) => {
        impl<S: Simd> Chained<S> for $type {
            #[inline(always)]
            fn exp(x: $vector<S>) -> $vector<S> {
                $exp(x)
            }
        }
    };
}

chained!(f32, f32x16, exp);
chained!(f64, f64x8, std::convert::identity);

/// The operands of other forms than [`Form::Terms`].
const OPS: usize = 5;

/// Computes a [`Form`] of vectors.
#[inline(always)]
fn computed<S: Simd, T: Chained<S>, const FORM: u8>(
    x: T::Vector,
    operand: impl Fn(usize) -> T::Vector,
    signs: &[u32x16<S>; 3],
) -> T::Vector {
    let apart = x - operand(0);
    match FORM {
        EXPONENTIAL => T::exp(apart),
        PRODUCT => (apart - operand(1)) * operand(2) * operand(3) + operand(4),
        QUOTIENT => (apart - operand(1)) / operand(2) * operand(3) + operand(4),
        _ => {
            let signed = inlined(
                #[inline(always)]
                |x: T::Vector, n: usize| {
                    (x.bitcast::<u32x16<S>>() ^ signs[n]).bitcast::<T::Vector>()
                },
            );
            let second = (operand(3) - operand(4)) * operand(5) * operand(6);
            let sum = apart * operand(1) * operand(2) + signed(operand(7), 0);
            (sum + signed(second, 1) + signed(operand(8), 2)) * operand(9)
        }
    }
}

/// Stands for any set of operands that have rows of elements: the chain has the set.
const AS_SAID: u16 = u16::MAX;
/// The operands of [`Form::Product`] that have rows: none, a scale, or a scale and a bias.
const NONE: u16 = 0;
const SCALE: u16 = 1 << 3;
const SCALE_AND_BIAS: u16 = SCALE | 1 << 4;
/// The operands of [`Form::Terms`] that have rows where the others are one number for a row: the second
/// value, and the factor of the first one, such as the scale of a layer norm.
const SECOND: u16 = 1 << SECOND_PLACE;
const SECOND_AND_FACTOR: u16 = SECOND | 1 << 1;

const PRODUCT: u8 = Form::Product as u8;
const QUOTIENT: u8 = Form::Quotient as u8;
const EXPONENTIAL: u8 = Form::Exponential as u8;
const TERMS: u8 = Form::Terms as u8;

/// The most elements of rows that are computed vector by vector: vectors of longer ones would lie in one
/// set of a cache.
const MOST_COLUMNS: usize = 256;
/// The place of the second value among the operands of [`Form::Terms`].
const SECOND_PLACE: usize = 3;

/// Checks whether rows are short and have the same operands, but for the second value of a sum.
fn is_by_columns<T>(chain: &Chain<T>, lanes: usize) -> bool {
    let is_short = chain.len <= MOST_COLUMNS && chain.len.is_multiple_of(lanes);
    let mut operands = chain.operands.iter().enumerate();
    let are_same = operands.all(|(n, (_, apart))| match n {
        SECOND_PLACE if chain.form == Form::Terms => *apart == chain.len,
        _ => *apart == 0,
    });
    is_short
        && are_same
        && chain.rows > 1
        && (!chain.non_temporal || chain.out.align_offset(64) == 0)
}

/// See [`ChainFn`](super::ChainFn).
///
/// # Safety
/// As that of [`ChainFn`](super::ChainFn).
#[inline(always)]
pub(super) unsafe fn chain<S: Simd, T: Chained<S>>(simd: S, chain: &Chain<T>) {
    macro_rules! call {
        ($function:ident::<$($parameter:tt),*>) => {
            // SAFETY: the caller promises the same.
            apart(simd, #[inline(always)] || unsafe {
                $function::<S, T, $($parameter),*>(simd, chain)
            })
        };
    }
    if is_by_columns(chain, T::Vector::LEN) {
        match chain.form {
            Form::Product => return call!(columns::<PRODUCT>),
            Form::Quotient => return call!(columns::<QUOTIENT>),
            Form::Terms => return call!(columns::<TERMS>),
            Form::Exponential => {}
        }
    }
    match (chain.form, chain.per_element) {
        (Form::Quotient, _) => call!(rows::<AS_SAID, QUOTIENT>),
        (Form::Exponential, _) => call!(rows::<AS_SAID, EXPONENTIAL>),
        (Form::Terms, SECOND) => call!(rows::<SECOND, TERMS>),
        (Form::Terms, SECOND_AND_FACTOR) => call!(rows::<SECOND_AND_FACTOR, TERMS>),
        (Form::Terms, _) => call!(rows::<AS_SAID, TERMS>),
        (Form::Product, NONE) => call!(rows::<NONE, PRODUCT>),
        (Form::Product, SCALE) => call!(rows::<SCALE, PRODUCT>),
        (Form::Product, SCALE_AND_BIAS) => call!(rows::<SCALE_AND_BIAS, PRODUCT>),
        (Form::Product, _) => call!(rows::<AS_SAID, PRODUCT>),
    }
}

/// The bits of the signs of the parts of [`Form::Terms`] that are negated.
#[inline(always)]
fn signs<S: Simd, T: Chained<S>>(simd: S, chain: &Chain<T>) -> [u32x16<S>; 3] {
    let sign = inlined(
        #[inline(always)]
        |is_negated: bool| {
            let zero = if is_negated { -T::ZERO } else { T::ZERO };
            T::Vector::splat(simd, zero).bitcast()
        },
    );
    let [first, second, last] = chain.negated;
    [sign(first), sign(second), sign(last)]
}

/// Writes a vector, past the caches if the chain says so.
///
/// # Safety
/// The elements at `to` must be writable, at a boundary of 64 bytes if they go past the caches.
#[inline(always)]
unsafe fn store<S: Simd, T: Chained<S>>(chain: &Chain<T>, computed: T::Vector, to: *mut T) {
    // SAFETY: the caller promises the elements.
    unsafe {
        if chain.non_temporal {
            store_past_caches(computed, to.cast());
        } else {
            to.cast::<<T::Vector as SimdBase<S>>::Array>().write_unaligned(computed.to_array());
        }
    }
}

/// Computes a chain vector by vector of rows, whose operands are the same for all rows, but for the
/// second value of [`Form::Terms`].
///
/// # Safety
/// As that of [`ChainFn`](super::ChainFn).
#[inline(always)]
unsafe fn columns<S: Simd, T: Chained<S>, const FORM: u8>(simd: S, chain: &Chain<T>) {
    let (len, mut prefetch, signs) = (chain.len, chain.prefetch, signs::<S, T>(simd, chain));
    // SAFETY: the caller promises the elements.
    unsafe {
        for at in (0..len).step_by(T::Vector::LEN) {
            let mut operands = [T::Vector::splat(simd, T::ZERO); CHAINED];
            for n in 0..CHAINED {
                let from = chain.operands[n].0;
                operands[n] = if chain.per_element >> n & 1 == 1 {
                    load(simd, from.add(at))
                } else {
                    T::Vector::splat(simd, *from)
                };
            }
            for row in 0..chain.rows {
                let at = at + row * len;
                if FORM == TERMS {
                    operands[SECOND_PLACE] = load(simd, chain.operands[SECOND_PLACE].0.add(at));
                }
                let x = load(simd, chain.x.add(at));
                let computed = computed::<S, T, FORM>(
                    x,
                    #[inline(always)]
                    |n| operands[n],
                    &signs,
                );
                fetch_next(&mut prefetch, T::Vector::LEN);
                store(chain, computed, chain.out.add(at));
            }
        }
    }
}

/// Computes all rows; `ROWS` has a bit for each operand that has rows of elements, or is [`AS_SAID`].
///
/// # Safety
/// As that of [`ChainFn`](super::ChainFn).
#[inline(always)]
unsafe fn rows<S: Simd, T: Chained<S>, const ROWS: u16, const FORM: u8>(simd: S, chain: &Chain<T>) {
    let (len, mut prefetch, signs) = (chain.len, chain.prefetch, signs::<S, T>(simd, chain));
    let lanes = T::Vector::LEN;
    // The operands of the form.
    let count = match FORM {
        TERMS => CHAINED,
        EXPONENTIAL => 1,
        _ => OPS,
    };
    let zero = T::Vector::splat(simd, T::ZERO);
    for row in 0..chain.rows {
        // SAFETY: the caller promises the elements.
        unsafe {
            let (x, out) = (chain.x.add(row * len), chain.out.add(row * len));
            let (mut ones, mut from) = ([zero; CHAINED], [std::ptr::null::<T>(); CHAINED]);
            let mut step = [1; CHAINED];
            for n in 0..count {
                from[n] = chain.operands[n].0.add(row * chain.operands[n].1);
                ones[n] = T::Vector::splat(simd, *from[n]);
            }
            // Vectors that lie in memory serve operands of whatever kind.
            if ROWS == AS_SAID {
                for n in 0..count {
                    if chain.per_element >> n & 1 == 0 {
                        (from[n], step[n]) = (ones[n].as_slice().as_ptr(), 0);
                    }
                }
            }
            let vector = inlined(
                #[inline(always)]
                |at: usize| {
                    let operand = inlined(
                        #[inline(always)]
                        |n: usize| {
                            if ROWS == AS_SAID {
                                load(simd, from[n].add(at * step[n]))
                            } else if ROWS >> n & 1 == 1 {
                                load(simd, from[n].add(at))
                            } else {
                                ones[n]
                            }
                        },
                    );
                    computed::<S, T, FORM>(load(simd, x.add(at)), operand, &signs)
                },
            );
            // A line that is written in both ways would leave the caches in between.
            let mut at = 0;
            if chain.non_temporal {
                at = out.align_offset(64).min(len);
                store_part(vector(0), 0, out, at);
            }
            while at + lanes <= len {
                let computed = vector(at);
                fetch_next(&mut prefetch, lanes);
                store(chain, computed, out.add(at));
                at += lanes;
            }
            if at < len {
                let behind = at + lanes - len;
                store_part(vector(at - behind), behind, out.add(at), len - at);
            }
        }
    }
}

/// Writes `count` lanes from that of number `first` on.
///
/// # Safety
/// The elements at `to` must be writable.
#[inline(always)]
unsafe fn store_part<S: Simd, V: Vector<S>>(
    lanes: V,
    first: usize,
    to: *mut V::Element,
    count: usize,
) {
    // SAFETY: the caller promises the elements.
    unsafe {
        to.copy_from_nonoverlapping(lanes.as_slice()[first..first + count].as_ptr(), count);
    }
}
