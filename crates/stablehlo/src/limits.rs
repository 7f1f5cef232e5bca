//! Limits of what a program may cost, whichever way it is converted.

/// The deepest nesting of calls and regions.
pub(crate) const MAX_DEPTH: usize = 200;

/// How often instructions may be converted in the mean. Ops repeat the computations that they share with others: a
/// computation that the next one applies twice, and so on, is converted 2^n times.
pub(crate) const REPEATED: usize = 16;

/// How many instructions may be converted in any case.
pub(crate) const ALWAYS: usize = 1 << 16;
