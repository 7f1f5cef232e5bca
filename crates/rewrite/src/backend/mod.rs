//! Rewrites that depend on the backend: which kernels it makes, which arrays it stores between
//! them, and in which type it accumulates.

pub mod cluster_sibling_reductions;
pub mod native_calls;
pub mod rematerialize;
pub mod staged_reduce;
pub mod widen_accumulation;
