//! Code that `tests/generated.rs` generates from the schema.

#[rustfmt::skip]
#[allow(dead_code, reason = "tables of messages within maps are not looked at")]
pub(crate) mod known;
#[rustfmt::skip]
#[allow(
    missing_docs,
    unreachable_pub,
    clippy::all,
    clippy::semicolon_if_nothing_returned,
    clippy::allow_attributes_without_reason,
    rust_2018_idioms,
    reason = "generated"
)]
pub(crate) mod xla;
