//! The families of ops.

use std::fmt;

/// A family of ops. Each family has a file with its name in `ops/` here and in `eval/` of the
/// interpreter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Family {
    /// Each result element is computed from the operands' elements at the same index.
    Elementwise,
    /// Elements are moved, repeated or given, but not computed.
    Shaping,
    /// Sums of products.
    Contract,
    /// Windows moving over an array.
    Window,
    /// Elements are addressed by run-time values.
    Indexing,
    /// Reductions, scans and sorts.
    Reduce,
    /// Calls, loops, branches, tuples, tokens, and transfers in and out of a module.
    Control,
    /// Collectives of several devices.
    Collective,
    /// Random numbers.
    Random,
    /// Linear algebra, transforms and whole norms.
    Linalg,
}

impl Family {
    /// Returns the name, which is also the name of the family's file.
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

    /// Checks whether its ops only move elements or return whole values, and compute no element
    /// themselves. Computations that they call may compute elements.
    pub const fn moves_elements_only(self) -> bool {
        matches!(self, Self::Shaping | Self::Control | Self::Indexing | Self::Collective)
    }
}

impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Maps the name of a file to its family.
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
