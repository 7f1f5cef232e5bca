//! Tests that work and memory stay in proportion to the text.
use std::fmt::Write as _;
use std::time::{Duration, Instant};

use tilewright_ir::Module;
use tilewright_ir::verify::MAX_DIAGNOSTICS;
use tilewright_text::render::Renderer;
use tilewright_text::span::{LineIndex, line_column};
use tilewright_text::{Invalid, MAX_DEPTH, PrintOptions, parse, parse_and_verify};

/// The time limit. Inputs that took minutes take far less than a second now; the rest is for
/// slow machines.
const PATIENCE: Duration = Duration::from_secs(10);

#[track_caller]
fn soon<T>(work: impl FnOnce() -> T) -> T {
    let start = Instant::now();
    let result = work();
    let waited = start.elapsed();
    assert!(waited < PATIENCE, "{waited:?}");
    result
}

#[track_caller]
fn error(text: &str) -> String {
    soon(|| parse_and_verify(text).map(|_| ()).unwrap_err().to_string())
}

fn print(module: &Module) -> String {
    tilewright_text::print(module, &PrintOptions::default()).unwrap()
}

fn entry(lines: &str) -> String {
    format!("HloModule m\nENTRY e {{\n{lines}}}\n")
}

/// Returns a tuple of this many arrays.
fn tuple(elements: usize) -> String {
    format!("({})", vec!["f32[2]"; elements].join(","))
}

#[test]
fn a_constant_token_is_refused_where_it_stands() {
    let said = error(&entry("  ROOT t = token[] constant(token)\n"));
    assert!(said.starts_with("3:29: a constant cannot be token[]"), "{said}");
    let said = error(&entry("  ROOT t = (s32[], token[]) constant((1, token))\n"));
    assert!(said.contains("a constant cannot be token[]"), "{said}");
}

#[test]
fn parts_of_layouts_are_kept_whatever_they_say() {
    for layout in ["{0:L(0)}", "{0:L(-3)}", "{0:M(-1)}", "{0:S(-1)}", "{0:E(-4)}", "{0:T(0)}"] {
        let text = entry(&format!("  ROOT x = f32[2]{layout} parameter(0)\n"));
        let module = parse(&text).unwrap().module;
        let printed = print(&module);
        assert!(printed.contains(&format!("f32[2]{layout} parameter")), "{printed}");
        let again = parse(&printed).unwrap().module;
        assert_eq!(print(&again), printed);
    }
}

#[test]
fn many_errors_about_a_large_shape_stay_small() {
    let mut lines = format!("  p = {} parameter(0)\n", tuple(50_000));
    for i in 0..20_000 {
        writeln!(lines, "  n{i} = f32[2] negate(p)").unwrap();
    }
    let text = entry(&lines);
    let Err(invalid) = soon(|| parse_and_verify(&text)) else { panic!("it is right") };
    let Invalid::Rejected { rejected, .. } = &invalid else { panic!("{invalid}") };
    assert_eq!(rejected.diagnostics.len(), MAX_DIAGNOSTICS);
    assert!(rejected.more > 0);
    let message = &rejected.diagnostics[0].message;
    assert!(message.len() < 3000, "{} bytes", message.len());
    assert!(message.contains("... 50000 elements)"), "{message}");
    let note = format!("only the first 100 errors are shown; at least {} more", rejected.more);
    assert!(invalid.to_string().lines().last().unwrap().starts_with(&note));
    let drawn = soon(|| Renderer::new().invalid("x.hlo", &text, &invalid));
    assert!(drawn.contains(&note), "{}", &drawn[drawn.len() - 300..]);
}

#[test]
fn errors_beyond_those_shown_are_counted() {
    let lines: String = (0..250).map(|i| format!("  n{i} = f32[3] negate(p)\n")).collect();
    let text = entry(&format!("  p = f32[2] parameter(0)\n{lines}"));
    let Err(Invalid::Rejected { rejected, .. }) = parse_and_verify(&text) else { panic!() };
    assert_eq!((rejected.diagnostics.len(), rejected.more), (100, 150));
}

