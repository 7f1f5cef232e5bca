//! Kernels: small programs for a vector machine, with a readable text form.
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
//! Memory is flat: an array is stored in a buffer in its layout, padding included, and addresses
//! count elements. Buffers in main memory (`in`, `out`) are only the source and the target of
//! copies; buffers in vector memory (`vmem`) are loaded from and stored to, a whole vector at a
//! time. The *position* `p` numbers the elements of a vector and is cut into digits if needed:
//! `p%128` is the lane and `p/128%8` the row of a vector of 8x128.
//!
//! Registers are variables: they can be set repeatedly, and hold vectors of one type.

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
    /// The name.
    pub name: SmolStr,
    /// The name of the target.
    pub target: SmolStr,
    /// The buffers.
    pub buffers: Vec<Buffer>,
    /// The functions that it applies to vectors, element by element.
    pub functions: Vec<Function>,
    /// The names of its loop indices.
    pub indices: Vec<SmolStr>,
    /// Its vector registers.
    pub registers: Vec<Register>,
    /// Its statements.
    pub body: Vec<Statement>,
}

/// Memory for elements of one type.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Buffer {
    /// The name.
    pub name: SmolStr,
    /// The memory that holds it.
    pub space: Space,
    /// The type of its elements.
    pub element_type: ElementType,
    /// Number of elements, padding included.
    pub len: u64,
}

/// The memory that holds a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Space {
    /// Main memory that the caller fills.
    In,
    /// Main memory that the caller reads.
    Out,
    /// Main memory for intermediate values.
    Workspace,
    /// Vector memory.
    Vmem,
    /// Vector memory with two halves: one is filled while the other is read.
    VmemTwice,
}

/// A register's name and type.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Register {
    /// The name.
    pub name: SmolStr,
    /// The type of its elements.
    pub element_type: ElementType,
    /// Number of elements.
    pub len: u64,
}

/// A function of scalars that is applied to vectors element by element, such as the computation
/// of a reduce.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Function {
    /// The name.
    pub name: SmolStr,
    /// The parameters, followed by every computed value.
    pub values: Vec<FunctionValue>,
    /// Number of parameters.
    pub parameters: usize,
    /// The steps, each of which computes one value.
    pub steps: Vec<FunctionStep>,
    /// The values that it returns.
    pub results: Vec<usize>,
}

/// A value of a function.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FunctionValue {
    /// The name.
    pub name: SmolStr,
    /// The type.
    pub element_type: ElementType,
}

/// The computation of a function's value.
#[derive(Clone, Debug, PartialEq)]
pub enum FunctionStep {
    /// A constant.
    Constant(Literal),
    /// An elementwise op on earlier values.
    Apply(Op, SmallVec<[usize; 3]>),
}

/// An address in a buffer.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct BufferAddress {
    /// The buffer.
    pub buffer: BufferId,
    /// The address, in elements.
    pub at: Expr,
}

/// A digit of the position in a vector: `position / stride % extent`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Digit {
    /// Positions between two neighbouring values of the digit.
    pub stride: u64,
    /// Number of values.
    pub extent: u64,
}

/// The positions whose digit is in a range.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Bound {
    /// The digit.
    pub digit: Digit,
    /// The first value of the range.
    pub from: Expr,
    /// The first value after the range.
    pub to: Expr,
}

/// The positions at which all bounds hold; all positions if there are no bounds.
pub type Mask = SmallVec<[Bound; 1]>;

/// A statement of a kernel.
#[derive(Clone, Debug, PartialEq)]
pub enum Statement {
    /// Runs the body for every value of an index, from 0.
    For {
        /// The index.
        index: IndexId,
        /// Number of iterations.
        count: Expr,
        /// The statements of an iteration.
        body: Vec<Statement>,
    },
    /// Runs the body if two numbers are equal.
    When {
        /// The numbers.
        equal: [Expr; 2],
        /// The statements to run.
        body: Vec<Statement>,
    },
    /// Nested loops, the last index fastest, over blocks that are copied from main memory: the
    /// next block is copied while the current one is processed.
    Stream {
        /// The indices, each with its number of values.
        grid: Vec<(IndexId, u64)>,
        /// The blocks to copy.
        blocks: Vec<Block>,
        /// The statements that process a block.
        body: Vec<Statement>,
    },
    /// Starts a copy between main memory and vector memory. A length of 0 or less copies
    /// nothing, so the last blocks of an array may be padding only.
    Copy {
        /// The destination.
        to: BufferAddress,
        /// The source.
        from: BufferAddress,
        /// Number of elements.
        len: Expr,
    },
    /// Waits for the copies from and to a buffer.
    Wait(BufferId),
    /// Sets registers.
    Set {
        /// The registers.
        registers: SmallVec<[RegisterId; 1]>,
        /// The value.
        value: Value,
    },
    /// Stores the elements of a register that are under the mask, at consecutive addresses.
    Store {
        /// The address of the first element.
        to: BufferAddress,
        /// The register.
        from: RegisterId,
        /// The elements to store.
        mask: Mask,
    },
}

