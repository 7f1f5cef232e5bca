//! Calls of kernels of this CPU, beside hand calculations.

use tilewright_interp::{Limits, evaluate};
use tilewright_ir::{ArrayLiteral, Data, ElementType, Literal};

/// Evaluates a call of `x: f32[2,3]`.
fn call(result: &str, config: &str, x: [f32; 6]) -> Result<Literal, String> {
    let text = format!(
        "HloModule m\nENTRY e {{\n  x = f32[2,3] parameter(0)\n  ROOT r = {result} custom-call(x), \
         custom_call_target=\"tilewright_reduce\", api_version=API_VERSION_TYPED_FFI, \
         backend_config={config}\n}}\n"
    );
    let module = tilewright_text::parse_and_verify(&text).unwrap();
    let x = ArrayLiteral::new(ElementType::F32, [2, 3], Data::F32(x.into())).unwrap();
    let result = evaluate(&module, &[Literal::Array(x)], &Limits::default());
    result.map_err(|error| error.to_string())
}

fn literal(element_type: ElementType, dims: impl IntoIterator<Item = i64>, data: Data) -> Literal {
    Literal::Array(ArrayLiteral::new(element_type, dims, data).unwrap())
}

#[test]
fn elements_are_joined() {
    let x = [1.0, 5.0, 3.0, -2.0, 7.0, 7.0];
    for (fold, rows, columns) in [
        ("sum", [9.0, 12.0], [-1.0, 12.0, 10.0]),
        ("product", [15.0, -98.0], [-2.0, 35.0, 21.0]),
        ("max", [5.0, 7.0], [1.0, 7.0, 7.0]),
        ("min", [1.0, -2.0], [-2.0, 5.0, 3.0]),
    ] {
        let found = call("f32[2]", &format!("{{axes = array<i64: 1>, fold = \"{fold}\"}}"), x);
        assert_eq!(found, Ok(literal(ElementType::F32, [2], Data::F32(rows.into()))), "{fold}");
        let found = call("f32[3]", &format!("{{axes = array<i64: 0>, fold = \"{fold}\"}}"), x);
        assert_eq!(found, Ok(literal(ElementType::F32, [3], Data::F32(columns.into()))), "{fold}");
    }
    // The sum begins with 0.0.
    let found = call("f32[]", "{axes = array<i64: 0, 1>, fold = \"sum\"}", [-0.0; 6]).unwrap();
    let Literal::Array(array) = found else { panic!("an array") };
    let Data::F32(sum) = array.data() else { panic!("f32") };
    assert!(sum[0] == 0.0 && sum[0].is_sign_positive());
}

#[test]
fn places_are_the_first_or_of_nan() {
    let x = [1.0, f32::NAN, f32::NAN, -2.0, 7.0, 7.0];
    let places = |of: &str, fold: &str, axis: usize| {
        call(of, &format!("{{axes = array<i64: {axis}>, fold = \"{fold}\"}}"), x).unwrap()
    };
    let found = places("s32[2]", "argmax", 1);
    assert_eq!(found, literal(ElementType::S32, [2], Data::S32(vec![1, 1])));
    let found = places("s64[2]", "argmin", 1);
    assert_eq!(found, literal(ElementType::S64, [2], Data::S64(vec![1, 0])));
    let found = places("s32[3]", "argmax", 0);
    assert_eq!(found, literal(ElementType::S32, [3], Data::S32(vec![0, 0, 0])));
}

#[test]
fn other_calls_are_refused() {
    let error = |result: &str, config: &str| call(result, config, [0.0; 6]).unwrap_err();
    assert!(error("f32[2]", "{fold = \"sum\"}").contains("names no fold and axes"));
    let found = error("f32[3]", "{axes = array<i64: 1>, fold = \"sum\"}");
    assert!(found.contains("has not the dims that are kept"), "{found}");
    let found = error("f32[2,3]", "{axes = array<i64: 5>, fold = \"sum\"}");
    assert!(found.contains("has not the dims that are kept"), "{found}");
    let found = error("f32[2]", "{axes = array<i64: 1>, fold = \"and\"}");
    assert!(found.contains("no kernel reduces f32 by and"), "{found}");
    let found = error("f64[2]", "{axes = array<i64: 1>, fold = \"sum\"}");
    assert!(found.contains("no kernel reduces"), "{found}");
    let found = error("f32[]", "{axes = array<i64: 0, 1>, fold = \"argmax\"}");
    assert!(found.contains("along one axis"), "{found}");
}

/// A program computes what its computation does; one that does not fit the call is an error.
#[test]
fn programs_are_evaluated() {
    let text = |result: &str, parameter: &str| {
        format!(
            "HloModule m\nprogram {{\n  p = {parameter} parameter(0)\n  ROOT s = {parameter} add(p, \
             p)\n}}\nENTRY e {{\n  x = f32[2] parameter(0)\n  ROOT r = {result} custom-call(x), \
             custom_call_target=\"tilewright_program\", api_version=API_VERSION_TYPED_FFI, \
             called_computations={{program}}\n}}\n"
        )
    };
    let run = |text: &str| {
        let module = tilewright_text::parse_and_verify(text).unwrap();
        let x = literal(ElementType::F32, [2], Data::F32(vec![1.5, -2.0]));
        evaluate(&module, &[x], &Limits::default()).map_err(|error| error.to_string())
    };
    let expected = literal(ElementType::F32, [2], Data::F32(vec![3.0, -4.0]));
    assert_eq!(run(&text("f32[2]", "f32[2]")), Ok(expected));
    for (result, parameter) in [("f32[3]", "f32[2]"), ("f32[2]", "f32[3]"), ("f32[2]", "f16[2]")] {
        let error = run(&text(result, parameter)).unwrap_err();
        assert!(error.contains("calls no computation that takes its operands"), "{error}");
    }
}
