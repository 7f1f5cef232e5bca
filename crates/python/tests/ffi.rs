//! The custom call that XLA:CPU makes, called with frames made by hand. The package itself is a
//! library for Python and has no tests in Rust; the files under test need no Python.
#![allow(clippy::expect_used, clippy::panic, reason = "a test panics where it fails")]

#[path = "../src/ffi/mod.rs"]
mod ffi;
