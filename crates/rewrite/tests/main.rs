//! All tests of what this crate makes public, in one binary: each binary links the crate anew.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test fails by panicking, and says what it counted"
)]

mod all_reduce_random;
mod around_gains;
mod common;
mod constant_fold;
mod conversions;
mod convolutions;
mod copies;
mod cost;
mod cost_contractions;
mod cost_loops;
mod cost_reduces;
mod digits;
mod digits_laws;
mod domains;
mod equal;
mod f32_sums;
mod factored;
mod factored_random;
mod group_norm_gradients;
mod late_factors;
mod ledger;
mod local_moments;
mod memory_sweeps;
mod moments;
mod native_programs;
mod norm_passes;
mod norms;
mod pattern;
mod peak_memory;
mod pipeline;
mod random;
mod reduce_form;
mod reduces;
mod region;
mod rules;
mod sharded_random;
mod sharding;
