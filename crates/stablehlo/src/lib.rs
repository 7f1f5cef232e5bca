//! StableHLO in and out, without MLIR.
//!
//! A program is read in two steps: MLIR's text ([`text`]) or bytecode becomes a tree of operations
//! ([`mlir`]), and this tree becomes an HLO module ([`import()`]). It is written in the opposite
//! order ([`export()`], [`print()`]).

pub mod bytecode;
mod dialect;
pub mod export;
pub mod import;
mod limits;
pub mod mlir;
pub mod print;
pub mod text;
mod vhlo;

pub use export::{ExportError, ExportErrorKind, export, lost};
pub use import::{ImportError, ImportErrorKind, import};
pub use print::print;
