//! Fixtures for tests.

pub mod fixture;
pub mod generate;
