//! The loops, in vectors of NEON: four of them are one of AVX-512.

/// Compiles functions with NEON.
macro_rules! wide {
    ($($item:item)*) => { $(
        #[inline]
        #[target_feature(enable = "neon")]
        $item
    )* };
}

mod arch;
#[path = "../loops/mod.rs"]
mod loops;

pub(super) use loops::{chains_of, deviations_of, products_of, rows_of};
