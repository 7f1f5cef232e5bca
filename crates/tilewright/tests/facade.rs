//! Tests the promises of the facade beyond those of its crates.
use std::path::{Path, PathBuf};

use tilewright::PassSelection;
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
        let actual = tilewright::run(&module, &inputs, &RunOptions::default()).unwrap().output;
        let found = interp::compare(&expected, &actual, interp::Tolerance::of).unwrap();
        assert!(found.iter().all(|output| output.equal), "{found:?}");
    }
}

#[test]
fn npz_comes_back() {
    let module = scalar("negate(x)");
    let inputs = tilewright::random_inputs(&module, 1).unwrap();
    let result = tilewright::run(&module, &inputs, &RunOptions::default()).unwrap().output;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out.npz");
    std::fs::write(&path, tilewright::outputs_to_npz(&result).unwrap()).unwrap();
    assert_eq!(interp::npz::read_outputs(&path, &module).unwrap(), result);
}

#[test]
fn check_tells_rounding_from_meaning() {
    let (lax, exact) = (CheckOptions::default(), CheckOptions::default().with_exact(true));
    let (plain, squared) = (scalar("sine(x)"), scalar("tanh(x)"));
    assert!(check(&plain, &plain, &exact).unwrap().equal());
    let agreement = check(&plain, &squared, &lax).unwrap();
    assert!(!agreement.equal());
    let witness = agreement.outputs[0].witness.as_ref().unwrap();
    assert_ne!(witness.expected, witness.actual);
}

#[test]
fn check_lets_pass_what_magnifies_rounding() {
    // Some tried inputs are as large as 1e8; there a sum of three numbers loses more than the
    // remaining difference.
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
    let exact = CheckOptions::default().with_exact(true);
    assert!(!check(&left, &right, &exact).unwrap().equal());
    let wrong = sum("s = f32[64] subtract(y, z) ROOT r = f32[64] add(x, s)");
    assert!(!check(&left, &wrong, &CheckOptions::default()).unwrap().equal());
}

/// A value that magnifies rounding in one element does not excuse another element.
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

/// Computations that modules below call.
const SUMS: &str = "add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}
add_bf16 {
  a = bf16[] parameter(0)
  b = bf16[] parameter(1)
  ROOT c = bf16[] add(a, b)
}";

fn with_sums(entry: &str) -> Verified {
    parse(&format!("HloModule m\n{SUMS}\nENTRY e {{\n{entry}\n}}")).unwrap()
}

fn agree(a: &Verified, b: &Verified) -> bool {
    check(a, b, &CheckOptions::default()).unwrap().equal()
}

#[test]
fn check_finds_a_count_that_is_off_by_one() {
    let centred = |count: i64| {
        with_sums(&format!(
            "x = f32[8,1000] parameter(0)
             zero = f32[] constant(0)
             sum = f32[8] reduce(x, zero), dimensions={{1}}, to_apply=add
             n = f32[] constant({count})
             ns = f32[8] broadcast(n), dimensions={{}}
             mean = f32[8] divide(sum, ns)
             means = f32[8,1000] broadcast(mean), dimensions={{0}}
             ROOT d = f32[8,1000] subtract(x, means)"
        ))
    };
    assert!(agree(&centred(1000), &centred(1000)));
    assert!(!agree(&centred(1000), &centred(1001)));
    assert!(!agree(&centred(1000), &centred(999)));
}

#[test]
fn check_finds_a_wrong_axis() {
    let mean_along = |dim: i64| {
        with_sums(&format!(
            "x = bf16[64,64] parameter(0)
             zero = bf16[] constant(0)
             sum = bf16[64] reduce(x, zero), dimensions={{{dim}}}, to_apply=add_bf16
             n = bf16[] constant(64)
             ns = bf16[64] broadcast(n), dimensions={{}}
             ROOT mean = bf16[64] divide(sum, ns)"
        ))
    };
    assert!(agree(&mean_along(0), &mean_along(0)));
    assert!(!agree(&mean_along(0), &mean_along(1)));
}

