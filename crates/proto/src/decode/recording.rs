//! Decodes the recorded values of a snapshot.

use prost::Message as _;
use tilewright_ir::Literal;

use crate::error::{ProtoError, Within as _};
use crate::form::snapshot_of;
use crate::generated::xla::LiteralProto;
use crate::literal;
use crate::wire::{self, fields};

/// The values of one run of a module.
#[derive(Clone, Debug, PartialEq)]
pub struct Recording {
    /// The arguments of the run, one for each parameter.
    pub arguments: Vec<Literal>,
    /// The result of the run; none if it was not recorded.
    pub result: Option<Literal>,
}

const ARGUMENTS: u32 = 2;
const RESULT: u32 = 3;

/// Returns the values in an `HloSnapshot`; none in other messages, nor in one without values.
///
/// # Errors
/// Returns an error if the bytes are damaged, or a value has not as many elements as its shape.
pub fn decode_recording(bytes: &[u8]) -> Result<Option<Recording>, ProtoError> {
    let Some(snapshot) = snapshot_of(bytes) else { return Ok(None) };
    let mut recording = Recording { arguments: Vec::new(), result: None };
    for field in fields(snapshot) {
        let field = field.map_err(|wire::Malformed| super::malformed())?;
        match (field.number, field.payload) {
            (ARGUMENTS, Some(value)) => {
                let index = recording.arguments.len();
                let value = decode(value).map_err(|e| e.within_element("arguments", index))?;
                recording.arguments.push(value);
            }
            (RESULT, Some(value)) => recording.result = Some(decode(value).within("result")?),
            _ => {}
        }
    }
    let is_empty = recording.arguments.is_empty() && recording.result.is_none();
    Ok((!is_empty).then_some(recording))
}

fn decode(bytes: &[u8]) -> Result<Literal, ProtoError> {
    let proto = LiteralProto::decode(bytes)
        .map_err(|error| ProtoError::new(format!("it cannot be decoded: {error}")))?;
    literal::decode(proto)
}
