//! **Reduce in steps that the backend vectorises.**
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
//! XLA:CPU computes some reductions one element after the other ([`crate::cost::reduce_speed`]):
//! the place of a maximum 20 to 60 times slower than the array is read, sums whose innermost loop
//! is shorter than a vector 5 to 12 times. All of them are fast in steps. A step combines few
//! slices of the array, which lie far apart, element by element; the elements of a slice lie side
//! by side.
//!
//! - **Pairs** are folded 4 to 16 slices at a time. The steps see elements in another order, so
//!   they reduce by a computation that finds the first of several NaNs by their indices. Values of 16
//!   bits are compared in f32, and rounded first if they are computed.
//! - **Loops** are folded by a reduce, which is fused with what computes its operand, and then by
//!   windows, which XLA does not fuse with the reduce before: two reduces in one fusion compute the
//!   inner one again for each element that the outer one reads.
//!   A reshape of a stored array stands behind a barrier if something is computed from the array, or
//!   if the slices are no whole rows of it: XLA would fuse the reshape with the loop, which then
//!   divides to find the place of each element.
//! - **The library** gets an innermost loop of 64 elements or more, or columns one by one.
//!   The dims of a step divide those of the array in another way than before, since XLA makes one
//!   reduce of two, and takes reshapes of kept dims out of a reduce.
//!
//! Preconditions: a reducer as for [`crate::reshape_motion::reduce_through_reshape`]; no devices
//! that hold parts of arrays; nothing is transposed for the reduce; an extremum of floats prefers
//! NaN. Sums are regrouped into shorter chains; extrema, truth values and integers keep every bit.
//!
//! A cost-gated pass for targets with `scalar_reduce_cycles`.

mod beside;
mod build;
mod lift;
mod steps;

use rustc_hash::FxHashMap;
use tilewright_ir::reducer::{ArgExtremum, Reducer};
use tilewright_ir::{
    ArrayShape, CompId, EditError, ElementType, InstId, Module, Op, Opcode, Shape, Value,
};

use crate::analysis::reduce::{MonoidReduce, of_type, reduced_arrays};
use crate::cost::CostModel;
use crate::cost::reduce_speed::{LEAST_ELEMENTS, ReduceEngine, axes_of};
use crate::driver::Place;
use crate::driver::attempt::{Attempt, weigh};
use crate::driver::numbers::Class;
use crate::driver::{Context, Pass};
use crate::reshape_motion::merged_dims::is_partitioned;
use beside::is_beside_place;
use build::Line;
use lift::read_by;
use steps::{Producers, is_aligned, is_fast_pair, steps};

/// See the module.
pub struct StagedReduce;

impl Pass for StagedReduce {
    fn name(&self) -> &'static str {
        "staged-reduce"
    }

    fn summary(&self) -> &'static str {
        "reduce in steps, where the target reduces one element after the other"
    }

    fn class(&self) -> Class {
        Class::Regrouping
    }

    fn is_cost_gated(&self) -> bool {
        true
    }

    fn run(&self, module: &mut Module, cx: &mut Context<'_>) -> Result<usize, EditError> {
        if !cx.model().has_scalar_reduces() || is_partitioned(module) {
            return Ok(0);
        }
        let mut changes = 0;
        for computation in module.computations().to_vec() {
            let is_reduce =
                |&id: &InstId| module.opcode(id) == Opcode::Reduce && module.is_live(id);
            let reduces: Vec<InstId> = module.instructions(computation).filter(is_reduce).collect();
            let mut totals = FxHashMap::default();
            for id in reduces {
                changes += usize::from(stage(module, (computation, id), &mut totals, cx)?);
            }
        }
        Ok(changes)
    }
}

/// The computations that keep one of two pairs, by what they keep.
type Totals = FxHashMap<ArgExtremum, CompId>;

