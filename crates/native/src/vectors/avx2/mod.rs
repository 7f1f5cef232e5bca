//! The loops, in vectors of AVX2: two of them are one of AVX-512.

/// Compiles functions with AVX2.
macro_rules! wide {
    ($($item:item)*) => { $(
        #[inline]
        #[target_feature(enable = "avx2,fma,bmi2,f16c")]
        $item
    )* };
}

mod arch;
#[path = "../loops/mod.rs"]
mod loops;

pub(super) use loops::{chains_of, deviations_of, products_of, rows_of, stream};
