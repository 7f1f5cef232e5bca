//! Tests that a misfit is refused by the method that received it, with the method's name.

use super::{F32, f32_of};
use crate::common::{self, shape};
use tilewright_ir::ops::collective::{AllGatherAttrs, AllToAllAttrs, ReduceScatterAttrs};
use tilewright_ir::ops::contract::{ConvolutionAttrs, DotAttrs};
use tilewright_ir::ops::control::CustomCallAttrs;
use tilewright_ir::ops::dims::{PadDim, WindowDim};
use tilewright_ir::ops::elementwise::Direction;
use tilewright_ir::ops::indexing::{GatherAttrs, ScatterAttrs};
use tilewright_ir::ops::random::RngAlgorithm;
use tilewright_ir::{
    BuildError, Builder, CompId, ElementType, InstId, Literal, Op, Opcode, Shape, ShapeErrorKind,
    dims,
};

/// Values of all kinds.
struct Values {
    b: Builder,
    /// `f32[2,3]`
    x: InstId,
    /// `f32[3]`
    y: InstId,
    /// `(f32[2])`
    t: InstId,
    /// `f32[]`
    zero: InstId,
    /// `s32[5]`
    indices: InstId,
    /// `f32[1,1,2,3]`
    image: InstId,
    add: CompId,
}

fn values() -> Values {
    let mut b = Builder::new("errors");
    let x = b.parameter("x", shape("f32[2,3]")).unwrap();
    let y = b.parameter("y", shape("f32[3]")).unwrap();
    let t = b.parameter("t", shape("(f32[2])")).unwrap();
    let indices = b.parameter("indices", shape("s32[5]")).unwrap();
    let image = b.parameter("image", shape("f32[1,1,2,3]")).unwrap();
    let zero = f32_of(&mut b, 0.0).unwrap();
    let add = b.reducer(Opcode::Add, F32).unwrap();
    Values { b, x, y, t, zero, indices, image, add }
}

/// Returns the error of a failing call. The call adds nothing.
#[track_caller]
fn refusal<T>(v: &mut Values, f: impl FnOnce(&mut Values) -> Result<T, BuildError>) -> BuildError {
    let before = common::picture(v.b.module());
    let error = f(v).err().expect("it does not fit");
    assert_eq!(common::picture(v.b.module()), before);
    error
}

#[track_caller]
fn argument<T>(
    expected: (&str, &str),
    message: &str,
    f: impl FnOnce(&mut Values) -> Result<T, BuildError>,
) {
    let error = refusal(&mut values(), f);
    assert_eq!(error.to_string(), message);
    match error {
        BuildError::Argument { method, argument, .. } => assert_eq!((method, argument), expected),
        other => panic!("{other:?}"),
    }
}

#[track_caller]
fn misfit<T>(
    kind: ShapeErrorKind,
    begins: &str,
    part: &str,
    f: impl FnOnce(&mut Values) -> Result<T, BuildError>,
) {
    let error = refusal(&mut values(), f);
    let message = error.to_string();
    assert!(message.starts_with(begins), "{message}");
    assert!(message.contains(part), "{message}");
    match error {
        BuildError::Shape { method, error, .. } => {
            assert_eq!(error.kind, kind, "{message}");
            assert!(begins.starts_with(&format!("`{method}`")), "{message}");
        }
        other => panic!("{other:?}"),
    }
}

/// One init for two arrays would be taken for the init of one and an array more.
#[test]
fn as_many_of_each() {
    let inits = "`reduce_together`: it takes an init for each array, and has 3 for 1";
    argument(("reduce_together", "inits"), inits, |v| {
        v.b.reduce_together([v.x], [v.x, v.zero, v.zero], [0], v.add)
    });
    let updates = "`scatter`: it takes an update for each operand, and has 0 for 2";
    argument(("scatter", "updates"), updates, |v| {
        v.b.scatter([v.y, v.indices], v.y, [], ScatterAttrs::new(v.add))
    });
}

