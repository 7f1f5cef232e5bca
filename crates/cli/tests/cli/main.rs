//! The command as people use it: the binary is run, and what it prints, writes
//! and returns is looked at.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod bad_input;
mod bounds;
mod common;
mod devices;
mod evaluation;
mod json;
mod observation;
mod verbs;
