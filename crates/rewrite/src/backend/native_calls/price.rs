//! What reductions cost, as XLA:CPU compiles them and by a kernel of this CPU.
//!
//! The tables have the times per element that `benches/native_calls.py` measured on two threads of an
//! AMD EPYC with AVX-512 (jaxlib 0.12.0.1), for arrays of 2 and 4 million elements. A compiled
//! reduction takes the lesser time of its own form and that in steps (`reduce-form`), of which the
//! call takes the place. The tables have the shapes alone at which kernels were at least 1.3 times as
//! fast; what is not there is left to XLA:CPU.

use tilewright_ir::{ArrayShape, ElementType, NativeCall, NativeFold};

/// Modelled times in microseconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Price {
    pub(super) compiled: f64,
    pub(super) native: f64,
}

impl Price {
    pub(super) fn pays(self) -> bool {
        self.native * LEAST_GAIN <= self.compiled
    }
}

/// A call must be this many times as fast as what is compiled: times differ so much from run to run.
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
#[derive(Clone, Copy)]
struct Row {
    walk: Walk,
    /// The lengths of the innermost axis, from the least to the greatest.
    lengths: [i64; 2],
    /// Whether the lengths are powers of two alone, rows of which fill vectors.
    of_powers: bool,
    /// The greatest number of elements.
    most: i64,
    /// The nanoseconds per element of what is compiled and of the kernel.
    times: [f64; 2],
}

const fn row(walk: Walk, lengths: [i64; 2], times: [f64; 2]) -> Row {
    Row { walk, lengths, of_powers: false, most: ANY, times }
}

impl Row {
    const fn of_powers(self) -> Self {
        Self { of_powers: true, ..self }
    }

    /// Longer arrays are reduced by steps as fast: they take a while to begin each.
    const fn up_to(self, most: i64) -> Self {
        Self { most, ..self }
    }

    fn has(&self, walk: Walk, len: i64, elements: i64) -> bool {
        self.walk == walk
            && (self.lengths[0]..=self.lengths[1]).contains(&len)
            && (!self.of_powers || len.count_ones() == 1)
            && elements <= self.most
    }
}

const ANY: i64 = i64::MAX;

const F32_SUM: &[Row] = &[
    row(Rows, [8, 8], [0.26, 0.075]),
    row(Rows, [9, 15], [0.175, 0.1]),
    row(Rows, [16, 16], [0.138, 0.07]),
    row(Rows, [17, 32], [0.074, 0.053]),
    row(Columns, [8, 8], [0.17, 0.058]),
    row(Columns, [9, 15], [0.117, 0.055]),
    row(Columns, [16_384, ANY], [0.068, 0.047]),
    row(MixedRows, [2, 7], [0.062, 0.043]),
    row(MixedRows, [8, 16], [0.133, 0.058]),
    row(MixedRows, [17, 32], [0.075, 0.05]),
    row(MixedColumns, [2, 7], [0.095, 0.062]),
    row(MixedColumns, [8, 16], [0.087, 0.055]),
];

const F32_EXTREMUM: &[Row] = &[
    row(Columns, [8, 8], [0.124, 0.04]),
    row(Columns, [9, 15], [0.091, 0.05]),
    row(MixedRows, [8, 8], [0.114, 0.065]),
    row(MixedColumns, [8, 8], [0.134, 0.08]),
];

const F32_PLACE: &[Row] = &[
    row(Whole, [1 << 15, ANY], [0.176, 0.11]),
    row(Rows, [32, 128], [0.18, 0.12]),
    row(Rows, [129, ANY], [0.3, 0.105]),
    row(Columns, [4, 64], [0.35, 0.22]).of_powers().up_to(1 << 20),
];

const F64_SUM: &[Row] = &[
    row(Rows, [4, 4], [0.57, 0.22]),
    row(Columns, [4, 4], [0.34, 0.12]),
    row(MixedRows, [4, 5], [0.5, 0.35]),
    row(MixedColumns, [4, 5], [0.48, 0.23]),
];

