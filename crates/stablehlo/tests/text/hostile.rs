//! Texts that are broken, deep or large: an error, and no panic.

use std::cell::Cell;
use std::fs;
use std::path::Path;

use proptest::prelude::{ProptestConfig, Strategy, TestCaseError, any};
use proptest::sample::Index;
use proptest::test_runner::TestRunner;
use proptest::{prop_oneof, proptest};
use tilewright_stablehlo::text::parse;
use tilewright_testkit::mlir_properties::{self, Outcome};

/// A stack as small as that of a test thread, whatever runs this test.
fn on_small_stack(part: impl FnOnce() + Send + 'static) {
    let thread = std::thread::Builder::new().stack_size(2 << 20).spawn(part);
    thread.expect("a thread").join().expect("no panic");
}

const NAMES: [&str; 5] =
    ["every_form.pretty", "mlp.debug", "sharded.generic", "ffi.pretty", "constants.pretty"];

fn fixtures() -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    let read = |name| fs::read_to_string(folder.join(format!("{name}.mlir"))).expect(name);
    NAMES.into_iter().map(read).collect()
}

fn assert_too_deep(text: String) {
    on_small_stack(move || {
        let error = parse(&text).expect_err("an error");
        assert_eq!(error.message, "this is nested too deeply");
    });
}

#[test]
fn depth_is_bounded() {
    let nested = |open: &str, close: &str| {
        format!("\"a.b\"() {{x = {}{}}} : () -> ()", open.repeat(100_000), close.repeat(100_000))
    };
    assert_too_deep(nested("[", "]"));
    assert_too_deep(nested("{a = ", "}"));
    assert_too_deep(nested("tuple<", ">"));
    assert_too_deep(nested("complex<", ">"));
    assert_too_deep(nested("() -> (", ")"));
    assert_too_deep(nested("!stablehlo.future<", ">"));
    assert_too_deep(nested("tensor<1xf32, ", ">"));
    assert_too_deep(nested("loc(callsite(", "))"));
    assert_too_deep(nested("#stablehlo.dot<a = ", ">"));
    assert_too_deep("\"a.b\"() ({".repeat(100_000));
    assert_too_deep("module {".repeat(100_000));
    assert_too_deep("func.func @f() {".repeat(100_000));
    let constant = format!("dense<{}", "[".repeat(100_000));
    let ty = format!("> : tensor<{}f32>", "1x".repeat(100_000));
    assert_too_deep(format!("%0 = stablehlo.constant {constant}{ty}"));
}

#[test]
fn deep_brackets_of_unknown_parts_use_no_stack() {
    let brackets = "<[".repeat(100_000) + &"]>".repeat(100_000);
    let text = format!("\"a.b\"() {{x = #a.b{brackets}, y = !a.b{brackets}}} : () -> ()");
    on_small_stack(move || assert!(parse(&text).is_ok()));
}

#[test]
fn depth_counts_through_aliases() {
    // In the order of use, each alias is read within the one before.
    let forward: String = (0..10_000).map(|i| format!("#a{i} = [#a{}]\n", i + 1)).collect();
    assert_too_deep(format!("{forward}#a10000 = []\nmodule {{}}"));
    // In the order of definition, each is complete before the next.
    let backward: String = (0..10_000).map(|i| format!("#a{} = [#a{i}]\n", i + 1)).collect();
    assert_too_deep(format!("#a0 = []\n{backward}module {{}}"));
    let locations: String =
        (0..10_000).map(|i| format!("#l{} = loc(\"a\"(#l{i}))\n", i + 1)).collect();
    assert_too_deep(format!("#l0 = loc(unknown)\n{locations}module {{}}"));
}

#[test]
fn copies_of_aliases_are_bounded() {
    let doubled: String = (0..60).map(|i| format!("#a{} = [#a{i}, #a{i}]\n", i + 1)).collect();
    let error = parse(&format!("#a0 = [1, 2]\n{doubled}module {{}}")).expect_err("an error");
    assert_eq!(error.message, "the aliases stand for too much text");
    let types: String = (0..60).map(|i| format!("!a{} = tuple<!a{i}, !a{i}>\n", i + 1)).collect();
    let error = parse(&format!("!a0 = i32\n{types}module {{}}")).expect_err("an error");
    assert_eq!(error.message, "the aliases stand for too much text");
}

#[test]
fn sizes_of_types_allocate_nothing() {
    for dims in ["9223372036854775807", "4294967296x4294967296", "0x9223372036854775807"] {
        let text = format!("\"a.b\"() {{x = dense<1> : tensor<{dims}xi8>}} : () -> ()");
        // An answer at once is all that is asked for.
        let _ = parse(&text);
    }
    let complex = format!("{}f32{}", "complex<".repeat(70), ">".repeat(70));
    for elements in ["", "\"0x00\"", "(1.0, 2.0)"] {
        let text = format!("\"a.b\"() {{x = dense<{elements}> : tensor<{complex}>}} : () -> ()");
        assert_eq!(
            parse(&text).expect_err("an error").message,
            "constants of this type cannot be read"
        );
    }
    let text = "%0:4294967295 = \"a.b\"() : () -> ()";
    assert!(parse(text).is_err());
}

