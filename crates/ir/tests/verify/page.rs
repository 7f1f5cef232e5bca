//! `docs/verifier.md` says what the code says, and its examples break what
//! they say they break.

use std::path::Path;

use tilewright_ir::verify::CHECKS;

use super::fixtures::{Found, of_text};

fn page() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/verifier.md");
    std::fs::read_to_string(path).unwrap()
}

/// Returns the parts of the page below `### ` headings: heading and body.
fn sections(page: &str) -> Vec<(&str, &str)> {
    page.split("\n### ").skip(1).map(|part| part.split_once('\n').unwrap()).collect()
}

fn example(body: &str) -> Option<&str> {
    let (_, rest) = body.split_once("```hlo\n")?;
    Some(rest.split_once("```").unwrap().0)
}

#[test]
fn the_page_lists_every_check_with_its_sentence() {
    let page = page();
    let headings: Vec<String> = sections(&page).iter().map(|(h, _)| (*h).to_owned()).collect();
    let checks: Vec<String> = CHECKS.iter().map(|(code, text)| format!("{code}: {text}")).collect();
    assert_eq!(headings, checks);
}

/// What the reader says of the examples that are no module.
const SYNTAX: [(&str, &str); 9] = [
    ("V001", "the text ends too early"),
    ("V002", "a computation without instructions"),
    ("V003", "a second instruction named `a`"),
    ("V004", "a second computation named `f`"),
    ("V005", "no instruction `b` stands before this"),
    ("V006", "no computation `later` stands before this"),
    ("V007", "parameter 2, but there is no parameter 1"),
    ("V009", "no instruction `c` stands before this"),
    ("V015", "the shape of `reshape` cannot be inferred"),
];

#[test]
fn every_example_breaks_its_rule_alone() {
    let page = page();
    for (heading, body) in sections(&page) {
        let (code, _) = heading.split_once(':').unwrap();
        let Some(example) = example(body) else {
            assert_eq!(code, "V008", "{heading} has no example");
            continue;
        };
        match of_text(example) {
            Found::Syntax(errors) => {
                let said = SYNTAX.iter().find(|(of, _)| *of == code);
                assert!(said.is_some_and(|(_, said)| errors.contains(said)), "{code}: {errors}");
            }
            Found::Broken(found) => {
                let codes: Vec<String> = found.iter().map(|f| f.code.to_string()).collect();
                assert_eq!(codes, [code], "{heading}");
            }
        }
    }
}

#[test]
fn the_message_at_the_top_is_what_is_said() {
    let page = page();
    let example = sections(&page).into_iter().find(|(h, _)| h.starts_with("V014")).unwrap().1;
    let Found::Broken(found) = of_text(self::example(example).unwrap()) else {
        panic!("the example of V014 is no HLO");
    };
    let said = format!("{}: instruction `{}`: {}", found[0].code, found[0].place, found[0].message);
    assert!(page.contains(&said), "{said}");
}
