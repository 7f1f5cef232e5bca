//! Tests that refusals name the error and its remedy.

use tilewright_interp::{Limits, evaluate, inputs_for};

/// Returns the error of a program of these lines, the last of which is the root.
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
    assert!(shard.contains("or partition it first"), "{shard}");
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

/// The verifier accepts these as XLA's does, but no source defines their value.
#[test]
fn what_is_verified_and_has_no_agreed_value() {
    let cases = [
        (
            "x = f32[2] parameter(0); y = bf16[2] parameter(1); ROOT r = f32[2] add(x, y)",
            "`add` cannot be evaluated: floats of different precision meet",
        ),
        (
            "x = f32[2,3] parameter(0); y = f32[3,2] parameter(1); \
             ROOT r = pred[2,2] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
            "nobody says what pred sums of products of f32 and f32 are",
        ),
        ("x = f32[2] parameter(0); ROOT r = f32[4] bitcast(x)", "needs a larger buffer than"),
        (
            "x = (f32[2], s32[]) parameter(0); ROOT r = (f32[2], s32[]) bitcast(x)",
            "a result of shape (f32[2], s32[])",
        ),
        ("x = (f32[2]) parameter(0); ROOT r = f32[2] bitcast(x)", "its operand is not an array"),
        (
            "x = c64[4] parameter(0); ROOT r = c64[4] fft(x), fft_type=FFT, fft_length={8}",
            "dims [4]",
        ),
        (
            "x = f32[4,8] parameter(0); i = s32[4,1] parameter(1); \
             ROOT r = f32[4,3] gather(x, i), offset_dims={1}, collapsed_slice_dims={}, \
             start_index_map={0}, operand_batching_dims={0}, start_indices_batching_dims={0}, \
             index_vector_dim=1, slice_sizes={1,3}",
            "its batching dims do not run along with the indices",
        ),
        (
            "x = f32[4,8] parameter(0); i = s32[5,1] parameter(1); \
             ROOT r = f32[5,3] gather(x, i), offset_dims={1}, collapsed_slice_dims={}, \
             start_index_map={1}, operand_batching_dims={0}, start_indices_batching_dims={0}, \
             index_vector_dim=1, slice_sizes={1,3}",
            "its batching dims do not run along with the indices",
        ),
        (
            "x = f32[1,4] parameter(0); k = (f32[1,1], s32[1,1]) parameter(1); \
             ROOT r = f32[1,1] convolution(x, k), dim_labels=bf_io->bf, \
             sparsity_config={rhs={sparsity=1x4 dimension=0 stride=1}}",
            "its operands are sparse",
        ),
    ];
    for (lines, part) in cases {
        let error = error(lines);
        assert!(error.contains(part), "{error}\nhas no `{part}`");
    }
}

#[test]
fn computations_that_do_not_fit_their_caller() {
    let error = |callee: &str, lines: &str| {
        let text = format!("HloModule m\nf {{\n{callee}\n}}\nENTRY e {{\n{lines}\n}}\n");
        let module = tilewright_text::parse_and_verify(&text).unwrap();
        let inputs = inputs_for(&module, 1, tilewright_interp::InputKind::Ties).unwrap();
        evaluate(&module, &inputs, &Limits::default()).unwrap_err().to_string()
    };
    let combined = error(
        "x = f32[2] parameter(0)\ny = f32[2] parameter(1)\nROOT z = f32[2] add(x, y)",
        "a = f32[2] parameter(0)\nROOT r = f32[2] all-reduce(a), replica_groups={}, to_apply=f",
    );
    assert!(combined.contains("`f` does not make one f32[] of two"), "{combined}");
    let late = error(
        "x = f32[2] parameter(0)\nROOT z = f32[2] negate(x)",
        "a = f32[2] parameter(0)\ns = ((), f32[2]) async-start(), calls=f\n\
         u = ((f32[2]), f32[2]) async-update(s, a)\nROOT r = f32[2] async-done(u)",
    );
    assert!(late.contains("it is given operands later"), "{late}");
}

/// Operands that a fused computation does not take are not looked at.
#[test]
fn spare_operands_change_nothing() {
    let text = "HloModule m\nf {\nx = f32[2] parameter(0)\nROOT y = f32[2] add(x, x)\n}\n\
                ENTRY e {\na = f32[2] parameter(0)\nb = s32[] parameter(1)\n\
                ROOT r = f32[2] fusion(a, b), kind=kLoop, calls=f\n}\n";
    let module = tilewright_text::parse_and_verify(text).unwrap();
    let inputs = inputs_for(&module, 1, tilewright_interp::InputKind::Ties).unwrap();
    let output = evaluate(&module, &inputs, &Limits::default()).unwrap();
    let sums = |literal: &tilewright_ir::Literal| match literal {
        tilewright_ir::Literal::Array(array) => array.data().clone(),
        _ => panic!("an array"),
    };
    let (tilewright_ir::Data::F32(given), tilewright_ir::Data::F32(found)) =
        (sums(&inputs[0]), sums(&output))
    else {
        panic!("floats");
    };
    assert_eq!(found, given.iter().map(|x| x + x).collect::<Vec<_>>());
}
