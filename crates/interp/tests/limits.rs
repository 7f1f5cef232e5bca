//! Tests that exceeding a limit is an error that says so, before the work is done.

use tilewright_interp::{EvalError, Limits, evaluate, inputs_for};
use tilewright_interp::{InputError, InputKind};
use tilewright_ir::{ElementType, Literal, Verified};

fn module(text: &str) -> Verified {
    tilewright_text::parse_and_verify(text).map_err(|e| format!("{e:?}")).unwrap()
}

fn run(text: &str, limits: &Limits) -> Result<Literal, EvalError> {
    evaluate(&module(text), &[], limits)
}

const ENDLESS: &str = "HloModule m
cond {
  i = s32[] parameter(0)
  ROOT t = pred[] constant(true)
}
body {
  i = s32[] parameter(0)
  one = s32[] constant(1)
  ROOT j = s32[] add(i, one)
}
ENTRY e {
  i = s32[] constant(1)
  ROOT w = s32[] while(i), condition=cond, body=body
}";

#[test]
fn an_endless_loop_ends() {
    let limits = Limits { max_steps: 10_000, ..Limits::default() };
    let error = run(ENDLESS, &limits).unwrap_err();
    assert!(matches!(error, EvalError::Steps { limit: 10_000, .. }), "{error}");
    assert!(error.to_string().contains("raise `max_steps`, on the command line `--max-steps`"));
}

