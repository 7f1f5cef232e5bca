//! Fused programs: elementwise ops and reductions over one iteration space, so that a whole norm is
//! one program. `norms.rs` and the crates `tilewright` and `tilewright-python` build them.
//!
//! **How.** The space is divided into *slabs*. A slab has the elements that reductions within the
//! program need together, such as a row of a layer norm or a group of a group norm. Values are
//! sorted into *passes* by how many reductions precede them. All passes go over a slab before the
//! next slab begins, so that memory is read once if a slab fits in a cache. A pass goes over a slab
//! in *tiles* of some thousand elements. Each *step* of the pass, such as an op, goes over the
//! whole tile in a vectorised loop before the next step does. Several ops are one loop where their
//! values need not be stored (`chain.rs`, `terms.rs`, `products.rs`). If a slab is one tile, its
//! values stay from pass to pass. *Sinks*, which are reductions that only outputs need, such as the
//! gradient of a bias, are added up over all slabs meanwhile. If slabs are few and large, as in a
//! batch norm, tasks share the tiles of each pass.
//!
//! **Numbers.** Values are `f32`, or `f64` if an operand or an output is, or if the program asks
//! for it. A tile is summed as by [`reduce`](crate::reduce()), and the sums of tiles are added up in
//! `f64`. The order follows from the program, the dims and the strides, so any number of threads
//! gives the same bits.

mod add_products;
mod aligned_buffer;
mod chain;
mod compute;
mod factors;
mod fold;
mod output;
mod plan;
mod products;
mod program;
mod real;
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
