//! What can compute constants. This crate has no interpreter; its caller may pass one in.

use std::fmt;

use tilewright_ir::{Literal, Verified};

/// Something that evaluates modules.
pub trait Evaluate: fmt::Debug + Send + Sync {
    /// The result of a module without parameters, correctly rounded; `None`
    /// where it has none, or none within reach.
    fn evaluate(&self, module: &Verified) -> Option<Literal>;
}
