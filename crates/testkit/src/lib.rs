//! Fixtures for tests.

pub mod fixture;
