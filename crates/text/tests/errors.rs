//! Every file of `fixtures/text/err` is wrong, and how it is wrong is drawn in
//! the snapshot of its name beside it.
//!
//! After a change of messages, `cargo insta review`, or
//! `INSTA_UPDATE=always cargo test -p tilewright-text --test errors` and a look
//! at the difference. A new error kind needs a new file there, nothing here.
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use tilewright_testkit::fixture::{Header, Language};
use tilewright_text::render::Renderer;
use tilewright_text::{Invalid, parse_and_verify};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/text/err")
}

/// Returns the names of the fixtures; any file that is neither one of them nor the snapshot of
/// one is an error.
fn fixtures() -> BTreeSet<String> {
    let entries = std::fs::read_dir(folder()).unwrap();
    let files: BTreeSet<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    let names: BTreeSet<String> =
        files.iter().filter_map(|file| file.strip_suffix(".hlo")).map(str::to_owned).collect();
    for file in &files {
        let name = file.strip_suffix(".hlo").or_else(|| file.strip_suffix(".snap"));
        // Insta's own, until it is reviewed.
        let pending = file.ends_with(".snap.new");
        assert!(pending || name.is_some_and(|n| names.contains(n)), "{file} belongs to no fixture");
    }
    names
}

#[test]
fn every_error_is_drawn_as_its_snapshot_says() {
    let names = fixtures();
    assert!(names.len() > 80, "only {} fixtures", names.len());
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path(folder());
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| {
        for name in names {
            let file = format!("{name}.hlo");
            let source = std::fs::read_to_string(folder().join(&file)).unwrap();
            if let Err(error) = Header::read(&source, &Language::default()) {
                panic!("{file}: {error}");
            }
            let Err(invalid) = parse_and_verify(&source) else { panic!("{file} is not wrong") };
            let drawing = Renderer::new().invalid(&file, &source, &invalid);
            insta::assert_snapshot!(name, drawing);
        }
    });
}

#[test]
fn a_module_without_text_is_drawn_as_it_would_be_printed() {
    let text = "HloModule m\nENTRY e {\n  p = f32[2] parameter(0)\n  ROOT r = f32[3] negate(p)\n}";
    let Err(Invalid::Rejected { rejected, .. }) = parse_and_verify(text) else {
        panic!("it verifies")
    };
    let drawn = Renderer::new().diagnostics("m", None, &rejected.module, &rejected.diagnostics);
    let expected = "\
error[V014]: `negate` of these operands yields f32[2], not f32[3]
 |
 | %r = f32[3] negate(%p)
 | ^^^^^^^^^^^^^^^^^^^^^^
";
    assert_eq!(drawn, expected);
}

#[test]
fn colour_is_drawn_when_it_is_asked_for() {
    let Err(invalid) = parse_and_verify("HloModule") else { panic!("it parses") };
    let plain = Renderer::new().invalid("m", "HloModule", &invalid);
    let colour = Renderer::new().with_colour(true).invalid("m", "HloModule", &invalid);
    assert!(!plain.contains('\u{1b}') && colour.contains('\u{1b}'));
}
