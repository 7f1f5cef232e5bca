//! All tests of what this crate makes public, in one binary: each binary links the crate anew.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test fails by panicking, and says what it counted"
)]

mod algebra;
mod attack;
mod check;
mod composites;
mod facade;
mod files;
mod guard;
#[cfg(feature = "simulate")]
mod machine;
mod mutants;
#[cfg(feature = "native")]
mod native;
#[cfg(feature = "native")]
mod native_calls;
mod optimized;
mod reports;
mod roads;
mod rules;
