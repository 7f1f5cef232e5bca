//! Evaluations in which roundings fall the other way.

use tilewright_interp::{Evaluation, InputKind, inputs_for};
use tilewright_ir::Verified;

fn module(body: &str) -> Verified {
    let text = format!(
        "HloModule m

add {{
  l = f32[] parameter(0)
  r = f32[] parameter(1)
  ROOT s = f32[] add(l, r)
}}

greatest {{
  l = f32[] parameter(0)
  r = f32[] parameter(1)
  ROOT s = f32[] maximum(l, r)
}}

product {{
  a = f32[8,32] parameter(0)
  b = f32[8,32] parameter(1)
  ROOT p = f32[8,32] multiply(a, b)
}}

ENTRY e {{
  x = f32[8,32] parameter(0)
  y = f32[8,32] parameter(1)
  zero = f32[] constant(0)
{body}
}}
"
    );
    tilewright_text::parse_and_verify(&text).unwrap()
}

/// Returns a module's results without noise, and with the noise of four seeds.
fn results(body: &str, kind: InputKind) -> (Vec<f32>, Vec<Vec<f32>>) {
    let module = module(body);
    let inputs = inputs_for(&module, 1, kind).unwrap();
    let run = |evaluation: Evaluation<'_>| {
        let output = evaluation.run(&[&inputs[..]]).unwrap().remove(0).output;
        output.as_array().unwrap().as_slice::<f32>().unwrap().to_vec()
    };
    let noisy = (0..4).map(|seed| run(Evaluation::new(&module).noise(seed))).collect();
    (run(Evaluation::new(&module)), noisy)
}

#[test]
fn rounded_results_move_by_a_unit_in_the_last_place() {
    // Once, where they are rounded: not for the call, and not for what moves them.
    let body = "
  c = f32[8,32] call(x, y), to_apply=product
  ROOT n = f32[8,32] negate(c)";
    let (plain, noisy) = results(body, InputKind::Normal);
    for noisy in noisy {
        let apart = |(a, b): (&f32, &f32)| a.to_bits().abs_diff(b.to_bits());
        let apart: Vec<u32> = plain.iter().zip(&noisy).map(apart).collect();
        assert!(apart.iter().all(|&apart| apart <= 1), "{apart:?}");
        assert!(apart.iter().filter(|&&apart| apart == 1).count() > 200, "{apart:?}");
    }
}

#[test]
fn a_sum_that_cancels_to_the_last_bit_does_no_longer() {
    let body = "
  s = f32[8] reduce(x, zero), dimensions={1}, to_apply=add
  wide = f32[8,32] broadcast(s), dimensions={0}
  again = f32[8] reduce(wide, zero), dimensions={1}, to_apply=add
  n = f32[] constant(32)
  ns = f32[8] broadcast(n), dimensions={}
  mean = f32[8] divide(again, ns)
  ROOT d = f32[8] subtract(s, mean)";
    let (plain, noisy) = results(body, InputKind::Normal);
    assert!(plain.iter().all(|&d| d == 0.0), "{plain:?}");
    assert!(noisy.iter().all(|d| d.iter().any(|&d| d != 0.0)), "{noisy:?}");
}

#[test]
fn what_is_not_rounded_stays() {
    // A value beside itself computed again, a maximum, and sums of integers.
    let twice = "
  p = f32[8,32] multiply(x, y)
  q = f32[8,32] multiply(x, y)
  ROOT d = f32[8,32] subtract(p, q)";
    let greatest = "  ROOT r = f32[8] reduce(x, zero), dimensions={1}, to_apply=greatest";
    let moved = "
  t = f32[32,8] transpose(x), dimensions={1,0}
  n = f32[32,8] negate(t)
  ROOT r = f32[256] reshape(n)";
    let halves = "  ROOT r = f32[8] reduce(x, zero), dimensions={1}, to_apply=add";
    let cases = [
        (twice, InputKind::Normal),
        (greatest, InputKind::Normal),
        (moved, InputKind::Normal),
        (halves, InputKind::Ties),
    ];
    for (body, kind) in cases {
        let (plain, noisy) = results(body, kind);
        assert!(noisy.iter().all(|noisy| *noisy == plain), "{body}");
    }
}

#[test]
fn sums_are_taken_in_parts() {
    // Near 1000 - 1000, a unit in the last place of the sum is nothing, and one of its
    // parts is 3e-5 or more.
    let body = "
  thousand = f32[] constant(1000)
  thousands = f32[8,32] broadcast(thousand), dimensions={}
  up = f32[8,32] add(x, thousands)
  down = f32[8,32] subtract(y, thousands)
  all = f32[8,64] concatenate(up, down), dimensions={1}
  ROOT s = f32[8] reduce(all, zero), dimensions={1}, to_apply=add";
    let (plain, noisy) = results(body, InputKind::Uniform);
    let apart =
        |noisy: &Vec<f32>| plain.iter().zip(noisy).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
    let apart: Vec<f32> = noisy.iter().map(apart).collect();
    assert!(apart.iter().any(|&apart| apart > 3e-5), "{apart:?}");
    // 64 terms of 1000 are off by no more than a few of their units.
    assert!(apart.iter().all(|&apart| apart < 0.05), "{apart:?}");
}

#[test]
fn equal_rows_have_equal_sums_in_parts() {
    let body = "
  row = f32[1,32] slice(x), slice={[0:1], [0:32]}
  line = f32[32] reshape(row)
  rows = f32[8,32] broadcast(line), dimensions={1}
  ROOT s = f32[8] reduce(rows, zero), dimensions={1}, to_apply=add";
    let (_, noisy) = results(body, InputKind::Normal);
    assert!(noisy.iter().flatten().any(|sum| *sum != noisy[0][0]), "{noisy:?}");
    for sums in noisy {
        assert!(sums.iter().all(|sum| *sum == sums[0]), "{sums:?}");
    }
}

#[test]
fn parts_that_overflow_are_none() {
    // The sum is 0, and that of its positive terms infinite.
    let body = "
  large = f32[] constant(3e38)
  up = f32[8,32] broadcast(large), dimensions={}
  down = f32[8,32] negate(up)
  all = f32[8,64] concatenate(up, down), dimensions={1}
  ROOT s = f32[8] reduce(all, zero), dimensions={1}, to_apply=add";
    let (plain, noisy) = results(body, InputKind::Normal);
    assert!(plain.iter().chain(noisy.iter().flatten()).all(|sum| *sum == 0.0), "{noisy:?}");
}
