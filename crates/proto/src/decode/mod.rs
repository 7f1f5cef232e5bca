//! From bytes to a module.
//!
//! Computations and instructions are decoded one after another, so that at most one message is
//! in memory beside the bytes and the module. The ids needed to sort calls and operands are
//! looked up in the bytes first.

mod attribute;
mod computation;
mod extras;
mod header;
mod instruction;
mod order;
mod raw_literal;
mod recording;
mod recovery;

use prost::Message;
use rustc_hash::FxHashMap;
use tilewright_ir::{CompId, Module};

use crate::error::{ProtoError, Within as _};
use crate::form::Form;
use crate::generated::xla::HloModuleProto;
use crate::generated::{known, xla};
use crate::metadata::Payloads;
use crate::residue::{Known, residue};
use crate::wire::{self, fields};
pub(crate) use attribute::{FLOAT, usual_order};
use computation::{Computation, split};
use order::{Ids, OrderError, order};
pub use recording::{Recording, decode_recording};

/// Reads a module from an `HloModuleProto`, an `HloProto`, an `HloSnapshot` or an
/// `HloUnoptimizedSnapshot`; the content determines which.
///
/// The decoder keeps the parts of XLA's messages that belong to the module, and drops the
/// others (buffer assignments; also arguments and results, for which there is
/// [`decode_recording`]). The verifier decides whether the module is sound, but the result is a
/// graph: all ids are known and there are no cycles.
///
/// # Errors
/// Returns an error if the bytes are damaged, a reference has no target, or a field has a value
/// that has no meaning here.
pub fn decode(bytes: &[u8]) -> Result<Module, ProtoError> {
    decode_within(Form::of(bytes).module(), 0)
}

/// Reads an `HloModuleProto` that is nested in this many recovery tables.
fn decode_within(bytes: &[u8], recovery_depth: usize) -> Result<Module, ProtoError> {
    let mut parts = Parts::default();
    for field in fields(bytes) {
        let field = field.map_err(|wire::Malformed| malformed())?;
        match (field.number, field.payload) {
            (COMPUTATIONS, Some(computation)) => parts.computations.push(computation),
            (PAYLOADS, Some(payload)) => {
                parts.payloads.push(payload);
                parts.header.extend_from_slice(field.whole);
            }
            _ => parts.header.extend_from_slice(field.whole),
        }
    }
    decode_parts(&parts, recovery_depth)
}

const COMPUTATIONS: u32 = 3;
const PAYLOADS: u32 = 22;

/// A module, cut up.
#[derive(Default)]
struct Parts<'a> {
    computations: Vec<&'a [u8]>,
    payloads: Vec<&'a [u8]>,
    /// All the rest.
    header: Vec<u8>,
}

fn malformed() -> ProtoError {
    ProtoError::new("this is no protobuf message, or the end of it is missing")
}

/// Decodes one message and cuts out the fields that the schema does not know.
fn message<M: Message + Default>(
    bytes: &[u8],
    known: &[(u32, Known)],
) -> Result<(M, Vec<u8>), ProtoError> {
    let message = M::decode(bytes)
        .map_err(|error| ProtoError::new(format!("it cannot be decoded: {error}")))?;
    let residue = residue(bytes, known).map_err(|wire::Malformed| malformed())?;
    Ok((message, residue))
}

/// The data that the parts of a module share.
struct Env<'a> {
    payloads: &'a Payloads<'a>,
    /// The computations so far, by their ids.
    computations: FxHashMap<i64, CompId>,
    schedule: &'a std::collections::BTreeMap<i64, xla::hlo_schedule_proto::InstructionSequence>,
}

fn decode_parts(parts: &Parts<'_>, recovery_depth: usize) -> Result<Module, ProtoError> {
    let (proto, residue): (HloModuleProto, _) = message(&parts.header, &known::HLO_MODULE_PROTO)?;
    let mut module = Module::new(proto.name.as_str());
    module.header = header::decode(&proto)?;
    module.header.residue = residue.into();
    if let Some(table) = &proto.original_value_recovery_table {
        let table = recovery::decode(table, recovery_depth);
        module.header.origin_recovery = table.within("original_value_recovery_table")?;
    }
    let mut computations = Vec::with_capacity(parts.computations.len());
    for (index, bytes) in parts.computations.iter().enumerate() {
        let computation = split(bytes);
        computations.push(computation.map_err(|e| e.within_element("computations", index))?);
    }
    let none = Default::default();
    let mut env = Env {
        payloads: &parts.payloads,
        computations: FxHashMap::default(),
        schedule: proto.schedule.as_ref().map_or(&none, |schedule| &schedule.sequences),
    };
    for index in call_order(&computations)? {
        let computation = &computations[index];
        let id = computation::decode(&mut module, &env, computation)
            .map_err(|error| error.within_element("computations", index))?;
        env.computations.insert(computation.proto.id, id);
    }
    match env.computations.get(&proto.entry_computation_id) {
        Some(&entry) => module.set_entry(entry),
        None => {
            let message = format!("there is no computation {}", proto.entry_computation_id);
            return Err(ProtoError::new(message).within("entry_computation_id"));
        }
    }
    Ok(module)
}

/// Callees before callers.
fn call_order(computations: &[Computation<'_>]) -> Result<Vec<usize>, ProtoError> {
    let id = |at: usize| computations[at].proto.id;
    let callees = |at: usize| {
        let called = computations[at].instructions.iter().flat_map(|i| i.called.iter().copied());
        called.collect::<Ids>()
    };
    order(computations.len(), id, callees).map_err(|error| {
        let (at, message) = match error {
            OrderError::Twice(at) => (at, format!("a second computation with the id {}", id(at))),
            OrderError::Unknown(at, called) => {
                (at, format!("it calls {called}, which is not there"))
            }
            OrderError::Cycle(at) => (at, "it calls itself, be it through others".to_owned()),
        };
        let name = &computations[at].proto.name;
        ProtoError::new(format!("`{name}`: {message}")).within_element("computations", at)
    })
}
