//! Pipelines: why they stop, which modules they leave alone, and that they never do harm.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::common::{
    changes, module, optimized, optimized_by_default, passes, pipeline, short, target, text,
    without_latency,
};
use tilewright_ir::Verified;
use tilewright_rewrite::numbers::FloatMode;
use tilewright_rewrite::{
    OptimizeError, Optimized, Options, Outcome, PassSelection, StopReason, module_cost, optimize,
    registry,
};
use tilewright_target::Target;
use tilewright_testkit::fixture::fixtures;

/// A group norm in `[B,H,W,G,C/G]`: one rewrite of T2, which does what T1
/// would, so that T1 finds nothing more.
const GROUP_NORM: &str =
    include_str!("../../../fixtures/rewrite/reshape-out-of-region/group_norm.hlo");

/// Two reduces of reshapes: two rewrites of T1.
const TWO_REDUCES: &str =
    include_str!("../../../fixtures/rewrite/reduce-through-reshape/several_readers.hlo");

/// Every model, small and real, with its name.
fn models() -> Vec<(String, Verified)> {
    let files = ["models", "real"].into_iter().flat_map(|folder| {
        fixtures(folder).expect("a folder of fixtures").into_iter().map(move |file| {
            let source = file.text().expect("a readable file");
            (format!("{folder}/{}", file.name), module(&source))
        })
    });
    files.collect()
}

// --- Why it stops ---

#[test]
fn stops_at_the_fixpoint() {
    let after = optimized_by_default(&module(GROUP_NORM));
    assert_eq!(after.report.stopped, StopReason::Fixpoint);
    assert!(!after.report.unchanged);
}

#[test]
fn stops_when_it_is_cancelled() {
    let cancel = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&cancel);
    let options = Options::new(target("tpu-like"))
        .with_cancel(Arc::clone(&cancel))
        .with_observer(move |_, _| seen.store(true, Ordering::Relaxed));
    let error = optimize(module(GROUP_NORM), &options);
    assert!(matches!(error, Err(OptimizeError::Cancelled)), "{error:?}");
}

#[test]
fn stops_at_the_budget() {
    let before = module(GROUP_NORM);
    for rounds in [0, 1] {
        let options = pipeline("default", "tpu-like").with_max_rounds(rounds);
        let after = optimized(&before, &options);
        assert_eq!(after.report.stopped, StopReason::Budget, "{rounds} rounds");
    }
    // A module without anything to rewrite is done in one round.
    let done = optimized_by_default(&before).module;
    let options = pipeline("default", "tpu-like").with_max_rounds(1);
    assert_eq!(optimized(&done, &options).report.stopped, StopReason::Fixpoint);
}

#[test]
fn a_budget_of_nothing_changes_nothing() {
    let before = module(GROUP_NORM);
    let options = pipeline("default", "tpu-like").with_max_rounds(0);
    let after = optimized(&before, &options);
    assert!(after.report.unchanged);
    assert_eq!(text(&before), text(&after.module));
}

/// Counts the cost-gated rewrites that were made, and the notes that report them.
fn cost_gated(after: &tilewright_rewrite::Optimized) -> (usize, usize) {
    let passes = registry::passes().filter(|pass| pass.is_cost_gated());
    let names: Vec<&str> = passes.map(tilewright_rewrite::Pass::name).collect();
    let made = names.iter().map(|name| changes(after, name)).sum();
    let notes = after.report.notes.iter();
    let done = notes.filter(|n| n.outcome == Outcome::Done && names.contains(&n.pass)).count();
    (made, done)
}

