//! What the host runs, and why.

use std::collections::HashMap;
use std::fmt;

use rustc_hash::FxHashMap;
use tilewright_ir::{InstId, Module, Op, Opcode, Shape, Verified};

use super::executed;
use crate::error::LowerError;
use crate::kernel::Kernel;
use crate::strategy::Sequence;

/// An instruction that is in no kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostCall {
    /// The instruction.
    pub id: InstId,
    /// Its name.
    pub name: String,
    /// Why the host runs it.
    pub reason: HostReason,
}

/// Why an instruction is in no kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum HostReason {
    /// Its op is none that kernels compute.
    Op(Opcode),
    /// It is a fusion that the module came with.
    Fusion,
    /// An operand or the result is a tuple or another thing that is no array.
    NoArray,
    /// Dims that are only known at run time.
    Dynamic,
    /// It waits for other instructions, as its control predecessors say.
    Waits,
    /// Its elements follow from their indices, so that reductions do not read it.
    Counts,
    /// Nothing reads its result; what waits for it may keep it beside a kernel.
    Unused,
    /// It could be a kernel, but not as it stands, or not on this target.
    Refused(LowerError),
}

impl fmt::Display for HostReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Op(opcode) => write!(
                f,
                "it is a {}: only elementwise ops, moves, reductions and top-k have kernels",
                opcode.name()
            ),
            Self::Fusion => f.write_str(
                "it is a fusion of the program, whose instructions run one by one: write them \
                 without the fusion",
            ),
            Self::NoArray => f.write_str("an operand or its result is no array"),
            Self::Dynamic => f.write_str("it has dims that are only known at run time"),
            Self::Waits => f.write_str("it waits for its control predecessors"),
            Self::Counts => f.write_str("it only counts, which kernels do without reading it"),
            Self::Unused => {
                f.write_str("nothing reads its result, though something may wait for it")
            }
            Self::Refused(error) => error.fmt(f),
        }
    }
}

/// One line: the instruction, and why the host runs it.
impl fmt::Display for HostCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.reason {
            // It names the instruction, or else one that it needs.
            HostReason::Refused(error) if error.site.instruction.as_ref() == Some(&self.name) => {
                error.fmt(f)
            }
            reason => write!(f, "`{}` runs on the host: {reason}", self.name),
        }
    }
}

/// Why no kernel of several instructions computes an instruction; `Ok` where one may.
/// Reductions are computed where `reduces` is true.
pub(super) fn computed(module: &Module, id: InstId, reduces: bool) -> Result<(), HostReason> {
    let opcode = module.opcode(id);
    let has_kernel = match module.op(id) {
        Op::Broadcast(_)
        | Op::Reshape(_)
        | Op::Transpose(_)
        | Op::Slice(_)
        | Op::Reverse(_)
        | Op::Pad(_)
        | Op::Concatenate(_)
        | Op::Iota(_)
        | Op::Copy => true,
        Op::Reduce(_) => reduces,
        _ => opcode.is_elementwise(),
    };
    if opcode == Opcode::Fusion {
        return Err(HostReason::Fusion);
    }
    if !has_kernel {
        return Err(HostReason::Op(opcode));
    }
    let Shape::Array(shape) = module.shape(id) else { return Err(HostReason::NoArray) };
    if module.operands(id).iter().any(|&operand| module.array_shape(operand).is_none()) {
        return Err(HostReason::NoArray);
    }
    if (0..shape.rank()).any(|dim| shape.dim_is_dynamic(dim)) {
        return Err(HostReason::Dynamic);
    }
    let waits = module.extras(id).is_some_and(|extras| !extras.control_predecessors.is_empty());
    if waits { Err(HostReason::Waits) } else { Ok(()) }
}

/// The instructions of a lowered module that are in no kernel.
pub(super) fn calls(
    module: &Verified,
    kernels: &HashMap<InstId, Kernel>,
    alone: &[(InstId, Result<Sequence, LowerError>)],
    refused: &FxHashMap<InstId, LowerError>,
) -> Vec<HostCall> {
    let alone: FxHashMap<InstId, &Result<Sequence, LowerError>> =
        alone.iter().map(|(id, lowered)| (*id, lowered)).collect();
    let computations = executed(module).into_iter();
    let instructions = computations.flat_map(|computation| module.instructions(computation));
    let called = instructions.filter(|id| !kernels.contains_key(id) && is_work(module, *id));
    let reason = |id: InstId| match (alone.get(&id), refused.get(&id)) {
        (Some(Ok(_)), _) => None,
        (Some(Err(error)), _) => Some(HostReason::Refused((*error).clone())),
        (None, Some(error)) => Some(HostReason::Refused(error.clone())),
        (None, None) => Some(match computed(module, id, true) {
            Err(reason) => reason,
            Ok(()) if module.users(id).is_empty() => HostReason::Unused,
            Ok(()) => HostReason::Counts,
        }),
    };
    let call = |id| {
        let name = module.name_of(id).to_owned();
        reason(id).map(|reason| HostCall { id, name, reason })
    };
    called.filter_map(call).collect()
}

/// Whether an instruction does something itself: what moves no element is nobody's
/// work, and of calls, branches and loops the instructions are asked for.
fn is_work(module: &Module, id: InstId) -> bool {
    !matches!(
        module.opcode(id),
        Opcode::Parameter
            | Opcode::Constant
            | Opcode::Tuple
            | Opcode::GetTupleElement
            | Opcode::Bitcast
            | Opcode::AfterAll
            | Opcode::OptimizationBarrier
            | Opcode::AddDependency
            | Opcode::Call
            | Opcode::While
            | Opcode::Conditional
    )
}
