//! The oracle: evaluates verified HLO modules.
//!
//! ```text
//! evaluate ── frame: one computation's values, each until its last use
//!                │
//!                └── eval/: one function per op, found through the table of ops
//!                      ├── elementwise: kernels, one typed loop per op and type
//!                      ├── strides: one way to walk over dims for all that moves
//!                      └── lanes: scalar computations run over many elements at once
//! ```
//!
//! [`compare()`] says how far two results are apart, [`inputs`] makes inputs from
//! a seed, [`npz`] reads and writes them.
//!
//! # What cannot be evaluated
//! [`EvalError::Unsupported`] names the instruction and what of it is not
//! supported: values of dims known only at run time (`<=8`, `?`); arithmetic of
//! floats of 8 bits and less and of integers narrower than a byte, which only
//! move; ops between devices and asynchronous ones; transfers, infeed and
//! outfeed; custom calls; random numbers; `ragged-dot`, `scaled-dot`, `scan`
//! and `stochastic-convert`.
//!
//! # Accuracy
//! Integers, choices and moves are exact, as are the float ops `+ - * /`,
//! `sqrt`, `remainder` and conversions (correctly rounded). Elementary functions
//! are computed in `f64`, whose functions are within about one unit in the last
//! place, and rounded once to `f32`, `f16` or `bf16`; so are products, quotients
//! and functions of complex numbers, part by part. Batch norms, transforms,
//! `cholesky` and `triangular-solve` are computed in `f64` and rounded once.
//! Sums and products of floats (reductions, windows, dots, convolutions) are accumulated in `f64`
//! and rounded once, whatever the type of the elements, in a fixed order, so
//! that they are at least as accurate as any order XLA may choose.

pub mod compare;
mod error;
mod eval;
mod frame;
pub mod inputs;
mod lanes;
mod limits;
pub mod npz;
mod strides;
mod value;

use smallvec::SmallVec;
use tilewright_ir::{Literal, Shape, Verified};

pub use compare::{
    CompareError, Comparison, Difference, Slack, Tolerance, Tolerances, compare, compare_with,
};
pub use error::EvalError;
pub use inputs::{InputError, InputKind, inputs_for, inputs_within};
pub use limits::{Limits, WORK_PER_STEP};

use error::Fault;
use frame::Evaluator;
use value::Value;

/// Evaluates a module's entry computation on its parameters' values.
///
/// # Errors
/// If the inputs do not fit the parameters, a limit is exceeded, or the module
/// uses something that has no evaluation here; the error names the instruction.
pub fn evaluate(
    module: &Verified,
    inputs: &[Literal],
    limits: &Limits,
) -> Result<Literal, EvalError> {
    let entry = module.entry().ok_or(EvalError::Internal {
        instruction: String::new(),
        what: "the module has no entry",
    })?;
    let computation = module.computation(entry);
    let parameters = computation.parameters();
    if parameters.len() != inputs.len() {
        let (expected, given) = (parameters.len(), inputs.len());
        return Err(EvalError::InputCount { expected, given });
    }
    let mut evaluator = Evaluator::new(module, *limits);
    let mut arguments = SmallVec::new();
    for (index, (&id, input)) in parameters.iter().zip(inputs).enumerate() {
        check_input(module, index, module.shape(id), input)?;
        let value = Value::from_literal(input, &evaluator.ledger);
        arguments.push(value.map_err(|fault| fault.at(module, id))?);
    }
    let root = computation.root().or(parameters.first().copied());
    let blame = |fault: Fault| match root {
        Some(root) => fault.at(module, root),
        None => EvalError::Internal { instruction: String::new(), what: "an empty entry" },
    };
    let result = evaluator.run(entry, arguments).map_err(blame)?;
    // What is alive only for the evaluation is dropped before results leave.
    drop(evaluator);
    let result = result.into_literal();
    result.map_err(|_| blame(Fault::Internal("the result is not a literal")))
}

fn check_input(
    module: &Verified,
    index: usize,
    expected: &Shape,
    input: &Literal,
) -> Result<(), EvalError> {
    let given = input.shape();
    if given.compatible(&expected.without_layout()) {
        return Ok(());
    }
    let entry = module.entry().map(|c| module.computation(c).parameters());
    let name = entry.and_then(|p| p.get(index)).map_or("", |&id| module.name_of(id));
    Err(EvalError::InputShape {
        index,
        instruction: name.to_owned(),
        expected: expected.without_layout().to_string(),
        given: given.to_string(),
    })
}
