//! What is known about instructions and modules beyond op, shape, operands.

use std::collections::BTreeMap;

use smol_str::SmolStr;

use crate::entity::InstId;
use crate::module::Module;
use crate::ops::attr::{Real64, Verbatim};
use crate::types::shape::{Dims, Shape};
use crate::types::sharding::Sharding;

/// Fields of the binary form that have no place here, as a protobuf message
/// that holds nothing else. It is carried, not understood: whatever carries it
/// is written with it again, and text cannot say it.
pub type Residue = Box<[u8]>;

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
    /// What few instructions have.
    pub rare: Option<Box<RareMetadata>>,
}

/// Fields of [`OpMetadata`] that few instructions have.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct RareMetadata {
    /// The last line; 0 if unknown.
    pub source_end_line: i64,
    /// The first column, from 1; 0 if unknown.
    pub source_column: i64,
    /// The last column; 0 if unknown.
    pub source_end_column: i64,
    /// Kinds of profiles that guided optimisation, by their numbers in XLA.
    pub profile_type: Vec<i64>,
    /// The name of the instruction of which this is a copy.
    pub deduplicated_name: SmolStr,
    /// A name that stays the same through scheduling.
    pub scheduling_name: SmolStr,
    /// Anything.
    pub metadata_payload: SmolStr,
    /// Fields that are carried, not understood, as `name`, text.
    pub other: Vec<(SmolStr, Verbatim)>,
    /// The rest of its binary form.
    pub residue: Residue,
}

/// Attributes that any instruction may have, and few do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Extras {
    /// `sharding={...}`.
    pub sharding: Option<Box<Sharding>>,
    /// `frontend_attributes={...}`.
    pub frontend_attributes: FrontendAttributes,
    /// `parameter_replication={true,false}`: for each array of a parameter,
    /// whether it is the same on all devices.
    pub parameter_replication: Vec<bool>,
    /// `statistics={...}`.
    pub statistics: Option<Box<Statistics>>,
    /// `origin={...}`.
    pub origin: Option<Box<Origin>>,
    /// `backend_config=...`, with its quotes or braces.
    pub backend_config: Option<Verbatim>,
    /// `control-predecessors={...}`: these run first.
    pub control_predecessors: Vec<InstId>,
    /// The other end of the control predecessors; kept by the module.
    pub(crate) control_successors: Vec<InstId>,
    /// Attributes that are carried, not understood, as `name`, text.
    pub other: Vec<(SmolStr, Verbatim)>,
    /// The rest of its binary form, metadata aside. Passes take it, as any
    /// extra, for something that an instruction must keep.
    pub residue: Residue,
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

/// What front ends say to themselves: names and values, in order.
pub type FrontendAttributes = Vec<(SmolStr, Box<str>)>;

/// Numbers to show beside an instruction (XLA's `StatisticsViz`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Which of them to show as a colour.
    pub visualizing_index: i64,
    /// Names and values.
    pub values: Vec<(SmolStr, Real64)>,
}

/// Which values of the original program an instruction computes (XLA's
/// `OriginalValue`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// `{[synthetic_call]}`: a call that was not in the program.
    SyntheticCall,
    /// For each array.
    Value(OriginTree),
}

/// The [`Origin`] of a value, in the form of its shape.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OriginTree {
    /// Of an array: `{"x" {0}}`; `None` if it has none.
    Array(Option<OriginalArray>),
    /// Of a tuple: `({"x"}, {"y"})`.
    Tuple(Vec<OriginTree>),
}

/// An array of the original program.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OriginalArray {
    /// The instruction that computed it.
    pub instruction: SmolStr,
    /// Which part of its result.
    pub part: Dims,
}

/// How arrays of the original program that nothing computes any more are had
/// from others (XLA's `OriginalValueRecoveryTable`).
pub type RecoveryTable = BTreeMap<OriginalArray, Recovery>;

/// How one array of the original program is had from another.
#[derive(Clone, Debug)]
pub struct Recovery {
    /// The other array; instructions have it as their origin.
    pub replacement: OriginalArray,
    /// A program of one parameter, the other array, and the lost one as its
    /// result; both are the same if there is none.
    pub module: Option<Box<Module>>,
    /// The rest of the binary form of this entry.
    pub residue: Residue,
}

/// How deep recovery tables may nest, each in a module of the one around it.
/// Text doubles the escapes with each of them.
pub const MAX_RECOVERY_DEPTH: usize = 4;

/// The types of a computation's parameters and result, layouts included.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ProgramShape {
    /// The parameters, by number.
    pub parameters: Vec<Shape>,
    /// The result.
    pub result: Shape,
}

/// What stands between `HloModule name` and the first computation.
#[derive(Clone, Debug, Default)]
pub struct Header {
    /// The layouts in which the entry's parameters and result are passed.
    pub entry_layout: Option<ProgramShape>,
    /// Whether the instructions' order is the order of execution.
    pub is_scheduled: bool,
    /// Results of the entry that lie in the buffer of a parameter.
    pub input_output_alias: Vec<InputOutputAlias>,
    /// Parameters, or parts of them, whose buffers may be used for results.
    pub buffer_donors: Vec<(i64, Dims)>,
    /// Whether parameters that are results lie in the same buffer.
    pub alias_passthrough_params: bool,
    /// For each parameter, or one for all, whether a partitioner may choose
    /// the sharding.
    pub allow_sharding_propagation_to_parameters: Vec<bool>,
    /// The same for the arrays of the result.
    pub allow_sharding_propagation_to_output: Vec<bool>,
    /// Copies of the program that run on different data; 1 if absent.
    pub replica_count: Option<i64>,
    /// Parts into which the program is cut; 1 if absent.
    pub num_partitions: Option<i64>,
    /// `frontend_attributes={...}`.
    pub frontend_attributes: FrontendAttributes,
    /// `origin_recovery_table={...}`.
    pub origin_recovery: RecoveryTable,
    /// Header attributes that are carried, not understood, as `name`, text.
    pub other: Vec<(SmolStr, Verbatim)>,
    /// Call stacks that metadata refers to.
    pub stack_tables: Option<StackTables>,
    /// The rest of the module's binary form.
    pub residue: Residue,
}

/// A part of the entry's result that lies in the buffer of a part of a
/// parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InputOutputAlias {
    /// Which part of the result.
    pub output: Dims,
    /// The number of the parameter.
    pub parameter: i64,
    /// Which part of it.
    pub parameter_part: Dims,
    /// Whether it must, rather than may.
    pub must: bool,
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
