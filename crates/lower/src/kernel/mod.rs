//! Kernels: small programs for a vector machine, as text that people read.
//!
//! ```text
//! kernel sum for tpu-like
//! in x: f32[6291456]
//! out y: f32[3072]
//! vmem xs: f32[786432] twice
//! vmem acc: f32[3072]
//! fn add(a: f32, b: f32) {
//!   c: f32 = add a, b
//!   return c
//! }
//! {
//!   stream xs <- x[1572864*n + 786432*b] of 786432 for n in 4, b in 2 {
//!     ...
//!       v: f32 x 1024 = load xs[24576*h + 3072*w + 1024*c]
//!       s = call add(s, v)
//! ```
//!
//! Memory is flat: an array lies in a buffer as its layout says, padding
//! included, and addresses count elements. Buffers in main memory (`in`, `out`)
//! are only copied from and to; buffers in vector memory (`vmem`) are loaded
//! from and stored to, a whole vector at a time. What a vector holds is said by
//! the *position* `p` in it, cut into digits where that is needed: `p%128` is
//! the lane and `p/128%8` the row of a vector of 8x128.
//!
//! Registers are variables: they are set again and again, and hold vectors of
//! one type.

pub(crate) mod build;
mod check;
mod expr;
mod parse;
mod print;
mod scalar;

use smallvec::SmallVec;
use smol_str::SmolStr;
use tilewright_ir::{ElementType, Literal, Op};

pub use check::{Flaw, check};
pub use expr::Expr;
pub use parse::{ParseError, parse};
pub use print::lines;

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident;)*) => {
        $(
            $(#[$doc])*
            #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
            pub struct $name(pub usize);
        )*
    };
}

ids! {
    /// One of [`Kernel::buffers`].
    BufferId;
    /// One of [`Kernel::registers`].
    RegisterId;
    /// One of [`Kernel::indices`].
    IndexId;
    /// One of [`Kernel::functions`].
    FunctionId;
}

/// A program for a vector machine.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Kernel {
    /// What it is called.
    pub name: SmolStr,
    /// The target that it is made for.
    pub target: SmolStr,
    /// The memory that it works on.
    pub buffers: Vec<Buffer>,
    /// The functions that it applies to vectors, element by element.
    pub functions: Vec<Function>,
    /// The names of the indices of its loops.
    pub indices: Vec<SmolStr>,
    /// Its vector registers.
    pub registers: Vec<Register>,
    /// What it does.
    pub body: Vec<Statement>,
}

/// Memory for elements of one type.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Buffer {
    /// What it is called.
    pub name: SmolStr,
    /// Where it is.
    pub space: Space,
    /// What it holds.
    pub element_type: ElementType,
    /// How many elements, padding included.
    pub len: u64,
}

/// Where a buffer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Space {
    /// Main memory that the caller fills.
    In,
    /// Main memory that the caller reads.
    Out,
    /// Main memory for what lies between.
    Workspace,
    /// Vector memory.
    Vmem,
    /// Vector memory that is filled while its other half is read.
    VmemTwice,
}

/// A register's name and type.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Register {
    /// What it is called.
    pub name: SmolStr,
    /// What its elements are.
    pub element_type: ElementType,
    /// How many of them it holds.
    pub len: u64,
}

/// A function of scalars, applied to vectors element by element: the
/// computation of a reduce, for one.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Function {
    /// What it is called.
    pub name: SmolStr,
    /// Its parameters first, then every value it computes.
    pub values: Vec<FunctionValue>,
    /// How many of these are parameters.
    pub parameters: usize,
    /// What it computes, one value after the other.
    pub steps: Vec<FunctionStep>,
    /// What it returns.
    pub results: Vec<usize>,
}

/// A value of a function.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FunctionValue {
    /// What it is called.
    pub name: SmolStr,
    /// What it is.
    pub element_type: ElementType,
}

/// How a value of a function comes about.
#[derive(Clone, Debug, PartialEq)]
pub enum FunctionStep {
    /// A constant.
    Constant(Literal),
    /// An elementwise op of values before it.
    Apply(Op, SmallVec<[usize; 3]>),
}

/// A place in a buffer: its address in elements.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Place {
    /// Which buffer.
    pub buffer: BufferId,
    /// Where in it.
    pub at: Expr,
}

/// A digit of the position in a vector: `position / stride % extent`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Digit {
    /// Positions between neighbours.
    pub stride: u64,
    /// How many values it has.
    pub extent: u64,
}

/// The positions at which a digit is between two bounds.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Bound {
    /// The digit.
    pub digit: Digit,
    /// The least value that counts.
    pub from: Expr,
    /// The least value after those that count.
    pub to: Expr,
}

/// The positions at which all bounds hold: all, if there are none.
pub type Mask = SmallVec<[Bound; 1]>;

