//! What values are: element types, shapes, layouts, literals.

mod display;
pub mod element;
pub mod index;
pub mod layout;
pub mod literal;
pub mod shape;
