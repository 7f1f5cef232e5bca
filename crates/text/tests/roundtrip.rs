//! Every fixture comes back from text as it went in, and XLA's own prints are
//! printed as XLA printed them.
use std::path::{Path, PathBuf};

use crate::compare::{Detail, assert_same};
use tilewright_ir::Module;
use tilewright_text::{Form, PrintOptions, parse, print};

const DEFAULT: PrintOptions = PrintOptions::new();
const SHORT: PrintOptions = PrintOptions::new().with_form(Form::Short);

fn fixtures(folder: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures").join(folder);
    let entries = std::fs::read_dir(&folder).unwrap();
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|e| e == "hlo"));
    files.sort();
    assert!(!files.is_empty(), "no fixtures in {}", folder.display());
    files
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap()
}

fn module(source: &str, what: &Path) -> Module {
    match parse(source) {
        Ok(parsed) => parsed.module,
        Err(errors) => panic!("{}: {errors}", what.display()),
    }
}

/// Parses, prints and parses again, twice.
fn round_trip(path: &Path, options: &PrintOptions, detail: Detail) {
    let first = module(&read(path), path);
    let once = print(&first, options).unwrap();
    let second = module(&once, path);
    assert_same(&first, &second, detail, &path.display().to_string());
    let twice = print(&second, options).unwrap();
    assert!(once == twice, "{}: printing is no fixpoint", path.display());
}

#[test]
fn nothing_is_lost_in_the_default_form() {
    for folder in ["models", "real", "sharded", "text/ok"] {
        for path in fixtures(folder) {
            round_trip(&path, &DEFAULT, Detail::All);
        }
    }
}

#[test]
fn only_metadata_is_lost_in_the_short_form() {
    for folder in ["models", "real", "sharded", "text/ok"] {
        for path in fixtures(folder) {
            round_trip(&path, &SHORT, Detail::WithoutMetadata);
        }
    }
}

/// Returns the lines of a fixture except those that state its source.
fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.trim_end().lines().skip_while(|line| line.starts_with("//"))
}

/// XLA writes all floats with six digits or, if these are not enough, nine; we write as many as
/// are needed. A line is not compared if this makes a difference.
fn has_long_float(line: &str) -> bool {
    line.contains(" constant(")
        && line.split(|c: char| !c.is_ascii_digit() && c != '.').any(|word| word.len() > 7)
}

fn assert_printed_as_xla(prefixes: &[&str], options: &PrintOptions) {
    let files = fixtures("text/ok");
    for prefix in prefixes {
        let begins =
            |path: &PathBuf| path.file_name().unwrap().to_str().unwrap().starts_with(prefix);
        assert!(files.iter().any(begins), "no file begins with {prefix}");
    }
    for path in files {
        let name = path.file_name().unwrap().to_str().unwrap();
        if !prefixes.iter().any(|prefix| name.starts_with(prefix)) {
            continue;
        }
        let theirs = read(&path);
        let ours = print(&module(&theirs, &path), options).unwrap();
        assert_eq!(lines(&ours).count(), lines(&theirs).count(), "{name}");
        for (ours, theirs) in lines(&ours).zip(lines(&theirs)) {
            assert!(ours == theirs || has_long_float(theirs), "{name}:\n{ours}\n{theirs}");
        }
    }
}

#[test]
fn the_default_form_is_that_of_xla() {
    let made_by_default = ["default_", "elided_", "donated_", "compiled_group", "compiled_layer"];
    assert_printed_as_xla(&made_by_default, &DEFAULT);
    assert_printed_as_xla(&["compiled_mlp", "compiled_qk", "compiled_unet"], &DEFAULT);
    assert_printed_as_xla(&["compiled_resnet", "compiled_spectral", "compiled_white"], &DEFAULT);
}

#[test]
fn the_short_form_is_that_of_xla() {
    assert_printed_as_xla(&["short_"], &SHORT);
}
