//! Errors of evaluations.

use tilewright_ir::{InstId, Module, Opcode};

/// Why a module could not be evaluated.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EvalError {
    /// The op, or this form of it, has no evaluation here.
    #[error("`{instruction}`: `{op}` cannot be evaluated: {what}")]
    Unsupported {
        /// The instruction.
        instruction: String,
        /// Its op.
        op: Opcode,
        /// The unsupported part.
        what: String,
    },
    /// A constant whose value the text left out.
    #[error(
        "`{instruction}` is a constant without its value (`{{...}}`); print the module with large constants"
    )]
    Elided {
        /// The constant.
        instruction: String,
    },
    /// Another number of inputs than the entry has parameters.
    #[error("the entry takes {expected} parameters, but {given} inputs were given")]
    InputCount {
        /// Parameters of the entry computation.
        expected: usize,
        /// Inputs given.
        given: usize,
    },
    /// An input of another shape than its parameter.
    #[error("parameter {index} (`{instruction}`) is {expected}, but the input is {given}")]
    InputShape {
        /// The parameter's number.
        index: usize,
        /// The parameter.
        instruction: String,
        /// Its shape.
        expected: String,
        /// The input's shape.
        given: String,
    },
    /// The values alive at one time would take too much memory.
    #[error(
        "`{instruction}` would need {needed} bytes beside {live} in use; the limit is {limit} bytes (raise `max_bytes`, on the command line `--max-bytes`)"
    )]
    Memory {
        /// The instruction.
        instruction: String,
        /// Bytes it asked for.
        needed: u64,
        /// Bytes in use before.
        live: u64,
        /// The limit.
        limit: u64,
    },
    /// The evaluation takes too long.
    #[error(
        "the evaluation took {limit} steps and stopped at `{instruction}` (raise `max_steps`, on the command line `--max-steps`, if it is not an endless loop)"
    )]
    Steps {
        /// The instruction that waited.
        instruction: String,
        /// The limit.
        limit: u64,
    },
    /// A loop comes back to a state that it had, and what it does depends on nothing else.
    #[error("the loop `{instruction}` never ends: its state repeats")]
    Endless {
        /// The loop.
        instruction: String,
    },
    /// Another thread cancelled the evaluation: see
    /// [`Progress::cancel`](crate::Progress::cancel).
    #[error("the evaluation was cancelled at `{instruction}`")]
    Cancelled {
        /// The instruction that waited.
        instruction: String,
    },
    /// Computations call each other too deeply.
    #[error("`{instruction}` calls deeper than {limit} computations; inline some of them")]
    Depth {
        /// The innermost call.
        instruction: String,
        /// The limit.
        limit: usize,
    },
    /// Devices wait for each other, or for one that has ended.
    #[error(
        "`{instruction}` waits for devices that do not come: all wait, or have ended; does every \
         device of a group run the same collectives in the same order?"
    )]
    Deadlock {
        /// The instruction at which the first device waits.
        instruction: String,
    },
    /// The devices are more than can be simulated, or the inputs are not of as
    /// many.
    #[error("{0}")]
    Devices(String),
    /// The module is not as its verifier promises: a bug.
    #[error("`{instruction}`: {what}; this is a bug in tilewright, please report it")]
    Internal {
        /// The instruction.
        instruction: String,
        /// The finding.
        what: &'static str,
    },
}

impl EvalError {
    /// Returns the instruction that could not be evaluated, where it is one.
    pub fn instruction(&self) -> Option<&str> {
        match self {
            Self::Unsupported { instruction, .. }
            | Self::Elided { instruction }
            | Self::InputShape { instruction, .. }
            | Self::Memory { instruction, .. }
            | Self::Steps { instruction, .. }
            | Self::Endless { instruction }
            | Self::Cancelled { instruction }
            | Self::Depth { instruction, .. }
            | Self::Deadlock { instruction }
            | Self::Internal { instruction, .. } => Some(instruction),
            Self::InputCount { .. } | Self::Devices(_) => None,
        }
    }
}

/// An [`EvalError`] that does not know its instruction yet: ops return it, and
/// the frame that runs them adds the name.
#[derive(Debug)]
pub(crate) enum Fault {
    Unsupported(String),
    Elided,
    Memory {
        needed: u64,
        live: u64,
        limit: u64,
    },
    Steps {
        limit: u64,
    },
    Endless,
    Cancelled,
    Depth {
        limit: usize,
    },
    Internal(&'static str),
    Deadlock,
    /// Another device failed, and knows why.
    Abandoned,
    /// It happened further inside and has its name already.
    Named(Box<EvalError>),
}

impl Fault {
    /// Returns the error, blamed on an instruction unless it knows better.
    pub(crate) fn at(self, module: &Module, id: InstId) -> EvalError {
        let instruction = module.name_of(id).to_owned();
        match self {
            Self::Unsupported(what) => {
                EvalError::Unsupported { instruction, op: module.opcode(id), what }
            }
            Self::Elided => EvalError::Elided { instruction },
            Self::Memory { needed, live, limit } => {
                EvalError::Memory { instruction, needed, live, limit }
            }
            Self::Steps { limit } => EvalError::Steps { instruction, limit },
            Self::Endless => EvalError::Endless { instruction },
            Self::Cancelled => EvalError::Cancelled { instruction },
            Self::Depth { limit } => EvalError::Depth { instruction, limit },
            Self::Internal(what) => EvalError::Internal { instruction, what },
            Self::Deadlock => EvalError::Deadlock { instruction },
            Self::Abandoned => EvalError::Internal { instruction, what: ABANDONED },
            Self::Named(error) => *error,
        }
    }
}

impl From<EvalError> for Fault {
    fn from(error: EvalError) -> Self {
        Self::Named(Box::new(error))
    }
}

/// The result of an op.
pub(crate) type Outcome<T> = Result<T, Fault>;

/// A data type that the op's code did not expect after its checks.
pub(crate) const WRONG_STORAGE: Fault = Fault::Internal("a value is not stored as its type is");

/// The message on a device that stopped because another failed; the error of the other is
/// reported.
pub(crate) const ABANDONED: &str = "another device failed";
