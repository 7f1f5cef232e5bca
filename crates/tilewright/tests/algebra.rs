//! Algebra judges what the optimiser makes of the fixtures' modules, and modules in
//! which something was changed.

use tilewright::{CheckOptions, Verdict, algebra, parse};

/// A norm of rows with a bias, and a product with weights.
const NORM: &str = "HloModule norm

sum {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b)
}

ENTRY main {
  x = f32[4,6] parameter(0)
  scale = f32[6] parameter(1)
  bias = f32[6] parameter(2)
  w = f32[6,6] parameter(3)
  labels = s32[4] parameter(4)
  zero = f32[] constant(0)
  total = f32[4] reduce(x, zero), dimensions={1}, to_apply=sum
  n = f32[] constant(6)
  n_rows = f32[4] broadcast(n), dimensions={}
  mean = f32[4] divide(total, n_rows)
  mean_all = f32[4,6] broadcast(mean), dimensions={0}
  centred = f32[4,6] subtract(x, mean_all)
  square = f32[4,6] multiply(centred, centred)
  squares = f32[4] reduce(square, zero), dimensions={1}, to_apply=sum
  variance = f32[4] divide(squares, n_rows)
  epsilon = f32[] constant(1e-05)
  epsilons = f32[4] broadcast(epsilon), dimensions={}
  shifted = f32[4] add(variance, epsilons)
  deviation = f32[4] sqrt(shifted)
  deviations = f32[4,6] broadcast(deviation), dimensions={0}
  normal = f32[4,6] divide(centred, deviations)
  scales = f32[4,6] broadcast(scale), dimensions={1}
  scaled = f32[4,6] multiply(normal, scales)
  biases = f32[4,6] broadcast(bias), dimensions={1}
  y = f32[4,6] add(scaled, biases)
  product = f32[4,6] dot(y, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  squashed = f32[4,6] logistic(product)
  flat = f32[24] reshape(squashed)
  part = f32[8] slice(flat), slice={[4:20:2]}
  turned = f32[8] reverse(part), dimensions={0}
  padded = f32[11] pad(turned, zero), padding=1_2
  places = s32[11] iota(), iota_dimension=0
  seven = s32[] constant(7)
  sevens = s32[11] broadcast(seven), dimensions={}
  before = pred[11] compare(places, sevens), direction=LT
  negative = f32[11] negate(padded)
  chosen = f32[11] select(before, padded, negative)
  ROOT out = (f32[11], s32[4]) tuple(chosen, labels)
}
";

/// The changes of the text, each from the first text to the second.
const MUTANTS: &[(&str, &str)] = &[
    ("constant(6)", "constant(7)"),
    ("constant(6)", "constant(6.0000005)"),
    ("constant(1e-05)", "constant(1.0000001e-05)"),
    ("constant(1e-05)", "constant(0)"),
    ("constant(7)", "constant(6)"),
    ("divide(total", "multiply(total"),
    ("subtract(x, mean_all)", "subtract(mean_all, x)"),
    ("subtract(x, mean_all)", "add(x, mean_all)"),
    ("multiply(centred, centred)", "multiply(x, x)"),
    ("add(variance", "subtract(variance"),
    ("sqrt(shifted)", "rsqrt(shifted)"),
    ("sqrt(shifted)", "sqrt(variance)"),
    ("sqrt(shifted)", "tanh(shifted)"),
    ("divide(centred", "divide(x"),
    ("broadcast(scale)", "broadcast(bias)"),
    ("add(scaled, biases)", "add(scaled, scaled)"),
    ("rhs_contracting_dims={0}", "rhs_contracting_dims={1}"),
    ("logistic(product)", "tanh(product)"),
    ("slice={[4:20:2]}", "slice={[5:20:2]}"),
    ("padding=1_2", "padding=2_1"),
    ("direction=LT", "direction=LE"),
    ("select(before, padded, negative)", "select(before, negative, padded)"),
    ("tuple(chosen, labels)", "tuple(padded, labels)"),
];

#[test]
fn every_mutant_of_a_norm_is_found() {
    let original = parse(NORM).unwrap();
    for (from, to) in MUTANTS {
        assert!(NORM.contains(from), "{from}");
        let mutant = parse(&NORM.replacen(from, to, 1)).unwrap();
        let verdicts = algebra(&original, &mutant, &CheckOptions::default()).unwrap();
        assert!(verdicts[0].differs(), "{from} -> {to}: {}", verdicts[0]);
        assert_eq!(verdicts[1], Verdict::Equal);
    }
    let verdicts = algebra(&original, &original, &CheckOptions::default()).unwrap();
    assert_eq!(verdicts, [Verdict::Equal, Verdict::Equal]);
}

#[test]
fn a_sum_of_deviations_is_zero() {
    // The squares of deviations from the mean may therefore be products with x itself.
    let original = parse(NORM).unwrap();
    let other = parse(&NORM.replace("multiply(centred, centred)", "multiply(centred, x)")).unwrap();
    let verdicts = algebra(&original, &other, &CheckOptions::default()).unwrap();
    assert_eq!(verdicts[0], Verdict::Equal);
}
