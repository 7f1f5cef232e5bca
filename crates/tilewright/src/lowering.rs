//! Kernels of modules, and reports about them. The lowering itself is in [`crate::lower`].

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use serde::Serialize;
use tilewright_ir::Verified;
use tilewright_lower::Planned;
use tilewright_target::Target;

use crate::error::Error;
use crate::interp::check_precision;
use crate::pipeline::{FloatMode, Options, PassSelection, optimize};

pub use tilewright_lower::kernel::Kernel;
pub use tilewright_lower::{HostCall, HostReason, LowerError, Lowered, Sequence, Strategy};

/// Simplifies a module, chooses layouts for its arrays and lowers it. The optimiser alone keeps parts in their
/// original form if changing them gains nothing.
///
/// # Errors
/// Returns an error if floats of different precision meet in an op, or the module cannot be
/// simplified or edited, which is a bug.
pub fn fuse(module: &Verified, target: &Target, strategy: Strategy) -> Result<Lowered, Error> {
    fuse_with_cancel(module, target, strategy, &Arc::default())
}

/// As [`fuse`], until another thread sets `cancel`.
///
/// # Errors
/// The errors of [`fuse`]; also if it is cancelled.
pub fn fuse_with_cancel(
    module: &Verified,
    target: &Target,
    strategy: Strategy,
    cancel: &Arc<AtomicBool>,
) -> Result<Lowered, Error> {
    // The fused module would be refused by names that the program does not have.
    check_precision(module)?;
    let options = Options::new(target.clone()).with_cancel(Arc::clone(cancel));
    let simplest = (options.clone())
        .with_float_mode(FloatMode::Exact)
        .with_passes(PassSelection::Pipeline("cleanup".to_owned()));
    let module = optimize(module.clone(), &simplest)?.module;
    // Kernels keep layouts, and add in an order of their own.
    let layouts = options.with_passes(PassSelection::list(["layout-of-region"]));
    let module = optimize(module, &layouts)?.module;
    Ok(tilewright_lower::lower_with_cancel(&module, target, strategy, cancel)?)
}

/// The plan of one reduce of a module.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PlannedReduce {
    /// The reduce.
    pub name: String,
    /// The shape of the reduced array with its layout; of several arrays, the first.
    pub shape: String,
    /// The reduced dims.
    pub axes: Vec<usize>,
    /// The extents of the plan's axes.
    pub normalized: Vec<u64>,
    /// A `d` for every kept axis and an `a` for every reduced one.
    pub kinds: String,
    /// The direction of the walk: `forward` or `reverse`.
    pub order: &'static str,
    /// One step for each reduced axis, in the order of the walk.
    pub steps: Vec<PlannedStep>,
    /// The name of the strategy.
    pub strategy: &'static str,
    /// Bytes of main memory for intermediate arrays on the target, padding included; `null` if
    /// the strategy has no kernels for the reduce.
    pub workspace_bytes: Option<u64>,
}

/// How one axis is accumulated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct PlannedStep {
    /// The number of the axis.
    pub axis: usize,
    /// Number of entries along it.
    pub extent: u64,
    /// Number of results that advance together.
    pub base: u64,
    /// Number of elements between entries.
    pub offset: u64,
    /// Number of independent repetitions.
    pub parallel: u64,
}

/// The reduce with its axes, and a line for each axis that is reduced.
impl fmt::Display for PlannedReduce {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, shape, axes, normalized, kinds, order, .. } = self;
        write!(f, "{name}: {shape}, axes {axes:?}\n  {normalized:?} {kinds}, {order}, ")?;
        match self.workspace_bytes {
            Some(bytes) => write!(f, "workspace {bytes}")?,
            None => write!(f, "{} has no kernels for it", self.strategy)?,
        }
        for PlannedStep { axis, extent, base, offset, parallel } in &self.steps {
            write!(
                f,
                "\n  axis {axis}, {extent} entries: base {base}, offset {offset}, parallel {parallel}"
            )?;
        }
        Ok(())
    }
}

