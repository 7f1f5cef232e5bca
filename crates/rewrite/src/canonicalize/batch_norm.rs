//! Batch norms become the sums and products that they stand for.
//!
//! The formulas are XLA's ([`expand`]), so every bit is that of the program as XLA runs it. Where no
//! cost-gated rewrite gains by it, the run puts the batch norm back.
//!
//! Preconditions: nothing is attached to the batch norm, such as a sharding.

use std::borrow::Cow;

use tilewright_ir::{EditError, Module, expand};

use crate::driver::numbers::Class;
use crate::driver::{Context, Pass};

/// See the module.
pub struct BatchNorm;

impl Pass for BatchNorm {
    fn name(&self) -> &'static str {
        "batch-norm"
    }

    fn summary(&self) -> &'static str {
        "write batch norms as the sums and products that they stand for"
    }

    fn class(&self) -> Class {
        Class::Exact
    }

    fn run(&self, module: &mut Module, _cx: &mut Context<'_>) -> Result<usize, EditError> {
        expand::batch_norms(module, |module, id| module.extras(id).is_none() && module.is_live(id))
    }
}

/// Returns a module as XLA runs it, with its batch norms written as plain ops.
pub fn as_run(module: &Module) -> Cow<'_, Module> {
    if !expand::has_batch_norm(module) {
        return Cow::Borrowed(module);
    }
    let mut expanded = module.clone();
    match expand::batch_norms(&mut expanded, |_, _| true) {
        Ok(_) => Cow::Owned(expanded),
        Err(_) => Cow::Borrowed(module),
    }
}
