//! StableHLO in and out, without MLIR.
//!
//! A program is read in two steps: MLIR's text or bytecode becomes a tree of operations
//! ([`mlir`]), and this tree becomes an HLO module. It is written in the opposite order.

pub mod bytecode;
pub mod mlir;
pub mod text;
mod vhlo;
