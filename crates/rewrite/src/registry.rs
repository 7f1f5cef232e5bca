//! Every pass, one line each.

use crate::pass::Pass;
use crate::passes::{
    broadcast::BroadcastCanonical, cse::CommonSubexpressions, dce::DeadCode,
    degenerate::DegenerateDims, inline::Inline, reduce::ReduceCanonical,
    reduce_through_reshape::ReduceThroughReshape, reshape::ReshapeCanonical,
    reshape_out_of_region::ReshapeOutOfRegion, tuple::TupleSimplify,
};

/// Every pass, in alphabetical order of its name.
pub static PASSES: &[&dyn Pass] = &[
    &BroadcastCanonical,
    &CommonSubexpressions,
    &DeadCode,
    &DegenerateDims,
    &Inline,
    &ReduceCanonical,
    &ReduceThroughReshape,
    &ReshapeCanonical,
    &ReshapeOutOfRegion,
    &TupleSimplify,
];

/// The pass of this name.
pub fn pass(name: &str) -> Option<&'static dyn Pass> {
    PASSES.iter().copied().find(|pass| pass.name() == name)
}
