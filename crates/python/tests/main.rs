//! Tests in Rust of the parts of the package that need no Python. The package itself is a library for
//! Python, which has its tests there.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test fails by panicking, and says what it counted"
)]

mod edits;
/// The custom calls that XLA:CPU makes, called with frames made by hand.
#[path = "../src/ffi/mod.rs"]
mod ffi;
