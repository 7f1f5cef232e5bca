//! Lowers whole modules.
//!
//! [`lower`] partitions the instructions of a module into groups, each of which is one kernel,
//! and gives a reason for every other instruction, which the host runs. [`reduction`] and
//! [`selection`] describe a reduce or a top-k of a module for kernels.

mod function;
mod host;
mod indices;
mod members;
mod outline;
mod partition;
mod plans;
mod reduction;
mod selection;

use std::collections::HashMap;
use std::sync::atomic::AtomicBool;

use rustc_hash::FxHashMap;
use tilewright_ir::{CompId, InstId, Module, Op, Verified, verify};
use tilewright_target::Target;

use crate::codegen::fuse;
use crate::error::{LowerError, Unsupported, check, internal};
use crate::kernel::Kernel;
use crate::strategy::{Sequence, Strategy};

pub use fuse::Group;
pub use host::{HostCall, HostReason};
pub use plans::{Planned, plans, plans_with_cancel};
pub use reduction::reduction;
pub use selection::selection;

use outline::outline;
use partition::Partitioned;

/// A lowered module: every kernel of several instructions is one of its `fusion`s.
#[derive(Debug)]
pub struct Lowered {
    /// The module.
    pub module: Verified,
    /// The kernel of each fusion; its inputs are the operands in order.
    pub kernels: HashMap<InstId, Kernel>,
    /// The reduces and top-ks outside of fusions, in the order of the text: the kernels of each,
    /// or the reason why it has none.
    pub alone: Vec<(InstId, Result<Sequence, LowerError>)>,
    /// The instructions that are in no kernel, in the order of the text.
    pub host_calls: Vec<HostCall>,
}

/// Lowers elementwise ops, broadcasts, moves and reductions to kernels, and fuses several of
/// them where that saves stores. With a strategy other than one pass, reductions are kernels of
/// their own. The module is lowered as it stands: simplify it first.
///
/// # Errors
/// Returns an error if the module cannot be edited in this way, which is a bug.
pub fn lower(
    module: &Verified,
    target: &Target,
    strategy: Strategy,
) -> Result<Lowered, LowerError> {
    lower_with_cancel(module, target, strategy, &AtomicBool::new(false))
}

/// As [`lower`], until another thread sets `cancel`.
///
/// # Errors
/// The errors of [`lower`]; also if it is cancelled.
pub fn lower_with_cancel(
    module: &Verified,
    target: &Target,
    strategy: Strategy,
    cancel: &AtomicBool,
) -> Result<Lowered, LowerError> {
    let mut edited: Module = (**module).clone();
    let mut kernels = HashMap::new();
    let mut reasons = FxHashMap::default();
    for computation in executed(module) {
        let is_fused = strategy == Strategy::Fused;
        let Partitioned { groups, refused } =
            partition::partition(module, computation, (target, cancel), is_fused)?;
        reasons.extend(refused);
        let wanted: Vec<&Group> = groups.iter().map(|(group, _)| group).collect();
        let fusions = outline(&mut edited, computation, &wanted);
        let fusions = fusions.map_err(|error| internal(error.to_string()).at(&module.name))?;
        kernels.extend(fusions.into_iter().zip(groups.into_iter().map(|(_, kernel)| kernel)));
    }
    let module =
        verify(edited).map_err(|error| internal(error.to_string()).at(&error.module.name))?;
    let mut alone = Vec::new();
    for id in lowerable(&module) {
        check(cancel)?;
        alone.push((id, lowered(&module, id, target, strategy)));
    }
    let host_calls = host::calls(&module, &kernels, &alone, &reasons);
    Ok(Lowered { module, kernels, alone, host_calls })
}

/// Returns the kernels of a reduce. A top-k has one kernel, which reads its first operand and
/// does not depend on the strategy.
///
/// # Errors
/// Returns an error if its computation is not elementwise, a kernel cannot walk the layouts of
/// its arrays on this target, or the strategy does not support its computation.
pub fn lowered(
    module: &Verified,
    id: InstId,
    target: &Target,
    strategy: Strategy,
) -> Result<Sequence, LowerError> {
    sequence(module, id, target, strategy).map_err(|error| error.at(module.name_of(id)))
}

fn sequence(
    module: &Verified,
    id: InstId,
    target: &Target,
    strategy: Strategy,
) -> Result<Sequence, LowerError> {
    if selection::largest(module, id).is_some() {
        let selection = selection(module, id).ok_or(Unsupported::NoSelection)?;
        return Ok(Sequence::of_one(module, id, selection.kernel(target)?, 0..1));
    }
    reduction(module, id).ok_or(Unsupported::Computation)?.lowered(target, strategy)
}

/// Returns the kernel of a group of a module's instructions.
///
/// # Errors
/// Returns an error if kernels do not support an instruction or the layout of an array on this
/// target, or a resource of the target is too small.
pub fn fused(module: &Verified, group: &Group, target: &Target) -> Result<Kernel, LowerError> {
    let members = fuse::members(module, group)?.into_iter();
    let reductions = members.filter_map(|id| Some((id, reduction(module, id)?))).collect();
    fuse::fused(module, group, &reductions, target)
}

/// Returns every reduce and top-k that is executed, in the order of the text.
pub fn lowerable(module: &Verified) -> impl Iterator<Item = InstId> + '_ {
    let computations = executed(module).into_iter();
    let instructions = computations.flat_map(|computation| module.instructions(computation));
    instructions.filter(|&id| {
        matches!(module.op(id), Op::Reduce(_)) || selection::largest(module, id).is_some()
    })
}

/// Makes a group of a computation's instructions one `fusion`, after the last of its inputs, and
/// returns it; its operands are the inputs in order.
///
/// # Errors
/// Returns an error if the module cannot be edited in this way, which is a bug.
pub fn outlined(
    module: &mut Module,
    computation: CompId,
    group: &Group,
) -> Result<InstId, LowerError> {
    let fusions = outline(module, computation, &[group]);
    let fusions = fusions.map_err(|error| internal(error.to_string()).at(&group.name))?;
    let fusion = fusions.into_iter().next();
    fusion.ok_or_else(|| internal("a group that is no fusion").at(&group.name))
}

/// Returns the computations whose instructions are executed one by one: the entry, and the
/// computations of calls, branches and loops.
pub fn executed(module: &Module) -> Vec<CompId> {
    let mut found: Vec<CompId> = module.entry().into_iter().collect();
    let mut next = 0;
    while let Some(&computation) = found.get(next) {
        next += 1;
        for id in module.instructions(computation) {
            if !matches!(module.op(id), Op::Call(_) | Op::While(_) | Op::Conditional(_)) {
                continue;
            }
            for called in module.called(id) {
                if !found.contains(&called) {
                    found.push(called);
                }
            }
        }
    }
    found
}
