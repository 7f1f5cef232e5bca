//! `rng`, whose numbers are not specified: they are of the distribution, in
//! range, the same in every evaluation, and not the same in every draw.

use tilewright_interp::{Limits, evaluate};
use tilewright_ir::{Data, ElementType, Literal};

fn run(text: &str) -> Literal {
    let module = tilewright_text::parse_and_verify(text).unwrap();
    evaluate(&module, &[], &Limits::default()).unwrap()
}

/// Returns the elements of the only result, as `f64`.
fn drawn(element_type: ElementType, distribution: &str, low: &str, high: &str) -> Vec<f64> {
    let text = format!(
        "HloModule m\nENTRY e {{\n a = {element_type}[] constant({low})\n \
         b = {element_type}[] constant({high})\n \
         r = {element_type}[100,200] rng(a, b), distribution={distribution}\n \
         ROOT c = f64[100,200] convert(r)\n}}\n"
    );
    let Literal::Array(array) = run(&text) else { panic!("not an array") };
    array.as_slice::<f64>().unwrap().to_vec()
}

/// Mean and standard deviation.
fn moments(values: &[f64]) -> (f64, f64) {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let variance = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / count;
    (mean, variance.sqrt())
}

#[test]
fn uniform_floats_fill_their_range_without_its_end() {
    for element_type in [ElementType::F32, ElementType::F64, ElementType::BF16, ElementType::F16] {
        let values = drawn(element_type, "rng_uniform", "-2", "3");
        assert!(values.iter().all(|v| (-2.0..3.0).contains(v)), "{element_type}");
        let (mean, deviation) = moments(&values);
        // The mean of 20000 numbers is off by 0.01 once; it is never off by five times that.
        assert!((mean - 0.5).abs() < 0.05, "{element_type} {mean}");
        assert!((deviation - 5.0 / 12f64.sqrt()).abs() < 0.05, "{element_type} {deviation}");
    }
    // All that rounds up to the end is drawn as the other one.
    let values = drawn(ElementType::F8E5M2, "rng_uniform", "1", "1.25");
    assert!(values.iter().all(|&v| v == 1.0));
}

#[test]
fn uniform_integers_take_every_value_but_the_end() {
    for element_type in [ElementType::S4, ElementType::S8, ElementType::S32, ElementType::S64] {
        let values = drawn(element_type, "rng_uniform", "-3", "4");
        for wanted in -3..4 {
            let share = values.iter().filter(|&&v| v == f64::from(wanted)).count();
            assert!((2557..3157).contains(&share), "{element_type} {wanted}: {share} of 20000");
        }
        assert!(values.iter().all(|v| (-3.0..4.0).contains(v)), "{element_type}");
    }
    let whole = drawn(ElementType::U64, "rng_uniform", "0", "18446744073709551615");
    let (mean, _) = moments(&whole);
    assert!((mean / 2f64.powi(63) - 1.0).abs() < 0.02, "{mean}");
}

#[test]
fn normal_numbers_have_mean_and_deviation() {
    for element_type in [ElementType::F32, ElementType::F64, ElementType::F16] {
        let values = drawn(element_type, "rng_normal", "3", "2");
        let (mean, deviation) = moments(&values);
        assert!((mean - 3.0).abs() < 0.07 && (deviation - 2.0).abs() < 0.05, "{mean} {deviation}");
        let far = values.iter().filter(|&&v| (v - 3.0).abs() > 4.0).count();
        // 4.55 % of a normal distribution are two deviations away and more.
        assert!((760..1060).contains(&far), "{element_type} {far}");
    }
}

#[test]
fn draws_differ_and_evaluations_do_not() {
    let text = "HloModule m\nENTRY e {\n a = f32[] constant(0)\n b = f32[] constant(1)\n \
                r = f32[4] rng(a, b), distribution=rng_uniform\n \
                s = f32[4] rng(a, b), distribution=rng_uniform\n \
                ROOT t = (f32[4], f32[4]) tuple(r, s)\n}\n";
    let (first, second) = (run(text), run(text));
    assert_eq!(first, second);
    let Literal::Tuple(both) = first else { panic!("not a tuple") };
    assert_ne!(both[0], both[1]);
}

/// Each instruction counts by itself, from where XLA:CPU's counts begin.
#[test]
fn states_advance_by_their_delta() {
    let text = "HloModule m\nbody {\n p = (s32[], u64[2], u64[2]) parameter(0)\n \
                i = s32[] get-tuple-element(p), index=0\n one = s32[] constant(1)\n \
                j = s32[] add(i, one)\n a = u64[2] rng-get-and-update-state(), delta=3\n \
                b = u64[2] rng-get-and-update-state(), delta=10\n \
                ROOT t = (s32[], u64[2], u64[2]) tuple(j, a, b)\n}\n\
                test {\n p = (s32[], u64[2], u64[2]) parameter(0)\n \
                i = s32[] get-tuple-element(p), index=0\n n = s32[] constant(3)\n \
                ROOT r = pred[] compare(i, n), direction=LT\n}\n\
                ENTRY e {\n z = s32[] constant(0)\n k = u64[2] constant({0, 0})\n \
                s = (s32[], u64[2], u64[2]) tuple(z, k, k)\n \
                ROOT w = (s32[], u64[2], u64[2]) while(s), condition=test, body=body\n}\n";
    let Literal::Tuple(results) = run(text) else { panic!("not a tuple") };
    let states = results[1..].iter().map(|r| r.as_array().unwrap().data().clone());
    let expected = [6, 20].map(|ahead| Data::U64(vec![0x0701_2395 + ahead, 0]));
    assert_eq!(states.collect::<Vec<Data>>(), expected);
}

/// Expected: XLA:CPU's.
#[test]
fn random_bits_at_the_ends_of_counters_and_of_odd_arrays() {
    let drawn = |state: &str, words: usize, shape: &str, algorithm: &str| {
        let text = format!(
            "HloModule m\nENTRY e {{\n s = u64[{words}] constant({{{state}}})\n \
             ROOT r = (u64[{words}], {shape}) rng-bit-generator(s), algorithm={algorithm}\n}}\n"
        );
        let Literal::Tuple(results) = run(&text) else { panic!("not a tuple") };
        results.iter().map(|r| r.as_array().unwrap().data().clone()).collect::<Vec<Data>>()
    };
    // The counter of Philox has 128 bits.
    let found = drawn("7, 18446744073709551615, 5", 3, "u32[8]", "rng_philox");
    let words = vec![
        592_388_033,
        4_281_800_940,
        662_029_415,
        3_118_642_158,
        2_900_326_916,
        2_923_260_437,
        966_877_904,
        1_475_541_809,
    ];
    assert_eq!(found, [Data::U64(vec![7, 1, 6]), Data::U32(words)]);
    // Without an even dim, ThreeFry splits the first of the largest.
    let found = drawn("7, 9", 2, "u32[3,3]", "rng_three_fry");
    let words = vec![
        2_148_922_066,
        17_873_132,
        2_218_545_827,
        1_218_255_668,
        884_161_837,
        757_886_286,
        1_460_919_419,
        2_293_606_280,
        239_565_225,
    ];
    assert_eq!(found, [Data::U64(vec![7, 15]), Data::U32(words)]);
}
