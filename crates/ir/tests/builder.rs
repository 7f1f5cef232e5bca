//! How front ends make modules.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test panics where it fails")]

mod common;

use common::{names, shape};
use tilewright_ir::ops::control::GetTupleElementAttrs;
use tilewright_ir::ops::elementwise::Direction;
use tilewright_ir::{
    BuildError, Builder, EditError, ElementType, InstId, Literal, Op, Opcode, Shape,
    ShapeErrorKind, verify,
};

const F32: ElementType = ElementType::F32;

fn f32_of(b: &mut Builder, value: f32) -> Result<InstId, BuildError> {
    b.constant(Literal::scalar(F32, value).unwrap())
}

/// Group norm of `[2,8,8,6]` in 3 groups, as JAX writes it.
#[test]
fn group_norm_by_hand() -> Result<(), BuildError> {
    let mut b = Builder::new("group_norm");
    let x = b.parameter("x", shape("f32[2,8,8,6]"))?;
    let scale = b.parameter("scale", shape("f32[6]"))?;
    let bias = b.parameter("bias", shape("f32[6]"))?;
    let add = b.reducer(Opcode::Add, F32)?;
    let zero = f32_of(&mut b, 0.0)?;
    let count = f32_of(&mut b, 128.0)?;
    let epsilon = f32_of(&mut b, 1e-5)?;
    let (grouped, stats) = ([2, 8, 8, 3, 2], [2, 3]);

    let g = b.reshape(x, &grouped)?;
    let counts = b.broadcast(count, &stats, &[])?;
    let sum = b.reduce(g, zero, &[1, 2, 4], add)?;
    let mean = b.binary(Opcode::Divide, sum, counts)?;
    let mean = b.broadcast(mean, &grouped, &[0, 3])?;
    let centred = b.binary(Opcode::Subtract, g, mean)?;
    let squared = b.binary(Opcode::Multiply, centred, centred)?;
    let sum = b.reduce(squared, zero, &[1, 2, 4], add)?;
    let variance = b.binary(Opcode::Divide, sum, counts)?;
    let epsilon = b.broadcast(epsilon, &stats, &[])?;
    let variance = b.binary(Opcode::Add, variance, epsilon)?;
    let inverse = b.unary(Opcode::Rsqrt, variance)?;
    let inverse = b.broadcast(inverse, &grouped, &[0, 3])?;
    let normal = b.binary(Opcode::Multiply, centred, inverse)?;
    let normal = b.reshape(normal, &[2, 8, 8, 6])?;
    let scale = b.broadcast(scale, &[2, 8, 8, 6], &[3])?;
    let bias = b.broadcast(bias, &[2, 8, 8, 6], &[3])?;
    let scaled = b.binary(Opcode::Multiply, normal, scale)?;
    let result = b.binary(Opcode::Add, scaled, bias)?;
    let module = b.finish(result)?;

    let entry = module.entry().unwrap();
    assert_eq!(module.computation(entry).name(), "main");
    assert_eq!(module.computation(entry).root(), Some(result));
    assert_eq!(module.computation(entry).parameters().len(), 3);
    let order: Vec<&str> =
        module.computations().iter().map(|&c| module.computation(c).name()).collect();
    assert_eq!(order, ["add", "main"], "callees stand before callers");
    assert_eq!(names(&module, entry)[..4], ["x", "scale", "bias", "constant"]);
    assert_eq!(module.instruction_count(), 28);
    assert!(verify(module.into_inner()).is_ok());
    Ok(())
}

#[test]
fn names_are_made_up() -> Result<(), BuildError> {
    let mut b = Builder::new("names");
    let x = b.parameter("x", shape("f32[4]"))?;
    let y = b.parameter("x", shape("f32[4]"))?;
    let a = b.binary(Opcode::Add, x, y)?;
    let c = b.binary(Opcode::Add, a, y)?;
    let module = b.finish(c)?;
    assert_eq!(names(&module, module.entry().unwrap()), ["x", "x.1", "add", "add.1"]);
    Ok(())
}

