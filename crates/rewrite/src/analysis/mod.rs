//! What passes know about a module before they change it.

pub mod bound;
pub mod broadcast;
pub mod choice;
pub mod cost;
pub mod cut;
pub mod digits;
pub mod equal;
pub mod factored;
pub mod monoid;
pub mod product;
pub mod reduce;
pub mod reducer;
pub mod region;
pub mod scale;
pub mod shared;
pub mod sign;
pub mod span;
pub mod types;
