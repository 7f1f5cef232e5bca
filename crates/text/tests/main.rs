//! All tests of what this crate makes public, in one binary: each binary links the crate anew.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test fails by panicking, and says what it counted"
)]

mod compare;
mod comparison_order;
mod errors;
mod expression;
mod hostile_lines;
mod hostile_texts;
mod limits;
mod omitted_layouts;
mod parse_asynchronous;
mod parse_fixtures;
mod parse_grammar;
mod parse_hostile;
mod print;
mod print_attributes;
mod print_canonical;
mod print_ops;
mod print_values;
mod recovery;
mod roundtrip;