#[test]
fn dims_that_there_are_not() {
    let two = "f32[2,3] does not exist; dims are 0 to 1";
    let of_reduce = ("reduce", "dimensions");
    argument(of_reduce, &format!("`reduce`: dimension -1 of {two}"), |v| {
        v.b.reduce(v.x, v.zero, [-1], v.add)
    });
    argument(of_reduce, &format!("`reduce`: dimension 2 of {two}"), |v| {
        v.b.reduce(v.x, v.zero, [0, 2], v.add)
    });
    let only = "`reduce`: dimension 1 of f32[3] does not exist; its only dim is 0";
    argument(of_reduce, only, |v| v.b.reduce(v.y, v.zero, [1], v.add));
    let none = "`reduce`: dimension 0 of f32[] does not exist; it has no dims";
    argument(of_reduce, none, |v| v.b.reduce(v.zero, v.zero, [0], v.add));
    let together = format!("`reduce_together`: dimension 5 of {two}");
    argument(("reduce_together", "dimensions"), &together, |v| {
        v.b.reduce_together([v.x, v.x], [v.zero, v.zero], [5], v.add)
    });
    let transpose = format!("`transpose`: permutation: dimension -2 of {two}");
    argument(("transpose", "permutation"), &transpose, |v| v.b.transpose(v.x, [-2, 0]));
    let reverse = format!("`reverse`: dimension {} of {two}", i64::MAX);
    argument(("reverse", "dimensions"), &reverse, |v| v.b.reverse(v.x, [i64::MAX]));
    let broadcast = "`broadcast`: dimension 2 of f32[2,3] does not exist; dims are 0 to 1";
    argument(("broadcast", "dimensions"), broadcast, |v| v.b.broadcast(v.y, [2, 3], [2]));
    let iota = "`iota`: dimension 1 of f32[2] does not exist; its only dim is 0";
    argument(("iota", "dimension"), iota, |v| v.b.iota(shape("f32[2]"), 1));
    let concatenate = format!("`concatenate`: dimension -1 of {two}");
    argument(("concatenate", "dimension"), &concatenate, |v| v.b.concatenate([v.x, v.x], -1));
    let sort = format!("`sort`: dimension 2 of {two}");
    argument(("sort", "dimension"), &sort, |v| v.b.sort([v.x], 2, v.add, false));
    let all_to_all = format!("`all_to_all`: dimension 2 of {two}");
    argument(("all_to_all", "dimensions"), &all_to_all, |v| {
        let attrs = AllToAllAttrs { dimensions: Some(dims([2])), ..AllToAllAttrs::default() };
        v.b.all_to_all([v.x], attrs)
    });
}

#[test]
fn dims_of_contractions_that_there_are_not() {
    let two = "f32[2,3] does not exist; dims are 0 to 1";
    let one = "f32[3] does not exist; its only dim is 0";
    let none = DotAttrs::default;
    let lists = [
        ("lhs_batch_dims", DotAttrs { lhs_batch_dims: dims([9]), ..none() }, two),
        ("lhs_contracting_dims", DotAttrs { lhs_contracting_dims: dims([9]), ..none() }, two),
        ("rhs_batch_dims", DotAttrs { rhs_batch_dims: dims([9]), ..none() }, one),
        ("rhs_contracting_dims", DotAttrs { rhs_contracting_dims: dims([9]), ..none() }, one),
    ];
    for (list, attrs, what) in lists {
        let message = format!("`dot_general`: {list}: dimension 9 of {what}");
        argument(("dot_general", list), &message, |v| v.b.dot_general(v.x, v.y, attrs, None));
    }
    // With two spatial dims, the default labels name dims 0 to 3.
    let input = format!("`convolution`: dim_labels of the input: dimension 2 of {two}");
    argument(("convolution", "dim_labels of the input"), &input, |v| {
        v.b.convolution(v.x, v.x, ConvolutionAttrs::default(), None)
    });
    let kernel = format!("`convolution`: dim_labels of the kernel: dimension 1 of {one}");
    argument(("convolution", "dim_labels of the kernel"), &kernel, |v| {
        v.b.convolution(v.image, v.y, ConvolutionAttrs::default(), None)
    });
}

