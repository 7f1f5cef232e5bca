//! Sets of instructions, and work that is compiled for each.

/// The sets of instructions that kernels are compiled for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Level {
    /// The instructions that every CPU of the architecture has: SSE2, or NEON.
    Base,
    /// AVX2 and FMA.
    #[cfg(target_arch = "x86_64")]
    Avx2,
    /// AVX-512 with bytes, words and 256-bit forms.
    #[cfg(target_arch = "x86_64")]
    Avx512,
}

impl Level {
    /// Returns the best level of this CPU; the standard library remembers what it found.
    pub(crate) fn detect() -> Self {
        #[cfg(target_arch = "x86_64")]
        {
            let has_avx2 = is_x86_feature_detected!("avx2")
                && is_x86_feature_detected!("fma")
                && is_x86_feature_detected!("bmi2");
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
        Self::Base
    }
}

/// Work that is compiled for each level. What it calls must be inlined, always.
pub(crate) trait Task {
    fn run(self);
}

/// Runs a task with the instructions of a level, which must be one that [`Level::detect`] returned.
pub(crate) fn on_level(level: Level, task: impl Task) {
    match level {
        Level::Base => task.run(),
        // SAFETY: `Level::detect` found these instructions on this CPU.
        #[cfg(target_arch = "x86_64")]
        Level::Avx2 => unsafe { on_avx2(task) },
        // SAFETY: as above.
        #[cfg(target_arch = "x86_64")]
        Level::Avx512 => unsafe { on_avx512(task) },
    }
}

/// Runs a task, compiled with AVX2.
///
/// # Safety
/// The CPU must have these instructions.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,bmi2")]
unsafe fn on_avx2(task: impl Task) {
    task.run();
}

/// Runs a task, compiled with AVX-512.
///
/// # Safety
/// The CPU must have these instructions.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,bmi2")]
unsafe fn on_avx512(task: impl Task) {
    task.run();
}
