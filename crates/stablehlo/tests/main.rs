//! All tests of what this crate makes public, in one binary: each binary links the crate anew.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test fails by panicking, and says what it counted"
)]

mod bytecode;
mod bytecode_errors;
mod conversion;
mod conversion_errors;
mod einsum;
mod extensions;
mod forms;
mod quantized;
mod text;