#[test]
fn a_long_message_is_cut() {
    let name = "n".repeat(100_000);
    let said = error(&entry(&format!(
        "  {name} = f32[2] parameter(0)\n  ROOT c = f32[2] call({name}), to_apply={{ q = f32[3] parameter(0) }}\n"
    )));
    assert!(said.len() < 5000, "{} bytes", said.len());
}

#[test]
fn blank_lines_in_values_that_are_not_understood() {
    for filler in ["\n", "\n\n ", "\n//\n", "\n/**/"] {
        let lines = filler.repeat(300_000 / filler.len());
        let text = entry(&format!("  ROOT x = f32[2] parameter(0), y={{{lines}}}\n"));
        soon(|| parse_and_verify(&text).map(|_| ())).unwrap();
    }
    // A bracket that was forgotten is still found by the line after it.
    let said = error(&entry("  x = f32[2] parameter(0), y={\n\n  ROOT z = f32[2] negate(x)\n"));
    assert_eq!(said, "3:30: this `{` is never closed");
}

#[test]
fn names_for_nested_instructions_that_are_all_taken() {
    let mut lines = String::from("  x = f32[2] parameter(0)\n  negate.anon = f32[2] copy(x)\n");
    for i in 1..=30_000 {
        writeln!(lines, "  negate.anon.{i} = f32[2] copy(x)").unwrap();
    }
    for i in 0..30_000 {
        writeln!(lines, "  y{i} = f32[2] copy(negate(x))").unwrap();
    }
    let module = soon(|| parse_and_verify(&entry(&lines))).unwrap();
    let last = module.computations().iter().flat_map(|&c| module.instructions(c)).rev().nth(1);
    assert_eq!(module.name_of(last.unwrap()), "negate.anon.60000");
}

#[test]
fn nested_instructions_are_numbered_by_opcode() {
    let text = entry(
        "  x = f32[2] parameter(0)\n  ROOT r = f32[2] add(multiply(x, negate(x)), multiply(negate(x), x))\n",
    );
    let module = parse(&text).unwrap().module;
    let names: Vec<&str> =
        module.instructions(module.entry().unwrap()).map(|id| module.name_of(id)).collect();
    let expected = ["x", "negate.anon", "multiply.anon", "negate.anon.1", "multiply.anon.1", "r"];
    assert_eq!(names, expected);
}

#[test]
fn elements_that_are_large_tuples_count_when_they_are_inferred() {
    let mut lines = format!("  p = ({}) parameter(0)\n", tuple(30_000));
    for i in 0..20_000 {
        writeln!(lines, "  g{i} = get-tuple-element(p), index=0").unwrap();
    }
    assert!(error(&entry(&lines)).contains("too many and too large"));
}

#[test]
fn results_of_calls_count_when_they_are_inferred() {
    let mut text = format!("HloModule m\nf {{\n  p = {} constant((", tuple(20_000));
    text.push_str(&vec!["{1,2}"; 20_000].join(","));
    text.push_str("))\n}\nENTRY e {\n");
    for i in 0..20_000 {
        writeln!(text, "  c{i} = call(), to_apply=f").unwrap();
    }
    text.push_str("}\n");
    assert!(error(&text).contains("too many and too large"));
}

#[test]
fn tuples_nest_as_deep_by_inference_as_in_text() {
    let nested = |depth: usize| {
        let lines = (1..=depth).map(|i| format!("  t{i} = tuple(t{})\n", i - 1));
        entry(&format!("  t0 = f32[2] parameter(0)\n{}", lines.collect::<String>()))
    };
    let module = parse_and_verify(&nested(MAX_DEPTH)).unwrap();
    let printed = print(&module);
    assert_eq!(print(&parse(&printed).unwrap().module), printed);
    assert!(error(&nested(MAX_DEPTH + 1)).contains("tuples nest more than 200 deep"));
    assert!(error(&nested(100_000)).contains("tuples nest more than 200 deep"));
}

