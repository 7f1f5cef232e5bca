//! HLO modules as a typed, verified graph.
//!
//! ```text
//! Module ── computations ── instructions ── op, shape, operands
//!    │            (ordered, callees first)        │
//!    └── side tables: names, metadata,            └── one row per op in ops/table.rs
//!        sharding, frontend attributes ...
//! ```
//!
//! - [`types`]: element types, shapes, layouts, literals, index <-> address.
//! - [`ops`]: the table of ops, their attributes and shape rules.
//! - [`Module`] and [`edit`]: the graph, and the only way to change it.
//! - [`walk`]: post-order and call graph, through petgraph's visit traits.
//! - [`infer_shape`]: the one shape rule of each op; [`infer_mixed`] where floats
//!   differ in precision.
//! - [`mod@verify`]: the checks of a module; a checked module has the type [`Verified`].
//! - [`reducer`]: recognises the computation of a reduce.
//! - [`Builder`]: builds modules for front ends.
//!
//! This crate does not depend on text, files or targets.

pub mod backend_config;
mod builder;
pub mod composite;
mod computation;
pub mod diag;
pub mod edit;
pub mod entity;
pub mod escape;
pub mod expand;
mod history;
pub mod infer;
mod infer_layout;
mod instruction;
pub mod metadata;
mod module;
mod names;
mod native_call;
pub mod ops;
mod outline;
mod patch;
pub mod reducer;
mod relation;
mod similar;
mod trial;
pub mod types;
pub mod verify;
pub mod walk;

pub use builder::{BegunComputation, BuildError, Builder, OperandList};
pub use computation::Computation;
pub use diag::{Code, Diagnostic, DiagnosticPlace};
pub use edit::{EditError, Position};
pub use entity::{CompId, Entity, InstId, PrimaryMap, SecondaryMap, ShapeId};
pub use history::Moment;
pub use infer::{Inferred, ShapeError, ShapeErrorKind, infer_mixed, infer_shape};
pub use infer_layout::infer_layout;
pub use instruction::{Instruction, Use};
pub use metadata::{Extras, Header, OpMetadata, ProgramShape, Residue, StackTables};
pub use module::{Instructions, Module};
pub use native_call::{NativeCall, NativeFold, NativeProgram};
pub use ops::family::Family;
pub use ops::{Op, Opcode};
pub use outline::Outline;
pub use patch::{Patch, Planned, Value};
pub use relation::{DimRole, Relation};
pub use similar::similar;
pub use types::element::ElementType;
pub use types::layout::{Layout, Padding, PaddingValue, Tile};
pub use types::literal::{ArrayLiteral, Data, Literal, LiteralError, Native};
pub use types::shape::{ArrayShape, Dims, Shape, dims};
pub use types::sharding::Sharding;
pub use types::{devices, element, index, layout, literal, sdy, shape, sharding, small_float};
pub use verify::{Verified, verify};

/// The examples of the page compile and run.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/build-modules.md")]
struct BuildModules;
