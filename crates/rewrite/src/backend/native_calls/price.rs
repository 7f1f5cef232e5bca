//! What reductions cost, by XLA:CPU and by a kernel of this CPU.
//!
//! [`TABLE`] has the times per element that `benches/native_calls.py` measured on two threads of an
//! AMD EPYC with AVX-512 (jaxlib 0.12.0.1), for arrays of 4 million elements. It has the shapes alone
//! at which kernels were at least 1.3 times as fast; what is not there is left to XLA:CPU.

use tilewright_ir::{ArrayShape, ElementType, NativeCall, NativeFold};

/// Modelled times in microseconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Price {
    pub(super) xla: f64,
    pub(super) native: f64,
}

impl Price {
    pub(super) fn pays(self) -> bool {
        self.native * LEAST_GAIN <= self.xla
    }
}

/// A call must be this many times as fast as XLA:CPU: times differ so much from run to run.
const LEAST_GAIN: f64 = 1.2;

/// The nanoseconds that a call takes besides its work: XLA begins the call and tasks for its threads.
const CALL: f64 = 8_000.0;
/// The nanoseconds per byte of writing results and reading them again, which XLA:CPU saves where it
/// fuses a reduction with what uses it.
const RESULT_BYTE: f64 = 0.1;
/// The nanoseconds per byte of reading an array from main memory.
const MEMORY_BYTE: f64 = 0.05;
/// The largest array in bytes that stays in a cache.
const CACHE: f64 = 33_554_432.0;

/// How the elements of a row-major array are walked, by the innermost axis. Neighbouring axes that
/// are all reduced or all kept count as one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Walk {
    /// All elements become one.
    Whole,
    /// Rows are reduced, each of which lies side by side.
    Rows,
    /// Rows are added up element by element.
    Columns,
    /// Reduced and kept axes alternate; the innermost one is reduced.
    MixedRows,
    /// Reduced and kept axes alternate; the innermost one is kept.
    MixedColumns,
}

use Walk::{Columns, MixedColumns, MixedRows, Rows, Whole};

/// The times for reductions of one type and fold that are walked in one way.
struct Row {
    walk: Walk,
    /// The lengths of the innermost axis, from the least to the greatest.
    lengths: [i64; 2],
    /// The nanoseconds per element of XLA:CPU and of the kernel.
    times: [f64; 2],
    /// The nanoseconds per result of the kernel.
    per_result: f64,
}

const fn row(walk: Walk, lengths: [i64; 2], times: [f64; 2]) -> Row {
    Row { walk, lengths, times, per_result: 0.0 }
}

const ANY: i64 = i64::MAX;

const F32_SUM: &[Row] = &[
    row(Rows, [2, 4], [0.53, 0.135]),
    row(Rows, [5, 8], [0.27, 0.13]),
    row(Columns, [2, 4], [0.33, 0.042]),
    row(Columns, [5, 8], [0.167, 0.041]),
    row(MixedRows, [2, 4], [0.53, 0.04]),
    row(MixedRows, [5, 10], [0.45, 0.28]),
    row(MixedRows, [11, 16], [0.257, 0.095]),
    row(MixedColumns, [2, 4], [0.5, 0.062]),
    row(MixedColumns, [5, 16], [0.124, 0.046]),
];

const F32_EXTREMUM: &[Row] = &[
    row(Columns, [2, 4], [0.27, 0.047]),
    row(Columns, [5, 8], [0.127, 0.047]),
    row(MixedRows, [2, 4], [0.22, 0.065]),
    row(MixedColumns, [2, 4], [0.29, 0.127]),
];

const F32_PLACE: &[Row] = &[
    row(Whole, [LEAST_PLACES, ANY], [4.4, 0.12]),
    Row { walk: Rows, lengths: [LEAST_PLACES, ANY], times: [1.8, 0.15], per_result: 30.0 },
    row(Columns, [1, ANY], [2.2, 0.27]),
    row(MixedColumns, [1, ANY], [2.2, 0.15]),
];

const BF16_SUM: &[Row] = &[
    row(Whole, [1 << 20, ANY], [0.256, 0.028]),
    row(Rows, [32, 64], [1.4, 0.34]),
    row(Columns, [2, ANY], [1.45, 0.03]),
    row(MixedRows, [2, ANY], [2.0, 0.056]),
    row(MixedColumns, [2, ANY], [2.0, 0.035]),
];

const BF16_EXTREMUM: &[Row] = &[
    row(Columns, [2, 4], [0.35, 0.077]),
    row(Columns, [5, 8], [0.158, 0.073]),
    row(MixedRows, [2, 4], [0.26, 0.075]),
    row(MixedColumns, [2, 4], [0.29, 0.077]),
];

