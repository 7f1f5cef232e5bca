//! The families of ops.

use std::fmt;

/// A family of ops: those of one file on every floor of the house, `ops/` here,
/// `eval/` in the interpreter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Family {
    /// Each result element is computed of the operands' elements at its index.
    Elementwise,
    /// Elements move or repeat, or are given; none is computed.
    Shaping,
    /// Sums of products.
    Contract,
    /// Windows that move over an array.
    Window,
    /// Elements stand where run-time values say.
    Indexing,
    /// Reductions, scans and sorts.
    Reduce,
    /// Calls, loops, branches, tuples, tokens, and what crosses the module's edge.
    Control,
    /// Work of several devices.
    Collective,
    /// Random numbers.
    Random,
    /// Linear algebra, transforms and whole norms.
    Linalg,
}

impl Family {
    /// The name: that of the family's file.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Elementwise => "elementwise",
            Self::Shaping => "shaping",
            Self::Contract => "contract",
            Self::Window => "window",
            Self::Indexing => "indexing",
            Self::Reduce => "reduce",
            Self::Control => "control",
            Self::Collective => "collective",
            Self::Random => "random",
            Self::Linalg => "linalg",
        }
    }

    /// Whether its ops put elements in other places, or hand whole values on, and
    /// compute no element themselves; computations that they call may.
    pub const fn moves_elements_only(self) -> bool {
        matches!(self, Self::Shaping | Self::Control | Self::Indexing | Self::Collective)
    }
}

impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// The family of a file's name.
macro_rules! family {
    (elementwise) => {
        Family::Elementwise
    };
    (shaping) => {
        Family::Shaping
    };
    (contract) => {
        Family::Contract
    };
    (window) => {
        Family::Window
    };
    (indexing) => {
        Family::Indexing
    };
    (reduce) => {
        Family::Reduce
    };
    (control) => {
        Family::Control
    };
    (collective) => {
        Family::Collective
    };
    (random) => {
        Family::Random
    };
    (linalg) => {
        Family::Linalg
    };
}

pub(super) use family;
