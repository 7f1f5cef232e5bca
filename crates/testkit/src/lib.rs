//! What tests need: fixtures, random modules, hostile texts and what holds of
//! every one of them.

pub mod attack;
pub mod fixture;
pub mod generate;
pub mod properties;
