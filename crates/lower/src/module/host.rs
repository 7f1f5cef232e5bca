//! Host calls: the instructions that the host runs, and the reasons.

use std::collections::HashMap;
use std::fmt;

use rustc_hash::{FxHashMap, FxHashSet};
use tilewright_ir::{InstId, Module, Op, Opcode, Shape, Verified};

use super::executed;
use super::indices::indices;
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
    /// The reason why the host runs it.
    pub reason: HostReason,
}

/// The reason why an instruction is in no kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum HostReason {
    /// Kernels do not compute its op.
    Op(Opcode),
    /// It is a fusion of the original module.
    Fusion,
    /// An operand or the result is not an array, but for example a tuple.
    NoArray,
    /// It has dims that are known only at run time.
    Dynamic,
    /// Its control predecessors make it wait for other instructions.
    Waits,
    /// Its elements follow from their indices, so reductions do not read it.
    Counts,
    /// Nothing that is used reads its result; a control successor may keep it beside a kernel.
    Unused,
    /// Lowering supports its op, but not this instruction or not on this target.
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
            Self::Unused => f.write_str(
                "nothing that is used reads its result, though something may wait for it",
            ),
            Self::Refused(error) => error.fmt(f),
        }
    }
}

/// Displays one line: the instruction and the reason why the host runs it.
impl fmt::Display for HostCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.reason {
            // The error already names this instruction, or an operand that it needs.
            HostReason::Refused(error) if error.site.instruction.as_ref() == Some(&self.name) => {
                error.fmt(f)
            }
            reason => write!(f, "`{}` runs on the host: {reason}", self.name),
        }
    }
}

/// Checks whether a kernel of several instructions can compute an instruction; the error is the
/// reason why not. Reductions are allowed if `reduces` is true.
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

/// Returns the host calls of a lowered module.
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
    let counting = counting(module, |id| alone.contains_key(&id));
    let reason = |id: InstId| match (alone.get(&id), refused.get(&id)) {
        (Some(Ok(_)), _) => None,
        (Some(Err(error)), _) => Some(HostReason::Refused((*error).clone())),
        (None, Some(error)) => Some(HostReason::Refused(error.clone())),
        (None, None) => Some(match computed(module, id, true) {
            Err(reason) => reason,
            Ok(()) if counting.contains(&id) => HostReason::Counts,
            Ok(()) => HostReason::Unused,
        }),
    };
    let call = |id| {
        let name = module.name_of(id).to_owned();
        reason(id).map(|reason| HostCall { id, name, reason })
    };
    called.filter_map(call).collect()
}

/// Returns the arrays of indices that reduces outside of fusions take without reading them, and
/// the values that these arrays are made from.
fn counting(module: &Verified, is_alone: impl Fn(InstId) -> bool) -> FxHashSet<InstId> {
    let mut counting = FxHashSet::default();
    for computation in executed(module) {
        let order: Vec<InstId> = module.instructions(computation).collect();
        // Users come before operands.
        for id in order.into_iter().rev() {
            let taken = |user: &InstId| {
                let is_reduce = matches!(module.op(*user), Op::Reduce(_));
                (is_reduce && is_alone(*user)) || counting.contains(user)
            };
            if indices(module, id).is_some() && module.users(id).iter().any(taken) {
                counting.insert(id);
            }
        }
    }
    counting
}

/// Checks whether an instruction is work for the host. Ops that move no element are not; calls,
/// branches and loops are represented by the instructions of their computations.
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
