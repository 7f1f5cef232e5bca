//! Programs that are like gradients of norms: sums of products of two factors, of a factor, and sums of
//! two products, beside an evaluation of every op over all indices in `f64`.

use proptest::prelude::*;
use tilewright_native::fused::{Binary, Id, Kind, Operand, Output, Program, Reduction, Values};
use tilewright_native::{Serial, Threads, View};

/// Cases of the property: Miri takes a second for one.
const CASES: u32 = if cfg!(miri) { 4 } else { 600 };
/// The most elements of a case: sums of whole numbers stay exact in `f32`.
const MOST: usize = if cfg!(miri) { 300 } else { 40_000 };

/// What may be missing: a factor has one to subtract and two to multiply by, a sum of one factor another,
/// a sum of two products two to add and one to multiply by.
const PARAMETERS: usize = 10;

#[derive(Clone, Debug)]
struct Case {
    dims: Vec<usize>,
    /// For each parameter the dims that it has, as bits; missing if a bit beyond these is set.
    parameters: Vec<u8>,
    /// The dims along which sums are taken first, and those of later sums.
    axes: [u8; 2],
    /// Bits that choose among ways to write the same.
    ways: u16,
    is_narrow: bool,
    seed: u32,
}

fn cases() -> impl Strategy<Value = Case> {
    let dims = prop_oneof![
        prop::collection::vec(1..40usize, 1..4),
        (1..6usize, 1..6usize, 30..300usize).prop_map(|(a, b, c)| vec![a, b, c]),
        (2..300usize, prop::sample::select(vec![16usize, 32, 48, 64, 100]))
            .prop_map(|(a, b)| vec![a, b]),
        (1..9usize, 500..5000usize).prop_map(|(a, b)| vec![a, b]),
    ];
    let dims = dims.prop_filter("a size", |dims| dims.iter().product::<usize>() <= MOST);
    let parameters = prop::collection::vec(0..16u8, PARAMETERS);
    (dims, parameters, any::<[u8; 2]>(), any::<u16>(), any::<bool>(), any::<u32>()).prop_map(
        |(dims, parameters, axes, ways, is_narrow, seed)| Case {
            dims,
            parameters,
            axes,
            ways,
            is_narrow,
            seed,
        },
    )
}

/// A value with what it is at all indices, row major.
#[derive(Clone)]
struct Value {
    id: Id,
    all: Vec<f64>,
}

/// A program under way, whose inputs have small whole numbers.
struct Builder<'a> {
    case: &'a Case,
    program: Program,
    /// The elements of each input, and the dims that it has.
    inputs: Vec<(Vec<f32>, u8)>,
    state: u64,
}

