//! What passes know about a module before they change it.

pub mod bound;
pub mod broadcast;
pub mod cost;
pub mod cut;
pub mod digits;
pub mod equal;
pub mod factored;
pub mod product;
pub mod reduce;
pub mod region;
pub mod scale;
pub mod shared;
pub mod sign;
pub mod span;
pub mod types;
pub mod whole_number;
