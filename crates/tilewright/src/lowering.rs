//! Modules as kernels, and reports of these. Lowering itself is [`crate::lower`].

use serde::Serialize;
use tilewright_ir::Verified;
use tilewright_lower::{LowerError, Lowered, Planned, Sequence, Strategy};
use tilewright_target::Target;

use crate::error::Error;
use crate::pipeline::{FloatMode, Options, PassSelection, optimize};

/// Lowers the simplest form of a module: the optimiser leaves what gains nothing as it
/// was written, and kernels are made of what is left without that.
///
/// # Errors
/// If the module cannot be simplified or edited, which is a bug.
pub fn fuse(module: &Verified, target: &Target, strategy: Strategy) -> Result<Lowered, Error> {
    let passes = PassSelection::Pipeline("cleanup".to_owned());
    let options =
        Options::new(target.clone()).with_float_mode(FloatMode::Exact).with_passes(passes);
    let module = optimize(module.clone(), &options)?.module;
    Ok(tilewright_lower::lower(&module, target, strategy)?)
}

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
    module: &Verified,
    target: &Target,
    strategy: Strategy,
) -> Result<Vec<PlannedReduce>, Error> {
    let planned = tilewright_lower::plans(module, target, strategy)?;
    Ok(planned.into_iter().map(|planned| reported(module, strategy, planned)).collect())
}

fn reported(module: &Verified, strategy: Strategy, planned: Planned) -> PlannedReduce {
    let Planned { id, axes, plan, workspace_bytes } = planned;
    let array = module.operands(id).first().and_then(|&array| module.array_shape(array));
    let steps = plan.steps.iter().map(|&step| {
        let tilewright_lower::Step { axis, extent, base, offset, parallel } = step;
        PlannedStep { axis, extent, base, offset, parallel }
    });
    PlannedReduce {
        name: module.name_of(id).to_owned(),
        shape: array.map(ToString::to_string).unwrap_or_default(),
        axes,
        normalized: plan.axes.iter().map(|axis| axis.extent).collect(),
        kinds: plan.kinds(),
        order: plan.order.name(),
        steps: steps.collect(),
        strategy: strategy.name(),
        workspace_bytes,
    }
}

/// What becomes of one instruction of a module, or of several as one kernel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LoweredReduce {
    /// The instruction.
    pub name: String,
    /// Its kernels as texts, in the order in which they run.
    pub kernels: Vec<String>,
    /// Why it has none: the host runs it.
    pub why_not: Option<String>,
}

impl LoweredReduce {
    fn alone(name: &str, lowered: &Result<Sequence, LowerError>) -> Self {
        let stages = lowered.as_ref().map(|lowered| lowered.stages.as_slice()).unwrap_or_default();
        Self {
            name: name.to_owned(),
            kernels: stages.iter().map(|stage| stage.kernel.to_string()).collect(),
            why_not: lowered.as_ref().err().map(ToString::to_string),
        }
    }
}

/// The kernels of every reduce and selection of a module, in the order of its text, or
/// why it has none.
pub fn kernels(module: &Verified, target: &Target, strategy: Strategy) -> Vec<LoweredReduce> {
    tilewright_lower::lowerable(module)
        .map(|id| {
            let lowered = tilewright_lower::lowered(module, id, target, strategy);
            LoweredReduce::alone(module.name_of(id), &lowered)
        })
        .collect()
}

/// The kernels that a module is run as: those of [`fuse`], one for every reduce and
/// selection that is in none of them, or why it has none, and every other instruction
/// that is in no kernel, with the reason.
///
/// # Errors
/// As [`fuse`].
pub fn module_kernels(
    module: &Verified,
    target: &Target,
    strategy: Strategy,
) -> Result<Vec<LoweredReduce>, Error> {
    let Lowered { module, kernels, alone, host_calls } = fuse(module, target, strategy)?;
    let computations = module.computations().iter();
    let fusions = computations.flat_map(|&computation| module.instructions(computation));
    let fusions = fusions.filter_map(|id| {
        let name = module.name_of(id).to_owned();
        let kernels = vec![kernels.get(&id)?.to_string()];
        Some(LoweredReduce { name, kernels, why_not: None })
    });
    let reductions =
        alone.iter().map(|(id, lowered)| LoweredReduce::alone(module.name_of(*id), lowered));
    let others = host_calls.iter().filter(|call| alone.iter().all(|(id, _)| *id != call.id));
    let others = others.map(|call| {
        let (name, why_not) = (call.name.clone(), Some(call.to_string()));
        LoweredReduce { name, kernels: Vec::new(), why_not }
    });
    Ok(fusions.chain(reductions).chain(others).collect())
}
