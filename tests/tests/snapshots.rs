//! Shows what the default pipeline does with every model fixture, as a text to read.
//!
//! A snapshot holds what the fixture is, the modelled costs before and after,
//! what was done in the optimiser's own words, and the rewritten entry.

use std::fmt::Write as _;
use std::path::Path;

use tilewright::rewrite::{Cost, Report, Verdict};
use tilewright::text::{Form, PrintOptions};
use tilewright::{Options, Target, Verified, optimize};

#[test]
fn every_model_as_it_is_rewritten() {
    insta::with_settings!({ prepend_module_to_snapshot => false, omit_expression => true }, {
        insta::glob!("../../fixtures/models", "*.hlo", |path| {
            insta::assert_snapshot!(review(path));
        });
    });
}

fn review(path: &Path) -> String {
    let source = std::fs::read_to_string(path).expect("a fixture");
    let module = tilewright::parse(&source).expect("a fixture that parses and verifies");
    let target = Target::builtin(Target::DEFAULT).expect("the default target");
    let optimized = optimize(module, &Options::new(target)).expect("an optimised fixture");
    let mut text = String::new();
    for line in source.lines().take_while(|line| line.starts_with("//")) {
        if !line.contains("made by") {
            writeln!(text, "{line}").expect("memory");
        }
    }
    summary(&mut text, &optimized.report);
    if !optimized.report.unchanged {
        text.push_str(&entry(&optimized.module));
    }
    text
}

fn summary(text: &mut String, report: &Report) {
    if report.unchanged {
        writeln!(text, "unchanged: {}", costs(&report.before)).expect("memory");
        return;
    }
    writeln!(text, "before: {}", costs(&report.before)).expect("memory");
    writeln!(text, "after:  {}", costs(&report.after)).expect("memory");
    for note in report.notes.iter().filter(|note| note.verdict == Verdict::Done) {
        writeln!(text, "- {note}").expect("memory");
    }
    text.push('\n');
}

fn costs(cost: &Cost) -> String {
    format!(
        "{:.0} cycles, {} vectors, {} realigned, {} of {} bytes padded",
        cost.cycles,
        cost.vectors,
        cost.realigned_vectors,
        cost.padded_bytes - cost.bytes.min(cost.padded_bytes),
        cost.padded_bytes
    )
}

/// Returns the entry computation, without metadata, as short as it can be read back.
fn entry(module: &Verified) -> String {
    let options = PrintOptions { form: Form::Short, ..PrintOptions::default() };
    let text = tilewright::text::print(module, &options).expect("text");
    text.find("ENTRY").map_or_else(String::new, |start| text[start..].to_owned())
}
