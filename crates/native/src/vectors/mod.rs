//! Reductions that are written in vectors.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod narrow;
#[cfg(target_arch = "aarch64")]
mod neon;

use std::any::TypeId;
use std::mem::MaybeUninit;

use crate::elements::Element;
use crate::folds::Fold;
use crate::kernel;
use crate::level::Level;

/// A function that reduces rows of `len` elements side by side, and writes an accumulator for each. The
/// last operand tells whether they probably come from main memory.
///
/// # Safety
/// The CPU must have the instructions of the level, `len` is not 0, and there are as many
/// rows as accumulators.
pub(crate) type Rows<T, A, B> =
    unsafe fn(elements: &[T], len: usize, to: Rooms<'_, A, B>, is_far: bool);

/// Room for the parts of accumulators.
pub(crate) type Rooms<'a, A, B> = (&'a mut [MaybeUninit<A>], &'a mut [MaybeUninit<B>]);

/// A function that adds blocks to accumulators, element by element, as
/// [`add_rows`](crate::kernel::add_rows) does; the elements of a block lie side by side.
///
/// # Safety
/// The CPU must have the instructions of the level, and all elements of the blocks, as many
/// in each as there are accumulators, must be readable.
pub(crate) type Blocks<T, A> = unsafe fn(blocks: kernel::Rows<T>, to: &mut [A]);

/// A function that adds up the squared deviations of rows of `len` elements from their means.
///
/// # Safety
/// As that of [`Rows`], with as many means.
pub(crate) type Deviations<T> = unsafe fn(elements: &[T], len: usize, means: &[T], to: &mut [T]);

/// The operands of two factors: see [`Factors`].
pub(crate) const FACTORED: usize = 7;

/// Rows of two factors, `((x - 0) * 1) * 2` and `((y - 3) * 4) * 5`, whose products are added up, and
/// perhaps beside the first factor times the operand 6. Each op is rounded.
#[derive(Debug)]
pub(crate) struct Factors<T> {
    pub(crate) x: *const T,
    pub(crate) y: *const T,
    /// The first element of each operand, and how far apart what two rows have is. Those that are missing
    /// change nothing.
    pub(crate) operands: [(*const T, usize); FACTORED],
    /// Bits for the operands that there are, and for those that have an element for each of a row; others
    /// have one for all.
    pub(crate) there: u8,
    pub(crate) has_rows: u8,
    /// The number of rows, and the elements of each.
    pub(crate) rows: usize,
    pub(crate) len: usize,
    pub(crate) ahead: [Ahead; 2],
}

/// A function that adds up products of factors, and the first factors beside.
///
/// # Safety
/// The CPU must have the instructions of the level. The elements must be readable. `beside` is as long
/// as `to`.
pub(crate) type AddProducts<T> =
    unsafe fn(factors: &Factors<T>, to: &mut [T], beside: Option<&mut [T]>);

/// Functions that add up products of elements.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Products<T> {
    /// Writes the sums of rows, one for each of `to`.
    pub(crate) rows: AddProducts<T>,
    /// Adds blocks, which have an element for each of `to`, as [`Blocks`] does.
    pub(crate) blocks: AddProducts<T>,
}

/// A function that copies `lines` lines of a cache, 64 bytes each, past the caches.
///
/// # Safety
/// The CPU must have the instructions of the level. The lines at `from` must be readable, those at
/// `to` writable, at a boundary of 64 bytes, and lie apart from them. A [`Fence`] is dropped before
/// other threads learn that the lines were written.
pub(crate) type Stream = unsafe fn(from: *const u8, to: *mut u8, lines: usize);

/// A fence that is set when this is dropped, at the end of a task that writes past the caches. Without
/// it, other threads might see what the task writes next before they see those stores. The fence waits
/// until the stores are in memory: one after each tile took a fifth of the time of a layer norm.
#[derive(Debug)]
pub(crate) struct Fence;

impl Drop for Fence {
    fn drop(&mut self) {
        // SAFETY: SSE has the instruction, and all x86-64 have SSE.
        #[cfg(target_arch = "x86_64")]
        unsafe {
            std::arch::x86_64::_mm_sfence();
        }
    }
}

/// Memory that is read later: what a step fetches meanwhile.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ahead {
    pub(crate) from: *const i8,
    /// The bytes of an element.
    pub(crate) bytes: usize,
}