#[test]
fn stops_after_so_many_rewrites() {
    let before = module(TWO_REDUCES);
    let mut texts = Vec::new();
    for wanted in 0..3 {
        let names = ["reduce-through-reshape", "dce"];
        let options = passes(&names, "tpu-like", false).with_stop_after(wanted);
        let after = optimized(&before, &options);
        let wanted = usize::try_from(wanted).expect("a small number");
        assert_eq!(cost_gated(&after), (wanted, wanted), "{:?}", after.report.notes);
        assert_eq!(after.report.stopped, StopReason::StopAfter);
        texts.push(text(&after.module));
    }
    assert_eq!(texts[0], text(&before));
    assert!(texts[0] != texts[1] && texts[1] != texts[2]);
    // There are no more than two.
    let names = ["reduce-through-reshape", "dce"];
    let options = passes(&names, "tpu-like", false).with_stop_after(3);
    let after = optimized(&before, &options);
    assert_eq!(cost_gated(&after), (2, 2));
    assert_eq!(after.report.stopped, StopReason::Fixpoint);
    assert_eq!(text(&after.module), texts[2]);
}

#[test]
fn every_number_of_rewrites_of_a_real_program_is_right() {
    let source = fixtures("models").expect("models");
    let file = source.iter().find(|f| f.name == "unet_block_grad").expect("the U-Net");
    let before = module(&file.text().expect("a readable file"));
    let (all, _) = cost_gated(&optimized_by_default(&before));
    assert!(all >= 4, "{all} rewrites");
    for wanted in 0..=all {
        let most = u64::try_from(wanted).expect("a small number");
        let options = pipeline("default", "tpu-like").with_stop_after(most);
        let after = optimized(&before, &options);
        assert_eq!(cost_gated(&after).0, wanted);
        assert_eq!(after.report.unchanged, after.report.before == after.report.after);
    }
}

// --- What does not exist ---

#[test]
fn unknown_passes_are_named() {
    let before = module(GROUP_NORM);
    let error = optimize(before, &passes(&["dce", "no-such-pass"], "tpu-like", false));
    let Err(OptimizeError::UnknownPass(name)) = error else { panic!("no error") };
    assert_eq!(name, "no-such-pass");
    let message = OptimizeError::UnknownPass(name).to_string();
    assert_eq!(message, "there is no pass `no-such-pass`; `tilewright passes` lists them");
    let message = OptimizeError::UnknownPass("DEC".to_owned()).to_string();
    assert!(message.starts_with("there is no pass `DEC` (did you mean `dce`?); "), "{message}");
}

#[test]
fn unknown_pipelines_are_named_beside_the_known() {
    let before = module(GROUP_NORM);
    let error = optimize(before, &pipeline("no-such", "tpu-like")).expect_err("an error");
    let message = error.to_string();
    assert!(
        message.starts_with("there is no pipeline `no-such`; there are: default, "),
        "{message}"
    );
}

#[test]
fn a_name_in_another_case_is_unknown() {
    let options = Options::new(target("linear")).with_passes(PassSelection::list(["DCE"]));
    assert!(matches!(optimize(module(GROUP_NORM), &options), Err(OptimizeError::UnknownPass(_))));
}

// --- What is left alone ---

fn is_gradient(name: &str) -> bool {
    name.contains("_grad") || name.contains("_vjp")
}

/// Models by the first letters of their names, in both folders.
fn models_called(prefixes: &[&str]) -> Vec<(String, Verified)> {
    let called = |name: &str| {
        let name = name.split_once('/').map_or(name, |(_, name)| name);
        prefixes.iter().any(|prefix| name.starts_with(prefix))
    };
    models().into_iter().filter(|(name, _)| called(name)).collect()
}

#[test]
fn modules_without_the_patterns_come_back_as_they_are() {
    let mut models = models_called(&["batch_norm", "mlp"]);
    // Their sums are of products with a factor in common.
    models.retain(|(name, _)| !name.contains("batch_norm") || !is_gradient(name));
    assert!(models.len() >= 7, "{} models", models.len());
    for (name, before) in models {
        for target in ["cpu", "linear", "tpu-like"] {
            let after = optimized(&before, &pipeline("default", target));
            // A large array is centred again for its variance.
            if target == "cpu" && name.starts_with("real/batch_norm") {
                assert_eq!(
                    cost_gated_changes(&after),
                    ["rematerialize"],
                    "{:?}",
                    after.report.notes
                );
                continue;
            }
            assert!(after.report.unchanged, "{name} on {target}: {:?}", after.report.notes);
            assert!(text(&before) == text(&after.module), "{name} on {target}");
        }
    }
}

