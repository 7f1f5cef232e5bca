//! Rewrites that depend on the backend: which kernels it makes, which arrays it stores between
//! them, and in which form it reduces.

pub mod cluster_sibling_reductions;
pub mod native_calls;
pub mod reduce_form;
pub mod rematerialize;
