//! **Write a reduction in the form that the engine computes fastest.**
//!
//! ```text
//! reduce(x, D)  =  reduce(... reduce(reduce(x, D1), D2) ..., Dn)       D = D1 u D2 u ... u Dn
//!
//! argmax   f32[4096,1024] along 0    f32[8,524288] along 0, f32[8,65536], f32[8,8192], f32[8,1024]
//! sum      f32[1048576,4] along 0    f32[65536,64] along 0, f32[16,4] along 0
//! sum      f32[500000,4]  along 1    x[:,0] + x[:,1] + x[:,2] + x[:,3]
//! any      pred[64,256,256] along 1, 2     f32[64,8,8192] along 1, then windows of 8
//! ```
//!
//! The target's table ([`tilewright_target::reductions`]) has the measured times of the forms of
//! each kind of reduction. The pass takes the form whose worst measured program was the fastest, if
//! that program was faster than the reduction as it is. A kind that nobody measured stays as it is.
//! Below, an *axis* is a run of neighbouring dims that are all kept or all reduced.
//!
//! - *Folds* combines a few slices of an axis element by element; the slices lie far apart, and the
//!   elements of a slice lie side by side. *Windows* does the same with windows after the first
//!   step. *Wide* folds the longest outer axis. *Columns* combines the columns of a short innermost
//!   axis by elementwise ops. *Merged* reduces each axis as one dim.
//! - *In f32* accumulates floats of 16 bits in 32 bits: `sum x = round(sum wide(x))`. The left side
//!   rounds every partial sum to 8 or 11 bits, the right side rounds only the result. The error
//!   bound is smaller for n > 2 values: `u + (n-1)u'` instead of `(n-1)u`, where `u' = 2^-24`.
//!
//! Each form but *in f32* begins at arrays in memory. An array that needs other dims is reshaped,
//! and a barrier stands behind the reshape, so that XLA does not fuse the reshape with the loop
//! that reads it. The ops between these arrays and the reduction are computed in the dims of the
//! first step (`redim.rs`).
//!
//! For the index of an extremum, the steps see elements in another order. The steps therefore
//! reduce by a computation that chooses among several NaNs by their indices. Values of 16 bits are
//! compared in f32, and rounded first if they are computed.
//!
//! Preconditions:
//! - The reduced arrays are in memory, or are computed from arrays in memory by elementwise ops and
//!   broadcasts, for this reduction alone. Nobody measured arrays that are transposed, sliced or
//!   gathered where they are read.
//! - The reducer is one that [`crate::reshape_motion::reduce_through_reshape`] accepts. The index
//!   of an extremum of floats must be that of a NaN if there is one.
//! - The module is not divided over devices.
//!
//! Sums are regrouped into shorter chains, or accumulated in f32 (class *bounded*). *In f32* is the
//! only form for sums of 16-bit floats, since the other forms would round their partial sums.
//! Extrema, truth values and integers keep every bit.

mod build;
mod forms;
mod redim;

use rustc_hash::{FxHashMap, FxHashSet};
use tilewright_ir::reducer::{ArgExtremum, Monoid, Reducer, adder};
use tilewright_ir::{CompId, EditError, ElementType, InstId, Module, Op, Opcode, Patch, Shape};
use tilewright_target::reductions::Form;

use crate::analysis::axes::axes_of;
use crate::analysis::reduce::{MonoidReduce, of_type, reduced_arrays};
use crate::analysis::sharding::is_partitioned;
use crate::backend::outside_of_fusions;
use crate::cost::CostModel;
use crate::cost::reductions::{reduction, source_of};
use crate::driver::candidate::{Candidate, Cycles, Scope};
use crate::driver::numbers::Class;
use crate::driver::{Context, Pass, Place};
use build::StepPlan;

const NAME: &str = "reduce-form";

/// See the module.
pub struct ReduceForm;

