//! Results have the same bits with every set of instructions that this CPU has.

use std::fmt::Debug;

use half::{bf16, f16};
use tilewright_native::fused::Values;
use tilewright_native::norms::{Norm, softmax, softmax_vjp};
use tilewright_native::{
    Element, Error, Extremum, Fold, Number, Serial, View, at_each_level, place, reduce,
};

/// Calls a function with each set of instructions. All CPUs that have loops in vectors of their own have
/// more than one.
fn at_all<R>(f: impl FnMut() -> Result<R, Error>) -> Vec<R> {
    let found: Vec<R> = at_each_level(f).into_iter().map(|one| one.expect("a result")).collect();
    // Miri has no more than the instructions that it was told of.
    assert!(found.len() > 1 || cfg!(miri) || std::env::var_os("TILEWRIGHT_ONE_LEVEL").is_some());
    found
}

/// An element whose results are compared: by bits, but for NaN and the sign of an extremum of zeros.
trait Bits: Element + Debug {
    fn bits(self) -> u64;
}

macro_rules! bits {
    ($($type:ty, |$x:ident| $bits:expr;)*) => { $(
        impl Bits for $type {
            fn bits(self) -> u64 { let $x = self; $bits }
        }
    )* };
}

fn of_float(x: f64) -> u64 {
    if x.is_nan() { f64::NAN } else { x }.to_bits()
}

bits! {
    f32, |x| of_float(x.into());
    f64, |x| of_float(x);
    bf16, |x| of_float(x.into());
    f16, |x| of_float(x.into());
    i32, |x| x.cast_unsigned().into();
    u32, |x| x.into();
    i64, |x| x.cast_unsigned();
    u64, |x| x;
    u8, |x| x.into();
}

fn folds_agree<T: Bits>(view: &View<'_, T>, axes: &[i64], folds: &[Fold]) {
    for &fold in folds {
        let all = at_all(|| reduce(view, axes, fold, &Serial));
        let is_extremum = matches!(fold, Fold::Max | Fold::Min);
        let bits =
            |x: &T| if is_extremum && x.bits() == (-0.0f64).to_bits() { 0 } else { x.bits() };
        let bits = |at: usize| all[at].data.iter().map(bits).collect::<Vec<u64>>();
        for level in 1..all.len() {
            assert_eq!(bits(0), bits(level), "{fold:?} of {:?} along {axes:?}", view.dims());
        }
    }
}

fn places_agree<T: Number>(view: &View<'_, T>, axes: &[i64]) {
    for of in [Extremum::Max, Extremum::Min] {
        let all = at_all(|| place::<T, i32>(view, axes, of, &Serial));
        for level in 1..all.len() {
            assert_eq!(all[0], all[level], "{of:?} of {:?} along {axes:?}", view.dims());
        }
    }
}

const ALL: [Fold; 4] = [Fold::Sum, Fold::Product, Fold::Max, Fold::Min];

/// All reductions of an array.
fn agree<T: Bits + Number>(data: &[T], dims: &[usize], axes: &[i64]) {
    let view = View::row_major(data, dims).expect("a view");
    folds_agree(&view, axes, &ALL);
    places_agree(&view, axes);
}

/// Where the elements of a test come from.
#[derive(Clone, Copy)]
enum Draw {
    /// Numbers of all sizes, with zeros of both signs, infinities, ties and NaN.
    Special,
    /// Finite floats whose sums depend on the order of additions, and nearly cancel: what is left are
    /// roundings, which a sum of 16 bits shows, too.
    Rounding,
}

/// The `n`th element of rows of `len` elements.
fn float(draw: Draw, n: usize, len: usize) -> f32 {
    let (row, at) = (n / len * len, n % len);
    let number = |at: usize| {
        let n = row + at;
        ((n % 2003) as f32 - 900.0) / 61.7 * [1.0, 4e-4, 37.0][n % 3]
    };
    match draw {
        Draw::Special => special(n * 7 + len),
        Draw::Rounding if at < len / 2 => number(at),
        // The elements of the first half, from the last one back.
        Draw::Rounding => -number(len - 1 - at),
    }
}

fn special(n: usize) -> f32 {
    match n % 97 {
        0 => -0.0,
        1 => 0.0,
        2 if n.is_multiple_of(5) => f32::INFINITY,
        3 if n.is_multiple_of(5) => f32::NEG_INFINITY,
        4 if n.is_multiple_of(7) => f32::NAN,
        5 if n.is_multiple_of(7) => -f32::NAN,
        _ => (n % 2003) as f32 / 64.0 - 9.0,
    }
}

fn whole(n: usize) -> u32 {
    (n as u32).wrapping_mul(n as u32) % 4001
}

