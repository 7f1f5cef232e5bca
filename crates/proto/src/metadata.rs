//! Converts the metadata of instructions.

use smol_str::SmolStr;
use tilewright_ir::OpMetadata;
use tilewright_ir::metadata::RareMetadata;

use crate::error::ProtoError;
use crate::generated::xla::{self, Payload, payload::PayloadSource};

/// The module's table of payloads.
pub(crate) type Payloads<'a> = [&'a [u8]];

pub(crate) fn decode(
    proto: &xla::OpMetadata,
    payloads: &Payloads<'_>,
) -> Result<OpMetadata, ProtoError> {
    let rare = RareMetadata {
        source_end_line: i64::from(proto.source_end_line),
        source_column: i64::from(proto.source_column),
        source_end_column: i64::from(proto.source_end_column),
        profile_type: proto.profile_type.iter().map(|&number| i64::from(number)).collect(),
        deduplicated_name: proto.deduplicated_name.as_str().into(),
        scheduling_name: proto.scheduling_name.as_str().into(),
        metadata_payload: decode_payload(proto.metadata_payload.as_ref(), payloads)
            .map_err(|error| error.within("metadata_payload"))?,
        ..RareMetadata::default()
    };
    Ok(OpMetadata {
        op_type: proto.op_type.as_str().into(),
        op_name: proto.op_name.as_str().into(),
        source_file: proto.source_file.as_str().into(),
        source_line: i64::from(proto.source_line),
        stack_frame_id: i64::from(proto.stack_frame_id),
        rare: (rare != RareMetadata::default()).then(|| Box::new(rare)),
    })
}

fn decode_payload(
    payload: Option<&Payload>,
    payloads: &Payloads<'_>,
) -> Result<SmolStr, ProtoError> {
    let bytes = match payload.and_then(|payload| payload.payload_source.as_ref()) {
        None => return Ok(SmolStr::default()),
        Some(PayloadSource::Value(bytes)) => bytes.as_slice(),
        Some(PayloadSource::Id(id)) => {
            let found = usize::try_from(*id).ok().and_then(|at| payloads.get(at));
            found.ok_or_else(|| ProtoError::new(format!("the module has no payload {id}")))?
        }
    };
    let text = std::str::from_utf8(bytes);
    text.map(SmolStr::new).map_err(|_| ProtoError::new("the payload is not UTF-8"))
}

pub(crate) fn encode(metadata: &OpMetadata) -> Result<xla::OpMetadata, ProtoError> {
    let mut proto = xla::OpMetadata {
        op_type: metadata.op_type.to_string(),
        op_name: metadata.op_name.to_string(),
        source_file: metadata.source_file.to_string(),
        source_line: narrow("source_line", metadata.source_line)?,
        stack_frame_id: narrow("stack_frame_id", metadata.stack_frame_id)?,
        ..xla::OpMetadata::default()
    };
    if let Some(rare) = &metadata.rare {
        encode_rare(rare, &mut proto)?;
    }
    Ok(proto)
}

fn encode_rare(rare: &RareMetadata, proto: &mut xla::OpMetadata) -> Result<(), ProtoError> {
    if let Some((name, _)) = rare.other.first() {
        return Err(unknown_to_proto(name));
    }
    proto.source_end_line = narrow("source_end_line", rare.source_end_line)?;
    proto.source_column = narrow("source_column", rare.source_column)?;
    proto.source_end_column = narrow("source_end_column", rare.source_end_column)?;
    let profile = rare.profile_type.iter();
    proto.profile_type =
        profile.map(|&number| narrow("profile_type", number)).collect::<Result<_, _>>()?;
    proto.deduplicated_name = rare.deduplicated_name.to_string();
    proto.scheduling_name = rare.scheduling_name.to_string();
    if !rare.metadata_payload.is_empty() {
        let value = rare.metadata_payload.as_bytes().to_vec();
        let payload_source = Some(PayloadSource::Value(value));
        proto.metadata_payload = Some(Payload { payload_source });
    }
    Ok(())
}

/// Returns a number as proto holds it.
pub(crate) fn narrow(field: &str, number: i64) -> Result<i32, ProtoError> {
    i32::try_from(number).map_err(|_| {
        let message = format!("{number} does not fit in the 32 bits that proto has for it");
        ProtoError::with_help(message, "write text").within(field)
    })
}

/// Text that is carried without being understood.
pub(crate) fn unknown_to_proto(name: &str) -> ProtoError {
    ProtoError::with_help(
        format!("the attribute `{name}` was carried as text and has no known place in proto"),
        "write text, or remove it",
    )
}
