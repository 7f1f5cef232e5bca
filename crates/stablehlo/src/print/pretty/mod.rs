//! Programs in the pretty forms of MLIR's own printer.
//!
//! An operation whose parts do not fit its form, or that has none, is written in the generic form.

mod form;
mod func;
mod generic;
mod own;
mod reduce;
mod types;

use std::sync::Arc;

use super::aliases::Aliases;
use super::names::Names;
use super::{MAX_DEPTH, list};
use crate::mlir::{Block, Location, Operation, Program, Region, Type, Value};

pub(super) use own::scan_sizes;

/// The form of an operation does not say all that the operation has.
struct Unfit;

/// The text that a part of a form has written, if it fits.
type Fit = Result<(), Unfit>;

/// Returns a program in its pretty form.
pub(super) fn print(program: &Program, has_locations: bool) -> String {
    let mut printer = Printer {
        out: String::new(),
        program,
        names: Names::of(program),
        aliases: None,
        unknown: Arc::new(Location::Unknown),
    };
    if has_locations && has_location(&program.module, 0) {
        printer.meet_all();
    }
    if let Some(aliases) = &printer.aliases {
        aliases.definitions(&mut printer.out, false);
    }
    printer.operation(&program.module, 0, "builtin");
    if let Some(aliases) = &printer.aliases {
        aliases.definitions(&mut printer.out, true);
    }
    printer.out
}

/// Checks whether a location is known for an operation or one in it.
fn has_location(operation: &Operation, depth: usize) -> bool {
    let is_known = operation.location.as_deref().is_some_and(|at| *at != Location::Unknown);
    let blocks = operation.regions.iter().flat_map(|region| &region.blocks);
    let mut inner = blocks.flat_map(|block| &block.operations);
    is_known
        || (depth < MAX_DEPTH && inner.any(|inner| has_location(inner, depth.saturating_add(1))))
}

/// The text so far.
struct Printer<'p> {
    out: String,
    program: &'p Program,
    names: Names,
    /// The aliases of locations, if locations are written.
    aliases: Option<Aliases>,
    unknown: Arc<Location>,
}

/// Which arguments of its first block a region is written with.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Label {
    /// `^bb0(%arg0: type):`, if there are arguments.
    Shown,
    /// None: they stand elsewhere.
    Hidden,
}

impl<'p> Printer<'p> {
    /// Writes an operation with its results, its location and a line break. In a region of `dialect`
    /// the name of the dialect is left out.
    fn operation(&mut self, operation: &'p Operation, depth: usize, dialect: &str) {
        if depth > MAX_DEPTH {
            return;
        }
        self.indent(depth);
        if !operation.results.is_empty() {
            self.names.push_results(&mut self.out, &operation.results);
            self.out.push_str(" = ");
        }
        let start = self.out.len();
        if self.fitting(operation, depth, dialect).is_err() {
            self.out.truncate(start);
            self.generic(operation, depth);
        }
        if let Some(aliases) = &self.aliases {
            let at = operation.location.as_ref().unwrap_or(&self.unknown);
            aliases.push(&mut self.out, at, true);
        }
        self.out.push('\n');
    }

    /// Writes an operation in its pretty form.
    fn fitting(&mut self, operation: &'p Operation, depth: usize, dialect: &str) -> Fit {
        let name = operation.name.as_str();
        let of_dialect = name.strip_prefix(dialect).and_then(|rest| rest.strip_prefix('.'));
        let short = of_dialect.filter(|rest| !rest.contains('.')).unwrap_or(name);
        self.out.push_str(short);
        let op = crate::dialect::op(name).filter(|op| !op.form.is_empty()).ok_or(Unfit)?;
        self.form(op, operation, depth)
    }

    fn indent(&mut self, depth: usize) {
        self.out.extend(std::iter::repeat_n("  ", depth));
    }

    /// Writes a region in braces.
    fn region(&mut self, region: &'p Region, depth: usize, label: Label, dialect: &str) {
        self.out.push_str("{\n");
        for (number, block) in region.blocks.iter().enumerate() {
            if number > 0 || (label == Label::Shown && !block.arguments.is_empty()) {
                self.label(number, block, depth);
            }
            for operation in &block.operations {
                self.operation(operation, depth.saturating_add(1), dialect);
            }
        }
        self.indent(depth);
        self.out.push('}');
    }

    fn label(&mut self, number: usize, block: &Block, depth: usize) {
        self.indent(depth);
        self.out.push_str(&format!("^bb{number}"));
        if !block.arguments.is_empty() {
            self.out.push('(');
            for (number, &argument) in block.arguments.iter().enumerate() {
                self.out.push_str(if number > 0 { ", " } else { "" });
                self.argument(argument);
            }
            self.out.push(')');
        }
        self.out.push_str(":\n");
    }

    /// Writes an argument of a block: `%arg0: type loc(...)`.
    fn argument(&mut self, argument: Value) {
        self.value(argument);
        self.out.push_str(": ");
        self.ty(self.program.type_of(argument).unwrap_or(&Type::None));
        self.argument_location(argument);
    }

    fn argument_location(&mut self, argument: Value) {
        if let Some(aliases) = &self.aliases {
            let at = self.program.argument_locations.get(&argument).unwrap_or(&self.unknown);
            aliases.push(&mut self.out, at, false);
        }
    }

    fn value(&mut self, value: Value) {
        self.names.push(&mut self.out, value);
    }

    fn values(&mut self, values: &[Value]) {
        list(&mut self.out, values, |out, value| self.names.push(out, *value));
    }

    fn ty(&mut self, ty: &Type) {
        super::types::push(&mut self.out, ty, 0);
    }

    fn type_of(&self, value: Value) -> &'p Type {
        self.program.type_of(value).unwrap_or(&Type::None)
    }

    /// Finds the aliases of all locations, in the order in which they are written.
    fn meet_all(&mut self) {
        let mut aliases = Aliases::default();
        self.meet(&self.program.module, &mut aliases, 0);
        aliases.number();
        self.aliases = Some(aliases);
    }

    fn meet(&self, operation: &Operation, aliases: &mut Aliases, depth: usize) {
        if depth > MAX_DEPTH {
            return;
        }
        aliases.meet(operation.location.as_ref().unwrap_or(&self.unknown), false);
        if matches!(operation.name.as_str(), "stablehlo.reduce" | "mhlo.reduce")
            && self.short_reduction(operation).is_some()
        {
            return;
        }
        let has_arguments = !matches!(operation.name.as_str(), "stablehlo.while" | "mhlo.while");
        for block in operation.regions.iter().flat_map(|region| &region.blocks) {
            for argument in block.arguments.iter().filter(|_| has_arguments) {
                let at = self.program.argument_locations.get(argument);
                aliases.meet(at.unwrap_or(&self.unknown), true);
            }
            for inner in &block.operations {
                self.meet(inner, aliases, depth.saturating_add(1));
            }
        }
    }
}