impl Pass for ReduceForm {
    fn name(&self) -> &'static str {
        NAME
    }

    fn summary(&self) -> &'static str {
        "write a reduction in the form that the target computes fastest, as measured"
    }

    fn class(&self) -> Class {
        Class::Bounded
    }

    fn is_cost_gated(&self) -> bool {
        true
    }

    fn run(&self, module: &mut Module, cx: &mut Context<'_>) -> Result<usize, EditError> {
        if cx.target.reductions.is_empty() || is_partitioned(module) {
            return Ok(0);
        }
        let mut changes = 0;
        for computation in outside_of_fusions(module) {
            let is_reduce =
                |&id: &InstId| module.opcode(id) == Opcode::Reduce && module.is_live(id);
            let reduces: Vec<InstId> = module.instructions(computation).filter(is_reduce).collect();
            let mut tie_breakers = TieBreakers::default();
            for id in reduces {
                changes += usize::from(rewrite(module, (computation, id), &mut tie_breakers, cx)?);
            }
        }
        Ok(changes)
    }
}

/// For each extremum with its index, the computation that was added to choose between two pairs in
/// any order.
type TieBreakers = FxHashMap<ArgExtremum, CompId>;

/// Writes a reduce in its fastest form, if that pays. Returns whether it did.
fn rewrite(
    module: &mut Module,
    (computation, id): (CompId, InstId),
    tie_breakers: &mut TieBreakers,
    cx: &mut Context<'_>,
) -> Result<bool, EditError> {
    let Some(reduce) = MonoidReduce::of(module, id, cx.float_mode) else { return Ok(false) };
    let Some((form, candidate)) = best(module, &reduce, cx) else { return Ok(false) };
    if !cx.accept(NAME, candidate) {
        return Ok(false);
    }
    let by = match reduce.reducer {
        Reducer::ArgExtremum(extremum) if !extremum.regroups_exactly() => {
            let extremum = wide(extremum);
            let known = tie_breakers.get(&extremum).copied();
            let made = known.map(Ok).or_else(|| extremum.total(module, computation));
            let Some(by) = made.transpose()? else { return Ok(false) };
            tie_breakers.insert(extremum, by);
            Some(by)
        }
        _ if form == Form::InF32 => Some(adder(module, ElementType::F32, computation)?),
        _ => None,
    };
    let Some(patch) = plan(module, &reduce, form, by, cx) else { return Ok(false) };
    patch.apply(module)?;
    Ok(true)
}

/// Returns the fastest form of a reduce, if one is faster than the reduce as it is.
fn best(module: &Module, reduce: &MonoidReduce, cx: &Context<'_>) -> Option<(Form, Candidate)> {
    let first = *reduced_arrays(module, reduce.id).first()?;
    let array = module.array_shape(first)?;
    let source = source_of(cx.model().is_fused(module, first));
    let found = reduction(&reduce.reducer, array, reduce.dims(module), source)?;
    // Whether a form can be written does not depend on the computation, so plan with the reduce's
    // own.
    let can = |form| {
        (form == Form::InF32 || is_for_alone(module, cx.model(), reduce.id))
            && plan(module, reduce, form, None, cx)
                .is_some_and(|patch| cx.is_worthwhile(module, &patch))
    };
    let (form, ns) = cx.target.reductions.best(&found, can)?;
    #[expect(clippy::cast_precision_loss, reason = "costs are estimates")]
    let [after, before] = ns.map(|ns| ns * found.elements as f64 * cx.target.cycles_per_ns);
    let shape = array.without_layout();
    let candidate = Candidate {
        place: Place::of(module, reduce.id),
        done: format!("reduced {shape} in the form `{}`", form.name()),
        would: format!("reducing {shape} in the form `{}`", form.name()),
        also: String::new(),
        cycles: Cycles { before, after, of: Scope::Instructions },
    };
    Some((form, candidate))
}

