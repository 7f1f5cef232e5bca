//! Reductions as plans and as kernels, and selections as kernels.

mod fusing;
mod indices;
mod reduction;
mod selection;

use std::ops::Range;

use serde::Serialize;
use tilewright_ir::{InstId, Module, Op, Verified};
use tilewright_lower::kernel::Kernel;
use tilewright_lower::{Input, PlanError, ReductionPlan, Sequence, Stage, Strategy};
use tilewright_target::Target;

pub use fusing::{Kernels, fuse};
pub use reduction::reduction;
pub use selection::selection;

use crate::error::Error;

/// How one reduce of a module is done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PlannedReduce {
    /// The reduce.
    pub name: String,
    /// What is reduced, with its layout; the first array where there are several,
    /// which all have its dims.
    pub shape: String,
    /// The dims that vanish.
    pub axes: Vec<usize>,
    /// The extents of the plan's axes.
    pub normalized: Vec<u64>,
    /// `d` for every axis that is kept and `a` for every one that is reduced.
    pub kinds: String,
    /// From which end they are walked: `forward` or `reverse`.
    pub order: &'static str,
    /// What is accumulated along each reduced axis, in the order of the walk.
    pub steps: Vec<PlannedStep>,
    /// The name of the strategy.
    pub strategy: &'static str,
    /// Bytes of main memory for intermediates on the target, padding included; `null`
    /// where the strategy has no kernels for it.
    pub workspace_bytes: Option<u64>,
}

/// How one axis is accumulated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct PlannedStep {
    /// Which of the axes.
    pub axis: usize,
    /// Entries along it.
    pub extent: u64,
    /// Results that advance together.
    pub base: u64,
    /// Elements between entries.
    pub offset: u64,
    /// Independent repetitions.
    pub parallel: u64,
}

/// The plan of every reduce of a module, in the order of its text: those of the
/// entry and of all computations that it calls. Of the plan, only the workspace
/// depends on the target and the strategy.
///
/// # Errors
/// If a reduce has no plan: its array is too large to address, or its layout
/// combines dims in tiles.
pub fn plans(
    module: &Module,
    target: &Target,
    strategy: Strategy,
) -> Result<Vec<PlannedReduce>, Error> {
    let planned = |id| planned(module, id, target, strategy).transpose();
    reduces(module).filter_map(planned).collect()
}

fn planned(
    module: &Module,
    id: InstId,
    target: &Target,
    strategy: Strategy,
) -> Result<Option<PlannedReduce>, Error> {
    let Op::Reduce(attrs) = module.op(id) else { return Ok(None) };
    let operand = module.operands(id).first();
    let Some(array) = operand.and_then(|&array| module.shape(array).as_array()) else {
        return Ok(None);
    };
    let axes = attrs.dimensions.iter().map(|&dim| usize::try_from(dim).unwrap_or(usize::MAX));
    let axes: Vec<usize> = axes.collect();
    let plan = ReductionPlan::of_array(array, &axes).map_err(|why| refused(module, id, why))?;
    let steps = plan.steps.iter().map(|&step| {
        let tilewright_lower::Step { axis, extent, base, offset, parallel } = step;
        PlannedStep { axis, extent, base, offset, parallel }
    });
    let workspace_bytes = match strategy {
        Strategy::Fused => Some(0),
        _ => lowered(module, id, target, strategy).ok().map(|lowered| lowered.workspace_bytes()),
    };
    Ok(Some(PlannedReduce {
        name: module.name_of(id).to_owned(),
        shape: array.to_string(),
        axes,
        normalized: plan.axes.iter().map(|axis| axis.extent).collect(),
        kinds: plan.kinds(),
        order: plan.order.name(),
        steps: steps.collect(),
        strategy: strategy.name(),
        workspace_bytes,
    }))
}

fn refused(module: &Module, id: InstId, why: PlanError) -> Error {
    Error::Lower { name: module.name_of(id).to_owned(), why: why.to_string() }
}

