//! Provides what tests need: fixtures, random modules, hostile texts, and the properties that
//! hold for every one of them.

pub mod attack;
pub mod effort;
pub mod fixture;
pub mod generate;
pub mod mlir_properties;
pub mod properties;
