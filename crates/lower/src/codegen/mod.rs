//! Kernels of reductions and of fused instructions.

pub(crate) mod fuse;
pub(crate) mod reduce;
