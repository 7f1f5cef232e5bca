//! The contract for numbers: how far rewrites may change floats, and by how much.
//!
//! Every pass states its [`Class`]; [`FloatMode`] says which classes an optimisation
//! allows. `check` judges by the same constants. The reasons are in `docs/numerics.md`.

/// The most that a pass changes floats, on inputs on which the program before the pass computes no
/// infinity and no NaN. Integers and truth values always keep every bit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// Every bit stays.
    Exact,
    /// The terms of a sum or a product, or the operands of a maximum, are combined in another
    /// order, as HLO allows.
    Regrouping,
    /// The error of an output against the exact result is at most [`MOST_GROWTH`] times the error
    /// before, plus [`SLACK_ULPS`] units in the last place of the output's largest value; nothing
    /// overflows that did not before.
    Bounded,
    /// The same bound, which holds because the program tests for it when it runs: where the test
    /// fails, it runs the instructions of the original. Infinities and NaN fail the test, too.
    Guarded,
    /// No such bound is known; such rewrites are made on request alone.
    FastMath,
}

/// No output's error grows by more than this factor.
pub const MOST_GROWTH: f64 = 4.0;

/// An error of at most this many units in the last place of an output's largest value is not held
/// against a rewrite: the original may be exact by luck.
pub const SLACK_ULPS: f64 = 4.0;

/// The amount by which floats may change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum FloatMode {
    /// Every bit stays: [`Class::Exact`] alone (`--exact`).
    Exact,
    /// Sums may be regrouped, and errors may grow by a bounded factor, but nothing is tested when the program
    /// runs: all classes up to [`Class::Bounded`] (`--no-guards`).
    Bounded,
    /// The same, and guards: all classes up to [`Class::Guarded`].
    #[default]
    Guarded,
    /// Rewrites are allowed too whose error has no bound for all data: sums of differences become
    /// differences of sums, and factors move out of sums that may then overflow (`--fast-math`).
    Fast,
}

impl FloatMode {
    /// All modes, the strictest first.
    pub const ALL: [Self; 4] = [Self::Exact, Self::Bounded, Self::Guarded, Self::Fast];

    /// Returns the mode by the [name](Class::name) of the most that it allows.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|mode| mode.most().name() == name)
    }

    /// Checks whether rewrites of a class are allowed.
    pub fn allow(self, class: Class) -> bool {
        class <= self.most()
    }

    /// Returns the most that is allowed.
    pub const fn most(self) -> Class {
        match self {
            Self::Exact => Class::Exact,
            Self::Bounded => Class::Bounded,
            Self::Guarded => Class::Guarded,
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
            Self::Guarded => "guarded",
            Self::FastMath => "fast-math",
        }
    }
}