#[test]
fn nested_computations_stand_before_those_they_are_called_from() -> Result<(), BuildError> {
    let mut b = Builder::new("nested");
    let x = b.parameter("x", shape("f32[4]"))?;
    let zero = f32_of(&mut b, 0.0)?;
    let outer = b.computation("outer", |b| {
        let p = b.parameter("p", shape("f32[4]"))?;
        let max = b.reducer(Opcode::Maximum, F32)?;
        let zero = f32_of(b, 0.0)?;
        b.reduce(p, zero, &[0], max)
    })?;
    let first = b.reducer(Opcode::Add, F32)?;
    let second = b.reducer(Opcode::Add, F32)?;
    assert_ne!(first, second);
    let sum = b.reduce(x, zero, &[0], second)?;
    let call = tilewright_ir::ops::control::CallAttrs { to_apply: outer, is_composite: false };
    let called = b.op(Op::Call(Box::new(call)), &[x])?;
    let result = b.binary(Opcode::Add, sum, called)?;
    let module = b.finish(result)?;
    let order: Vec<&str> =
        module.computations().iter().map(|&c| module.computation(c).name()).collect();
    assert_eq!(order, ["maximum", "outer", "add", "add.1", "main"]);
    Ok(())
}

#[test]
fn every_shorthand() -> Result<(), BuildError> {
    let mut b = Builder::new("shorthands");
    let x = b.parameter("x", shape("s32[2,3]"))?;
    let i = b.iota(shape("s32[2,3]"), 1)?;
    let less = b.compare(Direction::Lt, x, i)?;
    let chosen = b.op(Op::Select, &[less, x, i])?;
    let turned = b.transpose(chosen, &[1, 0])?;
    let wide = b.op_with_shape(Op::Convert, shape("f32[3,2]"), &[turned])?;
    let negative = b.unary(Opcode::Negate, wide)?;
    let pair = b.op(Op::Tuple, &[negative, less])?;
    let first = Op::GetTupleElement(Box::new(GetTupleElementAttrs { index: 0 }));
    let first = b.op(first, &[pair])?;
    assert_eq!(b.module().shape(first).to_string(), "f32[3,2]");
    assert_eq!(b.module().shape(pair).to_string(), "(f32[3,2], pred[2,3])");
    assert_eq!(b.module().instruction_count(), 9);
    assert_eq!(b.finish(pair)?.name, "shorthands");
    Ok(())
}

