//! Every pass, one line each.

use crate::pass::Pass;
use crate::passes::{
    broadcast::BroadcastCanonical, control::ControlSimplify, convert::ConvertCanonical,
    cse::CommonSubexpressions, dce::DeadCode, degenerate::DegenerateDims, fold::Fold,
    inline::Inline, reduce::ReduceCanonical, reduce_of_broadcast::ReduceOfBroadcast,
    reduce_of_reduce::ReduceOfReduce, reduce_through_reshape::ReduceThroughReshape,
    reduce_through_transpose::ReduceThroughTranspose, reshape::ReshapeCanonical,
    reshape_out_of_region::ReshapeOutOfRegion, transpose::TransposeCanonical, tuple::TupleSimplify,
};

/// Every pass, in alphabetical order of its name.
pub static PASSES: &[&dyn Pass] = &[
    &BroadcastCanonical,
    &ControlSimplify,
    &ConvertCanonical,
    &CommonSubexpressions,
    &DeadCode,
    &DegenerateDims,
    &Fold,
    &Inline,
    &ReduceCanonical,
    &ReduceOfBroadcast,
    &ReduceOfReduce,
    &ReduceThroughReshape,
    &ReduceThroughTranspose,
    &ReshapeCanonical,
    &ReshapeOutOfRegion,
    &TransposeCanonical,
    &TupleSimplify,
];

/// The pass of this name.
pub fn pass(name: &str) -> Option<&'static dyn Pass> {
    PASSES.iter().copied().find(|pass| pass.name() == name)
}
