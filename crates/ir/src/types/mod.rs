//! The types of values: element types, shapes, layouts, literals, and their distribution over
//! devices.

pub mod devices;
mod display;
pub mod element;
pub mod index;
pub mod layout;
pub mod literal;
pub mod sdy;
pub mod shape;
pub mod sharding;
pub mod small_float;
