//! Computations: their instructions, sorted.

use rustc_hash::{FxHashMap, FxHashSet};
use smol_str::SmolStr;
use tilewright_ir::{CompId, InstId, Module};

use super::order::{Ids, OrderError, order};
use super::{Env, instruction, malformed, message};
use crate::error::ProtoError;
use crate::generated::known;
use crate::generated::xla::HloComputationProto;
use crate::wire::{Malformed, fields};

/// A computation, cut up.
pub(super) struct Computation<'a> {
    /// Without its instructions.
    pub(super) proto: HloComputationProto,
    residue: Vec<u8>,
    pub(super) instructions: Vec<Peek<'a>>,
}

/// An instruction whose references alone were decoded.
pub(super) struct Peek<'a> {
    bytes: &'a [u8],
    id: i64,
    operands: Ids,
    control_predecessors: Ids,
    pub(super) called: Ids,
}

const INSTRUCTIONS: u32 = 2;
const ID: u32 = 35;
const OPERANDS: u32 = 36;
const CONTROL_PREDECESSORS: u32 = 37;
const CALLED: u32 = 38;

pub(super) fn split(bytes: &[u8]) -> Result<Computation<'_>, ProtoError> {
    let mut instructions = Vec::new();
    let mut rest = Vec::new();
    for field in fields(bytes) {
        let field = field.map_err(|Malformed| malformed())?;
        match field.payload {
            Some(instruction) if field.number == INSTRUCTIONS => {
                let index = instructions.len();
                let peek = Peek::new(instruction)
                    .map_err(|Malformed| malformed().within_element("instructions", index))?;
                instructions.push(peek);
            }
            _ => rest.extend_from_slice(field.whole),
        }
    }
    let (proto, residue) = message(&rest, &known::HLO_COMPUTATION_PROTO)?;
    Ok(Computation { proto, residue, instructions })
}

impl<'a> Peek<'a> {
    fn new(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let mut peek = Self {
            bytes,
            id: 0,
            operands: Ids::new(),
            control_predecessors: Ids::new(),
            called: Ids::new(),
        };
        for field in fields(bytes) {
            let field = field?;
            match field.number {
                ID => peek.id = field.varint.unwrap_or_default().cast_signed(),
                OPERANDS => field.push_integers(&mut peek.operands)?,
                CONTROL_PREDECESSORS => field.push_integers(&mut peek.control_predecessors)?,
                CALLED => field.push_integers(&mut peek.called)?,
                _ => {}
            }
        }
        Ok(peek)
    }

    fn needs(&self) -> Ids {
        self.operands.iter().chain(&self.control_predecessors).copied().collect()
    }
}

/// Adds a computation whose callees are in the module.
pub(super) fn decode(
    module: &mut Module,
    env: &Env<'_>,
    computation: &Computation<'_>,
) -> Result<CompId, ProtoError> {
    let proto = &computation.proto;
    let id = module.add_computation(proto.name.as_str());
    if !proto.execution_thread.is_empty() {
        module.set_execution_thread(id, Some(proto.execution_thread.as_str().into()));
    }
    module.set_binary_form(id, proto.id, computation.residue.as_slice().into());
    let made = insert_all(module, env, computation, id)?;
    let Some(&root) = made.get(&proto.root_id) else {
        let message = format!("there is no instruction {}", proto.root_id);
        return Err(ProtoError::new(message).within("root_id"));
    };
    let edited = module.set_root(root).and_then(|()| module.order_parameters(id));
    edited.map_err(|error| ProtoError::new(error.to_string()))?;
    Ok(id)
}

fn insert_all(
    module: &mut Module,
    env: &Env<'_>,
    computation: &Computation<'_>,
    id: CompId,
) -> Result<FxHashMap<i64, InstId>, ProtoError> {
    let instructions = &computation.instructions;
    let mut made: FxHashMap<i64, InstId> = FxHashMap::default();
    let mut names: FxHashSet<SmolStr> = FxHashSet::default();
    let find = |made: &FxHashMap<i64, InstId>, ids: &Ids| -> Vec<InstId> {
        // The order has seen to it that all are there.
        ids.iter().filter_map(|id| made.get(id).copied()).collect()
    };
    for index in execution_order(env, computation)? {
        let peek = &instructions[index];
        let operands = find(&made, &peek.operands);
        let inst = instruction::insert(module, env, id, peek.bytes, &operands)
            .map_err(|error| error.within_element("instructions", index))?;
        if !names.insert(module.name_of(inst).into()) {
            let name = module.name_of(inst).to_owned();
            let name = module.fresh_name(&name);
            names.insert(name.clone());
            module.set_name(inst, name);
        }
        if !peek.control_predecessors.is_empty() {
            module.set_control_predecessors(inst, find(&made, &peek.control_predecessors));
        }
        made.insert(peek.id, inst);
    }
    Ok(made)
}

/// Returns an order with operands before their users: the order of the schedule, if there is
/// one.
fn execution_order(env: &Env<'_>, computation: &Computation<'_>) -> Result<Vec<usize>, ProtoError> {
    let instructions = &computation.instructions;
    let scheduled = match env.schedule.get(&computation.proto.id) {
        Some(sequence) => by_schedule(computation, &sequence.instruction_ids)?,
        None => (0..instructions.len()).collect(),
    };
    let at = |place: usize| &instructions[scheduled[place]];
    let sorted = order(scheduled.len(), |place| at(place).id, |place| at(place).needs());
    let sorted = sorted.map_err(|error| {
        let (place, message) = match error {
            OrderError::Twice(place) => {
                (place, format!("a second instruction with the id {}", at(place).id))
            }
            OrderError::Unknown(place, id) => {
                (place, format!("it refers to {id}, which is no instruction of its computation"))
            }
            OrderError::Cycle(place) => {
                (place, "it needs its own result, be it through others".to_owned())
            }
        };
        let index = scheduled[place];
        let name = instruction::name_in(instructions[index].bytes);
        ProtoError::new(message).of_instruction(&name).within_element("instructions", index)
    })?;
    let moved = (0..).zip(&sorted).find(|&(place, &sorted)| place != sorted);
    match moved {
        Some((place, _)) if env.schedule.contains_key(&computation.proto.id) => {
            let index = scheduled[place];
            let name = instruction::name_in(instructions[index].bytes);
            let error = ProtoError::new("the schedule has it before what it needs");
            Err(error.of_instruction(&name).within_element("instructions", index))
        }
        _ => Ok(sorted.into_iter().map(|place| scheduled[place]).collect()),
    }
}

/// Returns the instructions in the order of a sequence, then those it leaves out.
fn by_schedule(computation: &Computation<'_>, sequence: &[i64]) -> Result<Vec<usize>, ProtoError> {
    let instructions = &computation.instructions;
    let mut left: FxHashMap<i64, usize> =
        instructions.iter().enumerate().map(|(index, peek)| (peek.id, index)).collect();
    let mut order = Vec::with_capacity(instructions.len());
    for id in sequence {
        let index = left.remove(id).ok_or_else(|| {
            let message = format!("the schedule names {id} twice, or it is no instruction here");
            ProtoError::new(message)
        })?;
        order.push(index);
    }
    let mut rest: Vec<usize> = left.into_values().collect();
    rest.sort_unstable();
    // A wrong count of the order reveals duplicate ids.
    if order.len() + rest.len() != instructions.len() {
        return Ok((0..instructions.len()).collect());
    }
    order.append(&mut rest);
    Ok(order)
}
