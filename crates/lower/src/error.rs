//! Why an instruction has no kernel: the place and the kind of the reason.

use std::borrow::Cow;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};

use thiserror::Error;
use tilewright_ir::{ElementType, Opcode};

use crate::plan::PlanError;

/// The reason why there is no kernel, and its place.
///
/// `Display` writes one line: the instruction, the kernel if its name differs, and the reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LowerError {
    /// The place that the reason concerns.
    pub site: Site,
    /// The reason.
    pub kind: ErrorKind,
}

/// The place of an error, as far as it is known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Site {
    /// The name of the instruction, or of the module if the error concerns the whole module.
    pub instruction: Option<String>,
    /// The name of the kernel that was being generated.
    pub kernel: Option<String>,
}

/// The kinds of reasons that callers distinguish.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ErrorKind {
    /// Lowering does not support the program.
    #[error(transparent)]
    Unsupported(#[from] Unsupported),
    /// Sizes or numbers of instructions exceed a limit.
    #[error(transparent)]
    TooLarge(#[from] TooLarge),
    /// The target has too little vector memory or too few registers.
    #[error(transparent)]
    NoRoom(#[from] NoRoom),
    /// Another thread cancelled the lowering.
    #[error("the lowering was cancelled")]
    Cancelled,
    /// An invariant of lowering does not hold, or a group is not valid.
    #[error("a bug in lowering, please report it: {0}")]
    Internal(Cow<'static, str>),
}

/// An op or shape that lowering does not support; each message suggests an alternative.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Unsupported {
    /// Dims that are known only at run time.
    #[error("it has dynamic dims; give it dims that are known before it runs")]
    Dynamic,
    /// The tiles are not whole vectors.
    #[error("its layout's tiles do not make whole vectors; give it tiles of the target, or none")]
    Tiles,
    /// A tile like `T(*,128)` combines kept and reduced dims into one axis.
    #[error(transparent)]
    Combined(PlanError),
    /// The arrays have different layouts.
    #[error("its arrays do not lie alike in memory: give them one layout, and types of one width")]
    Unlike,
    /// A vector holds more elements of the result type than of any array's type.
    #[error("its results lie in longer vectors than its arrays; convert them in an op of its own")]
    Narrow,
    /// The identity of a computation is needed and not known.
    #[error("no identity of its computation is known, which its strategy needs; use `fused`")]
    NoIdentity,
    /// The indices do not count along rows of all reduced dims.
    #[error(
        "it counts along its reduced dims in other steps than along rows of all of them; use \
         `fused`"
    )]
    Uneven,
    /// The computation of a reduce is not a function of scalars.
    #[error(
        "its computation is not elementwise, or takes other types; write it with elementwise ops \
         of the types that are reduced"
    )]
    Computation,
    /// A reduce of several arrays inside a kernel of several instructions.
    #[error("it reduces several arrays at once, which only a kernel of its own does")]
    SeveralArrays,
    /// A reduce of an array without elements inside a kernel of several instructions.
    #[error("it reduces an array without elements, which only a kernel of its own does")]
    Empty,
    /// A reduce whose init is computed by the same kernel.
    #[error("its init is computed in the same kernel; make it a constant or a parameter")]
    Init,
    /// Kernels do not compute this op.
    #[error("no kernel computes {}; leave it to the host", .0.name())]
    Op(Opcode),
    /// A top-k with results other than elements and their indices.
    #[error("it does not give elements with their places; use the op `topk`")]
    NoSelection,
    /// The results of a top-k do not match its array.
    #[error(
        "its array and its results do not agree: they have the same dims but for the last, and \
         are elements of one type and places of s32"
    )]
    Selection,
    /// The top-k selects more elements of each row than one search per element allows.
    #[error(
        "it selects {count} elements of each row, which takes as many passes over the row, and \
         {most} are the most: sort it"
    )]
    Selected {
        /// Number of elements selected per row.
        count: u64,
        /// Largest number of elements that can be selected per row.
        most: u64,
    },
    /// Kernels do not order elements of this type.
    #[error("no kernel puts elements of type {0} in order; convert them")]
    Unordered(ElementType),
}

