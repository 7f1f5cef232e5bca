//! What must hold for a module to be run, rewritten or lowered.
//!
//! Every check has a code that does not change, listed in [`CHECKS`]. All
//! errors are reported in one run. What is *not* checked yet: sharding,
//! replica groups, aliasing and schedules, which are carried verbatim.

mod chains;
mod layouts;
mod shapes;
mod structure;

use std::ops::Deref;

use crate::diag::{Code, Diagnostic, Place};
use crate::module::Module;

macro_rules! checks {
    ($($name:ident $code:literal $text:literal;)*) => {
        $(#[doc = $text] pub const $name: Code = Code($code);)*

        /// Every check of the verifier: its code and what it demands.
        pub const CHECKS: &[(Code, &str)] = &[$(($name, $text),)*];
    };
}

checks! {
    NO_ENTRY 1 "the module has an entry computation";
    EMPTY_COMPUTATION 2 "every computation has an instruction";
    DUPLICATE_INSTRUCTION 3 "instruction names are unique in their computation";
    DUPLICATE_COMPUTATION 4 "computation names are unique";
    OPERAND_ORDER 5 "operands stand before their users, in the same computation";
    CALL_ORDER 6 "computations stand before those that call them, so that none calls itself";
    PARAMETERS 7 "parameters are numbered 0, 1, 2 ... without gap or repetition";
    USE_LISTS 8 "use lists agree with operands";
    CONTROL_ORDER 9 "control predecessors stand before the instructions that wait for them";
    OPERAND_COUNT 11 "an op has as many operands as it takes";
    OPERAND 12 "operands have shapes that the op takes";
    ATTRIBUTE 13 "attributes fit the operands";
    RESULT 14 "the declared shape is the one that the op yields";
    NEEDS_SHAPE 15 "the shape is declared where it cannot be inferred";
    CALLEE 16 "called computations take and yield what their caller gives and wants";
    SHAPE 17 "shapes have sizes that fit 64 bits";
    LAYOUT 18 "layouts order every dim once, with sizes and tiles that make sense";
    ENTRY_LAYOUT 19 "the entry layout has the entry's parameters and result";
}

/// A module that passed every check.
#[derive(Clone, Debug)]
pub struct Verified(Module);

impl Verified {
    /// The module, to be changed and verified again.
    pub fn into_inner(self) -> Module {
        self.0
    }
}

impl Deref for Verified {
    type Target = Module;
    fn deref(&self) -> &Module {
        &self.0
    }
}

/// A module that did not pass, with all that is wrong with it.
#[derive(Clone, Debug)]
pub struct Rejected {
    /// The module.
    pub module: Module,
    /// At least one diagnostic, in the order of the module.
    pub diagnostics: Vec<Diagnostic>,
}

impl std::fmt::Display for Rejected {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (i, diagnostic) in self.diagnostics.iter().enumerate() {
            if i > 0 {
                f.write_str("\n")?;
            }
            f.write_str(&diagnostic.describe(&self.module))?;
        }
        Ok(())
    }
}

impl std::error::Error for Rejected {}

/// Checks a module.
///
/// # Errors
/// All that is wrong, with the module given back.
pub fn verify(module: Module) -> Result<Verified, Box<Rejected>> {
    let diagnostics = check(&module);
    if diagnostics.is_empty() {
        Ok(Verified(module))
    } else {
        Err(Box::new(Rejected { module, diagnostics }))
    }
}

/// All that is wrong with a module, in its order.
pub fn check(module: &Module) -> Vec<Diagnostic> {
    let mut report = Report { diagnostics: Vec::new() };
    structure::check(module, &mut report);
    layouts::check(module, &mut report);
    // Shape rules follow operands and calls, so these must make sense first.
    if report.diagnostics.is_empty() {
        shapes::check(module, &mut report);
        chains::check(module, &mut report);
    }
    report.diagnostics
}

/// Where the themes put what they find.
struct Report {
    diagnostics: Vec<Diagnostic>,
}

impl Report {
    fn add(&mut self, code: Code, place: Place, message: impl Into<String>) {
        self.diagnostics.push(Diagnostic { code, place, message: message.into() });
    }
}
