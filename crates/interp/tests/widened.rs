//! Programs in wider floats: they verify, and compute what the program means.

use tilewright_interp::{
    Limits, Tolerance, WidenError, compare, evaluate, npz, widened, widened_literal,
};
use tilewright_ir::{ElementType, Literal, Shape, Verified};
use tilewright_testkit::fixture::fixtures;

fn module(text: &str) -> Verified {
    tilewright_text::parse_and_verify(text).unwrap()
}

fn floats(literal: &Literal) -> Vec<f64> {
    literal.as_array().unwrap().as_slice::<f64>().unwrap().to_vec()
}

/// `(x + y) - x` with rounding to three types on the way, a fusion and a sum of bf16.
const ROUNDED: &str = r#"HloModule rounded
add {
  a = bf16[] parameter(0)
  b = bf16[] parameter(1)
  ROOT s = bf16[] add(a, b)
}
body {
  p = f32[4] parameter(0)
  q = f32[4] parameter(1)
  ROOT s = f32[4] add(p, q)
}
ENTRY main {
  x = f32[4] parameter(0)
  y = f32[4] parameter(1)
  n = s32[4] parameter(2)
  s = f32[4] fusion(x, y), kind=kLoop, calls=body
  r = f32[4] reduce-precision(s), exponent_bits=5, mantissa_bits=3
  d = f32[4] subtract(r, x)
  h = bf16[4] convert(d)
  z = bf16[] constant(0.5)
  t = bf16[] reduce(h, z), dimensions={0}, to_apply=add
  ROOT out = (f32[4], bf16[], s32[4]) tuple(d, t, n)
}
"#;

#[test]
fn nothing_is_rounded_to_narrow_types() {
    let wide = widened(&module(ROUNDED)).unwrap();
    let entry = wide.entry().unwrap();
    let (f64s, s32) = (ElementType::F64, ElementType::S32);
    let root = wide.computation(entry).root().unwrap();
    let expected =
        Shape::Tuple(vec![Shape::array(f64s, [4]), Shape::scalar(f64s), Shape::array(s32, [4])]);
    assert!(wide.shape(root).compatible(&expected));
    let inputs =
        tilewright_interp::inputs_for(&module(ROUNDED), 1, tilewright_interp::InputKind::Normal)
            .unwrap();
    let inputs: Vec<Literal> = inputs.iter().map(|x| widened_literal(x).unwrap()).collect();
    let out = evaluate(&wide, &inputs, &Limits::default()).unwrap();
    let leaves = out.leaves();
    // (x + y) - x is y but for the rounding of f64.
    let y = floats(&inputs[1]);
    for (d, y) in floats(leaves[0]).iter().zip(&y) {
        assert!((d - y).abs() < 1e-14, "{d} is not {y}");
    }
    let sum = 0.5 + y.iter().sum::<f64>();
    assert!((floats(leaves[1])[0] - sum).abs() < 1e-13);
    assert_eq!(leaves[2], &inputs[2]);
}

#[test]
fn bits_of_floats_have_no_wider_counterpart() {
    let text = "HloModule bits\nENTRY main {\n  x = f32[4] parameter(0)\n  \
                ROOT b = u32[4] bitcast-convert(x)\n}\n";
    match widened(&module(text)) {
        Err(WidenError::Bits(name)) => assert_eq!(name, "b"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn models_compute_what_xla_computed_in_narrower_floats() {
    let all = fixtures("models").unwrap();
    let mut compared = 0;
    for fixture in &all {
        let module = module(&fixture.text().unwrap());
        let wide = match widened(&module) {
            Err(WidenError::Bits(_)) => continue,
            other => other.unwrap_or_else(|error| panic!("{}: {error}", fixture.name)),
        };
        let arrays = fixture.npz.as_ref().unwrap();
        let wide_of = |values: Vec<Literal>| {
            values.iter().map(|value| widened_literal(value).unwrap()).collect::<Vec<_>>()
        };
        let inputs = wide_of(npz::read_inputs(arrays, &module).unwrap());
        let expected = widened_literal(&npz::read_outputs(arrays, &module).unwrap()).unwrap();
        let actual = evaluate(&wide, &inputs, &Limits::default()).unwrap();
        // The results that XLA rounded to bf16 and f16 are off by some hundredths.
        let coarse = Tolerance { ulps: 0, relative: 0.05, ..Tolerance::of(ElementType::F64) };
        let comparisons = compare(&expected, &actual, |_| coarse).unwrap();
        let worst = comparisons.into_iter().find(|c| !c.equal);
        assert!(worst.is_none(), "{}: {worst:?}", fixture.name);
        compared += 1;
    }
    assert!(compared * 2 >= all.len(), "{compared} of {} models are widened", all.len());
}
