//! A simulated vector machine that runs kernels and checks its rules.
//!
//! - Memory starts poisoned: reading an element that was never written is an error.
//! - A vector that does not begin on a vector boundary is an error, not slow.
//! - An address out of bounds is an error, and so is access to memory while a copy of it is
//!   under way.
//!
//! [`Machine::run`] returns the outputs of the kernel, its measurements ([`Counters`]) and its
//! busy periods ([`Event`]). The target defines the cycles: see [`clock`](mod@clock). Nothing
//! depends on the host's clock or threads.

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
