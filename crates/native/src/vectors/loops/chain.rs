//! Chains of elementwise ops over rows.

use std::mem::MaybeUninit;

use super::arch;
use super::arch::__m512i;
use super::exp::exp;
use crate::vectors::{CHAINED, Chain, Form};

/// Floats that chains compute with. The functions are those of [`Form`].
pub(super) trait Chained: Copy {
    const COUNT: usize = 64 / size_of::<Self>();

    unsafe fn repeated(x: Self) -> __m512i;
    unsafe fn product(x: __m512i, operands: [__m512i; CHAINED]) -> __m512i;
    unsafe fn quotient(x: __m512i, operands: [__m512i; CHAINED]) -> __m512i;
    unsafe fn exponential(x: __m512i, operand: __m512i) -> __m512i;
}

macro_rules! chained {
    (
        $type:ty, $set:ident, $from:ident, $to:ident,
        $subtract:ident, $multiply:ident, $divide:ident, $add:ident, $exp:expr
    ) => {
        impl Chained for $type {
            wide! {
                unsafe fn repeated(x: $type) -> __m512i {
                    arch::$to(arch::$set(x))
                }
                unsafe fn product(x: __m512i, [a, b, c, d, e]: [__m512i; CHAINED]) -> __m512i {
                    let x = arch::$subtract(arch::$from(x), arch::$from(a));
                    let x = arch::$subtract(x, arch::$from(b));
                    let x = arch::$multiply(arch::$multiply(x, arch::$from(c)), arch::$from(d));
                    arch::$to(arch::$add(x, arch::$from(e)))
                }
                unsafe fn quotient(x: __m512i, [a, b, c, d, e]: [__m512i; CHAINED]) -> __m512i {
                    let x = arch::$subtract(arch::$from(x), arch::$from(a));
                    let x = arch::$subtract(x, arch::$from(b));
                    let x = arch::$multiply(arch::$divide(x, arch::$from(c)), arch::$from(d));
                    arch::$to(arch::$add(x, arch::$from(e)))
                }
                unsafe fn exponential(x: __m512i, a: __m512i) -> __m512i {
                    arch::$to($exp(arch::$subtract(arch::$from(x), arch::$from(a))))
                }
            }
        }
    };
}

chained! {
    f32, _mm512_set1_ps, _mm512_castsi512_ps, _mm512_castps_si512,
    _mm512_sub_ps, _mm512_mul_ps, _mm512_div_ps, _mm512_add_ps, exp
}
// Chains of `f64` have no exponential.
chained! {
    f64, _mm512_set1_pd, _mm512_castsi512_pd, _mm512_castpd_si512,
    _mm512_sub_pd, _mm512_mul_pd, _mm512_div_pd, _mm512_add_pd, std::convert::identity
}

/// Stands for any set of operands that have rows of elements: the chain has the set.
const AS_SAID: u8 = u8::MAX;

const PRODUCT: u8 = Form::Product as u8;
const QUOTIENT: u8 = Form::Quotient as u8;
const EXPONENTIAL: u8 = Form::Exponential as u8;

wide! {
    /// See [`Chains`](crate::vectors::Chains).
    pub(super) unsafe fn chain<T: Chained>(chain: &Chain<T>) {
        macro_rules! by_rows {
            ($($rows:literal)*) => {
                // SAFETY: the caller promises the level and the elements.
                unsafe {
                    match (chain.form, chain.has_rows) {
                        (Form::Quotient, _) => rows::<T, AS_SAID, QUOTIENT>(chain),
                        (Form::Exponential, _) => rows::<T, AS_SAID, EXPONENTIAL>(chain),
                        $((Form::Product, $rows) => rows::<T, $rows, PRODUCT>(chain),)*
                        (Form::Product, _) => rows::<T, 31, PRODUCT>(chain),
                    }
                }
            };
        }
        by_rows!(0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30);
    }

    /// Writes `count` lanes from that of number `first` on.
    unsafe fn store_part<T: Chained>(lanes: __m512i, first: usize, to: *mut T, count: usize) {
        let mut room = MaybeUninit::<[T; 16]>::uninit();
        let room = room.as_mut_ptr().cast::<T>();
        // SAFETY: the caller promises the elements; the room has all lanes.
        unsafe {
            arch::_mm512_storeu_si512(room.cast(), lanes);
            to.copy_from_nonoverlapping(room.add(first), count);
        }
    }

    /// Computes all rows; `ROWS` has a bit for each operand that has rows of elements, or is [`AS_SAID`].
    unsafe fn rows<T: Chained, const ROWS: u8, const FORM: u8>(chain: &Chain<T>) {
        let len = chain.len;
        let mut ahead = chain.ahead.map(|ahead| ahead.from);
        let fetches = chain.ahead[1].bytes > 0;
        // SAFETY: the caller promises the level and the elements.
        unsafe {
            let mut all = chain.operands.map(|(from, _)| from);
            for row in 0..chain.rows {
                let (x, out) = (chain.x.add(row * len), chain.out.add(row * len));
                let ones = [
                    T::repeated(*all[0]),
                    T::repeated(*all[1]),
                    T::repeated(*all[2]),
                    T::repeated(*all[3]),
                    T::repeated(*all[4]),
                ];
                // Vectors that lie in memory serve operands of whatever kind.
                let (mut from, mut step) = (all, [1; CHAINED]);
                if ROWS == AS_SAID {
                    for n in 0..CHAINED {
                        if chain.has_rows >> n & 1 == 0 {
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
                    let operands = [operand!(0), operand!(1), operand!(2), operand!(3), operand!(4)];
                    if FORM == QUOTIENT { T::quotient(x, operands) } else { T::product(x, operands) }
                };
                // A line that is written in both ways would leave the caches in between.
                let mut at = 0;
                if chain.past {
                    at = out.align_offset(64).min(len);
                    store_part(vector(0), 0, out, at);
                }
                while at + T::COUNT <= len {
                    let computed = vector(at);
                    if fetches {
                        arch::_mm_prefetch::<{ arch::_MM_HINT_T1 }>(ahead[0]);
                        arch::_mm_prefetch::<{ arch::_MM_HINT_T1 }>(ahead[1]);
                        ahead[0] = ahead[0].wrapping_add(chain.ahead[0].bytes * T::COUNT);
                        ahead[1] = ahead[1].wrapping_add(chain.ahead[1].bytes * T::COUNT);
                    }
                    if chain.past {
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
                for n in 0..CHAINED {
                    all[n] = all[n].add(chain.operands[n].1);
                }
            }
        }
    }
}