/// A run of memory, or several runs, copied for every step of a stream's grid.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Block {
    /// The address of a run in vector memory.
    pub to: BufferAddress,
    /// The address of a run in main memory.
    pub from: BufferAddress,
    /// Number of elements of a run.
    pub len: Expr,
    /// Indices with their numbers of values. One run is copied for each; only the two addresses
    /// depend on these indices.
    pub each: Vec<(IndexId, Expr)>,
}

/// A value that registers are set to.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A whole vector of consecutive elements of vector memory. Elements outside the mask are
    /// not read and equal the literal.
    Load {
        /// The address of the first element.
        from: BufferAddress,
        /// The elements to read.
        mask: Mask,
        /// The value of the other elements.
        otherwise: Option<Literal>,
    },
    /// One element of vector memory, at every position.
    Scalar(BufferAddress),
    /// A constant, at every position.
    Splat(Literal),
    /// Elements from any addresses of vector memory: the address depends on the position.
    /// Elements outside the mask are not read and equal the literal.
    Gather {
        /// The address at each position.
        from: BufferAddress,
        /// The elements to read.
        mask: Mask,
        /// The value of the other elements.
        otherwise: Option<Literal>,
    },
    /// Integers that depend on the position, wrapped to the register's type.
    Positions(Expr),
    /// Whether each position is under a mask.
    Under(Mask),
    /// An elementwise op.
    Apply(Op, SmallVec<[RegisterId; 3]>),
    /// A function, applied element by element.
    Call(FunctionId, SmallVec<[RegisterId; 4]>),
    /// Combines the elements along a digit with a function of two elements; every position along
    /// the digit gets the result.
    Fold {
        /// A function of some accumulators followed by the same number of elements.
        by: FunctionId,
        /// The digit.
        along: Digit,
        /// The registers with the elements.
        of: SmallVec<[RegisterId; 2]>,
    },
    /// Copies the element at one value of a digit to all values of the digit.
    Spread {
        /// The register with the elements.
        of: RegisterId,
        /// The digit.
        along: Digit,
        /// The value of the digit.
        at: Expr,
    },
    /// A part of a register that holds several times as many elements.
    Part {
        /// The register.
        of: RegisterId,
        /// The number of the part.
        at: Expr,
    },
}

/// Returns the expression plus one, as [`Bound::to`] of a single value.
pub fn after(from: &Expr) -> Expr {
    match from {
        Expr::Constant(value) => Expr::Constant(value.saturating_add(1)),
        other => Expr::Sum(Box::new([other.clone(), Expr::Constant(1)])),
    }
}

impl Digit {
    /// Returns the value of the digit at a position.
    pub fn at(self, position: u64) -> u64 {
        position / self.stride.max(1) % self.extent.max(1)
    }

    /// Returns the digit as an expression of the position; `None` if its numbers do not fit in
    /// `i64`.
    pub fn expr(self) -> Option<Expr> {
        let (stride, extent) = (self.stride.try_into().ok()?, self.extent.try_into().ok()?);
        Some(Expr::Position.quotient(stride).remainder(extent))
    }
}

impl Value {
    /// Returns the registers that the value reads.
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
    /// Looks up a buffer.
    pub fn buffer(&self, id: BufferId) -> Option<&Buffer> {
        self.buffers.get(id.0)
    }

    /// Looks up a register.
    pub fn register(&self, id: RegisterId) -> Option<&Register> {
        self.registers.get(id.0)
    }

    /// Looks up a function.
    pub fn function(&self, id: FunctionId) -> Option<&Function> {
        self.functions.get(id.0)
    }
}

impl Function {
    /// Returns the types of its parameters.
    pub fn parameter_types(&self) -> impl Iterator<Item = ElementType> + '_ {
        self.values.iter().take(self.parameters).map(|value| value.element_type)
    }

    /// Returns the types of its results.
    pub fn result_types(&self) -> impl Iterator<Item = ElementType> + '_ {
        self.results.iter().filter_map(|&value| Some(self.values.get(value)?.element_type))
    }
}
