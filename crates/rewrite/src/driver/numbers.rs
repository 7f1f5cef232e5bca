//! The contract for numbers: how far rewrites may change floats, and by how much.
//!
//! Every pass states its [`Class`]; [`FloatMode`] says which classes an optimisation
//! allows. `check` judges by the same constants. The reasons are in `docs/numerics.md`.

/// How far a pass changes floats, on inputs on which the program before it computes no
/// infinity and no NaN. Integers and truth values always keep every bit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// Every bit stays.
    Exact,
    /// The terms of a sum or a product, or the operands of a maximum, come in another
    /// order, as HLO allows.
    Regrouping,
    /// The error of an output against the exact result is at most [`MOST_GROWTH`] times
    /// what it was, and [`SLACK_ULPS`] units in the last place of its largest value;
    /// nothing overflows that did not.
    Bounded,
    /// No such bound is known; done on request alone.
    FastMath,
}

/// No output's error grows by more than this factor.
pub const MOST_GROWTH: f64 = 4.0;

/// An error of so many units in the last place of an output's largest value is not held
/// against a rewrite: an original that is right by luck says nothing.
pub const SLACK_ULPS: f64 = 4.0;

/// How far floats may change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum FloatMode {
    /// Every bit stays: [`Class::Exact`] alone (`--exact`).
    Exact,
    /// Sums may be regrouped, and errors grow by a bounded factor: all up to
    /// [`Class::Bounded`].
    #[default]
    Regroup,
    /// Rewrites of floats whose error has no bound that holds for all data, too: sums of
    /// differences as differences of sums, and factors out of sums that may overflow without
    /// them (`--fast-math`).
    Fast,
}

impl FloatMode {
    /// Whether rewrites of a class are allowed.
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
    /// The word for it in listings.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::Regrouping => "regrouping",
            Self::Bounded => "bounded",
            Self::FastMath => "fast-math",
        }
    }
}
