//! Reductions beside the obvious loop over all elements.

use half::bf16;
use proptest::prelude::*;
use tilewright_native::{
    Array, Element, Error, Extremum, Fold, Number, Pool, Serial, Threads, View, place, place_into,
    reduce, reduce_into,
};

/// The random arrays of a test, and their most elements.
const CASES: u32 = if cfg!(miri) { 3 } else { 300 };
const MOST: usize = if cfg!(miri) { 400 } else { 40_000 };

/// An array with dims, strides, an offset, and axes to reduce.
#[derive(Clone, Debug)]
struct Case {
    dims: Vec<usize>,
    strides: Vec<isize>,
    offset: usize,
    len: usize,
    axes: Vec<i64>,
}

/// Arrays whose dims are permuted, skipped over, turned round or repeated.
fn cases() -> impl Strategy<Value = Case> {
    let dim = prop_oneof![1usize..5, 5usize..40, Just(1), 250usize..300];
    let dims = prop::collection::vec(dim, 0..5)
        .prop_filter("not too large", |dims| dims.iter().product::<usize>() <= MOST);
    (dims, any::<u64>(), prop::collection::vec(0u8..8, 5), any::<u8>()).prop_map(
        |(dims, order, kinds, reduced)| {
            let rank = dims.len();
            let mut order_of: Vec<usize> = (0..rank).collect();
            order_of.sort_by_key(|&i| (order >> (8 * i)) & 255);
            let (mut strides, mut apart, mut offset) = (vec![0; rank], 1usize, 0);
            for &i in &order_of {
                let (kind, dim) = (kinds[i], dims[i]);
                strides[i] = match kind {
                    0 => 0,
                    1 => -(apart as isize),
                    2 => 2 * apart as isize,
                    _ => apart as isize,
                };
                if kind == 1 {
                    offset += apart * (dim - 1);
                }
                apart *= match kind {
                    0 => 1,
                    2 => 2 * dim,
                    _ => dim,
                };
            }
            let axes = (0..rank).filter(|i| reduced >> i & 1 == 1);
            let axes = axes.map(|i| if i % 2 == 0 { i as i64 } else { i as i64 - rank as i64 });
            Case { axes: axes.collect(), dims, strides, offset, len: apart }
        },
    )
}

/// Calls `visit` with the number of the result, the place, and the address of each element.
fn each(case: &Case, mut visit: impl FnMut(usize, usize, usize)) {
    let rank = case.dims.len();
    let reduced: Vec<usize> =
        case.axes.iter().map(|&a| a.rem_euclid(rank.max(1) as i64) as usize).collect();
    let elements: usize = case.dims.iter().product();
    for n in 0..elements {
        let (mut left, mut result, mut place) = (n, 0, 0);
        let (mut results, mut places) = (1, 1);
        let mut address = case.offset as isize;
        for i in (0..rank).rev() {
            let index = left % case.dims[i];
            left /= case.dims[i];
            address += index as isize * case.strides[i];
            if reduced.contains(&i) {
                place += index * places;
                places *= case.dims[i];
            } else {
                result += index * results;
                results *= case.dims[i];
            }
        }
        visit(result, place, address as usize);
    }
}

/// The elements of each result, by their places.
fn groups<T: Copy>(case: &Case, data: &[T]) -> Vec<Vec<T>> {
    let mut groups: Vec<Vec<(usize, T)>> = Vec::new();
    each(case, |result, place, address| {
        if groups.len() <= result {
            groups.resize_with(result + 1, Vec::new);
        }
        groups[result].push((place, data[address]));
    });
    let sorted = |mut group: Vec<(usize, T)>| {
        group.sort_by_key(|(place, _)| *place);
        group.into_iter().map(|(_, element)| element).collect()
    };
    groups.into_iter().map(sorted).collect()
}

/// Computes with one thread and with several, which must agree to the last bit.
fn on_threads<R: std::fmt::Debug>(
    compute: impl Fn(&dyn Pool) -> Result<Array<R>, Error>,
) -> Array<R> {
    let array = compute(&Serial).expect("a reduction");
    for threads in [2, 5] {
        let other = compute(&Threads(threads)).expect("a reduction");
        assert_eq!(format!("{array:?}"), format!("{other:?}"), "{threads} threads");
    }
    array
}

