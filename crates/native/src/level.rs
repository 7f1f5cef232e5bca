//! Sets of instructions, and work that is compiled for each.

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
        #[cfg(test)]
        if let Some(level) = tests::chosen() {
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

    /// The levels that this CPU has.
    #[cfg(test)]
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

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use half::{bf16, f16};

    use super::Level;
    use crate::fused::Values;
    use crate::norms::{Norm, softmax, softmax_vjp};
    use crate::{
        ArgMax, ArgMin32, Error, Fold, Max, Min, Number, Product, Serial, Sum, SumAndSquares, View,
        reduce,
    };

    thread_local! {
        static CHOSEN: Cell<Option<Level>> = const { Cell::new(None) };
    }

    /// The level that a test chose.
    pub(super) fn chosen() -> Option<Level> {
        CHOSEN.get()
    }

    /// The results at each level that this CPU has.
    fn at_all<R>(mut f: impl FnMut() -> Result<R, Error>) -> Result<Vec<R>, Error> {
        let results = Level::all().iter().map(|&level| {
            CHOSEN.set(Some(level));
            f()
        });
        let results = results.collect();
        CHOSEN.set(None);
        results
    }

    fn agree<T: Number, F: Fold<T>>(
        view: &View<'_, T>,
        axes: &[i64],
        fold: F,
        bits: impl Fn(F::Output) -> u64,
    ) -> Result<(), Error> {
        let all = at_all(|| reduce(view, axes, fold, &Serial))?;
        let all = all.into_iter().map(|a| a.data.into_iter().map(&bits).collect::<Vec<_>>());
        let all: Vec<_> = all.collect();
        for other in &all[1..] {
            assert_eq!(&all[0], other, "{:?} along {axes:?}", view.dims());
        }
        Ok(())
    }

    /// Dims and axes of all kinds of plans.
    const CASES: &[(&[usize], &[i64])] = &[
        (&[70_001], &[0]),
        (&[3, 40_000], &[1]),
        (&[300, 3], &[1]),
        (&[301, 7], &[1]),
        (&[65, 40], &[1]),
        (&[37, 700], &[1]),
        (&[5, 3000], &[1]),
        (&[300, 7], &[0]),
        (&[37, 700], &[0]),
        (&[2000, 5], &[0]),
        (&[4, 9, 8, 6, 5], &[1, 2, 4]),
        (&[4, 9, 8, 6, 5], &[1, 3]),
        (&[6, 50, 70], &[0, 2]),
        (&[6, 50, 70], &[1]),
        (&[6, 50, 170], &[0, 2]),
    ];

    fn value(n: usize) -> f32 {
        ((n * 2_654_435_761) % 10_007) as f32 / 77.0 - 60.0
    }

    #[test]
    fn reductions_have_the_same_bits_at_all_levels() -> Result<(), Error> {
        for &(dims, axes) in CASES {
            let len = dims.iter().product();
            let narrow: Vec<f32> = (0..len).map(value).collect();
            let wide: Vec<f64> = narrow.iter().map(|&x| f64::from(x) / 3.0).collect();
            let half: Vec<f16> = narrow.iter().map(|&x| f16::from_f32(x)).collect();
            let brain: Vec<bf16> = narrow.iter().map(|&x| bf16::from_f32(x)).collect();
            let whole: Vec<i32> = narrow.iter().map(|&x| x as i32).collect();
            let bytes: Vec<u8> = whole.iter().map(|&x| x as u8).collect();
            let view = View::row_major(&narrow, dims)?;
            agree(&view, axes, Sum, |x| x.to_bits().into())?;
            agree(&view, axes, Max, |x| x.to_bits().into())?;
            agree(&view, axes, ArgMax, i64::cast_unsigned)?;
            agree(&view, axes, SumAndSquares, |x| {
                u64::from(x.0.to_bits()) << 32 | u64::from(x.1.to_bits())
            })?;
            let view = View::row_major(&wide, dims)?;
            agree(&view, axes, Sum, f64::to_bits)?;
            agree(&view, axes, ArgMin32, |place| place.cast_unsigned().into())?;
            agree(&View::row_major(&half, dims)?, axes, Sum, |x| x.to_bits().into())?;
            let view = View::row_major(&brain, dims)?;
            agree(&view, axes, Sum, |x| x.to_bits().into())?;
            agree(&view, axes, Min, |x| x.to_bits().into())?;
            agree(&view, axes, ArgMax, i64::cast_unsigned)?;
            agree(&View::row_major(&whole, dims)?, axes, Product, |x| x.cast_unsigned().into())?;
            agree(&View::row_major(&bytes, dims)?, axes, Max, u64::from)?;
        }
        Ok(())
    }

    #[test]
    fn norms_have_the_same_bits_at_all_levels() -> Result<(), Error> {
        for (dims, norm, parameters) in [
            ([40, 300, 1], Norm::layer(2, 1e-5), None),
            ([5, 3000, 1], Norm::layer(2, 1e-5), None),
            ([300, 20, 1], Norm::rms(2, 1e-5), None),
            ([3, 16, 700], Norm::group(1, 4, 1e-5), Some(16)),
            ([3, 700, 16], Norm::group(2, 4, 1e-5), Some(16)),
            ([3, 700, 16], Norm::batch(2, 1e-5), Some(16)),
        ] {
            let x: Vec<f32> = (0..dims.iter().product()).map(value).collect();
            let scale: Vec<f32> = (0..parameters.unwrap_or(0)).map(value).collect();
            let scale = match parameters {
                Some(len) => Some(View::row_major(&scale, &[len])?.into()),
                None => None,
            };
            let x = View::row_major(&x, &dims)?.into();
            let all = at_all(|| {
                let forward = norm.forward(&x, scale.as_ref(), scale.as_ref(), &Serial)?;
                let back = norm.vjp(&x, &x, scale.as_ref(), &Serial)?;
                let soft = softmax(&x, 1, &Serial)?;
                let soft_back = softmax_vjp(&x, &x, 1, &Serial)?;
                Ok([forward.y, forward.variance, back.x, back.scale, back.bias, soft, soft_back])
            })?;
            let bits = |values: &Values| match values {
                Values::F32(data) => data.iter().map(|x| x.to_bits()).collect(),
                _ => Vec::new(),
            };
            for other in &all[1..] {
                for (a, b) in all[0].iter().zip(other) {
                    assert_eq!(bits(&a.values), bits(&b.values), "{norm:?} of {dims:?}");
                }
            }
        }
        Ok(())
    }
}
