//! Every pass, one line each.

use crate::pass::Pass;
use crate::passes::{
    adjacent_sums::AdjacentSums, algebra::Algebra, broadcast::BroadcastCanonical,
    control::ControlSimplify, convert::ConvertCanonical, cse::CommonSubexpressions, dce::DeadCode,
    dead_elements::DeadElements, degenerate::DegenerateDims, factored_sums::FactoredSums,
    fold::Fold, inline::Inline, merged_dims::MergedDims, reduce::ReduceCanonical,
    reduce_as_window::ReduceAsWindow, reduce_of_broadcast::ReduceOfBroadcast,
    reduce_of_reduce::ReduceOfReduce, reduce_through_reshape::ReduceThroughReshape,
    reduce_through_transpose::ReduceThroughTranspose, reshape::ReshapeCanonical,
    reshape_out_of_loop::ReshapeOutOfLoop, reshape_out_of_region::ReshapeOutOfRegion,
    shifted_moments::ShiftedMoments, transpose::TransposeCanonical, tuple::TupleSimplify,
    unshare::Unshare, wide_sums::WideSums,
};

/// Every pass, in alphabetical order of its name.
pub static PASSES: &[&dyn Pass] = &[
    &AdjacentSums,
    &Algebra,
    &BroadcastCanonical,
    &ControlSimplify,
    &ConvertCanonical,
    &CommonSubexpressions,
    &DeadCode,
    &DeadElements,
    &DegenerateDims,
    &FactoredSums,
    &Fold,
    &Inline,
    &MergedDims,
    &ReduceCanonical,
    &ReduceAsWindow,
    &ReduceOfBroadcast,
    &ReduceOfReduce,
    &ReduceThroughReshape,
    &ReduceThroughTranspose,
    &ReshapeCanonical,
    &ReshapeOutOfLoop,
    &ReshapeOutOfRegion,
    &ShiftedMoments,
    &TransposeCanonical,
    &TupleSimplify,
    &Unshare,
    &WideSums,
];

/// The pass of this name.
pub fn pass(name: &str) -> Option<&'static dyn Pass> {
    PASSES.iter().copied().find(|pass| pass.name() == name)
}
