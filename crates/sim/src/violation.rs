//! Violations of the machine's rules by kernels.

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
    /// The violation.
    pub fault: Fault,
}

/// A violation by a statement. Addresses count elements of the buffer.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Fault {
    /// A vector crosses a vector boundary.
    #[error("a vector at {buffer}[{address}]: they begin on multiples of {unit} elements")]
    Misaligned {
        /// The buffer.
        buffer: SmolStr,
        /// The address of the vector.
        address: i64,
        /// The required divisor of the address.
        unit: u64,
    },
    /// An address is past the end, or before the start.
    #[error("{buffer}[{address}] does not exist: the buffer has {len} elements")]
    OutOfBounds {
        /// The buffer.
        buffer: SmolStr,
        /// The address.
        address: i64,
        /// Number of elements of the buffer.
        len: u64,
    },
    /// An element is read that was never written.
    #[error("{buffer}[{address}] is read before it is written")]
    Uninitialised {
        /// The buffer.
        buffer: SmolStr,
        /// The address.
        address: i64,
    },
    /// An element is accessed while a copy under way uses it.
    #[error("{buffer}[{address}] is used while it is copied: wait for the copy")]
    Race {
        /// The buffer.
        buffer: SmolStr,
        /// The address.
        address: i64,
    },
    /// The buffers need more vector memory than the machine has.
    #[error("its buffers take {bytes} bytes of vector memory, and the machine has {has}")]
    OverCapacity {
        /// Bytes needed; saturates at `u64::MAX`.
        bytes: u64,
        /// Bytes available.
        has: u64,
    },
    /// The buffers need more main memory than the caller allows.
    #[error("its buffers take {bytes} bytes of main memory, and the limit is {limit}")]
    MainMemory {
        /// Bytes needed; saturates at `u64::MAX`.
        bytes: u64,
        /// The limit in bytes.
        limit: u64,
    },
    /// The kernel needs more vector registers than the machine has.
    #[error("it keeps {used} vectors in registers, and the machine has {has}")]
    OutOfRegisters {
        /// Number of registers live at one time.
        used: u64,
        /// Number of registers of the machine.
        has: u64,
    },
    /// An input does not match the kernel's buffer.
    #[error("input {index} must be {wanted} elements of the type of `{buffer}`")]
    Input {
        /// The number of the input.
        index: usize,
        /// Its buffer.
        buffer: SmolStr,
        /// Number of elements of the buffer.
        wanted: u64,
    },
    /// A number does not fit in 64 bits.
    #[error("an address or a count that 64 bits do not hold")]
    Overflow,
    /// The arithmetic does not support an op.
    #[error("nobody here computes {0} of these types")]
    NoArithmetic(&'static str),
    /// A register was never set, or an id is not valid; the checker of kernels reports details.
    #[error("it is no sound kernel: {0}")]
    Unsound(&'static str),
    /// The kernel takes more steps than the caller allows.
    #[error("it takes more than {0} steps")]
    TooLong(u64),
}