#[test]
fn dims_of_indices_that_there_are_not() {
    let two = "f32[2,3] does not exist; dims are 0 to 1";
    let of_indices = "s32[5] does not exist; its only dim is 0";
    let none = GatherAttrs::default;
    let lists = [
        ("collapsed_slice_dims", GatherAttrs { collapsed_slice_dims: dims([-1]), ..none() }, two),
        ("start_index_map", GatherAttrs { start_index_map: dims([-1]), ..none() }, two),
        ("operand_batching_dims", GatherAttrs { operand_batching_dims: dims([-1]), ..none() }, two),
        (
            "start_indices_batching_dims",
            GatherAttrs { start_indices_batching_dims: dims([-1]), ..none() },
            of_indices,
        ),
    ];
    for (list, attrs, what) in lists {
        let message = format!("`gather`: {list}: dimension -1 of {what}");
        argument(("gather", list), &message, |v| v.b.gather(v.x, v.indices, attrs));
    }
    let none = |v: &Values| ScatterAttrs::new(v.add);
    type Set = fn(&mut ScatterAttrs);
    let lists: [(&str, Set, &str); 4] = [
        ("inserted_window_dims", |a| a.inserted_window_dims = dims([2]), two),
        ("scatter_dims_to_operand_dims", |a| a.scatter_dims_to_operand_dims = dims([2]), two),
        ("input_batching_dims", |a| a.input_batching_dims = dims([2]), two),
        (
            "scatter_indices_batching_dims",
            |a| a.scatter_indices_batching_dims = dims([2]),
            of_indices,
        ),
    ];
    for (list, set, what) in lists {
        let message = format!("`scatter`: {list}: dimension 2 of {what}");
        argument(("scatter", list), &message, |v| {
            let mut attrs = none(v);
            set(&mut attrs);
            v.b.scatter([v.x], v.indices, [v.x], attrs)
        });
    }
}

#[test]
fn sizes_that_no_dim_can_have() {
    let message = |method, list| format!("`{method}`: {list}: size -3 of dim 1 is negative");
    argument(("reshape", "dims"), &message("reshape", "dims"), |v| v.b.reshape(v.x, [2, -3]));
    argument(("broadcast", "dims"), &message("broadcast", "dims"), |v| {
        v.b.broadcast(v.y, [2, -3], [1])
    });
    argument(("dynamic_slice", "slice_sizes"), &message("dynamic_slice", "slice_sizes"), |v| {
        v.b.dynamic_slice(v.x, [v.zero, v.zero], [1, -3])
    });
    argument(("gather", "slice_sizes"), &message("gather", "slice_sizes"), |v| {
        let attrs = GatherAttrs { slice_sizes: dims([1, -3]), ..GatherAttrs::default() };
        v.b.gather(v.x, v.indices, attrs)
    });
    let count = "`slice`: limit_indices: f32[2,3] has 2 dims, not 1";
    argument(("slice", "limit_indices"), count, |v| v.b.slice(v.x, [0, 0], [2], [1, 1]));
}

#[test]
fn devices_that_do_not_share_evenly() {
    let shared = |method, count| {
        format!("`{method}`: shard_count: dim 1 of f32[2,3] cannot be shared by {count} devices")
    };
    let along = |dims: &[i64]| AllGatherAttrs { dimensions: dims.into(), ..Default::default() };
    for count in [0, -1, i64::MAX] {
        argument(("all_gather", "shard_count"), &shared("all_gather", count), |v| {
            v.b.all_gather(v.x, count, along(&[1]))
        });
    }
    for count in [0, -3, 2] {
        argument(("reduce_scatter", "shard_count"), &shared("reduce_scatter", count), |v| {
            v.b.reduce_scatter(v.x, count, ReduceScatterAttrs::new(1, v.add))
        });
    }
    let two = "`all_gather`: dimensions: it takes one dim, not 2";
    argument(("all_gather", "dimensions"), two, |v| v.b.all_gather(v.x, 2, along(&[0, 1])));
    let none = "`all_gather`: dimension 2 of f32[2,3] does not exist; dims are 0 to 1";
    argument(("all_gather", "dimensions"), none, |v| v.b.all_gather(v.x, 2, along(&[2])));
}

