//! Modules that once were wrong.

use super::{Near, agrees, op};

/// What is read of a block began before the array.
#[test]
fn a_reverse_of_what_fills_no_tile() {
    agrees(Near::Same, &op(&["f32[9,130]"], "ROOT r = f32[9,130] reverse(x0), dimensions={0}"));
    agrees(Near::Same, &op(&["f32[40,130]"], "ROOT r = f32[40,130] reverse(x0), dimensions={0,1}"));
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