impl Ahead {
    /// No memory.
    pub(crate) const NONE: Self = Self { from: std::ptr::null(), bytes: 0 };
}

/// The most operands of a chain besides the first.
pub(crate) const CHAINED: usize = 10;

/// The ops of a chain, whose operands are known by their numbers; each op is rounded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Form {
    /// `((((x - 0) - 1) * 2) * 3) + 4`.
    #[default]
    Product,
    /// `((((x - 0) - 1) / 2) * 3) + 4`.
    Quotient,
    /// `e^(x - 0)`, of `f32` alone.
    Exponential,
    /// `(((((x - 0) * 1) * 2 + 7) + ((3 - 4) * 5) * 6) + 8) * 9`, where the second product and the operands
    /// 7 and 8 may be negated: the gradient of the input of a norm.
    Terms,
}

/// Which parts of [`Form::Terms`] are negated: the operand 7, the second product, the operand 8.
pub(crate) type Negated = [bool; 3];

/// The ops of a chain on rows.
#[derive(Debug)]
pub(crate) struct Chain<T> {
    pub(crate) form: Form,
    pub(crate) negated: Negated,
    pub(crate) x: *const T,
    /// The first element of each operand, and how far apart what two rows have is.
    pub(crate) operands: [(*const T, usize); CHAINED],
    /// Bits for the operands that have an element for each of a row; others have one for all.
    pub(crate) has_rows: u16,
    pub(crate) out: *mut T,
    /// The number of rows, and the elements of each, which fill a vector at least.
    pub(crate) rows: usize,
    pub(crate) len: usize,
    /// Whether the results go past the caches, with a [`Fence`] behind.
    pub(crate) past: bool,
    pub(crate) ahead: [Ahead; 2],
}

/// A function that computes a chain.
///
/// # Safety
/// The CPU must have the instructions of the level; the elements must be readable, and those at `out`
/// writable and apart from them.
pub(crate) type Chains<T> = unsafe fn(chain: &Chain<T>);

/// Returns the function that copies lines past the caches, if the CPU can.
pub(crate) fn stream(level: Level) -> Option<Stream> {
    match level {
        // Miri does not know these stores.
        _ if cfg!(miri) => None,
        #[cfg(target_arch = "x86_64")]
        Level::Avx512 => Some(avx512::stream()),
        #[cfg(target_arch = "x86_64")]
        Level::Avx2 => Some(avx2::stream()),
        // The standard library has no such store.
        #[cfg(target_arch = "aarch64")]
        Level::Neon => None,
        Level::Base => None,
    }
}

/// Returns the function that computes chains of a form, if there is one and the CPU can run it.
pub(crate) fn chains_of<T: Element>(level: Level, form: Form) -> Option<Chains<T>> {
    match level {
        _ if form == Form::Exponential && TypeId::of::<T>() != TypeId::of::<f32>() => None,
        #[cfg(target_arch = "x86_64")]
        Level::Avx512 => avx512::chains_of::<T>(),
        #[cfg(target_arch = "x86_64")]
        Level::Avx2 => avx2::chains_of::<T>(),
        #[cfg(target_arch = "aarch64")]
        Level::Neon => neon::chains_of::<T>(),
        Level::Base => None,
    }
}

/// Returns the function that adds up deviations, if there is one and the CPU can run it.
pub(crate) fn deviations_of<T: Element>(level: Level) -> Option<Deviations<T>> {
    match level {
        #[cfg(target_arch = "x86_64")]
        Level::Avx512 => avx512::deviations_of::<T>(),
        #[cfg(target_arch = "x86_64")]
        Level::Avx2 => avx2::deviations_of::<T>(),
        #[cfg(target_arch = "aarch64")]
        Level::Neon => neon::deviations_of::<T>(),
        Level::Base => None,
    }
}

/// Returns the functions that add up products, if there are any and the CPU can run them.
pub(crate) fn products_of<T: Element>(level: Level) -> Option<Products<T>> {
    match level {
        #[cfg(target_arch = "x86_64")]
        Level::Avx512 => avx512::products_of::<T>(),
        #[cfg(target_arch = "x86_64")]
        Level::Avx2 => avx2::products_of::<T>(),
        #[cfg(target_arch = "aarch64")]
        Level::Neon => neon::products_of::<T>(),
        Level::Base => None,
    }
}

