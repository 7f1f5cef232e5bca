//! One instruction: a line.

use smol_str::SmolStr;
use tilewright_ir::{InstId, Op};

use super::metadata::{push_after_control, push_before_control, push_metadata};
use super::name::{is_instruction_name, is_reserved};
use super::number::{push_i64, push_u64};
use super::{Form, PrintError, Printer, attrs, literal};

impl Printer<'_> {
    /// Writes a whole line, with its end.
    pub(super) fn instruction(&mut self, id: InstId, is_root: bool) -> Result<(), PrintError> {
        let name = self.names.instruction(id);
        if !is_instruction_name(name) {
            return Err(PrintError::Name(name.into()));
        }
        self.begin_line();
        self.out.push_str(if is_root { "  ROOT " } else { "  " });
        self.definition(id)?;
        self.common_attributes(id);
        self.out.push('\n');
        Ok(())
    }

    /// Writes an instruction for a message. Parts that cannot be written are left out: the text
    /// is not read back.
    pub(super) fn summary(&mut self, id: InstId) {
        let _ = self.definition(id);
    }

    /// `%name = shape op(operands), attributes of the op`.
    fn definition(&mut self, id: InstId) -> Result<(), PrintError> {
        let module = self.module;
        let instruction = module.instruction(id);
        push_name(self.out, self.names.instruction(id), self.options.form);
        self.out.push_str(" = ");
        let shape = self.shapes.get(module, instruction.shape_id());
        let shape = shape.map_err(|_| PrintError::Padding(module.name_of(id).into()))?;
        self.out.push_str(shape);
        self.out.push(' ');
        self.out.push_str(instruction.opcode().name());
        self.out.push('(');
        // Number and value stand where other ops have operands.
        match instruction.op() {
            Op::Parameter(parameter) => {
                push_i64(self.out, parameter.number);
                self.out.push(')');
            }
            Op::Constant(value) => {
                literal::push(self.out, value, self.options.elide_large_constants)
                    .map_err(|_| PrintError::TokenConstant(module.name_of(id).into()))?;
                self.out.push(')');
            }
            op => {
                self.operands(module.operands(id));
                self.out.push(')');
                self.op_attributes(op);
            }
        }
        Ok(())
    }

    fn operands(&mut self, operands: &[InstId]) {
        for (i, &operand) in operands.iter().enumerate() {
            if i > 0 {
                self.out.push_str(", ");
                if i % 5 == 0 && self.options.form == Form::Default {
                    self.out.push_str("/*index=");
                    push_u64(self.out, i as u64);
                    self.out.push_str("*/");
                }
            }
            push_name(self.out, self.names.instruction(operand), self.options.form);
        }
    }

    fn op_attributes(&mut self, op: &Op) {
        let (names, form) = (&self.names, self.options.form);
        let out = &mut *self.out;
        op.for_each_attr(&mut |name, value| {
            out.push_str(", ");
            out.push_str(name);
            out.push('=');
            attrs::push(out, &value, |out, id| push_name(out, names.computation(id), form));
        });
    }

    /// Prints attributes that any instruction can have, in XLA's order.
    fn common_attributes(&mut self, id: InstId) {
        let module = self.module;
        let extras = module.extras(id);
        if let Some(extras) = extras {
            push_before_control(self.out, extras);
            if !extras.control_predecessors.is_empty() {
                self.out.push_str(", control-predecessors={");
                self.control_predecessors(&extras.control_predecessors);
                self.out.push('}');
            }
            push_after_control(self.out, extras);
        }
        if self.options.form == Form::Default
            && let Some(metadata) = module.metadata(id)
        {
            push_metadata(self.out, metadata);
        }
        if let Some(config) = extras.and_then(|extras| extras.backend_config.as_ref()) {
            super::metadata::push_attribute(self.out, "backend_config", &config.0);
        }
    }

    fn control_predecessors(&mut self, predecessors: &[InstId]) {
        for (i, &predecessor) in predecessors.iter().enumerate() {
            if i > 0 {
                self.out.push_str(", ");
            }
            push_name(self.out, self.names.instruction(predecessor), self.options.form);
        }
    }
}

/// Appends a name, with `%` in the default form and wherever it needs it.
pub(super) fn push_name(out: &mut String, name: &str, form: Form) {
    if form == Form::Default || is_reserved(name) {
        out.push('%');
    }
    out.push_str(name);
}

/// Returns the name, or an error if it is not a valid name.
pub(super) fn checked(name: &str) -> Result<&str, PrintError> {
    if super::name::is_name(name) { Ok(name) } else { Err(PrintError::Name(SmolStr::new(name))) }
}
