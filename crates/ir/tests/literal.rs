//! Constant values.
use std::hash::{BuildHasher as _, BuildHasherDefault, DefaultHasher};
use std::time::Instant;

use crate::common::{dims, shape};
use half::{bf16, f16};
use num_complex::Complex;
use tilewright_ir::{ArrayLiteral, Data, ElementType, Literal, LiteralError, Native};

fn hash(value: &impl std::hash::Hash) -> u64 {
    BuildHasherDefault::<DefaultHasher>::default().hash_one(value)
}

/// Equal ones hash alike; all are told apart that should be.
#[track_caller]
fn distinct<T: Native>(element_type: ElementType, values: &[T]) {
    let scalar = |v: T| Literal::scalar(element_type, v).unwrap();
    for (i, &a) in values.iter().enumerate() {
        assert_eq!(scalar(a), scalar(a));
        assert_eq!(hash(&scalar(a)), hash(&scalar(a)));
        for &b in &values[..i] {
            assert_ne!(scalar(a), scalar(b), "{a:?} {b:?}");
        }
    }
}

#[test]
fn floats_are_told_apart_by_their_bits() {
    let nan = |payload: u32| f32::from_bits(0x7fc0_0000 | payload);
    distinct(ElementType::F32, &[0.0, -0.0, 1.0, nan(0), nan(1), -nan(0), f32::INFINITY]);
    let nan = |payload: u64| f64::from_bits(0x7ff8_0000_0000_0000 | payload);
    distinct(ElementType::F64, &[0.0, -0.0, nan(0), nan(1), nan(1 << 40)]);
    distinct(ElementType::F16, &[f16::ZERO, f16::NEG_ZERO, f16::NAN, f16::from_bits(0x7e01)]);
    distinct(ElementType::BF16, &[bf16::ZERO, bf16::NEG_ZERO, bf16::NAN, bf16::from_bits(0x7fc1)]);
    let c = Complex::<f32>::new;
    distinct(ElementType::C64, &[c(0.0, 0.0), c(-0.0, 0.0), c(0.0, -0.0), c(f32::NAN, 0.0)]);
    let c = Complex::<f64>::new;
    distinct(ElementType::C128, &[c(0.0, 0.0), c(-0.0, 0.0), c(0.0, -0.0), c(0.0, f64::NAN)]);
    distinct(ElementType::S64, &[0, -1, i64::MIN, i64::MAX]);
    distinct(ElementType::U64, &[0, u64::MAX]);
    distinct(ElementType::Pred, &[false, true]);
}

#[test]
fn equal_bits_of_other_types_or_dims_are_other_values() {
    let of = |element_type, d: &[i64], data| {
        ArrayLiteral::new(element_type, d.iter().copied(), data).unwrap()
    };
    let ones = || Data::U8(vec![1; 6]);
    assert_ne!(of(ElementType::U8, &[6], ones()), of(ElementType::U4, &[6], ones()));
    assert_ne!(of(ElementType::U8, &[6], ones()), of(ElementType::U8, &[2, 3], ones()));
    assert_ne!(of(ElementType::U8, &[6], ones()), of(ElementType::S8, &[6], Data::S8(vec![1; 6])));
    assert_ne!(Data::U16(vec![0; 4]), Data::BF16(vec![bf16::ZERO; 4]), "other storage");
    assert_ne!(Data::U16(vec![0; 4]), Data::U16(vec![0; 5]));
    // Empty arrays differ by their dims alone.
    let none = || Data::F32(Vec::new());
    assert_ne!(of(ElementType::F32, &[0, 2], none()), of(ElementType::F32, &[2, 0], none()));
}

