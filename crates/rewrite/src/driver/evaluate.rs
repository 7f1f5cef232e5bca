//! The evaluator of constants. This crate has no interpreter; its caller may pass one in.

use std::fmt;

use tilewright_ir::{Literal, Verified};

/// Something that evaluates modules.
pub trait Evaluate: fmt::Debug + Send + Sync {
    /// Returns the result of a module without parameters, correctly rounded; `None` if it has none,
    /// or none within the evaluator's limits.
    fn evaluate(&self, module: &Verified) -> Option<Literal>;
}
