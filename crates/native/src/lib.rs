//! Reductions of arrays along any axes on this CPU. A sum, product or extremum reads the array
//! once; no reduction transposes it or allocates a workspace of its size. [`norms`] computes norms,
//! softmax and their gradients as [`fused`] programs. The crates `tilewright` and
//! `tilewright-python` call both.
//!
//! With the feature `ndarray`, the array views of that crate convert to [`View`]s.
//!
//! ```
//! use tilewright_native::{Fold, Serial, View, reduce};
//!
//! let data: Vec<f32> = (0..24).map(|i| i as f32).collect();
//! let view = View::row_major(&data, &[2, 3, 4])?;
//! let sums = reduce(&view, &[0, 2], Fold::Sum, &Serial)?;
//! assert_eq!(sums.dims, [3]);
//! assert_eq!(sums.data, [60.0, 92.0, 124.0]);
//! # Ok::<(), tilewright_native::Error>(())
//! ```
//!
//! **How.** A plan sorts the axes by stride and merges neighbouring axes of the same kind, kept or
//! reduced. The innermost axes form a *block* of some hundred to some thousand elements, which are
//! contiguous if the strides allow it. Blocks are added element by element, in vector registers,
//! over all reduced axes outside of the block; only then are the reduced axes within the block
//! folded (`plan.rs`). Long contiguous rows that are reduced together with an axis outside of them
//! are reduced one by one, and their results are added. The kernels of `tilewright-lower` follow
//! the same plan; here its sizes are those of caches.
//!
//! **Order.** The order in which elements are combined follows from dims, strides and types alone,
//! so a result has the same bits for every [`Pool`] and number of threads. Floats are summed in
//! short chains, of about a hundred terms at most, and the sums of chains are merged by levels or
//! halves, so the rounding error grows with the logarithm of the number of terms.

mod accumulators;
mod axes;
mod caches;
mod elements;
mod error;
mod folds;
pub mod fused;
mod kernel;
mod level;
pub mod norms;
mod pages;
mod pieces;
mod plan;
mod pool;
mod reduce;
mod run;
mod tasks;
mod vectors;
mod view;

pub use elements::{Element, Number};
pub use error::Error;
#[doc(hidden)]
pub use level::at_each_level;
pub use pool::{Pool, Serial, Threads};
pub use reduce::{Array, Extremum, Fold, Place, place, place_into, reduce, reduce_into};
pub use view::View;
