//! Random modules: every pass alone and every pipeline, with and without `exact`, on both targets.
//! The result verifies, computes the same, is the same every time, and is not rewritten again.
//!
//! `TILEWRIGHT_RANDOM=50 cargo test --release -p tilewright-rewrite --test tests random`
//! tries fifty times as many.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Mutex;

use crate::common::values::{bit_difference, difference, evaluated, real_difference};
use crate::common::{changes, mode, optimized, passes, pipeline, short, text};
use tilewright_interp::inputs::InputKind;
use tilewright_ir::{Literal, Verified};
use tilewright_rewrite::numbers::FloatMode;
use tilewright_rewrite::{Optimized, Options, PIPELINES, StopReason, registry};
use tilewright_testkit::effort::{each, seeds};
use tilewright_testkit::generate::{Options as Recipe, random_module};

/// The number of modules, and of those on which passes fired.
#[derive(Debug, Default)]
struct Tally {
    modules: usize,
    /// For each pass, the number of modules on which it fired alone.
    fired: BTreeMap<&'static str, usize>,
    /// The number of modules that the default pipeline changed.
    rewritten: usize,
    /// The number of modules that it changed under `exact`.
    rewritten_exactly: usize,
}

/// Checks the modules of these seeds on all threads.
fn check_all(recipe: &Recipe, seeds: Range<u64>) -> Tally {
    let tally = Mutex::new(Tally::default());
    each(seeds, |seed| check(seed, recipe, &tally));
    tally.into_inner().expect("a tally")
}

/// A module, its values, and the words for a failure.
struct Case {
    module: Verified,
    printed: String,
    kind: InputKind,
    seed: u64,
    expected: Literal,
}

fn check(seed: u64, recipe: &Recipe, tally: &Mutex<Tally>) {
    let module = random_module(seed, recipe);
    // Every kind of input with and without `exact`, whatever passes there are.
    let kinds: Vec<_> = InputKind::ALL.iter().filter(|kind| **kind != InputKind::Far).collect();
    // The results of random modules on numbers far from zero are mostly rounding errors.
    let (turn, kind) = (seed as usize / kinds.len(), *kinds[seed as usize % kinds.len()]);
    // A sum in another order may rightly overflow where the first did not.
    let always_exact = matches!(kind, InputKind::Edges | InputKind::NonFinite);
    let expected = match evaluated(&module, seed, kind) {
        Ok(expected) => expected,
        Err(error) => panic!("seed {seed}: {error}\n{}", short(&module)),
    };
    let case = Case { printed: text(&module), module, kind, seed, expected };
    let (target, other) = match seed % 5 {
        4 => ("linear", "tpu-like"),
        3 => ("cpu", "mlu-like"),
        _ => ("tpu-like", "cpu"),
    };
    // In a quarter of the runs nothing stays in vector memory, so that small arrays count.
    let memory = |number: usize, options: &mut Options| {
        if (turn + number) % 4 == 1 {
            options.target.vector_memory_bytes = 1024;
        }
    };
    let mut fired = Vec::new();
    for (number, pass) in registry::passes().enumerate() {
        let exact = always_exact || (turn + number).is_multiple_of(4);
        let mut options = passes(&[pass.name()], target, exact);
        memory(number, &mut options);
        let after = case.run(&format!("pass `{}`", pass.name()), &options);
        if changes(&after, pass.name()) > 0 {
            fired.push(pass.name());
        }
    }
    let mut rewritten = [false; 2];
    for (number, known) in PIPELINES.iter().enumerate() {
        let mut earlier = PIPELINES[..number].iter();
        if earlier.any(|e| {
            (e.first, e.cleanup, e.cost_gated) == (known.first, known.cleanup, known.cost_gated)
        }) {
            continue;
        }
        let exact = always_exact || (turn + number).is_multiple_of(4);
        for target in [target, other] {
            let mut options = pipeline(known.name, target).with_float_mode(mode(exact));
            memory(number, &mut options);
            let after = case.run(&format!("pipeline `{}`", known.name), &options);
            if known.name == "default" && !after.report.unchanged {
                rewritten = [true, exact];
            }
            if !known.cost_gated.is_empty() {
                case.check_weighed(&after, &options);
            }
        }
    }
    let mut tally = tally.lock().expect("a tally");
    tally.modules += 1;
    for pass in fired {
        *tally.fired.entry(pass).or_default() += 1;
    }
    tally.rewritten += usize::from(rewritten[0]);
    tally.rewritten_exactly += usize::from(rewritten[1]);
}

