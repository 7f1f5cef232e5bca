//! Comparisons whose sides are equal over the reals.

use tilewright_interp::algebra::{AlgebraOptions, Ties};
use tilewright_interp::{Evaluation, evaluate};
use tilewright_ir::{ArrayLiteral, Data, ElementType, Literal, Verified};

/// `x: f32[3]`, the sum of what its mean leaves of it, and a comparison.
fn module(comparison: &str) -> Verified {
    let text = format!(
        "HloModule m

add {{
  l = f32[] parameter(0)
  r = f32[] parameter(1)
  ROOT s = f32[] add(l, r)
}}

largest {{
  l = f32[] parameter(0)
  r = f32[] parameter(1)
  ROOT s = f32[] maximum(l, r)
}}

ENTRY e {{
  x = f32[3] parameter(0)
  zero = f32[] constant(0)
  least = f32[] constant(-inf)
  third = f32[] constant(0.33333334)
  sum = f32[] reduce(x, zero), dimensions={{0}}, to_apply=add
  mean = f32[] multiply(sum, third)
  means = f32[3] broadcast(mean), dimensions={{}}
  rest = f32[3] subtract(x, means)
  residue = f32[] reduce(rest, zero), dimensions={{0}}, to_apply=add
  most = f32[] reduce(x, least), dimensions={{0}}, to_apply=largest
  {comparison}
}}
"
    );
    tilewright_text::parse_and_verify(&text).expect("a module")
}

/// The mean of these is rounded, and their residue is not zero.
fn inputs() -> Vec<Literal> {
    let data = Data::F32(vec![0.1, 0.7, 0.9]);
    vec![ArrayLiteral::new(ElementType::F32, [3], data).expect("three numbers").into()]
}

/// Returns a comparison's result by itself, and with its ties decided.
fn decided(comparison: &str) -> (bool, bool) {
    let module = module(comparison);
    let truth = |value: &Literal| value.as_array().unwrap().as_slice::<bool>().unwrap()[0];
    let plain = evaluate(&module, &inputs(), &tilewright_interp::Limits::default()).unwrap();
    let ties = Ties::of(&module, &AlgebraOptions::default());
    let tied = Evaluation::new(&module).ties(&ties).run(&[&inputs()[..]]).unwrap();
    (truth(&plain), truth(&tied[0].output))
}

#[test]
fn a_residue_is_compared_with_zero() {
    let to_zero = |direction| {
        decided(&format!("ROOT c = pred[] compare(residue, zero), direction={direction}"))
    };
    assert_eq!(to_zero("EQ"), (false, true));
    assert_eq!(to_zero("NE"), (true, false));
    let (below, above) = (to_zero("LT"), to_zero("GT"));
    assert_ne!(below.0, above.0, "it is not zero");
    assert_eq!((below.1, above.1), (false, false));
    let (most, least) = (to_zero("LE"), to_zero("GE"));
    assert_ne!(most.0, least.0);
    assert_eq!((most.1, least.1), (true, true));
}

#[test]
fn what_is_equal_by_an_order_is_left_alone() {
    // The field has an order of its own: what it says of maxima is not said of reals.
    let module = module(
        "a = f32[] add(most, zero)
         ROOT c = pred[] compare(a, most), direction=EQ",
    );
    assert!(Ties::of(&module, &AlgebraOptions::default()).is_empty());
}

#[test]
fn what_differs_is_left_alone() {
    let other = "ROOT c = pred[] compare(residue, mean), direction=EQ";
    assert_eq!(decided(other), (false, false));
    assert!(Ties::of(&module(other), &AlgebraOptions::default()).is_empty());
}

/// Modules of which one input does not tell what holds for all.
#[test]
fn what_values_decide_is_no_tie() {
    let none = |text: &str| {
        let module = tilewright_text::parse_and_verify(text).expect("a module");
        assert!(Ties::of(&module, &AlgebraOptions::default()).is_empty(), "{text}");
    };
    let entry = |body: &str| none(&format!("HloModule m\n\nENTRY e {{\n{body}\n}}\n"));
    // Over the field, a sign is 1 for half of all elements.
    for signed in ["sign(x)", "abs(x)", "sqrt(square)"] {
        entry(&format!(
            "x = f32[64] parameter(0)
             square = f32[64] multiply(x, x)
             s = f32[64] {signed}
             one = f32[64] divide(s, x)
             r = f32[64] multiply(one, x)
             ROOT c = pred[64] compare(r, x), direction=EQ"
        ));
    }
    // A test for NaN.
    entry("x = f32[4] parameter(0)\nROOT c = pred[4] compare(x, x), direction=NE");
    // An integer is that of one input.
    entry(
        "n = s32[] parameter(0)
         m = s32[] add(n, n)
         a = f32[] convert(n)
         b = f32[] convert(m)
         d = f32[] subtract(b, a)
         ROOT c = pred[] compare(d, a), direction=EQ",
    );
    // A function may compare its parameters, which its caller compares again.
    none(
        "HloModule m

f {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = pred[] compare(a, b), direction=EQ
}

ENTRY e {
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  s = f32[] add(x, y)
  t = f32[] add(y, x)
  c = pred[] call(s, t), to_apply=f
  d = pred[] call(x, y), to_apply=f
  ROOT r = (pred[], pred[]) tuple(c, d)
}
",
    );
    // A loop turns as often as the field has it.
    none(
        "HloModule m

body {
  a = f32[] parameter(0)
  ROOT t = f32[] add(a, a)
}

condition {
  a = f32[] parameter(0)
  one = f32[] constant(1)
  ROOT more = pred[] compare(a, one), direction=LT
}

ENTRY e {
  x = f32[] parameter(0)
  w = f32[] while(x), condition=condition, body=body
  ROOT c = pred[] compare(w, x), direction=EQ
}
",
    );
}

#[test]
fn the_greatest_of_zeros_is_zero() {
    // Each residue is the greatest of them, over the reals.
    let greatest = "residues = f32[1] reshape(residue)
         twice = f32[1] add(residues, residues)
         below = f32[1] negate(residues)
         all = f32[3] concatenate(residues, twice, below), dimensions={0}
         greatest = f32[] reduce(all, least), dimensions={0}, to_apply=largest
         ROOT c = pred[] compare(residue, greatest), direction=EQ";
    assert_eq!(decided(greatest), (false, true));
}

#[test]
fn the_greatest_of_nothing_leaves_all_open() {
    let module = module(
        "none = f32[0] slice(x), slice={[1:1]}
         greatest = f32[] reduce(none, least), dimensions={0}, to_apply=largest
         ROOT c = pred[] compare(greatest, least), direction=EQ",
    );
    assert!(Ties::of(&module, &AlgebraOptions::default()).is_empty());
}
