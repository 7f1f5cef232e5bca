//! Tests the methods of the builder: one small value of each, worked out by hand.

use super::{F32, floats, integers, printed, value};
use crate::common::shape;
use tilewright_interp::{Devices, Evaluation};
use tilewright_ir::ops::collective::{
    AllGatherAttrs, AllReduceAttrs, AllToAllAttrs, PermuteAttrs, ReduceScatterAttrs,
};
use tilewright_ir::ops::contract::{ConvolutionAttrs, DotAttrs};
use tilewright_ir::ops::control::{ApiVersion, CustomCallAttrs};
use tilewright_ir::ops::dims::{ConvDims, PadDim, WindowDim};
use tilewright_ir::ops::elementwise::Direction;
use tilewright_ir::ops::indexing::{GatherAttrs, ScatterAttrs};
use tilewright_ir::ops::random::RngAlgorithm;
use tilewright_ir::{
    ArrayLiteral, BuildError, Builder, Data, Dims, ElementType, InstId, Literal, Opcode, Shape,
    Verified, dims,
};
use tilewright_text::parse_and_verify;

const S32: ElementType = ElementType::S32;

type Made = Result<InstId, BuildError>;

/// Computes a value of `x = [[1, 2, 3], [4, 5, 6]]`.
#[track_caller]
fn of_x(make: impl FnOnce(&mut Builder, InstId) -> Made) -> Literal {
    let mut b = Builder::new("method");
    let x = b.parameter("x", shape("f32[2,3]")).unwrap();
    let root = make(&mut b, x).unwrap();
    let module = b.finish(root).unwrap();
    value(&module, &[floats(&[2, 3], &[1., 2., 3., 4., 5., 6.])])
}

fn number(b: &mut Builder, value: f32) -> Made {
    b.constant(Literal::scalar(F32, value)?)
}

fn index(b: &mut Builder, value: i32) -> Made {
    b.constant(Literal::scalar(S32, value)?)
}

#[test]
fn elementwise_ops() {
    let made = of_x(|b, x| b.unary(Opcode::Negate, x));
    assert_eq!(made, floats(&[2, 3], &[-1., -2., -3., -4., -5., -6.]));
    let made = of_x(|b, x| b.binary(Opcode::Multiply, x, x));
    assert_eq!(made, floats(&[2, 3], &[1., 4., 9., 16., 25., 36.]));
    // 5 is 1.01 in binary, times 4: with one bit of mantissa a tie, to even.
    let made = of_x(|b, x| b.reduce_precision(x, 8, 1));
    assert_eq!(made, floats(&[2, 3], &[1., 2., 3., 4., 4., 6.]));
    let made = of_x(|b, x| {
        let places = b.iota(shape("f32[2,3]"), 1)?; // 0 1 2, twice
        let negated = b.unary(Opcode::Negate, x)?;
        let two = number(b, 2.0)?;
        let twos = b.broadcast(two, [2, 3], [])?;
        let less = b.compare(Direction::Lt, places, twos)?;
        b.select(less, x, negated)
    });
    assert_eq!(made, floats(&[2, 3], &[1., 2., -3., 4., 5., -6.]));
    let made = of_x(|b, x| {
        let (low, high) = (number(b, 2.5)?, number(b, 5.0)?);
        let clamped = b.clamp(low, x, high)?;
        b.convert(clamped, S32)
    });
    // 2.5 is converted towards zero.
    assert_eq!(made, integers(&[2, 3], &[2, 2, 3, 4, 5, 5]));
    let made = of_x(|b, x| {
        let subtract = b.reducer(Opcode::Subtract, F32)?;
        let twice = b.binary(Opcode::Add, x, x)?;
        b.map([twice, x], subtract)
    });
    assert_eq!(made, floats(&[2, 3], &[1., 2., 3., 4., 5., 6.]));
}

