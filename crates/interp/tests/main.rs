//! All tests of what this crate makes public, in one binary: each binary links the crate anew.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test fails by panicking, and says what it counted"
)]

mod algebra;
mod compare;
mod devices;
mod dynamic;
mod edges;
mod files;
mod foresight;
mod inputs;
mod layouts;
mod limits;
mod models;
mod native_calls;
mod noise;
mod observe;
mod ops;
mod oracle;
mod random;
mod refused;
mod regions;
mod rounding;
mod shards;
mod ties;
mod views;
mod widened;
