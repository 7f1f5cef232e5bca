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
//! Dims are merged if every reduce of a region removes them, but not where one loop was measured to be
//! slower (`Taken::pays`). Preconditions and law are those of
//! [`super::reshape_out_of_region`]; sums keep their order.
//!
//! A cost-gated pass for targets with `reduce_nest_cycles`. It skips modules with shardings: a
//! partition along two dims is none along one, so the partitioner would gather the array.

use smallvec::SmallVec;
use tilewright_ir::reducer::Reducer;
use tilewright_ir::{Dims, EditError, ElementType, InstId, Module, Op, Opcode};

use super::region_move::{Offers, Search, move_regions};
use crate::analysis::reduce::reduced_arrays;
use crate::analysis::region::{LiveOutKind, Region};
use crate::cost::nested_dims;
use crate::cost::reduce_speed::{ReduceEngine, TREE};
use crate::driver::numbers::Class;
use crate::driver::{Context, Pass};

const NAME: &str = "merged-dims";

// Moving part of a region would split the loop nest.
const SEARCH: Search = Search { pass: NAME, starts: around_reduce, offers: merged, cuts: false };

/// The longest row for which a loop of its own costs more than anything else: the floats of a vector.
const SHORT_ROW: i64 = 8;

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

/// The dims that the reduces of a region remove.
struct Taken<'a> {
    region: &'a Region,
    by: Vec<&'a Dims>,
}

impl<'a> Taken<'a> {
    fn of(module: &'a Module, region: &'a Region) -> Self {
        let reduces =
            region.live_outs.iter().filter(|live_out| live_out.kind == LiveOutKind::Reduce);
        let by = reduces.filter_map(|live_out| match module.op(live_out.user?) {
            Op::Reduce(attrs) => Some(&attrs.dimensions),
            _ => None,
        });
        Self { region, by: by.collect() }
    }

    /// Checks whether all reduces remove a dim.
    fn contains(&self, dim: i64) -> bool {
        self.by.iter().all(|dims| dims.contains(&dim))
    }

    /// The sizes of the removed dims, outermost first.
    fn sizes(&self) -> impl Iterator<Item = i64> + '_ {
        let all = (0i64..).zip(&self.region.dims);
        all.filter(|&(dim, &size)| size != 1 && self.contains(dim)).map(|(_, &size)| size)
    }

    /// Checks whether the outermost dim and the innermost one are kept.
    fn lie_within(&self) -> bool {
        let outer = (0i64..).zip(&self.region.dims).find(|&(_, &size)| size != 1);
        outer.is_some_and(|(dim, _)| !self.contains(dim)) && !self.are_rows()
    }

    /// Checks whether the innermost dim is removed.
    fn are_rows(&self) -> bool {
        let inner = (0i64..).zip(&self.region.dims).filter(|&(_, &size)| size != 1).last();
        inner.is_some_and(|(dim, _)| self.contains(dim))
    }

    /// Checks whether the innermost loop is along removed dims and has at most so many iterations.
    fn are_rows_of(&self, most: i64) -> bool {
        self.are_rows() && self.sizes().last().is_some_and(|size| size <= most)
    }

    /// Checks whether one loop may be faster than a nest of them.
    fn pays(&self, module: &Module) -> bool {
        if self.lie_within() && self.is_no_tree() && reduces_by_one_loop(module, self.region) {
            return self.sizes().fold(1i64, i64::saturating_mul) <= TREE;
        }
        if reduces_converted_integers(module, self.region) {
            let is_one_loop = is_of_bytes(module, self.region) && self.is_no_tree();
            let is_left = is_one_loop || self.are_rows_of(TREE);
            return !is_left && !reads_transposed(module, self.region);
        }
        let is_alone = self.are_rows() || self.region.live_outs.len() == 1;
        let is_left = is_alone && spreads_narrow(module, self.region)
            || computes_functions(module, self.region)
            || uses_twice(module, self.region);
        !is_left || self.are_rows_of(SHORT_ROW)
    }

    /// Checks whether XLA:CPU reduces these dims in one step.
    fn is_no_tree(&self) -> bool {
        self.sizes().all(|size| size <= TREE)
    }
}

/// Returns the value that the only reduce of a region reads, and the reduce.
fn only_reduce(region: &Region) -> Option<(InstId, InstId)> {
    let mut reduces = region.live_outs.iter().filter(|out| out.kind == LiveOutKind::Reduce);
    match (reduces.next(), reduces.next()) {
        (Some(only), None) => Some((only.value, only.user?)),
        _ => None,
    }
}

