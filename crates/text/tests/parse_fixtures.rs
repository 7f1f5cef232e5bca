//! Every fixture parses and verifies, and its header is a sentence.
use std::path::{Path, PathBuf};

use tilewright_testkit::fixture::{Header, Language};

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures")
}

fn hlo_files(folder: &str) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = std::fs::read_dir(fixtures().join(folder))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|e| e == "hlo"))
        .collect();
    files.sort();
    files
}

fn check(folder: &str, at_least: usize) {
    let files = hlo_files(folder);
    assert!(files.len() >= at_least, "{folder} has only {} files", files.len());
    let mut failures = Vec::new();
    for path in &files {
        let source = std::fs::read_to_string(path).unwrap();
        if let Err(error) = tilewright_text::parse_and_verify(&source) {
            failures.push(format!("{}:\n{error}", path.display()));
        }
        if let Err(error) = Header::read(&source, &Language::default()) {
            failures.push(format!("{}: {error}", path.display()));
        }
    }
    assert!(failures.is_empty(), "{} of {}:\n{}", failures.len(), files.len(), failures.join("\n"));
}

#[test]
fn models() {
    check("models", 80);
}

#[test]
fn real() {
    check("real", 60);
}

/// Programs for eight devices, lowered and compiled.
#[test]
fn sharded() {
    check("sharded", 30);
}

#[test]
fn devices() {
    check("devices", 20);
}

#[test]
fn printed_in_every_form() {
    check("text/ok", 28);
}
