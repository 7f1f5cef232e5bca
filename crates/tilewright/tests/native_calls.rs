//! Programs as custom calls of XLA: what is handed over computes what the module does.

use tilewright::interp::{Limits, evaluate};
use tilewright::ir::{ArrayLiteral, Data, ElementType, Literal, Verified};
use tilewright::native::{CallProgram, sealed};
use tilewright_native::Threads;
use tilewright_native::fused::ValuesMut;

/// Groups of channels, which are split by a reshape that the sum of a channel has not.
const MODULE: &str = r#"HloModule m
add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = f32[] add(a, b)
}
norm {
  dy = f32[3,4,5] parameter(0)
  x = f32[3,4,5] parameter(1)
  zero = f32[] constant(0)
  sums = f32[4] reduce(dy, zero), dimensions={0,2}, to_apply=add
  split = f32[3,2,2,5] reshape(x)
  sum = f32[3,2] reduce(split, zero), dimensions={2,3}, to_apply=add
  ten = f32[] constant(10)
  tens = f32[3,2] broadcast(ten), dimensions={}
  mean = f32[3,2] divide(sum, tens)
  means = f32[3,2,2,5] broadcast(mean), dimensions={0,1}
  apart = f32[3,2,2,5] subtract(split, means)
  square = f32[3,2,2,5] multiply(apart, apart)
  squares = f32[3,2] reduce(square, zero), dimensions={2,3}, to_apply=add
  inverse = f32[3,2] rsqrt(squares)
  inverses = f32[3,2,2,5] broadcast(inverse), dimensions={0,1}
  normed = f32[3,2,2,5] multiply(apart, inverses)
  whole = f32[3,4,5] reshape(normed)
  y = f32[3,4,5] multiply(whole, dy)
  ROOT all = (f32[3,4,5], f32[4]) tuple(y, sums)
}
ENTRY e {
  dy = f32[3,4,5] parameter(0)
  x = f32[3,4,5] parameter(1)
  ROOT r = (f32[3,4,5], f32[4]) custom-call(dy, x), custom_call_target="tilewright_program", api_version=API_VERSION_TYPED_FFI, called_computations={norm}
}
"#;

fn module() -> Verified {
    tilewright::parse(MODULE).unwrap()
}

fn values(n: i64) -> Vec<f32> {
    (0..60).map(|i| ((i * 37 + n * 11) % 101) as f32 / 16.0 - 3.0).collect()
}

/// The text that the handler of a sealed call gets.
fn text_of_call(module: &Verified) -> String {
    let text = tilewright::text::print(module, &tilewright::text::PrintOptions::new()).unwrap();
    let text = text.split_once("program = \"").unwrap().1;
    text.split_once('"').unwrap().0.to_owned()
}

#[test]
fn a_sealed_call_computes_what_the_module_does() {
    let module = module();
    let sealed = sealed(&module).unwrap().unwrap();
    assert_eq!(sealed.computations().len(), 1, "the program is in the configuration alone");
    let program = CallProgram::parse(&text_of_call(&sealed)).unwrap();
    let (dy, x) = (values(1), values(2));
    let (mut y, mut sums) = (vec![0.0f32; 60], vec![0.0f32; 4]);
    let operands = [program.operand(0, &dy).unwrap(), program.operand(1, &x).unwrap()];
    let rooms = &mut [ValuesMut::F32(&mut y), ValuesMut::F32(&mut sums)];
    program.run_into(&operands, rooms, &Threads(2)).unwrap();
    let literal = |data: &Vec<f32>| {
        let array = ArrayLiteral::new(ElementType::F32, [3, 4, 5], Data::F32(data.clone()));
        Literal::Array(array.unwrap())
    };
    let expected = evaluate(&module, &[literal(&dy), literal(&x)], &Limits::default()).unwrap();
    let Literal::Tuple(expected) = expected else { panic!("two results") };
    for (expected, found) in expected.iter().zip([y, sums]) {
        let Some(Data::F32(expected)) = expected.as_array().map(ArrayLiteral::data) else {
            panic!("floats")
        };
        assert_eq!(expected.len(), found.len());
        for (a, b) in expected.iter().zip(found) {
            assert!((a - b).abs() <= 1e-6 * a.abs().max(1.0), "{a} is {b}");
        }
    }
}

#[test]
fn a_module_without_programs_is_left() {
    let module = tilewright::parse("HloModule m\nENTRY e {\n ROOT x = f32[2] parameter(0)\n}\n");
    assert!(sealed(&module.unwrap()).unwrap().is_none());
}

#[test]
fn texts_that_are_no_programs_are_errors() {
    for (text, why) in [
        ("HloModule", "expected"),
        ("HloModule m ENTRY e { ROOT x = f32[2] parameter(0) }", "several iteration spaces"),
        (
            "HloModule m add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = f32[] add(a, b) \
             } ENTRY e { x = f32[2,3]{0,1} parameter(0) z = f32[] constant(0) ROOT s = f32[2] reduce(x, z), \
             dimensions={1}, to_apply=add }",
            "not row major",
        ),
        (
            "HloModule m add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = f32[] add(a, b) \
             } ENTRY e { x = f32[2,3] parameter(0) z = f32[] constant(0) s = f32[2] reduce(x, z), \
             dimensions={1}, to_apply=add ROOT t = f32[2] sort(s), dimensions={0}, to_apply=less }",
            "less",
        ),
    ] {
        let error = CallProgram::parse(text).unwrap_err().to_string();
        assert!(error.contains(why), "{error}");
        assert!(!error.contains("bug"), "the text is the caller's: {error}");
    }
    let unfit = MODULE.replace("ROOT y = ", "y = ").replace(
        "y = f32[3,4,5] multiply(whole, dy)",
        "back = f32[3,4,5] reverse(whole), dimensions={0}\n  y = f32[3,4,5] multiply(back, dy)",
    );
    let error = sealed(&tilewright::parse(&unfit).unwrap()).unwrap_err().to_string();
    assert!(error.contains("several iteration spaces"), "{error}");
}
