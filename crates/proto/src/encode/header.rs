//! Encodes the header of a module.

use rustc_hash::FxHashSet;
use tilewright_ir::metadata::{FileLocation, StackFrame};
use tilewright_ir::{CompId, Module, ProgramShape, StackTables};

use super::extras::frontend_attributes;
use super::ids::Ids;
use crate::error::{ProtoError, Within as _, each};
use crate::generated::xla::hlo_buffer_donor_proto::BufferDonorEntryProto;
use crate::generated::xla::hlo_input_output_alias_proto::AliasEntryProto;
use crate::generated::xla::hlo_schedule_proto::InstructionSequence;
use crate::generated::xla::{
    HloBufferDonorProto, HloInputOutputAliasProto, HloModuleProto, HloScheduleProto,
    ProgramShapeProto, StackFrameIndexProto, stack_frame_index_proto,
};
use crate::metadata::{narrow, unknown_to_proto};
use crate::shape;

/// Fills all but the computations.
pub(super) fn encode(
    module: &Module,
    ids: &Ids,
    fused: &FxHashSet<CompId>,
    proto: &mut HloModuleProto,
) -> Result<(), ProtoError> {
    let header = &module.header;
    if let Some((name, _)) = header.other.first() {
        return Err(unknown_to_proto(name));
    }
    let no_entry = || ProtoError::with_help("the module has no entry", "set one");
    let entry = module.entry().ok_or_else(no_entry)?;
    proto.name = module.name.to_string();
    proto.entry_computation_name = module.computation(entry).name().to_owned();
    proto.entry_computation_id = ids.computation(entry);
    proto.host_program_shape = Some(program(module, entry).within("host_program_shape")?);
    proto.schedule = header.is_scheduled.then(|| schedule(module, ids, fused));
    proto.input_output_alias = Some(aliases(module));
    proto.buffer_donor = Some(donors(module));
    proto.frontend_attributes = Some(frontend_attributes(&header.frontend_attributes));
    let tables = header.stack_tables.as_ref().map(stack_tables).transpose();
    proto.stack_frame_index = tables.within("stack_frame_index")?;
    Ok(())
}

/// Returns the entry's layout; if the header has none, the layouts of its parameters and root.
fn program(module: &Module, entry: CompId) -> Result<ProgramShapeProto, ProtoError> {
    let computation = module.computation(entry);
    let names = (0..computation.parameters().len()).map(|number| format!("p{number}")).collect();
    if let Some(ProgramShape { parameters, result }) = &module.header.entry_layout {
        return shape::encode_program(parameters, result, names);
    }
    let empty = || ProtoError::with_help("the entry has no instruction", "give it a root");
    let root = computation.root().ok_or_else(empty)?;
    let parameters = computation.parameters().iter().map(|&id| module.shape(id));
    shape::encode_program(parameters, module.shape(root), names)
}

/// Returns the order of instructions as the order of execution, for all computations that are
/// not parts of fusions.
fn schedule(module: &Module, ids: &Ids, fused: &FxHashSet<CompId>) -> HloScheduleProto {
    let computations = module.computations().iter().filter(|id| !fused.contains(id));
    let sequences = computations.map(|&id| {
        let instruction_ids = module.instructions(id).map(|id| ids.instruction(id)).collect();
        (ids.computation(id), InstructionSequence { instruction_ids })
    });
    HloScheduleProto { sequences: sequences.collect() }
}

fn aliases(module: &Module) -> HloInputOutputAliasProto {
    let entries = module.header.input_output_alias.iter().map(|alias| AliasEntryProto {
        output_shape_index: alias.output.to_vec(),
        parameter_number: alias.parameter,
        parameter_shape_index: alias.parameter_part.to_vec(),
        kind: if alias.must { 2 } else { 1 },
    });
    HloInputOutputAliasProto { entries: entries.collect() }
}

fn donors(module: &Module) -> HloBufferDonorProto {
    let entries = module.header.buffer_donors.iter().map(|(parameter, part)| {
        BufferDonorEntryProto { parameter_number: *parameter, parameter_shape_index: part.to_vec() }
    });
    HloBufferDonorProto { entries: entries.collect() }
}

fn stack_tables(tables: &StackTables) -> Result<StackFrameIndexProto, ProtoError> {
    let location = |location: &FileLocation| {
        Ok(stack_frame_index_proto::FileLocation {
            file_name_id: narrow("file_name_id", location.file_name_id)?,
            function_name_id: narrow("function_name_id", location.function_name_id)?,
            line: narrow("line", location.line)?,
            column: narrow("column", location.column)?,
            end_line: narrow("end_line", location.end_line)?,
            end_column: narrow("end_column", location.end_column)?,
        })
    };
    let frame = |frame: &StackFrame| {
        let parent = frame.parent_frame_id.saturating_sub(1).max(0);
        Ok(stack_frame_index_proto::StackFrame {
            file_location_id: narrow("file_location_id", frame.file_location_id)?,
            parent_frame_id: narrow("parent_frame_id", parent)?,
        })
    };
    Ok(StackFrameIndexProto {
        file_names: tables.file_names.iter().map(ToString::to_string).collect(),
        function_names: tables.function_names.iter().map(ToString::to_string).collect(),
        file_locations: each("file_locations", &tables.file_locations, location)?,
        stack_frames: each("stack_frames", &tables.stack_frames, frame)?,
    })
}
