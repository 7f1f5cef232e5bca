//! Rewrites that depend on the backend: which kernels it makes, which arrays it stores between
//! them, and in which form it reduces.

pub mod cluster_sibling_reductions;
pub mod native_calls;
pub mod reduce_form;
pub mod rematerialize;
pub mod tree_reduce;

use rustc_hash::FxHashSet;
use tilewright_ir::{CompId, Module, Opcode};

/// Returns the computations whose instructions can be kernels of their own: all but those of
/// fusions, each of which is one kernel.
fn outside_of_fusions(module: &Module) -> Vec<CompId> {
    let all = || module.computations().iter().copied();
    let fusions = all().flat_map(|computation| module.instructions(computation));
    let fusions = fusions.filter(|&id| module.opcode(id) == Opcode::Fusion);
    let fused: FxHashSet<CompId> = fusions.flat_map(|id| module.called(id)).collect();
    all().filter(|computation| !fused.contains(computation)).collect()
}