impl Builder<'_> {
    fn rank(&self) -> usize {
        self.case.dims.len()
    }

    fn size(&self) -> usize {
        self.case.dims.iter().product()
    }

    fn number(&mut self) -> f32 {
        self.state =
            self.state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963);
        ((self.state >> 33) as i32 % 4 - 1) as f32
    }

    /// The place of an index, given row major, among the elements of the dims of a set.
    fn place(&self, mut index: usize, set: u8) -> usize {
        let (mut place, mut apart) = (0, 1);
        for (dim, &len) in self.case.dims.iter().enumerate().rev() {
            if set >> dim & 1 == 1 {
                place += index % len * apart;
                apart *= len;
            }
            index /= len;
        }
        place
    }

    fn input(&mut self, set: u8) -> Value {
        let size = self.case.dims.iter().enumerate().filter(|(dim, _)| set >> dim & 1 == 1);
        let size = size.map(|(_, len)| len).product();
        let data: Vec<f32> = (0..size).map(|_| self.number()).collect();
        let all = (0..self.size()).map(|i| f64::from(data[self.place(i, set)])).collect();
        self.inputs.push((data, set));
        Value { id: self.program.input(), all }
    }

    /// A parameter, if the case has it.
    fn parameter(&mut self, number: usize) -> Option<Value> {
        let rank = self.rank();
        let set = self.case.parameters[number];
        (u32::from(set) < 3 << rank).then(|| self.input(set & ((1 << rank) - 1)))
    }

    fn op(&mut self, op: Binary, a: &Value, b: &Value) -> Value {
        let f = match op {
            Binary::Add => |a: f64, b: f64| a + b,
            Binary::Subtract => |a, b| a - b,
            Binary::Multiply => |a, b| a * b,
            Binary::Maximum => f64::max,
            _ => f64::min,
        };
        let all = a.all.iter().zip(&b.all).map(|(&a, &b)| f(a, b)).collect();
        Value { id: self.program.binary(op, a.id, b.id).expect("an op"), all }
    }

    /// An op whose operands may change places.
    fn either(&mut self, op: Binary, a: &Value, b: &Value, way: u32) -> Value {
        if self.case.ways >> way & 1 == 1 { self.op(op, b, a) } else { self.op(op, a, b) }
    }

    /// `((x - 0) * 1) * 2` with the parameters that there are.
    fn factor(&mut self, x: &Value, from: usize) -> Value {
        let mut x = x.clone();
        if let Some(subtracted) = self.parameter(from) {
            x = self.op(Binary::Subtract, &x, &subtracted);
        }
        for n in 1..3 {
            if let Some(times) = self.parameter(from + n) {
                x = self.either(Binary::Multiply, &x, &times, n as u32);
            }
        }
        x
    }

    fn sum(&mut self, x: &Value, set: u8) -> Value {
        let rank = self.rank();
        let kept = !set & ((1 << rank) - 1);
        let axes: Vec<i64> = (0..rank).filter(|i| set >> i & 1 == 1).map(|i| i as i64).collect();
        let mut sums = vec![0.0; self.size()];
        for (i, x) in x.all.iter().enumerate() {
            sums[self.place(i, kept)] += x;
        }
        let all = (0..self.size()).map(|i| sums[self.place(i, kept)]).collect();
        Value { id: self.program.reduce(Reduction::Sum, x.id, &axes).expect("a sum"), all }
    }

    /// A sum as a small number.
    fn small(&mut self, x: &Value) -> Value {
        let bound = |builder: &mut Self, bound: f64| Value {
            id: builder.program.constant(bound),
            all: vec![bound; builder.size()],
        };
        let (least, most) = (bound(self, -2.0), bound(self, 2.0));
        let x = self.op(Binary::Maximum, x, &least);
        self.op(Binary::Minimum, &x, &most)
    }

    /// The gradient of an input, and sums.
    fn gradients(&mut self) -> Vec<Value> {
        let [first, second] = self.case.axes;
        let full = (1u8 << self.rank()) - 1;
        // The first array may lack a dim.
        let (x, mut y) = (self.input(full & !(self.case.ways as u8 >> 3 & 1)), self.input(full));
        let x = self.factor(&x, 0);
        if self.case.ways >> 13 & 1 == 1 {
            let sum = self.sum(&x, first & full);
            let small = self.small(&sum);
            y = self.op(Binary::Subtract, &y, &small);
        }
        let y = self.factor(&y, 3);
        let product = self.either(Binary::Multiply, &x, &y, 4);
        let sum = self.sum(&product, first & full);
        let mut of = x.clone();
        if let Some(times) = self.parameter(6) {
            of = self.either(Binary::Multiply, &of, &times, 5);
        }
        let beside = self.sum(&of, first & full);
        let product = self.either(Binary::Multiply, &x, &y, 14);
        let factor = if self.case.ways >> 15 & 1 == 1 { x.clone() } else { y.clone() };
        let later = [self.sum(&product, second & full), self.sum(&factor, second & full)];
        let small = self.small(&sum);
        let along = self.either(Binary::Multiply, &y, &small, 6);
        let mut left = x;
        if let Some(added) = self.parameter(7) {
            left = self.either(Binary::Add, &left, &added, 7);
        } else if self.case.ways >> 8 & 1 == 1 {
            let small = self.small(&beside);
            left = self.op(Binary::Subtract, &left, &small);
        }
        left = if self.case.ways >> 9 & 1 == 1 {
            self.op(Binary::Subtract, &left, &along)
        } else {
            self.either(Binary::Add, &left, &along, 10)
        };
        if let Some(added) = self.parameter(8) {
            let op = [Binary::Add, Binary::Subtract][usize::from(self.case.ways >> 11 & 1)];
            left = self.op(op, &left, &added);
        }
        if let Some(times) = self.parameter(9) {
            left = self.either(Binary::Multiply, &left, &times, 12);
        }
        let [product, factor] = later;
        vec![left, sum, beside, product, factor]
    }
}

fn values(output: &Output) -> Vec<f64> {
    match &output.values {
        Values::F32(values) => values.iter().map(|&x| f64::from(x)).collect(),
        other => panic!("outputs are f32, not {other:?}"),
    }
}

fn compare(case: &Case) {
    let program = Program::new(&case.dims).expect("a program");
    let state = u64::from(case.seed);
    let mut builder = Builder { case, program, inputs: Vec::new(), state };
    let wanted = builder.gradients();
    for value in &wanted {
        builder.program.output(value.id, &[], Kind::F32).expect("an output");
    }
    let strides = |set: u8| {
        let (mut strides, mut apart) = (vec![0isize; case.dims.len()], 1isize);
        for (dim, &len) in case.dims.iter().enumerate().rev() {
            if set >> dim & 1 == 1 {
                strides[dim] = apart;
                apart *= len as isize;
            }
        }
        strides
    };
    let narrow: Vec<Vec<half::bf16>> = builder
        .inputs
        .iter()
        .map(|(data, _)| data.iter().map(|&x| half::bf16::from_f32(x)).collect())
        .collect();
    let operands = builder.inputs.iter().zip(&narrow).map(|((data, set), narrow)| {
        let strides = strides(*set);
        if case.is_narrow {
            View::new(narrow, 0, &case.dims, &strides).expect("a view").into()
        } else {
            View::new(data, 0, &case.dims, &strides).expect("a view").into()
        }
    });
    let operands: Vec<Operand<'_>> = operands.collect();
    let outputs = builder.program.run(&operands, &Serial).expect("outputs");
    let others = builder.program.run(&operands, &Threads(3)).expect("outputs");
    assert_eq!(format!("{outputs:?}"), format!("{others:?}"));
    for (n, (output, wanted)) in outputs.iter().zip(&wanted).enumerate() {
        assert!(values(output) == wanted.all, "output {n} of {case:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: CASES, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn gradients_of_whole_numbers_are_exact(case in cases()) {
        compare(&case);
    }
}
