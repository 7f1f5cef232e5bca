//! Reductions with what is computed before and after them.

use super::{Near, agrees, op};

/// Computations that modules reduce by.
fn with_reducers(text: &str) -> String {
    let mut reducers = String::new();
    for element in ["f32", "bf16", "s32", "f64"] {
        for name in ["add", "maximum", "multiply"] {
            let s = format!("{element}[]");
            reducers.push_str(&format!(
                "{name}_{element} {{ a = {s} parameter(0) b = {s} parameter(1) ROOT c = {s} {name}(a, b) }}\n"
            ));
        }
    }
    text.replacen("ENTRY", &format!("{reducers}ENTRY"), 1)
}

fn chain(near: Near, shapes: &[&str], statements: &str) {
    let constants = "zero = f32[] constant(0)\n  low = f32[] constant(-inf)\n  \
                     none = s32[] constant(0)\n  one = s32[] constant(1)\n  ";
    agrees(near, &with_reducers(&op(shapes, &format!("{constants}{statements}"))));
}

#[test]
fn of_computed_elements() {
    for (x, y, axes) in [
        ("[16,256]", "[16]", "1"),
        ("[16,256]", "[256]", "0"),
        ("[16,256]", "[]", "0,1"),
        ("[5,9,35]", "[9]", "0,2"),
        ("[5,9,35]", "[5,35]", "1"),
        ("[5,9,35]", "[35]", "0,1"),
        ("[2,3,130]", "[2]", "1,2"),
        ("[4,0]", "[4]", "1"),
        ("[0,4]", "[0]", "1"),
        ("[1,1]", "[1]", "0"),
        ("[300]", "[]", "0"),
    ] {
        let reduce = |element: &str, init: &str, by: &str| {
            format!(
                "p = {element}{x} multiply(x0, x1)\n  \
                 r = {element}{y} reduce(p, {init}), dimensions={{{axes}}}, to_apply={by}_{element}\n  \
                 ROOT n = {element}{y} negate(r)"
            )
        };
        let both = |element: &str| [format!("{element}{x}"), format!("{element}{x}")];
        let (f, s) = (both("f32"), both("s32"));
        chain(Near::Sums, &[&f[0], &f[1]], &reduce("f32", "zero", "add"));
        chain(Near::Same, &[&f[0], &f[1]], &reduce("f32", "low", "maximum"));
        chain(Near::Same, &[&s[0], &s[1]], &reduce("s32", "none", "add"));
        chain(Near::Same, &[&s[0], &s[1]], &reduce("s32", "one", "multiply"));
        // The init is a parameter.
        chain(Near::Same, &[&s[0], &s[1], "s32[]"], &reduce("s32", "x2", "add"));
    }
}

#[test]
fn of_narrow_floats() {
    for (x, y, axes) in
        [("[16,256]", "[16]", "1"), ("[16,256]", "[256]", "0"), ("[5,9,35]", "[9]", "0,2")]
    {
        let statements = format!(
            "z = bf16[] constant(0)\n  p = bf16{x} multiply(x0, x1)\n  \
             w = f32{x} convert(p)\n  s = f32{y} reduce(w, zero), dimensions={{{axes}}}, to_apply=add_f32\n  \
             m = bf16{y} reduce(p, z), dimensions={{{axes}}}, to_apply=maximum_bf16\n  \
             n = bf16{y} convert(s)\n  ROOT r = (bf16{y}, bf16{y}) tuple(m, n)"
        );
        let x = format!("bf16{x}");
        chain(Near::Sums, &[&x, &x], &statements);
    }
}

