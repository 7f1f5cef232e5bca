//! Defines the interface to an evaluator of constants. This crate has no interpreter; its
//! caller may pass one in.

use std::fmt;

use tilewright_ir::{Literal, Verified};

/// An evaluator of modules.
pub trait Evaluate: fmt::Debug + Send + Sync {
    /// Returns the correctly rounded result of a module without parameters, or `None` if it has
    /// no result or computing one is out of reach.
    fn evaluate(&self, module: &Verified) -> Option<Literal>;
}
