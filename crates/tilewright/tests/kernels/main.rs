//! Reductions, selections and whole modules as kernels on the machine, against the
//! interpreter.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod accuracy;
mod fused;
mod harness;
mod large;
mod patterns;
mod random;
mod reducers;
mod select;
mod strategies;