const S32_SUM: &[Row] = &[
    row(Columns, [128, ANY], [0.09, 0.05]),
    row(MixedRows, [2, 4], [0.178, 0.037]),
    row(MixedRows, [5, 10], [0.52, 0.18]),
    row(MixedRows, [11, 16], [0.99, 0.1]),
    row(MixedRows, [17, ANY], [0.32, 0.075]),
    row(MixedColumns, [2, 4], [0.18, 0.056]),
    row(MixedColumns, [5, 16], [0.42, 0.044]),
];

const S32_EXTREMUM: &[Row] = &[
    row(Whole, [1 << 17, ANY], [0.36, 0.041]),
    row(Rows, [64, 127], [0.36, 0.17]),
    row(Rows, [128, ANY], [0.36, 0.115]),
    row(Columns, [128, ANY], [0.09, 0.05]),
    row(MixedRows, [2, 4], [0.26, 0.04]),
    row(MixedRows, [5, 10], [0.64, 0.19]),
    row(MixedRows, [11, 16], [1.37, 0.21]),
    row(MixedRows, [17, ANY], [0.3, 0.065]),
    row(MixedColumns, [2, 4], [0.35, 0.061]),
    row(MixedColumns, [5, 16], [0.36, 0.042]),
];

const TRUTH: &[Row] = &[
    row(Whole, [1 << 20, ANY], [0.065, 0.009]),
    row(Columns, [2, 4], [0.027, 0.009]),
    row(MixedRows, [2, 16], [0.147, 0.022]),
    row(MixedRows, [17, ANY], [0.14, 0.011]),
    row(MixedColumns, [2, 16], [0.16, 0.02]),
];

const U8_EXTREMUM: &[Row] = &[
    row(Rows, [2, 4], [0.22, 0.093]),
    row(Columns, [2, 4], [0.51, 0.009]),
    row(Columns, [5, 8], [0.126, 0.009]),
    row(Columns, [9, 16], [0.069, 0.009]),
    row(MixedRows, [2, 4], [0.22, 0.01]),
    row(MixedRows, [5, 10], [0.37, 0.036]),
    row(MixedRows, [11, 16], [0.07, 0.013]),
    row(MixedColumns, [2, 4], [0.49, 0.02]),
    row(MixedColumns, [5, 16], [0.072, 0.014]),
];

/// The fewest elements of which XLA:CPU finds a place one by one, and not in vectors.
const LEAST_PLACES: i64 = 32;
/// The fewest elements that a sum of 16-bit floats has, for the times above.
const LEAST_NARROW: i64 = 64;

/// Returns the times for a type and a fold, and the fewest elements of a result that they hold for.
fn table(element_type: ElementType, fold: NativeFold) -> (&'static [Row], i64) {
    use NativeFold::{And, ArgMax, ArgMin, Max, Min, Or, Sum};
    match (element_type, fold) {
        (ElementType::F32, Sum) => (F32_SUM, 2),
        (ElementType::F32, Max | Min) => (F32_EXTREMUM, 2),
        (ElementType::F32, ArgMax | ArgMin) => (F32_PLACE, LEAST_PLACES),
        (ElementType::BF16, Sum) => (BF16_SUM, LEAST_NARROW),
        (ElementType::BF16, Max | Min) => (BF16_EXTREMUM, 2),
        (ElementType::S32, Sum) => (S32_SUM, 2),
        (ElementType::S32, Max | Min) => (S32_EXTREMUM, 2),
        (ElementType::Pred, And | Or) => (TRUTH, 2),
        (ElementType::U8, Max | Min) => (U8_EXTREMUM, 2),
        _ => (&[], 0),
    }
}

/// Returns the price of reducing an array; `None` if kernels are no faster, or nothing is known of
/// such reductions.
pub(super) fn price(array: &ArrayShape, call: &NativeCall) -> Option<Price> {
    let elements = array.num_elements().filter(|&elements| elements > 0)?;
    let (walk, len, count) = walk(array.dims(), &call.axes)?;
    let (rows, least) = table(array.element_type, call.fold);
    let is_measured =
        |row: &&Row| row.walk == walk && (row.lengths[0]..=row.lengths[1]).contains(&len);
    let row = rows.iter().find(is_measured).filter(|_| count >= least)?;
    let results = (elements / count) as f64;
    let element_bytes = f64::from(array.element_type.bits().div_ceil(8));
    let elements = elements as f64;
    let read = elements * element_bytes * MEMORY_BYTE;
    let least = if elements * element_bytes > CACHE { read } else { 0.0 };
    let [xla, native] = row.times.map(|time| (elements * time).max(least));
    let result_bytes = if call.fold.tells_places() { 4.0 } else { element_bytes };
    let more = CALL + results * (row.per_result + result_bytes * RESULT_BYTE);
    Some(Price { xla: xla / 1e3, native: (native + more) / 1e3 })
}