#[test]
fn shaping_ops() {
    let made = of_x(|b, x| b.transpose(x, [1, 0]));
    assert_eq!(made, floats(&[3, 2], &[1., 4., 2., 5., 3., 6.]));
    let made = of_x(|b, x| b.reshape(x, [3, 2]));
    assert_eq!(made, floats(&[3, 2], &[1., 2., 3., 4., 5., 6.]));
    let made = of_x(|b, x| b.reverse(x, [1]));
    assert_eq!(made, floats(&[2, 3], &[3., 2., 1., 6., 5., 4.]));
    let made = of_x(|b, x| b.slice(x, [0, 0], [2, 3], [1, 2]));
    assert_eq!(made, floats(&[2, 2], &[1., 3., 4., 6.]));
    let made = of_x(|b, x| {
        let first = b.slice(x, vec![0, 0], dims([2, 1]), [1, 1])?;
        b.concatenate([x, first], 1)
    });
    assert_eq!(made, floats(&[2, 4], &[1., 2., 3., 1., 4., 5., 6., 4.]));
    let made = of_x(|b, x| {
        let nine = number(b, 9.0)?;
        b.pad(
            x,
            nine,
            [PadDim { high: 1, ..PadDim::default() }, PadDim { low: -1, high: 0, interior: 1 }],
        )
    });
    // Between elements 9, then the first of each row gone.
    let expected = [9., 2., 9., 3., 9., 5., 9., 6., 9., 9., 9., 9.];
    assert_eq!(made, floats(&[3, 4], &expected));
    // 1.0 is 0x3f80_0000, and 2.0 is 0x4000_0000.
    let made = of_x(|b, x| {
        let two = b.slice(x, [0, 0], [1, 2], [1, 1])?;
        let halves = b.bitcast_convert(two, ElementType::S16)?; // s16[1,2,2]
        let swapped = b.reverse(halves, [2])?;
        b.bitcast_convert(swapped, S32)
    });
    assert_eq!(made, integers(&[1, 2], &[0x3f80, 0x4000]));
}

#[test]
fn contractions() {
    // x * x^T: the rows are (1, 2, 3) and (4, 5, 6).
    let expected = floats(&[2, 2], &[14., 32., 32., 77.]);
    let made = of_x(|b, x| {
        let turned = b.transpose(x, [1, 0])?;
        b.dot(x, turned)
    });
    assert_eq!(made, expected);
    let rows = || DotAttrs {
        lhs_contracting_dims: dims([1]),
        rhs_contracting_dims: dims([1]),
        ..DotAttrs::default()
    };
    assert_eq!(of_x(|b, x| b.dot_general(x, x, rows(), None)), expected);
    let as_f64 = of_x(|b, x| b.dot_general(x, x, rows(), Some(ElementType::F64)));
    let sums = Data::F64(vec![14., 32., 32., 77.]);
    assert_eq!(as_f64, ArrayLiteral::new(ElementType::F64, [2, 2], sums).unwrap().into());
    let by_row = DotAttrs { lhs_batch_dims: dims([0]), rhs_batch_dims: dims([0]), ..rows() };
    assert_eq!(of_x(|b, x| b.dot_general(x, x, by_row, None)), floats(&[2], &[14., 77.]));
    let made = of_x(|b, x| {
        let flat = b.reshape(x, [6])?;
        b.dot(flat, flat)
    });
    assert_eq!(made, floats(&[], &[91.]));
    // Sums of squares of 2x2, with the kernel (1, 2; 3, 4): 1 + 4 + 12 + 20, and so on.
    let made = of_x(|b, x| {
        let image = b.reshape(x, [1, 1, 2, 3])?;
        let kernel = b.iota(shape("f32[4]"), 0)?;
        let one = number(b, 1.0)?;
        let ones = b.broadcast(one, [4], [])?;
        let kernel = b.binary(Opcode::Add, kernel, ones)?;
        let kernel = b.reshape(kernel, [1, 1, 2, 2])?;
        b.convolution(image, kernel, ConvolutionAttrs::default(), None)
    });
    assert_eq!(made, floats(&[1, 1, 1, 2], &[37., 47.]));
    // One spatial dim, by two, of the rows as batch with a kernel of ones.
    let made = of_x(|b, x| {
        let image = b.reshape(x, [2, 3, 1])?;
        let one = number(b, 1.0)?;
        let kernel = b.broadcast(one, [2, 1, 1], [])?;
        let window = WindowDim { stride: 2, padding_high: 1, ..WindowDim::new(2) };
        let attrs = ConvolutionAttrs {
            window: [window].into_iter().collect(),
            dim_labels: ConvDims::nhwc(1),
            ..ConvolutionAttrs::default()
        };
        b.convolution(image, kernel, attrs, Some(ElementType::F32))
    });
    assert_eq!(made, floats(&[2, 2, 1], &[3., 3., 9., 6.]));
}

