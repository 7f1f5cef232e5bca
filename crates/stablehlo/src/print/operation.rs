//! Operations as text, in the generic form.

use super::{MAX_DEPTH, attribute, list, location, quoted, types};
use crate::mlir::{Block, Operation, Program, Type, Value};

/// Returns a program in the generic form.
pub(super) fn generic(program: &Program, has_locations: bool) -> String {
    let mut printer = Printer { out: String::new(), program, has_locations };
    printer.operation(&program.module, 0);
    printer.out
}

/// The text so far.
struct Printer<'p> {
    out: String,
    program: &'p Program,
    has_locations: bool,
}

impl Printer<'_> {
    /// Writes an operation and a line break.
    fn operation(&mut self, operation: &Operation, depth: usize) {
        if depth > MAX_DEPTH {
            return;
        }
        self.indent(depth);
        if !operation.results.is_empty() {
            list(&mut self.out, &operation.results, |out, result| value(out, *result));
            self.out.push_str(" = ");
        }
        quoted(&mut self.out, operation.name.as_bytes());
        self.out.push('(');
        list(&mut self.out, &operation.operands, |out, operand| value(out, *operand));
        self.out.push(')');
        self.regions(operation, depth);
        if !operation.attributes.is_empty() {
            self.out.push(' ');
            attribute::dictionary(&mut self.out, &operation.attributes, depth);
        }
        self.out.push_str(" : ");
        let ty = |value: &Value| self.program.type_of(*value).unwrap_or(&Type::None);
        let (operands, results) = (operation.operands.iter(), operation.results.iter());
        types::signature(&mut self.out, operands.map(ty), results.map(ty), depth);
        if let Some(at) = operation.location.as_ref().filter(|_| self.has_locations) {
            self.out.push(' ');
            location::push(&mut self.out, at, 0);
        }
        self.out.push('\n');
    }

    fn indent(&mut self, depth: usize) {
        self.out.extend(std::iter::repeat_n("  ", depth));
    }

    fn regions(&mut self, operation: &Operation, depth: usize) {
        if operation.regions.is_empty() {
            return;
        }
        self.out.push_str(" (");
        for (number, region) in operation.regions.iter().enumerate() {
            self.out.push_str(if number > 0 { ", {\n" } else { "{\n" });
            for (number, block) in region.blocks.iter().enumerate() {
                self.block(number, block, depth);
            }
            self.indent(depth);
            self.out.push('}');
        }
        self.out.push(')');
    }

    fn block(&mut self, number: usize, block: &Block, depth: usize) {
        if number > 0 || !block.arguments.is_empty() {
            self.indent(depth);
            self.out.push_str(&format!("^bb{number}"));
            if !block.arguments.is_empty() {
                self.arguments(block);
            }
            self.out.push_str(":\n");
        }
        for operation in &block.operations {
            self.operation(operation, depth + 1);
        }
    }

    fn arguments(&mut self, block: &Block) {
        let Self { program, has_locations, .. } = *self;
        self.out.push('(');
        list(&mut self.out, &block.arguments, |out, argument| {
            value(out, *argument);
            out.push_str(": ");
            types::push(out, program.type_of(*argument).unwrap_or(&Type::None), 0);
            let at = program.argument_locations.get(argument);
            if let Some(at) = at.filter(|_| has_locations) {
                out.push(' ');
                location::push(out, at, 0);
            }
        });
        self.out.push(')');
    }
}

fn value(out: &mut String, value: Value) {
    out.push('%');
    out.push_str(&value.0.to_string());
}
