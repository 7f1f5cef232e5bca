//! How front ends make modules.
mod annotations;
mod defaults;
mod errors;
mod methods;
mod models;

use crate::common::{names, shape};
use tilewright_interp::{Limits, evaluate};
use tilewright_ir::{
    ArrayLiteral, BuildError, Builder, Data, EditError, ElementType, InstId, Literal, Opcode,
    Shape, Verified, verify,
};
use tilewright_text::{PrintOptions, SyntaxErrors, parse_and_verify, parse_expression, print};

const F32: ElementType = ElementType::F32;

fn f32_of(b: &mut Builder, value: f32) -> Result<InstId, BuildError> {
    b.constant(Literal::scalar(F32, value).unwrap())
}

/// Returns an array of floats.
fn floats(dims: &[i64], values: &[f32]) -> Literal {
    let data = Data::F32(values.to_vec());
    ArrayLiteral::new(F32, dims.iter().copied(), data).unwrap().into()
}

/// Returns an array of integers.
fn integers(dims: &[i64], values: &[i32]) -> Literal {
    let data = Data::S32(values.to_vec());
    ArrayLiteral::new(ElementType::S32, dims.iter().copied(), data).unwrap().into()
}

/// Computes a module's result. Also asserts that its text reads back to the same text.
#[track_caller]
fn value(module: &Verified, inputs: &[Literal]) -> Literal {
    let text = printed(module);
    assert_eq!(printed(&parse_and_verify(&text).unwrap()), text);
    evaluate(module, inputs, &Limits::default()).unwrap()
}

fn printed(module: &Verified) -> String {
    print(module, &PrintOptions::default()).unwrap()
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

    let g = b.reshape(x, grouped)?;
    let counts = b.broadcast(count, stats, [])?;
    let sum = b.reduce(g, zero, [1, 2, 4], add)?;
    let mean = b.binary(Opcode::Divide, sum, counts)?;
    let mean = b.broadcast(mean, grouped, [0, 3])?;
    let centred = b.binary(Opcode::Subtract, g, mean)?;
    let squared = b.binary(Opcode::Multiply, centred, centred)?;
    let sum = b.reduce(squared, zero, [1, 2, 4], add)?;
    let variance = b.binary(Opcode::Divide, sum, counts)?;
    let epsilon = b.broadcast(epsilon, stats, [])?;
    let variance = b.binary(Opcode::Add, variance, epsilon)?;
    let inverse = b.unary(Opcode::Rsqrt, variance)?;
    let inverse = b.broadcast(inverse, grouped, [0, 3])?;
    let normal = b.binary(Opcode::Multiply, centred, inverse)?;
    let normal = b.reshape(normal, [2, 8, 8, 6])?;
    let scale = b.broadcast(scale, [2, 8, 8, 6], [3])?;
    let bias = b.broadcast(bias, [2, 8, 8, 6], [3])?;
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
        b.reduce(p, zero, [0], max)
    })?;
    let first = b.reducer(Opcode::Add, F32)?;
    let second = b.reducer(Opcode::Add, F32)?;
    assert_ne!(first, second);
    let sum = b.reduce(x, zero, [0], second)?;
    let called = b.call(outer, [x])?;
    let result = b.binary(Opcode::Add, sum, called)?;
    let module = b.finish(result)?;
    let order: Vec<&str> =
        module.computations().iter().map(|&c| module.computation(c).name()).collect();
    assert_eq!(order, ["maximum", "outer", "add", "add.1", "main"]);
    Ok(())
}

#[test]
fn computations_that_were_begun_end_in_order() -> Result<(), BuildError> {
    let mut b = Builder::new("begun");
    let x = b.parameter("x", shape("f32[4]"))?;
    let outer = b.begin_computation("outer")?;
    let p = b.parameter("p", shape("f32[4]"))?;
    let inner = b.begin_computation("inner")?;
    let q = b.parameter("q", shape("f32[4]"))?;
    let inner_root = b.unary(Opcode::Negate, q)?;
    let inner = b.end_computation(inner, inner_root)?;
    let abandoned = b.begin_computation("abandoned")?;
    b.parameter("r", shape("f32[]"))?;
    b.abandon_computation(abandoned)?;
    let outer_root = b.call(inner, [p])?;
    let outer = b.end_computation(outer, outer_root)?;
    let result = b.call(outer, [x])?;
    let module = b.finish(result)?;
    let order: Vec<&str> =
        module.computations().iter().map(|&c| module.computation(c).name()).collect();
    assert_eq!(order, ["inner", "outer", "main"]);
    Ok(())
}

