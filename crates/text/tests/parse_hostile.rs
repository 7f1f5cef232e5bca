//! Input that no compiler wrote: never a panic, never a long wait.
use std::time::{Duration, Instant};

use tilewright_text::render::render;
use tilewright_text::{Invalid, parse, parse_and_verify};

/// Tests run with little optimisation and beside others: a second a megabyte
/// is the aim, this the alarm.
const PATIENCE: Duration = Duration::from_secs(10);

/// Parses, verifies and draws; panics and long waits are failures.
fn survive(text: &str) -> Result<(), String> {
    let start = Instant::now();
    let result = parse_and_verify(text).map(|_| ()).map_err(|invalid| {
        if let Invalid::Syntax(errors) = &invalid {
            assert!(!errors.errors().is_empty());
            assert!(!render("x.hlo", text, errors).is_empty());
        }
        invalid.to_string()
    });
    let waited = start.elapsed();
    let shown: String = text.chars().take(200).collect();
    assert!(waited < PATIENCE, "{waited:?} for {} bytes: {shown}", text.len());
    result
}

const SMALL: &str = r#"// a comment
HloModule m, is_scheduled=true, entry_computation_layout={(f32[2,3]{1,0}, s32[])->(f32[2]{0}, f32[3,2])}, replica_count=2

FileNames
1 "a.py"
FunctionNames
1 "f"
FileLocations
1 {file_name_id=1 function_name_id=1 line=3 end_line=3 column=1 end_column=9}
StackFrames
1 {file_location_id=1 parent_frame_id=1}

%add (a: f32[], b: f32[]) -> f32[] {
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %c = f32[] add(f32[] %a, %b), metadata={op_name="a/\"b\"" stack_frame_id=1}
}

ENTRY main {
  x = f32[2,3]{1,0:T(2,128)} parameter(0), sharding={devices=[2,1]<=[2]}
  i = s32[] parameter(1)
  k = c64[2] constant({(1, -inf), (nan(0x1), 2e-3)})
  z = f32[] constant(-0.0)
  s = f32[2]{0} reduce(x, z), dimensions={1}, to_apply=%add, backend_config={"a":["}"]}
  w = f32[2,2] reduce-window(x, z), window={size=1x2 pad=0_0x0_0}, to_apply={
    p = f32[] parameter(0)
    q = f32[] parameter(1)
    ROOT r = f32[] maximum(p, q)
  }
  n = f32[2,3] add(multiply(x, x), f32[2,3] negate(x)), control-predecessors={s}
  l = f32[1,3] slice(x), slice={[0:1], [0:3:1]}
  d = f32[4,5] pad(x, z), padding=1_1x0_2
  t = f32[3,2] transpose(n), dimensions={1,0}
  ROOT o = (f32[2]{0}, f32[3,2]) tuple(s, t)
}
"#;

const LARGER: &str = include_str!("../../../fixtures/text/ok/short_whitening.hlo");

#[test]
fn the_small_module_is_right() {
    survive(SMALL).unwrap();
}

#[test]
fn truncated_at_every_byte() {
    for text in [SMALL, LARGER] {
        for end in (0..text.len()).filter(|&end| text.is_char_boundary(end)) {
            let _ = survive(&text[..end]);
        }
    }
}

/// Returns the words and characters of a text with their positions.
fn tokens(text: &str) -> Vec<std::ops::Range<usize>> {
    let mut tokens: Vec<std::ops::Range<usize>> = Vec::new();
    for (at, c) in text.char_indices() {
        let word = |c: char| c.is_alphanumeric() || c == '_';
        match tokens.last_mut() {
            Some(last) if last.end == at && word(c) && text[last.clone()].chars().all(word) => {
                last.end = at + c.len_utf8();
            }
            _ if c.is_whitespace() => {}
            _ => tokens.push(at..at + c.len_utf8()),
        }
    }
    tokens
}

#[test]
fn every_token_deleted_doubled_or_swapped() {
    for text in [SMALL, LARGER] {
        let tokens = tokens(text);
        for (i, token) in tokens.iter().enumerate() {
            let (before, after) = (&text[..token.start], &text[token.end..]);
            let _ = survive(&format!("{before}{after}"));
            let word = &text[token.clone()];
            let _ = survive(&format!("{before}{word}{word}{after}"));
            let other = &text[tokens[(i * 7 + 3) % tokens.len()].clone()];
            let _ = survive(&format!("{before}{other}{after}"));
        }
    }
}

