//! Modules that once were wrong.

use tilewright::random_inputs;

use super::{Near, agrees, op, parsed, ran, target};

/// Regression: the read part of a block began before the array.
#[test]
fn a_reverse_of_what_fills_no_tile() {
    agrees(Near::Same, &op(&["f32[9,130]"], "ROOT r = f32[9,130] reverse(x0), dimensions={0}"));
    agrees(Near::Same, &op(&["f32[40,130]"], "ROOT r = f32[40,130] reverse(x0), dimensions={0,1}"));
}

/// The last blocks of a result hold padding alone, and began after the array that they read.
#[test]
fn a_reshape_whose_last_blocks_are_padding() {
    let mut target = target("mlu-like");
    (target.lanes, target.sublanes, target.vector_memory_bytes) = (128, 2, 64 * 1024);
    let text = "HloModule m
minimum { a = s64[] parameter(0) b = s64[] parameter(1) ROOT c = s64[] minimum(a, b) }
ENTRY e {
  x = s64[130,6] parameter(0)
  flat = s64[780] reshape(x)
  three = s64[] constant(3)
  ROOT r = s64[780] reduce(flat, three), dimensions={}, to_apply=minimum
}";
    let module = parsed(text);
    let inputs = random_inputs(&module, 0).unwrap();
    ran(Near::Same, &module, &target, &inputs);
}

/// A sum of nothing read what it did not have.
#[test]
fn a_sum_of_nothing() {
    for (x, y, axes) in
        [("[4,0]", "[4]", "1"), ("[0,4]", "[4]", "0"), ("[0]", "[]", "0"), ("[0,4]", "[0]", "1")]
    {
        let text = format!(
            "HloModule m
add {{ a = s32[] parameter(0) b = s32[] parameter(1) ROOT c = s32[] add(a, b) }}
ENTRY e {{
  x = s32{x} parameter(0)
  three = s32[] constant(3)
  s = s32{y} reduce(x, three), dimensions={{{axes}}}, to_apply=add
  ROOT n = s32{y} negate(s)
}}"
        );
        agrees(Near::Same, &text);
    }
}

/// Values at many indices, which took exponential time.
#[test]
fn sums_of_shifts_and_chains_of_reshapes() {
    let steps = (0..6).map(|n| {
        let (by, left) = (1 << n, 64 - (1 << n));
        format!(
            "cut{n} = s32[{left}] slice(x{n}), slice={{[0:{left}]}}
  p{n} = s32[64] pad(cut{n}, z), padding={by}_0
  x{} = s32[64] add(x{n}, p{n})\n  ",
            n + 1
        )
    });
    let sums: String = steps.collect();
    let root = format!("z = s32[] constant(0)\n  {sums}ROOT r = s32[64] negate(x6)");
    agrees(Near::Same, &op(&["s32[64]"], &root));
    let steps = (0..12).map(|n| {
        format!(
            "t{n} = f32[7,5,3] transpose(x{n}), dimensions={{2,1,0}}
  x{} = f32[3,5,7] reshape(t{n})\n  ",
            n + 1
        )
    });
    let turns: String = steps.collect();
    let root = format!("{turns}ROOT r = f32[3,5,7] negate(x12)");
    agrees(Near::Same, &op(&["f32[3,5,7]"], &root));
}
