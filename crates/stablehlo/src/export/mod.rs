//! HLO modules as StableHLO programs.
//!
//! The entry becomes the function `main`, called computations become functions, and the
//! computations of other ops become regions. Tuples vanish: what takes or yields one takes or
//! yields its parts.

mod arguments;
mod asynchronous;
mod attributes;
mod bitcast;
mod body;
mod calls;
mod control;
mod error;
mod forms;
mod locations;
mod loss;
mod special;
mod transfer;
mod types;
mod value;

use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};
use smol_str::SmolStr;
use tilewright_ir::{CompId, InstId, Module};

use crate::limits::{ALWAYS, REPEATED};
use crate::mlir::{
    Attribute, Attributes, Block, Location, Operation, Program, Region, Span, Type, Value,
};
pub use error::{ExportError, ExportErrorKind};
pub use loss::lost;

/// Converts an HLO module to a StableHLO program, as XLA does.
///
/// # Errors
/// Returns an error with the names of the instructions of which StableHLO has no equivalent.
pub fn export(module: &Module) -> Result<Program, ExportError> {
    let mut exporter = Exporter::new(module);
    let entry = module.entry().ok_or_else(|| ExportError {
        kind: ExportErrorKind::Invalid,
        instruction: SmolStr::default(),
        message: "the module has no entry computation".into(),
        others: Vec::new(),
    })?;
    exporter.add_function(entry, "main".into());
    // Callers stand before the functions that they call.
    let mut next = 0;
    while let Some(&computation) = exporter.called.get(next) {
        let name = exporter.name_of(computation);
        match exporter.function(computation, &name) {
            Err(error) if error.kind == ExportErrorKind::Unsupported => {
                exporter.depth = 0;
                exporter.refused.push(error);
            }
            other => other?,
        }
        next += 1;
    }
    let mut refused = std::mem::take(&mut exporter.refused).into_iter();
    match refused.next() {
        Some(first) => Err(ExportError { others: refused.collect(), ..first }),
        None => Ok(exporter.finish()),
    }
}

/// The part of the program that has been converted so far.
struct Exporter<'m> {
    module: &'m Module,
    /// The types of the values.
    values: Vec<Type>,
    argument_locations: FxHashMap<Value, Arc<Location>>,
    functions: Vec<Operation>,
    /// Computations that are functions.
    called: Vec<CompId>,
    /// Their names.
    function_names: FxHashMap<CompId, SmolStr>,
    names: FxHashSet<SmolStr>,
    /// The instructions that StableHLO cannot say.
    refused: Vec<ExportError>,
    /// The instructions of these errors, since ops may share a computation.
    named: FxHashSet<InstId>,
    depth: usize,
    /// How many more instructions may be converted.
    left: usize,
}

impl<'m> Exporter<'m> {
    fn new(module: &'m Module) -> Self {
        Self {
            module,
            values: Vec::new(),
            argument_locations: FxHashMap::default(),
            functions: Vec::new(),
            called: Vec::new(),
            function_names: FxHashMap::default(),
            names: std::iter::once(SmolStr::new_static("main")).collect(),
            refused: Vec::new(),
            named: FxHashSet::default(),
            depth: 0,
            left: REPEATED.saturating_mul(module.instruction_count()).saturating_add(ALWAYS),
        }
    }

    /// Returns a new value of a type.
    fn value(&mut self, ty: Type) -> Value {
        let number = u32::try_from(self.values.len()).unwrap_or(u32::MAX);
        self.values.push(ty);
        Value(number)
    }

    fn finish(self) -> Program {
        let block = Block { arguments: Vec::new(), operations: self.functions };
        let name: Attribute = Attribute::text(&self.module.name);
        let mut module = operation("builtin.module", vec![("sym_name".into(), name)]);
        module.attributes.extend(arguments::of_module(self.module));
        module.regions.push(Region { blocks: vec![block] });
        Program { module, values: self.values, argument_locations: self.argument_locations }
    }
}

/// An operation with a name and attributes only.
fn operation(name: &str, attributes: Attributes) -> Operation {
    Operation {
        name: name.into(),
        operands: smallvec::SmallVec::new(),
        results: smallvec::SmallVec::new(),
        attributes,
        regions: Vec::new(),
        location: None,
        span: Span::default(),
    }
}
