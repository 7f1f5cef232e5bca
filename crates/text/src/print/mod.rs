//! Modules as HLO text, which XLA's own parser reads back to the same module.
//!
//! ```text
//! module       header, stack tables, computations
//! instruction  one line: name, shape, opcode, operands, common attributes
//! attrs        the attributes of ops, by kind
//! literal      nested braces        number, float   digits
//! shape        each distinct shape is written once and then copied
//! recovery     whole modules within the header
//! name, string what needs `%`, what needs escapes
//! canonical    names and order that two equal modules share
//! parts        single attributes, for comparisons
//! ```
//!
//! Everything is appended to one `String`; nothing is allocated per instruction.

mod attrs;
mod canonical;
mod devices;
mod float;
mod instruction;
mod literal;
mod metadata;
mod module;
pub(crate) mod name;
mod number;
mod parts;
mod recovery;
mod shape;
mod sharding;
mod string;

use canonical::Canonical;
pub use parts::{print_constant, print_extras, print_header, print_metadata, print_provenance};
use smol_str::SmolStr;
use tilewright_ir::metadata::MAX_RECOVERY_DEPTH;
use tilewright_ir::ops::attr::AttrValue;
use tilewright_ir::{CompId, InstId, Module, Sharding};

/// The forms of text that XLA knows, and one for comparisons.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Form {
    /// XLA's default: `%` before names, the types of computations, metadata
    /// and stack tables. Nothing is left out.
    #[default]
    Default,
    /// XLA's short form: no `%` if a name does not need it, no types of computations, no
    /// metadata. Control predecessors stay: without them the text would mean something else.
    Short,
    /// For comparing modules: the short form with names by opcode and number, in an order that
    /// depends only on what is computed. Modules that differ only in names, metadata or the
    /// order of instructions have the same text.
    Canonical,
}

/// The treatment of a layout's explicit padding (`P(3,5)`), which XLA's text does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum LayoutPadding {
    /// Fail and name the instruction.
    #[default]
    Refuse,
    /// Leave the padding out.
    Strip,
    /// Write it; only Tilewright reads the text back.
    Keep,
}

/// The options of printing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct PrintOptions {
    /// The form to write.
    pub form: Form,
    /// Write arrays of more than ten elements as `{...}`. Such text loses
    /// the values; it is for people.
    pub elide_large_constants: bool,
    /// The treatment of padding in layouts.
    pub padding: LayoutPadding,
}

impl PrintOptions {
    /// XLA's default form with all constants in full.
    pub const fn new() -> Self {
        Self { form: Form::Default, elide_large_constants: false, padding: LayoutPadding::Refuse }
    }

    /// The same options in another form.
    #[must_use]
    pub const fn with_form(mut self, form: Form) -> Self {
        self.form = form;
        self
    }

    /// The same options with another treatment of padding.
    #[must_use]
    pub const fn with_padding(mut self, padding: LayoutPadding) -> Self {
        self.padding = padding;
        self
    }

    /// The same options with large constants elided or not.
    #[must_use]
    pub const fn with_elided_constants(mut self, elide: bool) -> Self {
        self.elide_large_constants = elide;
        self
    }
}

/// Why a module cannot be written as HLO text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PrintError {
    /// A layout has padding, and [`LayoutPadding::Refuse`] was asked for.
    #[error(
        "the layout of `{0}` has padding, which XLA's text cannot express; \
         ask to strip the padding, or to keep it for Tilewright alone"
    )]
    Padding(SmolStr),
    /// A name is not valid in HLO text.
    #[error(
        "`{0}` cannot be a name in HLO text: it must consist of letters, digits, `_`, `.` and `-`, \
         begin with a letter or `_`, and for an instruction neither begin with `__` nor be a type"
    )]
    Name(SmolStr),
    /// A computation has no instructions.
    #[error("computation `{0}` has no instructions, which HLO text cannot express")]
    EmptyComputation(SmolStr),
    /// A constant holds a token.
    #[error("constant `{0}` holds a token, which HLO text cannot express")]
    TokenConstant(SmolStr),
    /// A recovery table lies too deep in others.
    #[error("recovery tables nest more than {MAX_RECOVERY_DEPTH} deep, which is not read back")]
    RecoveryDepth,
}

/// Returns a module as HLO text.
///
/// # Errors
/// Returns an error if the text could not be read back: see [`PrintError`].
pub fn print(module: &Module, options: &PrintOptions) -> Result<String, PrintError> {
    // About the length of a line; one reallocation more or less is no matter.
    let mut out = String::with_capacity(128 * module.instruction_count());
    print_into(&mut out, module, options)?;
    Ok(out)
}

/// Appends a module as HLO text.
///
/// # Errors
/// Returns an error if the text could not be read back; `out` then holds a part of it.
pub fn print_into(
    out: &mut String,
    module: &Module,
    options: &PrintOptions,
) -> Result<(), PrintError> {
    Printer::new(out, module, *options).module()
}

/// One instruction as a message shows it: without `ROOT`, metadata, backend
/// config and the values of large constants.
pub fn print_instruction(module: &Module, id: InstId) -> String {
    let options = PrintOptions {
        form: Form::Default,
        elide_large_constants: true,
        padding: LayoutPadding::Keep,
    };
    let mut out = String::new();
    Printer::new(&mut out, module, options).summary(id);
    out
}

/// The value of an attribute as it stands in text after `=`.
pub fn print_attribute(module: &Module, value: &AttrValue) -> String {
    let mut out = String::new();
    attrs::push(&mut out, value, |out, id| {
        out.push('%');
        out.push_str(module.computation(id).name());
    });
    out
}

/// A sharding as it stands in text after `sharding=`.
pub fn print_sharding(sharding: &Sharding) -> String {
    let mut out = String::new();
    sharding::push(&mut out, sharding);
    out
}

/// The state of printing: the output, and the shapes seen so far.
struct Printer<'p> {
    out: &'p mut String,
    module: &'p Module,
    options: PrintOptions,
    shapes: shape::ShapeTexts,
    names: Names<'p>,
    /// The number of recovery tables around the module.
    recovery_depth: usize,
}

/// The names of instructions and computations.
struct Names<'p> {
    module: &'p Module,
    canonical: Option<Canonical>,
}

impl Names<'_> {
    fn instruction(&self, id: InstId) -> &str {
        match &self.canonical {
            Some(canonical) => canonical.instruction(id),
            None => self.module.name_of(id),
        }
    }

    fn computation(&self, id: CompId) -> &str {
        match &self.canonical {
            Some(canonical) => canonical.computation(id),
            None => self.module.computation(id).name(),
        }
    }
}

impl<'p> Printer<'p> {
    fn new(out: &'p mut String, module: &'p Module, options: PrintOptions) -> Self {
        let canonical = (options.form == Form::Canonical).then(|| Canonical::of(module));
        let names = Names { module, canonical };
        let shapes = shape::ShapeTexts::new(options.padding);
        Self { out, module, options, shapes, names, recovery_depth: 0 }
    }

    /// Indents a line of a module that stands in a recovery table.
    fn begin_line(&mut self) {
        for _ in 0..self.recovery_depth {
            self.out.push_str("    ");
        }
    }
}
