//! Functions of front ends that take several ops in HLO: moments, argmax, top-k, diagonals,
//! softmax and norms.
//!
//! Each function adds plain instructions to a [`Builder`](crate::Builder): those of
//! JAX's function with that name, if there is one.
//!
//! - Dims are counted from 0, or from the end if they are negative: -1 is the last.
//! - Operands are arrays of static dims, which may be 0.
//! - Moments are computed in f32 if the operand is f16 or bf16, otherwise in the type of the
//!   operand. Results have the type of the operand unless stated otherwise.
//! - The error for invalid arguments is a [`BuildError`](crate::BuildError) that names
//!   the argument and the reason; instructions added before remain in the builder, without
//!   users.
//!
//! ```
//! use tilewright_ir::composite::{Groups, Norm, group_norm};
//! use tilewright_ir::{Builder, ElementType, Shape};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let mut b = Builder::new("norm");
//! let x = b.parameter("x", Shape::array(ElementType::BF16, [2, 8, 8, 320]))?;
//! let scale = b.parameter("scale", Shape::array(ElementType::F32, [320]))?;
//! let norm = Norm { scale: Some(scale), ..Norm::default() };
//! let y = group_norm(&mut b, x, &[0], Groups { dim: -1, count: 32 }, &norm)?;
//! let module = b.finish(y)?;
//! # assert_eq!(module.instruction_count() > 2, true);
//! # Ok(())
//! # }
//! ```

mod batch_norm;
mod choice;
mod diagonal;
mod norm;
mod operand;
mod softmax;
mod statistics;

pub use batch_norm::{BatchNorm, batch_norm, ghost_batch_norm};
pub use choice::{argmax, argmin, top_k};
pub use diagonal::diagonal;
pub use norm::{Groups, Norm, group_norm, instance_norm, layer_norm, rms_norm, weight_norm};
pub use softmax::{log_softmax, softmax};
pub use statistics::{Variance, mean, variance};