/// Returns the function that adds blocks by a fold, if there is one and the CPU can run it.
pub(crate) fn blocks_of<T: Element, F: Fold<T>>(level: Level) -> Option<Blocks<T, F::First>> {
    match level {
        #[cfg(target_arch = "x86_64")]
        Level::Avx512 => avx512::blocks_of::<T, F>(),
        #[cfg(target_arch = "x86_64")]
        Level::Avx2 => avx2::blocks_of::<T, F>(),
        #[cfg(target_arch = "aarch64")]
        Level::Neon => neon::blocks_of::<T, F>(),
        Level::Base => None,
    }
}

/// Returns the function that reduces rows by a fold, if there is one and the CPU can run it.
pub(crate) fn rows_of<T: Element, F: Fold<T>>(
    level: Level,
) -> Option<Rows<T, F::First, F::Second>> {
    match level {
        #[cfg(target_arch = "x86_64")]
        Level::Avx512 => avx512::rows_of::<T, F>(),
        #[cfg(target_arch = "x86_64")]
        Level::Avx2 => avx2::rows_of::<T, F>(),
        #[cfg(target_arch = "aarch64")]
        Level::Neon => neon::rows_of::<T, F>(),
        Level::Base => None,
    }
}

#[cfg(test)]
mod tests {
    use half::{bf16, f16};

    use super::{blocks_of, rows_of};
    use crate::elements::{Element, Number};
    use crate::folds::{
        And, ArgMax, ArgMax32, ArgMin, ArgMin32, Fold, Max, Mean, Min, Product, Sum, SumAndSquares,
    };
    use crate::kernel::{LONG_ROW, MOST_SHORT, Rows, add_rows, reduce_part, reduce_rows};
    use crate::level::{Compiled, Level, Task};
    use crate::tasks::{Add, as_room};

    /// Where the elements of a test come from.
    #[derive(Clone, Copy)]
    enum Draw {
        /// Numbers of all sizes, with zeros of both signs, infinities, ties and NaN.
        Special,
        /// Finite floats whose sums depend on the order of additions.
        Rounding,
    }

    trait Drawn: Number {
        fn drawn(draw: Draw, number: u32) -> Self;
        /// The bits of a sum; all NaN have the same ones.
        fn bits(wide: Self::Wide) -> u64;
    }

    macro_rules! drawn {
        ($($type:ty, |$draw:ident, $n:ident| $make:expr, |$w:ident| $bits:expr;)*) => { $(
            impl Drawn for $type {
                fn drawn($draw: Draw, $n: u32) -> Self { $make }
                fn bits($w: Self::Wide) -> u64 { $bits }
            }
        )* };
    }

    fn float(draw: Draw, n: u32) -> f32 {
        match draw {
            Draw::Special => special(n),
            // Exponents differ, so that bits fall off in sums of bf16, whose sums are f32, too.
            Draw::Rounding => {
                ((n % 2003) as f32 - 900.0) / 61.7 * [1.0, 4e-4, 37.0][n as usize % 3]
            }
        }
    }

    fn special(n: u32) -> f32 {
        match n % 97 {
            0 => -0.0,
            1 => 0.0,
            2 if n.is_multiple_of(5) => f32::INFINITY,
            3 if n.is_multiple_of(5) => f32::NEG_INFINITY,
            4 if n.is_multiple_of(7) => f32::NAN,
            5 if n.is_multiple_of(7) => -f32::NAN,
            _ => (n % 2003) as f32 / 64.0 - 9.0,
        }
    }

    fn float_bits(number: f64) -> u64 {
        if number.is_nan() { f64::NAN } else { number }.to_bits()
    }

    drawn! {
        f32, |draw, n| float(draw, n), |w| float_bits(f64::from(w));
        f64, |draw, n| f64::from(float(draw, n)) / 3.0, |w| float_bits(w);
        bf16, |draw, n| bf16::from_f32(float(draw, n)), |w| float_bits(f64::from(w));
        f16, |draw, n| f16::from_f32(float(draw, n)), |w| float_bits(f64::from(w));
        i32, |_draw, n| (n.wrapping_mul(n) % 4001).cast_signed() - 2000, |w| u64::from(w.cast_unsigned());
        u32, |_draw, n| n.wrapping_mul(n) % 4001, |w| u64::from(w);
        i64, |_draw, n| i64::from(n.wrapping_mul(n) % 4001) - 2000, |w| w.cast_unsigned();
        u64, |_draw, n| u64::from(n.wrapping_mul(n) % 4001) << 50, |w| w;
    }

