//! Which instructions become one kernel, and in what order.

use tilewright::{Target, random_inputs};

use super::{Near, op, parsed, ran, target};

/// Returns how many kernels there are, and how many outputs each has, in order.
fn outputs(text: &str, target: &Target) -> Vec<usize> {
    let module = parsed(text);
    let inputs = random_inputs(&module, 0).unwrap();
    let ran = ran(Near::Same, &module, target, &inputs);
    assert!(ran.host_calls.is_empty(), "{:?}", ran.host_calls);
    let kernels = super::fused_as_it_should(&module, target);
    let module = &kernels.module;
    let entry = module.instructions(module.entry().unwrap());
    let fusions = entry.filter(|id| kernels.kernels.contains_key(id));
    fusions.map(|id| module.shape(id).leaves().len()).collect()
}

/// 16 KiB stay in vector memory here.
fn cramped() -> Target {
    super::norms::cramped()
}

/// More than that.
const LARGE: &str = "s32[128,128]";

#[test]
fn what_reads_the_same_is_one_kernel() {
    let text = op(
        &[LARGE, LARGE],
        &format!(
            "a = {LARGE} add(x0, x1)\n  b = {LARGE} subtract(x0, x1)\n  \
             ROOT r = ({LARGE}, {LARGE}) tuple(a, b)"
        ),
    );
    assert_eq!(outputs(&text, &cramped()), [2]);
}

#[test]
fn what_reads_nothing_in_common_is_not() {
    let text = op(
        &[LARGE, LARGE],
        &format!(
            "a = {LARGE} negate(x0)\n  b = {LARGE} negate(x1)\n  \
             ROOT r = ({LARGE}, {LARGE}) tuple(a, b)"
        ),
    );
    assert_eq!(outputs(&text, &cramped()), [1, 1]);
}

#[test]
fn results_of_other_dims_are_not() {
    let text = op(
        &[LARGE],
        &format!(
            "a = {LARGE} negate(x0)\n  b = s32[64,256] reshape(x0)\n  c = s32[64,256] negate(b)\n  \
             ROOT r = ({LARGE}, s32[64,256]) tuple(a, c)"
        ),
    );
    assert_eq!(outputs(&text, &target("linear")), [1, 1]);
}

/// One needs the other: sums over all of it lie between.
#[test]
fn what_needs_the_other_is_not() {
    let text = format!(
        "HloModule needs
add {{ a = s32[] parameter(0) b = s32[] parameter(1) ROOT c = s32[] add(a, b) }}
ENTRY e {{
  x = {LARGE} parameter(0)
  zero = s32[] constant(0)
  t = {LARGE} transpose(x), dimensions={{1,0}}
  a = {LARGE} add(t, x)
  u = {LARGE} transpose(a), dimensions={{1,0}}
  b = {LARGE} subtract(x, u)
  s = s32[] reduce(b, zero), dimensions={{0,1}}, to_apply=add
  sb = {LARGE} broadcast(s), dimensions={{}}
  c = {LARGE} add(x, sb)
  ROOT r = ({LARGE}, {LARGE}, {LARGE}) tuple(a, b, c)
}}"
    );
    for target in [cramped(), target("tpu-like"), target("linear"), super::odd()] {
        let kernels = outputs(&text, &target);
        assert!(kernels.iter().sum::<usize>() >= 3, "{kernels:?} on {}", target.name);
    }
}

/// Two rows of kernels that need each other crosswise: `a1` and `b1` are one kernel, or
/// `a2` and `b2` are, but never `a1` with `b2` and `b1` with `a2`.
#[test]
fn crosswise() {
    let text = format!(
        "HloModule crosswise
ENTRY e {{
  x = {LARGE} parameter(0)
  y = {LARGE} parameter(1)
  a1 = {LARGE} negate(x)
  b1 = {LARGE} negate(y)
  ta = {LARGE} transpose(a1), dimensions={{1,0}}
  tb = {LARGE} transpose(b1), dimensions={{1,0}}
  b2 = {LARGE} add(ta, x)
  a2 = {LARGE} add(tb, y)
  tc = {LARGE} transpose(b2), dimensions={{1,0}}
  td = {LARGE} transpose(a2), dimensions={{1,0}}
  b3 = {LARGE} add(tc, y)
  a3 = {LARGE} subtract(td, x)
  ROOT r = ({LARGE}, {LARGE}, {LARGE}, {LARGE}, {LARGE}, {LARGE}) tuple(a1, b1, b2, a2, b3, a3)
}}"
    );
    for target in [cramped(), target("mlu-like"), target("linear"), super::odd()] {
        let kernels = outputs(&text, &target);
        // Six results at least: a1 is apart from what needs its transpose.
        assert!(kernels.iter().sum::<usize>() >= 6, "{kernels:?}");
        assert!(kernels.len() >= 3, "{kernels:?}");
    }
}

