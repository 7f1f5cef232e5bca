//! Sets of instructions, and work that is compiled for each.

use std::cell::Cell;

/// The sets of instructions that kernels are compiled for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Level {
    /// The instructions that every CPU of the architecture has.
    Base,
    /// AVX2 with FMA and floats of 16 bits.
    #[cfg(target_arch = "x86_64")]
    Avx2,
    /// AVX-512 with bytes, words and 256-bit forms.
    #[cfg(target_arch = "x86_64")]
    Avx512,
    /// NEON on a little-endian CPU.
    #[cfg(target_arch = "aarch64")]
    Neon,
}

impl Level {
    /// Returns the best level of this CPU; the standard library remembers what it found.
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

    /// The levels that this CPU has, the lowest first.
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
    /// The level that [`at_each_level`] chose.
    static CHOSEN: Cell<Option<Level>> = const { Cell::new(None) };
}

/// Calls `f` once for each level that this CPU has, the lowest first; what `f` computes on this thread is
/// computed with the instructions of that level. For tests: results must not depend on it.
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

/// Work that is compiled for several levels. What it calls must be inlined, always.
pub(crate) trait Task {
    /// The levels for which it is compiled. At another level, the code of the level below runs.
    const COMPILED: Compiled = Compiled::ForAll;

    fn run(self);
}

/// Levels for which a task is compiled. Each takes time to compile, and room in programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Compiled {
    /// [`Level::Base`] alone.
    ForBase,
    /// All but AVX-512.
    UpToAvx2,
    /// All levels.
    ForAll,
}

/// Runs a task with the instructions of a level, which must be one that [`Level::detect`] returned.
pub(crate) fn on_level<T: Task>(level: Level, task: T) {
    // The compiler knows these constants, and compiles nothing for the levels that they exclude.
    if matches!(T::COMPILED, Compiled::ForBase) {
        return task.run();
    }
    match level {
        Level::Base => task.run(),
        #[cfg(target_arch = "x86_64")]
        Level::Avx512 => {
            if matches!(T::COMPILED, Compiled::ForAll) {
                // SAFETY: `Level::detect` found these instructions on this CPU.
                unsafe { on_avx512(task) }
            } else {
                // SAFETY: a CPU of this level has those of AVX2, too.
                unsafe { on_avx2(task) }
            }
        }
        // SAFETY: `Level::detect` found these instructions on this CPU.
        #[cfg(target_arch = "x86_64")]
        Level::Avx2 => unsafe { on_avx2(task) },
        // SAFETY: as above.
        #[cfg(target_arch = "aarch64")]
        Level::Neon => unsafe { on_neon(task) },
    }
}

/// Runs a task, compiled with AVX2.
///
/// # Safety
/// The CPU must have these instructions.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,bmi2,f16c")]
unsafe fn on_avx2(task: impl Task) {
    task.run();
}

/// Runs a task, compiled with AVX-512.
///
/// # Safety
/// The CPU must have these instructions.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,bmi2,f16c")]
unsafe fn on_avx512(task: impl Task) {
    task.run();
}

/// Runs a task, compiled with NEON.
///
/// # Safety
/// The CPU must have these instructions.
#[cfg(target_arch = "aarch64")]
#[target_feature(enable = "neon")]
unsafe fn on_neon(task: impl Task) {
    task.run();
}