/// Checks whether a region has one reduce, which XLA:CPU does not leave to its library. If that reduces
/// a dim longer than [`TREE`], XLA:CPU stores what is computed for it: counts in `f64[50,23,29,31]`
/// along 1 and 2 took 1.5 to 1.9 times as long merged.
fn reduces_by_one_loop(module: &Module, region: &Region) -> bool {
    let Some((_, reduce)) = only_reduce(region) else { return false };
    let Op::Reduce(attrs) = module.op(reduce) else { return false };
    let reducer = Reducer::of(module, attrs.to_apply);
    reducer.and_then(|reducer| ReduceEngine::of(&reducer)) == Some(ReduceEngine::Loops)
}

/// Checks whether a reduce of whole numbers reads what is converted for it. If a reduced dim is longer
/// than [`TREE`], XLA:CPU stores the converted array, and reduces it in windows of that size along each
/// dim. A sum of `s8[5000,31,17]` along 1 and 2, which is one loop, took 8 times as long merged.
fn reduces_converted_integers(module: &Module, region: &Region) -> bool {
    region.live_outs.iter().any(|live_out| {
        let array = module.array_shape(live_out.value);
        live_out.kind == LiveOutKind::Reduce
            && module.opcode(live_out.value) == Opcode::Convert
            && array.is_some_and(|array| !array.element_type.is_float())
    })
}

/// Checks whether a region reads a transposed array. XLA:CPU fuses the transpose and the reshape behind it, and
/// divides to find the place of each element: sums of `s8[8,24,196,127]`, transposed from `s8[127,24,196,8]`,
/// along 0, 1, 3 took 1.7 times as long merged.
fn reads_transposed(module: &Module, region: &Region) -> bool {
    region.live_ins.iter().any(|live_in| module.opcode(live_in.id) == Opcode::Transpose)
}

/// Checks whether all arrays that a region reads have elements of one byte.
fn is_of_bytes(module: &Module, region: &Region) -> bool {
    region.live_ins.iter().all(|live_in| {
        let array = module.array_shape(live_in.id);
        array.is_some_and(|array| array.dims().is_empty() || array.element_type.bits() <= 8)
    })
}

/// Checks whether a region computes with 16-bit floats and values that are broadcast over them, as a
/// log-sum-exp does about its maximum. XLA:CPU's library converts whole rows, which leave the cache if
/// they are merged: that of `bf16[64,9,24,256]` along all dims but one took 1.6 times as long, a sum of
/// weighted `bf16[12,4,80,336]` along 1 and 2 took 3.3 times. Merged columns pay where another reduce or
/// a result reads what is computed, as in a norm.
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

/// Checks whether exponentials or the like are computed, beside which a nest of loops costs nothing. A
/// softmax of `f32[64,98,896]` along 1 and 2 took 1.2 times as long merged.
fn computes_functions(module: &Module, region: &Region) -> bool {
    region.interior.iter().any(|&id| module.opcode(id).is_transcendental())
}

/// Checks whether the only array that a region reduces is computed, not just converted, and used besides.
/// XLA:CPU's library computes it once if it finds no reshape between: squares of `f32[31,16,7,12,80]`
/// divided by their sums along 1 and 2 took twice as long merged.
fn uses_twice(module: &Module, region: &Region) -> bool {
    let Some((value, _)) = only_reduce(region) else { return false };
    module.users(value).len() > 1
        && region.interior.contains(&value)
        && module.opcode(value) != Opcode::Convert
}

/// Returns the dims of a region, with those merged that all of its reduces remove together.
fn merged(module: &Module, region: &Region) -> Offers {
    let taken = Taken::of(module, region);
    if taken.by.is_empty() || !taken.pays(module) {
        return Offers::new();
    }
    let mut dims = Dims::new();
    let mut merges = false;
    for (number, &size) in (0i64..).zip(&region.dims) {
        let before = number - 1;
        let takes_both = taken.contains(before) && taken.contains(number);
        let product = dims.last().and_then(|last| last.checked_mul(size));
        match (dims.last_mut(), product) {
            (Some(last), Some(product)) if takes_both => {
                merges |= *last > 1 && size > 1;
                *last = product;
            }
            _ => dims.push(size),
        }
    }
    if merges { Offers::from_iter([dims]) } else { Offers::new() }
}
