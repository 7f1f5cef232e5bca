//! Every conversion by way of another type, on every value of the types of up to 16 bits and on the
//! edges of the wider ones: if two conversions are merged into one, the values stay the same.

use crate::common::values::bit_difference;
use crate::common::{changes, module, optimized, passes};
use tilewright_interp::{Limits, evaluate};
use tilewright_ir::{ArrayLiteral, Data, ElementType, Literal};

/// As `x`, by way of `b`, as `c`.
fn by_way_of(a: ElementType, b: ElementType, c: ElementType, len: usize) -> String {
    format!(
        "HloModule m\nENTRY e {{\n  x = {a}[{len}] parameter(0)\n  y = {b}[{len}] convert(x)\n  \
         ROOT z = {c}[{len}] convert(y)\n}}\n"
    )
}

/// Returns all values of a small type; of larger types, those near powers of two.
fn values(element_type: ElementType) -> ArrayLiteral {
    let data = match Data::zeros(element_type, 0) {
        Data::Pred(_) => Data::Pred(vec![false, true]),
        Data::S8(_) => {
            let half = 1i16 << (element_type.bits() - 1);
            Data::S8((-half..half).map(|x| i8::try_from(x).expect("8 bits")).collect())
        }
        Data::U8(_) => {
            let all = 1u16 << element_type.bits();
            Data::U8((0..all).map(|x| u8::try_from(x).expect("8 bits")).collect())
        }
        Data::S16(_) => Data::S16((i16::MIN..=i16::MAX).collect()),
        Data::U16(_) => Data::U16((0..=u16::MAX).collect()),
        Data::F16(_) => Data::F16((0..=u16::MAX).map(half::f16::from_bits).collect()),
        Data::BF16(_) => Data::BF16((0..=u16::MAX).map(half::bf16::from_bits).collect()),
        Data::S32(_) => Data::S32(edges().iter().map(|&x| x as i32).collect()),
        Data::U32(_) => Data::U32(edges().iter().map(|&x| x as u32).collect()),
        Data::S64(_) => Data::S64(edges().iter().map(|&x| x as i64).collect()),
        Data::U64(_) => Data::U64(edges().iter().map(|&x| x as u64).collect()),
        Data::F32(_) => Data::F32(reals().iter().map(|&x| x as f32).collect()),
        Data::F64(_) => Data::F64(reals()),
        Data::C64(_) => {
            let part = reals().into_iter().map(|x| x as f32);
            Data::C64(part.map(|x| num_complex::Complex::new(x, -x)).collect())
        }
        Data::C128(_) => {
            Data::C128(reals().into_iter().map(|x| num_complex::Complex::new(x, -x)).collect())
        }
    };
    let len = i64::try_from(data.len()).expect("few");
    ArrayLiteral::new(element_type, [len], data).expect("an array")
}

/// Integers around powers of two, of both signs.
fn edges() -> Vec<i128> {
    let around = |power: u32| [-1i128, 0, 1, 3].map(|by| (1i128 << power) + by);
    let all: Vec<i128> = (0..64).flat_map(around).collect();
    all.iter().flat_map(|&x| [x, -x]).collect()
}

/// Returns numbers around powers of two, including halves between the neighbours of narrow types,
/// of both signs; zeros, infinities and NaN.
fn reals() -> Vec<f64> {
    let steps = [1.0, 1.5, 1.0 + 1.0 / 256.0, 1.0 + 3.0 / 512.0, 1.0 + 1.0 / 2048.0];
    let finer = [1.0 + f64::from(f32::EPSILON) * 0.5, 1.0 + f64::from(f32::EPSILON), 1.999_999_99];
    let around = |power: i32| {
        let scale = 2f64.powi(power);
        steps.into_iter().chain(finer).map(move |step| step * scale)
    };
    let all: Vec<f64> = (-150..130).flat_map(around).chain([0.0, f64::INFINITY]).collect();
    let mut both: Vec<f64> = all.iter().flat_map(|&x| [x, -x]).collect();
    both.push(f64::NAN);
    both
}

#[test]
fn merged_conversions_yield_the_same() {
    let options = passes(&["convert", "dce"], "tpu-like", true);
    let mut merged = 0;
    for &a in ElementType::ALL {
        let values = values(a);
        let input = [Literal::Array(values.clone())];
        for &b in ElementType::ALL {
            for &c in ElementType::ALL {
                let before = module(&by_way_of(a, b, c, values.len()));
                let after = optimized(&before, &options);
                if changes(&after, "convert") == 0 {
                    continue;
                }
                merged += 1;
                let result = |m| evaluate(m, &input, &Limits::default()).expect("conversions");
                let apart = bit_difference(&result(&before), &result(&after.module));
                assert_eq!(apart, None, "{a} to {b} to {c}");
            }
        }
    }
    // More than those by way of one type twice.
    let types = ElementType::ALL.len();
    assert!(merged > 2 * types * types, "{merged}");
}
