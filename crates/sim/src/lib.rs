//! The machine: runs kernels as they are printed, under its own rules.
//!
//! - Memory starts poisoned: to read an element that nobody wrote is an error.
//! - A vector that does not begin on a vector boundary is an error, not slow.
//! - So is every address out of bounds, and memory that is touched while a copy
//!   of it is under way.
//!
//! [`Machine::run`] gives what the kernel leaves in its outputs, what it took
//! ([`Counters`]) and when ([`Event`]). What a cycle is, the target says: see
//! [`clock`](mod@clock). Nothing depends on the host's clock or its threads.

mod arithmetic;
pub mod clock;
mod machine;
mod memory;
mod stages;
mod value;
mod vector;
mod violation;

pub use arithmetic::{Arithmetic, Lanes};
pub use clock::{Counters, Event, Lane};
pub use machine::{Machine, Ran};
pub use memory::Memory;
pub use stages::{RanStages, run_stages};
pub use value::{memory_of, value_of};
pub use violation::{Fault, Violation};
