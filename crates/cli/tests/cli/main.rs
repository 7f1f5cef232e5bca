//! Runs the command as users do, and inspects what it prints, writes and returns.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test fails by panicking, and says what it counted"
)]

mod bad_input;
mod book;
mod bounds;
mod common;
mod devices;
mod evaluation;
mod files;
mod graph;
mod json;
mod observation;
mod reduce;
mod shell;
mod tune;
mod verbs;
