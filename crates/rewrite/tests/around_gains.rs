//! The result of a pipeline differs from its input only around the gains.

use crate::common::{module, optimized, pipeline, short};
use tilewright_ir::Verified;
use tilewright_testkit::fixture::fixtures;

/// A module with a part of its own beside sums over the parts of a split channel dim.
fn beside_sums(part: &str, result: &str) -> Verified {
    module(&format!(
        "HloModule beside_sums

add {{
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b)
}}

clip {{
  p = f32[512,512] parameter(0)
  z = f32[] constant(0)
  zs = f32[512,512] broadcast(z), dimensions={{}}
  ROOT m = f32[512,512] maximum(p, zs)
}}

ENTRY main {{
  u = f32[512,512] parameter(0)
{part}
  x = f32[8,64,64,320] parameter(1)
  zero = f32[] constant(0)
  g = f32[8,64,64,32,10] reshape(x)
  s = f32[8,32] reduce(g, zero), dimensions={{1,2,4}}, to_apply=add
  n = f32[] constant(40960)
  ns = f32[8,32] broadcast(n), dimensions={{}}
  mean = f32[8,32] divide(s, ns)
  wide = f32[8,64,64,32,10] broadcast(mean), dimensions={{0,3}}
  centred = f32[8,64,64,32,10] subtract(g, wide)
  y = f32[8,64,64,320] reshape(centred)
  ROOT out = (f32[512,512], f32[8,64,64,320]) tuple({result}, y)
}}
"
    ))
}

/// Code that every cleanup would simplify.
const UNTIDY: &str = "  one = f32[] constant(1)
  ones = f32[512,512] broadcast(one), dimensions={}
  same = f32[512,512] multiply(u, ones)
  call = f32[512,512] call(same), to_apply=clip
  there = f32[512,512,1] reshape(call)
  back = f32[512,512] reshape(there)
  d0 = f32[512,512] add(back, u)
  unused = f32[512,512] negate(d0)
  d1 = f32[512,512] add(back, u)
  d = f32[512,512] multiply(d0, d1)";

#[test]
fn what_gains_nothing_stays_as_it_was_written() {
    let before = beside_sums(UNTIDY, "d");
    let after = optimized(&before, &pipeline("default", "tpu-like"));
    assert!(!after.report.unchanged);
    // The passes found rewrites there, but a backend makes them by itself.
    assert!(after.report.passes.iter().any(|pass| pass.name == "cse" && pass.changes > 0));
    let text = short(&after.module);
    let clip = short(&before);
    let clip = clip.split("\n\n").find(|part| part.contains("maximum")).unwrap();
    assert!(text.contains(clip), "{text}");
    assert!(text.contains(&format!("u = f32[512,512] parameter(0)\n{UNTIDY}\n")), "{text}");
    insta::assert_snapshot!(text);
}

#[test]
fn what_acts_outside_acts_once() {
    // The call is inlined, and its operand is part of the moved region.
    let before = module(
        "HloModule reads

read {
  begun = token[] after-all()
  fed = (f32[8,32], token[]) infeed(begun)
  ROOT s = f32[8,32] get-tuple-element(fed), index=0
}

ENTRY main {
  x = f32[8,64,64,320] parameter(0)
  g = f32[8,64,64,32,10] reshape(x)
  s = f32[8,32] call(), to_apply=read
  wide = f32[8,64,64,32,10] broadcast(s), dimensions={0,3}
  less = f32[8,64,64,32,10] subtract(g, wide)
  ROOT y = f32[8,64,64,320] reshape(less)
}
",
    );
    let after = optimized(&before, &pipeline("default", "tpu-like"));
    assert!(!after.report.unchanged);
    let text = short(&after.module);
    assert_eq!(text.matches(" infeed(").count(), 1, "{text}");
    assert!(!text.contains("to_apply=read"), "{text}");
}

#[test]
fn a_new_computation_comes_with_its_user_in_a_loop() {
    // The sum of bf16 gets a reduction in f32, which the body of the loop calls.
    let before = module(
        "HloModule loop_of_narrow_sums

add {
  a = bf16[] parameter(0)
  b = bf16[] parameter(1)
  ROOT s = bf16[] add(a, b)
}

body {
  carried = (s32[], bf16[256,1024], bf16[256]) parameter(0)
  i = s32[] get-tuple-element(carried), index=0
  one = s32[] constant(1)
  next = s32[] add(i, one)
  x = bf16[256,1024] get-tuple-element(carried), index=1
  there = bf16[256,1024,1] reshape(x)
  back = bf16[256,1024] reshape(there)
  zero = bf16[] constant(0)
  sum = bf16[256] reduce(back, zero), dimensions={1}, to_apply=add
  ROOT out = (s32[], bf16[256,1024], bf16[256]) tuple(next, x, sum)
}

condition {
  carried = (s32[], bf16[256,1024], bf16[256]) parameter(0)
  i = s32[] get-tuple-element(carried), index=0
  n = s32[] constant(3)
  ROOT more = pred[] compare(i, n), direction=LT
}

ENTRY main {
  x = bf16[256,1024] parameter(0)
  y = bf16[256] parameter(1)
  i = s32[] constant(0)
  begin = (s32[], bf16[256,1024], bf16[256]) tuple(i, x, y)
  ROOT end = (s32[], bf16[256,1024], bf16[256]) while(begin), condition=condition, body=body
}
",
    );
    let after = optimized(&before, &pipeline("default", "cpu"));
    insta::assert_snapshot!(short(&after.module));
}

#[test]
fn what_was_gained_is_kept_whole() {
    // Equal except for names, which the untidy part may have taken.
    let alone = beside_sums("", "u");
    let tidy = optimized(&alone, &pipeline("default", "tpu-like"));
    let beside = optimized(&beside_sums(UNTIDY, "d"), &pipeline("default", "tpu-like"));
    let sums = |text: &str| {
        let lines = text.lines().skip_while(|line| !line.contains("x = f32[8,64,64,320]"));
        let lines = lines.take_while(|line| !line.contains("ROOT"));
        let ops = lines.map(|line| line.split(['=', '(']).nth(1).unwrap_or_default().to_owned());
        ops.collect::<Vec<_>>()
    };
    assert!(!tidy.report.unchanged && !beside.report.unchanged);
    let (tidy, beside) = (sums(&short(&tidy.module)), sums(&short(&beside.module)));
    assert!(tidy.iter().any(|op| op.contains("reduce")), "{tidy:?}");
    assert_eq!(tidy, beside);
}

#[test]
fn what_comes_out_cannot_be_improved_again() {
    // The simplest form of the result equals what the passes reached: no part that was put back
    // prevented a gain.
    let files = fixtures("real").unwrap();
    let mut tried = 0;
    for file in files.iter().filter(|file| file.name.contains("group_norm")).take(12) {
        let before = module(&file.text().unwrap());
        let options = pipeline("default", "tpu-like");
        let once = optimized(&before, &options);
        if once.report.unchanged {
            continue;
        }
        tried += 1;
        let tidy = |module| optimized(module, &pipeline("cleanup", "tpu-like"));
        let reached = tidy(&once.module).report.after.cycles;
        assert!(reached <= once.report.after.cycles * 1.001, "{}", file.name);
    }
    assert!(tried > 8, "{tried}");
}
