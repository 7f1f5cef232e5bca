//! Instructions.

use prost::Message as _;
use tilewright_ir::ops::attr::AttrValues;
use tilewright_ir::{CompId, Extras, InstId, Module, Op, OpMetadata, Opcode, Position, Shape};

use super::{Env, attribute, extras, message};
use crate::error::{ProtoError, Within as _};
use crate::generated::known;
use crate::generated::xla::HloInstructionProto;
use crate::residue::take_message;
use crate::wire::fields;
use crate::{literal, metadata, shape};

const NAME: u32 = 1;
const METADATA: u32 = 7;

/// Returns the name in the bytes of an instruction, if it can be read.
pub(super) fn name_in(bytes: &[u8]) -> String {
    let mut fields = fields(bytes).map_while(Result::ok);
    let name = fields.find_map(|field| field.payload.filter(|_| field.number == NAME));
    String::from_utf8_lossy(name.unwrap_or_default()).into_owned()
}

/// Adds an instruction at the end of a computation.
pub(super) fn insert(
    module: &mut Module,
    env: &Env<'_>,
    parent: CompId,
    bytes: &[u8],
    operands: &[InstId],
) -> Result<InstId, ProtoError> {
    let read = read(module, env, bytes, operands);
    let read = read.map_err(|error| error.of_instruction(&name_in(bytes)))?;
    let name = match read.name.as_str() {
        "" => module.fresh_name(read.op.opcode().name()),
        name => name.into(),
    };
    let position = Position::End(parent);
    let id = module
        .insert(position, read.op, read.shape, operands, name)
        .map_err(|error| ProtoError::new(error.to_string()))?;
    module.set_unique_id(id, read.id);
    if let Some(metadata) = read.metadata {
        module.set_metadata(id, metadata);
    }
    if !read.extras.is_empty() {
        module.set_extras(id, read.extras);
    }
    Ok(id)
}

/// An instruction, not yet in the module.
struct Read {
    name: String,
    id: i64,
    op: Op,
    shape: Shape,
    metadata: Option<OpMetadata>,
    extras: Extras,
}

fn read(
    module: &Module,
    env: &Env<'_>,
    bytes: &[u8],
    operands: &[InstId],
) -> Result<Read, ProtoError> {
    let (mut proto, mut residue): (HloInstructionProto, _) =
        message(bytes, &known::HLO_INSTRUCTION_PROTO)?;
    let shape = proto.shape.as_ref().ok_or_else(|| ProtoError::new("the shape is missing"))?;
    let shape = shape::decode(shape).within("shape")?;
    let metadata = read_metadata(&proto, env, take_message(&mut residue, METADATA))?;
    let mut extras = extras::decode(&mut proto, &shape, env)?;
    extras.residue = residue.into();
    let op = read_op(module, env, &mut proto, operands)?;
    Ok(Read { name: proto.name, id: proto.id, op, shape, metadata, extras })
}

fn read_metadata(
    proto: &HloInstructionProto,
    env: &Env<'_>,
    residue: Vec<u8>,
) -> Result<Option<OpMetadata>, ProtoError> {
    let Some(proto) = proto.metadata.as_ref() else { return Ok(None) };
    if proto.encoded_len() == 0 && residue.is_empty() {
        return Ok(None);
    }
    let mut metadata = metadata::decode(proto, env.payloads).within("metadata")?;
    if !residue.is_empty() {
        metadata.rare.get_or_insert_default().residue = residue.into();
    }
    Ok(Some(metadata))
}

fn read_op(
    module: &Module,
    env: &Env<'_>,
    proto: &mut HloInstructionProto,
    operands: &[InstId],
) -> Result<Op, ProtoError> {
    let opcode = Opcode::from_name(&proto.opcode).ok_or_else(|| {
        ProtoError::unknown("opcode", format_args!("`{}`", proto.opcode.escape_debug()))
            .within("opcode")
    })?;
    if opcode == Opcode::Constant {
        let value = proto.literal.take().ok_or_else(|| ProtoError::new("the value is missing"));
        let value = value.and_then(literal::decode).within("literal")?;
        return Ok(Op::Constant(Box::new(value)));
    }
    let called = proto.called_computation_ids.iter().map(|id| {
        let found = env.computations.get(id).copied();
        found.ok_or_else(|| ProtoError::new(format!("there is no computation {id}")))
    });
    let called: Vec<CompId> = called.collect::<Result<_, _>>().within("called_computation_ids")?;
    let operands: Vec<&Shape> = operands.iter().map(|&operand| module.shape(operand)).collect();
    let context = attribute::Context { opcode, called: &called, operands: &operands, env };
    let mut values = AttrValues::default();
    for spec in opcode.attrs() {
        if let Some(value) = context.attribute(spec.name, proto)? {
            values.insert(spec.name, value);
        }
    }
    let op = Op::from_attrs(opcode, &mut values);
    let op = op.map_err(|error| ProtoError::new(error.to_string()))?;
    check_calls(&op, &called)?;
    Ok(op)
}

/// Whether all that is called has found its place.
fn check_calls(op: &Op, called: &[CompId]) -> Result<(), ProtoError> {
    let mut taken = 0usize;
    op.for_each_computation(&mut |_| taken += 1);
    if taken == called.len() {
        return Ok(());
    }
    let opcode = op.opcode();
    let message = format!("`{opcode}` takes {taken} computations, not {}", called.len());
    Err(ProtoError::new(message).within("called_computation_ids"))
}