#[test]
fn opcodes_of_other_methods() {
    let argument = |message: &str, f: &dyn Fn(&mut Values) -> Result<(), BuildError>| {
        let method = message.split('`').nth(1).unwrap();
        argument((method, "opcode"), message, |v| f(v));
    };
    for opcode in [Opcode::Dot, Opcode::Negate, Opcode::Select, Opcode::AddDependency] {
        let message =
            format!("`binary`: opcode: `{opcode}` is not an elementwise op of two operands");
        argument(&message, &|v| v.b.binary(opcode, v.x, v.x).map(drop));
    }
    for opcode in [Opcode::Copy, Opcode::Add, Opcode::Iota, Opcode::Constant, Opcode::Parameter] {
        let message =
            format!("`unary`: opcode: `{opcode}` is not an elementwise op of one operand");
        argument(&message, &|v| v.b.unary(opcode, v.x).map(drop));
    }
    let two = "`reducer`: opcode: `tuple` is not an elementwise op of two operands";
    argument(two, &|v| v.b.reducer(Opcode::Tuple, F32).map(drop));
    let compare = "`binary`: opcode: `compare` needs its direction: call `compare`";
    argument(compare, &|v| v.b.binary(Opcode::Compare, v.x, v.x).map(drop));
    let convert = "`unary`: opcode: `convert` needs the type of its result: call `convert`";
    argument(convert, &|v| v.b.unary(Opcode::Convert, v.x).map(drop));
    let stochastic =
        "`binary`: opcode: `stochastic-convert` needs the type of its result: call `op_with_shape`";
    argument(stochastic, &|v| v.b.binary(Opcode::StochasticConvert, v.x, v.x).map(drop));
    let precision = "`unary`: opcode: `reduce-precision` needs the numbers of its bits: call `reduce_precision`";
    argument(precision, &|v| v.b.unary(Opcode::ReducePrecision, v.x).map(drop));
    // All others of one or two operands need nothing.
    let one_or_two = |o: &&Opcode| o.is_elementwise() && matches!(o.arity().min, 1 | 2);
    let others =
        [Opcode::Compare, Opcode::Convert, Opcode::StochasticConvert, Opcode::ReducePrecision];
    for &opcode in Opcode::ALL.iter().filter(one_or_two).filter(|o| !others.contains(o)) {
        let mut v = values();
        let made = match opcode.arity().min {
            1 => v.b.unary(opcode, v.x),
            _ => v.b.binary(opcode, v.x, v.x),
        };
        let refused = made.is_err_and(|error| !matches!(error, BuildError::Shape { .. }));
        assert!(!refused, "{opcode}");
    }
}

#[test]
fn values_that_are_no_arrays() {
    for (method, f) in [
        ("reshape", (|v| v.b.reshape(v.t, [2])) as fn(&mut Values) -> Result<InstId, BuildError>),
        ("convert", |v| v.b.convert(v.t, F32)),
        ("dot", |v| v.b.dot(v.t, v.x)),
        ("reduce", |v| v.b.reduce(v.t, v.zero, [0], v.add)),
        ("map", |v| v.b.map([v.t], v.add)),
    ] {
        let message = format!("`{method}`: operand `t` is (f32[2]), not an array");
        argument((method, "operand"), &message, f);
    }
    let vectors = "`dot`: rhs: f32[1,1,2,3] is neither vector nor matrix; call `dot_general`";
    argument(("dot", "rhs"), vectors, |v| v.b.dot(v.x, v.image));
    let nothing = "`map`: operands: it takes one operand at least";
    argument(("map", "operands"), nothing, |v| v.b.map([], v.add));
    let error = refusal(&mut values(), |v| v.b.array_shape(v.t).map(drop));
    assert!(matches!(&error, BuildError::NotAnArray { name, .. } if name == "t"));
    assert_eq!(error.to_string(), "`array_shape`: `t` is not an array");
}

