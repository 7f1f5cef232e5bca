//! **Divide a sum of columns among the processors of a machine.**
//!
//! ```text
//! reduce(x, D)  =  reduce(reduce(reshape(x), D1), D2)
//!
//! sum f32[4,4096,64] along 1    f32[4,64,64,64] along 2, f32[4,64,64] along 1
//! ```
//!
//! A kernel that sums columns keeps one processor busy for each vector of results: 8 of 264 in the
//! example. The pass divides the columns into the fewest parts that give all processors work, but
//! into no more parts than a part has elements, and then sums the results of the parts. A barrier
//! stands between the two reduces, since compilers merge two reduces into one. XLA itself divides
//! columns of more than 4,096 elements (`xla/backends/gpu/transforms/tree_reduction_rewriter.h`,
//! case 3), however few columns there are.
//!
//! Sums are regrouped into shorter chains. Integers and truth values keep every bit; extrema keep
//! all but the sign of a zero.
//!
//! Preconditions: the reducer is a monoid or several side by side, none of which adds floats of 16
//! bits, since their partial sums would be rounded; the length of the columns is not a prime; the
//! module is not divided over devices; the reduce is not in a fusion, which is one kernel.

use std::ops::Range;

use smallvec::SmallVec;
use tilewright_ir::reducer::Reducer;
use tilewright_ir::{ArrayShape, Dims, EditError, InstId, Module, Op, Opcode, Patch, Value};

use crate::analysis::reduce::{MonoidReduce, reduced_arrays, reshape_op, shape_like};
use crate::analysis::sharding::is_partitioned;
use crate::backend::outside_of_fusions;
use crate::cost::columns::Columns;
use crate::driver::candidate::{Candidate, Cycles, Scope};
use crate::driver::numbers::Class;
use crate::driver::{Context, Pass, Place};

const NAME: &str = "tree-reduce";

/// See the module.
pub struct TreeReduce;

impl Pass for TreeReduce {
    fn name(&self) -> &'static str {
        NAME
    }

    fn summary(&self) -> &'static str {
        "divide a sum of columns among the processors of a machine"
    }

    fn class(&self) -> Class {
        Class::Regrouping
    }

    fn is_cost_gated(&self) -> bool {
        true
    }

    fn run(&self, module: &mut Module, cx: &mut Context<'_>) -> Result<usize, EditError> {
        if cx.target.processors == 1 || is_partitioned(module) {
            return Ok(0);
        }
        let mut changes = 0;
        for computation in outside_of_fusions(module) {
            let is_reduce =
                |&id: &InstId| module.opcode(id) == Opcode::Reduce && module.is_live(id);
            let reduces: Vec<InstId> = module.instructions(computation).filter(is_reduce).collect();
            for id in reduces {
                let Some((patch, candidate)) = planned(module, id, cx) else { continue };
                if cx.accept(NAME, candidate) {
                    patch.apply(module)?;
                    changes += 1;
                }
            }
        }
        Ok(changes)
    }
}

/// Plans a reduce in two steps. `None` if it does not reduce columns, if its columns give all
/// processors work, or if all arrays are too small to be worth it.
fn planned(module: &Module, id: InstId, cx: &Context<'_>) -> Option<(Patch, Candidate)> {
    let reduce = MonoidReduce::of(module, id, cx.float_mode)?;
    let Reducer::Each(each) = &reduce.reducer else { return None };
    if each.iter().any(|by| by.rounds() && by.element_type.bits() < 32) {
        return None;
    }
    let array = module.array_shape(*reduced_arrays(module, id).first()?)?;
    let columns = Columns::of(array, reduce.dims(module))?;
    let parts = divisor_from(columns.len(), cx.model().least_parts(&columns)?)?;
    let patch = divided(module, &reduce, array, &columns, parts)?;
    if !cx.is_worthwhile(module, &patch) {
        return None;
    }
    let (before, after) = (cx.model().of(module, id), cx.model().patch(module, &patch));
    // The waits of the second kernel, in cycles.
    let more = 2.0 * cx.target.hbm_latency_cycles;
    let shape = array.without_layout();
    let candidate = Candidate {
        place: Place::of(module, id),
        done: format!("divided the reduction of {shape} into {parts} parts"),
        would: format!("dividing the reduction of {shape} into {parts} parts"),
        also: String::new(),
        cycles: Cycles {
            before: before.cycles,
            after: after.cycles + more,
            of: Scope::Instructions,
        },
    };
    Some((patch, candidate))
}

/// Returns the least divisor of `length` that is at least `least`, or else the greatest divisor
/// below `least`. Divisors above `sqrt(length)` do not count: the second step would be longer than
/// the first.
fn divisor_from(length: i64, least: u64) -> Option<i64> {
    let least = i64::try_from(least).unwrap_or(i64::MAX);
    let divisors = (2..=length.isqrt()).filter(|parts| length % parts == 0);
    let (below, above): (Vec<i64>, Vec<i64>) = divisors.partition(|&parts| parts < least);
    above.first().or(below.last()).copied()
}

/// Plans the reduce of each of the `parts` parts of the columns, and the reduce of their results.
fn divided(
    module: &Module,
    reduce: &MonoidReduce,
    array: &ArrayShape,
    columns: &Columns,
    parts: i64,
) -> Option<Patch> {
    let own = reduce.dims(module);
    let Range { start: first, end: last } = columns.dims;
    let stages = reduce.stages(module)?;
    let mut patch = Patch::new();
    let mut dims: Dims = array.dims()[..first].iter().copied().collect();
    dims.extend([parts, columns.len() / parts]);
    dims.extend_from_slice(&array.dims()[last..]);
    let reshaped = |&id: &InstId, patch: &mut Patch| {
        let array = module.array_shape(id)?;
        let value = Value::Old(id);
        let is_same = array.dims() == dims.as_slice();
        Some(if is_same {
            value
        } else {
            patch.add(reduce.id, reshape_op(), shape_like(array, &dims), [value])
        })
    };
    let arrays = reduced_arrays(module, reduce.id).iter();
    let arrays: Option<SmallVec<[Value; 2]>> = arrays.map(|id| reshaped(id, &mut patch)).collect();
    let inits = reduce.first_inits(module, false, &mut patch)?;
    dims.remove(first + 1);
    let partial = stages.reduce(&[first + 1], &dims, &arrays?, &inits, &mut patch);
    let mut partial = stages.apart(partial, &dims, &mut patch);
    for value in &mut partial {
        let shape = patch.shape(module, *value).clone();
        *value = patch.add(reduce.id, Op::OptimizationBarrier, shape, [*value]);
    }
    // The dims of the columns are one dim of the partial results.
    let before = |dim: usize| if dim <= first { dim } else { dim + last - first - 1 };
    let is_reduced = |&dim: &usize| own.iter().any(|&one| usize::try_from(one) == Ok(before(dim)));
    let (reduced, kept): (Vec<usize>, Vec<usize>) = (0..dims.len()).partition(is_reduced);
    let kept: Dims = kept.into_iter().filter_map(|dim| dims.get(dim).copied()).collect();
    let inits = reduce.inits(module);
    let value = stages.reduce(&reduced, &kept, &partial, &inits, &mut patch);
    patch.replace(reduce.id, value);
    Some(patch)
}
