//! Rewrites for what a backend does with the program: which kernels it makes, what it
//! stores between them, how it accumulates.

pub mod cluster_sibling_reductions;
pub mod rematerialize;
pub mod widen_accumulation;