/// A result that others need, and that is one itself.
#[test]
fn results_that_are_used() {
    let text = op(
        &[LARGE],
        &format!(
            "a = {LARGE} negate(x0)\n  b = {LARGE} add(a, x0)\n  c = {LARGE} multiply(b, a)\n  \
             ROOT r = ({LARGE}, {LARGE}, {LARGE}, {LARGE}) tuple(c, b, a, c)"
        ),
    );
    assert_eq!(outputs(&text, &cramped()), [3]);
}

/// Nothing is computed that nobody needs.
#[test]
fn what_is_not_needed() {
    let text = op(
        &[LARGE],
        &format!(
            "a = {LARGE} negate(x0)\n  b = {LARGE} transpose(a), dimensions={{1,0}}\n  \
             ROOT r = {LARGE} add(x0, x0)"
        ),
    );
    assert_eq!(outputs(&text, &cramped()), [1]);
}

/// The same value twice, parameters, constants and nothing at all as results.
#[test]
fn results_that_need_no_kernel() {
    let text = op(
        &["s32[40]"],
        "c = s32[] constant(3)\n  n = s32[40] negate(x0)\n  ROOT r = (s32[40], s32[], s32[40], s32[40]) tuple(x0, c, n, n)",
    );
    assert_eq!(outputs(&text, &target("tpu-like")), [1]);
    assert_eq!(outputs(&op(&["s32[40]"], "ROOT r = () tuple()"), &target("tpu-like")), [0; 0]);
    let text = "HloModule m ENTRY e { ROOT x = s32[40] parameter(0) }";
    assert_eq!(outputs(text, &target("tpu-like")), [0; 0]);
}

/// Many results of one array: as many kernels as registers ask for, all right.
#[test]
fn many_results() {
    let mut body = String::new();
    let mut names = Vec::new();
    // Neither 0 nor 1, which are no multiplications.
    for n in 2..42 {
        body.push_str(&format!(
            "c{n} = s32[] constant({n})\n  d{n} = {LARGE} broadcast(c{n}), dimensions={{}}\n  \
             v{n} = {LARGE} multiply(x0, d{n})\n  "
        ));
        names.push(format!("v{n}"));
    }
    let shapes = vec![LARGE; 40].join(", ");
    let text = op(&[LARGE], &format!("{body}ROOT r = ({shapes}) tuple({})", names.join(", ")));
    for target in super::machines() {
        assert_eq!(outputs(&text, &target).iter().sum::<usize>(), 40);
    }
}

/// Layouts in which results do not lie alike are one kernel only where all of these fit.
#[test]
fn results_that_lie_differently() {
    let (a, b) = ("s32[128,128]{1,0}", "s32[128,128]{0,1}");
    let text = op(
        &[a],
        &format!("p = {a} negate(x0)\n  q = {b} negate(x0)\n  ROOT r = ({a}, {b}) tuple(p, q)"),
    );
    assert_eq!(outputs(&text, &cramped()), [2]);
    let mut target = cramped();
    // Room for what is read and one result of 64 KiB each, but not for two.
    target.vector_memory_bytes = 160 * 1024;
    assert_eq!(outputs(&text, &target), [1, 1]);
}

/// What waits for another instruction is in no kernel, and what it waits for stays beside one.
#[test]
fn control_dependencies() {
    let text = "HloModule m
ENTRY e {
  x = s32[40] parameter(0)
  a = s32[40] negate(x)
  b = s32[40] add(x, x), control-predecessors={a}
  ROOT r = (s32[40], s32[40]) tuple(a, b)
}";
    let module = parsed(text);
    let inputs = random_inputs(&module, 0).unwrap();
    for target in super::machines() {
        let ran = ran(Near::Same, &module, &target, &inputs);
        assert_eq!(ran.kernels.len(), 1, "{:?} on {}", ran.host_calls, target.name);
        assert!(!ran.host_calls.is_empty(), "on {}", target.name);
    }
}

/// Computations on another thread stay on it.
#[test]
fn threads() {
    let text = "HloModule thread
square {
  x = f32[2,3] parameter(0)
  ROOT r = f32[2,3] multiply(x, x)
}, execution_thread=\"host\"
ENTRY main {
  x = f32[2,3] parameter(0)
  ROOT r = f32[2,3] call(x), to_apply=square
}";
    assert_eq!(outputs(text, &target("tpu-like")), [0; 0]);
}
