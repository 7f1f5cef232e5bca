//! All tests of what this crate makes public, in one binary: each binary links the crate anew.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test fails by panicking, and says what it counted"
)]

mod builder;
mod common;
mod edit;
mod edit_laws;
mod index;
mod infer;
mod literal;
mod monoid;
mod patch;
mod reducer;
mod relation;
mod table;
mod types;
mod verify;
mod verify_again;
mod walk;
