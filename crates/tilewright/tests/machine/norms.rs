//! Norms: how many kernels they are, and what these read and write.

use tilewright::ir::Verified;
use tilewright::simulate::Simulated;
use tilewright::{Options, Target, optimize, random_inputs};

use super::{Near, agrees, fused_as_it_should, parsed, ran, target};

const REDUCERS: &str = "
add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }
max { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] maximum(a, b) }
ENTRY e {
  zero = f32[] constant(0)
  low = f32[] constant(-inf)
  eps = f32[] constant(1e-5)
";

/// Returns a module of one image `x`, with what follows.
fn module(parameters: &[&str], statements: &str) -> String {
    let declared = parameters.iter().enumerate();
    let declared: String = declared
        .map(|(number, parameter)| {
            let (name, shape) = parameter.split_once(": ").unwrap();
            format!("  {name} = {shape} parameter({number})\n")
        })
        .collect();
    format!("HloModule norm{REDUCERS}{declared}{statements}\n}}")
}

pub(super) fn softmax(dims: &str, rows: &str) -> String {
    module(
        &[&format!("x: f32{dims}")],
        &format!(
            "  m = f32{rows} reduce(x, low), dimensions={{2}}, to_apply=max
  mb = f32{dims} broadcast(m), dimensions={{0,1}}
  d = f32{dims} subtract(x, mb)
  p = f32{dims} exponential(d)
  s = f32{rows} reduce(p, zero), dimensions={{2}}, to_apply=add
  sb = f32{dims} broadcast(s), dimensions={{0,1}}
  ROOT r = f32{dims} divide(p, sb)"
        ),
    )
}

fn layer_norm(dims: &str, rows: &str, channels: u32) -> String {
    module(
        &[
            &format!("x: f32{dims}"),
            &format!("scale: f32[{channels}]"),
            &format!("bias: f32[{channels}]"),
        ],
        &format!(
            "  n = f32[] constant({channels})
  nb = f32{rows} broadcast(n), dimensions={{}}
  s = f32{rows} reduce(x, zero), dimensions={{2}}, to_apply=add
  mean = f32{rows} divide(s, nb)
  mb = f32{dims} broadcast(mean), dimensions={{0,1}}
  d = f32{dims} subtract(x, mb)
  q = f32{dims} multiply(d, d)
  v = f32{rows} reduce(q, zero), dimensions={{2}}, to_apply=add
  var = f32{rows} divide(v, nb)
  eb = f32{rows} broadcast(eps), dimensions={{}}
  ve = f32{rows} add(var, eb)
  root = f32{rows} rsqrt(ve)
  rb = f32{dims} broadcast(root), dimensions={{0,1}}
  y = f32{dims} multiply(d, rb)
  sb = f32{dims} broadcast(scale), dimensions={{2}}
  w = f32{dims} multiply(y, sb)
  bb = f32{dims} broadcast(bias), dimensions={{2}}
  ROOT r = f32{dims} add(w, bb)"
        ),
    )
}

fn rms_norm(dims: &str, rows: &str, channels: u32) -> String {
    module(
        &[&format!("x: f32{dims}"), &format!("scale: f32[{channels}]")],
        &format!(
            "  n = f32[] constant({channels})
  nb = f32{rows} broadcast(n), dimensions={{}}
  q = f32{dims} multiply(x, x)
  s = f32{rows} reduce(q, zero), dimensions={{2}}, to_apply=add
  mean = f32{rows} divide(s, nb)
  eb = f32{rows} broadcast(eps), dimensions={{}}
  ve = f32{rows} add(mean, eb)
  root = f32{rows} rsqrt(ve)
  rb = f32{dims} broadcast(root), dimensions={{0,1}}
  y = f32{dims} multiply(x, rb)
  sb = f32{dims} broadcast(scale), dimensions={{2}}
  ROOT r = f32{dims} multiply(y, sb)"
        ),
    )
}

/// Group norm as JAX writes it: channels are a group and a place in it.
pub(super) fn group_norm([n, h, w, g, c]: [u32; 5]) -> String {
    let (image, grouped) = (format!("[{n},{h},{w},{}]", g * c), format!("[{n},{h},{w},{g},{c}]"));
    let (groups, channels, count) = (format!("[{n},{g}]"), g * c, h * w * c);
    module(
        &[
            &format!("x: f32{image}"),
            &format!("scale: f32[{channels}]"),
            &format!("bias: f32[{channels}]"),
        ],
        &format!(
            "  n = f32[] constant({count})
  nb = f32{groups} broadcast(n), dimensions={{}}
  g = f32{grouped} reshape(x)
  s = f32{groups} reduce(g, zero), dimensions={{1,2,4}}, to_apply=add
  mean = f32{groups} divide(s, nb)
  mb = f32{grouped} broadcast(mean), dimensions={{0,3}}
  d = f32{grouped} subtract(g, mb)
  q = f32{grouped} multiply(d, d)
  v = f32{groups} reduce(q, zero), dimensions={{1,2,4}}, to_apply=add
  var = f32{groups} divide(v, nb)
  eb = f32{groups} broadcast(eps), dimensions={{}}
  ve = f32{groups} add(var, eb)
  root = f32{groups} rsqrt(ve)
  rb = f32{grouped} broadcast(root), dimensions={{0,3}}
  y = f32{grouped} multiply(d, rb)
  z = f32{image} reshape(y)
  sb = f32{image} broadcast(scale), dimensions={{3}}
  u = f32{image} multiply(z, sb)
  bb = f32{image} broadcast(bias), dimensions={{3}}
  ROOT r = f32{image} add(u, bb)"
        ),
    )
}

fn batch_norm([n, h, w, c]: [u32; 4]) -> String {
    let (image, count) = (format!("[{n},{h},{w},{c}]"), n * h * w);
    module(
        &[&format!("x: f32{image}"), &format!("scale: f32[{c}]")],
        &format!(
            "  n = f32[] constant({count})
  nb = f32[{c}] broadcast(n), dimensions={{}}
  s = f32[{c}] reduce(x, zero), dimensions={{0,1,2}}, to_apply=add
  q = f32{image} multiply(x, x)
  t = f32[{c}] reduce(q, zero), dimensions={{0,1,2}}, to_apply=add
  mean = f32[{c}] divide(s, nb)
  square = f32[{c}] divide(t, nb)
  m2 = f32[{c}] multiply(mean, mean)
  var = f32[{c}] subtract(square, m2)
  eb = f32[{c}] broadcast(eps), dimensions={{}}
  ve = f32[{c}] add(var, eb)
  root = f32[{c}] rsqrt(ve)
  f = f32[{c}] multiply(root, scale)
  mb = f32{image} broadcast(mean), dimensions={{3}}
  d = f32{image} subtract(x, mb)
  fb = f32{image} broadcast(f), dimensions={{3}}
  ROOT r = f32{image} multiply(d, fb)"
        ),
    )
}

/// Returns a `tpu-like` machine that has 1 MiB of vector memory: 16 KiB stay there.
pub(super) fn cramped() -> Target {
    let mut target = target("tpu-like");
    target.name = "cramped".to_owned();
    target.vector_memory_bytes = 1 << 20;
    target
}

fn runs(module: &Verified, target: &Target) -> Simulated {
    let inputs = random_inputs(module, 0).unwrap();
    let ran = ran(Near::Sums, module, target, &inputs);
    assert!(ran.host_calls.is_empty(), "{:?}", ran.host_calls);
    ran
}

/// Returns the bytes that each kernel read and wrote, in order.
fn traffic(ran: &Simulated) -> Vec<(u64, u64)> {
    let bytes = |kernel: &tilewright::simulate::RanKernel| {
        (kernel.counters.hbm_read_bytes, kernel.counters.hbm_write_bytes)
    };
    ran.kernels.iter().map(bytes).collect()
}

/// One vector of 8x128 elements of 4 bytes.
const VECTOR: u64 = 4096;

#[test]
fn norms_of_rows_are_one_kernel() {
    // [8, 72, 200] lies in 8 * 9 * 2 vectors, [200] in one of 1024.
    let (dims, rows, image) = ("[8,72,200]", "[8,72]", 8 * 9 * 2 * VECTOR);
    for (text, small) in [
        (softmax(dims, rows), 0),
        (layer_norm(dims, rows, 200), 2 * VECTOR),
        (rms_norm(dims, rows, 200), VECTOR),
    ] {
        let module = parsed(&text);
        for target in [target("tpu-like"), cramped()] {
            let ran = runs(&module, &target);
            assert_eq!(traffic(&ran), [(image + small, image)], "{}\n{text}", target.name);
        }
    }
}

#[test]
fn a_group_norm_reads_the_image_three_times_or_once() {
    // [4, 16, 16, 48] lies in 4 * 16 * 2 vectors, [4, 48] and [48] in one.
    let image = 4 * 16 * 2 * VECTOR;
    let run_on = |target: Target| {
        let module = parsed(&group_norm([4, 16, 16, 8, 6]));
        let module = optimize(module, &Options::new(target.clone())).unwrap().module;
        traffic(&runs(&module, &target))
    };
    // Sums; then sums of squares; then the image, with scale, bias and both sums.
    let expected = [(image, VECTOR), (image + VECTOR, VECTOR), (image + 4 * VECTOR, image)];
    assert_eq!(run_on(cramped()), expected);
    // If the image stays in vector memory, one kernel computes everything.
    assert_eq!(run_on(target("tpu-like")), [(image + 2 * VECTOR, image)]);
}

#[test]
fn a_batch_norm_reads_the_image_twice() {
    let module = parsed(&batch_norm([4, 16, 16, 48]));
    let image = 4 * 16 * 2 * VECTOR;
    let ran = runs(&module, &cramped());
    // Both sums in one pass, each of one vector.
    let expected = [(image, 2 * VECTOR), (image + 3 * VECTOR, image)];
    assert_eq!(traffic(&ran), expected);
}

#[test]
fn on_every_machine() {
    for (dims, rows, channels) in
        [("[2,24,200]", "[2,24]", 200), ("[3,5,7]", "[3,5]", 7), ("[1,1,1]", "[1,1]", 1)]
    {
        agrees(Near::Sums, &softmax(dims, rows));
        agrees(Near::Sums, &layer_norm(dims, rows, channels));
        agrees(Near::Sums, &rms_norm(dims, rows, channels));
    }
    for dims in [[2, 5, 9, 4, 5], [1, 4, 4, 3, 1], [2, 3, 3, 1, 7], [3, 1, 1, 5, 30]] {
        agrees(Near::Sums, &group_norm(dims));
    }
    for dims in [[2, 5, 9, 35], [1, 4, 4, 200], [3, 1, 2, 1]] {
        agrees(Near::Sums, &batch_norm(dims));
    }
}

/// With the reshapes moved out of the way.
#[test]
fn rewritten_on_every_machine() {
    for dims in [[2, 5, 9, 4, 5], [4, 16, 16, 8, 6], [2, 8, 8, 4, 40]] {
        for target in super::machines() {
            let module = parsed(&group_norm(dims));
            let options = Options::new(target.clone());
            let module = optimize(module, &options).unwrap().module;
            fused_as_it_should(&module, &target);
            runs(&module, &target);
        }
    }
}