/// Taken in stages, a sum in bf16 rounds at each; but all must be summed.
#[test]
fn check_knows_how_much_is_summed() {
    let sum = |rest: &str| {
        with_sums(&format!("x = bf16[512,512] parameter(0)\nzero = bf16[] constant(0)\n{rest}"))
    };
    let whole = sum("ROOT r = bf16[] reduce(x, zero), dimensions={0,1}, to_apply=add_bf16");
    let staged = sum("rows = bf16[512] reduce(x, zero), dimensions={1}, to_apply=add_bf16
         ROOT r = bf16[] reduce(rows, zero), dimensions={0}, to_apply=add_bf16");
    let most = sum("part = bf16[448,512] slice(x), slice={[0:448], [0:512]}
         ROOT r = bf16[] reduce(part, zero), dimensions={0,1}, to_apply=add_bf16");
    assert!(agree(&whole, &staged));
    assert!(!agree(&whole, &most));
}

/// Where an f32 result passes through bf16, the last bit of what is rounded
/// decides which of two neighbours in bf16 it becomes.
#[test]
fn check_judges_by_the_coarsest_type_on_the_way() {
    let centred = |sum: &str, last: &str| {
        with_sums(&format!(
            "x = f32[64,2048] parameter(0)
             zero = f32[] constant(0)
             {sum}
             n = f32[] constant(2048)
             ns = f32[64] broadcast(n), dimensions={{}}
             mean = f32[64] divide(sum, ns)
             means = f32[64,2048] broadcast(mean), dimensions={{0}}
             d = f32[64,2048] subtract(x, means)
             {last}"
        ))
    };
    let at_once = "sum = f32[64] reduce(x, zero), dimensions={1}, to_apply=add";
    let staged = "parts = f32[64,8,256] reshape(x)
        some = f32[64,8] reduce(parts, zero), dimensions={2}, to_apply=add
        sum = f32[64] reduce(some, zero), dimensions={1}, to_apply=add";
    let rounded = "short = bf16[64,2048] convert(d)
        ROOT r = f32[64,2048] convert(short)";
    let plain = "ROOT r = f32[64,2048] copy(d)";
    assert!(agree(&centred(at_once, rounded), &centred(staged, rounded)));
    assert!(agree(&centred(at_once, plain), &centred(staged, plain)));
    // Rounding that the first does not do is not excused.
    assert!(!agree(&centred(at_once, plain), &centred(at_once, rounded)));
}

#[test]
fn check_finds_what_is_missing_in_real_programs() {
    for name in ["layer_norm", "rms_norm_per_head", "group_norm_nhwc", "group_norm_bf16_stats"] {
        let text = std::fs::read_to_string(model(&format!("{name}.hlo"))).unwrap();
        let module = parse(&text).unwrap();
        let options = Options::new(target("tpu-like").unwrap());
        let optimized = tilewright::optimize(module.clone(), &options).unwrap().module;
        assert!(agree(&module, &optimized), "{name}");
        let without = text.replace("constant(1e-05)", "constant(0)");
        assert_ne!(text, without, "{name} has no epsilon");
        let without = parse(&without).unwrap();
        assert!(!agree(&module, &without), "{name} without epsilon");
    }
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
fn errors_of_the_builder_are_errors() {
    fn built(name: &str) -> Result<Verified, tilewright::Error> {
        let mut b = Builder::new("m");
        let x = b.parameter("x", Shape::scalar(ElementType::F32))?;
        b.computation(name, |b| b.parameter("p", Shape::scalar(ElementType::F32)))?;
        Ok(b.finish(x)?)
    }
    assert!(built("uncalled").is_ok());
    let error = built("main").unwrap_err();
    assert_eq!((error.code(), error.problems().len()), ("input", 1));
    assert!(error.render(false).starts_with("error: `computation`: there is a computation `main`"));
    // Errors of the verifier keep their codes.
    let rejected = tilewright::ir::verify(Module::new("empty")).unwrap_err();
    let codes: Vec<String> = rejected.diagnostics.iter().map(|d| d.code.to_string()).collect();
    let error = tilewright::Error::from(BuildError::from(rejected));
    let found: Vec<Option<String>> = error.problems().into_iter().map(|p| p.code).collect();
    assert_eq!(found, codes.iter().cloned().map(Some).collect::<Vec<_>>());
    assert!(error.render(false).contains(&codes[0]));
}

#[test]
fn binary_modules_are_told_from_text() {
    let load = |bytes: &[u8]| tilewright::load_bytes("m", bytes.to_vec()).map(|_| ());
    assert!(matches!(load(b"\x0a\x05jit_f\x12\x01e"), Err(Error::Proto { .. })));
    assert!(matches!(load(b"\xff"), Err(Error::NotText { offset: 0, line: 1, .. })));
    assert!(matches!(load(b"\nHloModule"), Err(Error::Syntax { .. })));
    assert!(load(b"\nHloModule m\nENTRY e {\n\tx = f32[] parameter(0)\r\n}\n").is_ok());
}

/// The interpreter computes constants, also where options name no evaluator.
#[test]
fn constants_are_computed_by_the_interpreter() {
    let text = "HloModule m
ENTRY e {
  a = f32[] constant(3)
  b = f32[] constant(8)
  ROOT c = f32[] divide(a, b)
}";
    let module = tilewright::parse(text).unwrap();
    let mut options = Options::new(target("tpu-like").unwrap());
    options.passes = PassSelection::List(vec!["constant-fold".into(), "dce".into()]);
    let optimized = tilewright::optimize(module, &options).unwrap();
    let text = tilewright::print(&optimized.module, &PrintOptions::default()).unwrap();
    assert!(text.contains("f32[] constant(0.375)"), "{text}");
}

/// An observer sees the module after every pass that the report counts, and last the result.
#[test]
fn observers_see_the_module_after_each_pass() {
    let (send, seen) = std::sync::mpsc::channel();
    let form = PrintOptions::default();
    let options = Options::new(target("tpu-like").unwrap()).with_observer(move |pass, module| {
        send.send((pass, tilewright::print(module, &form).unwrap())).unwrap();
    });
    let module = tilewright::load(model("group_norm_nhwc.hlo")).unwrap();
    let optimized = tilewright::optimize(module, &options).unwrap();
    let seen: Vec<(&str, String)> = seen.try_iter().collect();
    for pass in &optimized.report.passes {
        let shown = seen.iter().any(|(name, _)| *name == pass.name);
        assert_eq!(shown, pass.changes > 0, "{}", pass.name);
    }
    let (_, last) = seen.last().unwrap();
    assert_eq!(*last, tilewright::print(&optimized.module, &form).unwrap());
}