/// Errors that only the op's rule detects begin with the call: method, operands and their
/// shapes.
#[test]
fn shapes_that_do_not_fit() {
    use ShapeErrorKind::{Attribute, Callee, NeedsShape, Operand, OperandCount, Result};
    let x_and_y = "`binary` of `x` f32[2,3] and `y` f32[3]: ";
    misfit(Operand, x_and_y, "broadcast the smaller one", |v| v.b.binary(Opcode::Add, v.x, v.y));
    misfit(Operand, "`unary` of `t` (f32[2]): ", "must be an array", |v| {
        v.b.unary(Opcode::Exp, v.t)
    });
    misfit(Operand, "`compare` of `x` f32[2,3] and `y` f32[3]: ", "`compare`", |v| {
        v.b.compare(Direction::Eq, v.x, v.y)
    });
    misfit(Operand, "`select` of `x` f32[2,3], `x` f32[2,3] and `x` f32[2,3]: ", "pred[]", |v| {
        v.b.select(v.x, v.x, v.x)
    });
    misfit(Operand, "`clamp` of `y` f32[3], `x` f32[2,3] and `constant` f32[]", "bounds", |v| {
        v.b.clamp(v.y, v.x, v.zero)
    });
    misfit(Attribute, "`reduce_precision` of `x` f32[2,3]: ", "exponent_bits", |v| {
        v.b.reduce_precision(v.x, 0, 4)
    });
    misfit(Callee, "`map` of `x` f32[2,3]: ", "takes 2 parameters", |v| v.b.map([v.x], v.add));
    misfit(Result, "`reshape` of `x` f32[2,3]: ", "keeps the number of elements", |v| {
        v.b.reshape(v.x, [7])
    });
    misfit(Result, "`broadcast` of `y` f32[3]: ", "keeps the sizes", |v| {
        v.b.broadcast(v.y, [2, 3], [0])
    });
    misfit(Attribute, "`transpose` of `x` f32[2,3]: ", "dim 0 twice", |v| {
        v.b.transpose(v.x, [0, 0])
    });
    misfit(Attribute, "`reverse` of `x` f32[2,3]: ", "dim 1 twice", |v| v.b.reverse(v.x, [1, 1]));
    misfit(Attribute, "`reduce` of `x` f32[2,3] and `constant` f32[]: ", "dim 1 twice", |v| {
        v.b.reduce(v.x, v.zero, [1, 1], v.add)
    });
    misfit(OperandCount, "`concatenate`: ", "at least 1 operand", |v| v.b.concatenate([], 0));
    misfit(Operand, "`concatenate` of `x` f32[2,3] and `image`", "differ only in dim 0", |v| {
        v.b.concatenate([v.x, v.image], 0)
    });
    misfit(Attribute, "`slice` of `x` f32[2,3]: ", "range [0:4:1] does not fit dim 1", |v| {
        v.b.slice(v.x, [0, 0], [2, 4], [1, 1])
    });
    misfit(Attribute, "`pad` of `x` f32[2,3] and `constant` f32[]: ", "padding for 2 dims", |v| {
        v.b.pad(v.x, v.zero, [PadDim::default()])
    });
    misfit(Result, "`bitcast_convert` of `x` f32[2,3]: ", "cannot turn", |v| {
        v.b.bitcast_convert(v.x, ElementType::F64)
    });
    misfit(Attribute, "`dot` of `x` f32[2,3] and `x` f32[2,3]: ", "equal size", |v| {
        v.b.dot(v.x, v.x)
    });
    misfit(Operand, "`dynamic_slice` of `x` f32[2,3] and `y` f32[3]: ", "integer", |v| {
        v.b.dynamic_slice(v.x, [v.y], [1, 1])
    });
    misfit(Operand, "`dynamic_update_slice` of `x` f32[2,3] and `x`", "2 scalar indices", |v| {
        v.b.dynamic_update_slice(v.x, v.x, [])
    });
    misfit(Attribute, "`reduce_window` of `x` f32[2,3] and `constant` f32[]: ", "1 dims", |v| {
        v.b.reduce_window(v.x, v.zero, [WindowDim::new(2)], v.add)
    });
    misfit(Callee, "`sort` of `x` f32[2,3]: ", "yields pred[]", |v| {
        v.b.sort([v.x], 0, v.add, false)
    });
    misfit(Operand, "`get_tuple_element` of `x` f32[2,3]: ", "takes a tuple", |v| {
        v.b.get_tuple_element(v.x, 0)
    });
    misfit(Attribute, "`get_tuple_element` of `t` (f32[2]): ", "tuple of 1", |v| {
        v.b.get_tuple_element(v.t, -1)
    });
    misfit(Callee, "`call` of `x` f32[2,3]: ", "takes 2 parameters", |v| v.b.call(v.add, [v.x]));
    misfit(Callee, "`while_loop` of `x` f32[2,3]: ", "takes 2 parameters", |v| {
        v.b.while_loop(v.add, v.add, v.x)
    });
    let conditional = "`conditional` of `x` f32[2,3], `y` f32[3] and `y` f32[3]: ";
    misfit(Operand, conditional, "chooses by pred[]", |v| {
        v.b.conditional(v.x, v.y, v.add, v.y, v.add)
    });
    misfit(OperandCount, "`conditional_by_index` of `x` f32[2,3]: ", "not 1", |v| {
        v.b.conditional_by_index(v.x, [])
    });
    let by_index = "`conditional_by_index` of `x` f32[2,3] and `x` f32[2,3]: ";
    misfit(Operand, by_index, "chooses by s32[]", |v| {
        v.b.conditional_by_index(v.x, [(v.add, v.x)])
    });
    misfit(Result, "`custom_call`: ", "u64[]", |v| {
        let target = "GetRngSeed".into();
        let attrs = CustomCallAttrs { custom_call_target: target, ..Default::default() };
        v.b.custom_call(attrs, [], shape("f32[]"))
    });
    misfit(Result, "`rng_bit_generator` of `x` f32[2,3]: ", "an array", |v| {
        v.b.rng_bit_generator(RngAlgorithm::ThreeFry, v.x, Shape::Token)
    });
    misfit(Operand, "`all_to_all` of `x` f32[2,3] and `y` f32[3]: ", "one shape", |v| {
        v.b.all_to_all([v.x, v.y], AllToAllAttrs::default())
    });
    misfit(NeedsShape, "`op` of `x` f32[2,3]: ", "write it", |v| v.b.op(Op::Convert, [v.x]));
    misfit(Result, "`op_with_shape` of `x` f32[2,3]: ", "yields f32[2,3]", |v| {
        v.b.op_with_shape(Op::Sinh, shape("f32[3]"), [v.x])
    });
    misfit(Result, "`iota`: ", "not pred", |v| v.b.iota(shape("pred[2]"), 0));
    let many = "`op` of `x` f32[2,3], `x` f32[2,3], `x` f32[2,3], `x` f32[2,3] and 2 more: ";
    misfit(OperandCount, many, "1 operand, not 6", |v| v.b.op(Op::Sinh, [v.x; 6]));
}

