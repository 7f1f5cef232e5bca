//! Rewrites to simpler forms, one pass per file. They apply wherever they match.
//!
//! They run to a fixpoint, so that the passes of the other families see each program in one form.

pub mod algebra;
pub mod batch_norm;
pub mod broadcast;
pub mod constant_fold;
pub mod control_flow;
pub mod convert;
pub mod cse;
pub mod dce;
pub mod inline;
pub mod reduce;
pub mod reduce_of_reduce;
pub mod reshape;
pub mod transpose;
pub mod tuple;
