//! Elementwise ops and reductions over one iteration space, fused: a whole norm is one program.
//!
//! **How.** Values are sorted into passes by how many reductions lie before them. All passes go
//! through a *slab* before the next slab is begun: the elements that reductions within the program
//! need together, such as a row of a layer norm or a group of a group norm, so that memory is read
//! once if a slab fits in a cache. A slab is walked in tiles of some thousand elements; each op
//! goes over a tile before the next op does, by loops that are vectors. Several ops are one loop where
//! their values need not be stored (`chain.rs`, `terms.rs`, `products.rs`). A slab that is one tile
//! keeps its values from pass to pass. Reductions that only outputs need, such as the gradient of a
//! bias, are added up over all slabs meanwhile. Where slabs are few and large, as in a batch norm,
//! each pass is a reading of the slab in pieces.
//!
//! **Numbers.** Values are `f32`, or `f64` if an operand is. Tiles are summed as by
//! [`reduce`](crate::reduce), and tiles are added up in `f64`. The order follows from the program,
//! the dims and the strides, so any number of threads gives the same bits.

mod add_products;
mod chain;
mod compute;
mod factors;
mod fold;
mod output;
mod plan;
mod products;
mod program;
mod real;
mod room;
mod run;
mod scratch;
mod shape;
mod simplify;
mod space;
mod steps;
mod terms;
mod tile;
mod total;
mod walk;

pub(crate) use real::exponential;

pub use program::{
    Binary, Id, Kind, Operand, Output, Program, Reduction, Unary, Values, ValuesMut,
};
