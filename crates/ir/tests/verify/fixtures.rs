//! The fixtures of `fixtures/verify`.