#[test]
fn what_does_not_fill_the_dims_is_refused() {
    let new = |element_type, d: &[i64], data| {
        ArrayLiteral::new(element_type, d.iter().copied(), data).map(|_| ())
    };
    let six = || Data::F32(vec![1.0; 6]);
    let count = |d: &[i64]| Err(LiteralError::Count { elements: 6, dims: dims(d) });
    assert_eq!(new(ElementType::F32, &[2, 3], six()), Ok(()));
    assert_eq!(new(ElementType::F32, &[], six()), count(&[]));
    assert_eq!(new(ElementType::F32, &[7], six()), count(&[7]));
    assert_eq!(new(ElementType::F32, &[0], six()), count(&[0]));
    assert_eq!(new(ElementType::F32, &[-6], six()), Err(LiteralError::NotStatic));
    assert_eq!(new(ElementType::F32, &[i64::MIN], six()), Err(LiteralError::NotStatic));
    assert_eq!(new(ElementType::F32, &[1 << 40, 1 << 40], six()), Err(LiteralError::NotStatic));
    assert_eq!(new(ElementType::F64, &[6], six()), Err(LiteralError::Storage(ElementType::F64)));
    assert_eq!(new(ElementType::F32, &[0, i64::MAX], Data::F32(vec![])), Ok(()));
    let error = new(ElementType::S32, &[6], six()).unwrap_err();
    assert_eq!(error.to_string(), "the data given is not stored as s32 is");
    assert_eq!(count(&[7]).unwrap_err().to_string(), "6 elements do not fill the dims [7]");
    let scalar = Literal::scalar(ElementType::F32, 1.0f64);
    assert_eq!(scalar, Err(LiteralError::Storage(ElementType::F32)));
}

#[test]
fn every_type_has_one_storage() {
    for &element_type in ElementType::ALL {
        let zeros = Data::zeros(element_type, 3);
        assert_eq!(zeros.len(), 3);
        assert!(zeros.stores(element_type), "{element_type}");
        let literal = ArrayLiteral::new(element_type, [3], zeros).unwrap();
        assert_eq!(literal.element_type(), element_type);
        assert_eq!(literal.shape().to_string(), format!("{element_type}[3]"));
        let others = ElementType::ALL.iter().filter(|&&e| literal.data().stores(e)).count();
        let expected = match element_type.bits() {
            _ if element_type == ElementType::Pred => 1,
            1 | 2 | 4 | 6 | 8
                if element_type.class() == tilewright_ir::element::NumberClass::Signed =>
            {
                4
            }
            1 | 2 | 4 | 6 | 8 => 15,
            _ => 1,
        };
        assert_eq!(others, expected, "{element_type}");
    }
    assert!(Data::zeros(ElementType::F32, 0).is_empty());
}

#[test]
fn slices_gather_and_reshape() {
    let data = Data::S32(vec![10, 11, 12, 13, 14, 15]);
    assert_eq!(data.as_slice::<i32>().unwrap()[1], 11);
    assert_eq!(data.as_slice::<u32>(), None);
    assert_eq!(data.gather([5, 0, 0, 99].into_iter()), Data::S32(vec![15, 10, 10]));
    let literal = ArrayLiteral::new(ElementType::S32, [6], data).unwrap();
    assert_eq!((literal.len(), literal.is_empty()), (6, false));
    let wide = literal.clone().reshape([2, 3]).unwrap();
    assert_eq!(wide.dims(), [2, 3]);
    assert_eq!(wide.as_slice::<i32>(), literal.as_slice());
    let error = LiteralError::Count { elements: 6, dims: dims(&[4]) };
    assert_eq!(literal.clone().reshape([4]), Err(error));
    assert_eq!(literal.into_data().len(), 6);
}

#[test]
fn scalars_as_f64() {
    let f = |literal: Literal| literal.as_array().unwrap().scalar_as_f64();
    let scalar = |t, v: f32| Literal::scalar(t, v).unwrap();
    assert_eq!(f(scalar(ElementType::F32, 2.5)), Some(2.5));
    assert_eq!(f(Literal::scalar(ElementType::Pred, true).unwrap()), Some(1.0));
    assert_eq!(f(Literal::scalar(ElementType::S4, -3i8).unwrap()), Some(-3.0));
    assert_eq!(
        f(Literal::scalar(ElementType::U64, u64::MAX).unwrap()),
        Some(18446744073709551615.0)
    );
    assert_eq!(f(Literal::scalar(ElementType::BF16, bf16::from_f32(1.5)).unwrap()), Some(1.5));
    assert_eq!(f(Literal::scalar(ElementType::U8, 7u8).unwrap()), Some(7.0));
    assert_eq!(f(Literal::scalar(ElementType::F8E5M2, 7u8).unwrap()), None, "bits, not a number");
    assert_eq!(f(Literal::scalar(ElementType::C64, Complex::new(1f32, 0.0)).unwrap()), None);
    let one = ArrayLiteral::new(ElementType::F32, [1, 1], Data::F32(vec![4.0])).unwrap();
    assert_eq!(one.scalar_as_f64(), Some(4.0));
    let two = ArrayLiteral::new(ElementType::F32, [2], Data::F32(vec![4.0; 2])).unwrap();
    assert_eq!(two.scalar_as_f64(), None);
}

