//! The vectors of CPUs, and tasks that are compiled once for each kind of them. A reduction or a
//! program detects the vectors when it begins.

use std::cell::Cell;

#[cfg(target_arch = "aarch64")]
use fearless_simd::Neon;
#[cfg(target_arch = "x86_64")]
use fearless_simd::{Avx2, Avx512, Simd};

/// Vector instructions that kernels are compiled for, each with the proof that this CPU has them.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Vectors {
    /// x86-64-v3: AVX2, FMA, BMI2, F16C.
    #[cfg(target_arch = "x86_64")]
    Avx2(Avx2),
    /// AVX-512 as of Ice Lake, and all of AVX2's level.
    #[cfg(target_arch = "x86_64")]
    Avx512(Avx512),
    #[cfg(target_arch = "aarch64")]
    Neon(Neon),
}

/// The level that kernels are compiled for: [`Vectors`], or `None` for the instructions that every CPU
/// of the architecture has.
pub(crate) type Level = Option<Vectors>;

/// Evaluates an expression, compiled for each kind of [`Vectors`]; `$simd` is its token. Functions that
/// the expression calls must be inlined always.
macro_rules! in_vectors {
    ($vectors:expr, $simd:ident => $do:expr) => {
        match $vectors {
            #[cfg(target_arch = "x86_64")]
            $crate::level::Vectors::Avx2($simd) => fearless_simd::Simd::vectorize(
                $simd,
                #[inline(always)]
                || $do,
            ),
            #[cfg(target_arch = "x86_64")]
            $crate::level::Vectors::Avx512($simd) => fearless_simd::Simd::vectorize(
                $simd,
                #[inline(always)]
                || $do,
            ),
            #[cfg(target_arch = "aarch64")]
            $crate::level::Vectors::Neon($simd) => fearless_simd::Simd::vectorize(
                $simd,
                #[inline(always)]
                || $do,
            ),
        }
    };
}
pub(crate) use in_vectors;

/// Returns the highest level of this CPU, or the level that [`at_each_level`] chose for this thread.
pub(crate) fn detect() -> Level {
    CHOSEN.get().unwrap_or_else(highest)
}

fn highest() -> Level {
    let level = fearless_simd::Level::new();
    #[cfg(target_arch = "x86_64")]
    {
        let avx512 = level.as_avx512().map(Vectors::Avx512);
        avx512.or_else(|| level.as_avx2().map(Vectors::Avx2))
    }
    #[cfg(target_arch = "aarch64")]
    {
        // The loops read elements of 16 bits in pairs, the first of which has the lower bits.
        level.as_neon().filter(|_| cfg!(target_endian = "little")).map(Vectors::Neon)
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    {
        let _ = level;
        None
    }
}

/// The levels of this CPU, the lowest first.
pub(crate) fn all() -> Vec<Level> {
    let mut all = vec![None];
    #[cfg(target_arch = "x86_64")]
    if let Some(Vectors::Avx512(simd)) = highest() {
        all.extend(simd.level().as_avx2().map(|simd| Some(Vectors::Avx2(simd))));
    }
    all.extend(highest().map(Some));
    all
}

thread_local! {
    /// The level that [`at_each_level`] chose for this thread.
    static CHOSEN: Cell<Option<Level>> = const { Cell::new(None) };
}

/// Calls `f` once for each level of this CPU, the lowest first, and returns the results. All that
/// `f` computes on this thread uses the instructions of that level. Tests compare the results: they
/// must not depend on the level.
#[doc(hidden)]
pub fn at_each_level<R>(mut f: impl FnMut() -> R) -> Vec<R> {
    let results = all().into_iter().map(|level| {
        CHOSEN.set(Some(level));
        f()
    });
    let results = results.collect();
    CHOSEN.set(None);
    results
}

/// Work that is compiled for several levels. Functions that `run` calls must be inlined always,
/// since a function that is not inlined is compiled for the base level.
pub(crate) trait Task {
    /// Whether the task is compiled for all levels. If not, all of them run the code of the base level:
    /// each costs compile time and code size.
    const IN_VECTORS: bool = true;

    fn run(self);
}

/// Runs a task with the instructions of a level.
pub(crate) fn on_level<T: Task>(level: Level, task: T) {
    // `IN_VECTORS` is a constant, so the compiler drops the levels that it excludes.
    match level.filter(|_| T::IN_VECTORS) {
        Some(vectors) => in_vectors!(vectors, simd => task.run()),
        None => task.run(),
    }
}