/// Plans a form of a reduce that reduces by the computation `by`, or by the reduce's own. `None` if
/// the reduce cannot be written in this form.
fn plan(
    module: &Module,
    reduce: &MonoidReduce,
    form: Form,
    by: Option<CompId>,
    cx: &Context<'_>,
) -> Option<Patch> {
    let Op::Reduce(attrs) = module.op(reduce.id) else { return None };
    let narrow = reduce.reducer.monoid().filter(|&by| adds_narrow(by));
    if narrow.is_some() != (form == Form::InF32) {
        return None;
    }
    if let Some(narrow) = narrow {
        return cx.float_mode.allow(Class::Bounded).then(|| {
            let types = [narrow.element_type, ElementType::F32];
            build::in_f32(module, reduce, types, by.unwrap_or(attrs.to_apply))
        })?;
    }
    if matches!(&reduce.reducer, Reducer::ArgExtremum(extremum)
        if !extremum.regroups_exactly() && !extremum.nan_wins)
    {
        return None;
    }
    let array = module.array_shape(*reduced_arrays(module, reduce.id).first()?)?;
    let axes = axes_of(array, &attrs.dimensions)?;
    let steps = forms::steps(form, &axes, cx.target.lanes.into())?;
    let computed = in_wide(reduce, module.shape(reduce.id));
    let by = by.unwrap_or(attrs.to_apply);
    StepPlan::new(module, cx.model(), reduce, by, axes, &computed)?.all(&steps)
}

/// The most instructions that are visited to find the arrays from which a reduce is computed.
const MOST_VISITED: usize = 64;

/// Checks whether the values that a reduce reads can be computed in other dims. First, no op on the
/// way from arrays in memory moves elements, since an engine may do that where they are read.
/// Second, nothing but the reduce uses these values. A copy may differ in the last place, since XLA
/// contracts, vectorises and rounds in each kernel as it likes, and the maximum of a copy might
/// equal no element of the value.
fn is_for_alone(module: &Module, model: CostModel<'_>, reduce: InstId) -> bool {
    let mut next = reduced_arrays(module, reduce).to_vec();
    let mut visited: FxHashSet<InstId> = FxHashSet::default();
    while let Some(id) = next.pop() {
        if !visited.insert(id) {
            continue;
        }
        if moves_elements(module.opcode(id)) || visited.len() > MOST_VISITED {
            return false;
        }
        let is_alias = matches!(module.opcode(id), Opcode::Reshape | Opcode::Bitcast);
        if is_alias || model.is_fused(module, id) {
            next.extend_from_slice(module.operands(id));
        }
    }
    let is_shared = |&id: &InstId| {
        let opcode = module.opcode(id);
        let is_copied = opcode.is_elementwise() && opcode != Opcode::Constant;
        let is_here = |user: InstId| {
            user == reduce || visited.contains(&user) && model.is_fused(module, user)
        };
        let uses = || module.uses(id).filter(|one| module.is_live(one.user));
        is_copied
            && model.is_fused(module, id)
            && (module.is_root(id) || !uses().all(|one| is_here(one.user)))
    };
    !visited.iter().any(is_shared)
}

/// Checks whether an op moves elements to other places in memory.
fn moves_elements(opcode: Opcode) -> bool {
    matches!(
        opcode,
        Opcode::Transpose
            | Opcode::Copy
            | Opcode::Slice
            | Opcode::DynamicSlice
            | Opcode::Reverse
            | Opcode::Pad
            | Opcode::Concatenate
            | Opcode::Gather
    )
}

/// Checks whether a monoid adds floats of 16 bits.
fn adds_narrow(by: Monoid) -> bool {
    by.opcode == Opcode::Add && matches!(by.element_type, ElementType::BF16 | ElementType::F16)
}

/// Returns the same extremum with values of 32 bits or more: values of 16 bits become `f32`, which
/// keeps each value and their order.
fn wide(extremum: ArgExtremum) -> ArgExtremum {
    let [value, index] = extremum.element_types;
    let value = if matches!(value, ElementType::BF16 | ElementType::F16) {
        ElementType::F32
    } else {
        value
    };
    ArgExtremum { element_types: [value, index], ..extremum }
}

/// Returns the shape of a reduce whose steps compute with the types of [`wide`].
fn in_wide(reduce: &MonoidReduce, shape: &Shape) -> Shape {
    match (&reduce.reducer, shape) {
        (Reducer::ArgExtremum(extremum), Shape::Tuple(elements)) => {
            let types = wide(*extremum).element_types;
            let one = |(element, element_type): (&Shape, ElementType)| match element {
                Shape::Array(array) => of_type(array, element_type).into(),
                other => other.clone(),
            };
            Shape::Tuple(elements.iter().zip(types).map(one).collect())
        }
        _ => shape.clone(),
    }
}
