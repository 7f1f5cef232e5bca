//! The oracle: evaluates verified HLO modules.
//!
//! ```text
//! evaluation ── devices: a thread for each, and where they hand each other values
//!                 └── frame: one computation's values, each until its last use
//!                       ├── dynamic: shapes that are known only at run time
//!                       ├── region: chains of elementwise ops, a block at a time
//!                       └── eval/: one function per op, found through the table of ops
//!                             ├── elementwise: kernels, one typed loop per op and type
//!                             ├── strides: one way to walk over dims for all that moves
//!                             └── lanes: scalar computations run over many elements at once
//! ```
//!
//! [`compare()`] measures the differences of two results, [`inputs`] makes inputs from a seed,
//! [`npz`] reads and writes them, [`views`] reads parts of them.
//!
//! # Unsupported instructions
//!
//! [`EvalError::Unsupported`] names the instruction and the unsupported part: custom calls that
//! are unknown here or have more than one valid result. `docs/oracle.md` lists ops, types and
//! custom calls, with the reference that confirms each.
//!
//! # Dims known only at run time
//! A value has actual dims within the bounds of its shape (`<=8`, `?`), and so have results. If
//! operands do not determine the dims, or disagree, that is an error.
//!
//! # Devices
//! [`Evaluation`] runs a program on several simulated replicas and partitions. Each is a thread
//! that waits for the others where they exchange values. The host provides the infeed and takes
//! the outfeed.
//!
//! # Observation
//! An [`Observer`] attached to an [`Evaluation`] gets every instruction with its time and its
//! value; a [`Progress`] shows the progress to another thread.
//!
//! # Accuracy
//! Integers, choices and moves are exact, as are the float ops `+ - * /`,
//! `sqrt`, `remainder` and conversions (correctly rounded), of floats of 4 to 8
//! bits, too. Elementary functions
//! are computed in `f64`, whose functions are within about one unit in the last
//! place, and rounded once to the type of the elements; so are products, quotients
//! and functions of complex numbers, part by part. Batch norms, transforms,
//! `cholesky` and `triangular-solve` are computed in `f64` and rounded once.
//! Sums and products of floats (reductions, windows, dots, convolutions) are accumulated in `f64`
//! and rounded once, whatever the type of the elements, in a fixed order, so
//! that they are at least as accurate as any order XLA may choose.

pub mod algebra;
pub mod compare;
mod delegate;
mod devices;
mod dynamic;
mod elementwise;
mod error;
mod eval;
mod evaluation;
mod frame;
pub mod inputs;
#[doc(hidden)]
pub mod inside;
mod jobs;
mod lanes;
mod limits;
mod nearness;
mod noise;
pub mod npz;
mod nudge;
mod observe;
mod ranges;
mod region;
mod rounding;
mod strides;
mod value;
pub mod views;
mod widened;

use tilewright_ir::{Literal, Verified};

pub use compare::{CompareError, Comparison, Difference, Slack, Tolerance, Tolerances, compare};
pub use delegate::Delegate;
pub use devices::{
    Devices, MOST_DEVICES, join_rows, shape_of_rows, split_rows, takes_parts, tells_devices_apart,
};
pub use elementwise::Elementwise;
pub use error::EvalError;
pub use evaluation::{Evaluation, Outputs, check_precision};
pub use inputs::{InputError, InputKind, RandomInputs, inputs_for};
pub use limits::{Limits, WORK_PER_STEP};
pub use nearness::{Coverage, Growth, as_near, float_elements};
pub use nudge::{Movable, Move, nudged};
pub use observe::{BranchCounts, Observer, Progress, Seen};
pub use rounding::{Inexact, Rounding};
pub use widened::{WidenError, widened, widened_literal};

/// Evaluates a module's entry computation on its parameters' values, on a
/// single device. [`Evaluation`] does more.
///
/// # Errors
/// Returns an error if the inputs do not fit the parameters, a limit is exceeded, or the module
/// uses something that has no evaluation here; the error names the instruction.
pub fn evaluate(
    module: &Verified,
    inputs: &[Literal],
    limits: &Limits,
) -> Result<Literal, EvalError> {
    let evaluation = Evaluation::new(module).limits(*limits);
    let mut results = evaluation.run(std::slice::from_ref(&inputs))?;
    let only = results.pop().ok_or(EvalError::Devices("there is no device".into()))?;
    Ok(only.output)
}
