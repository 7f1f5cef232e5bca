//! Sums of products and of powers with fewer sweeps over the array that is summed.
//!
//! [`factored_sums`] is T3 and [`shifted_moments`] T4; [`product`] and [`factor`] are the
//! algebra below them, [`bound`], [`scale`] and [`sign`] what it has to know about values.

pub mod bound;
mod build;
pub mod factor;
pub mod factored_sums;
pub mod product;
pub mod scale;
pub mod shifted_moments;
pub mod sign;
