//! Rewrites of sums of products and of powers that save memory sweeps over the summed array.
//!
//! [`factored_sums`] is T3, [`shifted_moments`] T4 and [`late_factors`] T5; `guard.rs` tests the last two when a
//! program runs. [`product`] and [`factor`] are the algebra below them; [`bound`], [`scale`] and [`sign`] provide the
//! facts that they need about values.

pub mod bound;
mod build;
pub mod factor;
pub mod factored_sums;
mod guard;
pub mod late_factors;
pub mod product;
pub mod scale;
pub mod shifted_moments;
pub mod sign;
