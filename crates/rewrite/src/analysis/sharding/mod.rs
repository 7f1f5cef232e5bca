//! How values of a module are divided over devices before XLA partitions it.
//!
//! A *mesh* has axes, each with a number of devices. An axis divides a dim of an array into as many
//! parts, and every device holds the part at its place along the axis. [`Spread`] says which axes
//! divide which dims of a value; `flow.rs` carries this from the parameters and constraints of a
//! module to all values, as XLA's propagation does, and finds the instructions that make devices
//! exchange data.
//!
//! Modules say so in `frontend_attributes` (Shardy: `xla.sdy.meshes`, `xla.sdy.sharding`), or in
//! `sharding={devices=...}` (GSPMD), from which `tiles.rs` finds the mesh. A module without either,
//! with several meshes that have axes, or with devices out of order, counts as not divided.

mod constraint;
mod control;
mod exchange;
mod flow;
mod manual;
mod mesh;
mod spread;
mod tiles;

use tilewright_ir::Module;

pub use constraint::stands_alone;
pub use exchange::{Exchange, ExchangeKind, Exchanges, Traffic};
pub use flow::Flow;
pub use manual::{ManualCalls, manual_bodies, with_callees};
pub use mesh::DeviceMesh;
pub use spread::{Axes, Spread};

/// Checks whether a module runs on several devices, each with a part of the arrays.
pub fn is_partitioned(module: &Module) -> bool {
    let mut all = module.computations().iter().flat_map(|&id| module.instructions(id));
    module.header.num_partitions.is_some_and(|count| count > 1)
        || all.any(|id| module.extras(id).is_some_and(|extras| extras.sharding.is_some()))
}
