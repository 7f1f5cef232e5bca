//! Programs of `tilewright-native` for what modules compute on this CPU: whole modules (`run`), and
//! custom calls of XLA ([`CallProgram`]).

mod call;
mod module;
mod places;
mod program;
mod reduce;

pub use call::{CallProgram, sealed};
pub use module::{Ran, run};