fn reduced<T: Element + std::fmt::Debug>(case: &Case, data: &[T], fold: Fold) -> Array<T> {
    let view = View::new(data, case.offset, &case.dims, &case.strides).expect("a view");
    on_threads(|pool| reduce(&view, &case.axes, fold, pool))
}

/// The places, which must be the same in 32 bits and in 64.
fn placed<T: Number>(case: &Case, data: &[T], of: Extremum) -> Vec<i64> {
    let view = View::new(data, case.offset, &case.dims, &case.strides).expect("a view");
    let places = on_threads(|pool| place::<T, i64>(&view, &case.axes, of, pool)).data;
    let short = place::<T, i32>(&view, &case.axes, of, &Serial).expect("places").data;
    assert_eq!(places, short.into_iter().map(i64::from).collect::<Vec<_>>());
    places
}

fn numbers(len: usize, seed: u64) -> impl Iterator<Item = u64> {
    let mut state = seed | 1;
    std::iter::repeat_with(move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963);
        state >> 33
    })
    .take(len)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: CASES, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whole_numbers(case in cases(), seed: u64) {
        let data: Vec<i32> = numbers(case.len, seed).map(|n| n as i32 - (1 << 30)).collect();
        let groups = groups(&case, &data);
        let sums: Vec<i32> =
            groups.iter().map(|g| g.iter().fold(0i32, |a, &b| a.wrapping_add(b))).collect();
        prop_assert_eq!(reduced(&case, &data, Fold::Sum).data, sums);
        let products: Vec<i32> =
            groups.iter().map(|g| g.iter().fold(1i32, |a, &b| a.wrapping_mul(b))).collect();
        prop_assert_eq!(reduced(&case, &data, Fold::Product).data, products);
        let most: Vec<i32> = groups.iter().map(|g| *g.iter().max().unwrap()).collect();
        prop_assert_eq!(reduced(&case, &data, Fold::Max).data, most);
        let least: Vec<i32> = groups.iter().map(|g| *g.iter().min().unwrap()).collect();
        prop_assert_eq!(reduced(&case, &data, Fold::Min).data, least);
    }

    #[test]
    fn places(case in cases(), seed: u64) {
        // Few values, so that many are tied.
        let data: Vec<u8> = numbers(case.len, seed).map(|n| (n % 3) as u8).collect();
        let groups = groups(&case, &data);
        let first = |g: &Vec<u8>, of: u8| g.iter().position(|&x| x == of).unwrap() as i64;
        let most: Vec<i64> = groups.iter().map(|g| first(g, *g.iter().max().unwrap())).collect();
        prop_assert_eq!(placed(&case, &data, Extremum::Max), most);
        let least: Vec<i64> = groups.iter().map(|g| first(g, *g.iter().min().unwrap())).collect();
        prop_assert_eq!(placed(&case, &data, Extremum::Min), least);
    }

    #[test]
    fn places_of_floats(case in cases(), seed: u64) {
        let value = |n: u64| match n % 40 { 0 => f32::NAN, 1 => f32::NEG_INFINITY, n => n as f32 };
        let data: Vec<f32> = numbers(case.len, seed).map(value).collect();
        let groups = groups(&case, &data);
        let most = |g: &Vec<f32>| {
            let nan = g.iter().position(|x| x.is_nan());
            let top = g.iter().copied().fold(f32::NEG_INFINITY, f32::max);
            nan.or_else(|| g.iter().position(|&x| x == top)).unwrap() as i64
        };
        let expected: Vec<i64> = groups.iter().map(most).collect();
        prop_assert_eq!(placed(&case, &data, Extremum::Max), expected);
        let max = |g: &Vec<f32>| {
            let nan = g.iter().any(|x| x.is_nan());
            if nan { f32::NAN } else { g.iter().copied().fold(f32::NEG_INFINITY, f32::max) }
        };
        let expected: Vec<f32> = groups.iter().map(max).collect();
        prop_assert_eq!(format!("{:?}", reduced(&case, &data, Fold::Max).data), format!("{expected:?}"));
    }

    #[test]
    fn truths(case in cases(), seed: u64) {
        let data: Vec<bool> = numbers(case.len, seed).map(|n| n % 20 != 0).collect();
        let groups = groups(&case, &data);
        let all: Vec<bool> = groups.iter().map(|g| g.iter().all(|&x| x)).collect();
        prop_assert_eq!(reduced(&case, &data, Fold::And).data, all);
        let any: Vec<bool> = groups.iter().map(|g| g.iter().any(|&x| !x)).collect();
        let data: Vec<bool> = data.iter().map(|x| !x).collect();
        prop_assert_eq!(reduced(&case, &data, Fold::Or).data, any);
    }

    #[test]
    fn floats(case in cases(), seed: u64) {
        let data: Vec<f32> = numbers(case.len, seed).map(|n| n as f32 / 1e9 - 1.0).collect();
        let groups = groups(&case, &data);
        let sums = reduced(&case, &data, Fold::Sum);
        prop_assert_eq!(groups.len(), sums.data.len());
        for (g, &sum) in groups.iter().zip(&sums.data) {
            let exact: f64 = g.iter().map(|&x| f64::from(x)).sum();
            let size = g.iter().map(|&x| f64::from(x).abs()).sum::<f64>().max(1e-3);
            // 8 terms are added, then 16 of their sums, then 16 of those, and so on: 40 roundings
            // for 2048 terms, 16 more for 16 times as many.
            prop_assert!((f64::from(sum) - exact).abs() < 56.0 * 2f64.powi(-24) * size);
        }
    }
}

