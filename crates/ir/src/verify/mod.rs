//! Checks modules before they are run, rewritten or lowered.
//!
//! Every check has a stable code, listed in [`CHECKS`]. One run reports all errors.

mod aliases;
mod asynchronous;
mod buffers;
mod calls;
mod counts;
mod devices;
mod frames;
mod layouts;
mod meshes;
mod origins;
mod shapes;
mod sharding;
mod structure;
mod transfers;

use std::ops::Deref;

use crate::diag::{Code, Diagnostic, DiagnosticPlace};
use crate::entity::InstId;
use crate::module::Module;

macro_rules! checks {
    ($($name:ident $code:literal $text:literal;)*) => {
        $(#[doc = $text] pub const $name: Code = Code($code);)*

        /// Every check of the verifier: its code and its requirement.
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
    MESH 20 "meshes have axes of positive sizes, each device once, and no axis is used twice";
    GROUPS 21 "replica groups hold each device once, as many in each as the op needs";
    PAIRS 22 "each device sends once and receives once in source_target_pairs";
    CHANNEL 23 "channels are numbered from 0, those of all-reduce from 1, and global device ids have one";
    SHARDING 24 "shardings fit the shape, with one device for each tile";
    REPLICATION 25 "parameter_replication has a value for each array of its parameter";
    ALIAS 26 "aliases and donors name buffers of the entry that can be shared, each once";
    OPERAND_ALIAS 27 "output_to_operand_aliasing names parts of one shape";
    PAIRING 28 "what ends or continues an op is given its start, and agrees with it";
    THREAD 29 "loops, branches and fusions run on the thread where they stand";
    FRAMES 30 "rows of the stack tables, and metadata, name rows that there are";
    ENDS 31 "what starts or continues an op is ended or continued once";
    CONSTRAINED 32 "all all-reduces keep layouts, or none does";
    ALIKE 33 "loops and branches are sharded as what they call";
    MISPLACED 34 "ops have no attributes that ask what they cannot do";
    COMPOSITE 35 "a composite call has a name, and a version from 0";
    WRAPPED 36 "what runs asynchronously is one op";
    BUFFERS 37 "buffers are held by what may hold them, and written once";
    TRANSFERS 38 "host transfers of one channel are alike";
    ORIGIN 39 "an origin has the form of its shape";
    UNKNOWN_MESH 40 "shardings of Shardy name meshes of the module";
}

/// A module that passed every check.
#[derive(Clone, Debug)]
pub struct Verified {
    module: Module,
    mixes_precision: Option<InstId>,
}

impl Verified {
    /// Returns the module for changes; it must be verified again.
    pub fn into_inner(self) -> Module {
        self.module
    }

    /// Returns the first instruction whose floats differ in precision although its op's rule
    /// requires equal types; see [`crate::infer_mixed`]. Code that computes or moves
    /// instructions need not support such instructions.
    pub fn mixes_precision(&self) -> Option<InstId> {
        self.mixes_precision
    }
}

impl Deref for Verified {
    type Target = Module;
    fn deref(&self) -> &Module {
        &self.module
    }
}

/// A module with errors.
#[derive(Clone, Debug)]
pub struct Rejected {
    /// The module.
    pub module: Module,
    /// At least one diagnostic, in the order of the module, and at most
    /// [`MAX_DIAGNOSTICS`].
    pub diagnostics: Vec<Diagnostic>,
    /// The number of further errors that were found; there may be more.
    pub more: usize,
}

impl Rejected {
    /// Returns the note below the diagnostics if there are more errors.
    pub fn note(&self) -> Option<String> {
        let shown = self.diagnostics.len();
        (self.more > 0).then(|| {
            format!(
                "only the first {shown} errors are shown; at least {} more were found",
                self.more
            )
        })
    }
}

impl std::fmt::Display for Rejected {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (i, diagnostic) in self.diagnostics.iter().enumerate() {
            if i > 0 {
                f.write_str("\n")?;
            }
            f.write_str(&diagnostic.describe(&self.module))?;
        }
        match self.note() {
            Some(note) => write!(f, "\n{note}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Rejected {}

/// Checks a module.
///
/// # Errors
/// All errors, together with the module.
pub fn verify(mut module: Module) -> Result<Verified, Box<Rejected>> {
    let Report { diagnostics, more, mixes_precision, .. } = report(&module);
    if diagnostics.is_empty() {
        if mixes_precision.is_none() {
            module.set_verified();
        }
        Ok(Verified { module, mixes_precision })
    } else {
        Err(Box::new(Rejected { module, diagnostics, more }))
    }
}

/// Returns all errors of a module in order, at most the first [`MAX_DIAGNOSTICS`].
pub fn check(module: &Module) -> Vec<Diagnostic> {
    report(module).diagnostics
}

fn report(module: &Module) -> Report {
    let mut report = Report::default();
    structure::check(module, &mut report);
    layouts::check(module, &mut report);
    // Shape rules follow operands and calls, so these are checked first.
    if report.diagnostics.is_empty() {
        shapes::check(module, &mut report);
        buffers::check(module, &mut report);
    }
    check_annotations(module, &mut report);
    report
}

/// Checks the data other than shapes and operands.
fn check_annotations(module: &Module, report: &mut Report) {
    aliases::check_header(module, report);
    frames::check(module, report);
    devices::check_constrained(module, report);
    calls::check_wrapped(module, report);
    transfers::check(module, report);
    meshes::check(module, report);
    for &computation in module.computations() {
        for id in module.instructions(computation) {
            devices::check(module, id, report);
            counts::check(module, id, report);
            sharding::check(module, id, report);
            aliases::check(module, id, report);
            asynchronous::check(module, id, report);
            calls::check(module, id, report);
            origins::check(module, id, report);
        }
    }
}

/// Largest number of errors that are reported; the others are only counted.
pub const MAX_DIAGNOSTICS: usize = 100;

/// Largest size of a message in bytes; longer ones contain very long names or shapes and are
/// truncated.
const MAX_MESSAGE: usize = 4000;

/// The work spent on errors that are counted but not shown, in bytes of messages and parts of
/// shapes.
const MAX_COUNTING: usize = 1 << 24;

/// Collects the errors of all checks.
#[derive(Default)]
struct Report {
    diagnostics: Vec<Diagnostic>,
    more: usize,
    /// The work done since the limit of errors was reached.
    counting: usize,
    /// See [`Verified::mixes_precision`].
    mixes_precision: Option<InstId>,
}

impl Report {
    fn add(&mut self, code: Code, place: DiagnosticPlace, message: impl Into<String>) {
        let mut message = message.into();
        if self.is_full() {
            self.more = self.more.saturating_add(1);
            self.spend(message.len());
            return;
        }
        shorten(&mut message);
        self.diagnostics.push(Diagnostic { code, place, message });
    }

    fn is_full(&self) -> bool {
        self.diagnostics.len() >= MAX_DIAGNOSTICS
    }

    /// Counts work that can only find more errors, after the limit is reached.
    fn spend(&mut self, work: usize) {
        if self.is_full() {
            self.counting = self.counting.saturating_add(work);
        }
    }

    /// Checks whether the checks should stop.
    fn is_exhausted(&self) -> bool {
        self.counting > MAX_COUNTING
    }
}

fn shorten(message: &mut String) {
    if message.len() <= MAX_MESSAGE {
        return;
    }
    let mut end = MAX_MESSAGE;
    while !message.is_char_boundary(end) {
        end -= 1;
    }
    message.truncate(end);
    message.push_str("...");
}
