//! One pass per file.

pub mod broadcast;
pub mod cse;
pub mod dce;
pub mod inline;
pub mod reduce_through_reshape;
pub mod reshape;
pub mod reshape_out_of_region;
pub mod tuple;
