//! Decodes the header of a module.

use tilewright_ir::metadata::{FileLocation, InputOutputAlias, StackFrame};
use tilewright_ir::{Dims, Header, StackTables};

use crate::error::{ProtoError, Within as _};
use crate::generated::xla::{FrontendAttributes, HloModuleProto, StackFrameIndexProto};
use crate::shape;

pub(super) fn decode(proto: &HloModuleProto) -> Result<Header, ProtoError> {
    let layout = proto.host_program_shape.as_ref().map(shape::decode_program).transpose();
    let aliases = proto.input_output_alias.iter().flat_map(|aliases| &aliases.entries);
    let donors = proto.buffer_donor.iter().flat_map(|donors| &donors.entries);
    Ok(Header {
        entry_layout: layout.within("host_program_shape")?,
        is_scheduled: proto.schedule.is_some(),
        input_output_alias: aliases
            .map(|alias| InputOutputAlias {
                output: Dims::from_slice(&alias.output_shape_index),
                parameter: alias.parameter_number,
                parameter_part: Dims::from_slice(&alias.parameter_shape_index),
                must: alias.kind == MUST_ALIAS,
            })
            .collect(),
        buffer_donors: donors
            .map(|donor| (donor.parameter_number, Dims::from_slice(&donor.parameter_shape_index)))
            .collect(),
        frontend_attributes: frontend_attributes(proto.frontend_attributes.as_ref()),
        stack_tables: proto.stack_frame_index.as_ref().map(stack_tables),
        ..Header::default()
    })
}

const MUST_ALIAS: i32 = 2;

pub(super) fn frontend_attributes(
    proto: Option<&FrontendAttributes>,
) -> tilewright_ir::metadata::FrontendAttributes {
    let map = proto.iter().flat_map(|attributes| &attributes.map);
    map.map(|(name, value)| (name.as_str().into(), value.as_str().into())).collect()
}

fn stack_tables(proto: &StackFrameIndexProto) -> StackTables {
    let strings = |names: &[String]| names.iter().map(|name| name.as_str().into()).collect();
    let location =
        |location: &crate::generated::xla::stack_frame_index_proto::FileLocation| FileLocation {
            file_name_id: i64::from(location.file_name_id),
            function_name_id: i64::from(location.function_name_id),
            line: i64::from(location.line),
            end_line: i64::from(location.end_line),
            column: i64::from(location.column),
            end_column: i64::from(location.end_column),
        };
    let frame = |frame: &crate::generated::xla::stack_frame_index_proto::StackFrame| StackFrame {
        file_location_id: i64::from(frame.file_location_id),
        // Text counts callers from 2, and has 1 for none.
        parent_frame_id: i64::from(frame.parent_frame_id).saturating_add(1),
    };
    StackTables {
        file_names: strings(&proto.file_names),
        function_names: strings(&proto.function_names),
        file_locations: proto.file_locations.iter().map(location).collect(),
        stack_frames: proto.stack_frames.iter().map(frame).collect(),
    }
}
