//! Every pass, one line each.

use super::pass::Pass;
use crate::backend::cluster_sibling_reductions::ClusterSiblingReductions;
use crate::backend::convolution_barrier::ConvolutionBarrier;
use crate::backend::native_calls::NativeCalls;
use crate::backend::reduce_form::ReduceForm;
use crate::backend::rematerialize::Rematerialize;
use crate::backend::tree_reduce::TreeReduce;
use crate::canonicalize::algebra::ALGEBRA;
use crate::canonicalize::batch_norm::BatchNorm;
use crate::canonicalize::broadcast::BROADCAST;
use crate::canonicalize::constant_fold::ConstantFold;
use crate::canonicalize::control_flow::ControlFlow;
use crate::canonicalize::convert::CONVERT;
use crate::canonicalize::cse::CommonSubexpressions;
use crate::canonicalize::dce::DeadCode;
use crate::canonicalize::inline::Inline;
use crate::canonicalize::reduce::ReduceCanonical;
use crate::canonicalize::reduce_of_reduce::REDUCE_OF_REDUCE;
use crate::canonicalize::reshape::RESHAPE;
use crate::canonicalize::transpose::TRANSPOSE;
use crate::canonicalize::tuple::TupleSimplify;
use crate::loops::dead_elements::DeadElements;
use crate::loops::reshape_out_of_loop::ReshapeOutOfLoop;
use crate::reshape_motion::layout_of_region::LayoutOfRegion;
use crate::reshape_motion::reduce_as_window::ReduceAsWindow;
use crate::reshape_motion::reduce_of_broadcast::REDUCE_OF_BROADCAST;
use crate::reshape_motion::reduce_through_reshape::ReduceThroughReshape;
use crate::reshape_motion::reduce_through_transpose::REDUCE_THROUGH_TRANSPOSE;
use crate::reshape_motion::reshape_out_of_region::ReshapeOutOfRegion;
use crate::reshape_motion::unit_dims::UnitDims;
use crate::sharded::all_reduce::AllReduces;
use crate::sharded::constraint::Constraints;
use crate::sharded::local_moments::LocalMoments;
use crate::sharded::local_sums::LocalSums;
use crate::sums::factored_sums::FactoredSums;
use crate::sums::late_factors::LateFactors;
use crate::sums::shifted_moments::ShiftedMoments;

/// Returns every pass, in alphabetical order of its name. As a `static`, all of them would be compiled with the
/// tests within this crate.
pub fn passes() -> impl ExactSizeIterator<Item = &'static dyn Pass> {
    let passes: [&'static dyn Pass; _] = [
        &ALGEBRA,
        &BatchNorm,
        &BROADCAST,
        &ClusterSiblingReductions,
        &ConstantFold,
        &ControlFlow,
        &CONVERT,
        &CommonSubexpressions,
        &DeadCode,
        &DeadElements,
        &FactoredSums,
        &Inline,
        &LayoutOfRegion,
        &LocalMoments,
        &LocalSums,
        &Constraints,
        &AllReduces,
        &NativeCalls,
        &ReduceCanonical,
        &ReduceAsWindow,
        &ReduceForm,
        &REDUCE_OF_BROADCAST,
        &REDUCE_OF_REDUCE,
        &ReduceThroughReshape,
        &REDUCE_THROUGH_TRANSPOSE,
        &Rematerialize,
        &RESHAPE,
        &ReshapeOutOfLoop,
        &ReshapeOutOfRegion,
        &LateFactors,
        &ShiftedMoments,
        &TRANSPOSE,
        &ConvolutionBarrier,
        &TreeReduce,
        &TupleSimplify,
        &UnitDims,
    ];
    passes.into_iter()
}

/// Returns the pass of this name.
pub fn pass(name: &str) -> Option<&'static dyn Pass> {
    passes().find(|pass| pass.name() == name)
}
