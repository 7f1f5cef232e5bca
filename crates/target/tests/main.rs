//! All tests of what this crate makes public, in one binary: each binary links the crate anew.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test fails by panicking, and says what it counted"
)]

mod brute_force;
mod file;
mod footprint;
mod model;
mod moves;
mod reductions;
