//! Windows that all begin with the first element, or all end with the last:
//! running totals, which take each element once, however long the windows are.

use tilewright_ir::ops::dims::WindowDim;
use tilewright_ir::{CompId, Data, Native};

use super::fold::accumulator_bytes;
use super::monoid::{self, Folded, Monoid, Visitor};
use super::{Allocation, Cx};
use crate::error::{Fault, Outcome};
use crate::jobs::{Job, run_all};
use crate::strides::extent;

/// An array as `[outer, length, inner]`, whose totals run along the middle.
#[derive(Clone, Copy)]
struct Running {
    length: usize,
    /// Totals along the dim.
    results: usize,
    inner: usize,
    /// The number of elements that the first total takes; it is negative if this many totals
    /// pass before one takes an element.
    first: i64,
    /// Whether totals run from the end.
    from_end: bool,
}

impl Running {
    /// The running totals that the windows over an array form, if they do.
    fn of(window: &[WindowDim], from: &[i64], to: &[i64]) -> Option<Self> {
        let plain = |w: &WindowDim| w.stride == 1 && w.base_dilation == 1 && !w.reversal;
        let single = |w: &WindowDim| w.size == 1 && w.padding_low == 0 && w.padding_high == 0;
        let at = window.iter().position(|w| !single(w))?;
        let others = || window.iter().enumerate().filter(|(dim, _)| *dim != at);
        let w = window.get(at).filter(|w| w.window_dilation == 1)?;
        if !window.iter().all(plain) || !others().all(|(_, w)| single(w)) {
            return None;
        }
        let (length, results) = (*from.get(at)?, *to.get(at)?);
        if length == 0 || results == 0 {
            return None;
        }
        // Window `i` has the elements from `i - low` to before `i - low + size`.
        let low = w.padding_low;
        let from_start = results.checked_sub(1)? <= low;
        let from_end = w.size.checked_sub(low)? >= length;
        let first = if from_start {
            w.size.checked_sub(low)?
        } else {
            length.checked_add(low)?.checked_sub(results.checked_sub(1)?)?
        };
        (from_start || from_end).then_some(Self {
            length: extent(length),
            results: extent(results),
            inner: from.get(at + 1..)?.iter().map(|&d| extent(d)).product(),
            first,
            from_end: !from_start,
        })
    }

    /// Returns how many elements the `n`th total takes.
    fn taken(self, n: usize) -> usize {
        let more = i64::try_from(n).unwrap_or(i64::MAX);
        extent(self.first.saturating_add(more)).min(self.length)
    }
}

/// Computes running totals by one of the common reducers; `None` for other computations.
pub(super) fn running_totals(
    cx: &Cx<'_, '_>,
    reducer: CompId,
    window: &[WindowDim],
    results: &[Allocation],
) -> Outcome<Option<Data>> {
    let ([result], array) = (results, cx.array(0)?) else { return Ok(None) };
    let Some(running) = Running::of(window, array.dims(), &result.dims) else { return Ok(None) };
    if array.len() == 0 || array.element_type() != result.element_type {
        return Ok(None);
    }
    let threads = rayon::current_num_threads();
    let totals = running.inner.saturating_mul(threads);
    let _totals = cx.scratch(accumulator_bytes(result.element_type), totals)?;
    cx.spend(array.len().saturating_add(result.len))?;
    let (values, init) = (Folded::operand(cx, 0)?, Folded::operand(cx, 1)?);
    let run = Run { values: &values, init: &init, running, len: result.len };
    let data = monoid::visit_common(
        cx.module(),
        cx.evaluator.numbers(),
        reducer,
        result.element_type,
        run,
    );
    data.transpose()?.map(|data| Folded::result(data, result.element_type)).transpose()
}

struct Run<'a> {
    values: &'a Folded<'a>,
    init: &'a Folded<'a>,
    running: Running,
    len: usize,
}

impl Visitor for Run<'_> {
    type Output = Outcome<Data>;

    fn visit<T: Native, M: Monoid<T>>(self) -> Outcome<Data> {
        let values = self.values.slice::<T>()?;
        let init = self.init.slice::<T>()?.first().copied();
        let init = M::lift(init.ok_or(Fault::Internal("an initial value is missing"))?);
        let Running { length, results, inner, .. } = self.running;
        let mut out = vec![M::lower(init); self.len];
        let (taken, given) = (length * inner, results * inner);
        let rows = (ELEMENTS_OF_A_JOB / taken).max(1);
        let mut jobs: Vec<Job<'_>> = Vec::new();
        for (out, values) in out.chunks_mut(rows * given).zip(values.chunks(rows * taken)) {
            jobs.push(Box::new(move || {
                let mut totals = vec![init; inner];
                for (out, values) in out.chunks_mut(given).zip(values.chunks(taken)) {
                    totals.fill(init);
                    run::<T, M>(self.running, values, &mut totals, out);
                }
                Ok(())
            }));
        }
        run_all(jobs)?;
        Ok(T::wrap(out))
    }
}

/// Elements worth a job of their own.
const ELEMENTS_OF_A_JOB: usize = 1 << 12;

fn run<T: Native, M: Monoid<T>>(
    running: Running,
    values: &[T],
    totals: &mut [M::Accumulator],
    out: &mut [T],
) {
    let Running { length, results, inner, from_end, .. } = running;
    let mut taken = 0;
    for n in 0..results {
        for element in taken..running.taken(n).max(taken) {
            let element = if from_end { length - 1 - element } else { element };
            let row = &values[element * inner..][..inner];
            for (total, &value) in totals.iter_mut().zip(row) {
                *total = M::join(*total, M::lift(value));
            }
        }
        taken = running.taken(n).max(taken);
        let place = if from_end { results - 1 - n } else { n };
        for (out, &total) in out[place * inner..][..inner].iter_mut().zip(totals.iter()) {
            *out = M::lower(total);
        }
    }
}