#[test]
fn random_bytes_put_in() {
    // A fixed sequence of pseudo-random numbers.
    let mut state = 0x9E37_79B9_7F4A_7C15u64;
    let mut next = |below: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        usize::try_from(state >> 33).unwrap() % below
    };
    const ODD: &[&str] = &[
        "{",
        "}",
        "(",
        ")",
        "\"",
        "'",
        "\\",
        "/*",
        "*/",
        "//",
        "=",
        ",",
        "é",
        "\n",
        "-",
        "nan(",
        "%",
        "99999999999999999999",
    ];
    for _ in 0..3000 {
        let mut text = SMALL.to_owned();
        for _ in 0..1 + next(3) {
            let mut at = next(text.len());
            while !text.is_char_boundary(at) {
                at -= 1;
            }
            text.insert_str(at, ODD[next(ODD.len())]);
        }
        let _ = survive(&text);
    }
}

fn entry(line: &str) -> String {
    format!("HloModule m\nENTRY e {{\n  x = f32[2] parameter(0)\n  ROOT r = {line}\n}}\n")
}

#[test]
fn brackets_nested_a_hundred_thousand_deep() {
    let deep = |s: &str| s.repeat(100_000);
    let texts = [
        entry(&format!("f32[2] negate(x), unknown={}{}", deep("{"), deep("}"))),
        entry(&format!("f32[2] negate(x), other={}{}", deep("["), deep("]"))),
        entry(&format!("f32[2] negate(x), backend_config={}", deep("({["))),
        entry(&format!("f32[2] {}x{}", deep("negate("), deep(")"))),
        entry(&format!("{}f32[2]{} negate(x)", deep("("), deep(")"))),
        entry(&format!("{}f32[2]{} negate(x)", deep("b("), deep(")"))),
        entry(&format!("f32[2] negate({} x)", deep("("))),
        entry(&format!("f32[2] constant({}", deep("{"))),
        entry(&format!("f32[2] constant({}", deep("("))),
        entry(&format!("f32[2] call(x), to_apply={}", deep("{ y = f32[] call(x), to_apply="))),
        entry(&format!("f32[2] call(x), branch_computations={}", deep("{"))),
        entry(&format!("f32[2]{} negate(x)", deep("{0:P(f32[2]"))),
        entry(&format!("f32[2] negate(x), metadata={}", deep("{"))),
        entry(&format!("f32[2] negate(x), metadata={{profile_type={}", deep("{"))),
        format!("HloModule m, alias={}", deep("{")),
        format!("HloModule m, entry_computation_layout={{({}", deep("(")),
        format!("HloModule m\n{}", deep("ENTRY e {\n")),
        format!("HloModule m\ne (p: {}", deep("(")),
        deep("("),
        deep("{"),
        deep("f32[2] add("),
    ];
    for text in texts {
        let error = survive(&text).unwrap_err();
        assert!(error.len() < 100_000, "{} bytes of message", error.len());
    }
}

/// Brackets nested to the limit fit the stack of a test's thread.
#[test]
fn brackets_nested_to_the_limit() {
    let depth = tilewright_text::MAX_DEPTH - 2;
    let deep = |s: &str| s.repeat(depth);
    survive(&entry(&format!("f32[2] {}x{}", deep("negate("), deep(")")))).unwrap();
    let open = "f32[2] call(x), to_apply={ x = f32[2] parameter(0) y = ";
    survive(&entry(&format!("{}f32[2] negate(x){}", deep(open), deep(" }")))).unwrap();
    let shape = format!("{}f32[2]{}", deep("("), deep(")"));
    let text = format!("HloModule m\nENTRY e {{\n  ROOT x = {shape} parameter(0)\n}}");
    survive(&text).unwrap();
    let text = format!(
        "HloModule m\nENTRY e {{\n  ROOT x = {shape} constant({}{{1, 2}}{})\n}}",
        deep("("),
        deep(")")
    );
    survive(&text).unwrap();
    survive(&entry(&format!("f32[2] negate(x), unknown={}{}", deep("{"), deep("}")))).unwrap();
}

