//! Modules whose instructions are kernels, as far as there are any for them.

use std::collections::HashMap;

use tilewright_ir::{CompId, InstId, Module, Op, Verified, verify};
use tilewright_lower::kernel::Kernel;
use tilewright_lower::{Group, Reduction, Strategy, groups, outline};
use tilewright_target::Target;

use super::reduction;
use crate::error::Error;
use crate::pipeline::{FloatMode, Options, PassSelection, optimize};

/// A module in which every kernel is a `fusion`.
#[derive(Debug)]
pub struct Kernels {
    /// The module.
    pub module: Verified,
    /// The kernels of its fusions; each reads their operands in order.
    pub kernels: HashMap<InstId, Kernel>,
}

/// Makes kernels of what can be one: elementwise ops, broadcasts, moves and
/// reductions, several of them together where that saves stores. What is reduced by
/// another strategy than in one pass is left alone.
///
/// # Errors
/// If the module cannot be edited so, which is a bug.
pub fn fuse(module: &Verified, target: &Target, strategy: Strategy) -> Result<Kernels, Error> {
    // The optimiser leaves what gains nothing as it was written; kernels are made of the
    // simplest form.
    let passes = PassSelection::Pipeline("cleanup".to_owned());
    let options =
        Options::new(target.clone()).with_float_mode(FloatMode::Exact).with_passes(passes);
    let module = &optimize(module.clone(), &options)?.module;
    let mut edited: Module = (**module).clone();
    let mut kernels = HashMap::new();
    let refused = |why: String| Error::Lower { name: module.name.to_string(), why };
    for computation in run(module) {
        // Asked for again with every group that is tried.
        let reduces = module.instructions(computation);
        let known: HashMap<InstId, Reduction> =
            reduces.filter_map(|id| Some((id, reduction(module, id)?))).collect();
        let of = |id| known.get(&id).cloned();
        let lowered = groups(module, computation, &of, target, strategy == Strategy::Fused);
        let wanted: Vec<&Group> = lowered.iter().map(|(group, _)| group).collect();
        let fusions = outline(&mut edited, computation, &wanted);
        let fusions = fusions.map_err(|error| refused(error.to_string()))?;
        kernels.extend(fusions.into_iter().zip(lowered.into_iter().map(|(_, kernel)| kernel)));
    }
    let module = verify(edited).map_err(|error| refused(error.to_string()))?;
    Ok(Kernels { module, kernels })
}

/// The computations whose instructions are run one by one: the entry, and what it
/// calls, branches to and loops over.
pub(super) fn run(module: &Module) -> Vec<CompId> {
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