/// Ids of another builder may be those of other values here, but none is out of
/// range.
#[test]
fn values_and_computations_of_other_builders() {
    let mut other = values();
    let far = (0..9).map(|_| other.b.unary(Opcode::Negate, other.x).unwrap()).last().unwrap();
    let max = other.b.reducer(Opcode::Maximum, F32).unwrap();
    let unknown =
        |method: &str, what: &str| format!("`{method}`: {what} was not made by this builder");
    let instruction = "instruction 17";
    let of = |method| unknown(method, instruction);
    argument(("unary", "operand"), &of("unary"), |v| v.b.unary(Opcode::Negate, far));
    argument(("reshape", "operand"), &of("reshape"), |v| v.b.reshape(far, [1]));
    argument(("tuple", "operand"), &of("tuple"), |v| v.b.tuple([v.x, far]));
    argument(("set_metadata", "operand"), &of("set_metadata"), |v| {
        v.b.set_metadata(far, Default::default())
    });
    argument(("set_frontend_attributes", "operand"), &of("set_frontend_attributes"), |v| {
        v.b.set_frontend_attributes(far, Vec::new())
    });
    argument(("array_shape", "operand"), &of("array_shape"), |v| v.b.array_shape(far).map(drop));
    argument(("computation", "operand"), &of("computation"), |v| v.b.computation("c", |_| Ok(far)));
    let error = values().b.finish(far).unwrap_err();
    assert_eq!(error.to_string(), of("finish"));
    argument(("call", "computation"), &unknown("call", "computation 2"), |v| {
        v.b.call(max, [v.zero, v.zero])
    });
}

#[test]
fn constants_that_cannot_be_made() {
    let error = BuildError::from(Literal::scalar(ElementType::S32, 1.0_f32).unwrap_err());
    assert!(matches!(error, BuildError::Literal(_)));
}
