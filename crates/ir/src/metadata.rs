//! What is known about instructions and modules beyond op, shape, operands.

use smol_str::SmolStr;

use crate::entity::InstId;
use crate::ops::attr::Verbatim;
use crate::types::shape::Shape;

/// Where an instruction comes from (XLA's `OpMetadata`).
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct OpMetadata {
    /// The framework's op, for example `conv_general_dilated`.
    pub op_type: SmolStr,
    /// The framework's name, for example `jit(f)/jit(main)/add`.
    pub op_name: SmolStr,
    /// The file of the line that made it.
    pub source_file: SmolStr,
    /// The line, from 1; 0 if unknown.
    pub source_line: i64,
    /// The frame in the module's [`StackTables`], from 1; 0 if unknown.
    pub stack_frame_id: i64,
    /// Fields that are carried, not understood, as `name`, text.
    pub other: Vec<(SmolStr, Verbatim)>,
}

/// Attributes that any instruction may have, and few do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Extras {
    /// `sharding={...}`.
    pub sharding: Option<Verbatim>,
    /// `frontend_attributes={...}`.
    pub frontend_attributes: Option<Verbatim>,
    /// `backend_config=...`, with its quotes or braces.
    pub backend_config: Option<Verbatim>,
    /// `control-predecessors={...}`: these run first.
    pub control_predecessors: Vec<InstId>,
    /// The other end of the control predecessors; kept by the module.
    pub(crate) control_successors: Vec<InstId>,
    /// Attributes that are carried, not understood, as `name`, text: known
    /// ones of XLA (`statistics`, `origin` ...) and unknown ones alike.
    pub other: Vec<(SmolStr, Verbatim)>,
}

impl Extras {
    /// The instructions that must run after this one.
    pub fn control_successors(&self) -> &[InstId] {
        &self.control_successors
    }

    /// Whether nothing is set.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// The types of a computation's parameters and result, layouts included.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ProgramShape {
    /// The parameters, by number.
    pub parameters: Vec<Shape>,
    /// The result.
    pub result: Shape,
}

/// What stands between `HloModule name` and the first computation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Header {
    /// The layouts in which the entry's parameters and result are passed.
    pub entry_layout: Option<ProgramShape>,
    /// Whether the instructions' order is the order of execution.
    pub is_scheduled: bool,
    /// Header attributes that are carried, not understood, as `name`, text.
    pub other: Vec<(SmolStr, Verbatim)>,
    /// Call stacks that metadata refers to.
    pub stack_tables: Option<StackTables>,
}

/// The call stacks of a module: each table is numbered from 1.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StackTables {
    /// `FileNames`.
    pub file_names: Vec<SmolStr>,
    /// `FunctionNames`.
    pub function_names: Vec<SmolStr>,
    /// `FileLocations`.
    pub file_locations: Vec<FileLocation>,
    /// `StackFrames`.
    pub stack_frames: Vec<StackFrame>,
}

/// A range of source text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FileLocation {
    /// Index into the file names, from 1.
    pub file_name_id: i64,
    /// Index into the function names, from 1.
    pub function_name_id: i64,
    /// First line, from 1.
    pub line: i64,
    /// Last line.
    pub end_line: i64,
    /// First column, from 1.
    pub column: i64,
    /// Last column.
    pub end_column: i64,
}

/// A frame of a call stack.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StackFrame {
    /// Index into the file locations, from 1.
    pub file_location_id: i64,
    /// As text has it: the caller's index plus 1; 1 for the outermost frame.
    pub parent_frame_id: i64,
}

impl StackTables {
    /// File name and line of a frame.
    pub fn source_of(&self, stack_frame_id: i64) -> Option<(&str, i64)> {
        let frame = nth(&self.stack_frames, stack_frame_id)?;
        let location = nth(&self.file_locations, frame.file_location_id)?;
        let file = nth(&self.file_names, location.file_name_id)?;
        Some((file, location.line))
    }
}

fn nth<T>(table: &[T], id: i64) -> Option<&T> {
    table.get(usize::try_from(id.checked_sub(1)?).ok()?)
}
