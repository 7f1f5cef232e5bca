//! Inputs: kinds that draw on their own, and values in the range that uses tell.

use tilewright_interp::{InputKind, inputs_for};
use tilewright_ir::{Literal, Verified};

fn module(body: &str) -> Verified {
    let text = format!("HloModule m\n\n{body}\n");
    tilewright_text::parse_and_verify(&text).map_err(|e| format!("{e:?}")).unwrap()
}

fn ints(value: &Literal) -> Vec<i32> {
    value.as_array().unwrap().as_slice::<i32>().unwrap().to_vec()
}

fn floats(value: &Literal) -> Vec<f32> {
    value.as_array().unwrap().as_slice::<f32>().unwrap().to_vec()
}

/// Returns all kinds whose integers lie in a range wherever one is known.
fn usual() -> impl Iterator<Item = InputKind> {
    use InputKind::{Edges, NonFinite, Ties};
    InputKind::ALL.iter().copied().filter(|kind| !matches!(kind, Edges | NonFinite | Ties))
}

#[test]
fn no_two_kinds_draw_the_same() {
    let text = "ENTRY e {
  p = pred[64] parameter(0)
  ROOT n = pred[64] not(p)
}";
    let module = module(text);
    let drawn = |&kind: &InputKind| inputs_for(&module, 3, kind).unwrap();
    let all: Vec<_> = InputKind::ALL.iter().map(drawn).collect();
    for (i, one) in all.iter().enumerate() {
        assert!(all.iter().skip(i + 1).all(|other| one != other), "{i}");
    }
}

#[test]
fn far_numbers_are_far_and_positive_ones_positive() {
    let text = "ENTRY e {
  p = f32[500] parameter(0)
  q = f16[500] parameter(1)
  ROOT t = (f32[500], f16[500]) tuple(p, q)
}";
    let module = module(text);
    for seed in 0..5 {
        let far = inputs_for(&module, seed, InputKind::Far).unwrap();
        let values = floats(&far[0]);
        let mean = values.iter().sum::<f32>() / 500.0;
        assert!((9e3..2e6).contains(&mean), "{mean}");
        assert!(values.iter().all(|v| (v - mean).abs() < 8.0));
        let narrow = far[1].as_array().unwrap().as_slice::<half::f16>().unwrap();
        assert!(narrow.iter().all(|v| (50.0..600.0).contains(&v.to_f32())));
        let positive = inputs_for(&module, seed, InputKind::Positive).unwrap();
        assert!(floats(&positive[0]).iter().all(|v| *v > 0.0));
    }
}

#[test]
fn labels_lie_within_what_they_are_compared_with() {
    let text = "one_hot {
  labels = s32[40] parameter(0)
  wide = s32[40,10] broadcast(labels), dimensions={0}
  places = s32[10] iota(), iota_dimension=0
  all = s32[40,10] broadcast(places), dimensions={1}
  ROOT same = pred[40,10] compare(wide, all), direction=EQ
}

ENTRY e {
  p = (f32[], s32[40]) parameter(0)
  other = s32[40] parameter(1)
  labels = s32[40] get-tuple-element(p), index=1
  hot = pred[40,10] call(labels), to_apply=one_hot
  ROOT t = (pred[40,10], s32[40]) tuple(hot, other)
}";
    let module = module(text);
    for kind in usual() {
        let inputs = inputs_for(&module, 1, kind).unwrap();
        let labels = ints(inputs[0].leaves()[1]);
        assert!(labels.iter().all(|label| (0..10).contains(label)), "{}", kind.name());
    }
    // Some beyond both ends, to see what a program makes of them.
    let ties = inputs_for(&module, 1, InputKind::Ties).unwrap();
    let labels = ints(ties[0].leaves()[1]);
    assert!(labels.iter().all(|label| (-1..=10).contains(label)));
    assert!(labels.contains(&-1) && labels.contains(&10));
    // Nothing is known of the other parameter.
    let normal = inputs_for(&module, 1, InputKind::Normal).unwrap();
    assert!(ints(&normal[1]).iter().any(|&n| n < 0));
}

#[test]
fn indices_lie_within_what_they_index() {
    let text = "ENTRY e {
  table = f32[7,5] parameter(0)
  rows = s32[30] parameter(1)
  start = s32[] parameter(2)
  zero = s32[] constant(0)
  zeros = s32[30] broadcast(zero), dimensions={}
  below = pred[30] compare(rows, zeros), direction=LT
  seven = s32[] constant(7)
  sevens = s32[30] broadcast(seven), dimensions={}
  again = s32[30] add(rows, sevens)
  turned = s32[30] select(below, again, rows)
  at = s32[30,1] reshape(turned)
  found = f32[30,5] gather(table, at), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,5}
  part = f32[3,5] dynamic-slice(table, start, zero), dynamic_slice_sizes={3,5}
  ROOT t = (f32[30,5], f32[3,5]) tuple(found, part)
}";
    let module = module(text);
    for kind in usual() {
        for seed in 0..20 {
            let inputs = inputs_for(&module, seed, kind).unwrap();
            assert!(ints(&inputs[1]).iter().all(|row| (0..7).contains(row)), "{}", kind.name());
            assert!((0..5).contains(&ints(&inputs[2])[0]), "{}", kind.name());
        }
    }
}

#[test]
fn second_moments_are_not_negative() {
    let text = "ENTRY e {
  g = f32[50] parameter(0)
  v = f32[50] parameter(1)
  step = s32[] parameter(2)
  c = f32[] constant(0.001)
  cs = f32[50] broadcast(c), dimensions={}
  b = f32[] constant(0.999)
  bs = f32[50] broadcast(b), dimensions={}
  gg = f32[50] multiply(g, g)
  new = f32[50] multiply(gg, cs)
  old = f32[50] multiply(v, bs)
  both = f32[50] add(old, new)
  count = f32[] convert(step)
  decay = f32[] power(b, count)
  one = f32[] constant(1)
  rest = f32[] subtract(one, decay)
  rests = f32[50] broadcast(rest), dimensions={}
  hat = f32[50] divide(both, rests)
  root = f32[50] sqrt(hat)
  ROOT t = (f32[50], f32[50]) tuple(both, root)
}";
    let module = module(text);
    for &kind in InputKind::ALL.iter().filter(|kind| **kind != InputKind::NonFinite) {
        let inputs = inputs_for(&module, 2, kind).unwrap();
        assert!(floats(&inputs[1]).iter().all(|v| *v >= 0.0), "{}", kind.name());
        assert!(ints(&inputs[2])[0] >= 0, "{}", kind.name());
    }
    let normal = inputs_for(&module, 2, InputKind::Normal).unwrap();
    assert!(floats(&normal[0]).iter().any(|g| *g < 0.0));
}

#[test]
fn counters_of_loops_are_small_on_all_kinds() {
    let module = module(
        "less {
  s = (s32[], s32[]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] get-tuple-element(s), index=1
  ROOT r = pred[] compare(i, n), direction=LT
}

step {
  s = (s32[], s32[]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] get-tuple-element(s), index=1
  one = s32[] constant(1)
  j = s32[] add(i, one)
  ROOT r = (s32[], s32[]) tuple(j, n)
}

ENTRY e {
  p = (s32[], s32[]) parameter(0)
  ROOT l = (s32[], s32[]) while(p), condition=less, body=step
}",
    );
    for &kind in InputKind::ALL {
        for seed in 0..20 {
            let inputs = inputs_for(&module, seed, kind).unwrap();
            for leaf in inputs[0].leaves() {
                assert!((0..8).contains(&ints(leaf)[0]), "{} {seed}", kind.name());
            }
        }
    }
}