const BF16_SUM: &[Row] = &[
    row(Rows, [8, 8], [0.27, 0.15]),
    row(Columns, [8, 16], [0.1, 0.035]),
    row(Columns, [17, 32], [0.04, 0.029]),
    row(MixedRows, [2, 4], [0.075, 0.047]),
    row(MixedRows, [8, 16], [0.14, 0.06]),
    row(MixedRows, [17, 32], [0.07, 0.032]),
    row(MixedColumns, [2, 7], [0.1, 0.05]),
    row(MixedColumns, [8, 16], [0.15, 0.05]),
    row(MixedColumns, [17, 32], [0.04, 0.03]),
];

const BF16_EXTREMUM: &[Row] = &[
    row(Rows, [3, 4], [0.27, 0.056]),
    row(Rows, [5, 7], [0.165, 0.095]),
    row(Rows, [8, 8], [0.146, 0.05]),
    row(Rows, [9, 16], [0.09, 0.063]),
    row(Columns, [16, 16], [0.079, 0.022]),
    row(Columns, [32, 32], [0.028, 0.02]),
    row(Columns, [16_384, ANY], [0.037, 0.025]),
    row(MixedRows, [2, 2], [0.043, 0.028]),
    row(MixedRows, [16, 16], [0.074, 0.03]),
    row(MixedRows, [32, 32], [0.037, 0.025]),
    row(MixedColumns, [2, 2], [0.072, 0.038]),
    row(MixedColumns, [3, 5], [0.0455, 0.031]),
    row(MixedColumns, [16, 16], [0.075, 0.028]),
];

const F16_SUM: &[Row] = &[
    row(Rows, [8, 8], [0.5, 0.25]),
    row(Columns, [2, 7], [0.15, 0.09]),
    row(Columns, [8, 16], [0.18, 0.08]),
    row(Columns, [17, 32], [0.14, 0.085]),
    row(MixedRows, [2, 7], [0.14, 0.095]),
    row(MixedRows, [8, 16], [0.3, 0.15]),
    row(MixedRows, [17, 32], [0.28, 0.17]),
    row(MixedColumns, [2, 7], [0.25, 0.12]),
    row(MixedColumns, [8, 16], [0.2, 0.1]),
];

const S32_SUM: &[Row] = &[
    row(Whole, [1 << 17, ANY], [0.07, 0.042]),
    row(Rows, [16, 16], [0.074, 0.055]),
    row(Rows, [17, 63], [0.068, 0.047]),
    row(Rows, [64, ANY], [0.0665, 0.041]),
    row(Columns, [2, 2], [0.083, 0.045]),
    row(Columns, [512, ANY], [0.087, 0.056]),
    row(MixedRows, [2, 2], [0.06, 0.043]),
];

const S32_EXTREMUM: &[Row] = &[
    row(Whole, [1 << 17, ANY], [0.36, 0.06]),
    row(Rows, [10, 31], [0.34, 0.115]),
    row(Rows, [32, ANY], [0.33, 0.095]),
    row(Columns, [2, 2], [0.4, 0.06]),
    row(Columns, [3, 3], [0.08, 0.053]),
    row(Columns, [512, ANY], [0.095, 0.068]),
    row(MixedRows, [2, 2], [0.056, 0.042]),
    row(MixedColumns, [2, 2], [0.11, 0.077]),
];

const S32_PLACE: &[Row] = &[
    row(Whole, [1 << 15, ANY], [0.16, 0.1]),
    row(Rows, [128, ANY], [0.163, 0.1]),
    row(Columns, [4, 256], [0.26, 0.13]).of_powers().up_to(1 << 20),
];

