//! Chains of elementwise ops over rows.

use std::mem::MaybeUninit;

use super::arch;
use super::arch::__m512i;
use super::blocks::fetch_next;
use super::exp::exp;
use crate::vectors::{CHAINED, Chain, Form};

/// Floats that chains compute with. The functions are those of [`Form`].
pub(super) trait Chained: Copy {
    const COUNT: usize = 64 / size_of::<Self>();

    unsafe fn repeated(x: Self) -> __m512i;
    /// The sign of each lane if it is negated, else nothing.
    unsafe fn sign(is_negated: bool) -> __m512i;
    unsafe fn product(x: __m512i, operands: [__m512i; OPS]) -> __m512i;
    unsafe fn quotient(x: __m512i, operands: [__m512i; OPS]) -> __m512i;
    unsafe fn exponential(x: __m512i, operand: __m512i) -> __m512i;
    unsafe fn terms(x: __m512i, operands: [__m512i; CHAINED], signs: [__m512i; 3]) -> __m512i;
}

macro_rules! chained {
    (
        $type:ty, $set:ident, $from:ident, $to:ident,
        $subtract:ident, $multiply:ident, $divide:ident, $add:ident, $sign:expr, $exp:expr
    ) => {
        impl Chained for $type {
            wide! {
                unsafe fn repeated(x: $type) -> __m512i {
                    arch::$to(arch::$set(x))
                }
                unsafe fn sign(is_negated: bool) -> __m512i {
                    if is_negated { $sign } else { arch::_mm512_setzero_si512() }
                }
                unsafe fn product(x: __m512i, [a, b, c, d, e]: [__m512i; OPS]) -> __m512i {
                    let x = arch::$subtract(arch::$from(x), arch::$from(a));
                    let x = arch::$subtract(x, arch::$from(b));
                    let x = arch::$multiply(arch::$multiply(x, arch::$from(c)), arch::$from(d));
                    arch::$to(arch::$add(x, arch::$from(e)))
                }
                unsafe fn quotient(x: __m512i, [a, b, c, d, e]: [__m512i; OPS]) -> __m512i {
                    let x = arch::$subtract(arch::$from(x), arch::$from(a));
                    let x = arch::$subtract(x, arch::$from(b));
                    let x = arch::$multiply(arch::$divide(x, arch::$from(c)), arch::$from(d));
                    arch::$to(arch::$add(x, arch::$from(e)))
                }
                unsafe fn exponential(x: __m512i, a: __m512i) -> __m512i {
                    arch::$to($exp(arch::$subtract(arch::$from(x), arch::$from(a))))
                }
                unsafe fn terms(
                    x: __m512i,
                    [a, p, p_2, y, b, q, q_2, first, last, times]: [__m512i; CHAINED],
                    signs: [__m512i; 3],
                ) -> __m512i {
                    let signed = |x, n: usize| arch::$from(arch::_mm512_xor_si512(x, signs[n]));
                    let x = arch::$subtract(arch::$from(x), arch::$from(a));
                    let x = arch::$multiply(arch::$multiply(x, arch::$from(p)), arch::$from(p_2));
                    let y = arch::$subtract(arch::$from(y), arch::$from(b));
                    let y = arch::$multiply(arch::$multiply(y, arch::$from(q)), arch::$from(q_2));
                    let x = arch::$add(x, signed(first, 0));
                    let x = arch::$add(x, signed(arch::$to(y), 1));
                    let x = arch::$add(x, signed(last, 2));
                    arch::$to(arch::$multiply(x, arch::$from(times)))
                }
            }
        }
    };
}

chained! {
    f32, _mm512_set1_ps, _mm512_castsi512_ps, _mm512_castps_si512,
    _mm512_sub_ps, _mm512_mul_ps, _mm512_div_ps, _mm512_add_ps,
    arch::_mm512_set1_epi32(i32::MIN), exp
}
// Chains of `f64` have no exponential.
chained! {
    f64, _mm512_set1_pd, _mm512_castsi512_pd, _mm512_castpd_si512,
    _mm512_sub_pd, _mm512_mul_pd, _mm512_div_pd, _mm512_add_pd,
    arch::_mm512_set1_epi64(i64::MIN), std::convert::identity
}

