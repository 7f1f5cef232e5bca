//! Merge neighbouring dims that reduces remove together.
//!
//! ```text
//! reduce f(x, y) over [H,W]  =  reduce f(reshape(x), reshape(y)) over [H*W]
//! ```
//!
//! XLA:CPU computes a reduce and the elementwise ops that it reads as one loop nest, with a loop
//! for each dim. Where it has no library for the reduction (before 0.10, or for other reductions),
//! it vectorises the nest only if a single dim is reduced: a sum of squares of f32`[4,4096,320]`
//! along 1 takes a third of the time of one of f32`[4,64,64,320]` along 1 and 2. The whole region
//! that a reduce reads moves to the merged dims, since a reshape in between would split the loop
//! nest. No element moves in memory.
//!
//! Dims are merged if every reduce of a region removes them, but not rows of 16-bit floats over which
//! something is broadcast. Preconditions and law are those of
//! [`super::reshape_out_of_region`]; sums keep their order.
//!
//! A cost-gated pass for targets with `reduce_nest_cycles`. It skips modules with shardings: a
//! partition along two dims is none along one, so the partitioner would gather the array.

use smallvec::SmallVec;
use tilewright_ir::{Dims, EditError, ElementType, InstId, Module, Op, Opcode};

use super::region_move::{Offers, Search, move_regions};
use crate::analysis::reduce::reduced_arrays;
use crate::analysis::region::{LiveOutKind, Region};
use crate::cost::nested_dims;
use crate::driver::numbers::Class;
use crate::driver::{Context, Pass};

const NAME: &str = "merged-dims";

// Moving part of a region would split the loop nest.
const SEARCH: Search = Search { pass: NAME, starts: around_reduce, offers: merged, cuts: false };

/// See the module.
pub struct MergedDims;

impl Pass for MergedDims {
    fn name(&self) -> &'static str {
        NAME
    }

    fn summary(&self) -> &'static str {
        "merge dims that reduces take side by side, where nests of loops are slow"
    }

    fn class(&self) -> Class {
        Class::Regrouping
    }

    fn is_cost_gated(&self) -> bool {
        true
    }

    fn run(&self, module: &mut Module, cx: &mut Context<'_>) -> Result<usize, EditError> {
        if cx.target.reduce_nest_cycles == 0.0 || is_partitioned(module) {
            return Ok(0);
        }
        move_regions(module, cx, SEARCH)
    }
}

/// Checks whether a module runs on several devices, each with a part of the arrays.
pub(crate) fn is_partitioned(module: &Module) -> bool {
    let mut all = module.computations().iter().flat_map(|&id| module.instructions(id));
    module.header.num_partitions.is_some_and(|count| count > 1)
        || all.any(|id| module.extras(id).is_some_and(|extras| extras.sharding.is_some()))
}

/// Returns the operands of a reduce that removes neighbouring dims.
fn around_reduce(module: &Module, id: InstId) -> SmallVec<[InstId; 2]> {
    let Op::Reduce(attrs) = module.op(id) else { return SmallVec::new() };
    let arrays = reduced_arrays(module, id);
    let first = arrays.first().and_then(|&array| module.array_shape(array));
    match first {
        Some(array) if nested_dims(array.dims(), &attrs.dimensions) => arrays.into(),
        _ => SmallVec::new(),
    }
}

/// Checks whether a region computes with 16-bit floats and values that are broadcast over them, as a
/// log-sum-exp does about its maximum. XLA:CPU's library converts whole rows, which leave the cache if
/// they are merged: that of `bf16[64,9,24,256]` along all dims but one took 1.6 times as long.
fn spreads_narrow(module: &Module, region: &Region) -> bool {
    let is_narrow = |id: InstId| {
        let array = module.array_shape(id);
        let is_16 = array.is_some_and(|array| {
            matches!(array.element_type, ElementType::BF16 | ElementType::F16)
        });
        is_16 && module.opcode(id) != Opcode::Convert
    };
    let is_spread = |id: InstId| match module.op(id) {
        Op::Broadcast(spread) => !spread.dimensions.is_empty() && is_narrow(id),
        _ => false,
    };
    region.live_ins.iter().any(|live_in| is_spread(live_in.id))
        && region.interior.iter().any(|&id| is_narrow(id))
}

/// Returns the dims of a region, with those merged that all of its reduces remove together.
fn merged(module: &Module, region: &Region) -> Offers {
    let reduces = region.live_outs.iter().filter(|live_out| live_out.kind == LiveOutKind::Reduce);
    let taken: Vec<&Dims> = reduces
        .filter_map(|live_out| match module.op(live_out.user?) {
            Op::Reduce(attrs) => Some(&attrs.dimensions),
            _ => None,
        })
        .collect();
    if taken.is_empty() {
        return Offers::new();
    }
    let minor = i64::try_from(region.dims.len()).unwrap_or(i64::MAX) - 1;
    let are_rows = taken.iter().all(|dims| dims.contains(&minor));
    if are_rows && spreads_narrow(module, region) {
        return Offers::new();
    }
    let mut dims = Dims::new();
    let mut merges = false;
    for (number, &size) in (0i64..).zip(&region.dims) {
        let before = number - 1;
        let takes_both = |dims: &&Dims| dims.contains(&before) && dims.contains(&number);
        let product = dims.last().and_then(|last| last.checked_mul(size));
        match (dims.last_mut(), product) {
            (Some(last), Some(product)) if taken.iter().all(takes_both) => {
                merges |= *last > 1 && size > 1;
                *last = product;
            }
            _ => dims.push(size),
        }
    }
    if merges { Offers::from_iter([dims]) } else { Offers::new() }
}