    type Accumulators<T, F> = Vec<(<F as Fold<T>>::First, <F as Fold<T>>::Second)>;

    /// The results of rows: by vectors, and by the loops that all CPUs have.
    fn both<T: Element, F: Fold<T>>(
        level: Level,
        fold: F,
        rows: &[T],
        len: usize,
    ) -> Option<[Accumulators<T, F>; 2]> {
        let reduce = rows_of::<T, F>(level)?;
        let count = rows.len() / len;
        let (first, second) = fold.start();
        let fresh = |count| (vec![first; count], vec![second; count]);
        let (mut found, mut found_2) = fresh(count);
        // SAFETY: the level was detected, there are `count` rows, and accumulators are written.
        unsafe {
            let to = (as_room(&mut found), as_room(&mut found_2));
            reduce(rows, len, to, len.is_multiple_of(2));
        }
        let (mut expected, mut expected_2) = fresh(count);
        let (mut spare, mut spare_2) = fresh(count * MOST_SHORT);
        if len <= LONG_ROW {
            let to = (&mut expected[..], &mut expected_2[..]);
            reduce_rows(fold, rows, len, to, (&mut spare, &mut spare_2));
        } else {
            for (n, row) in rows.chunks_exact(len).enumerate() {
                (expected[n], expected_2[n]) = reduce_part(fold, row);
            }
        }
        let zip = |a: Vec<_>, b: Vec<_>| a.into_iter().zip(b).collect();
        Some([zip(found, found_2), zip(expected, expected_2)])
    }

    fn agree<T: Drawn>(level: Level, draw: Draw) {
        let lengths = (2..40).chain([63, 64, 65, 129, 500, 512, 513, 600, 1024, 1999]);
        let few =
            |len: &usize| !cfg!(miri) || [2, 3, 4, 5, 7, 8, 11, 16, 23, 65, 513].contains(len);
        for (len, count) in lengths.filter(few).flat_map(|len| [(len, 35), (len, 5)]) {
            let all: Vec<T> =
                (0..len * count).map(|n| T::drawn(draw, (n * 7 + len) as u32)).collect();
            let is_same = |a: T, b: T| a.ties(b);
            if let Some([found, expected]) = both(level, Sum, &all, len) {
                for ((a, ()), (b, ())) in found.into_iter().zip(expected) {
                    assert_eq!(T::bits(a), T::bits(b), "sums of {len}");
                }
            }
            if let Some([found, expected]) = both(level, Max, &all, len) {
                for (a, b) in found.iter().zip(&expected) {
                    let [a, b] = [a, b].map(|rank| T::of_rank_for_max(rank.0));
                    assert!(is_same(a, b), "maxima of {len}");
                }
            }
            if let Some([found, expected]) = both(level, Min, &all, len) {
                for (a, b) in found.iter().zip(&expected) {
                    let [a, b] = [a, b].map(|rank| T::of_rank_for_min(rank.0));
                    assert!(is_same(a, b), "minima of {len}");
                }
            }
            if let Some([found, expected]) = both(level, ArgMax, &all, len) {
                for (a, b) in found.iter().zip(&expected) {
                    assert!(is_same(a.0, b.0) && a.1 == b.1, "places of maxima of {len}");
                }
            }
            if let Some([found, expected]) = both(level, ArgMin, &all, len) {
                for (a, b) in found.iter().zip(&expected) {
                    assert!(is_same(a.0, b.0) && a.1 == b.1, "places of minima of {len}");
                }
            }
        }
    }

    /// Adds blocks to accumulators: by vectors, and by the loops that all CPUs have.
    fn both_blocks<T: Element, F: Fold<T, Second = ()>>(
        level: Level,
        fold: F,
        blocks: &[T],
        width: usize,
    ) -> Option<[Vec<F::First>; 2]> {
        let add = blocks_of::<T, F>(level)?;
        let (first, ()) = fold.start();
        let (mut found, mut expected) = (vec![first; width], vec![first; width]);
        let rows = Rows {
            start: blocks.as_ptr(),
            count: blocks.len() / (width + 3),
            apart: (width + 3).cast_signed(),
            step: 1,
            place: 0,
            place_apart: 0,
            is_far: true,
        };
        // SAFETY: the level was detected, and the blocks lie within the slice.
        unsafe {
            add(rows, &mut found);
            add_rows(fold, &mut expected, &mut vec![(); width], rows);
        }
        Some([found, expected])
    }

