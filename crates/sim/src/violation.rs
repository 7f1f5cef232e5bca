//! What a kernel must not do.

use smol_str::SmolStr;
use thiserror::Error;

/// A rule of the machine that a kernel broke.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("kernel {kernel}, line {line}: {fault}")]
pub struct Violation {
    /// The kernel.
    pub kernel: SmolStr,
    /// The line of its text, from 1.
    pub line: usize,
    /// What it did.
    pub fault: Fault,
}

/// What a statement of a kernel did. Addresses count elements of the buffer.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Fault {
    /// A vector across vector boundaries.
    #[error("a vector at {buffer}[{address}]: they begin on multiples of {unit} elements")]
    Misaligned {
        /// The buffer.
        buffer: SmolStr,
        /// Where the vector begins.
        address: i64,
        /// What the address must be a multiple of.
        unit: u64,
    },
    /// An address past the end, or before the start.
    #[error("{buffer}[{address}] does not exist: the buffer has {len} elements")]
    OutOfBounds {
        /// The buffer.
        buffer: SmolStr,
        /// The address.
        address: i64,
        /// How many elements the buffer has.
        len: u64,
    },
    /// A read of what was never written.
    #[error("{buffer}[{address}] is read before it is written")]
    Uninitialised {
        /// The buffer.
        buffer: SmolStr,
        /// The address.
        address: i64,
    },
    /// A read or write of what a copy under way writes or reads.
    #[error("{buffer}[{address}] is used while it is copied: wait for the copy")]
    Race {
        /// The buffer.
        buffer: SmolStr,
        /// The address.
        address: i64,
    },
    /// More vector memory than the machine has.
    #[error("its buffers take {bytes} bytes of vector memory, and the machine has {has}")]
    OverCapacity {
        /// What they take; the greatest number where 64 bits do not hold it.
        bytes: u64,
        /// What there is.
        has: u64,
    },
    /// More main memory than the caller allows.
    #[error("its buffers take {bytes} bytes of main memory, and the limit is {limit}")]
    MainMemory {
        /// What they take; the greatest number where 64 bits do not hold it.
        bytes: u64,
        /// What is allowed.
        limit: u64,
    },
    /// More vector registers than the machine has.
    #[error("it keeps {used} vectors in registers, and the machine has {has}")]
    OutOfRegisters {
        /// How many are in use at one time.
        used: u64,
        /// How many there are.
        has: u64,
    },
    /// Inputs that are not those of the kernel.
    #[error("input {index} must be {wanted} elements of the type of `{buffer}`")]
    Input {
        /// Which input.
        index: usize,
        /// Its buffer.
        buffer: SmolStr,
        /// How many elements it has.
        wanted: u64,
    },
    /// A number that 64 bits do not hold.
    #[error("an address or a count that 64 bits do not hold")]
    Overflow,
    /// An op that nobody can compute.
    #[error("nobody here computes {0} of these types")]
    NoArithmetic(&'static str),
    /// A register that was never set, or names that nothing bears: the checker of
    /// kernels tells more.
    #[error("it is no sound kernel: {0}")]
    Unsound(&'static str),
    /// More steps than the caller allows.
    #[error("it takes more than {0} steps")]
    TooLong(u64),
}
