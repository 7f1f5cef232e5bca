//! Runs the command as users do, and inspects what it prints, writes and returns.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod bad_input;
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
mod verbs;
