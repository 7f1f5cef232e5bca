//! Kernels within what loops, branches and calls compute.

use super::{Near, agrees_somehow, machines, parsed, ran};

/// Returns how many kernels ran on `tpu-like`.
fn kernels(text: &str) -> usize {
    agrees_somehow(Near::Same, text);
    let module = parsed(text);
    let inputs = tilewright::random_inputs(&module, 3).unwrap();
    ran(Near::Same, &module, &machines()[0], &inputs).kernels.len()
}

#[test]
fn a_loop() {
    let text = "HloModule loop
add { a = s32[] parameter(0) b = s32[] parameter(1) ROOT c = s32[] add(a, b) }
body {
  s = (s32[], s32[9,130]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  x = s32[9,130] get-tuple-element(s), index=1
  one = s32[] constant(1)
  zero = s32[] constant(0)
  n = s32[] add(i, one)
  sum = s32[9] reduce(x, zero), dimensions={1}, to_apply=add
  b = s32[9,130] broadcast(sum), dimensions={0}
  k = s32[9,130] broadcast(i), dimensions={}
  y = s32[9,130] subtract(x, b)
  z = s32[9,130] add(y, k)
  ROOT r = (s32[], s32[9,130]) tuple(n, z)
}
cond {
  s = (s32[], s32[9,130]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(3)
  ROOT lt = pred[] compare(i, n), direction=LT
}
ENTRY e {
  x = s32[9,130] parameter(0)
  zero = s32[] constant(0)
  s = (s32[], s32[9,130]) tuple(zero, x)
  w = (s32[], s32[9,130]) while(s), body=body, condition=cond
  v = s32[9,130] get-tuple-element(w), index=1
  ROOT r = s32[9,130] negate(v)
}";
    // The body three times, the condition four times, and the end.
    assert_eq!(kernels(text), 3 + 4 + 1);
}

#[test]
fn branches() {
    let text = "HloModule branches
up { x = s32[9,130] parameter(0) ROOT y = s32[9,130] add(x, x) }
down { x = s32[9,130] parameter(0) ROOT y = s32[9,130] negate(x) }
ENTRY e {
  p = pred[] parameter(0)
  x = s32[9,130] parameter(1)
  y = s32[9,130] abs(x)
  c = s32[9,130] conditional(p, y, x), true_computation=up, false_computation=down
  ROOT r = s32[9,130] multiply(c, y)
}";
    assert_eq!(kernels(text), 3);
    let text = "HloModule switch
a { x = s32[40] parameter(0) ROOT y = s32[40] add(x, x) }
b { x = s32[40] parameter(0) ROOT y = s32[40] negate(x) }
c { x = s32[40] parameter(0) ROOT y = s32[40] multiply(x, x) }
ENTRY e {
  n = s32[] parameter(0)
  x = s32[40] parameter(1)
  ROOT r = s32[40] conditional(n, x, x, x), branch_computations={a, b, c}
}";
    assert_eq!(kernels(text), 1);
}

#[test]
fn calls() {
    let text = "HloModule calls
inner { x = s32[9,130] parameter(0) y = s32[9,130] parameter(1)
  t = s32[9,130] multiply(x, y) ROOT r = s32[9,130] add(t, x) }
outer { x = s32[9,130] parameter(0) n = s32[9,130] negate(x)
  ROOT r = s32[9,130] call(n, x), to_apply=inner }
ENTRY e {
  x = s32[9,130] parameter(0)
  a = s32[9,130] call(x), to_apply=outer
  b = s32[9,130] call(a, x), to_apply=inner
  ROOT r = (s32[9,130], s32[9,130]) tuple(a, b)
}";
    // Calls are inlined: both results come from one kernel.
    assert_eq!(kernels(text), 1);
}

/// A fusion of the program stays one, and is computed as before.
#[test]
fn fusions() {
    let text = "HloModule fused
add { a = s32[] parameter(0) b = s32[] parameter(1) ROOT c = s32[] add(a, b) }
fused { x = s32[9,130] parameter(0) y = s32[9,130] parameter(1)
  zero = s32[] constant(0)
  t = s32[9,130] multiply(x, y)
  s = s32[9] reduce(t, zero), dimensions={1}, to_apply=add
  ROOT r = (s32[9,130], s32[9]) tuple(t, s) }
ENTRY e {
  x = s32[9,130] parameter(0)
  n = s32[9,130] negate(x)
  f = (s32[9,130], s32[9]) fusion(n, x), kind=kLoop, calls=fused
  t = s32[9,130] get-tuple-element(f), index=0
  s = s32[9] get-tuple-element(f), index=1
  b = s32[9,130] broadcast(s), dimensions={0}
  ROOT r = s32[9,130] add(t, b)
}";
    // What is before the fusion and after it is computed by kernels.
    let kernels = kernels(text);
    println!("{kernels} kernels");
    assert!(kernels >= 1, "no kernels");
}

/// The host runs its ops between kernels.
#[test]
fn the_host() {
    let text = "HloModule host
ENTRY e {
  x = s32[12,12] parameter(0)
  i = s32[] parameter(1)
  a = s32[12,12] add(x, x)
  d = s32[12,12] dot(a, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  z = s32[] constant(0)
  j = s32[] add(i, z)
  s = s32[3,12] dynamic-slice(d, j, z), dynamic_slice_sizes={3,12}
  n = s32[3,12] negate(s)
  t = s32[12,3] transpose(n), dimensions={1,0}
  g = (s32[12,3], s32[3,12]) tuple(t, s)
  h = s32[12,3] get-tuple-element(g), index=0
  ROOT r = s32[12,3] multiply(h, t)
}";
    let module = parsed(text);
    let inputs = tilewright::random_inputs(&module, 0).unwrap();
    for target in machines() {
        let ran = ran(Near::Same, &module, &target, &inputs);
        let host: Vec<_> = ran.host_calls.into_iter().collect();
        assert_eq!(host, [("dot", 1), ("dynamic-slice", 1)], "{}", target.name);
    }
}
