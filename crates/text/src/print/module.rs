//! The module as a whole: header, stack tables, computations.

use tilewright_ir::Dims;
use tilewright_ir::entity::{CompId, InstId};
use tilewright_ir::metadata::{Header, InputOutputAlias, ProgramShape, StackTables};

use super::attrs::{push_index, separated};
use super::canonical::Canonical;
use super::instruction::{checked, push_name};
use super::metadata::{attribute, push_attribute, push_booleans, push_frontend_attributes};
use super::number::{push_i64, push_u64};
use super::string::push_quoted;
use super::{Form, PrintError, Printer, shape};

impl Printer<'_> {
    pub(super) fn module(&mut self) -> Result<(), PrintError> {
        let module = self.module;
        self.begin_line();
        self.out.push_str("HloModule ");
        push_name(self.out, checked(&module.name)?, Form::Short);
        self.header(&module.header)?;
        self.out.push_str("\n\n");
        if self.options.form == Form::Default
            && let Some(tables) = &module.header.stack_tables
        {
            self.stack_tables(tables);
            self.out.push('\n');
        }
        let order = self.names.canonical.as_mut().map(Canonical::take_order);
        if let Some(order) = order {
            for (number, (computation, instructions)) in order.into_iter().enumerate() {
                self.computation(number, computation, instructions.into_iter())?;
            }
        } else {
            for (number, &computation) in module.computations().iter().enumerate() {
                self.computation(number, computation, module.instructions(computation))?;
            }
        }
        Ok(())
    }

    /// Prints the rest of the line after the module's name.
    pub(super) fn header(&mut self, header: &Header) -> Result<(), PrintError> {
        if header.is_scheduled {
            self.out.push_str(", is_scheduled=true");
        }
        let out = &mut *self.out;
        if !header.input_output_alias.is_empty() {
            push_aliases(attribute(out, "input_output_alias"), &header.input_output_alias);
        }
        if !header.buffer_donors.is_empty() {
            push_donors(attribute(out, "buffer_donor"), &header.buffer_donors);
        }
        if header.alias_passthrough_params {
            push_attribute(out, "alias_passthrough_params", "true");
        }
        if let Some(layout) = &header.entry_layout {
            self.entry_layout(layout)?;
        }
        self.after_layout(header)
    }

    fn after_layout(&mut self, header: &Header) -> Result<(), PrintError> {
        let out = &mut *self.out;
        let allowed = [
            ("parameters", &header.allow_sharding_propagation_to_parameters),
            ("output", &header.allow_sharding_propagation_to_output),
        ];
        for (what, allowed) in allowed.iter().filter(|(_, allowed)| !allowed.is_empty()) {
            out.push_str(", allow_spmd_sharding_propagation_to_");
            out.push_str(what);
            out.push('=');
            push_booleans(out, allowed);
        }
        if let Some(count) = header.replica_count {
            push_i64(attribute(out, "replica_count"), count);
        }
        if let Some(count) = header.num_partitions {
            push_i64(attribute(out, "num_partitions"), count);
        }
        push_frontend_attributes(out, &header.frontend_attributes);
        self.recovery_table(&header.origin_recovery)?;
        for (name, text) in &header.other {
            push_attribute(self.out, name, &text.0);
        }
        Ok(())
    }

    fn entry_layout(&mut self, layout: &ProgramShape) -> Result<(), PrintError> {
        let refused = |_| PrintError::Padding("entry_computation_layout".into());
        self.out.push_str(", entry_computation_layout={(");
        for (i, parameter) in layout.parameters.iter().enumerate() {
            if i > 0 {
                self.out.push_str(", ");
                if i % 5 == 0 {
                    self.out.push_str("/*index=");
                    push_u64(self.out, i as u64);
                    self.out.push_str("*/");
                }
            }
            shape::push(self.out, parameter, self.options.padding).map_err(refused)?;
        }
        self.out.push_str(")->");
        shape::push(self.out, &layout.result, self.options.padding).map_err(refused)?;
        self.out.push('}');
        Ok(())
    }

    /// The four tables; their rows are numbered from 1.
    fn stack_tables(&mut self, tables: &StackTables) {
        self.table("FileNames", &tables.file_names, |out, name| push_quoted(out, name));
        self.table("FunctionNames", &tables.function_names, |out, name| push_quoted(out, name));
        self.table("FileLocations", &tables.file_locations, |out, location| {
            let fields = [
                ("{file_name_id=", location.file_name_id),
                (" function_name_id=", location.function_name_id),
                (" line=", location.line),
                (" end_line=", location.end_line),
                (" column=", location.column),
                (" end_column=", location.end_column),
            ];
            push_fields(out, &fields);
        });
        self.table("StackFrames", &tables.stack_frames, |out, frame| {
            let fields = [
                ("{file_location_id=", frame.file_location_id),
                (" parent_frame_id=", frame.parent_frame_id),
            ];
            push_fields(out, &fields);
        });
    }

    fn table<T>(&mut self, name: &str, rows: &[T], push: impl Fn(&mut String, &T)) {
        self.out.push_str(name);
        self.out.push('\n');
        for (number, row) in (1..).zip(rows) {
            push_u64(self.out, number);
            self.out.push(' ');
            push(self.out, row);
            self.out.push('\n');
        }
        self.out.push('\n');
    }

    fn computation(
        &mut self,
        number: usize,
        id: CompId,
        order: impl Iterator<Item = InstId>,
    ) -> Result<(), PrintError> {
        if number > 0 {
            self.out.push('\n');
        }
        let module = self.module;
        let computation = module.computation(id);
        let Some(root) = computation.root() else {
            return Err(PrintError::EmptyComputation(computation.name().into()));
        };
        self.begin_line();
        if module.entry() == Some(id) {
            self.out.push_str("ENTRY ");
        }
        push_name(self.out, checked(self.names.computation(id))?, self.options.form);
        if self.options.form == Form::Default {
            self.program_shape(computation.parameters(), root);
        }
        self.out.push_str(" {\n");
        for instruction in order {
            self.instruction(instruction, instruction == root)?;
        }
        self.begin_line();
        self.out.push('}');
        if let Some(thread) = computation.execution_thread() {
            self.out.push_str(", execution_thread=");
            push_quoted(self.out, thread);
        }
        self.out.push('\n');
        Ok(())
    }

    /// ` (name: shape, ...) -> shape`, without layouts.
    fn program_shape(&mut self, parameters: &[InstId], root: InstId) {
        let module = self.module;
        self.out.push_str(" (");
        for (i, &parameter) in parameters.iter().enumerate() {
            if i > 0 {
                self.out.push_str(", ");
            }
            self.out.push_str(module.name_of(parameter));
            self.out.push_str(": ");
            let shape = module.instruction(parameter).shape_id();
            self.out.push_str(self.shapes.bare(module, shape));
        }
        self.out.push_str(") -> ");
        let result = module.instruction(root).shape_id();
        self.out.push_str(self.shapes.bare(module, result));
    }
}

fn push_fields(out: &mut String, fields: &[(&str, i64)]) {
    for &(name, value) in fields {
        out.push_str(name);
        push_i64(out, value);
    }
    out.push('}');
}

/// `{ {0}: (1, {}, may-alias) }`
fn push_aliases(out: &mut String, aliases: &[InputOutputAlias]) {
    out.push_str("{ ");
    separated(out, aliases, ", ", |out, alias| {
        push_index(out, &alias.output);
        out.push_str(": ");
        push_parameter_part(out, alias.parameter, &alias.parameter_part);
        out.push_str(if alias.must { ", must-alias)" } else { ", may-alias)" });
    });
    out.push_str(" }");
}

/// `{ (0, {}), (1, {0}) }`
fn push_donors(out: &mut String, donors: &[(i64, Dims)]) {
    out.push_str("{ ");
    separated(out, donors, ", ", |out, (parameter, part)| {
        push_parameter_part(out, *parameter, part);
        out.push(')');
    });
    out.push_str(" }");
}

/// `(1, {0}`
fn push_parameter_part(out: &mut String, parameter: i64, part: &Dims) {
    out.push('(');
    push_i64(out, parameter);
    out.push_str(", ");
    push_index(out, part);
}