const TRUTH: &[Row] = &[
    row(Whole, [1 << 17, ANY], [0.068, 0.012]),
    row(Columns, [2, 2], [0.076, 0.016]),
    row(Columns, [4, 4], [0.027, 0.0115]),
    row(Columns, [8, 16], [0.0165, 0.0117]).of_powers(),
    row(Columns, [128, ANY], [0.017, 0.012]).of_powers(),
    row(MixedRows, [2, 8], [0.015, 0.0113]),
    row(MixedRows, [32, 32], [0.04, 0.018]),
    row(MixedColumns, [2, 5], [0.024, 0.0165]),
];

const U8_EXTREMUM: &[Row] = &[
    row(Rows, [2, 4], [0.227, 0.105]),
    row(Rows, [5, 8], [0.13, 0.08]),
    row(Columns, [2, 7], [0.2, 0.09]),
    row(Columns, [8, 15], [0.1, 0.055]),
    row(Columns, [16, 32], [0.037, 0.019]).of_powers(),
    row(MixedRows, [2, 8], [0.11, 0.02]),
    row(MixedRows, [9, 16], [0.062, 0.02]),
    row(MixedRows, [32, 32], [0.035, 0.0145]),
    row(MixedColumns, [2, 8], [0.125, 0.02]),
    row(MixedColumns, [9, 16], [0.07, 0.02]),
    row(MixedColumns, [32, 32], [0.038, 0.0145]),
];

/// The fewest elements of a result that lie apart from each other: for fewer, kernels begin too often.
const LEAST_APART: i64 = 256;

/// Returns the times for a type and a fold.
fn table(element_type: ElementType, fold: NativeFold) -> &'static [Row] {
    use ElementType::{BF16, F16, F32, F64, Pred, S32, U8};
    use NativeFold::{And, ArgMax, ArgMin, Max, Min, Or, Sum};
    match (element_type, fold) {
        (F32, Sum) => F32_SUM,
        (F32, Max | Min) => F32_EXTREMUM,
        (F32, ArgMax | ArgMin) => F32_PLACE,
        (F64, Sum) => F64_SUM,
        (BF16, Sum) => BF16_SUM,
        (BF16, Max | Min) => BF16_EXTREMUM,
        (F16, Sum) => F16_SUM,
        (S32, Sum) => S32_SUM,
        (S32, Max | Min) => S32_EXTREMUM,
        (S32, ArgMax | ArgMin) => S32_PLACE,
        (Pred, And | Or) => TRUTH,
        (U8, Max | Min) => U8_EXTREMUM,
        _ => &[],
    }
}

/// Returns the price of reducing an array; `None` if kernels are no faster, or nothing is known of
/// such reductions.
pub(super) fn price(array: &ArrayShape, call: &NativeCall) -> Option<Price> {
    let elements = array.num_elements().filter(|&elements| elements > 0)?;
    let (walk, len, count) = walk(array.dims(), &call.axes)?;
    if !matches!(walk, Whole | Rows) && count < LEAST_APART {
        return None;
    }
    let rows = table(array.element_type, call.fold);
    let row = rows.iter().find(|row| row.has(walk, len, elements))?;
    let results = (elements / count) as f64;
    let element_bytes = f64::from(array.element_type.bits().div_ceil(8));
    let elements = elements as f64;
    let read = elements * element_bytes * MEMORY_BYTE;
    let least = if elements * element_bytes > CACHE { read } else { 0.0 };
    let [compiled, native] = row.times.map(|time| (elements * time).max(least));
    let result_bytes = if call.fold.tells_places() { 4.0 } else { element_bytes };
    let more = CALL + results * result_bytes * RESULT_BYTE;
    Some(Price { compiled: compiled / 1e3, native: (native + more) / 1e3 })
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

    #[test]
    fn small_arrays_are_left_alone() {
        let call = NativeCall { fold: NativeFold::Sum, axes: dims([1]) };
        let pays = |rows: i64| {
            let array = ArrayShape::new(ElementType::F32, [rows, 8]);
            price(&array, &call).is_some_and(super::Price::pays)
        };
        assert!(!pays(0) && !pays(512) && pays(1 << 15));
    }
}
