//! Constants come back from text with the same bits.
use half::{bf16, f16};
use num_complex::Complex;
use proptest::prelude::*;
use tilewright_ir::{ArrayLiteral, Builder, Data, ElementType, Literal};
use tilewright_text::{PrintOptions, parse, print};

fn assert_comes_back(literal: Literal) {
    let mut b = Builder::new("m");
    let constant = b.constant(literal.clone()).unwrap();
    let module = b.finish(constant).unwrap();
    let text = print(&module, &PrintOptions::new()).unwrap();
    let parsed = match parse(&text) {
        Ok(parsed) => parsed.module,
        Err(errors) => panic!("{errors}"),
    };
    let entry = parsed.entry().unwrap();
    let read = parsed.constant(parsed.computation(entry).root().unwrap()).unwrap();
    if *read != literal {
        let bits = first_difference(read, &literal);
        panic!("{:?}: {bits}", literal.as_array().map(ArrayLiteral::element_type));
    }
}

fn first_difference(read: &Literal, wanted: &Literal) -> String {
    let elements = |literal: &Literal| -> Vec<String> {
        let text = format!("{:?}", literal.as_array().map(ArrayLiteral::data));
        text.split(',').map(str::to_owned).collect()
    };
    let (read, wanted) = (elements(read), elements(wanted));
    let differs = read.iter().zip(&wanted).position(|(read, wanted)| read != wanted);
    match differs {
        Some(at) => format!("element {at}: read {}, wanted {}", read[at], wanted[at]),
        None => "bits differ that print alike".into(),
    }
}

fn vector(element_type: ElementType, data: Data) -> Literal {
    let len = i64::try_from(data.len()).unwrap();
    ArrayLiteral::new(element_type, [len], data).unwrap().into()
}

#[test]
fn all_patterns_of_f16_and_bf16() {
    let all = 0..=u16::MAX;
    let data = Data::F16(all.clone().map(f16::from_bits).collect());
    assert_comes_back(vector(ElementType::F16, data));
    let data = Data::BF16(all.map(bf16::from_bits).collect());
    assert_comes_back(vector(ElementType::BF16, data));
}

/// XLA reads all of them back from our text (checked with jaxlib 0.10.2).
#[test]
fn all_patterns_of_the_small_floats() {
    let small = |t: &&ElementType| t.is_float() && t.bits() <= 8;
    for &element_type in ElementType::ALL.iter().filter(small) {
        let last = u8::try_from((1u32 << element_type.bits()) - 1).unwrap();
        assert_comes_back(vector(element_type, Data::U8((0..=last).collect())));
    }
}

/// Every exponent with telling mantissas, either sign: zeros, subnormals,
/// infinities and NaNs of several payloads among them.
#[test]
fn telling_patterns_of_f32_and_f64() {
    let mantissas = [0u64, 1, 2, 1 << 50, 1 << 51, (1 << 51) | 1, (1 << 52) - 1];
    let mut singles = Vec::new();
    for sign in [0u32, 1] {
        for exponent in 0..=255u32 {
            for mantissa in [0, 1, 2, 1 << 21, 1 << 22, (1 << 22) | 1, (1 << 23) - 1] {
                singles.push(f32::from_bits(sign << 31 | exponent << 23 | mantissa));
            }
        }
    }
    let mut doubles = Vec::new();
    for sign in [0u64, 1] {
        for exponent in 0..=2047u64 {
            for mantissa in mantissas {
                doubles.push(f64::from_bits(sign << 63 | exponent << 52 | mantissa));
            }
        }
    }
    assert_comes_back(vector(ElementType::F32, Data::F32(singles)));
    assert_comes_back(vector(ElementType::F64, Data::F64(doubles)));
}

proptest! {
    #[test]
    fn random_f32(bits in prop::collection::vec(any::<u32>(), 0..2000)) {
        let data = Data::F32(bits.into_iter().map(f32::from_bits).collect());
        assert_comes_back(vector(ElementType::F32, data));
    }

    #[test]
    fn random_f64(bits in prop::collection::vec(any::<u64>(), 0..2000)) {
        let data = Data::F64(bits.into_iter().map(f64::from_bits).collect());
        assert_comes_back(vector(ElementType::F64, data));
    }

    #[test]
    fn random_shapes(dims in prop::collection::vec(0..4i64, 0..6)) {
        let len = dims.iter().product::<i64>();
        let data = ArrayLiteral::new(ElementType::S64, dims, Data::S64((0..len).collect()));
        assert_comes_back(data.unwrap().into());
    }
}

#[test]
fn integers_at_the_ends_of_their_types() {
    for &element_type in ElementType::ALL.iter().filter(|t| t.is_integer()) {
        let bits = element_type.bits();
        let signed_least = i64::MIN >> (64 - bits);
        let unsigned_most = u64::MAX >> (64 - bits);
        let signed = [signed_least, -1, 0, !signed_least];
        let unsigned = [0, 1, unsigned_most - 1, unsigned_most];
        let data = match Data::zeros(element_type, 0) {
            Data::S8(_) => Data::S8(signed.map(|x| x as i8).to_vec()),
            Data::S16(_) => Data::S16(signed.map(|x| x as i16).to_vec()),
            Data::S32(_) => Data::S32(signed.map(|x| x as i32).to_vec()),
            Data::S64(_) => Data::S64(signed.to_vec()),
            Data::U8(_) => Data::U8(unsigned.map(|x| x as u8).to_vec()),
            Data::U16(_) => Data::U16(unsigned.map(|x| x as u16).to_vec()),
            Data::U32(_) => Data::U32(unsigned.map(|x| x as u32).to_vec()),
            Data::U64(_) => Data::U64(unsigned.to_vec()),
            other => panic!("{element_type} is stored as {other:?}"),
        };
        assert_comes_back(vector(element_type, data));
    }
}

#[test]
fn truth_values_complex_numbers_and_tuples() {
    for value in [true, false] {
        assert_comes_back(Literal::scalar(ElementType::Pred, value).unwrap());
    }
    assert_comes_back(vector(ElementType::Pred, Data::Pred(vec![true, false, true])));
    let singles = [0.0, -0.0, 1.5, f32::INFINITY, f32::NAN, f32::from_bits(0xff80_0005)];
    let pairs = singles.iter().flat_map(|&re| singles.map(|im| Complex::new(re, im)));
    assert_comes_back(vector(ElementType::C64, Data::C64(pairs.collect())));
    let doubles = [0.0, -0.0, 1e-300, f64::NEG_INFINITY, f64::from_bits(0x7ff0_0000_0000_0005)];
    let pairs = doubles.iter().flat_map(|&re| doubles.map(|im| Complex::new(re, im)));
    assert_comes_back(vector(ElementType::C128, Data::C128(pairs.collect())));
    let scalar = Literal::scalar(ElementType::F32, -0.0f32).unwrap();
    let matrix = ArrayLiteral::new(ElementType::S8, [1, 2], Data::S8(vec![-1, 2])).unwrap();
    let inner = Literal::Tuple(vec![matrix.into(), Literal::Tuple(Vec::new())]);
    assert_comes_back(Literal::Tuple(vec![scalar, inner]));
}
