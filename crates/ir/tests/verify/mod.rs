//! Tests the rules of the verifier: for every code a module that breaks only that rule, made by
//! edits (`edits`) and from text (`fixtures`).
mod accepted;
mod annotations;
mod edits;
mod fixtures;
mod page;

use tilewright_ir::verify::{CHECKS, NEEDS_SHAPE, USE_LISTS};
use tilewright_ir::{Code, Diagnostic, DiagnosticPlace, Module};

/// Codes that no edit and no text can bring about, and why.
const UNREACHABLE: [(Code, &str); 2] = [
    (USE_LISTS, "every edit keeps the use lists; this guards against errors in `edit` itself"),
    (
        NEEDS_SHAPE,
        "in a module every instruction has a shape; the builder and the text reader say it \
         where one was left out",
    ),
];

fn place(module: &Module, diagnostic: &Diagnostic) -> String {
    match diagnostic.place {
        DiagnosticPlace::Module => "module".into(),
        DiagnosticPlace::Computation(id) => module.computation(id).name().into(),
        DiagnosticPlace::Instruction(id) => module.name_of(id).into(),
    }
}

#[test]
fn every_code_is_broken_by_some_module() {
    let broken = edits::codes();
    for &(code, text) in CHECKS {
        let unreachable = UNREACHABLE.iter().any(|(c, _)| *c == code);
        assert_eq!(!broken.contains(&code), unreachable, "{code}: {text}");
    }
}

#[test]
fn codes_are_unique_and_rising() {
    let codes: Vec<Code> = CHECKS.iter().map(|(code, _)| *code).collect();
    assert!(codes.is_sorted_by(|a, b| a < b));
    assert_eq!(Code(7).to_string(), "V007");
}