/// Returns the cost-gated passes that changed anything.
fn cost_gated_changes(after: &Optimized) -> Vec<&'static str> {
    let passes =
        registry::passes().filter(|pass| pass.is_cost_gated()).map(tilewright_rewrite::Pass::name);
    passes.filter(|name| changes(after, name) > 0).collect()
}

#[test]
fn gradients_of_batch_norm_change_for_their_sums_alone() {
    let mut models = models_called(&["batch_norm"]);
    models.retain(|(name, _)| is_gradient(name));
    assert!(models.len() >= 3, "{} models", models.len());
    for (name, before) in models {
        for target in ["cpu", "linear", "tpu-like"] {
            let after = optimized(&before, &without_latency(target));
            let (report, notes) = (&after.report, &after.report.notes);
            assert!(!report.unchanged, "{name} on {target}: {notes:?}");
            let mut made = cost_gated_changes(&after);
            made.retain(|&pass| target != "cpu" || pass != "rematerialize");
            assert_eq!(made, ["factored-sums"], "{name} on {target}: {notes:?}");
        }
    }
}

/// A loop with an element that nothing reads, and nothing else to do.
const DEAD_ELEMENT: &str = include_str!("../../../fixtures/rewrite/dead-elements/unread.hlo");

#[test]
fn cleanups_that_are_not_kept_are_not_told_of() {
    let before = module(DEAD_ELEMENT);
    let after = optimized_by_default(&before);
    assert!(changes(&after, "dead-elements") > 0 && after.report.unchanged);
    let told = |outcome| after.report.notes.iter().filter(|n| n.outcome == outcome).count();
    assert_eq!(told(Outcome::Done), 0, "{:?}", after.report.notes);
    let kept = optimized(&before, &pipeline("cleanup", "tpu-like"));
    assert!(!kept.report.unchanged);
    assert!(kept.report.notes.iter().any(|note| note.text.contains("nothing reads it")));
}

/// The report gives the costs of modules in their simplest form.
#[test]
fn reports_give_true_figures() {
    let targets: Vec<&str> = Target::builtin_names().collect();
    for (number, (name, before)) in models().into_iter().enumerate() {
        let target_name = targets[number % targets.len()];
        let mode = [FloatMode::Guarded, FloatMode::Exact][number / targets.len() % 2];
        let options = pipeline("default", target_name).with_float_mode(mode);
        let after = optimized(&before, &options);
        let cost = |module: &Verified| module_cost(module, &options.target);
        let simplest =
            |module: &Verified| cost(&optimized(module, &pipeline("cleanup", target_name)).module);
        let (tidy, old) = (simplest(&before), cost(&before));
        let tidy = if tidy.cycles < old.cycles { tidy } else { old };
        assert_eq!(after.report.before, tidy, "{name} on {target_name}");
        let now = if after.report.unchanged { tidy } else { simplest(&after.module) };
        assert_eq!(after.report.after, now, "{name} on {target_name}");
    }
}

#[test]
fn two_runs_make_the_same_text() {
    for (name, before) in models() {
        let again = module(&text(&before));
        let (first, second) = (optimized_by_default(&before), optimized_by_default(&again));
        assert!(text(&first.module) == text(&second.module), "{name}");
        assert_eq!(first.report.notes, second.report.notes, "{name}");
    }
}

// --- Extras of the report ---

#[test]
fn every_pass_that_ran_is_in_the_report_once() {
    let after = optimized_by_default(&module(GROUP_NORM));
    let mut names: Vec<&str> = after.report.passes.iter().map(|report| report.name).collect();
    names.sort_unstable();
    let all = names.len();
    names.dedup();
    assert_eq!(names.len(), all);
    assert!(names.contains(&"reshape-out-of-region") && names.contains(&"dce"), "{names:?}");
}