/// A state that comes back makes a loop endless, unless its turns depend on more than the state.
#[test]
fn a_loop_whose_state_repeats_is_endless() {
    let text = |step: &str, drawn: &str, most: &str| {
        format!(
            "HloModule m
cond {{
  s = (s32[], f32[]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  most = s32[] constant({most})
  ROOT p = pred[] compare(i, most), direction=LT
}}
body {{
  s = (s32[], f32[]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  x = f32[] get-tuple-element(s), index=1
  one = s32[] constant(1)
  seven = s32[] constant(7)
  next = s32[] add(i, one)
  cyclic = s32[] remainder(next, seven)
  y = f32[] negate(x)
  low = f32[] constant(0)
  high = f32[] constant(1)
  {drawn}
  ROOT t = (s32[], f32[]) tuple({step})
}}
ENTRY e {{
  i = s32[] constant(0)
  x = f32[] constant(0)
  t = (s32[], f32[]) tuple(i, x)
  ROOT w = (s32[], f32[]) while(t), condition=cond, body=body
}}"
        )
    };
    let limits = Limits { max_steps: 100_000, ..Limits::default() };
    let drawn = "drawn = f32[] rng(low, high), distribution=rng_uniform";
    // Seven turns by two signs of zero.
    let error = run(&text("cyclic, y", "", "7"), &limits).unwrap_err();
    assert_eq!(error.to_string(), "the loop `w` never ends: its state repeats");
    // As long as it draws, it may end.
    let error = run(&text("cyclic, drawn", drawn, "7"), &limits).unwrap_err();
    assert!(matches!(error, EvalError::Steps { .. }), "{error}");
    // Many turns are no endless ones.
    assert!(run(&text("next, y", "", "5000"), &limits).is_ok());
}

#[test]
fn huge_arrays_are_not_even_begun() {
    let text = "HloModule m
ENTRY e {
  x = f32[] constant(1)
  y = f32[1048576,1048576] broadcast(x), dimensions={}
  ROOT z = f32[] constant(2)
  k = f32[] slice(z), slice={}
}";
    // Nobody needs it: it is not computed.
    assert!(run(text, &Limits::default()).is_ok());
    let needed = text
        .replace("ROOT z", "z")
        .replace("k = f32[] slice(z), slice={}", "ROOT k = f32[1048576,1048576] negate(y)");
    let error = run(&needed, &Limits::default()).unwrap_err();
    let EvalError::Memory { instruction, needed, .. } = error else { panic!("{error}") };
    // The operand is never there as a whole.
    assert_eq!((instruction.as_str(), needed), ("k", 1 << 42));
}

/// The loop would go on for ever, but what comes after it does not fit.
#[test]
fn what_does_not_fit_is_known_before_the_evaluation() {
    let after = "x = f32[100,100] iota(), iota_dimension=0
  y = f32[100,100] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  z = f32[100,100] dot(y, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT t = (s32[], f32[100,100], f32[100,100]) tuple(w, y, z)";
    let text = ENDLESS
        .replace("ROOT w", "w")
        .replace("condition=cond, body=body", &format!("condition=cond, body=body\n  {after}"));
    let limits = Limits { max_bytes: 70_000, max_steps: 10_000 };
    let error = run(&text, &limits).unwrap_err();
    assert!(matches!(error, EvalError::Memory { .. }), "{error}");
    let enough = Limits { max_bytes: 200_000, ..limits };
    assert!(matches!(run(&text, &enough), Err(EvalError::Steps { .. })));
}

#[test]
fn values_are_freed_after_their_last_use() {
    let mut text = String::from("HloModule m\nENTRY e {\n  x0 = f32[1000] parameter(0)\n");
    for i in 1..100 {
        text += &format!("  x{i} = f32[1000] negate(x{})\n", i - 1);
    }
    text += "  ROOT r = f32[1000] negate(x99)\n}";
    let module = module(&text);
    let inputs = inputs_for(&module, 1, InputKind::Normal).unwrap();
    // The parameter, one operand and one result; never a hundred arrays.
    let tight = Limits { max_bytes: 3 * 4000, ..Limits::default() };
    evaluate(&module, &inputs, &tight).unwrap();
    let too_tight = Limits { max_bytes: 4000, ..Limits::default() };
    assert!(matches!(evaluate(&module, &inputs, &too_tight), Err(EvalError::Memory { .. })));
}

#[test]
fn elementwise_results_take_the_place_of_operands() {
    let chain = "HloModule m
ENTRY e {
  x = f32[200000] iota(), iota_dimension=0
  ROOT n = f32[200000] negate(x)
}";
    let limits = Limits { max_bytes: 800_000 + 200_000, ..Limits::default() };
    assert!(run(chain, &limits).is_ok());
}

#[test]
fn loop_state_is_updated_in_place() {
    let text = "HloModule m
cond {
  s = (s32[], f32[100000]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(50)
  ROOT c = pred[] compare(i, n), direction=LT
}
body {
  s = (s32[], f32[100000]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  x = f32[100000] get-tuple-element(s), index=1
  one = s32[] constant(1)
  u = f32[1] constant({7})
  y = f32[100000] dynamic-update-slice(x, u, i)
  j = s32[] add(i, one)
  ROOT t = (s32[], f32[100000]) tuple(j, y)
}
ENTRY e {
  i = s32[] constant(0)
  z = f32[] constant(0)
  x = f32[100000] broadcast(z), dimensions={}
  s = (s32[], f32[100000]) tuple(i, x)
  w = (s32[], f32[100000]) while(s), condition=cond, body=body
  ROOT r = f32[100000] get-tuple-element(w), index=1
}";
    // One array and a little: no copy is made in any turn.
    let limits = Limits { max_bytes: 400_000 + 1000, ..Limits::default() };
    let result = run(text, &limits).unwrap();
    let values = result.as_array().unwrap().as_slice::<f32>().unwrap();
    assert!(values[..50].iter().all(|&v| v == 7.0) && values[50..].iter().all(|&v| v == 0.0));
}

#[test]
fn large_windows_and_transforms_are_counted() {
    let f =
        "f {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT x = f32[] add(a, b)\n}";
    let refused = |lines: &str, max_bytes| {
        let text = format!("HloModule m\n{f}\nENTRY e {{\n  {lines}\n}}");
        let limits = Limits { max_bytes, ..Limits::default() };
        let error = run(&text, &limits).unwrap_err();
        assert!(matches!(error, EvalError::Memory { .. }), "{error}: {lines}");
    };
    // 4 bytes of each element, and a tap for every other.
    let window = "z = f32[] constant(0)
  x = f32[50000] broadcast(z), dimensions={}
  ROOT y = f32[2] reduce-window(x, z), window={size=25000 rhs_dilate=2}, to_apply=f";
    refused(window, 20 * 50_000);
    // Four bytes and 16 of a complex number of f64.
    let transform = "x = c64[50000] iota(), iota_dimension=0
  ROOT y = c64[50000] fft(x), fft_type=FFT, fft_length={50000}";
    refused(transform, (16 + 32) * 50_000);
}

#[test]
fn deep_calls_are_an_error_and_not_a_crash() {
    let mut text = String::from("HloModule m\nf0 {\n  ROOT x = f32[3] parameter(0)\n}\n");
    for i in 1..2000 {
        text += &format!(
            "f{i} {{\n  x = f32[3] parameter(0)\n  ROOT y = f32[3] call(x), to_apply=f{}\n}}\n",
            i - 1
        );
    }
    text +=
        "ENTRY e {\n  x = f32[3] constant({1,2,3})\n  ROOT y = f32[3] call(x), to_apply=f1999\n}";
    let error = run(&text, &Limits::default()).unwrap_err();
    assert!(matches!(error, EvalError::Depth { .. }), "{error}");
    let shallow = text.replace("to_apply=f1999", "to_apply=f200");
    assert!(run(&shallow, &Limits::default()).is_ok());
}

#[test]
fn calls_that_double_at_every_level_stay_bounded() {
    let mut text = String::from(
        "HloModule m\nf0 {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT x = f32[] add(a, b)\n}\n",
    );
    for i in 1..60 {
        text += &format!(
            "f{i} {{\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  c = f32[] call(a, b), to_apply=f{0}\n  ROOT d = f32[] call(c, b), to_apply=f{0}\n}}\n",
            i - 1
        );
    }
    text += "ENTRY e {\n  x = f32[3] constant({1,2,3})\n  z = f32[] constant(0)\n  ROOT y = f32[] reduce(x, z), dimensions={0}, to_apply=f59\n}";
    let limits = Limits { max_steps: 100_000, ..Limits::default() };
    assert!(matches!(run(&text, &limits), Err(EvalError::Steps { .. })));
}

#[test]
fn windows_as_wide_as_they_like_stay_bounded() {
    let text = "HloModule m
f {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT x = f32[] add(a, b)
}
ENTRY e {
  x = f32[4] constant({1,2,3,4})
  z = f32[] constant(0)
  ROOT y = f32[1] reduce-window(x, z), window={size=1099511627776 pad=1099511627772_0}, to_apply=f
}";
    let result = run(text, &Limits::default()).unwrap();
    assert_eq!(result.as_array().unwrap().as_slice::<f32>(), Some(&[10.0][..]));
}

#[test]
fn inputs_are_bounded_too() {
    let text = "HloModule m\nENTRY e {\n  ROOT x = f32[1048576,1048576] parameter(0)\n}";
    let error = inputs_for(&module(text), 1, InputKind::Normal).unwrap_err();
    assert!(matches!(error, InputError::Memory { .. }), "{error}");
}

#[test]
fn wrong_inputs_are_named() {
    let text = "HloModule m\nENTRY e {\n  a = f32[2] parameter(0)\n  ROOT x = f32[2] negate(a)\n}";
    let module = module(text);
    let error = evaluate(&module, &[], &Limits::default()).unwrap_err();
    assert_eq!(error.to_string(), "the entry takes 1 parameters, but 0 inputs were given");
    let wrong = Literal::scalar(ElementType::F32, 1f32).unwrap();
    let error = evaluate(&module, &[wrong], &Limits::default()).unwrap_err();
    assert_eq!(error.to_string(), "parameter 0 (`a`) is f32[2], but the input is f32[]");
}

#[test]
fn what_cannot_be_evaluated_is_named() {
    for (line, message) in [
        ("ROOT r = f32[2] custom-call(a), custom_call_target=\"magic\"", "`magic`"),
        ("ROOT r = f32[2] set-dimension-size(a, n), dimensions={0}", "yields f32[1]"),
        ("ROOT r = f32[2] all-reduce(a), replica_groups={{1,0}}, to_apply=f", "names device 1"),
    ] {
        let text = format!(
            "HloModule m\nf {{\n  x = f32[] parameter(0)\n  y = f32[] parameter(1)\n  ROOT z = f32[] add(x, y)\n}}\nENTRY e {{\n  a = f32[2] constant({{1, 2}})\n  n = s32[] constant(1)\n  {line}\n}}"
        );
        let error = run(&text, &Limits::default()).unwrap_err();
        assert!(matches!(&error, EvalError::Unsupported { .. }), "{error}");
        assert!(error.to_string().starts_with("`r`: "), "{error}");
        assert!(error.to_string().contains(message), "{error}");
    }
    let elided = "HloModule m\nENTRY e {\n  ROOT c = f32[100] constant({...})\n}";
    let error = run(elided, &Limits::default()).unwrap_err();
    assert!(matches!(&error, EvalError::Elided { instruction } if instruction == "c"), "{error}");
}
