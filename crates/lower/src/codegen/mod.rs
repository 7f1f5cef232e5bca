//! Generates kernels for reductions and for groups of fused instructions.

pub(crate) mod fuse;
pub(crate) mod reduce;