#[test]
fn a_cleanup_finds_no_reshape_to_move() {
    let before = module(GROUP_NORM);
    let after = optimized(&before, &pipeline("cleanup", "tpu-like"));
    assert_eq!(cost_gated(&after), (0, 0), "{}", short(&after.module));
}

/// One channel in each group of an array that does not stay in vector memory: the only move is
/// that of dims of size 1, and the array loses its padding.
#[test]
fn unit_dims_of_a_large_array_are_removed_even_if_nothing_else_changes() {
    let before = module(include_str!("../../../fixtures/rewrite/unit-dims/large_array.hlo"));
    let mut options = Options::new(target("tpu-like"));
    options.target.vector_memory_bytes = 65_536;
    let after = optimized(&before, &options);
    assert!(!after.report.unchanged);
    assert!(after.report.after.cycles * 4.0 < after.report.before.cycles, "{:?}", after.report);
}

/// The statistics of a layer norm: a backend lays out what stays in vector memory so that
/// dims of size 1 take no room.
#[test]
fn unit_dims_of_small_arrays_beside_a_large_one_are_left() {
    let before = module(
        "HloModule statistics
ENTRY main {
  large = f32[8,197,768] parameter(0)
  sum = f32[8,197] parameter(1)
  kept = f32[8,197,1] reshape(sum)
  root = f32[8,197,1] rsqrt(kept)
  dropped = f32[8,197] reshape(root)
  scales = f32[8,197,768] broadcast(dropped), dimensions={0,1}
  ROOT scaled = f32[8,197,768] multiply(large, scales)
}
",
    );
    for name in Target::builtin_names() {
        let after = optimized(&before, &pipeline("default", name));
        assert!(after.report.unchanged, "{name}: {:?}", after.report);
    }
}

/// Passes take the type of a result from its operands.
#[test]
fn modules_of_several_precisions_are_left_alone() {
    let lines = |text: &str| text.replace("f32[2,3] add(p.0, p.1)", "bf16[2,3] add(p.0, p.1)");
    let text = "HloModule m
ENTRY e {
  p.0 = f32[2,3] parameter(0)
  p.1 = f32[2,3] parameter(1)
  s = f32[2,3] add(p.0, p.1)
  c = f32[2,3] convert(s)
  r = f32[6] reshape(c)
  ROOT b = f32[2,3] reshape(r)
}";
    for name in ["default", "cleanup"] {
        let before = module(&lines(text));
        let after = optimized(&before, &pipeline(name, "tpu-like"));
        assert!(after.report.unchanged, "{name}");
        let [note] = after.report.notes.as_slice() else { panic!("{:?}", after.report.notes) };
        assert_eq!(note.outcome, Outcome::Left);
        assert_eq!(note.place.text, "`s`");
        assert!(note.text.contains("floats of different precision meet in this `add`"), "{note}");
    }
    let one_precision = optimized(&module(text), &pipeline("cleanup", "tpu-like"));
    assert!(!one_precision.report.unchanged);
}

/// Small programs need more than others; what a loop of unknown length saves in one turn is never small.
#[test]
fn small_savings_are_left_unless_a_loop_repeats_them() {
    let left = |before: &Verified, small_saving_cycles: f64| {
        let mut options = pipeline("default", "tpu-like");
        options.target.least_small_gain = 1000.0;
        options.target.small_saving_cycles = small_saving_cycles;
        let report = optimized(before, &options).report;
        let told = report.notes.iter().any(|note| note.text.contains("to be worth it, less than"));
        assert_eq!(told, report.unchanged, "{:?}", report.notes);
        report.unchanged
    };
    let norm = module(include_str!("../../../fixtures/models/group_norm_nhwc.hlo"));
    assert!(!left(&norm, 0.0) && left(&norm, 1e9));
    let counted = include_str!("../../../fixtures/models/group_norm_scan.hlo");
    assert!(left(&module(counted), 1e9));
    let unknown = counted.replace("direction=LT", "direction=EQ");
    assert!(!left(&module(&unknown), 1e9));
}
