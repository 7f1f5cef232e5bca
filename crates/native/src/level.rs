//! The instruction-set levels of CPUs, and tasks that are compiled once for each level. A reduction
//! or a program detects the level when it begins.

use std::cell::Cell;

/// An instruction-set level that kernels are compiled for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Level {
    /// The instructions that every CPU of the architecture has.
    Base,
    /// AVX2, FMA, BMI2 and F16C.
    #[cfg(target_arch = "x86_64")]
    Avx2,
    /// AVX-512 F, BW, DQ and VL, and all of AVX2's level.
    #[cfg(target_arch = "x86_64")]
    Avx512,
    /// NEON on a little-endian CPU.
    #[cfg(target_arch = "aarch64")]
    Neon,
}

impl Level {
    /// Returns the highest level of this CPU, or the level that [`at_each_level`] chose for this
    /// thread.
    pub(crate) fn detect() -> Self {
        if let Some(level) = CHOSEN.get() {
            return level;
        }
        #[cfg(target_arch = "x86_64")]
        {
            let has_avx2 = is_x86_feature_detected!("avx2")
                && is_x86_feature_detected!("fma")
                && is_x86_feature_detected!("bmi2")
                && is_x86_feature_detected!("f16c");
            if has_avx2
                && is_x86_feature_detected!("avx512f")
                && is_x86_feature_detected!("avx512bw")
                && is_x86_feature_detected!("avx512dq")
                && is_x86_feature_detected!("avx512vl")
            {
                return Self::Avx512;
            }
            if has_avx2 {
                return Self::Avx2;
            }
        }
        #[cfg(target_arch = "aarch64")]
        if cfg!(target_endian = "little") && std::arch::is_aarch64_feature_detected!("neon") {
            return Self::Neon;
        }
        Self::Base
    }

    /// The levels of this CPU, the lowest first.
    pub(crate) fn all() -> &'static [Self] {
        match Self::detect() {
            Self::Base => &[Self::Base],
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => &[Self::Base, Self::Avx2],
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 => &[Self::Base, Self::Avx2, Self::Avx512],
            #[cfg(target_arch = "aarch64")]
            Self::Neon => &[Self::Base, Self::Neon],
        }
    }
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
    let results = Level::all().iter().map(|&level| {
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
    /// The levels for which the task is compiled. Other levels run the code of the next lower one.
    const COMPILED: Compiled = Compiled::ForAll;

    fn run(self);
}

/// The levels for which a task is compiled. Each costs compile time and code size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Compiled {
    /// [`Level::Base`] alone.
    ForBase,
    /// All levels but AVX-512.
    UpToAvx2,
    /// All levels.
    ForAll,
}

/// Runs a task with the instructions of a level of this CPU, one that [`Level::detect`] or
/// [`Level::all`] returned.
pub(crate) fn on_level<T: Task>(level: Level, task: T) {
    // `COMPILED` is a constant, so the compiler drops the branches of the levels that it excludes.
    if matches!(T::COMPILED, Compiled::ForBase) {
        return task.run();
    }
    match level {
        Level::Base => task.run(),
        #[cfg(target_arch = "x86_64")]
        Level::Avx512 => {
            if matches!(T::COMPILED, Compiled::ForAll) {
                // SAFETY: `Level::detect` returned this level, so it found these features on this
                // CPU.
                unsafe { on_avx512(task) }
            } else {
                // SAFETY: `Level::detect` returns AVX-512 only if it found AVX2's features, too.
                unsafe { on_avx2(task) }
            }
        }
        // SAFETY: `Level::detect` returned this level, so it found these features on this CPU.
        #[cfg(target_arch = "x86_64")]
        Level::Avx2 => unsafe { on_avx2(task) },
        // SAFETY: `Level::detect` returned this level, so it found NEON on this CPU.
        #[cfg(target_arch = "aarch64")]
        Level::Neon => unsafe { on_neon(task) },
    }
}

/// Runs a task, compiled with AVX2.
///
/// # Safety
/// The CPU must have AVX2, FMA, BMI2 and F16C.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,bmi2,f16c")]
unsafe fn on_avx2(task: impl Task) {
    task.run();
}

/// Runs a task, compiled with AVX-512.
///
/// # Safety
/// The CPU must have AVX-512 F, BW, DQ and VL, AVX2, FMA, BMI2 and F16C.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,bmi2,f16c")]
unsafe fn on_avx512(task: impl Task) {
    task.run();
}

/// Runs a task, compiled with NEON.
///
/// # Safety
/// The CPU must have NEON.
#[cfg(target_arch = "aarch64")]
#[target_feature(enable = "neon")]
unsafe fn on_neon(task: impl Task) {
    task.run();
}