/// Kernels use the reductions of rows before they write the rows.
#[test]
fn rows() {
    for (x, y, axes, kept) in [
        ("[16,256]", "[16]", "1", "0"),
        ("[3,24,200]", "[3,24]", "2", "0,1"),
        ("[3,24,200]", "[3,200]", "1", "0,2"),
        ("[3,24,200]", "[3]", "1,2", "0"),
        ("[3,24,200]", "[24,200]", "0", "1,2"),
        ("[2,1,5]", "[2,1]", "2", "0,1"),
        ("[7,1]", "[7]", "1", "0"),
        ("[300]", "[]", "0", ""),
    ] {
        let softmax = format!(
            "m = f32{y} reduce(x0, low), dimensions={{{axes}}}, to_apply=maximum_f32\n  \
             mb = f32{x} broadcast(m), dimensions={{{kept}}}\n  d = f32{x} subtract(x0, mb)\n  \
             e = f32{x} exponential(d)\n  \
             s = f32{y} reduce(e, zero), dimensions={{{axes}}}, to_apply=add_f32\n  \
             sb = f32{x} broadcast(s), dimensions={{{kept}}}\n  ROOT r = f32{x} divide(e, sb)"
        );
        chain(Near::Sums, &[&format!("f32{x}")], &softmax);
        let integers = format!(
            "s = s32{y} reduce(x0, none), dimensions={{{axes}}}, to_apply=add_s32\n  \
             sb = s32{x} broadcast(s), dimensions={{{kept}}}\n  \
             ROOT r = s32{x} subtract(x0, sb)"
        );
        chain(Near::Same, &[&format!("s32{x}")], &integers);
    }
}

/// Sums of products, and sums of the same array, side by side.
#[test]
fn siblings() {
    for (x, y, axes) in [
        ("[16,256]", "[16]", "1"),
        ("[16,256]", "[256]", "0"),
        ("[4,9,35]", "[9]", "0,2"),
        ("[4,9,35]", "[]", "0,1,2"),
    ] {
        let statements = format!(
            "q = f32{x} multiply(x0, x0)\n  p = f32{x} multiply(x0, x1)\n  \
             a = f32{y} reduce(x0, zero), dimensions={{{axes}}}, to_apply=add_f32\n  \
             b = f32{y} reduce(q, zero), dimensions={{{axes}}}, to_apply=add_f32\n  \
             c = f32{y} reduce(p, zero), dimensions={{{axes}}}, to_apply=add_f32\n  \
             d = f32{y} reduce(x1, low), dimensions={{{axes}}}, to_apply=maximum_f32\n  \
             ROOT r = (f32{y}, f32{y}, f32{y}, f32{y}) tuple(a, b, c, d)"
        );
        let x = format!("f32{x}");
        chain(Near::Sums, &[&x, &x], &statements);
    }
}

/// Reductions of reductions, and of moved elements.
#[test]
fn stages() {
    chain(
        Near::Same,
        &["s32[4,9,35]"],
        "a = s32[4,35] reduce(x0, none), dimensions={1}, to_apply=add_s32
  b = s32[4] reduce(a, none), dimensions={1}, to_apply=maximum_s32
  c = s32[4,9,35] broadcast(b), dimensions={0}
  d = s32[4,9,35] subtract(x0, c)
  e = s32[9] reduce(d, none), dimensions={0,2}, to_apply=add_s32
  f = s32[4,9,35] broadcast(e), dimensions={1}
  ROOT r = s32[4,9,35] add(d, f)",
    );
    chain(
        Near::Same,
        &["s32[6,40]", "s32[40]"],
        "t = s32[40,6] transpose(x0), dimensions={1,0}
  a = s32[6] reduce(t, none), dimensions={0}, to_apply=add_s32
  g = s32[40,2,3] reshape(t)
  b = s32[3] reduce(g, none), dimensions={0,1}, to_apply=add_s32
  p = s32[6] pad(b, one), padding=1_2
  y = s32[4,10] reshape(x1)
  c = s32[10] reduce(y, none), dimensions={0}, to_apply=maximum_s32
  s = s32[6] slice(c), slice={[2:8]}
  v = s32[6] reverse(s), dimensions={0}
  u = s32[6] add(a, p)
  w = s32[6] add(u, v)
  z = s32[6,40] broadcast(w), dimensions={0}
  ROOT r = s32[6,40] multiply(x0, z)",
    );
}
