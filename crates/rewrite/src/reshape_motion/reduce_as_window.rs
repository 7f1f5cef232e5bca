//! **Turn a reduce of a reshape into a window over the reshape's operand.**
//!
//! ```text
//! reduce(reshape(X), D) = reshape(reduce-window(reduce(X, S)))
//!
//! pooling     X[B,H,W,C] ── reshape [B,H/2,2,W/2,2,C] ── reduce {2,4} ── [B,H/2,W/2,C]
//! becomes     X[B,H,W,C] ── reduce-window 1x2x2x1, stride 1x2x2x1 ── [B,H/2,W/2,C]
//! ```
//!
//! S are the dims of X along which the result does not vary. In every other dim, the reduced part
//! lies all below the kept part (blocks: stride) or all above it (elements far apart: dilation).
//! The last reshape merges or splits the remaining dims.
//!
//! Preconditions: as for [`super::reduce_through_reshape`], which runs first: its stages are
//! reduces, which backends fuse, and leave little work. So a small operand computed from the result
//! of a reduce stays unchanged. Every device must have the whole operand: windows over dims that devices have parts
//! of would reach across these.
//!
//! The pass runs after all that move regions, since a window fixes the dims of its operand.

use rustc_hash::FxHashSet;
use tilewright_ir::{EditError, InstId, Module, Op, Opcode};

use super::reduce_of_reshape::{ReduceOfReshape, Way};
use crate::analysis::reduce::{MonoidReduce, window_plan};
use crate::analysis::sharding::{DeviceMesh, Flow, Spread};
use crate::cost::CostModel;
use crate::driver::attempt::attempt_each;
use crate::driver::numbers::Class;
use crate::driver::{Context, Pass};

/// See the module.
pub struct ReduceAsWindow;

const WINDOW: Way = Way {
    starts: |digits, dims| window_plan(digits, dims).is_some(),
    plan: MonoidReduce::windowed,
    how: "by a window in place of",
};

impl Pass for ReduceAsWindow {
    fn name(&self) -> &'static str {
        "reduce-as-window"
    }

    fn summary(&self) -> &'static str {
        "reduce-window in place of a reshape and a reduce of parts of dims"
    }

    fn class(&self) -> Class {
        Class::Regrouping
    }

    fn is_cost_gated(&self) -> bool {
        true
    }

    fn run(&self, module: &mut Module, cx: &mut Context<'_>) -> Result<usize, EditError> {
        let (model, laid_out) = (cx.model(), cx.laid_out.clone());
        let whole = whole_values(module);
        attempt_each(self, &[Opcode::Reduce], module, cx, |module, id, float_mode| {
            let found = ReduceOfReshape::at(module, id, &WINDOW)?.unless_laid_out(&laid_out)?;
            whole.as_ref().is_none_or(|whole| whole.contains(&found.source)).then_some(())?;
            let small = model.stays_on_chip(model.with_footprint(module.shape(found.source)));
            let left = small && of_reduced(module, found.source, &model);
            (!left).then(|| found.plan(module, &model, float_mode))
        })
    }
}

/// Returns the values that every device has; `None` if no devices have parts of values, or nobody knows of which.
fn whole_values(module: &Module) -> Option<FxHashSet<InstId>> {
    let mesh = DeviceMesh::of(module)?;
    let flow = Flow::of(module, &mesh);
    let is_whole = |id: &InstId| flow.spread(*id).is_some_and(Spread::is_whole);
    let computations = module.computations().iter();
    Some(computations.flat_map(|&of| module.instructions(of)).filter(is_whole).collect())
}

/// The most instructions visited for one array.
const MOST_STEPS: usize = 64;

/// Checks whether an array is the result of a reduce, or computed from one by fused ops and
/// reshapes.
fn of_reduced(module: &Module, id: InstId, model: &CostModel<'_>) -> bool {
    let mut next = vec![id];
    for _ in 0..MOST_STEPS {
        let Some(id) = next.pop() else { return false };
        match (module.op(id), module.operands(id)) {
            (Op::Reduce(_), _) => return true,
            (Op::GetTupleElement(_), operands) => next.extend(operands),
            (_, operands) if model.is_fused(module, id) => next.extend(operands),
            (Op::Reshape(_), operands) => next.extend(operands),
            _ => {}
        }
    }
    false
}
