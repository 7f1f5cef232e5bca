//! Programs of `tilewright-native` for what modules compute on this CPU: whole modules (`run`), and
//! custom calls of XLA ([`CallProgram`]).

mod call;
#[cfg(feature = "native")]
mod module;
#[cfg(feature = "native")]
mod places;
mod program;
#[cfg(feature = "native")]
mod reduce;

pub use call::{CallProgram, sealed};
#[cfg(feature = "native")]
pub use module::{Ran, run};