#[test]
fn a_megabyte_of_garbage() {
    let pieces = [
        "{",
        "}",
        "(",
        ")",
        "[",
        "]",
        "\"",
        "'",
        "\\",
        "\\\"",
        "/",
        "/*",
        "*/",
        "//",
        "=",
        ",",
        "%",
        " ",
        "\n",
        "a",
        "-",
        "9",
        "é",
        "a = ",
        "%a = ",
        "ROOT ",
        "ENTRY ",
        "a {\n",
        "} ",
        "}}{",
        "a = f32[] add(b)\n",
        "x = f32[] constant({",
        "x = f32[] constant(1) ",
        "x = f32[] call(), to_apply={ ",
        "x = f32[2]{ ",
        "x = f32[2]{0} ",
        "HloModule ",
        "/* */",
        "metadata={ ",
        "f32[",
        "f32[2] ",
        "1 ",
        "1x1_",
        "'\"",
        "\"\\",
        "a = f32[] negate(a), metadata={op_name=\"x\"}, b=c ",
        "{\"",
        "a={a={",
        ", a=b",
        ",",
        "x = f32[] add(/*",
        "a\n{\n",
        "q {\n}\n",
    ];
    for start in [
        "",
        "HloModule m\n",
        "HloModule m\nENTRY e {\n",
        "HloModule m\nENTRY e {\n x = f32[2] constant({",
        "HloModule m\nENTRY e {\n x = f32[2] negate(x), a=",
        "HloModule m, a=",
    ] {
        for piece in pieces {
            let text = format!("{start}{}", piece.repeat(300_000 / piece.len()));
            let _ = survive(&text);
        }
    }
}

#[test]
fn numbers_without_elements_behind_them() {
    let lines = [
        "f32[1000000000000] constant({1, 2})",
        "f32[1000000000000,1000000000000] constant({{1}})",
        "f32[9223372036854775807,9223372036854775807] constant({})",
        "f32[2,9223372036854775807] broadcast(x), dimensions={0}",
        "f32[2] slice(x), slice={[0:9223372036854775807:1]}",
        "f32[2] pad(x, x), padding=9223372036854775807_9223372036854775807",
        "f32[2] reduce-window(x, x), window={size=9223372036854775807 stride=-9223372036854775808}",
        "f32[2]{4294967295} negate(x)",
        "f32[2] parameter(9223372036854775807)",
        "f32[-9223372036854775808] negate(x)",
    ];
    for line in lines {
        assert!(survive(&entry(line)).is_err(), "{line}");
    }
}

/// A tuple of the last two tuples, again and again: twice as large each time.
#[test]
fn shapes_that_grow_without_being_written() {
    let mut text = String::from("HloModule m\nENTRY e {\n  t0 = f32[2] parameter(0)\n");
    for i in 1..100 {
        text.push_str(&format!("  t{i} = tuple(t{0}, t{0})\n", i - 1));
    }
    text.push_str("}\n");
    let error = survive(&text).unwrap_err();
    assert!(error.contains("too many and too large"), "{error}");
}

#[test]
fn many_errors_are_cut_off() {
    let lines: String = (0..5000).map(|i| format!("  a{i} = f32[2] nonsense(x)\n")).collect();
    let text = format!("HloModule m\nENTRY e {{\n  x = f32[2] parameter(0)\n{lines}}}\n");
    let errors = parse(&text).unwrap_err();
    assert_eq!(errors.errors().len(), tilewright_text::MAX_ERRORS);
    assert!(errors.gave_up());
    assert!(render("x.hlo", &text, &errors).contains("only the first 100 errors"));
}

#[test]
fn a_long_line_is_cut_around_the_caret() {
    let lines: String = (0..25_000).map(|i| format!("%a{i} = f32[2] negate(x) ")).collect();
    let wrong = "%b = f32[2] negat(x)";
    let text =
        format!("HloModule m\nENTRY e {{ x = f32[2] parameter(0) {lines}{wrong} {lines}}}\n");
    let errors = parse(&text).unwrap_err();
    let drawn = render("x.hlo", &text, &errors);
    assert!(drawn.lines().all(|line| line.len() < 300), "lines are not cut");
    let column = text.find("negat(").unwrap() - text.find("ENTRY").unwrap() + 1;
    assert!(drawn.contains(&format!("--> x.hlo:2:{column}\n")), "{}", &drawn[..300]);
    assert!(drawn.contains("negate(x) %b = f32[2] negat(x) %a0 ="), "{}", &drawn[..300]);
}

#[test]
fn errors_come_in_the_order_of_the_text_with_their_lines() {
    let text = "HloModule m\n\nf {\n  x = f32[] parameter(0)\n  ROOT r = f32[] negat(x)\n}\n\nENTRY e {\n  y = f32[ parameter(0)\n  z = f32[] constant(0)\n  ROOT r = f32[] add(z, q)\n}\n";
    let errors = parse(text).unwrap_err();
    let lines: Vec<usize> = errors.errors().iter().map(|error| error.at.line).collect();
    assert_eq!(lines, [5, 9, 11]);
}
