//! One pass per file.

pub mod broadcast;
pub mod cse;
pub mod dce;
pub mod degenerate;
pub mod inline;
pub mod reduce;
pub mod reduce_through_reshape;
mod region_move;
pub mod reshape;
pub mod reshape_out_of_region;
pub mod tuple;