/// Computes a reduce in steps, if that pays.
fn stage(
    module: &mut Module,
    (computation, id): (CompId, InstId),
    totals: &mut Totals,
    cx: &mut Context<'_>,
) -> Result<bool, EditError> {
    let Some(reduce) = MonoidReduce::of(module, id, cx.float_mode) else { return Ok(false) };
    let total = match reduce.reducer {
        Reducer::ArgExtremum(extremum) if !extremum.regroups_exactly() => {
            if !extremum.nan_wins {
                return Ok(false);
            }
            Some(extremum)
        }
        _ => None,
    };
    // The reduce's own computation is enough to estimate the costs.
    let Some(attempt) = plan(module, &reduce, None, cx) else { return Ok(false) };
    if !cx.is_worthwhile(module, &attempt.patch) {
        return Ok(false);
    }
    let (candidate, mut patch) = weigh(module, id, attempt, Place::of(module, id), cx);
    if !cx.accept(StagedReduce.name(), candidate) {
        return Ok(false);
    }
    if let Some(extremum) = total {
        let extremum = wide(extremum);
        let known = totals.get(&extremum).copied();
        let made = known.map(Ok).or_else(|| extremum.total(module, computation));
        let Some(by) = made.transpose()? else { return Ok(false) };
        totals.insert(extremum, by);
        let Some(attempt) = plan(module, &reduce, Some(by), cx) else { return Ok(false) };
        patch = attempt.patch;
    }
    patch.apply(module)?;
    Ok(true)
}

/// Plans the steps of a reduce, by the computation `by` or its own; `None` if it has none.
fn plan(
    module: &Module,
    reduce: &MonoidReduce,
    by: Option<CompId>,
    cx: &Context<'_>,
) -> Option<Attempt> {
    let Op::Reduce(attrs) = module.op(reduce.id) else { return None };
    let array = module.array_shape(*reduced_arrays(module, reduce.id).first()?)?;
    array.num_elements().filter(|&elements| elements >= LEAST_ELEMENTS)?;
    let read = reduced_arrays(module, reduce.id).iter();
    let read: Vec<InstId> = read.flat_map(|&id| read_by(module, cx.model(), id)).collect();
    // XLA:CPU fuses a transpose, so that steps would read its operand element by element: sums of
    // transposed `s8` took twice as long in steps.
    if read.iter().any(|&id| module.opcode(id) == Opcode::Transpose) {
        return None;
    }
    let axes = axes_of(array, &attrs.dimensions)?;
    if is_fast_pair(&axes, array.element_type) && is_beside_place(module, reduce) {
        return None;
    }
    let is_other = |read: &ArrayShape| read.element_type != array.element_type;
    let producers = Producers {
        convert: read.iter().any(|&id| module.array_shape(id).is_some_and(is_other)),
        have_functions: read.iter().any(|&id| calls_function(module, cx.model(), id)),
    };
    let aligned = |step| {
        let mut arrays = read.iter().filter_map(|&id| module.array_shape(id));
        arrays.all(|array| is_aligned(array.dims(), &axes, step))
    };
    let steps = steps(&reduce.reducer, array.element_type, producers, &axes, &aligned)?;
    // XLA:CPU fuses a reshape with the loop that reads it. If the slices are not aligned, the loop computes the
    // place of each element by divisions.
    let are_loops = ReduceEngine::of(&reduce.reducer) == Some(ReduceEngine::Loops);
    let barriers = are_loops && steps.first().is_some_and(|&first| !aligned(first));
    let by = by.unwrap_or(attrs.to_apply);
    let computed = in_wide(reduce, module.shape(reduce.id));
    let line = Line::new(module, cx.model(), reduce, by, axes, &computed, barriers)?;
    let patch = line.all(&steps)?;
    let shape = array.without_layout();
    let is_read = |id: &InstId| {
        patch.planned().iter().any(|planned| planned.operands.contains(&Value::Old(*id)))
    };
    let arrays = reduced_arrays(module, reduce.id).iter().copied();
    Some(Attempt {
        frees: arrays.filter(|id| !is_read(id)).collect(),
        patch,
        done: format!("reduced {shape} in {} steps", steps.len()),
        would: format!("reducing {shape} in {} steps", steps.len()),
    })
}

/// Checks whether a fused instruction is a function that LLVM vectorises in whole vectors alone. It
/// writes out exponentials of `f32` wherever they are.
fn calls_function(module: &Module, model: CostModel<'_>, id: InstId) -> bool {
    let is_f32 = module.array_shape(id).is_some_and(|of| of.element_type == ElementType::F32);
    let opcode = module.opcode(id);
    let is_written_out = is_f32 && opcode == Opcode::Exp;
    opcode.is_transcendental() && !is_written_out && model.is_fused(module, id)
}

/// Returns the same extremum of values that vectors hold: a value of 16 bits becomes `f32`, which
/// keeps it, and its order.
fn wide(extremum: ArgExtremum) -> ArgExtremum {
    let [value, index] = extremum.element_types;
    let value = if matches!(value, ElementType::BF16 | ElementType::F16) {
        ElementType::F32
    } else {
        value
    };
    ArgExtremum { element_types: [value, index], ..extremum }
}

/// Returns the shape of a reduce whose steps compute in wide types.
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
