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

/// What a comparison gives by itself, and with its ties decided.
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

#[test]
fn in_a_loop_a_tie_is_one_in_every_turn() {
    let text = "HloModule m

body {
  s = (s32[], f32[], f32[], s32[]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  a = f32[] get-tuple-element(s), index=1
  b = f32[] get-tuple-element(s), index=2
  n = s32[] get-tuple-element(s), index=3
  equal = pred[] compare(a, b), direction=EQ
  count = s32[] convert(equal)
  one = s32[] constant(1)
  up = s32[] add(i, one)
  more = s32[] add(n, count)
  SUM
  ROOT t = (s32[], f32[], f32[], s32[]) tuple(up, next, b, more)
}

condition {
  s = (s32[], f32[], f32[], s32[]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  two = s32[] constant(2)
  ROOT more = pred[] compare(i, two), direction=LT
}

ENTRY e {
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  zero = s32[] constant(0)
  sum = f32[] add(x, y)
  b = f32[] add(y, x)
  t = (s32[], f32[], f32[], s32[]) tuple(zero, sum, b, zero)
  ROOT w = (s32[], f32[], f32[], s32[]) while(t), condition=condition, body=body
}
";
    let ties = |next: &str| {
        let module = tilewright_text::parse_and_verify(&text.replace("SUM", next)).unwrap();
        Ties::of(&module, &AlgebraOptions::default())
    };
    assert!(!ties("next = f32[] copy(a)").is_empty());
    assert!(ties("next = f32[] add(a, b)").is_empty());
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
