//! Reductions of arrays along any axes on this CPU: one pass, no workspace of the array's size, no
//! transpose; and [`norms`] made of them, by [`fused`] programs.
//!
//! The feature `ndarray` makes views of the arrays of that crate.
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
//! **How.** Axes are sorted by how far apart their elements lie, and neighbours of one kind become
//! one. The innermost axes are a *block* of some hundred to some thousand elements that lie side by
//! side. Blocks are added element by element, vector by vector, over all reduced axes outside; only
//! then are the axes reduced that lie within the block (`plan.rs`). Long rows with another reduced axis
//! outside of them are reduced one by one, and their results are added. This is the plan of
//! `tilewright-lower`'s kernels, for a machine with caches.
//!
//! **Order.** What is added in which order follows from dims, strides and types alone, so a result is
//! the same to the last bit for every [`Pool`] and number of threads. Sums of floats go through
//! levels of at most 16 terms, so errors grow with the logarithm of the number of terms.

#![allow(clippy::duplicate_mod, reason = "loops over vectors are compiled for several levels")]

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