#[test]
fn tuples_and_what_the_text_left_out() {
    let one = Literal::scalar(ElementType::S32, 1i32).unwrap();
    let nested =
        Literal::Tuple(vec![one.clone(), Literal::Tuple(vec![Literal::Token]), one.clone()]);
    assert_eq!(nested.shape().to_string(), "(s32[], (token[]), s32[])");
    assert_eq!(nested.leaves(), [&one, &Literal::Token, &one]);
    assert_eq!(one.leaves(), [&one]);
    assert!(nested.as_array().is_none() && one.as_array().is_some());
    let elided = Literal::Elided(Box::new(shape("f32[1000]")));
    assert_eq!(elided.shape().to_string(), "f32[1000]");
    assert_eq!(elided.leaves().len(), 1);
    assert!(elided.as_array().is_none());
    assert_eq!(Literal::Token.shape().to_string(), "token[]");
}

#[test]
fn elements_are_compared_once_however_often_a_splat_is_asked_for() {
    let mut elements = vec![2i8; 1_000_000];
    for equal in [true, false] {
        let literal = ArrayLiteral::new(ElementType::S8, [1_000_000], Data::S8(elements.clone()));
        let literal = literal.expect("a literal");
        let start = Instant::now();
        assert_eq!(literal.splat().is_some(), equal);
        let first = start.elapsed();
        let start = Instant::now();
        assert!((0..1000).all(|_| literal.clone().splat().is_some() == equal));
        let others = start.elapsed();
        assert!(others < 100 * first, "{first:?}, then {others:?} for a thousand");
        // The cached answer is no part of the value.
        let other = ArrayLiteral::new(ElementType::S8, [1_000_000], Data::S8(elements.clone()));
        assert_eq!(literal, other.expect("a literal"));
        elements[500_000] = 3;
    }
}

#[test]
fn splats_are_the_same_in_every_place_to_the_bit() {
    let array = |element_type, data: Data| {
        let len = i64::try_from(data.len()).unwrap();
        ArrayLiteral::new(element_type, [len], data).unwrap()
    };
    let f32s = |values: &[f32]| array(ElementType::F32, Data::F32(values.to_vec()));
    let scalar = |x: f32| ArrayLiteral::new(ElementType::F32, [], Data::F32(vec![x])).unwrap();
    assert_eq!(f32s(&[2.0, 2.0, 2.0]).splat(), Some(scalar(2.0)));
    assert_eq!(f32s(&[f32::NAN, f32::NAN]).splat(), Some(scalar(f32::NAN)));
    assert_eq!(f32s(&[0.0, -0.0]).splat(), None, "two zeros");
    assert_eq!(f32s(&[1.0, 1.0, 2.0]).splat(), None);
    assert_eq!(f32s(&[]).splat(), None, "no number is in every place of nothing");
    assert_eq!(scalar(3.0).splat(), Some(scalar(3.0)));
    let pair = Complex::new(1f64, 2.0);
    let c128 = |values: Vec<Complex<f64>>| array(ElementType::C128, Data::C128(values));
    assert!(c128(vec![pair, pair]).splat().is_some());
    assert_eq!(c128(vec![pair, Complex::new(1.0, 3.0)]).splat(), None);
    assert_eq!(c128(vec![Complex::new(1.0, 2.0), Complex::new(2.0, 1.0)]).splat(), None);
}