/// Arrays of all types that have loops in vectors, along one of two axes.
fn all_types_agree(dims: [usize; 2], axis: i64) {
    let count = dims[0] * dims[1];
    // Along which numbers cancel.
    let len = dims[axis as usize];
    let at = |n: usize| if axis == 1 { n } else { n % dims[1] * len + n / dims[1] };
    for draw in [Draw::Special, Draw::Rounding] {
        let floats: Vec<f32> = (0..count).map(|n| float(draw, at(n), len)).collect();
        agree(&floats, &dims, &[axis]);
        let wide: Vec<f64> = floats.iter().map(|&x| f64::from(x) / 3.0).collect();
        agree(&wide, &dims, &[axis]);
        let brain: Vec<bf16> = floats.iter().map(|&x| bf16::from_f32(x)).collect();
        agree(&brain, &dims, &[axis]);
        // Miri does not know how the crate `half` converts them.
        if !cfg!(miri) {
            let half: Vec<f16> = floats.iter().map(|&x| f16::from_f32(x)).collect();
            agree(&half, &dims, &[axis]);
        }
    }
    let signed = |n: usize| i64::from(whole(n)) - 2000;
    agree(&(0..count).map(|n| signed(n) as i32).collect::<Vec<_>>(), &dims, &[axis]);
    agree(&(0..count).map(signed).collect::<Vec<_>>(), &dims, &[axis]);
    agree(&(0..count).map(whole).collect::<Vec<_>>(), &dims, &[axis]);
    agree(&(0..count).map(|n| whole(n) as u8).collect::<Vec<_>>(), &dims, &[axis]);
    agree(&(0..count).map(|n| u64::from(whole(n)) << 50).collect::<Vec<_>>(), &dims, &[axis]);
}

#[test]
fn rows_of_any_length() {
    let few = |len: &usize| !cfg!(miri) || [2, 3, 4, 5, 7, 8, 11, 16, 23, 65, 513].contains(len);
    let lengths = (2..40).chain([63, 64, 65, 129, 500, 512, 513, 600, 1024, 1999]).filter(few);
    for (len, count) in lengths.flat_map(|len| [(len, 35), (len, 5)]) {
        all_types_agree([count, len], 1);
    }
}

#[test]
fn blocks_of_any_width() {
    let few = |width: &usize| !cfg!(miri) || [1, 7, 16, 41, 304].contains(width);
    // Blocks of 304 and 1008 elements lie at distances of whole lines of a cache.
    let widths = (1..70).chain([129, 256, 300, 304, 1000, 1008]).filter(few);
    for (width, count) in widths.flat_map(|width| [(width, 2), (width, 7), (width, 27)]) {
        all_types_agree([count, width], 0);
    }
}

/// Dims and axes of all kinds of plans.
const PLANS: &[(&[usize], &[i64])] = &[
    (&[70_001], &[0]),
    (&[3, 40_000], &[1]),
    (&[300, 3], &[1]),
    (&[301, 7], &[1]),
    (&[65, 40], &[1]),
    (&[37, 700], &[1]),
    (&[5, 3000], &[1]),
    (&[300, 7], &[0]),
    (&[37, 700], &[0]),
    (&[2000, 5], &[0]),
    (&[4, 9, 8, 6, 5], &[1, 2, 4]),
    (&[4, 9, 8, 6, 5], &[1, 3]),
    (&[6, 50, 70], &[0, 2]),
    (&[6, 50, 70], &[1]),
    (&[6, 50, 170], &[0, 2]),
];

fn value(n: usize) -> f32 {
    ((n * 2_654_435_761) % 10_007) as f32 / 77.0 - 60.0
}

#[test]
#[cfg_attr(miri, ignore = "takes hours")]
fn plans_of_all_kinds() {
    for &(dims, axes) in PLANS {
        let floats: Vec<f32> = (0..dims.iter().product()).map(value).collect();
        agree(&floats, dims, axes);
        agree(&floats.iter().map(|&x| f64::from(x) / 3.0).collect::<Vec<_>>(), dims, axes);
        agree(&floats.iter().map(|&x| f16::from_f32(x)).collect::<Vec<_>>(), dims, axes);
        agree(&floats.iter().map(|&x| bf16::from_f32(x)).collect::<Vec<_>>(), dims, axes);
        agree(&floats.iter().map(|&x| x as i32).collect::<Vec<_>>(), dims, axes);
        agree(&floats.iter().map(|&x| x as u8).collect::<Vec<_>>(), dims, axes);
    }
}

#[test]
#[cfg_attr(miri, ignore = "takes hours")]
fn norms() {
    for (dims, norm, parameters) in [
        ([40, 300, 1], Norm::layer(2, 1e-5), None),
        ([5, 3000, 1], Norm::layer(2, 1e-5), None),
        ([300, 20, 1], Norm::rms(2, 1e-5), None),
        ([3, 16, 700], Norm::group(1, 4, 1e-5), Some(16)),
        ([3, 700, 16], Norm::group(2, 4, 1e-5), Some(16)),
        ([3, 700, 16], Norm::batch(2, 1e-5), Some(16)),
    ] {
        let x: Vec<f32> = (0..dims.iter().product()).map(value).collect();
        let scale: Vec<f32> = (0..parameters.unwrap_or(0)).map(value).collect();
        let scale = parameters.map(|len| View::row_major(&scale, &[len]).expect("a view").into());
        let x = View::row_major(&x, &dims).expect("a view").into();
        let all = at_all(|| {
            let forward = norm.forward(&x, scale.as_ref(), scale.as_ref(), &Serial)?;
            let back = norm.vjp(&x, &x, scale.as_ref(), &Serial)?;
            let soft = softmax(&x, 1, &Serial)?;
            let soft_back = softmax_vjp(&x, &x, 1, &Serial)?;
            Ok([forward.y, forward.variance, back.x, back.scale, back.bias, soft, soft_back])
        });
        let bits = |values: &Values| -> Vec<u32> {
            match values {
                Values::F32(data) => data.iter().map(|x| x.to_bits()).collect(),
                other => panic!("{other:?}"),
            }
        };
        for other in &all[1..] {
            for (a, b) in all[0].iter().zip(other) {
                assert_eq!(bits(&a.values), bits(&b.values), "{norm:?} of {dims:?}");
            }
        }
    }
}
