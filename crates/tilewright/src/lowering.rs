//! Reductions as plans and as kernels, and selections as kernels.

mod fusing;
mod indices;
mod reduction;
mod selection;

use serde::Serialize;
use tilewright_ir::{InstId, Module, Op, Verified};
use tilewright_lower::kernel::Kernel;
use tilewright_lower::{PlanError, ReductionPlan};
use tilewright_target::Target;

pub use fusing::{Kernels, fuse};
pub use reduction::reduction;
pub use selection::selection;

use crate::error::Error;

/// How one reduce of a module is done in one pass.
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
    /// Bytes of memory for intermediates.
    pub workspace_bytes: u64,
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
/// entry and of all computations that it calls.
///
/// # Errors
/// If a reduce has no plan: its array is too large to address, or its layout
/// combines dims in tiles.
pub fn plans(module: &Module) -> Result<Vec<PlannedReduce>, Error> {
    reduces(module).filter_map(|id| planned(module, id).transpose()).collect()
}

fn planned(module: &Module, id: InstId) -> Result<Option<PlannedReduce>, Error> {
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
    Ok(Some(PlannedReduce {
        name: module.name_of(id).to_owned(),
        shape: array.to_string(),
        axes,
        normalized: plan.axes.iter().map(|axis| axis.extent).collect(),
        kinds: plan.kinds(),
        order: plan.order.name(),
        steps: steps.collect(),
        workspace_bytes: 0,
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
    /// Its kernel, as text.
    pub kernel: Option<String>,
    /// Why it has none.
    pub why_not: Option<String>,
}

/// The kernel of every reduce and selection of a module, in the order of its text, or
/// why it has none.
pub fn kernels(module: &Module, target: &Target) -> Vec<LoweredReduce> {
    lowerable(module)
        .map(|id| {
            let lowered = kernel(module, id, target);
            LoweredReduce {
                name: module.name_of(id).to_owned(),
                why_not: lowered.as_ref().err().map(Error::to_string),
                kernel: lowered.ok().map(|kernel| kernel.to_string()),
            }
        })
        .collect()
}

/// The kernels that a module is run as: those of [`fuse`], and one for every reduce
/// and selection that is in none of them, or why it has none.
///
/// # Errors
/// As [`fuse`].
pub fn module_kernels(module: &Verified, target: &Target) -> Result<Vec<LoweredReduce>, Error> {
    let fused = fuse(module, target)?;
    let module = &fused.module;
    let computations = module.computations().iter();
    let fusions = computations.flat_map(|&computation| module.instructions(computation));
    let mut listed: Vec<LoweredReduce> = fusions
        .filter_map(|id| {
            let kernel = fused.kernels.get(&id)?;
            let name = module.name_of(id).to_owned();
            Some(LoweredReduce { name, kernel: Some(kernel.to_string()), why_not: None })
        })
        .collect();
    listed.extend(kernels(module, target));
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

/// The kernel of a reduce or of a selection, in one pass over its operands. It reads
/// those of a reduce that [`Reduction::inputs`](tilewright_lower::Reduction::inputs)
/// names, and the only one of a selection.
///
/// # Errors
/// If its computation is not elementwise, or arrays lie in a way that no kernel can
/// walk on this target.
pub fn kernel(module: &Module, id: InstId, target: &Target) -> Result<Kernel, Error> {
    lowered(module, id, target).map(|(kernel, _)| kernel)
}

/// The kernel of a reduce or of a selection, and which of its operands it reads.
pub(crate) fn lowered(
    module: &Module,
    id: InstId,
    target: &Target,
) -> Result<(Kernel, Vec<usize>), Error> {
    let refused = |why: String| Error::Lower { name: module.name_of(id).to_owned(), why };
    if selection::largest(module, id).is_some() {
        let selection = selection(module, id)
            .ok_or_else(|| refused("it does not give elements with their places".to_owned()))?;
        let kernel = selection.kernel(target).map_err(|why| refused(why.to_string()))?;
        return Ok((kernel, vec![0]));
    }
    let reduction = reduction(module, id).ok_or_else(|| {
        refused("its computation is not elementwise, or takes other types".to_owned())
    })?;
    let kernel = reduction.fused(target).map_err(|why| refused(why.to_string()))?;
    Ok((kernel, reduction.inputs()))
}
