//! `docs/verifier.md` says what the code says.
