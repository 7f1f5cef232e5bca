//! What programs cost, as XLA:CPU compiles them and by one call.
//!
//! XLA:CPU reads an array once for each reduction or two that depend on each other, and a call reads
//! it once if a slab, such as a row, stays in a cache. So a call pays where arrays are larger than the
//! caches and a program has many reductions. One kind does on every run of the measurements
//! (`benches/native_programs.py`), whether the system gives memory in huge pages or in small ones: the
//! gradient of a norm of rows together with that of its scale, which adds up along columns what is made
//! of the sums of rows. For gradients without a scale, softmax and forward norms, a call was 0.5 to 3.9
//! times as fast as XLA:CPU's form in huge pages: those are left alone.

use std::ops::RangeInclusive;

use rustc_hash::FxHashSet;
use tilewright_ir::{ArrayShape, InstId, Module, Op};

use super::price::Price;
use crate::analysis::iteration::Region;

/// The times of programs of a kind: two threads of an AMD EPYC with 32 MB of third cache, jaxlib
/// 0.12.0.1, memory in huge pages, which favours what is compiled. Those of the least arrays are of an Intel
/// Xeon with AVX-512 and AMX.
struct Kind {
    /// The fewest reductions along rows.
    reductions: usize,
    /// The lengths of rows.
    row: RangeInclusive<usize>,
    /// The fewest bytes that whole arrays take together.
    bytes: f64,
    /// The nanoseconds per element of what is compiled and of the call.
    times: [f64; 2],
}

/// A program is of the first kind that it fits: two reductions along rows are those of an RMS norm.
const KINDS: [Kind; 5] = [
    Kind { reductions: 4, row: 16..=1024, bytes: 100_000_000.0, times: [1.94, 1.25] },
    Kind { reductions: 4, row: 16..=1024, bytes: 48_000_000.0, times: [1.77, 1.19] },
    Kind { reductions: 4, row: 256..=1024, bytes: 12_000_000.0, times: [1.13, 0.9] },
    Kind { reductions: 2, row: 16..=128, bytes: 48_000_000.0, times: [1.54, 1.0] },
    Kind { reductions: 2, row: 16..=1024, bytes: 48_000_000.0, times: [1.3, 1.05] },
];

/// The fewest elements of a space for which there is a price.
const LEAST_ELEMENTS: i64 = 1 << 20;

/// Checks whether a call may pay for what a reduce is part of, before that is looked for.
pub(super) fn may_pay(module: &Module, reduce: InstId) -> bool {
    let array = module.operands(reduce).first().and_then(|&array| module.array_shape(array));
    array.and_then(ArrayShape::num_elements).is_some_and(|elements| elements >= LEAST_ELEMENTS)
}

/// Returns the price of a region; `None` if nothing is known of such ones.
pub(super) fn price(module: &Module, region: &Region) -> Option<Price> {
    let Reductions { rows, row, adds_up_columns } = Reductions::of(module, region)?;
    let rank = region.space.len();
    let is_whole = |id: &&InstId| region.along.get(*id).is_some_and(|along| along.len() == rank);
    let read = region.inputs.iter().filter(is_whole).count();
    let written = region.outputs.iter().filter(is_whole).count();
    if !adds_up_columns || read < 2 || written != 1 {
        return None;
    }
    let elements = region.space.iter().map(|&dim| dim as f64).product::<f64>();
    let bytes = elements * 4.0 * (read + written) as f64;
    let mut kinds = KINDS.iter();
    let kind = kinds.find(|k| rows >= k.reductions && k.row.contains(&row) && bytes >= k.bytes)?;
    let [compiled, native] = kind.times.map(|time| time * elements / 1e3);
    Some(Price { compiled, native })
}

/// The reductions of whole arrays in a region without exponentials.
struct Reductions {
    /// How many are along rows of `row` elements.
    rows: usize,
    row: usize,
    /// Whether one is along columns of what is made of the results of others.
    adds_up_columns: bool,
}

impl Reductions {
    /// Returns those of a region, if all rows have the same length.
    fn of(module: &Module, region: &Region) -> Option<Self> {
        let rank = region.space.len();
        let (mut rows, mut row, mut columns) = (FxHashSet::default(), None, Vec::new());
        for &id in &region.members {
            if matches!(module.op(id), Op::Exp(_)) {
                return None;
            }
            if !matches!(module.op(id), Op::Reduce(_)) {
                continue;
            }
            let &array = module.operands(id).first()?;
            let kept = region.along.get(&id)?;
            let outer = kept.iter().enumerate().all(|(place, &dim)| place == dim);
            let inner = kept.iter().rev().enumerate().all(|(place, &dim)| place + dim + 1 == rank);
            let is_whole = region.along.get(&array)?.len() == rank && !kept.is_empty();
            if is_whole && outer {
                rows.insert(id);
                let len: usize = region.space.iter().skip(kept.len()).product();
                if *row.get_or_insert(len) != len {
                    return None;
                }
            } else if is_whole && inner {
                columns.push(array);
            }
        }
        let made = made_of(module, region, &rows);
        let adds_up_columns = columns.iter().any(|array| made.contains(array));
        Some(Self { rows: rows.len(), row: row?, adds_up_columns })
    }
}

/// The members of a region that need some of the values.
fn made_of(module: &Module, region: &Region, values: &FxHashSet<InstId>) -> FxHashSet<InstId> {
    let mut made = values.clone();
    loop {
        let before = made.len();
        for &id in &region.members {
            if module.operands(id).iter().any(|operand| made.contains(operand)) {
                made.insert(id);
            }
        }
        if made.len() == before {
            return made;
        }
    }
}