impl Case {
    /// Optimises; the result computes the same and is not changed again.
    #[track_caller]
    fn run(&self, what: &str, options: &Options) -> Optimized {
        let after = optimized(&self.module, options);
        let place = || {
            let mode = options.float_mode;
            let (target, before) = (&options.target.name, short(&self.module));
            let after = short(&after.module);
            format!("seed {}, {what}, {mode:?}, {target}\n{before}\n{after}", self.seed)
        };
        assert_eq!(after.report.stopped, StopReason::Fixpoint, "{}", place());
        let once_more = text(&optimized(&self.module, options).module);
        assert!(once_more == text(&after.module), "not the same twice: {}", place());
        let changed = after.report.passes.iter().any(|report| report.changes > 0);
        if !changed || after.report.unchanged {
            assert!(text(&after.module) == self.printed, "printed differently: {}", place());
            return after;
        }
        let actual = match evaluated(&after.module, self.seed, self.kind) {
            Ok(actual) => actual,
            Err(error) => panic!("{error}: {}", place()),
        };
        let apart = if options.float_mode == FloatMode::Exact {
            bit_difference(&self.expected, &actual)
        } else {
            difference(&self.module, self.kind, &self.expected, &actual)
        };
        if let Some(what) = apart.or_else(|| real_difference(&self.module, &after.module)) {
            panic!("{what}: {}", place());
        }
        let again = optimized(&after.module, options);
        let changed = again.report.passes.iter().find(|report| report.changes > 0);
        if !again.report.unchanged
            && let Some(report) = changed
        {
            panic!("`{}` fires again: {}\n{}", report.name, place(), short(&again.module));
        }
        assert!(text(&again.module) == text(&after.module), "printed anew: {}", place());
        after
    }

    /// Checks that a pipeline with cost-gated passes never makes a module cost more, and does not
    /// change its own result.
    fn check_weighed(&self, after: &Optimized, options: &Options) {
        let (seed, report) = (self.seed, &after.report);
        assert!(report.after.cycles <= report.before.cycles, "seed {seed}: {report:?}");
        let again = optimized(&after.module, options);
        assert!(again.report.unchanged, "seed {seed}: {:?}", again.report.notes);
        assert!(text(&again.module) == text(&after.module), "seed {seed}");
    }
}

/// Fails if passes fired too seldom for the test to mean anything: on less than a third of these shares, as of
/// any seed. A share of too few modules is not judged.
#[track_caller]
fn assert_fired(tally: &Tally, percent: &[(&str, usize)], rewritten: usize) {
    let often_enough =
        |count: usize, least| tally.modules * least < 1500 || count * 300 >= tally.modules * least;
    for &(name, least) in percent {
        let fired = tally.fired.get(name).copied().unwrap_or_default();
        assert!(often_enough(fired, least), "`{name}` fired on {fired}: {tally:?}");
    }
    assert!(often_enough(tally.rewritten, rewritten), "{tally:?}");
    assert!(tally.rewritten_exactly > 0 || tally.modules < 50, "{tally:?}");
}

#[test]
fn modules_of_all_kinds_keep_their_meaning() {
    let recipe = Recipe { max_elements: 512, ..Recipe::of_size(30) };
    let tally = check_all(&recipe, seeds(200));
    // The passes for means (`moments.rs`) and terms (`late_factors.rs`), forms and parts of large reduces (`reduce_form.rs`), convolutions
    // (`convolutions.rs`), kernels and batch norms (fixtures), divided arrays (`sharded_random.rs`,
    // `local_moments.rs`) and large arrays (below) have tests of their own.
    let others = [
        "shifted-moments",
        "late-factors",
        "rematerialize",
        "cluster-sibling-reductions",
        "reduce-form",
        "tree-reduce",
        "convolution-barrier",
        "native-calls",
        "local-sums",
        "local-moments",
        "all-reduce",
        "constraint",
        "batch-norm",
    ];
    let names = registry::passes().map(tilewright_rewrite::Pass::name);
    let all: Vec<_> = names.filter(|name| !others.contains(name)).map(|name| (name, 1)).collect();
    assert_fired(&tally, &all, 20);
    let often = [("reduce-through-reshape", 20), ("reshape-out-of-region", 20), ("unit-dims", 5)];
    assert_fired(&tally, &often, 20);
}

#[test]
fn norms_keep_their_meaning() {
    let recipe = Recipe { instructions: 40, max_elements: 512, ..Recipe::norms() };
    let tally = check_all(&recipe, seeds(80));
    let often = [("reduce-through-reshape", 19), ("reshape-out-of-region", 40), ("unit-dims", 5)];
    assert_fired(&tally, &often, 40);
}

#[test]
fn large_modules_keep_their_meaning() {
    let recipe = Recipe { max_elements: 256, ..Recipe::of_size(300) };
    let tally = check_all(&recipe, seeds(3));
    let often = [("reduce-through-reshape", 50), ("reshape-out-of-region", 30)];
    assert_fired(&tally, &often, 30);
}

/// Where no array stays on chip, every reduction has siblings to look for.
#[test]
fn orders_keep_every_bit() {
    let recipe = Recipe { max_elements: 512, ..Recipe::of_size(30) };
    let mut options = passes(&["cluster-sibling-reductions"], "linear", true);
    options.target.vector_memory_bytes = 1;
    let mut fired = 0;
    for seed in 0..400 {
        let module = random_module(seed, &recipe);
        let after = optimized(&module, &options);
        if changes(&after, "cluster-sibling-reductions") == 0 {
            assert!(text(&module) == text(&after.module), "seed {seed}");
            continue;
        }
        fired += 1;
        let again = optimized(&after.module, &options);
        assert_eq!(changes(&again, "cluster-sibling-reductions"), 0, "seed {seed}");
        let kind = InputKind::ALL[seed as usize % InputKind::ALL.len()];
        let results = [&module, &after.module].map(|module| evaluated(module, seed, kind));
        let [Ok(before), Ok(after)] = &results else { panic!("seed {seed}: {results:?}") };
        assert_eq!(bit_difference(before, after), None, "seed {seed}");
    }
    assert!(fired > 40, "it fired on {fired}");
}
