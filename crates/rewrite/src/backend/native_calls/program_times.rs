//! Looks up the time of a program, as the engine compiles it and by one call of a kernel.
//! `programs.rs` asks whether a call pays.
//!
//! An engine reads an array once for each reduction, or for two that depend on each other. A call
//! reads the array once if a slab of it, such as a row, stays in a cache. A call therefore pays
//! where arrays are larger than the caches and a program has many reductions.
//!
//! The target's table ([`ProgramTime`]) has one kind of program: the gradient of a norm of rows
//! together with the gradient of its scale, which adds up along columns a value that is computed
//! from the sums of rows. The table has no times of other programs, and the pass leaves them alone.

use rustc_hash::FxHashSet;
use tilewright_ir::{ArrayShape, InstId, Module, Op};
use tilewright_target::programs::ProgramTime;

use super::Times;
use crate::analysis::iteration::IterationRegion;

/// The fewest elements of a reduced array for which a program is looked for, since the search takes
/// a while.
const LEAST_ELEMENTS: i64 = 1 << 20;

/// Checks, before the search, whether a call of the program that a reduce belongs to may pay.
pub(super) fn may_pay(module: &Module, reduce: InstId, measured: &[ProgramTime]) -> bool {
    let array = module.operands(reduce).first().and_then(|&array| module.array_shape(array));
    let elements = array.and_then(ArrayShape::num_elements);
    !measured.is_empty() && elements.is_some_and(|elements| elements >= LEAST_ELEMENTS)
}

/// Returns the times of a region by the first entry of `measured` that fits it. `None` if no entry
/// fits or a call is not faster.
pub(super) fn times_of(
    module: &Module,
    region: &IterationRegion,
    measured: &[ProgramTime],
) -> Option<Times> {
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
    let time = measured.iter().find(|time| time.fits(rows, row, bytes))?;
    let [compiled, native] = [time.compiled, time.kernel].map(|ns| ns * elements / 1e3);
    (native < compiled).then_some(Times { compiled, native })
}

/// The reductions of whole arrays in a region without exponentials.
struct Reductions {
    /// The number of reductions along rows.
    rows: usize,
    /// The number of elements of a row.
    row: usize,
    /// Whether a reduction along columns reduces a value that is computed from the results of those
    /// along rows.
    adds_up_columns: bool,
}

impl Reductions {
    /// Returns the reductions of a region. `None` if there are none along rows, if rows have
    /// different lengths, or if the region has an exponential.
    fn of(module: &Module, region: &IterationRegion) -> Option<Self> {
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

/// Returns `values` and the members of a region that are computed from any of them.
fn made_of(
    module: &Module,
    region: &IterationRegion,
    values: &FxHashSet<InstId>,
) -> FxHashSet<InstId> {
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