/// Rows that are reduced before they are added to those of other indices: several parts, pieces of
/// them, and other axes between and around.
#[test]
#[cfg_attr(miri, ignore = "takes hours")]
fn rows_are_added_over_other_axes() {
    for (dims, axes) in [
        (vec![7, 500, 300], vec![0, 2]),
        (vec![3, 5, 20, 700], vec![0, 3]),
        (vec![3, 4, 5, 20, 128], vec![0, 2, 4]),
        (vec![2, 3, 2048], vec![0, 2]),
    ] {
        let len: usize = dims.iter().product();
        let mut strides = vec![1isize; dims.len()];
        for i in (1..dims.len()).rev() {
            strides[i - 1] = strides[i] * dims[i] as isize;
        }
        let case = Case { dims, strides, offset: 0, len, axes };
        let data: Vec<f32> = numbers(len, 5).map(|n| (n % 30) as f32).collect();
        let groups = groups(&case, &data);
        // Whole numbers, whose sums are exact.
        let sums: Vec<f32> = groups.iter().map(|g| g.iter().sum()).collect();
        assert_eq!(reduced(&case, &data, Fold::Sum).data, sums);
        let top = |g: &Vec<f32>| g.iter().copied().fold(0.0, f32::max);
        let tops: Vec<f32> = groups.iter().map(top).collect();
        assert_eq!(reduced(&case, &data, Fold::Max).data, tops);
        let short: Vec<bf16> = data.iter().map(|&x| bf16::from_f32(x)).collect();
        let found: Vec<f32> =
            reduced(&case, &short, Fold::Max).data.iter().map(|x| x.to_f32()).collect();
        assert_eq!(found, tops);
        let first = |g: &Vec<f32>| g.iter().position(|&x| x == top(g)).expect("a place") as i64;
        assert_eq!(
            placed(&case, &data, Extremum::Max),
            groups.iter().map(first).collect::<Vec<_>>()
        );
    }
}

/// Sums of many terms lose no more digits than sums by halves do.
#[test]
#[cfg_attr(miri, ignore = "takes hours")]
fn long_sums_are_accurate() {
    let data = vec![0.1f32; 1 << 24];
    for dims in [vec![1 << 24], vec![1 << 20, 16], vec![16, 1 << 20], vec![1 << 12, 16, 256]] {
        let view = View::row_major(&data, &dims).expect("a view");
        let axes = (0..dims.len()).filter(|&axis| dims[axis] != 16);
        let count: usize = axes.clone().map(|axis| dims[axis]).product();
        let axes: Vec<i64> = axes.map(|axis| axis as i64).collect();
        let sums = reduce(&view, &axes, Fold::Sum, &Serial).expect("sums");
        let exact = f64::from(0.1f32) * count as f64;
        for sum in sums.data {
            assert!((f64::from(sum) / exact - 1.0).abs() < 3e-7, "{sum} is not {exact}");
        }
    }
}