#[test]
fn indexing_ops() {
    let made = of_x(|b, x| {
        let (zero, two) = (index(b, 0)?, index(b, 2)?);
        // The second start is moved, so that two elements fit.
        b.dynamic_slice(x, [zero, two], [2, 2])
    });
    assert_eq!(made, floats(&[2, 2], &[2., 3., 5., 6.]));
    let made = of_x(|b, x| {
        let (one, zero) = (index(b, 1)?, index(b, 0)?);
        let update = number(b, 9.0)?;
        let update = b.broadcast(update, [1, 2], [])?;
        b.dynamic_update_slice(x, update, [one, zero])
    });
    assert_eq!(made, floats(&[2, 3], &[1., 2., 3., 9., 9., 6.]));
    let rows = |b: &mut Builder| b.constant(integers(&[3], &[1, 0, 1]));
    let made = of_x(|b, x| {
        let rows = rows(b)?;
        let attrs = GatherAttrs {
            offset_dims: dims([1]),
            collapsed_slice_dims: dims([0]),
            start_index_map: dims([0]),
            index_vector_dim: 1,
            slice_sizes: dims([1, 3]),
            ..GatherAttrs::default()
        };
        b.gather(x, rows, attrs)
    });
    assert_eq!(made, floats(&[3, 3], &[4., 5., 6., 1., 2., 3., 4., 5., 6.]));
    let made = of_x(|b, x| {
        let (rows, ten) = (rows(b)?, number(b, 10.0)?);
        let updates = b.broadcast(ten, [3, 3], [])?;
        let attrs = ScatterAttrs {
            update_window_dims: dims([1]),
            inserted_window_dims: dims([0]),
            scatter_dims_to_operand_dims: dims([0]),
            index_vector_dim: 1,
            ..ScatterAttrs::new(b.reducer(Opcode::Add, F32)?)
        };
        b.scatter([x], rows, [updates], attrs)
    });
    assert_eq!(made, floats(&[2, 3], &[11., 12., 13., 24., 25., 26.]));
}

#[test]
fn reductions_and_sorts() {
    let made = of_x(|b, x| {
        let (add, zero) = (b.reducer(Opcode::Add, F32)?, number(b, 0.0)?);
        b.reduce(x, zero, [0], add)
    });
    assert_eq!(made, floats(&[3], &[5., 7., 9.]));
    let made = of_x(|b, x| {
        let (add, zero) = (b.reducer(Opcode::Add, F32)?, number(b, 0.0)?);
        b.reduce_window(x, zero, [WindowDim::new(1), WindowDim::new(2)], add)
    });
    assert_eq!(made, floats(&[2, 2], &[3., 5., 9., 11.]));
    // Sums and products of rows, together.
    let made = of_x(|b, x| {
        let both = b.computation("both", |b| {
            let [sum, product, x, y] =
                ["sum", "product", "x", "y"].map(|name| b.parameter(name, Shape::scalar(F32)));
            let (sum, product) =
                (b.binary(Opcode::Add, sum?, x?)?, b.binary(Opcode::Multiply, product?, y?)?);
            b.tuple([sum, product])
        })?;
        let (zero, one) = (number(b, 0.0)?, number(b, 1.0)?);
        b.reduce_together([x, x], [zero, one], [1], both)
    });
    let expected = vec![floats(&[2], &[6., 15.]), floats(&[2], &[6., 120.])];
    assert_eq!(made, Literal::Tuple(expected));
    let made = of_x(|b, x| {
        let descending = b.computation("descending", |b| {
            let p = b.parameter("p", Shape::scalar(F32))?;
            let q = b.parameter("q", Shape::scalar(F32))?;
            b.compare(Direction::Gt, p, q)
        })?;
        b.sort([x], 1, descending, true)
    });
    assert_eq!(made, floats(&[2, 3], &[3., 2., 1., 6., 5., 4.]));
}

#[test]
fn control_ops() {
    let made = of_x(|b, x| {
        let twice = b.computation("twice", |b| {
            let p = b.parameter("p", shape("f32[2,3]"))?;
            b.binary(Opcode::Add, p, p)
        })?;
        let doubled = b.call(twice, [x])?;
        let held = b.optimization_barrier(doubled)?;
        let pair = b.tuple([x, held])?;
        b.get_tuple_element(pair, 1)
    });
    assert_eq!(made, floats(&[2, 3], &[2., 4., 6., 8., 10., 12.]));
    for (choice, expected) in [(0, 10.), (1, 20.), (2, 30.), (7, 30.), (-1, 30.)] {
        let made = of_x(|b, _| {
            let mut branches = Vec::new();
            for value in [10., 20., 30.] {
                let branch = b.computation(&format!("branch_{value}"), |b| {
                    b.parameter("unused", Shape::Tuple(Vec::new()))?;
                    number(b, value)
                })?;
                branches.push((branch, b.tuple([])?));
            }
            let choice = index(b, choice)?;
            b.conditional_by_index(choice, branches)
        });
        assert_eq!(made, floats(&[], &[expected]), "branch {choice}");
    }
}

