//! Reductions as kernels on the machine, against the interpreter.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod harness;
mod patterns;
