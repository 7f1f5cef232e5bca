//! Defines the contract for numbers: how far rewrites may change floats.
//!
//! Every pass states its [`Class`]; [`FloatMode`] says which classes an optimisation
//! allows. `check` judges by the same constants. The reasons are in `docs/numerics.md`.

/// The degree to which a pass changes floats, on inputs for which the original program computes
/// no infinity and no NaN. Integers and truth values always keep every bit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// Every bit stays.
    Exact,
    /// The terms of a sum or a product, or the operands of a maximum, come in another
    /// order, as HLO allows.
    Regrouping,
    /// The error of an output against the exact result is at most [`MOST_GROWTH`] times the
    /// original error, plus [`SLACK_ULPS`] units in the last place of its largest value.
    /// Nothing overflows that did not overflow before.
    Bounded,
    /// No bound of this kind is known; the rewrite is made on request only.
    FastMath,
}

/// The largest factor by which the error of an output may grow.
pub const MOST_GROWTH: f64 = 4.0;

/// The error, in units in the last place of an output's largest value, that does not count
/// against a rewrite: an original that is exact by luck proves nothing.
pub const SLACK_ULPS: f64 = 4.0;

/// The degree to which an optimisation may change floats.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum FloatMode {
    /// Every bit stays: [`Class::Exact`] alone (`--exact`).
    Exact,
    /// Sums may be regrouped, and errors may grow by a bounded factor: all classes up to
    /// [`Class::Bounded`].
    #[default]
    Regroup,
    /// Adds rewrites of floats whose error has no bound for all data: sums of differences
    /// become differences of sums, and factors leave sums that may overflow without them
    /// (`--fast-math`).
    Fast,
}

impl FloatMode {
    /// Checks whether rewrites of a class are allowed.
    pub fn allow(self, class: Class) -> bool {
        class
            <= match self {
                Self::Exact => Class::Exact,
                Self::Regroup => Class::Bounded,
                Self::Fast => Class::FastMath,
            }
    }
}

impl Class {
    /// Returns the word for the mode in listings.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::Regrouping => "regrouping",
            Self::Bounded => "bounded",
            Self::FastMath => "fast-math",
        }
    }
}
