//! What the facade promises beyond what its rooms promise.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::{Path, PathBuf};

use tilewright::prelude::*;
use tilewright::{check, interp, parse, target};

fn model(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/models").join(name)
}

/// `f(x)` of a scalar.
fn scalar(f: &str) -> Verified {
    parse(&format!("HloModule m\nENTRY e {{\n  x = f32[] parameter(0)\n  ROOT y = f32[] {f}\n}}"))
        .unwrap()
}

#[test]
fn real_programs_give_what_xla_gave() {
    let module = tilewright::load(model("group_norm_nhwc.hlo")).unwrap();
    let npz = model("group_norm_nhwc.npz");
    let inputs = tilewright::read_inputs(&module, &npz).unwrap();
    let expected = interp::npz::read_outputs(&npz, &module).unwrap();
    let options = Options::new(target("tpu-like").unwrap());
    let optimized = tilewright::optimize(module.clone(), &options).unwrap().module;
    for module in [module, optimized] {
        let actual = tilewright::run(&module, &inputs, &Limits::default()).unwrap();
        let found = interp::compare(&expected, &actual, interp::Tolerance::of).unwrap();
        assert!(found.iter().all(|output| output.equal), "{found:?}");
    }
}

#[test]
fn npz_comes_back() {
    let module = scalar("negate(x)");
    let inputs = tilewright::random_inputs(&module, 1).unwrap();
    let result = tilewright::run(&module, &inputs, &Limits::default()).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out.npz");
    std::fs::write(&path, tilewright::outputs_to_npz(&result).unwrap()).unwrap();
    assert_eq!(interp::npz::read_outputs(&path, &module).unwrap(), result);
}

#[test]
fn check_tells_rounding_from_meaning() {
    let (lax, exact) =
        (CheckOptions::default(), CheckOptions { exact: true, ..Default::default() });
    let (plain, squared) = (scalar("sine(x)"), scalar("tanh(x)"));
    assert!(check(&plain, &plain, &exact).unwrap().equal());
    let agreement = check(&plain, &squared, &lax).unwrap();
    assert!(!agreement.equal());
    let witness = agreement.outputs[0].witness.as_ref().unwrap();
    assert_ne!(witness.expected, witness.actual);
}

#[test]
fn check_lets_pass_what_magnifies_rounding() {
    // Of the inputs that are tried some are as large as 1e8, where a sum of
    // three loses more than the difference that is left.
    let sum = |order: &str| {
        let text = format!(
            "HloModule m
             ENTRY e {{
               x = f32[64] parameter(0)
               y = f32[64] parameter(1)
               z = f32[64] parameter(2)
               {order}
             }}"
        );
        parse(&text).unwrap()
    };
    let left = sum("s = f32[64] add(x, y) ROOT r = f32[64] add(s, z)");
    let right = sum("s = f32[64] add(y, z) ROOT r = f32[64] add(x, s)");
    let found = check(&left, &right, &CheckOptions::default()).unwrap();
    assert!(found.equal(), "{found:?}");
    let exact = CheckOptions { exact: true, ..CheckOptions::default() };
    assert!(!check(&left, &right, &exact).unwrap().equal());
    let wrong = sum("s = f32[64] subtract(y, z) ROOT r = f32[64] add(x, s)");
    assert!(!check(&left, &wrong, &CheckOptions::default()).unwrap().equal());
}

/// What magnifies rounding in one element excuses no other.
#[test]
fn check_excuses_element_by_element() {
    let beside = |what: &str| {
        let text = format!(
            "HloModule m
             ENTRY e {{
               x = f32[64] parameter(0)
               c = f32[] constant(1e30)
               large = f32[64] broadcast(c), dimensions={{}}
               scaled = f32[64] multiply(x, large)
               wild = f32[64] sine(scaled)
               tame = f32[64] {what}
               ROOT r = f32[128] concatenate(wild, tame), dimensions={{0}}
             }}"
        );
        parse(&text).unwrap()
    };
    let (plain, squared) = (beside("copy(x)"), beside("multiply(x, x)"));
    assert!(check(&plain, &plain, &CheckOptions::default()).unwrap().equal());
    assert!(!check(&plain, &squared, &CheckOptions::default()).unwrap().equal());
}

/// A mean left out of bf16 data shows where the data have a mean.
#[test]
fn check_sees_what_a_mean_is_for() {
    let centred = |how: &str| {
        let text = format!(
            "HloModule m
             add {{
               a = f32[] parameter(0)
               b = f32[] parameter(1)
               ROOT c = f32[] add(a, b)
             }}
             ENTRY e {{
               x = bf16[4,512] parameter(0)
               wide = f32[4,512] convert(x)
               zero = f32[] constant(0)
               sum = f32[4] reduce(wide, zero), dimensions={{1}}, to_apply=add
               n = f32[] constant(512)
               ns = f32[4] broadcast(n), dimensions={{}}
               mean = f32[4] divide(sum, ns)
               means = f32[4,512] broadcast(mean), dimensions={{0}}
               d = f32[4,512] {how}(wide, means)
               ROOT r = bf16[4,512] convert(d)
             }}"
        );
        parse(&text).unwrap()
    };
    let (right, wrong) = (centred("subtract"), centred("add"));
    assert!(check(&right, &right, &CheckOptions::default()).unwrap().equal());
    assert!(!check(&right, &wrong, &CheckOptions::default()).unwrap().equal());
}

#[test]
fn a_program_without_inputs_is_tried_once() {
    let module = parse("HloModule m\nENTRY e {\n  ROOT c = s32[2] constant({1, 2})\n}").unwrap();
    assert_eq!(check(&module, &module, &CheckOptions::default()).unwrap().inputs_tried, 1);
}

#[test]
fn errors_say_where_and_what_to_do() {
    let wrong = tilewright::load_text("m.hlo", "HloModule m\nENTRY e {\n  x = f32[2] plus()\n}");
    let error = wrong.unwrap_err();
    let drawn = error.render(false);
    assert!(drawn.contains("m.hlo:3:14") && drawn.contains('^'), "{drawn}");
    assert!(error.render(true).contains('\x1b'));
    let problems = error.problems();
    assert_eq!((problems[0].line, problems[0].column), (Some(3), Some(14)));
    let error = tilewright::load("no/such/file").unwrap_err();
    assert_eq!(error.to_string(), "cannot read no/such/file: there is no such file");
    let message = target("no/such.toml").unwrap_err().to_string();
    assert_eq!(message, "cannot read no/such.toml: there is no such file");
    assert!(target("abacus").unwrap_err().to_string().contains("`tpu-like`"));
}

#[test]
fn binary_modules_are_told_from_text() {
    let load = |bytes: &[u8]| tilewright::load_bytes("m", bytes.to_vec()).map(|_| ());
    assert!(matches!(load(b"\x0a\x05jit_f\x12\x01e"), Err(Error::Proto { .. })));
    assert!(matches!(load(b"\xff"), Err(Error::NotText { offset: 0, line: 1, .. })));
    assert!(matches!(load(b"\nHloModule"), Err(Error::Syntax { .. })));
    assert!(load(b"\nHloModule m\nENTRY e {\n\tx = f32[] parameter(0)\r\n}\n").is_ok());
}
