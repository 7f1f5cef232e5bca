//! Every pass, one line each.

use super::pass::Pass;
use crate::backend::cluster_sibling_reductions::ClusterSiblingReductions;
use crate::backend::rematerialize::Rematerialize;
use crate::backend::widen_accumulation::WidenAccumulation;
use crate::canonicalize::algebra::Algebra;
use crate::canonicalize::broadcast::BroadcastCanonical;
use crate::canonicalize::constant_fold::ConstantFold;
use crate::canonicalize::control_flow::ControlFlow;
use crate::canonicalize::convert::ConvertCanonical;
use crate::canonicalize::cse::CommonSubexpressions;
use crate::canonicalize::dce::DeadCode;
use crate::canonicalize::inline::Inline;
use crate::canonicalize::reduce::ReduceCanonical;
use crate::canonicalize::reduce_of_reduce::ReduceOfReduce;
use crate::canonicalize::reshape::ReshapeCanonical;
use crate::canonicalize::transpose::TransposeCanonical;
use crate::canonicalize::tuple::TupleSimplify;
use crate::loops::dead_elements::DeadElements;
use crate::loops::reshape_out_of_loop::ReshapeOutOfLoop;
use crate::reshape_motion::merged_dims::MergedDims;
use crate::reshape_motion::reduce_as_window::ReduceAsWindow;
use crate::reshape_motion::reduce_of_broadcast::ReduceOfBroadcast;
use crate::reshape_motion::reduce_through_reshape::ReduceThroughReshape;
use crate::reshape_motion::reduce_through_transpose::ReduceThroughTranspose;
use crate::reshape_motion::reshape_out_of_region::ReshapeOutOfRegion;
use crate::reshape_motion::unit_dims::UnitDims;
use crate::sums::factored_sums::FactoredSums;
use crate::sums::shifted_moments::ShiftedMoments;

/// Every pass, in alphabetical order of its name.
pub static PASSES: &[&dyn Pass] = &[
    &Algebra,
    &BroadcastCanonical,
    &ClusterSiblingReductions,
    &ConstantFold,
    &ControlFlow,
    &ConvertCanonical,
    &CommonSubexpressions,
    &DeadCode,
    &DeadElements,
    &FactoredSums,
    &Inline,
    &MergedDims,
    &ReduceCanonical,
    &ReduceAsWindow,
    &ReduceOfBroadcast,
    &ReduceOfReduce,
    &ReduceThroughReshape,
    &ReduceThroughTranspose,
    &Rematerialize,
    &ReshapeCanonical,
    &ReshapeOutOfLoop,
    &ReshapeOutOfRegion,
    &ShiftedMoments,
    &TransposeCanonical,
    &TupleSimplify,
    &UnitDims,
    &WidenAccumulation,
];

/// The pass of this name.
pub fn pass(name: &str) -> Option<&'static dyn Pass> {
    PASSES.iter().copied().find(|pass| pass.name() == name)
}