/// One thing that a kernel does.
#[derive(Clone, Debug, PartialEq)]
pub enum Statement {
    /// Does the same for every value of an index from 0 on.
    For {
        /// The index.
        index: IndexId,
        /// How many values.
        count: Expr,
        /// What is done.
        body: Vec<Statement>,
    },
    /// Does something if two numbers are equal.
    When {
        /// The numbers.
        equal: [Expr; 2],
        /// What is done.
        body: Vec<Statement>,
    },
    /// Loops, the last index fastest, over blocks that come from main memory: the
    /// next block is copied while one is worked on.
    Stream {
        /// The indices with how many values each has.
        grid: Vec<(IndexId, u64)>,
        /// What is copied.
        blocks: Vec<Block>,
        /// What is done with it.
        body: Vec<Statement>,
    },
    /// Starts to copy between main memory and vector memory; of no elements or fewer,
    /// nothing, so that what is cut into blocks may be padding in the last ones.
    Copy {
        /// Where to.
        to: Place,
        /// Where from.
        from: Place,
        /// How many elements.
        len: Expr,
    },
    /// Waits for the copies from and to a buffer.
    Wait(BufferId),
    /// Sets registers.
    Set {
        /// The registers.
        registers: SmallVec<[RegisterId; 1]>,
        /// To what.
        value: Value,
    },
    /// Stores a register's elements, those under the mask, side by side.
    Store {
        /// Where the first goes.
        to: Place,
        /// The register.
        from: RegisterId,
        /// Which elements.
        mask: Mask,
    },
}

/// What a stream copies for every step of its grid: a run of memory, or several.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Block {
    /// Where in vector memory a run goes.
    pub to: Place,
    /// Where in main memory it begins.
    pub from: Place,
    /// How many elements it has.
    pub len: Expr,
    /// One run for all values of these indices, which only the places depend on.
    pub each: Vec<(IndexId, Expr)>,
}

/// What registers are set to.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// Elements side by side in vector memory, a whole vector of them; those not
    /// under the mask are not read, and are the literal.
    Load {
        /// Where the first is.
        from: Place,
        /// Which are read.
        mask: Mask,
        /// What the others are.
        otherwise: Option<Literal>,
    },
    /// One element of vector memory, everywhere.
    Scalar(Place),
    /// A constant, everywhere.
    Splat(Literal),
    /// Elements from anywhere in vector memory: at each position the one at an
    /// address that depends on the position. Those not under the mask are not read,
    /// and are the literal.
    Gather {
        /// Where they are.
        from: Place,
        /// Which are read.
        mask: Mask,
        /// What the others are.
        otherwise: Option<Literal>,
    },
    /// Integers that depend on the position, wrapped around to the register's type.
    Positions(Expr),
    /// Whether positions are under a mask.
    Under(Mask),
    /// An elementwise op.
    Apply(Op, SmallVec<[RegisterId; 3]>),
    /// A function, element by element.
    Call(FunctionId, SmallVec<[RegisterId; 4]>),
    /// The elements along a digit, combined by a function of two of them: every
    /// position along it gets the result.
    Fold {
        /// The function of as many accumulators, then as many elements.
        by: FunctionId,
        /// The digit.
        along: Digit,
        /// What is combined.
        of: SmallVec<[RegisterId; 2]>,
    },
    /// The element at one value of a digit, at all its values.
    Spread {
        /// What is spread.
        of: RegisterId,
        /// The digit.
        along: Digit,
        /// Its value.
        at: Expr,
    },
    /// A part of a register that holds several times as many elements.
    Part {
        /// The register.
        of: RegisterId,
        /// Which of its parts.
        at: Expr,
    },
}

/// The number after another, as [`Bound::to`] of a single value.
pub fn after(from: &Expr) -> Expr {
    match from {
        Expr::Constant(value) => Expr::Constant(value.saturating_add(1)),
        other => Expr::Sum(Box::new([other.clone(), Expr::Constant(1)])),
    }
}

impl Digit {
    /// The value at a position.
    pub fn at(self, position: u64) -> u64 {
        position / self.stride.max(1) % self.extent.max(1)
    }

    /// The value at the position that an expression is evaluated at; `None` where 64
    /// signed bits do not hold the digit's numbers.
    pub fn expr(self) -> Option<Expr> {
        let (stride, extent) = (self.stride.try_into().ok()?, self.extent.try_into().ok()?);
        Some(Expr::Position.quotient(stride).remainder(extent))
    }
}

impl Value {
    /// The registers that it is computed of.
    pub fn operands(&self) -> impl Iterator<Item = RegisterId> + '_ {
        let several: &[RegisterId] = match self {
            Self::Load { .. }
            | Self::Gather { .. }
            | Self::Scalar(_)
            | Self::Splat(_)
            | Self::Positions(_)
            | Self::Under(_) => &[],
            Self::Apply(_, operands) => operands,
            Self::Call(_, operands) => operands,
            Self::Fold { of, .. } => of,
            Self::Spread { of, .. } | Self::Part { of, .. } => std::slice::from_ref(of),
        };
        several.iter().copied()
    }
}

impl Kernel {
    /// A buffer.
    pub fn buffer(&self, id: BufferId) -> Option<&Buffer> {
        self.buffers.get(id.0)
    }

    /// A register.
    pub fn register(&self, id: RegisterId) -> Option<&Register> {
        self.registers.get(id.0)
    }

    /// A function.
    pub fn function(&self, id: FunctionId) -> Option<&Function> {
        self.functions.get(id.0)
    }
}

impl Function {
    /// The types of its parameters.
    pub fn parameter_types(&self) -> impl Iterator<Item = ElementType> + '_ {
        self.values.iter().take(self.parameters).map(|value| value.element_type)
    }

    /// The types of its results.
    pub fn result_types(&self) -> impl Iterator<Item = ElementType> + '_ {
        self.results.iter().filter_map(|&value| Some(self.values.get(value)?.element_type))
    }
}
