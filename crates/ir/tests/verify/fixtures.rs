//! The texts of `fixtures/verify`: each says in its first lines what it tests
//! and, as `// expect: V014 name: message`, all that is wrong with it.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use tilewright_ir::Code;
use tilewright_ir::verify::{self, CHECKS, check};
use tilewright_testkit::fixture::{Header, Language};
use tilewright_text::parse;

use super::{UNREACHABLE, place};

/// Codes that a text cannot break, because what breaks them is no module: the
/// reader says so, at the place. `fixtures/text/err` has those.
const SYNTAX: [Code; 8] = [
    verify::NO_ENTRY,
    verify::EMPTY_COMPUTATION,
    verify::DUPLICATE_INSTRUCTION,
    verify::DUPLICATE_COMPUTATION,
    verify::OPERAND_ORDER,
    verify::CALL_ORDER,
    verify::PARAMETERS,
    verify::CONTROL_ORDER,
];

/// The language of the headers.
const LANGUAGE: Language = Language { flags: &[], once: &[], many: &["expect"] };

/// One thing that is wrong.
pub(crate) struct Finding {
    pub(crate) code: Code,
    pub(crate) place: String,
    pub(crate) message: String,
}

/// The error found in a text.
pub(crate) enum Found {
    /// It is no module.
    Syntax(String),
    /// The module breaks these rules.
    Broken(Vec<Finding>),
}

pub(crate) fn of_text(text: &str) -> Found {
    let parsed = match parse(text) {
        Ok(parsed) => parsed,
        Err(errors) => return Found::Syntax(errors.to_string()),
    };
    let finding = |d: tilewright_ir::Diagnostic| Finding {
        code: d.code,
        place: place(&parsed.module, &d),
        message: d.message,
    };
    Found::Broken(check(&parsed.module).into_iter().map(finding).collect())
}

fn files() -> Vec<PathBuf> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/verify");
    let entries = std::fs::read_dir(directory).unwrap();
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

fn name(file: &Path) -> String {
    file.file_name().unwrap().to_string_lossy().into_owned()
}

/// Returns the code that a file's name begins with.
fn code_of(name: &str) -> Option<Code> {
    let (code, what) = name.strip_suffix(".hlo")?.split_once('_')?;
    let known = |(known, _): &&(Code, &str)| known.to_string() == code;
    (!what.is_empty()).then_some(CHECKS.iter().find(known)?.0)
}

#[test]
fn only_fixtures_lie_there() {
    for file in files() {
        let name = name(&file);
        assert!(code_of(&name).is_some(), "`{name}` is not named V014_what.hlo");
    }
}

#[test]
fn each_text_breaks_what_it_says() {
    let mut wrong = Vec::new();
    for file in files() {
        let (name, text) = (name(&file), std::fs::read_to_string(&file).unwrap());
        let header = Header::read(&text, &LANGUAGE).unwrap_or_else(|e| panic!("{name}: {e}"));
        let expected: Vec<&str> = header.values("expect").collect();
        let found: Vec<String> = match of_text(&text) {
            Found::Syntax(errors) => vec![errors],
            Found::Broken(found) => {
                found.iter().map(|f| format!("{} {}: {}", f.code, f.place, f.message)).collect()
            }
        };
        let says = !header.sentence.is_empty();
        let own = code_of(&name).map(|code| code.to_string()).unwrap_or_default();
        let about_it = !found.is_empty() && found.iter().all(|f| f.starts_with(&own));
        if found != expected || !says || !about_it {
            let lines: Vec<String> = found.iter().map(|f| format!("// expect: {f}")).collect();
            wrong.push(format!(
                "{name} should begin with what it tests, then\n{}",
                lines.join("\n")
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

#[test]
fn every_code_that_text_can_break_has_a_text() {
    let covered: BTreeSet<Code> = files().iter().filter_map(|f| code_of(&name(f))).collect();
    for &(code, text) in CHECKS {
        let elsewhere = SYNTAX.contains(&code) || UNREACHABLE.iter().any(|(c, _)| *c == code);
        assert_eq!(covered.contains(&code), !elsewhere, "{code}: {text}");
    }
}

/// The rules of shapes are the same in the reader, where a shape is left out.
#[test]
fn a_shape_that_is_left_out_is_inferred_by_the_same_rule() {
    let text = |shape: &str| {
        format!(
            "HloModule m\n\nENTRY e {{\n  a = f32[2,3] parameter(0)\n  b = f32[3] parameter(1)\n  ROOT c = {shape}add(a, b)\n}}\n"
        )
    };
    let said = "the operands of `add` differ in dims";
    let Found::Syntax(errors) = of_text(&text("")) else { panic!("the reader takes it") };
    assert!(errors.contains(said), "{errors}");
    let Found::Broken(found) = of_text(&text("f32[2,3] ")) else { panic!("no module") };
    assert!(found[0].message.contains(said), "{}", found[0].message);
    assert_eq!(found[0].code, verify::OPERAND);
}
