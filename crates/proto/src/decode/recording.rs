//! Decodes the recorded values of a snapshot.

use prost::Message as _;
use tilewright_ir::Literal;

use super::{malformed, raw_literal};
use crate::error::{ProtoError, Within as _};
use crate::form::Form;
use crate::generated::xla::LiteralProto;
use crate::literal;
use crate::wire::{self, fields};

/// The values of one run of a module.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Recording {
    /// The arguments of the run, one for each parameter; those of the first device.
    pub arguments: Vec<Literal>,
    /// The arguments of each further device, if those of several were recorded.
    pub others: Vec<Vec<Literal>>,
    /// The result of the run; none if it was not recorded.
    pub result: Option<Literal>,
}

impl Recording {
    /// Returns the arguments of every device that has its own.
    pub fn inputs(&self) -> Vec<Vec<Literal>> {
        [&self.arguments].into_iter().chain(&self.others).cloned().collect()
    }
}

// Fields of `HloSnapshot`.
const ARGUMENTS: u32 = 2;
const RESULT: u32 = 3;
// Fields of `HloUnoptimizedSnapshot`.
const PARTITIONS: u32 = 2;
const VERSION: u32 = 3;
// Fields of its partitions.
const VALUES: u32 = 1;
const DESCRIPTORS: u32 = 2;
// Fields of the descriptors of values that follow the message.
const VALUE_VERSION: u32 = 1;
const VALUE_SIZE: u32 = 2;

/// Returns the values in an `HloSnapshot` or `HloUnoptimizedSnapshot`; none in other messages, nor
/// in one without values.
///
/// # Errors
/// Returns an error if the bytes are damaged, or a value has not as many elements as its shape.
pub fn decode_recording(bytes: &[u8]) -> Result<Option<Recording>, ProtoError> {
    let recording = match Form::of(bytes) {
        Form::Module(_) => return Ok(None),
        Form::Snapshot(bytes) => snapshot(bytes)?,
        Form::Dump(bytes) => partitions(bytes, &mut &[][..])?,
        Form::Delimited { message, mut values } => {
            let recording = partitions(message, &mut values)?;
            if !values.is_empty() {
                let message = format!("{} bytes follow the last argument", values.len());
                return Err(ProtoError::new(message).within("partitions"));
            }
            recording
        }
    };
    let is_empty = recording == Recording::default();
    Ok((!is_empty).then_some(recording))
}

fn snapshot(bytes: &[u8]) -> Result<Recording, ProtoError> {
    let mut recording = Recording::default();
    for field in fields(bytes) {
        let field = field.map_err(|wire::Malformed| malformed())?;
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
    Ok(recording)
}

/// Reads the arguments of all partitions; those that are not in the message are `values`.
fn partitions(bytes: &[u8], values: &mut &[u8]) -> Result<Recording, ProtoError> {
    let mut found = Vec::new();
    for field in fields(bytes) {
        let field = field.map_err(|wire::Malformed| malformed())?;
        match (field.number, field.payload, field.varint) {
            (PARTITIONS, Some(inputs), _) => {
                let arguments = partition(inputs, values);
                found.push(arguments.map_err(|e| e.within_element("partitions", found.len()))?);
            }
            (VERSION, _, Some(version)) => known_version(version).within("version")?,
            _ => {}
        }
    }
    let mut found = found.into_iter();
    let arguments = found.next().unwrap_or_default();
    Ok(Recording { arguments, others: found.collect(), result: None })
}

/// XLA has counted no further so far.
fn known_version(version: u64) -> Result<(), ProtoError> {
    if version == 0 { Ok(()) } else { Err(ProtoError::unknown("version", version)) }
}

fn partition(bytes: &[u8], values: &mut &[u8]) -> Result<Vec<Literal>, ProtoError> {
    let mut arguments = Vec::new();
    for field in fields(bytes) {
        let field = field.map_err(|wire::Malformed| malformed())?;
        let argument = match (field.number, field.payload) {
            (VALUES, Some(value)) => decode(value),
            (DESCRIPTORS, Some(descriptor)) => described(descriptor, values),
            _ => continue,
        };
        arguments.push(argument.map_err(|e| e.within_element("arguments", arguments.len()))?);
    }
    Ok(arguments)
}

/// Reads the next of the values that follow the message.
fn described(descriptor: &[u8], values: &mut &[u8]) -> Result<Literal, ProtoError> {
    let number = |number: u32| {
        let mut found = fields(descriptor).map_while(Result::ok);
        found.find(|field| field.number == number).and_then(|field| field.varint).unwrap_or(0)
    };
    known_version(number(VALUE_VERSION)).within("version")?;
    let size = usize::try_from(number(VALUE_SIZE)).ok();
    let Some((value, rest)) = size.and_then(|size| values.split_at_checked(size)) else {
        return Err(ProtoError::new("the end of it is missing"));
    };
    *values = rest;
    raw_literal::decode(value)
}

fn decode(bytes: &[u8]) -> Result<Literal, ProtoError> {
    let proto = LiteralProto::decode(bytes)
        .map_err(|error| ProtoError::new(format!("it cannot be decoded: {error}")))?;
    literal::decode(proto)
}
