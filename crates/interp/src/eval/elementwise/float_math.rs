//! Elementary functions that the library of them lacks, on `f64`.

/// `1 / (1 + exp(-x))`.
pub(super) fn logistic(x: f64) -> f64 {
    1.0 / (1.0 + libm::exp(-x))
}

/// `1 / sqrt(x)`; of -0 it is -infinity.
pub(super) fn rsqrt(x: f64) -> f64 {
    1.0 / x.sqrt()
}

/// Returns the area of a hyperbola; the library's is wrong for large negative numbers.
pub(super) fn acosh(x: f64) -> f64 {
    if x < 1.0 { f64::NAN } else { libm::acosh(x) }
}
