//! What is refused says what is wrong and what to do.

#![allow(clippy::unwrap_used, reason = "a test panics where it fails")]

use tilewright_interp::{Limits, evaluate, inputs_for};

/// The error of a program of these lines, the last of which is the root.
fn error(lines: &str) -> String {
    let lines = lines.replace("ROOT", "  ROOT").replace("; ", "\n  ");
    let text = format!("HloModule m\nENTRY e {{\n  {lines}\n}}\n");
    let module = tilewright_text::parse_and_verify(&text).unwrap();
    let inputs = inputs_for(&module, 1, tilewright_interp::InputKind::Ties).unwrap();
    evaluate(&module, &inputs, &Limits::default()).unwrap_err().to_string()
}

#[test]
fn custom_calls_that_are_not_known() {
    let call = |target: &str, shape: &str, rest: &str| {
        error(&format!(
            "x = f32[2,2] parameter(0); \
             ROOT r = {shape} custom-call(x), custom_call_target=\"{target}\"{rest}"
        ))
    };
    let unknown = call("MyKernel", "f32[2,2]", "");
    assert!(unknown.contains("`MyKernel` is not known"), "{unknown}");
    assert!(unknown.contains("`r`") && unknown.contains("docs/oracle.md"), "{unknown}");
    let eigen = call("lapack_ssyevd_ffi", "(f32[2,2], f32[2], s32[])", "");
    assert!(eigen.contains("`syevd` leaves signs"), "{eigen}");
    let reduced = call("lapack_ssytrd_ffi", "(f32[2,2], s32[])", "");
    assert!(reduced.contains("`sytrd` has no evaluation"), "{reduced}");
    let option =
        call("lapack_spotrf_ffi", "(f32[2,2], s32[])", ", backend_config={mode = 76 : ui8}");
    assert!(option.contains("does not say `uplo`, as in `{uplo = 76 : ui8}`"), "{option}");
    let shard = call("SPMDFullToShardShape", "f32[1,2]", "");
    assert!(shard.contains("run the partitioner first"), "{shard}");
}

#[test]
fn states_of_another_form() {
    let text = "s = u64[3] parameter(0); \
                ROOT r = (u64[3], u32[2]) rng-bit-generator(s), algorithm=rng_three_fry";
    assert!(error(text).contains("ThreeFry's state is u64[2]"));
    let text = "s = u32[4] parameter(0); \
                ROOT r = (u32[4], u32[2]) rng-bit-generator(s), algorithm=rng_philox";
    assert!(error(text).contains("give it as u64[2]"));
}

#[test]
fn stochastic_conversions_to_what_is_no_signed_integer() {
    let text = "x = f32[2] parameter(0); k = u32[2] parameter(1); \
                ROOT r = bf16[2] stochastic-convert(x, k)";
    let error = error(text);
    assert!(error.contains("floats to signed integers"), "{error}");
    assert!(error.contains("not f32 to bf16"), "{error}");
}
