//! Why something has no kernel: where it is, and what kind of reason it has.

use std::borrow::Cow;
use std::fmt;

use thiserror::Error;
use tilewright_ir::{ElementType, Opcode};

use crate::plan::PlanError;

/// Why there is no kernel, and where.
///
/// `Display` gives one line: the instruction, the kernel where it has another name, and
/// the reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LowerError {
    /// Where the reason lies.
    pub site: Site,
    /// What it is.
    pub kind: ErrorKind,
}

/// Where the reason for an error lies, as far as that is known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Site {
    /// The name of the instruction; of the module, where it is all of that.
    pub instruction: Option<String>,
    /// The name of the kernel that was being made.
    pub kernel: Option<String>,
}

/// The kinds of reasons, as callers tell them apart.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The program asks for what lowering does not do.
    #[error(transparent)]
    Unsupported(#[from] Unsupported),
    /// Sizes, or numbers of instructions, beyond what is counted.
    #[error(transparent)]
    TooLarge(#[from] TooLarge),
    /// The target has too little vector memory, or too few registers.
    #[error(transparent)]
    NoRoom(#[from] NoRoom),
    /// An invariant of lowering does not hold, or a group was asked for that is none.
    #[error("a bug in lowering, please report it: {0}")]
    Internal(Cow<'static, str>),
}

/// What lowering does not do, and what to do instead.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Unsupported {
    /// Dims that are only known at run time.
    #[error("it has dynamic dims; give it dims that are known before it runs")]
    Dynamic,
    /// Tiles that do not make whole vectors.
    #[error("its layout's tiles do not make whole vectors; give it tiles of the target, or none")]
    Tiles,
    /// A tile like `T(*,128)` makes one axis of dims that are kept and dims
    /// that are reduced.
    #[error(transparent)]
    Combined(PlanError),
    /// Arrays that do not lie alike.
    #[error("its arrays do not lie alike in memory: give them one layout, and types of one width")]
    Unlike,
    /// Results of a type of which a vector holds more elements than of any array.
    #[error("its results lie in longer vectors than its arrays; convert them in an op of its own")]
    Narrow,
    /// A computation whose identity is not known, where one is needed.
    #[error("no identity of its computation is known, which its strategy needs; use `fused`")]
    NoIdentity,
    /// Indices that are not those along rows of all that is reduced.
    #[error(
        "it counts along its reduced dims in other steps than along rows of all of them; use \
         `fused`"
    )]
    Uneven,
    /// A computation of a reduce that is no function of scalars.
    #[error(
        "its computation is not elementwise, or takes other types; write it with elementwise ops \
         of the types that are reduced"
    )]
    Computation,
    /// A reduce of several arrays within a kernel that does more.
    #[error("it reduces several arrays at once, which only a kernel of its own does")]
    SeveralArrays,
    /// A reduce of an array without elements within a kernel that does more.
    #[error("it reduces an array without elements, which only a kernel of its own does")]
    Empty,
    /// A reduce that begins with what its own kernel would compute.
    #[error("its init is computed in the same kernel; make it a constant or a parameter")]
    Init,
    /// An op that kernels do not compute.
    #[error("no kernel computes {}; leave it to the host", .0.name())]
    Op(Opcode),
    /// A top-k that gives something else than elements and places.
    #[error("it does not give elements with their places; use the op `topk`")]
    NoSelection,
    /// Results of a top-k that are not those of its array.
    #[error(
        "its array and its results do not agree: they have the same dims but for the last, and \
         are elements of one type and places of s32"
    )]
    Selection,
    /// More selected elements of a row than can sensibly be looked for one by one.
    #[error(
        "it selects {count} elements of each row, which takes as many passes over the row, and \
         {most} are the most: sort it"
    )]
    Selected {
        /// How many are selected.
        count: u64,
        /// The most that are.
        most: u64,
    },
    /// Elements that no kernel puts in order.
    #[error("no kernel puts elements of type {0} in order; convert them")]
    Unordered(ElementType),
}

/// Beyond what lowering counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum TooLarge {
    /// Sizes that 64 bits do not count.
    #[error("it has more than 2^64 elements, padding included")]
    Elements,
    /// Rows whose places are no `s32`.
    #[error("its rows have more elements than 32 bits count")]
    Rows,
    /// More instructions than one kernel has.
    #[error("it is more than {0} instructions as one kernel")]
    Instructions(usize),
}

/// What a target has too little of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum NoRoom {
    /// What is kept of a block beyond what vector memory holds.
    #[error("the results that are worked on at one time do not fit the vector memory")]
    Results,
    /// Rows of which some elements are selected, and these, beyond what vector memory
    /// holds.
    #[error("whole rows and what is selected of them do not fit the vector memory")]
    Rows,
    /// More values at one time than there are registers.
    #[error("its computation takes {used} vector registers, and there are {has}")]
    Registers {
        /// How many are in use at one time.
        used: u64,
        /// How many there are.
        has: u64,
    },
}

impl LowerError {
    /// Whether it is a bug of lowering, and not of the program or the target.
    pub fn is_internal(&self) -> bool {
        matches!(self.kind, ErrorKind::Internal(_))
    }

    /// The error at an instruction, where none is known yet: the first place that is
    /// named is the nearest.
    #[must_use]
    pub(crate) fn at(mut self, instruction: &str) -> Self {
        self.site.instruction.get_or_insert_with(|| instruction.to_owned());
        self
    }

    /// The error in a kernel, where none is known yet.
    #[must_use]
    pub(crate) fn in_kernel(mut self, kernel: &str) -> Self {
        self.site.kernel.get_or_insert_with(|| kernel.to_owned());
        self
    }
}

/// A broken invariant of lowering.
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
