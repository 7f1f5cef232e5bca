//! All tests of what this crate makes public, in one binary: each binary links the crate anew.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test fails by panicking, and says what it counted"
)]

mod diff;
mod explain;
mod reduce;
mod tune;
