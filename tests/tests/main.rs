//! Tests of the workspace as a whole.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test fails by panicking, and says what it counted"
)]

mod documents;
mod front_ends;
mod house;
mod snapshots;