#[test]
fn a_trial_leaves_no_trace() -> Result<(), BuildError> {
    let mut b = Builder::new("tried");
    let x = b.parameter("x", shape("f32[4]"))?;
    let zero = f32_of(&mut b, 0.0)?;
    let entry = b.current_computation();
    let region = "{ p = f32[] parameter(0)\n q = f32[] parameter(1)\n ROOT r = f32[] add(p, q) }";
    let sum = format!("reduce(x, zero), dimensions={{0}}, to_apply={region}");
    for (text, is_read) in
        [("negate(x)", true), (sum.as_str(), true), ("transpose(x), dimensions={7}", false)]
    {
        let read = b.trial(|module, computation| {
            let id = parse_expression(text, module, computation, &[("x", x), ("zero", zero)])?;
            Ok::<_, SyntaxErrors>(module.opcode(id))
        });
        assert_eq!(read.is_ok(), is_read, "{text}: {read:?}");
        let module = b.module();
        assert_eq!((module.instruction_bound(), module.computations()), (2, &[entry][..]));
        assert_eq!(names(module, entry), ["x", "constant"]);
        assert!(!module.computation(entry).has_explicit_root(), "{text}");
    }
    let result = b.unary(Opcode::Negate, x)?;
    let module = b.finish(result)?;
    assert_eq!(names(&module, entry), ["x", "constant", "negate"]);
    Ok(())
}

#[test]
fn a_computation_does_not_end_before_one_that_was_begun_later() -> Result<(), BuildError> {
    let mut b = Builder::new("begun");
    let outer = b.begin_computation("outer")?;
    let p = b.parameter("p", shape("f32[4]"))?;
    let inner = b.begin_computation("inner")?;
    let error = b.end_computation(outer, p).unwrap_err().to_string();
    assert_eq!(error, "`computation`: the computation `inner` was begun later and has not ended");
    b.abandon_computation(inner)
}

#[test]
fn values_of_another_computation_are_refused() -> std::result::Result<(), BuildError> {
    let mut b = Builder::new("scopes");
    let x = b.parameter("x", shape("f32[]"))?;
    let used = b.computation("uses_outer", |b| b.unary(Opcode::Negate, x));
    assert!(
        matches!(used, Err(BuildError::Edit { method: "unary", error: EditError::ForeignOperand(ref n) })
            if n == "x"),
        "{used:?}"
    );
    let returned = b.computation("returns_outer", |b| {
        b.parameter("p", Shape::scalar(F32))?;
        Ok(x)
    });
    assert!(
        matches!(returned, Err(BuildError::Edit { method: "computation", error: EditError::ForeignOperand(ref n) })
            if n == "x"),
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
    assert!(
        matches!(error, BuildError::Edit { method: "finish", error: EditError::ForeignOperand(_) }),
        "{error}"
    );
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
        let sum = b.reduce(x, zero, [0], add)?;
        x = b.broadcast(sum, [4], [])?;
    }
    let module = b.finish(x)?;
    let order: Vec<&str> =
        module.computations().iter().map(|&c| module.computation(c).name()).collect();
    assert_eq!(order[..4], ["add.1", "add", "add.2", "add.3"]);
    assert_eq!(order.last(), Some(&"main"));
    Ok(())
}

/// Two computations of a name would be found out only by whoever reads the text. That of one that
/// failed is free again.
#[test]
fn a_name_is_that_of_one_computation() -> Result<(), BuildError> {
    let mut b = Builder::new("names");
    let x = b.parameter("x", shape("f32[]"))?;
    let made = |b: &mut Builder| b.computation("c", |b| b.parameter("p", Shape::scalar(F32)));
    assert!(b.computation("c", |_| Ok(x)).is_err());
    made(&mut b)?;
    let count = b.module().computations().len();
    for name in ["c", "main"] {
        let error = b.computation(name, |b| b.parameter("p", Shape::scalar(F32))).unwrap_err();
        let message =
            format!("`computation`: there is a computation `{name}`; take a name that none has");
        assert_eq!(error.to_string(), message);
    }
    assert_eq!(b.module().computations().len(), count);
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
