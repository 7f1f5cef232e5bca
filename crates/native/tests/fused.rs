//! Programs beside an evaluation of every op over all indices, in `f64`.

use std::fmt::Debug;

use proptest::prelude::*;
use tilewright_native::fused::{
    Binary, Kind, Operand, Output, Program, Reduction, Unary, Values, ValuesMut,
};
use tilewright_native::{Error, Serial, Threads, View};

/// Cases of each property: Miri takes a second for one.
const CASES: u32 = if cfg!(miri) { 4 } else { 400 };
/// The most elements of a case.
const MOST: usize = if cfg!(miri) { 300 } else { 30_000 };

/// An array of whole numbers, for which arithmetic on floats is exact.
#[derive(Clone, Debug)]
struct Input {
    strides: Vec<isize>,
    offset: usize,
    len: usize,
    kind: u8,
}

/// Dims, inputs, and bytes that choose the nodes and outputs of a program.
#[derive(Clone, Debug)]
struct Case {
    dims: Vec<usize>,
    inputs: Vec<Input>,
    nodes: Vec<[u8; 4]>,
    outputs: Vec<[u8; 2]>,
}

fn input(dims: &[usize], order: u64, kinds: &[u8], kind: u8) -> Input {
    let mut order_of: Vec<usize> = (0..dims.len()).collect();
    order_of.sort_by_key(|&i| std::cmp::Reverse(i));
    if order.is_multiple_of(3) {
        order_of.sort_by_key(|&i| order >> (8 * i) & 255);
    }
    let (mut strides, mut apart, mut offset) = (vec![0; dims.len()], 1usize, 0);
    for &i in &order_of {
        strides[i] = match kinds[i] {
            0..=2 => 0,
            3 => -(apart as isize),
            4 => 2 * apart as isize,
            _ => apart as isize,
        };
        if kinds[i] == 3 {
            offset += apart * (dims[i] - 1);
        }
        apart *= match kinds[i] {
            0..=2 => 1,
            3 => dims[i],
            4 => 2 * dims[i],
            _ => dims[i],
        };
    }
    Input { strides, offset, len: apart, kind }
}

/// Small cases, and those that are divided into tasks.
fn cases(least: usize, most: usize) -> impl Strategy<Value = Case> {
    let small = prop_oneof![1usize..5, 5usize..40, Just(1), 60usize..300, Just(2500)];
    let large = prop_oneof![1usize..5, 5usize..40, 60usize..300, 1000usize..3000, Just(200_000)];
    let dim = if least == 0 { small.boxed() } else { large.boxed() };
    let fits = move |dims: &Vec<usize>| {
        let size = dims.iter().fold(1usize, |size, &dim| size.saturating_mul(dim));
        (least..=most).contains(&size)
    };
    let dims = prop::collection::vec(dim, 1..5).prop_filter("of this size", fits);
    let inputs =
        prop::collection::vec((any::<u64>(), prop::collection::vec(0u8..16, 5), 0u8..5), 1..4);
    let nodes = prop::collection::vec(any::<[u8; 4]>(), 1..10);
    let outputs = prop::collection::vec(any::<[u8; 2]>(), 1..4);
    (dims, inputs, nodes, outputs).prop_map(|(dims, inputs, nodes, outputs)| Case {
        inputs: inputs
            .iter()
            .map(|(order, kinds, kind)| input(&dims, *order, kinds, *kind))
            .collect(),
        dims,
        nodes,
        outputs,
    })
}

/// Calls `visit` with each number of an index, and the index.
fn each(dims: &[usize], mut visit: impl FnMut(usize, &[usize])) {
    let mut index = vec![0; dims.len()];
    for n in 0..dims.iter().product() {
        let mut left = n;
        for i in (0..dims.len()).rev() {
            index[i] = left % dims[i];
            left /= dims[i];
        }
        visit(n, &index);
    }
}

/// A value at every index, and the dims along which it may change.
#[derive(Clone)]
struct Naive {
    values: Vec<f64>,
    varies: u64,
}

fn axes_of(set: u64, rank: usize) -> Vec<i64> {
    (0..rank).filter(|i| set >> i & 1 == 1).map(|i| i as i64).collect()
}

