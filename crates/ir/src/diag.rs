//! Diagnostics as data: an error and its place, without text positions.
//!
//! The text crate prints them, with a caret if the source is known.

use std::fmt;

use crate::entity::{CompId, InstId};
use crate::module::Module;

/// The part of a module that a diagnostic concerns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DiagnosticPlace {
    /// The module as a whole.
    Module,
    /// A computation.
    Computation(CompId),
    /// An instruction.
    Instruction(InstId),
}

/// A stable code of the verifier, printed as `V012`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Code(pub u16);

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "V{:03}", self.0)
    }
}

/// An error of a module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// The check that failed.
    pub code: Code,
    /// The place of the error.
    pub place: DiagnosticPlace,
    /// The error and the valid alternative, in one sentence.
    pub message: String,
}

impl Diagnostic {
    /// Returns the message with its code and the name of its place.
    pub fn describe(&self, module: &Module) -> String {
        let Self { code, place, message } = self;
        match place {
            DiagnosticPlace::Module => format!("{code}: module `{}`: {message}", module.name),
            DiagnosticPlace::Computation(id) => {
                format!("{code}: computation `{}`: {message}", module.computation(*id).name())
            }
            DiagnosticPlace::Instruction(id) => {
                format!("{code}: instruction `{}`: {message}", module.name_of(*id))
            }
        }
    }
}
