//! Writes a module as bytes in XLA's way: fields in the order of their numbers, including those
//! that XLA always writes.

mod attribute;
mod extras;
mod header;
mod ids;
mod instruction;
mod names;
mod recovery;

use prost::Message as _;
use rustc_hash::FxHashSet;
use tilewright_ir::{CompId, Module, Op};

use crate::error::{ProtoError, Within as _, each};
use crate::generated::known;
use crate::generated::xla::{HloComputationProto, HloModuleProto};
use crate::residue::with_residue;
use crate::shape;
use crate::wire::{position_of, push_bytes};
use ids::Ids;

/// Writes a module as an `HloModuleProto`.
///
/// Text alone can say some things, which are left out: see `docs/proto.md`.
///
/// # Errors
/// Returns an error if the module lacks a required part (an entry, roots, the values of
/// constants), or holds text whose meaning is not known here.
pub fn encode(module: &Module) -> Result<Vec<u8>, ProtoError> {
    encode_within(module, 0)
}

/// Writes a module that is nested in this many recovery tables.
fn encode_within(module: &Module, recovery_depth: usize) -> Result<Vec<u8>, ProtoError> {
    let ids = Ids::new(module);
    let fused = fused(module);
    let mut header = HloModuleProto::default();
    header::encode(module, &ids, &fused, &mut header)?;
    let table = recovery::encode(&module.header.origin_recovery, recovery_depth);
    header.original_value_recovery_table = table.within("original_value_recovery_table")?;
    let mut header =
        with_residue(header.encode_to_vec(), &module.header.residue, &known::HLO_MODULE_PROTO);
    let rest = header.split_off(position_of(&header, COMPUTATIONS));
    let mut out = header;
    for (index, &id) in module.computations().iter().enumerate() {
        let bytes = computation(module, &ids, id, fused.contains(&id))
            .map_err(|error| error.within_element("computations", index))?;
        push_bytes(&mut out, COMPUTATIONS, &bytes);
    }
    out.extend_from_slice(&rest);
    Ok(out)
}

/// Writes a module as an `HloProto`, the form of XLA's dumps.
///
/// # Errors
/// Returns the errors of [`encode`].
pub fn encode_hlo_proto(module: &Module) -> Result<Vec<u8>, ProtoError> {
    let mut out = Vec::new();
    push_bytes(&mut out, 1, &encode(module)?);
    Ok(out)
}

const COMPUTATIONS: u32 = 3;
const INSTRUCTIONS: u32 = 2;

/// Returns the computations that fusions call.
fn fused(module: &Module) -> FxHashSet<CompId> {
    let computations = module.computations().iter();
    let instructions = computations.flat_map(|&computation| module.instructions(computation));
    let calls = instructions.filter_map(|id| match module.op(id) {
        Op::Fusion(fusion) => Some(fusion.calls),
        _ => None,
    });
    calls.collect()
}

fn computation(
    module: &Module,
    ids: &Ids,
    id: CompId,
    is_fusion_computation: bool,
) -> Result<Vec<u8>, ProtoError> {
    let computation = module.computation(id);
    let empty = || {
        let message = format!("`{}` has no instruction", computation.name());
        ProtoError::with_help(message, "remove it, or give it a root")
    };
    let root = computation.root().ok_or_else(empty)?;
    let parameters = computation.parameters().iter();
    let names = parameters.clone().map(|&parameter| ids.name(module, parameter).to_owned());
    let shapes = parameters.map(|&parameter| module.shape(parameter));
    let program = shape::encode_program(shapes, module.shape(root), names.collect());
    let proto = HloComputationProto {
        name: computation.name().to_owned(),
        instructions: Vec::new(),
        program_shape: Some(program.within("program_shape")?),
        id: ids.computation(id),
        root_id: ids.instruction(root),
        is_fusion_computation,
        execution_thread: computation.execution_thread().unwrap_or_default().to_owned(),
    };
    let mut out =
        with_residue(proto.encode_to_vec(), computation.residue(), &known::HLO_COMPUTATION_PROTO);
    let rest = out.split_off(position_of(&out, INSTRUCTIONS));
    let instructions: Vec<_> = module.instructions(id).collect();
    let () = each("instructions", &instructions, |&id| {
        let bytes = instruction::encode(module, ids, id);
        let bytes = bytes.map_err(|error| error.of_instruction(module.name_of(id)))?;
        push_bytes(&mut out, INSTRUCTIONS, &bytes);
        Ok(())
    })?;
    out.extend_from_slice(&rest);
    Ok(out)
}