/// A size or number beyond a limit of lowering.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum TooLarge {
    /// A size does not fit in 64 bits.
    #[error("it has more than 2^64 elements, padding included")]
    Elements,
    /// An index within a row does not fit in `s32`.
    #[error("its rows have more elements than 32 bits count")]
    Rows,
    /// A kernel would have more instructions than the limit.
    #[error("it is more than {0} instructions as one kernel")]
    Instructions(usize),
    /// A kernel would compute values at more indices than the limit, or at longer ones.
    #[error("its elements depend on too many others, or on others in too many steps of indices")]
    Indices,
}

/// The resource that the target has too little of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum NoRoom {
    /// The results held for a block do not fit in vector memory.
    #[error("the results that are worked on at one time do not fit the vector memory")]
    Results,
    /// A row and the elements selected from it do not fit in vector memory.
    #[error("whole rows and what is selected of them do not fit the vector memory")]
    Rows,
    /// More values are live at one time than there are registers.
    #[error("its computation takes {used} vector registers, and there are {has}")]
    Registers {
        /// Number of registers live at one time.
        used: u64,
        /// Number of registers of the target.
        has: u64,
    },
}

impl LowerError {
    /// Checks whether the error is a bug of lowering, not a property of the program or the
    /// target.
    pub fn is_internal(&self) -> bool {
        matches!(self.kind, ErrorKind::Internal(_))
    }

    /// Sets the instruction of the error if it has none. The first caller that sets it is the
    /// nearest to the reason.
    #[must_use]
    pub(crate) fn at(mut self, instruction: &str) -> Self {
        self.site.instruction.get_or_insert_with(|| instruction.to_owned());
        self
    }

    /// Sets the kernel of the error if it has none.
    #[must_use]
    pub(crate) fn in_kernel(mut self, kernel: &str) -> Self {
        self.site.kernel.get_or_insert_with(|| kernel.to_owned());
        self
    }
}

/// Fails if another thread cancelled the lowering.
pub(crate) fn check(cancel: &AtomicBool) -> Result<(), LowerError> {
    if cancel.load(Ordering::Relaxed) { Err(ErrorKind::Cancelled.into()) } else { Ok(()) }
}

/// Returns an error for a broken invariant of lowering.
pub(crate) fn internal(what: impl Into<Cow<'static, str>>) -> LowerError {
    ErrorKind::Internal(what.into()).into()
}

impl fmt::Display for LowerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { site: Site { instruction, kernel }, kind } = self;
        match (instruction, kernel) {
            (Some(instruction), Some(kernel)) if kernel != instruction => {
                write!(f, "`{instruction}` cannot be lowered in kernel `{kernel}`: {kind}")
            }
            (Some(name), _) | (None, Some(name)) => {
                write!(f, "`{name}` cannot be lowered: {kind}")
            }
            (None, None) => write!(f, "{kind}"),
        }
    }
}

impl std::error::Error for LowerError {}

impl From<ErrorKind> for LowerError {
    fn from(kind: ErrorKind) -> Self {
        Self { site: Site::default(), kind }
    }
}

macro_rules! kinds {
    ($($reason:ident),*) => {
        $(
            impl From<$reason> for LowerError {
                fn from(reason: $reason) -> Self {
                    ErrorKind::from(reason).into()
                }
            }
        )*
    };
}

kinds!(Unsupported, TooLarge, NoRoom);

impl From<PlanError> for LowerError {
    fn from(why: PlanError) -> Self {
        match why {
            PlanError::TooLarge => TooLarge::Elements.into(),
            PlanError::Combined => Unsupported::Combined(why).into(),
            PlanError::NoSuchAxis | PlanError::Twice => internal(why.to_string()),
        }
    }
}