#[test]
fn every_beginning_of_a_text_is_an_error_or_a_program() {
    for text in fixtures() {
        let step = (text.len() / 400).max(1);
        for end in (0..text.len()).step_by(step).filter(|&end| text.is_char_boundary(end)) {
            let _ = parse(&text[..end]);
        }
    }
}

/// What a mutation puts into a text.
const PIECES: &[&str] = &[
    "",
    "<",
    ">",
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    "\"",
    "\\",
    "%0",
    "#loc",
    "!a",
    "@x",
    "^bb0",
    ":",
    "->",
    ",",
    "=",
    "-",
    "0x",
    "9999999999999999999999999999999999999999999",
    "1.5e",
    "dense<",
    "loc(",
    "é",
    "\u{0}",
    "//",
    "{-#",
    "#-}",
    "x",
    "?",
    "\n#loc = ",
    "tensor<",
    "true",
];

#[test]
fn texts_as_they_are_become_modules_and_texts_again() {
    let outcomes: Vec<Outcome> = fixtures()
        .iter()
        .map(|text| {
            mlir_properties::text(text.as_bytes()).unwrap_or_else(|problem| panic!("{problem}"))
        })
        .collect();
    println!("{NAMES:?}: {outcomes:?}");
    assert!(outcomes.iter().all(|outcome| *outcome > Outcome::Unread), "{outcomes:?}");
    assert_eq!(outcomes[1], Outcome::Exported, "{}", NAMES[1]);
    let exported = outcomes.iter().filter(|outcome| **outcome == Outcome::Exported).count();
    assert!(exported >= 2, "{outcomes:?}");
}

fn count(counter: &Cell<u32>, is_counted: bool) {
    counter.set(counter.get() + u32::from(is_counted));
}

#[test]
fn mutated_texts_do_not_panic() {
    let mutation = || (any::<Index>(), 0..8_usize, any::<Index>());
    // What is read after one mutation is rarely read after several.
    let mutations = prop_oneof![
        proptest::collection::vec(mutation(), 1..2),
        proptest::collection::vec(mutation(), 1..6),
    ];
    let strategy = (any::<Index>(), mutations);
    let texts = fixtures();
    let [tried, read, exported] = [const { Cell::new(0_u32) }; 3];
    let config =
        ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() };
    let result = TestRunner::new(config).run(&strategy, |(which, mutations)| {
        let mut text = texts[which.index(texts.len())].clone();
        for (at, removed, piece) in mutations {
            let at = floor(&text, at.index(text.len() + 1));
            let end = floor(&text, (at + removed).min(text.len())).max(at);
            text.replace_range(at..end, PIECES[piece.index(PIECES.len())]);
        }
        let outcome = mlir_properties::text(text.as_bytes())
            .map_err(|problem| TestCaseError::fail(format!("{problem}\n{text}")))?;
        count(&tried, true);
        count(&read, outcome > Outcome::Unread);
        count(&exported, outcome == Outcome::Exported);
        Ok(())
    });
    result.unwrap_or_else(|error| panic!("{error}"));
    let [tried, read, exported] = [tried, read, exported].map(Cell::into_inner);
    println!("of {tried}, {read} are read and {exported} exported");
    assert!(read * 100 >= tried, "{read} of {tried} are read");
    assert!(exported >= 1, "{exported} of {read} are exported");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]

    #[test]
    fn any_pieces_do_not_panic(
        pieces in proptest::collection::vec(prop_oneof![
            proptest::sample::select(PIECES.to_vec()).prop_map(str::to_owned),
            proptest::sample::select(WORDS.to_vec()).prop_map(str::to_owned),
            ".{0,3}",
        ], 0..40),
    ) {
        let _ = parse(&pieces.concat());
        let _ = parse(&pieces.join(" "));
    }
}

/// Words that begin parts of a text.
const WORDS: &[&str] = &[
    "module",
    "func.func",
    "stablehlo.reduce",
    "stablehlo.while",
    "stablehlo.convolution",
    "stablehlo.dot_general",
    "sdy.mesh",
    "sdy.manual_computation",
    "stablehlo.constant",
    "\"a.b\"",
    "dense_resource<a>",
    "array<i64",
    "affine_map",
    "init",
    "applies",
    "across dimensions",
    "cond",
];

fn floor(text: &str, mut at: usize) -> usize {
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}