/// The bits are those of ThreeFry-2x32 of its authors' test: key and counter 0
/// give 0x6b200159 and 0x99ba4efe.
#[test]
fn random_bits() {
    let mut b = Builder::new("random");
    let state = b.parameter("state", shape("u64[2]")).unwrap();
    let both = b.rng_bit_generator(RngAlgorithm::ThreeFry, state, shape("u32[2]")).unwrap();
    assert_eq!(b.module().shape(both).to_string(), "(u64[2], u32[2])");
    let bits = b.get_tuple_element(both, 1).unwrap();
    let module = b.finish(bits).unwrap();
    let zeros = ArrayLiteral::new(ElementType::U64, [2], Data::U64(vec![0, 0])).unwrap();
    let expected = Data::U32(vec![0x6b20_0159, 0x99ba_4efe]);
    let expected = ArrayLiteral::new(ElementType::U32, [2], expected).unwrap();
    assert_eq!(value(&module, &[zeros.into()]), expected.into());
}

#[test]
fn custom_calls_say_what_they_yield() -> Result<(), BuildError> {
    let mut b = Builder::new("custom");
    let x = b.parameter("x", shape("f32[4]"))?;
    let attrs = CustomCallAttrs {
        custom_call_target: "my_kernel".into(),
        api_version: ApiVersion::TypedFfi,
        ..CustomCallAttrs::default()
    };
    let y = b.custom_call(attrs, [x, x], shape("f32[2,2]"))?;
    let text = printed(&b.finish(y)?);
    let call = "f32[2,2] custom-call(%x, %x), custom_call_target=\"my_kernel\", api_version=API_VERSION_TYPED_FFI\n";
    assert!(text.contains(call), "{text}");
    Ok(())
}

/// Returns what each replica computes from its own inputs.
#[track_caller]
fn on_devices(replicas: usize, module: &Verified, inputs: &[Vec<Literal>]) -> Vec<Literal> {
    let text = printed(module);
    assert_eq!(printed(&parse_and_verify(&text).unwrap()), text);
    let devices = Devices { replicas, partitions: 1 };
    let outputs = Evaluation::new(module).devices(devices).run(inputs).unwrap();
    outputs.into_iter().map(|outputs| outputs.output).collect()
}

/// Returns what two replicas compute from `[1, 2]` and `[10, 20]`.
#[track_caller]
fn of_two(make: impl FnOnce(&mut Builder, InstId) -> Made) -> Vec<Literal> {
    let mut b = Builder::new("devices");
    b.header_mut().replica_count = Some(2);
    let x = b.parameter("x", shape("f32[2]")).unwrap();
    let root = make(&mut b, x).unwrap();
    let module = b.finish(root).unwrap();
    on_devices(2, &module, &[vec![floats(&[2], &[1., 2.])], vec![floats(&[2], &[10., 20.])]])
}

#[test]
fn collectives() {
    let made = of_two(|b, x| {
        let add = b.reducer(Opcode::Add, F32)?;
        b.all_reduce(x, AllReduceAttrs::new(add))
    });
    assert_eq!(made, [floats(&[2], &[11., 22.]), floats(&[2], &[11., 22.])]);
    let along = || AllGatherAttrs { dimensions: dims([0]), ..AllGatherAttrs::default() };
    let made = of_two(|b, x| b.all_gather(x, 2, along()));
    let gathered = floats(&[4], &[1., 2., 10., 20.]);
    assert_eq!(made, [gathered.clone(), gathered]);
    let made = of_two(|b, x| {
        let add = b.reducer(Opcode::Add, F32)?;
        b.reduce_scatter(x, 2, ReduceScatterAttrs::new(0, add))
    });
    assert_eq!(made, [floats(&[1], &[11.]), floats(&[1], &[22.])]);
    let made = of_two(|b, x| {
        let attrs =
            AllToAllAttrs { dimensions: Some(Dims::from_slice(&[0])), ..Default::default() };
        b.all_to_all([x], attrs)
    });
    assert_eq!(made, [floats(&[2], &[1., 10.]), floats(&[2], &[2., 20.])]);
    let made = of_two(|b, x| {
        let attrs = PermuteAttrs { source_target_pairs: vec![(0, 1)], ..Default::default() };
        b.collective_permute(x, attrs)
    });
    assert_eq!(made, [floats(&[2], &[0., 0.]), floats(&[2], &[1., 2.])]);
    let made = of_two(|b, _| {
        let (replica, partition) = (b.replica_id()?, b.partition_id()?);
        let both = b.tuple([replica, partition])?;
        Ok(both)
    });
    let number = |value| Literal::scalar(ElementType::U32, value).unwrap();
    let expected = |replica: u32| Literal::Tuple(vec![number(replica), number(0_u32)]);
    assert_eq!(made, [expected(0), expected(1)]);
}
