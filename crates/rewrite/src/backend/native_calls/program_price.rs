//! What programs cost, as XLA:CPU compiles them and by one call.
//!
//! XLA:CPU reads an array once for each reduction or two that depend on each other, and a call reads
//! it once if a slab, such as a row, stays in a cache. So a call pays where arrays are larger than the
//! caches and a program has many reductions. One kind does on every run of the measurements: the
//! gradient of a norm of rows together with those of its parameters. Forward norms, softmax and
//! gradients with fewer reductions took 0.5 to 1.5 times as long as XLA:CPU's form, and are left alone.

use tilewright_ir::{ArrayShape, InstId, Module, Op};

use super::price::Price;
use crate::analysis::iteration::Region;

/// The lengths of rows that were measured.
const ROWS: [usize; 2] = [16, 1024];
/// The fewest reductions along rows, on which others depend.
const LEAST_REDUCTIONS: usize = 4;

/// The nanoseconds per element of what is compiled and of the call, for arrays that together have at
/// least so many bytes: two threads of an AMD EPYC with 32 MB of third cache, jaxlib 0.12.0.1.
const TIMES: [(f64, [f64; 2]); 2] = [(100_000_000.0, [2.9, 1.9]), (48_000_000.0, [1.5, 1.2])];

/// The fewest elements of a space for which there is a price.
const LEAST_ELEMENTS: i64 = 1 << 20;

/// Checks whether a call may pay for what a reduce is part of, before that is looked for.
pub(super) fn may_pay(module: &Module, reduce: InstId) -> bool {
    let array = module.operands(reduce).first().and_then(|&array| module.array_shape(array));
    array.and_then(ArrayShape::num_elements).is_some_and(|elements| elements >= LEAST_ELEMENTS)
}

/// Returns the price of a region; `None` if nothing is known of such ones.
pub(super) fn price(module: &Module, region: &Region) -> Option<Price> {
    let rank = region.space.len();
    let is_whole = |id: &&InstId| region.along.get(*id).is_some_and(|along| along.len() == rank);
    let (mut rows, mut columns, mut row) = (0, 0, None);
    for &id in &region.members {
        if !matches!(module.op(id), Op::Reduce(_)) {
            continue;
        }
        let array = region.along.get(module.operands(id).first()?)?;
        let kept = region.along.get(&id)?;
        let outer = kept.iter().enumerate().all(|(place, &dim)| place == dim);
        let inner = kept.iter().rev().enumerate().all(|(place, &dim)| place + dim + 1 == rank);
        if array.len() == rank && outer && !kept.is_empty() {
            rows += 1;
            let len: usize = region.space.iter().skip(kept.len()).product();
            if *row.get_or_insert(len) != len {
                return None;
            }
        } else if array.len() == rank && inner && !kept.is_empty() {
            columns += 1;
        }
    }
    let read = region.inputs.iter().filter(is_whole).count();
    let written = region.outputs.iter().filter(is_whole).count();
    let is_gradient = rows >= LEAST_REDUCTIONS && columns > 0 && read >= 2 && written == 1;
    if !is_gradient || !row.is_some_and(|row| (ROWS[0]..=ROWS[1]).contains(&row)) {
        return None;
    }
    let elements = region.space.iter().map(|&dim| dim as f64).product::<f64>();
    let bytes = elements * 4.0 * (read + written) as f64;
    let times = TIMES.iter().find(|(least, _)| bytes >= *least)?.1;
    let [compiled, native] = times.map(|time| time * elements / 1e3);
    Some(Price { compiled, native })
}