#[track_caller]
fn shape_error(result: Result<InstId, BuildError>, kind: ShapeErrorKind, part: &str) {
    match result {
        Err(BuildError::Shape(error)) => {
            assert_eq!(error.kind, kind, "{error}");
            assert!(error.message.contains(part), "{error}");
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_does_not_fit_is_not_added() {
    let mut b = Builder::new("errors");
    let x = b.parameter("x", shape("f32[2,3]")).unwrap();
    let y = b.parameter("y", shape("f32[3]")).unwrap();
    let t = b.parameter("t", shape("(f32[2])")).unwrap();
    let before = common::picture(b.module());
    use ShapeErrorKind::{Attribute, NeedsShape, Operand, Result};
    shape_error(b.binary(Opcode::Add, x, y), Operand, "broadcast the smaller one");
    shape_error(b.unary(Opcode::Exp, t), Operand, "must be an array");
    shape_error(b.reshape(x, &[7]), Result, "keeps the number of elements");
    shape_error(b.broadcast(y, &[2, 3], &[0]), Result, "keeps the sizes");
    shape_error(b.transpose(x, &[0, 0]), Attribute, "dim 0 twice");
    shape_error(b.iota(shape("f32[2]"), 1), Attribute, "names dim 1");
    shape_error(b.op(Op::Convert, &[x]), NeedsShape, "write it");
    shape_error(b.op_with_shape(Op::Sinh, shape("f32[3]"), &[x]), Result, "yields f32[2,3]");
    let error = b.reshape(t, &[2]).unwrap_err();
    assert!(matches!(&error, BuildError::NotAnArray(name) if name == "t"));
    assert_eq!(error.to_string(), "`t` is not an array");
    for opcode in [Opcode::Compare, Opcode::Iota, Opcode::Constant, Opcode::Parameter] {
        let error = b.unary(opcode, x).unwrap_err();
        assert!(matches!(error, BuildError::NeedsAttributes(o) if o == opcode), "{error}");
    }
    assert_eq!(common::picture(b.module()), before);
}

#[test]
fn values_of_another_computation_are_refused() -> std::result::Result<(), BuildError> {
    let mut b = Builder::new("scopes");
    let x = b.parameter("x", shape("f32[]"))?;
    let used = b.computation("uses_outer", |b| b.unary(Opcode::Negate, x));
    assert!(
        matches!(used, Err(BuildError::Edit(EditError::ForeignOperand(ref n))) if n == "x"),
        "{used:?}"
    );
    let returned = b.computation("returns_outer", |b| {
        b.parameter("p", Shape::scalar(F32))?;
        Ok(x)
    });
    assert!(
        matches!(returned, Err(BuildError::Edit(EditError::ForeignOperand(ref n))) if n == "x"),
        "{returned:?}"
    );
    assert_eq!(b.module().computations().len(), 1, "neither is in the module");
    // The builder is back where it was.
    let mut inner = x;
    b.computation("inner", |b| {
        inner = b.parameter("p", Shape::scalar(F32))?;
        Ok(inner)
    })?;
    let result = b.unary(Opcode::Negate, x)?;
    assert_eq!(b.module().computation(b.module().entry().unwrap()).root(), Some(result));
    let error = b.finish(inner).unwrap_err();
    assert!(matches!(error, BuildError::Edit(EditError::ForeignOperand(_))), "{error}");
    Ok(())
}

#[test]
fn many_reducers_have_names_of_their_own() -> Result<(), BuildError> {
    let mut b = Builder::new("many");
    let mut x = b.parameter("x", shape("f32[4]"))?;
    b.computation("add.1", |b| b.parameter("p", Shape::scalar(F32)))?;
    let zero = f32_of(&mut b, 0.0)?;
    // Quadratic time would show.
    for _ in 0..3_000 {
        let add = b.reducer(Opcode::Add, F32)?;
        let sum = b.reduce(x, zero, &[0], add)?;
        x = b.broadcast(sum, &[4], &[])?;
    }
    let module = b.finish(x)?;
    let order: Vec<&str> =
        module.computations().iter().map(|&c| module.computation(c).name()).collect();
    assert_eq!(order[..4], ["add.1", "add", "add.2", "add.3"]);
    assert_eq!(order.last(), Some(&"main"));
    Ok(())
}

#[test]
fn free_names_are_those_of_no_computation() -> Result<(), BuildError> {
    let mut b = Builder::new("free");
    b.computation("pick.1", |b| b.parameter("p", Shape::scalar(F32)))?;
    b.reducer(Opcode::Add, F32)?;
    assert_eq!(b.free_computation_name("main"), "main.1");
    assert_eq!(b.free_computation_name("add"), "add.1");
    assert_eq!(b.free_computation_name("pick"), "pick");
    assert_eq!(b.free_computation_name("pick"), "pick.2", "none is told twice");
    Ok(())
}

#[test]
fn what_finish_finds_is_listed() {
    let mut b = Builder::new("rejected");
    let huge = b.parameter("huge", shape("f32[4294967296,4294967296]")).unwrap();
    let error = b.finish(huge).unwrap_err();
    let expected = "V017: instruction `huge`: f32[4294967296,4294967296] has more bytes than 64 bits can count";
    assert_eq!(error.to_string(), expected);
}