/// Reduces, and gives the result to every index that it was made of.
fn reduced(dims: &[usize], a: &Naive, set: u64, start: f64, f: impl Fn(f64, f64) -> f64) -> Naive {
    let number = |index: &[usize]| {
        let kept = index.iter().zip(dims).enumerate().filter(|(i, _)| set >> i & 1 == 0);
        kept.fold(0, |n, (_, (i, d))| n * d + i)
    };
    let mut results = vec![start; a.values.len()];
    each(dims, |n, index| results[number(index)] = f(results[number(index)], a.values[n]));
    let mut values = vec![0.0; a.values.len()];
    each(dims, |n, index| values[n] = results[number(index)]);
    Naive { values, varies: a.varies & !set }
}

fn values_f64(values: &Values) -> Vec<f64> {
    match values {
        Values::F32(data) => data.iter().map(|&x| f64::from(x)).collect(),
        Values::F64(data) => data.clone(),
        Values::Bf16(data) => data.iter().map(|x| x.to_f64()).collect(),
        Values::F16(data) => data.iter().map(|x| x.to_f64()).collect(),
        Values::Bool(data) => data.iter().map(|&x| f64::from(u8::from(x))).collect(),
    }
}

/// Runs with one thread and with several, which must agree to the last bit.
fn run(program: &Program, operands: &[Operand<'_>]) -> Vec<Output> {
    let outputs = program.run(operands, &Serial).expect("outputs");
    let others = program.run(operands, &Threads(3)).expect("outputs");
    assert_eq!(format!("{outputs:?}"), format!("{others:?}"));
    outputs
}

/// Builds a program with its naive values.
fn built(case: &Case, inputs: &[Vec<f64>], wide: bool) -> (Program, Vec<(Naive, u64)>) {
    let rank = case.dims.len();
    let mut program = Program::new(&case.dims).expect("a program");
    let (mut ids, mut values) = (Vec::new(), Vec::new());
    for (input, data) in case.inputs.iter().zip(inputs) {
        ids.push(program.input());
        let mut all = Vec::new();
        each(&case.dims, |_, index| {
            let at = index.iter().zip(&input.strides).map(|(&i, s)| i as isize * s).sum::<isize>();
            all.push(data[(input.offset as isize + at) as usize]);
        });
        let varies = (0..rank).filter(|&i| input.strides[i] != 0 && case.dims[i] > 1);
        values.push(Naive { values: all, varies: varies.fold(0, |set, i| set | 1 << i) });
    }
    let bounds = [program.constant(-100.0), program.constant(100.0)];
    for &[op, a, b, c] in &case.nodes {
        let pick = |byte: u8| byte as usize % ids.len();
        let (a, b, c) = (pick(a), pick(b), pick(c));
        let set = u64::from(op >> 4) & ((1 << rank) - 1);
        let zip = |f: fn(f64, f64) -> f64| {
            let (x, y): (&Naive, &Naive) = (&values[a], &values[b]);
            let both = x.values.iter().zip(&y.values).map(|(&x, &y)| f(x, y)).collect();
            Naive { values: both, varies: x.varies | y.varies }
        };
        let fold = |start, f: fn(f64, f64) -> f64| reduced(&case.dims, &values[a], set, start, f);
        let axes = axes_of(set, rank);
        let x = ids[a];
        let (id, value) = match op & 15 {
            0 => (program.binary(Binary::Subtract, x, ids[b]), zip(|x, y| x - y)),
            1 => (program.binary(Binary::Multiply, x, ids[b]), zip(|x, y| x * y)),
            2 => (program.binary(Binary::Maximum, x, ids[b]), zip(f64::max)),
            3 => (
                program.binary(Binary::LessEqual, x, ids[b]),
                zip(|x, y| f64::from(u8::from(x <= y))),
            ),
            4 => {
                let (p, q, r) = (&values[a], &values[b], &values[c]);
                let choose = |i: usize| if p.values[i] == 0.0 { r.values[i] } else { q.values[i] };
                let chosen = (0..p.values.len()).map(choose).collect();
                let varies = p.varies | q.varies | r.varies;
                (program.select(x, ids[b], ids[c]), Naive { values: chosen, varies })
            }
            5 | 6 => {
                let negated = values[a].values.iter().map(|x| -x).collect();
                let varies = values[a].varies;
                (program.unary(Unary::Negate, x), Naive { values: negated, varies })
            }
            7 | 8 => (program.reduce(Reduction::Max, x, &axes), fold(f64::NEG_INFINITY, f64::max)),
            9 => (program.reduce(Reduction::Min, x, &axes), fold(f64::INFINITY, f64::min)),
            _ => (program.reduce(Reduction::Sum, x, &axes), fold(0.0, |a, b| a + b)),
        };
        let id = id.expect("a node");
        // Bounded, so that no number is rounded.
        let id = program.binary(Binary::Maximum, id, bounds[0]).expect("a node");
        ids.push(program.binary(Binary::Minimum, id, bounds[1]).expect("a node"));
        let Naive { values: mut all, varies } = value;
        all.iter_mut().for_each(|x| *x = x.clamp(-100.0, 100.0));
        values.push(Naive { values: all, varies });
    }
    let mut wanted = Vec::new();
    for (n, &[of, dropped]) in case.outputs.iter().enumerate() {
        // The last node is an output, others may be.
        let of = if n == 0 { ids.len() - 1 } else { of as usize % ids.len() };
        let dropped = u64::from(dropped) & !values[of].varies & ((1 << rank) - 1);
        let kind = if wide { Kind::F64 } else { Kind::F32 };
        program.output(ids[of], &axes_of(dropped, rank), kind).expect("an output");
        wanted.push((values[of].clone(), dropped));
    }
    (program, wanted)
}

/// Compares a program's outputs with the naive ones.
fn compare(case: &Case, seed: u32, wide: bool) {
    let mut state = u64::from(seed);
    let mut number = |is_truth: bool| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963);
        let number = (state >> 33) as i32 % 4 - 1;
        f64::from(if is_truth { number.clamp(0, 1) } else { number })
    };
    let numbers = |input: &Input| (0..input.len).map(|_| number(input.kind == 4)).collect();
    let data: Vec<Vec<f64>> = case.inputs.iter().map(numbers).collect();
    fn all<T>(data: &[Vec<f64>], f: impl Fn(f64) -> T) -> Vec<Vec<T>> {
        data.iter().map(|data| data.iter().map(|&x| f(x)).collect()).collect()
    }
    let floats = all(&data, |x| x as f32);
    let brains = all(&data, half::bf16::from_f64);
    let halves = all(&data, half::f16::from_f64);
    let truths = all(&data, |x| x != 0.0);
    fn operand<'a, T>(case: &Case, input: &Input, data: &'a [T]) -> Operand<'a>
    where
        Operand<'a>: From<View<'a, T>>,
    {
        View::new(data, input.offset, &case.dims, &input.strides).expect("a view").into()
    }
    let operands = case.inputs.iter().enumerate().map(|(i, input)| match input.kind {
        0 => operand(case, input, &data[i]),
        1 | 2 => operand(case, input, &floats[i]),
        3 if i % 2 == 0 => operand(case, input, &halves[i]),
        3 => operand(case, input, &brains[i]),
        _ => operand(case, input, &truths[i]),
    });
    let operands: Vec<Operand<'_>> = operands.collect();
    let (program, wanted) = built(case, &data, wide);
    let outputs = run(&program, &operands);
    for (output, (naive, dropped)) in outputs.iter().zip(&wanted) {
        let mut expected = Vec::new();
        each(&case.dims, |n, index| {
            if index.iter().enumerate().all(|(i, &at)| dropped >> i & 1 == 0 || at == 0) {
                expected.push(naive.values[n]);
            }
        });
        assert!(values_f64(&output.values) == expected, "{case:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: CASES, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whole_numbers_are_exact(case in cases(0, MOST), seed: u32, wide: bool) {
        compare(&case, seed, wide);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: CASES / 10, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    #[cfg_attr(miri, ignore = "takes hours")]
    fn many_whole_numbers_are_exact(case in cases(70_000, 500_000), seed: u32, wide: bool) {
        compare(&case, seed, wide);
    }
}

#[test]
fn what_is_no_program_is_an_error() {
    let mut program = Program::new(&[2, 0]).expect("a program");
    let x = program.input();
    assert_eq!(program.reduce(Reduction::Max, x, &[1]).map(drop), Err(Error::Empty));
    let sum = program.reduce(Reduction::Sum, x, &[1]).expect("a sum");
    program.output(sum, &[1], Kind::F32).expect("an output");
    program.output(x, &[], Kind::F32).expect("an output");
    let none: [f32; 0] = [];
    let view = View::row_major(&none, &[2, 0]).expect("a view");
    let outputs = program.run(&[view.clone().into()], &Serial).expect("outputs");
    assert_eq!(outputs[0].values, Values::F32(vec![0.0, 0.0]));
    assert_eq!(outputs[1].dims, [2, 0]);
    assert_eq!(program.run(&[], &Serial), Err(Error::Operands { given: 0, wanted: 1 }));
    let dims = Error::OtherDims { given: vec![0], wanted: vec![2, 0] };
    let other = View::row_major(&none, &[0]).expect("a view");
    assert_eq!(program.run(&[other.into()], &Serial), Err(dims));
    assert_eq!(program.deviations(sum).map(drop), Err(Error::OfAnotherProgram));

    let mut program = Program::new(&[3]).expect("a program");
    assert_eq!(program.unary(Unary::Abs, sum).map(drop), Err(Error::OfAnotherProgram));
    let x = program.input();
    program.output(x, &[0], Kind::F32).expect("an output");
    let data = [1.0f32, 2.0, 3.0];
    let view = View::row_major(&data, &[3]).expect("a view");
    assert_eq!(program.run(&[view.into()], &Serial), Err(Error::Dropped(0)));
    assert!(matches!(Program::new(&[usize::MAX, 2]), Err(Error::TooLarge)));

    let mut program = Program::new(&[1 << 61]).expect("a program");
    let x = program.input();
    program.output(x, &[], Kind::F32).expect("an output");
    let view = View::new(&data, 0, &[1 << 61], &[0]).expect("a view");
    assert_eq!(program.run(&[view.into()], &Serial), Err(Error::TooLarge));
}

/// Numbers of 64 bits that lie closest to the middle of two of 16 bits are rounded once: half a unit in
/// the last place is 2^-11 for `f16` and 2^-8 for `bf16`.
#[test]
fn doubles_are_narrowed_once() -> Result<(), Error> {
    let [half, eighth] = [11, 8].map(|bits| 2f64.powi(-bits));
    let little = 2f64.powi(-40);
    let x =
        [1.0 + half + little, 1.0 + half, 1.0 + half - little, 1.0 + 3.0 * half - little, 1e300]
            .into_iter()
            .chain([1.0 + eighth + little, 1.0 + eighth, 1.0 + eighth - little, -f64::INFINITY])
            .collect::<Vec<f64>>();
    let mut program = Program::new(&[x.len()])?;
    let input = program.input();
    let rounded = [program.unary(Unary::ToF16, input)?, program.unary(Unary::ToBf16, input)?];
    for (value, kind) in [(input, Kind::F16), (input, Kind::Bf16)] {
        program.output(value, &[], kind)?;
    }
    for value in rounded {
        program.output(value, &[], Kind::F64)?;
    }
    let outputs = program.run(&[View::row_major(&x, &[x.len()])?.into()], &Serial)?;
    let [f16, bf16] = [
        [1.0 + 2.0 * half, 1.0, 1.0, 1.0 + 2.0 * half, f64::INFINITY],
        [1.0, 1.0, 1.0, 1.0, f64::INFINITY],
    ];
    let f16 = [&f16[..], &[1.0 + eighth; 3], &[-f64::INFINITY]].concat();
    let bf16 = [&bf16[..], &[1.0 + 2.0 * eighth, 1.0, 1.0, -f64::INFINITY]].concat();
    for (output, expected) in outputs.iter().zip([&f16, &bf16, &f16, &bf16]) {
        assert_eq!(values_f64(&output.values), *expected);
    }
    Ok(())
}

/// What is written into rooms is what is returned; rooms that do not fit are errors.
#[test]
fn rooms_are_written_and_checked() -> Result<(), Error> {
    let mut program = Program::new(&[3, 4])?;
    let x = program.input();
    let sum = program.reduce(Reduction::Sum, x, &[0])?;
    let apart = program.binary(Binary::Subtract, x, sum)?;
    program.output(apart, &[], Kind::F32)?;
    program.output(sum, &[0], Kind::Bf16)?;
    let data: Vec<f32> = (0..12).map(|n| n as f32).collect();
    let x = [View::row_major(&data, &[3, 4])?.into()];
    let (mut whole, mut sums) = ([0f32; 12], [half::bf16::ZERO; 4]);
    let rooms = &mut [ValuesMut::F32(&mut whole), ValuesMut::Bf16(&mut sums)];
    program.run_into(&x, rooms, &Serial)?;
    assert_eq!(sums.map(f32::from), [12.0, 15.0, 18.0, 21.0]);
    let expected = data.iter().enumerate().map(|(n, x)| x - f32::from(sums[n % 4]));
    assert!(expected.eq(whole));
    let only = program.run_into(&x, &mut [ValuesMut::F32(&mut whole)], &Serial);
    assert_eq!(only, Err(Error::Rooms { given: 1, wanted: 2 }));
    let mut short = [half::bf16::ZERO; 3];
    let rooms = &mut [ValuesMut::F32(&mut whole), ValuesMut::Bf16(&mut short)];
    let refused = Error::OutputOfOtherLength { given: 3, results: 4 };
    assert_eq!(program.run_into(&x, rooms, &Serial), Err(refused));
    let mut wide = [0f32; 4];
    let rooms = &mut [ValuesMut::F32(&mut whole), ValuesMut::F32(&mut wide)];
    assert_eq!(program.run_into(&x, rooms, &Serial), Err(Error::OtherKind { output: 1 }));
    Ok(())
}

/// The variance of each row about `sum / count`, as front ends write it.
fn variances(x: &[f32], dims: [usize; 2], count: f64) -> Result<[Vec<f64>; 2], Error> {
    let mut program = Program::new(&dims)?;
    let input = program.input();
    let sum = program.reduce(Reduction::Sum, input, &[1])?;
    let count = program.constant(count);
    let mean = program.binary(Binary::Divide, sum, count)?;
    let apart = program.binary(Binary::Subtract, input, mean)?;
    let squares = program.binary(Binary::Multiply, apart, apart)?;
    let squares = program.reduce(Reduction::Sum, squares, &[1])?;
    let variance = program.binary(Binary::Divide, squares, count)?;
    program.output(mean, &[1], Kind::F32)?;
    program.output(variance, &[1], Kind::F32)?;
    let x = [View::row_major(x, &dims)?.into()];
    let [means, variances] = <[Output; 2]>::try_from(run(&program, &x)).expect("two outputs");
    Ok([values_f64(&means.values), values_f64(&variances.values)])
}

/// Moments are found in one reading, also far from zero; what is divided by another number than that
/// of the elements is no mean.
#[test]
fn variances_as_front_ends_write_them() -> Result<(), Error> {
    let long = if cfg!(miri) { 1_000 } else { 70_000 };
    for (dims, count) in [([7, 300], 300.0), ([3, long], long as f64), ([7, 300], 150.0)] {
        let x: Vec<f32> =
            (0..dims[0] * dims[1]).map(|n| 1e4 + (n * n % 1009) as f32 / 64.0).collect();
        let [means, variances] = variances(&x, dims, count)?;
        for (row, (mean, variance)) in x.chunks_exact(dims[1]).zip(means.iter().zip(&variances)) {
            let sum: f64 = row.iter().map(|&x| f64::from(x)).sum();
            assert!((sum / count / mean - 1.0).abs() < 2e-7, "{mean} of {dims:?}");
            let squares: f64 = row.iter().map(|&x| (f64::from(x) - mean).powi(2)).sum();
            assert!((squares / count / variance - 1.0).abs() < 1e-5, "{variance} of {dims:?}");
        }
    }
    Ok(())
}

/// A sum begins with 0.0, also where it has one term; an extremum is its element.
#[test]
fn sums_of_negative_zeros_are_zero() -> Result<(), Error> {
    for (dims, axis) in [([5, 1], 1), ([1, 5], 0), ([5, 3], 1), ([5, 40], 1), ([40, 5], 0)] {
        let data = vec![-0.0f32; dims[0] * dims[1]];
        let x = [View::row_major(&data, &dims)?.into()];
        for (reduction, is_negative) in [(Reduction::Sum, false), (Reduction::Max, true)] {
            let mut program = Program::new(&dims)?;
            let input = program.input();
            let reduced = program.reduce(reduction, input, &[axis])?;
            program.output(reduced, &[axis], Kind::F32)?;
            let outputs = run(&program, &x);
            let found = values_f64(&outputs[0].values);
            assert!(
                found.iter().all(|x| x.is_sign_negative() == is_negative),
                "{dims:?}: {found:?}"
            );
        }
    }
    Ok(())
}

/// A norm along axes of rows of two dims or more, without parameters.
fn norm(dims: &[usize], axes: &[i64], kind: Kind) -> Result<Program, Error> {
    let mut p = Program::new(dims)?;
    let x = p.input();
    let mean = p.reduce(Reduction::Moments, x, axes)?;
    let deviations = p.deviations(mean)?;
    let inverse = p.unary(Unary::Rsqrt, deviations)?;
    let apart = p.binary(Binary::Subtract, x, mean)?;
    let normed = p.binary(Binary::Multiply, apart, inverse)?;
    p.output(normed, &[], kind)?;
    Ok(p)
}

fn softmax(dims: &[usize], axes: &[i64], kind: Kind) -> Result<Program, Error> {
    let mut p = Program::new(dims)?;
    let x = p.input();
    let most = p.reduce(Reduction::Max, x, axes)?;
    let apart = p.binary(Binary::Subtract, x, most)?;
    let power = p.unary(Unary::Exp, apart)?;
    let sum = p.reduce(Reduction::Sum, power, axes)?;
    let part = p.binary(Binary::Divide, power, sum)?;
    p.output(part, &[], kind)?;
    Ok(p)
}

/// What a program makes of all rows at once is what it makes of a few rows at a time. Together, arrays
/// are so large that results go past the caches, into memory that was written before.
fn large_as_small<T: Copy + Debug + PartialEq>(
    (dims, axes, kind): (&[usize], &[i64], Kind),
    program: impl Fn(&[usize], &[i64], Kind) -> Result<Program, Error>,
    of: impl Fn(f32) -> T,
    room: impl Fn(&mut [T]) -> ValuesMut<'_>,
) -> Result<(), Error>
where
    for<'a> Operand<'a>: From<View<'a, T>>,
{
    let value = |i: usize| (i.wrapping_mul(2_654_435_761) % 1009) as f32 / 501.0 - 1.0;
    let x: Vec<T> = (0..dims.iter().product()).map(|i| of(value(i))).collect();
    let row: usize = dims[1..].iter().product();
    let run = |x: &[T], to: &mut [T]| {
        let dims = [&[x.len() / row], &dims[1..]].concat();
        let x = View::row_major(x, &dims)?.into();
        program(&dims, axes, kind)?.run_into(&[x], &mut [room(to)], &Threads(2))
    };
    let [mut parts, mut whole] = [7.0, 9.0].map(|filling| vec![of(filling); x.len()]);
    let part = row * (1usize << 18).div_ceil(row);
    for (x, to) in x.chunks(part).zip(parts.chunks_mut(part)) {
        run(x, to)?;
    }
    run(&x, &mut whole)?;
    let first = whole.iter().zip(&parts).position(|(a, b)| a != b);
    assert_eq!(first, None, "{dims:?}");
    Ok(())
}

#[test]
#[cfg_attr(miri, ignore = "arrays are large")]
fn results_past_the_caches_are_the_same() -> Result<(), Error> {
    let all: [(&[usize], &[i64]); 4] = [
        (&[4200, 1027], &[1]),
        (&[66_000, 64], &[1]),
        (&[17, 64, 4000], &[2]),
        (&[17, 8, 8, 4000], &[2, 3]),
    ];
    for (dims, axes) in all {
        let case = (dims, axes, Kind::F32);
        large_as_small(case, norm, |x| x, |room| ValuesMut::F32(room))?;
        large_as_small(case, softmax, |x| x, |room| ValuesMut::F32(room))?;
    }
    let case: (&[usize], &[i64], _) = (&[8400, 1027], &[1], Kind::Bf16);
    large_as_small(case, norm, half::bf16::from_f32, |room| ValuesMut::Bf16(room))?;
    let case: (&[usize], &[i64], _) = (&[2200, 1027], &[1], Kind::F64);
    large_as_small(case, norm, f64::from, |room| ValuesMut::F64(room))
}