/// Columns so long that several pieces reduce each, in accumulators that one piece takes over from
/// another.
#[test]
#[cfg_attr(miri, ignore = "takes hours")]
fn pieces_of_several_units_are_merged() {
    const DIMS: [usize; 2] = [301, 4500];
    let value = |n: usize| (n * 2_654_435_761 % 1_000_003) as i32;
    let data: Vec<i32> = (0..DIMS[0] * DIMS[1]).map(value).collect();
    let view = View::row_major(&data, &DIMS).expect("a view");
    let column = |n: usize| data.iter().skip(n).step_by(DIMS[1]);
    let sums: Vec<i32> = (0..DIMS[1]).map(|n| column(n).sum()).collect();
    let floats: Vec<f32> = data.iter().map(|&x| x as f32 / 7.0).collect();
    let float_view = View::row_major(&floats, &DIMS).expect("a view");
    let serial = reduce(&float_view, &[0], Fold::Sum, &Serial).expect("sums").data;
    for threads in [1, 2, 5] {
        let pool = Threads(threads);
        assert_eq!(reduce(&view, &[0], Fold::Sum, &pool).expect("sums").data, sums);
        let places = place::<_, i64>(&view, &[0], Extremum::Max, &pool).expect("places").data;
        for (n, &place) in places.iter().enumerate() {
            let most = column(n).max().expect("an element");
            let first = column(n).position(|x| x == most).expect("a place");
            assert_eq!(place, first as i64, "column {n}");
        }
        let others = reduce(&float_view, &[0], Fold::Sum, &pool).expect("sums").data;
        assert!(serial.iter().zip(&others).all(|(a, b)| a.to_bits() == b.to_bits()));
    }
}

#[test]
fn what_has_no_value_is_an_error() {
    let data = [1.0f32; 6];
    let view = View::row_major(&data, &[2, 3]).expect("a view");
    let error = |axes: &[i64]| reduce(&view, axes, Fold::Sum, &Serial).expect_err("an error");
    assert_eq!(error(&[2]), Error::AxisOutOfRange { axis: 2, rank: 2 });
    assert_eq!(error(&[-3]), Error::AxisOutOfRange { axis: -3, rank: 2 });
    assert_eq!(error(&[1, -1]), Error::AxisRepeated(1));
    assert_eq!(error(&[i64::MIN]), Error::AxisOutOfRange { axis: i64::MIN, rank: 2 });
    let empty = View::row_major(&data, &[2, 0]).expect("a view");
    assert_eq!(reduce(&empty, &[1], Fold::Max, &Serial), Err(Error::Empty));
    let place_of = |view, axes: &[i64]| place::<f32, i32>(view, axes, Extremum::Max, &Serial);
    assert_eq!(place_of(&empty, &[1]), Err(Error::Empty));
    let no_rows = View::row_major(&data, &[0, 0]).expect("a view");
    assert_eq!(reduce(&no_rows, &[1], Fold::Max, &Serial), Err(Error::Empty));
    // As in NumPy: no results, or sums of nothing.
    assert_eq!(reduce(&empty, &[1], Fold::Sum, &Serial).expect("zeros").data, [0.0, 0.0]);
    assert_eq!(reduce(&empty, &[0], Fold::Max, &Serial).expect("no results").dims, [0]);
    let no_truths = View::row_major(&[] as &[bool], &[2, 0]).expect("a view");
    for (fold, of_none) in [(Fold::And, true), (Fold::Or, false)] {
        assert_eq!(reduce(&no_truths, &[1], fold, &Serial).expect("truths").data, [of_none; 2]);
    }
    let scalar = View::row_major(&data, &[]).expect("a view");
    assert_eq!(reduce(&scalar, &[], Fold::Sum, &Serial).expect("itself").data, [1.0]);
    assert_eq!(place_of(&scalar, &[]).expect("place 0").data, [0]);
    assert_eq!(reduce(&view, &[0], Fold::And, &Serial), Err(Error::NoSuchFold(Fold::And)));
    let truths = View::row_major(&[true; 6], &[2, 3]).expect("a view");
    assert_eq!(reduce(&truths, &[0], Fold::Sum, &Serial), Err(Error::NoSuchFold(Fold::Sum)));
}

