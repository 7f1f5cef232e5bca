//! Shows what the default pipeline does with models, as texts to read: of all of them which passes fire, and
//! of a few what the fixture is, the modelled costs before and after, what was done in the optimiser's own
//! words, and the rewritten entry.

use std::fmt::Write as _;
use std::path::Path;

use tilewright::rewrite::{Cost, Outcome, Report, registry};
use tilewright::text::{Form, PrintOptions};
use tilewright::{Options, Target, Verified, optimize};

#[test]
fn models_as_they_are_rewritten() {
    insta::with_settings!({ prepend_module_to_snapshot => false, omit_expression => true }, {
        insta::glob!(
            "../../fixtures/models",
            "{batch_norm_vjp,ghost_batch_norm_inner,group_norm_bf16,group_norm_nchw,group_norm_nhwc,\
             group_norm_nhwc_vjp,group_norm_scan,instance_norm_grad,layer_norm_vjp,patch_norm,\
             qk_norm_scores,resnet_basic_block,rms_norm_per_head,weight_norm}.hlo",
            |path| insta::assert_snapshot!(review(path))
        );
    });
}

/// The passes that costs decide about, of those that changed a model, on two targets.
#[test]
fn passes_that_fire_on_models() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fixtures/models");
    let files = std::fs::read_dir(folder).expect("models").map(|file| file.expect("a file").path());
    let mut models: Vec<_> =
        files.filter(|path| path.extension().is_some_and(|e| e == "hlo")).collect();
    models.sort();
    let mut table = String::new();
    for path in models {
        let name = path.file_stem().expect("a name").to_string_lossy();
        for target in [Target::DEFAULT, "cpu"] {
            let mut options = Options::new(Target::builtin(target).expect("a target"));
            // The models are small and stand for large ones.
            options.target.small_saving_cycles = 0.0;
            let module = tilewright::load(&path).expect("a module");
            let report = optimize(module, &options).expect("an optimised fixture").report;
            let gated = registry::passes().filter(|pass| pass.is_cost_gated());
            let fired = gated.map(tilewright::Pass::name).filter(|name| {
                report.passes.iter().any(|pass| pass.name == *name && pass.changes > 0)
            });
            let fired: Vec<&str> = fired.collect();
            let kept = if report.unchanged { "unchanged" } else { &fired.join(" ") };
            writeln!(table, "{name} on {target}: {kept}").expect("memory");
        }
    }
    insta::with_settings!({ prepend_module_to_snapshot => false, omit_expression => true }, {
        insta::assert_snapshot!(table);
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
    for note in report.notes.iter().filter(|note| note.outcome == Outcome::Done) {
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