/// What becomes of one reduce or selection of a module.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LoweredReduce {
    /// The instruction.
    pub name: String,
    /// Its kernels as texts, in the order in which they run.
    pub kernels: Vec<String>,
    /// Why it has none.
    pub why_not: Option<String>,
}

/// The kernels of every reduce and selection of a module, in the order of its text, or
/// why it has none.
pub fn kernels(module: &Module, target: &Target, strategy: Strategy) -> Vec<LoweredReduce> {
    lowerable(module)
        .map(|id| {
            let lowered = lowered(module, id, target, strategy);
            let why_not = lowered.as_ref().err().map(Error::to_string);
            let stages = lowered.map(|lowered| lowered.stages).unwrap_or_default();
            LoweredReduce {
                name: module.name_of(id).to_owned(),
                kernels: stages.iter().map(|stage| stage.kernel.to_string()).collect(),
                why_not,
            }
        })
        .collect()
}

/// The kernels that a module is run as: those of [`fuse`], and one for every reduce
/// and selection that is in none of them, or why it has none.
///
/// # Errors
/// As [`fuse`].
pub fn module_kernels(
    module: &Verified,
    target: &Target,
    strategy: Strategy,
) -> Result<Vec<LoweredReduce>, Error> {
    let fused = fuse(module, target, strategy)?;
    let module = &fused.module;
    let computations = module.computations().iter();
    let fusions = computations.flat_map(|&computation| module.instructions(computation));
    let mut listed: Vec<LoweredReduce> = fusions
        .filter_map(|id| {
            let kernel = fused.kernels.get(&id)?;
            let name = module.name_of(id).to_owned();
            Some(LoweredReduce { name, kernels: vec![kernel.to_string()], why_not: None })
        })
        .collect();
    listed.extend(kernels(module, target, strategy));
    Ok(listed)
}

/// Every reduce, in the order of the text.
fn reduces(module: &Module) -> impl Iterator<Item = InstId> + '_ {
    lowerable(module).filter(|&id| matches!(module.op(id), Op::Reduce(_)))
}

/// Every reduce and selection, in the order of the text.
pub(crate) fn lowerable(module: &Module) -> impl Iterator<Item = InstId> + '_ {
    let computations = fusing::run(module).into_iter();
    let instructions = computations.flat_map(|computation| module.instructions(computation));
    instructions.filter(|&id| {
        matches!(module.op(id), Op::Reduce(_)) || selection::largest(module, id).is_some()
    })
}

/// The kernels of a reduce; of a selection, which no strategy does in another way, one
/// that reads its first operand.
///
/// # Errors
/// If its computation is not elementwise, arrays lie in a way that no kernel can
/// walk on this target, or the strategy is none for such a computation.
pub fn lowered(
    module: &Module,
    id: InstId,
    target: &Target,
    strategy: Strategy,
) -> Result<Sequence, Error> {
    let refused = |why: String| Error::Lower { name: module.name_of(id).to_owned(), why };
    if selection::largest(module, id).is_some() {
        let selection = selection(module, id)
            .ok_or_else(|| refused("it does not give elements with their places".to_owned()))?;
        let kernel = selection.kernel(target).map_err(|why| refused(why.to_string()))?;
        return Ok(alone(module, id, kernel, 0..1));
    }
    let reduction = reduction(module, id).ok_or_else(|| {
        refused("its computation is not elementwise, or takes other types".to_owned())
    })?;
    reduction.lowered(target, strategy).map_err(|why| refused(why.to_string()))
}

/// A kernel that does an instruction by itself and reads these of its operands.
pub(crate) fn alone(
    module: &Module,
    id: InstId,
    kernel: Kernel,
    operands: Range<usize>,
) -> Sequence {
    let leaves = module.shape(id).leaves();
    let results = leaves.into_iter().filter_map(|shape| shape.as_array().cloned()).collect();
    let inputs = operands.map(Input::Operand).collect();
    Sequence { stages: vec![Stage { kernel, inputs, results }] }
}