/// Returns how an array of these dims is walked, the length of the innermost axis, and the elements
/// of each result; `None` if nothing is reduced.
fn walk(dims: &[i64], axes: &[i64]) -> Option<(Walk, i64, i64)> {
    // The length of each axis, and whether it is reduced.
    let mut merged: Vec<(i64, bool)> = Vec::new();
    let mut count = 1i64;
    for (axis, &len) in (0i64..).zip(dims).filter(|&(_, &len)| len != 1) {
        let is_reduced = axes.contains(&axis);
        if is_reduced {
            count = count.checked_mul(len)?;
        }
        match merged.last_mut() {
            Some((outer, same)) if *same == is_reduced => *outer = outer.checked_mul(len)?,
            _ => merged.push((len, is_reduced)),
        }
    }
    let &(len, is_row) = merged.last()?;
    let walk = match (merged.len(), is_row) {
        (1, true) => Whole,
        (1, false) => return None,
        (2, true) => Rows,
        (2, false) => Columns,
        (_, true) => MixedRows,
        (_, false) => MixedColumns,
    };
    Some((walk, len, count))
}

#[cfg(test)]
mod tests {
    use tilewright_ir::{ArrayShape, ElementType, NativeCall, NativeFold, dims};

    use super::{Columns, MixedColumns, MixedRows, Rows, Whole, price, walk};

    #[test]
    fn axes_of_one_kind_are_one() {
        assert_eq!(walk(&[8, 1, 4], &[0, 2]), Some((Whole, 32, 32)));
        assert_eq!(walk(&[8, 3, 4], &[1, 2]), Some((Rows, 12, 12)));
        assert_eq!(walk(&[8, 3, 4], &[0]), Some((Columns, 12, 8)));
        assert_eq!(walk(&[8, 3, 4], &[1]), Some((MixedColumns, 4, 3)));
        assert_eq!(walk(&[8, 3, 1, 4], &[0, 3]), Some((MixedRows, 4, 32)));
        assert_eq!(walk(&[8, 3], &[]), None);
        assert_eq!(walk(&[1, 1], &[0]), None);
    }

    /// Shapes at which both were measured, with the ratio of their times.
    #[test]
    fn calls_are_made_where_kernels_were_faster() {
        use ElementType::{BF16, F32, S32, U8};
        use NativeFold::{ArgMax, Max, Sum};
        for (sizes, axes, element_type, fold, ratio) in [
            (&[1 << 20, 4][..], &[1][..], F32, Sum, 4.03),
            (&[1 << 20, 4], &[0], F32, Sum, 8.12),
            (&[1 << 20, 4], &[1], F32, ArgMax, 0.36),
            (&[1 << 18, 16], &[1], F32, Sum, 0.34),
            (&[4096, 1024], &[1], F32, Sum, 0.55),
            (&[4096, 1024], &[1], F32, ArgMax, 10.27),
            (&[16, 65536], &[0], F32, ArgMax, 0.57),
            (&[4096, 1024], &[0], BF16, Sum, 61.14),
            (&[4096, 1024], &[0], BF16, Max, 0.29),
            (&[8, 64, 64, 32, 4], &[1, 2, 4], F32, Sum, 13.28),
            (&[32, 128, 1024], &[0, 2], F32, Sum, 0.61),
            (&[32, 128, 1024], &[0, 2], S32, Sum, 4.33),
            (&[1 << 20, 4], &[0], U8, Max, 56.37),
            (&[1 << 17, 32], &[1], U8, Max, 0.14),
        ] {
            let array = ArrayShape::new(element_type, sizes.iter().copied());
            let call = NativeCall { fold, axes: dims(axes) };
            let pays = price(&array, &call).is_some_and(super::Price::pays);
            assert_eq!(pays, ratio > 1.2, "{array} {axes:?} {fold:?}");
        }
    }

    #[test]
    fn small_arrays_are_left_alone() {
        let call = NativeCall { fold: NativeFold::Sum, axes: dims([1]) };
        let pays = |rows: i64| {
            let array = ArrayShape::new(ElementType::F32, [rows, 4]);
            price(&array, &call).is_some_and(super::Price::pays)
        };
        assert!(!pays(0) && !pays(1024) && pays(1 << 16));
    }
}