/// Views may have far more elements than memory, if they are the same ones.
#[test]
fn results_that_memory_cannot_hold_are_an_error() {
    let data = [1.0f32];
    for len in [1 << 45, 1 << 61] {
        let view = View::new(&data, 0, &[len], &[0]).expect("a view");
        assert_eq!(reduce(&view, &[], Fold::Sum, &Serial), Err(Error::TooLarge));
        let empty = View::row_major(&data, &[0, len]).expect("a view");
        assert_eq!(reduce(&empty, &[0], Fold::Sum, &Serial), Err(Error::TooLarge));
    }
}

#[test]
fn results_go_where_the_caller_wants_them() {
    let data = [1.0f32, 5.0, 3.0, -2.0, 7.0, 7.0];
    let view = View::row_major(&data, &[2, 3]).expect("a view");
    let mut out = [0.0; 5];
    reduce_into(&view, &[1], Fold::Sum, &mut out[1..3], &Threads(2)).expect("sums of rows");
    assert_eq!(out, [0.0, 9.0, 12.0, 0.0, 0.0]);
    for len in [0, 1, 3] {
        let error = reduce_into(&view, &[1], Fold::Sum, &mut out[..len], &Serial);
        assert_eq!(error, Err(Error::OutputOfOtherLength { given: len, results: 2 }));
    }
    let empty = View::row_major(&data, &[2, 0]).expect("a view");
    let mut places = [7i64; 3];
    place_into(&view, &[1], Extremum::Max, &mut places[..2], &Serial).expect("places of rows");
    assert_eq!(places, [1, 1, 7]);
    let error = place_into(&view, &[1], Extremum::Max, &mut places, &Serial);
    assert_eq!(error, Err(Error::OutputOfOtherLength { given: 3, results: 2 }));
    assert_eq!(reduce_into(&empty, &[1], Fold::Max, &mut out[..2], &Serial), Err(Error::Empty));
    reduce_into(&empty, &[1], Fold::Sum, &mut out[1..3], &Serial).expect("sums of nothing");
    assert_eq!(out, [0.0; 5]);
}

#[test]
fn views_stay_within_their_data() {
    let data = [0u8; 10];
    let outside = Error::OutOfBounds(10);
    assert_eq!(View::row_major(&data, &[3, 4]).map(drop), Err(outside.clone()));
    assert_eq!(View::new(&data, 0, &[2], &[-1]).map(drop), Err(outside.clone()));
    assert_eq!(View::new(&data, 10, &[1], &[1]).map(drop), Err(outside.clone()));
    assert_eq!(View::new(&data, 0, &[2], &[isize::MAX]).map(drop), Err(outside));
    assert_eq!(View::new(&data, 0, &[usize::MAX, 2], &[0, 0]).map(drop), Err(Error::TooLarge));
    assert_eq!(View::new(&data, 0, &[usize::MAX, 0], &[0, 0]).map(drop), Err(Error::TooLarge));
    let rank = Error::StridesOfOtherRank { strides: 0, dims: 1 };
    assert_eq!(View::new(&data, 0, &[2], &[]).map(drop), Err(rank));
    assert!(View::new(&data, 99, &[0], &[1]).is_ok(), "no element, no bounds");
    assert!(View::new(&data, 9, &[5, 2], &[-2, -1]).is_ok());
}

/// A pool that leaves tasks out, repeats others at the same time, and names some that there are not.
struct Careless;

impl Pool for Careless {
    fn run(&self, count: usize, task: &(dyn Fn(usize) + Sync)) {
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| (0..count).step_by(2).for_each(task));
            }
        });
        task(count);
        task(usize::MAX);
    }
}

#[test]
fn no_pool_leaves_results_unwritten() {
    let data: Vec<i32> = (0..1 << 20).collect();
    // Tasks of several units, and pieces of one.
    for dims in [[4096, 256], [8, 131_072]] {
        let view = View::row_major(&data, &dims).expect("a view");
        for axis in [0, 1] {
            let expected = reduce(&view, &[axis], Fold::Sum, &Serial).expect("sums");
            assert_eq!(reduce(&view, &[axis], Fold::Sum, &Careless).expect("sums"), expected);
        }
    }
}