/// Returns the plan of every reduce of a module as it stands, in the order of its text, in the
/// entry and in all called computations. Only the workspace depends on the target and the
/// strategy.
///
/// # Errors
/// Returns an error if a reduce has no plan: its array is too large to address, or its layout
/// combines dims in tiles.
pub fn plans(
    module: &Verified,
    target: &Target,
    strategy: Strategy,
) -> Result<Vec<PlannedReduce>, Error> {
    plans_with_cancel(module, target, strategy, &AtomicBool::new(false))
}

/// As [`plans`], until another thread sets `cancel`.
///
/// # Errors
/// The errors of [`plans`]; also if it is cancelled.
pub fn plans_with_cancel(
    module: &Verified,
    target: &Target,
    strategy: Strategy,
    cancel: &AtomicBool,
) -> Result<Vec<PlannedReduce>, Error> {
    let planned = tilewright_lower::plans_with_cancel(module, target, strategy, cancel)?;
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

/// The kernels of one instruction of a module, or of several fused ones.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LoweredInstruction {
    /// The instruction.
    pub name: String,
    /// The texts of its kernels, in the order in which they run.
    pub kernels: Vec<String>,
    /// The reason if it has no kernel, so that the host runs it.
    pub why_not: Option<String>,
}

/// The texts of the kernels, or the reason why there is none.
impl fmt::Display for LoweredInstruction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.why_not {
            Some(why) => write!(f, "no kernel: {why}"),
            None => f.write_str(self.kernels.join("\n").trim_end()),
        }
    }
}

impl LoweredInstruction {
    fn alone(name: &str, lowered: &Result<Sequence, LowerError>) -> Self {
        let stages = lowered.as_ref().map(|lowered| lowered.stages.as_slice()).unwrap_or_default();
        Self {
            name: name.to_owned(),
            kernels: stages.iter().map(|stage| stage.kernel.to_string()).collect(),
            why_not: lowered.as_ref().err().map(ToString::to_string),
        }
    }
}

/// Returns the kernels of every reduce and top-k of a module as it stands, in the order of its
/// text, or the reason why it has none.
pub fn kernels(module: &Verified, target: &Target, strategy: Strategy) -> Vec<LoweredInstruction> {
    tilewright_lower::lowerable(module)
        .map(|id| {
            let lowered = tilewright_lower::lowered(module, id, target, strategy);
            LoweredInstruction::alone(module.name_of(id), &lowered)
        })
        .collect()
}

/// Returns the kernels that a module runs as, once it is simplified: those of [`fuse`]; for
/// every reduce and top-k outside of them a kernel or the reason why it has none; and every
/// other instruction without a kernel, with the reason.
///
/// # Errors
/// The errors of [`fuse`].
pub fn module_kernels(
    module: &Verified,
    target: &Target,
    strategy: Strategy,
) -> Result<Vec<LoweredInstruction>, Error> {
    module_kernels_with_cancel(module, target, strategy, &Arc::default())
}

/// As [`module_kernels`], until another thread sets `cancel`.
///
/// # Errors
/// The errors of [`module_kernels`]; also if it is cancelled.
pub fn module_kernels_with_cancel(
    module: &Verified,
    target: &Target,
    strategy: Strategy,
    cancel: &Arc<AtomicBool>,
) -> Result<Vec<LoweredInstruction>, Error> {
    let lowered = fuse_with_cancel(module, target, strategy, cancel)?;
    let Lowered { module, kernels, alone, host_calls } = lowered;
    let computations = module.computations().iter();
    let fusions = computations.flat_map(|&computation| module.instructions(computation));
    let fusions = fusions.filter_map(|id| {
        let name = module.name_of(id).to_owned();
        let kernels = vec![kernels.get(&id)?.to_string()];
        Some(LoweredInstruction { name, kernels, why_not: None })
    });
    let reductions =
        alone.iter().map(|(id, lowered)| LoweredInstruction::alone(module.name_of(*id), lowered));
    let others = host_calls.iter().filter(|call| alone.iter().all(|(id, _)| *id != call.id));
    let others = others.map(|call| {
        let (name, why_not) = (call.name.clone(), Some(call.to_string()));
        LoweredInstruction { name, kernels: Vec::new(), why_not }
    });
    Ok(fusions.chain(reductions).chain(others).collect())
}