/// The operands of other forms than [`Form::Terms`].
const OPS: usize = 5;

/// Stands for any set of operands that have rows of elements: the chain has the set.
const AS_SAID: u16 = u16::MAX;
/// The operands of [`Form::Terms`] that have rows where the others are one number for a row: the second
/// value, and the factor of the first one, such as the scale of a layer norm.
const SECOND: u16 = 1 << 3;
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
fn is_by_columns<T: Chained>(chain: &Chain<T>) -> bool {
    let is_short = chain.len <= MOST_COLUMNS && chain.len.is_multiple_of(T::COUNT);
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

wide! {
    /// See [`ChainFn`](crate::vectors::ChainFn).
    pub(super) unsafe fn chain<T: Chained>(chain: &Chain<T>) {
        macro_rules! by_rows {
            ($($rows:literal)*) => {
                // SAFETY: the caller promises the level and the elements.
                unsafe {
                    match (chain.form, chain.per_element) {
                        (Form::Terms, _) if is_by_columns(chain) => columns::<T, TERMS>(chain),
                        (Form::Quotient, _) if is_by_columns(chain) => columns::<T, QUOTIENT>(chain),
                        (Form::Quotient, _) => rows::<T, AS_SAID, QUOTIENT>(chain),
                        (Form::Exponential, _) => rows::<T, AS_SAID, EXPONENTIAL>(chain),
                        (Form::Terms, SECOND) => rows::<T, SECOND, TERMS>(chain),
                        (Form::Terms, SECOND_AND_FACTOR) => rows::<T, SECOND_AND_FACTOR, TERMS>(chain),
                        (Form::Terms, _) => rows::<T, AS_SAID, TERMS>(chain),
                        $((Form::Product, $rows) => rows::<T, $rows, PRODUCT>(chain),)*
                        (Form::Product, _) => rows::<T, 31, PRODUCT>(chain),
                    }
                }
            };
        }
        by_rows!(0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30);
    }

    /// Computes a chain vector by vector of rows, whose operands are the same for all rows, but for the
    /// second value of [`Form::Terms`].
    unsafe fn columns<T: Chained, const FORM: u8>(chain: &Chain<T>) {
        let (len, mut prefetch) = (chain.len, chain.prefetch);
        // SAFETY: the caller promises the level and the elements.
        unsafe {
            let [first, second, last] = chain.negated;
            let signs = [T::sign(first), T::sign(second), T::sign(last)];
            for at in (0..len).step_by(T::COUNT) {
                let mut operands = [arch::_mm512_setzero_si512(); CHAINED];
                for n in 0..CHAINED {
                    let from = chain.operands[n].0;
                    operands[n] = if chain.per_element >> n & 1 == 1 {
                        arch::_mm512_loadu_si512(from.add(at).cast())
                    } else {
                        T::repeated(*from)
                    };
                }
                let (mut x, mut out) = (chain.x.add(at), chain.out.add(at));
                // Other forms have no rows there.
                let mut y = chain.operands[SECOND_PLACE].0.wrapping_add(at);
                for _ in 0..chain.rows {
                    let element = arch::_mm512_loadu_si512(x.cast());
                    let computed = if FORM == TERMS {
                        operands[SECOND_PLACE] = arch::_mm512_loadu_si512(y.cast());
                        T::terms(element, operands, signs)
                    } else {
                        let [a, b, c, d, e, ..] = operands;
                        T::quotient(element, [a, b, c, d, e])
                    };
                    fetch_next(&mut prefetch, T::COUNT);
                    if chain.non_temporal {
                        arch::_mm512_stream_si512(out.cast(), computed);
                    } else {
                        arch::_mm512_storeu_si512(out.cast(), computed);
                    }
                    // The last row has none behind.
                    (x, out, y) = (x.wrapping_add(len), out.wrapping_add(len), y.wrapping_add(len));
                }
            }
        }
    }

    /// Writes `count` lanes from that of number `first` on.
    unsafe fn store_part<T: Chained>(lanes: __m512i, first: usize, to: *mut T, count: usize) {
        let mut room = MaybeUninit::<[T; 16]>::uninit();
        let room = room.as_mut_ptr().cast::<T>();
        // SAFETY: the caller promises the elements; the room has all lanes.
        unsafe {
            if count == 0 {
                return;
            }
            arch::_mm512_storeu_si512(room.cast(), lanes);
            to.copy_from_nonoverlapping(room.add(first), count);
        }
    }

    /// Computes all rows; `ROWS` has a bit for each operand that has rows of elements, or is [`AS_SAID`].
    unsafe fn rows<T: Chained, const ROWS: u16, const FORM: u8>(chain: &Chain<T>) {
        let len = chain.len;
        // The operands of the form.
        let count = if FORM == TERMS { CHAINED } else { OPS };
        let mut prefetch = chain.prefetch;
        // SAFETY: the caller promises the level and the elements.
        unsafe {
            let [first, second, last] = chain.negated;
            let signs = [T::sign(first), T::sign(second), T::sign(last)];
            let mut all = chain.operands.map(|(from, _)| from);
            for row in 0..chain.rows {
                let (x, out) = (chain.x.add(row * len), chain.out.add(row * len));
                macro_rules! each {
                    ($of:ident) => {
                        [$of!(0), $of!(1), $of!(2), $of!(3), $of!(4), $of!(5), $of!(6), $of!(7), $of!(8), $of!(9)]
                    };
                }
                macro_rules! one {
                    ($n:literal) => { T::repeated(*all[$n]) };
                }
                let ones = match FORM {
                    TERMS => each!(one),
                    EXPONENTIAL => [one!(0); CHAINED],
                    _ => {
                        let none = arch::_mm512_setzero_si512();
                        [one!(0), one!(1), one!(2), one!(3), one!(4), none, none, none, none, none]
                    }
                };
                // Vectors that lie in memory serve operands of whatever kind.
                let (mut from, mut step) = (all, [1; CHAINED]);
                if ROWS == AS_SAID {
                    for n in 0..count {
                        if chain.per_element >> n & 1 == 0 {
                            (from[n], step[n]) = ((&raw const ones[n]).cast(), 0);
                        }
                    }
                }
                let vector = |at: usize| {
                    // An iterator would not always be compiled for the level.
                    macro_rules! operand {
                        ($n:literal) => {
                            if ROWS == AS_SAID {
                                arch::_mm512_loadu_si512(from[$n].add(at * step[$n]).cast())
                            } else if ROWS >> $n & 1 == 1 {
                                arch::_mm512_loadu_si512(all[$n].add(at).cast())
                            } else {
                                ones[$n]
                            }
                        };
                    }
                    let x = arch::_mm512_loadu_si512(x.add(at).cast());
                    if FORM == EXPONENTIAL {
                        return T::exponential(x, operand!(0));
                    }
                    if FORM == TERMS {
                        return T::terms(x, each!(operand), signs);
                    }
                    let operands = [operand!(0), operand!(1), operand!(2), operand!(3), operand!(4)];
                    if FORM == QUOTIENT { T::quotient(x, operands) } else { T::product(x, operands) }
                };
                // A line that is written in both ways would leave the caches in between.
                let mut at = 0;
                if chain.non_temporal {
                    at = out.align_offset(64).min(len);
                    store_part(vector(0), 0, out, at);
                }
                while at + T::COUNT <= len {
                    let computed = vector(at);
                    fetch_next(&mut prefetch, T::COUNT);
                    if chain.non_temporal {
                        arch::_mm512_stream_si512(out.add(at).cast(), computed);
                    } else {
                        arch::_mm512_storeu_si512(out.add(at).cast(), computed);
                    }
                    at += T::COUNT;
                }
                if at < len {
                    let behind = at + T::COUNT - len;
                    store_part(vector(at - behind), behind, out.add(at), len - at);
                }
                for n in 0..count {
                    all[n] = all[n].add(chain.operands[n].1);
                }
            }
        }
    }
}