/// The shape in a layout nests as well.
#[test]
fn a_deep_layout_in_deep_tuples_is_refused() {
    let deep = format!("{}f32[2]{}", "f32[2]{0:P(".repeat(190), ")}".repeat(190));
    let lines: String = (1..50).map(|i| format!("  t{i} = tuple(t{})\n", i - 1)).collect();
    let text = entry(&format!("  t0 = {deep} parameter(0)\n{lines}"));
    assert!(error(&text).contains("tuples nest more than 200 deep"));
}

#[test]
fn places_on_one_long_line_are_found_at_once() {
    let lines: String = (0..40_000).map(|i| format!("a{i} = f32[3] negate(x) ")).collect();
    let text = format!("HloModule m\nENTRY e {{ x = f32[2] parameter(0) é = 1 {lines}}}\n");
    let text = text.replace("é = 1 ", "/* é */ ");
    let Err(invalid) = parse_and_verify(&text) else { panic!("it is right") };
    let Invalid::Rejected { rejected, spans } = &invalid else { panic!("{invalid}") };
    // All that is there to be drawn, as often as it was reported once.
    let many = vec![rejected.diagnostics.clone(); 100].concat();
    let drawn = soon(|| {
        let source = Some((text.as_str(), &**spans));
        Renderer::new().diagnostics("x.hlo", source, &rejected.module, &many)
    });
    let first = text.find("a0 = ").unwrap() - text.find("ENTRY").unwrap();
    assert!(drawn.contains(&format!("--> x.hlo:2:{first}\n")), "{}", &drawn[..400]);
}

#[test]
fn an_index_of_lines_says_what_counting_says() {
    let mut text = String::from("é\n\nab\n");
    for i in 0..400 {
        text.push_str(if i % 7 == 0 { "ü\n" } else { "long line without an end " });
    }
    for source in ["", "a", "\n", text.as_str(), text.trim_end()] {
        let index = LineIndex::new(source);
        for offset in 0..source.len() + 3 {
            let expected = line_column(source, offset.min(source.len()));
            assert_eq!(index.at(offset), expected, "offset {offset}");
        }
    }
    let place = |offset| LineIndex::new(&text).at(offset).to_string();
    assert_eq!([place(0), place(2), place(3), place(5)], ["1:1", "1:2", "2:1", "3:2"]);
}

#[test]
fn large_layouts_count_when_they_are_inferred() {
    let layout = vec!["1"; 100_000].join(",");
    let elements = vec!["p"; 50_000].join(",");
    let lines = format!("  p = f32[2]{{0:T({layout})}} parameter(0)\n  t = tuple({elements})\n");
    assert!(error(&entry(&lines)).contains("too many and too large"));
}

#[test]
fn shapes_count_that_a_wrapped_computation_repeats() {
    let operands = vec!["p"; 50_000].join(",");
    let lines = format!(
        "  p = {} parameter(0)\n  s = ((f32[2]), f32[2]) custom-call-start({operands}), custom_call_target=\"t\"\n",
        tuple(10_000)
    );
    assert!(error(&entry(&lines)).contains("too many and too large"));
}

#[test]
fn arrays_without_elements_are_short() {
    for value in ["{}", "{...}"] {
        let lines: String =
            (0..1000).map(|i| format!("  k{i} = f32[60000,0] constant({value})\n")).collect();
        let text = entry(&lines);
        let module = parse_and_verify(&text).unwrap();
        let printed = print(&module);
        assert!(printed.len() < 4 * text.len(), "{} bytes", printed.len());
        let again = parse(&printed).unwrap().module;
        let values = |m: &Module| {
            let ids = m.instructions(m.entry().unwrap());
            ids.map(|id| m.constant(id).cloned()).collect::<Vec<_>>()
        };
        assert_eq!(values(&again), values(&module));
    }
}

/// It is not one of the fields that are carried unchanged.
#[test]
fn a_field_of_metadata_is_known_with_space_before_its_sign() {
    let line =
        |value: &str| format!("  ROOT x = f32[] parameter(0), metadata={{op_name {value}}}\n");
    let module = parse(&entry(&line("= \"a\""))).unwrap().module;
    let root = module.computation(module.entry().unwrap()).root().unwrap();
    assert_eq!(module.metadata(root).unwrap().op_name, "a");
    assert!(error(&entry(&line("==\"a\""))).contains("expected a string in quotes"));
}
