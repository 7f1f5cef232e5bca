//! Data about instructions and modules other than op, shape and operands.

use std::collections::BTreeMap;

use smol_str::SmolStr;

use crate::entity::InstId;
use crate::module::Module;
use crate::ops::attr::{Real64, Verbatim};
use crate::types::shape::{Dims, Shape};
use crate::types::sharding::Sharding;

/// Fields of the binary form that this crate does not model, as a protobuf message with only
/// these fields. They are written back unchanged with the item that they belong to; text cannot
/// express them.
pub type Residue = Box<[u8]>;

/// The origin of an instruction in its framework (XLA's `OpMetadata`).
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct OpMetadata {
    /// The framework's op, for example `conv_general_dilated`.
    pub op_type: SmolStr,
    /// The framework's name, for example `jit(f)/jit(main)/add`.
    pub op_name: SmolStr,
    /// The source file of the op.
    pub source_file: SmolStr,
    /// The line, from 1; 0 if unknown.
    pub source_line: i64,
    /// The frame in the module's [`StackTables`], from 1; 0 if unknown.
    pub stack_frame_id: i64,
    /// Fields that few instructions have.
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
    /// The name of the instruction that this one copies.
    pub deduplicated_name: SmolStr,
    /// A name that stays the same through scheduling.
    pub scheduling_name: SmolStr,
    /// An arbitrary payload.
    pub metadata_payload: SmolStr,
    /// Unmodelled fields as pairs of name and text.
    pub other: Vec<(SmolStr, Verbatim)>,
    /// The rest of its binary form.
    pub residue: Residue,
}

/// Attributes that any instruction can have, but few do.
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
    /// `control-predecessors={...}`: instructions that must run first.
    pub control_predecessors: Vec<InstId>,
    /// The inverse of the control predecessors; maintained by the module.
    pub(crate) control_successors: Vec<InstId>,
    /// Unmodelled attributes as pairs of name and text.
    pub other: Vec<(SmolStr, Verbatim)>,
    /// The rest of its binary form, without metadata. Passes must keep it, like any other extra.
    pub residue: Residue,
}

impl Extras {
    /// Returns the instructions that must run after this one.
    pub fn control_successors(&self) -> &[InstId] {
        &self.control_successors
    }

    /// Checks whether there are no extras.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Attributes that front ends define for themselves: names and values, in order.
pub type FrontendAttributes = Vec<(SmolStr, Box<str>)>;

/// Returns the value of an attribute, if it is there.
pub fn value_of<'a>(attributes: &'a FrontendAttributes, name: &str) -> Option<&'a str> {
    attributes.iter().find(|(known, _)| known == name).map(|(_, value)| &**value)
}

/// Numbers to display beside an instruction (XLA's `StatisticsViz`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// The index of the number to display as a colour.
    pub visualizing_index: i64,
    /// Names and values.
    pub values: Vec<(SmolStr, Real64)>,
}

/// The values of the original program that an instruction computes (XLA's `OriginalValue`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// `{[synthetic_call]}`: a call that was not in the program.
    SyntheticCall,
    /// One origin per array of the result.
    Value(OriginTree),
}

/// The [`Origin`] of a value, structured like its shape.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OriginTree {
    /// The origin of an array: `{"x" {0}}`; `None` if it has none.
    Array(Option<OriginalArray>),
    /// The origins of a tuple's elements: `({"x"}, {"y"})`.
    Tuple(Vec<OriginTree>),
}

/// An array of the original program.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OriginalArray {
    /// The instruction that computed it.
    pub instruction: SmolStr,
    /// The index of the array in a tuple result; empty for the whole result.
    pub part: Dims,
}

/// How to compute arrays of the original program that no instruction computes any more (XLA's
/// `OriginalValueRecoveryTable`).
pub type RecoveryTable = BTreeMap<OriginalArray, Recovery>;

/// How to compute an array of the original program from another one.
#[derive(Clone, Debug)]
pub struct Recovery {
    /// The other array, which is the origin of instructions.
    pub replacement: OriginalArray,
    /// A module that computes the lost array from one parameter, the other array; `None` if the
    /// two are equal.
    pub module: Option<Box<Module>>,
    /// The rest of the binary form of this entry.
    pub residue: Residue,
}

/// The maximum nesting depth of recovery tables, each in a module of the enclosing table. Each
/// level doubles the escapes in text.
pub const MAX_RECOVERY_DEPTH: usize = 4;

/// The types of a computation's parameters and result, layouts included.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ProgramShape {
    /// The parameters, by number.
    pub parameters: Vec<Shape>,
    /// The result.
    pub result: Shape,
}

/// The attributes between `HloModule name` and the first computation.
#[derive(Clone, Debug, Default)]
pub struct Header {
    /// The layouts in which the entry's parameters and result are passed.
    pub entry_layout: Option<ProgramShape>,
    /// Whether the instructions' order is the order of execution.
    pub is_scheduled: bool,
    /// Results of the entry that share the buffer of a parameter.
    pub input_output_alias: Vec<InputOutputAlias>,
    /// Parameters, or parts of them, whose buffers may be used for results.
    pub buffer_donors: Vec<(i64, Dims)>,
    /// Whether a parameter that is also a result shares the result's buffer.
    pub alias_passthrough_params: bool,
    /// For each parameter, or once for all, whether a partitioner may choose the sharding.
    pub allow_sharding_propagation_to_parameters: Vec<bool>,
    /// The same for the arrays of the result.
    pub allow_sharding_propagation_to_output: Vec<bool>,
    /// Copies of the program that run on different data; 1 if absent.
    pub replica_count: Option<i64>,
    /// Number of partitions of the program; 1 if absent.
    pub num_partitions: Option<i64>,
    /// `frontend_attributes={...}`.
    pub frontend_attributes: FrontendAttributes,
    /// `origin_recovery_table={...}`.
    pub origin_recovery: RecoveryTable,
    /// Unmodelled header attributes as pairs of name and text.
    pub other: Vec<(SmolStr, Verbatim)>,
    /// Call stacks that metadata refers to.
    pub stack_tables: Option<StackTables>,
    /// The rest of the module's binary form.
    pub residue: Residue,
}

/// A part of the entry's result that shares the buffer of a part of a parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InputOutputAlias {
    /// The index of the part in the result.
    pub output: Dims,
    /// The number of the parameter.
    pub parameter: i64,
    /// The index of the part in the parameter.
    pub parameter_part: Dims,
    /// Whether sharing is required, not only allowed.
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
    /// The caller's index plus 1, as in text; 1 for the outermost frame.
    pub parent_frame_id: i64,
}

/// The most calls of a stack that are gone through.
const MOST_FRAMES: usize = 256;

impl StackTables {
    /// File names and lines of a frame and its callers, the frame's first. A stack in a circle ends.
    pub fn sources_of(&self, stack_frame_id: i64) -> impl Iterator<Item = (&str, i64)> {
        let mut next = Some(stack_frame_id);
        let frames = std::iter::from_fn(move || {
            let id = next?;
            let parent = nth(&self.stack_frames, id)?.parent_frame_id.checked_sub(1);
            next = parent.filter(|&parent| parent != id);
            Some(id)
        });
        frames.take(MOST_FRAMES).map_while(|id| self.source_of(id))
    }

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
