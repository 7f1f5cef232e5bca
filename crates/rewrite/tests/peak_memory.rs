//! The most memory in use at once, counted by hand. On `cpu` nothing is padded.

use crate::common::{module, optimized, pipeline, target};
use tilewright_rewrite::cost::{CostModel, Memo, peak_live_bytes};
use tilewright_testkit::fixture::fixtures;

const KIB: u64 = 1024;

/// Bytes on `cpu`, of a module with an `add` and this entry computation.
fn peak(entry: &str) -> u64 {
    let add = "add {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  \
               ROOT r = f32[] add(a, b)\n}";
    let module = module(&format!("HloModule m\n{add}\nENTRY main {{\n{entry}\n}}"));
    peak_live_bytes(&module, &target("cpu"))
}

#[test]
fn what_is_computed_in_place_takes_nothing_but_its_result() {
    let chain = "x = f32[1024] parameter(0)
  t = f32[1024] tanh(x)
  e = f32[1024] exponential(t)";
    // The parameter and the result.
    assert_eq!(peak(&format!("{chain}\n  ROOT r = f32[1024] negate(e)")), 8 * KIB);
    // An alias of a result that is computed in place.
    assert_eq!(peak(&format!("{chain}\n  ROOT r = f32[32,32] reshape(e)")), 8 * KIB);
    let both = "ROOT r = (f32[1024], f32[32,32]) tuple(t, s)";
    assert_eq!(peak(&format!("{chain}\n  s = f32[32,32] reshape(e)\n  {both}")), 12 * KIB);
}

#[test]
fn another_name_for_a_parameter_takes_nothing() {
    let names = "x = f32[1024] parameter(0)
  s = f32[32,32] reshape(x)
  part = f32[8,32] slice(s), slice={[0:8], [0:32]}
  zero = f32[] constant(0)
  ROOT sum = f32[32] reduce(part, zero), dimensions={0}, to_apply=add";
    assert_eq!(peak(names), 4 * KIB + 128);
}

#[test]
fn what_is_computed_in_place_keeps_what_it_is_computed_from() {
    let body = "x = f32[32,32] parameter(0)
  a = f32[32,32] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  t = f32[32,32] tanh(a)
  b = f32[32,32] dot(x, x), lhs_contracting_dims={0}, rhs_contracting_dims={1}
  c = f32[32,32] dot(b, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}";
    // x, and two products at a time.
    assert_eq!(peak(&format!("{body}\n  ROOT r = f32[32,32] negate(c)")), 12 * KIB);
    // And a, as the sum needs it.
    assert_eq!(peak(&format!("{body}\n  ROOT r = f32[32,32] add(c, t)")), 16 * KIB);
}

#[test]
fn tiles_are_counted_with_their_padding() {
    let text = "HloModule m\nENTRY main {\n  x = f32[2,3] parameter(0)\n  \
                ROOT r = f32[2,3] negate(x)\n}";
    // Two tiles of 8 by 128.
    assert_eq!(peak_live_bytes(&module(text), &target("tpu-like")), 2 * 4 * KIB);
}

#[test]
fn a_call_needs_what_is_made_in_it_as_well() {
    let text = "HloModule m
body {
  p = f32[32,32] parameter(0)
  a = f32[32,32] dot(p, p), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT b = f32[32,32] dot(a, a), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}
ENTRY main {
  x = f32[32,32] parameter(0)
  ROOT c = f32[32,32] call(x), to_apply=body
}";
    // x, a and b; and the result of the call.
    assert_eq!(peak_live_bytes(&module(text), &target("cpu")), 16 * KIB);
}

#[test]
fn arguments_are_kept_throughout() {
    // y is read after the product, and is there before it.
    let late = "x = f32[32,32] parameter(0)
  a = f32[32,32] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  b = f32[32,32] dot(a, a), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  y = f32[32,32] parameter(1)
  ROOT r = f32[32,32] dot(b, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}";
    // x and y, and two products at a time.
    assert_eq!(peak(late), 16 * KIB);
}

#[test]
fn what_a_fusion_computes_is_stored_once() {
    let text = "HloModule m
fused {
  p = f32[32,32] parameter(0)
  t = f32[32,32] tanh(p)
  ROOT e = f32[32,32] exponential(t)
}
ENTRY main {
  x = f32[32,32] parameter(0)
  ROOT f = f32[32,32] fusion(x), kind=kLoop, calls=fused
}";
    assert_eq!(peak_live_bytes(&module(text), &target("cpu")), 8 * KIB);
}

#[test]
fn a_result_in_the_memory_of_a_donated_argument_takes_none() {
    let donated = |root: &str| {
        let alias = "input_output_alias={ {}: (0, {}, may-alias) }";
        let text = format!(
            "HloModule m, {alias}\nENTRY main {{\n  x = f32[32,32] parameter(0)\n  \
             y = f32[32,32] parameter(1)\n  {root}\n}}"
        );
        peak_live_bytes(&module(&text), &target("cpu"))
    };
    assert_eq!(donated("ROOT r = f32[32,32] add(x, y)"), 8 * KIB);
    let product = "lhs_contracting_dims={1}, rhs_contracting_dims={0}";
    // The product reads x after it has written the first of its elements.
    assert_eq!(donated(&format!("ROOT r = f32[32,32] dot(x, y), {product}")), 12 * KIB);
    assert_eq!(donated(&format!("ROOT r = f32[32,32] dot(y, y), {product}")), 8 * KIB);
    let twice =
        format!("t = f32[32,32] dot(x, x), {product}\n  ROOT r = f32[32,32] dot(t, y), {product}");
    assert_eq!(donated(&twice), 12 * KIB);
}

#[test]
fn rewritten_models_hold_no_more_than_they_did() {
    let files = ["models", "real"].map(|folder| fixtures(folder).expect("a folder"));
    for file in files.into_iter().flatten() {
        let before = module(&file.text().expect("a text"));
        for name in ["cpu", "tpu-like"] {
            let report = optimized(&before, &pipeline("default", name)).report;
            let [was, is] = report.peak_live_bytes;
            let on_chip = CostModel::new(&target(name), &Memo::default()).on_chip_bytes();
            // Values that are stored for a convolution are computed for reduces again, so their
            // operands are kept for longer.
            let most = was + was / 16 + on_chip;
            assert!(is <= most, "{} on {name}: {was}, then {is}", file.name);
        }
    }
}