    fn blocks_agree<T: Drawn>(level: Level, draw: Draw) {
        let few = |width: &usize| !cfg!(miri) || [1, 7, 16, 41, 301].contains(width);
        // Blocks of 301 and 1005 elements lie at distances of whole lines of a cache.
        let widths = (1..70).chain([129, 256, 300, 301, 1000, 1005]).filter(few);
        for (width, count) in widths.flat_map(|width| [(width, 1), (width, 7), (width, 27)]) {
            let all: Vec<T> = (0..(width + 3) * count + 5)
                .map(|n| T::drawn(draw, (n * 5 + width) as u32))
                .collect();
            let all = &all[5..];
            if let Some([found, expected]) = both_blocks(level, Sum, all, width) {
                for (a, b) in found.into_iter().zip(expected) {
                    assert_eq!(T::bits(a), T::bits(b), "sums of {width}");
                }
            }
            if let Some([found, expected]) = both_blocks(level, Max, all, width) {
                for (a, b) in found.into_iter().zip(expected) {
                    assert!(T::of_rank_for_max(a).ties(T::of_rank_for_max(b)), "maxima of {width}");
                }
            }
            if let Some([found, expected]) = both_blocks(level, Min, all, width) {
                for (a, b) in found.into_iter().zip(expected) {
                    assert!(T::of_rank_for_min(a).ties(T::of_rank_for_min(b)), "minima of {width}");
                }
            }
        }
    }

    /// Where a fold says that there are vectors, loops need not become vectors.
    fn are_in_vectors<T: Element, F: Fold<T>>(_: F) {
        for &level in Level::all().iter().filter(|&&level| level != Level::Base) {
            assert_eq!(rows_of::<T, F>(level).is_some(), F::IN_VECTORS);
            let has_blocks = Add::<T, F>::COMPILED == Compiled::ForBase;
            assert_eq!(blocks_of::<T, F>(level).is_some(), has_blocks);
        }
    }

    #[test]
    fn folds_know_their_vectors() {
        fn of_numbers<T: Number>() {
            are_in_vectors::<T, _>(Sum);
            are_in_vectors::<T, _>(Product);
            are_in_vectors::<T, _>(Max);
            are_in_vectors::<T, _>(Min);
            are_in_vectors::<T, _>(ArgMax);
            are_in_vectors::<T, _>(ArgMin);
            are_in_vectors::<T, _>(ArgMax32);
            are_in_vectors::<T, _>(ArgMin32);
        }
        of_numbers::<f32>();
        of_numbers::<f64>();
        of_numbers::<bf16>();
        of_numbers::<f16>();
        of_numbers::<i8>();
        of_numbers::<i16>();
        of_numbers::<i32>();
        of_numbers::<i64>();
        of_numbers::<u8>();
        of_numbers::<u16>();
        of_numbers::<u32>();
        of_numbers::<u64>();
        are_in_vectors::<bool, _>(And);
        are_in_vectors::<f32, _>(Mean);
        are_in_vectors::<f32, _>(SumAndSquares);
    }

    #[test]
    fn vectors_add_blocks_as_loops_do() {
        for &level in Level::all() {
            for draw in [Draw::Special, Draw::Rounding] {
                blocks_agree::<f32>(level, draw);
                blocks_agree::<f64>(level, draw);
                blocks_agree::<bf16>(level, draw);
                // Miri does not know how the crate `half` converts them.
                if !cfg!(miri) {
                    blocks_agree::<f16>(level, draw);
                }
            }
            blocks_agree::<i32>(level, Draw::Special);
            blocks_agree::<u32>(level, Draw::Special);
            blocks_agree::<i64>(level, Draw::Special);
            blocks_agree::<u64>(level, Draw::Special);
        }
    }

    #[test]
    fn vectors_reduce_rows_as_loops_do() {
        for &level in Level::all() {
            for draw in [Draw::Special, Draw::Rounding] {
                agree::<f32>(level, draw);
                agree::<f64>(level, draw);
                agree::<bf16>(level, draw);
                if !cfg!(miri) {
                    agree::<f16>(level, draw);
                }
            }
            agree::<i32>(level, Draw::Special);
            agree::<u32>(level, Draw::Special);
            agree::<i64>(level, Draw::Special);
            agree::<u64>(level, Draw::Special);
        }
    }
}
