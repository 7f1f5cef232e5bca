//! Tests ops that kernels do not compute, and ops that a strategy does not support.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tilewright::interp::evaluate;
use tilewright::lower::{ErrorKind, Strategy};
use tilewright::{Limits, lowering, random_inputs, simulate};

use super::{parsed, target};

#[test]
fn dynamic_dims_are_left_to_the_host() {
    let text = "HloModule dynamic
f { a = s32[] parameter(0) b = s32[] parameter(1) ROOT c = s32[] add(a, b) }
ENTRY e {
  x = s32[6,100] parameter(0)
  n = s32[] constant(40)
  y = s32[6,<=100] set-dimension-size(x, n), dimensions={1}
  z = s32[] constant(0)
  sum = s32[6] reduce(y, z), dimensions={1}, to_apply=f
  top = (s32[6,9], s32[6,9]) topk(y), k=9, largest=true
  ROOT r = (s32[6], (s32[6,9], s32[6,9])) tuple(sum, top)
}";
    let module = parsed(text);
    let inputs = random_inputs(&module, 0).unwrap();
    for name in ["tpu-like", "mlu-like", "linear", "cpu"] {
        let target = target(name);
        for lowered in lowering::kernels(&module, &target, Strategy::Fused) {
            assert!(lowered.why_not.unwrap().contains("dynamic dims"));
        }
        let limits = Limits::default();
        let (outputs, ran) =
            simulate::run(&module, &inputs, &target, Strategy::Fused, &limits).unwrap();
        assert_eq!(outputs.output, evaluate(&module, &inputs, &limits).unwrap());
        assert!(ran.kernels.is_empty());
    }
}

/// Nobody says in which precision the sum is computed, so there is no kernel; the error names the
/// instruction of the program.
#[test]
fn floats_of_different_precision() {
    let text = "HloModule mixed
ENTRY e {
  p = f32[8,128] parameter(0)
  q = bf16[8,128] parameter(1)
  ROOT r = f32[8,128] add(p, q)
}";
    let module = parsed(text);
    let inputs = random_inputs(&module, 0).unwrap();
    let target = target("tpu-like");
    let limits = Limits::default();
    let ran = simulate::run(&module, &inputs, &target, Strategy::Fused, &limits).map(drop);
    let kernels = lowering::module_kernels(&module, &target, Strategy::Fused).map(drop);
    for error in [ran.unwrap_err(), kernels.unwrap_err()] {
        assert_eq!(error.place().as_deref(), Some("r"), "{error}");
        assert!(error.to_string().contains("different precision"), "{error}");
    }
}

/// Combining axis by axis needs an identity.
#[test]
fn what_has_no_identity_is_done_in_one_pass() {
    let text = "HloModule unknown
f {
  a = s32[] parameter(0)
  b = s32[] parameter(1)
  p = s32[] multiply(a, b)
  s = s32[] add(a, b)
  ROOT c = s32[] add(p, s)
}
ENTRY e {
  x = s32[6,5,40] parameter(0)
  three = s32[] constant(3)
  ROOT r = s32[5] reduce(x, three), dimensions={0,2}, to_apply=f
}";
    let module = parsed(text);
    let inputs = random_inputs(&module, 0).unwrap();
    let (target, limits) = (target("tpu-like"), Limits::default());
    let run = |strategy| simulate::run(&module, &inputs, &target, strategy, &limits).unwrap();
    let ((looped, by_axes), (fused, at_once)) = (run(Strategy::Looped), run(Strategy::Fused));
    assert_eq!(looped.output, fused.output);
    assert_eq!((by_axes.counters, by_axes.kernels), (at_once.counters, at_once.kernels));
    let [refused] = &by_axes.refused[..] else { panic!("{:?}", by_axes.refused) };
    assert!(refused.why.contains("no identity"), "{refused:?}");
    assert!(at_once.refused.is_empty());
}

#[test]
fn a_cancelled_lowering_ends() {
    let text = "HloModule m
f { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }
ENTRY e {
  x = f32[8,128] parameter(0)
  zero = f32[] constant(0)
  ROOT y = f32[8] reduce(x, zero), dimensions={1}, to_apply=f
}";
    let (module, target) = (parsed(text), target("tpu-like"));
    let cancel = Arc::new(AtomicBool::new(false));
    let strategy = Strategy::Fused;
    let kernels = || lowering::module_kernels_with_cancel(&module, &target, strategy, &cancel);
    let plans = || lowering::plans_with_cancel(&module, &target, strategy, &cancel);
    // Without the passes that come before, which would be cancelled first.
    let lower = || tilewright::lower::lower_with_cancel(&module, &target, strategy, &cancel);
    assert_eq!(kernels().unwrap(), lowering::module_kernels(&module, &target, strategy).unwrap());
    assert_eq!(plans().unwrap(), lowering::plans(&module, &target, strategy).unwrap());
    assert!(lower().is_ok());
    cancel.store(true, Ordering::Relaxed);
    assert!(kernels().unwrap_err().to_string().contains("was cancelled"));
    assert_eq!(plans().unwrap_err().to_string(), "the lowering was cancelled");
    assert_eq!(lower().unwrap_err().kind, ErrorKind::Cancelled);
}

#[test]
fn a_cancelled_run_ends() {
    let text = "HloModule m
ENTRY e {
  x = f32[8] parameter(0)
  ROOT y = f32[8] negate(x)
}";
    let module = parsed(text);
    let inputs = random_inputs(&module, 0).unwrap();
    let target = target("tpu-like");
    let (limits, progress) = (Limits::default(), tilewright::Progress::new());
    let run = || {
        let strategy = Strategy::Fused;
        simulate::run_with_progress(&module, &inputs, &target, strategy, &limits, &progress)
    };
    assert!(run().is_ok());
    progress.cancel();
    assert!(run().unwrap_err().to_string().contains("was cancelled"));
}
