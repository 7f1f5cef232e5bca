//! Random modules: every pass alone and every pipeline, with and without
//! `exact`, on both targets. What comes out verifies, computes the same, and
//! is not rewritten again.

mod common;

use std::sync::Mutex;

use common::values::{bit_difference, difference, evaluated};
use common::{changes, optimized, passes, pipeline, short, text};
use tilewright_interp::inputs::InputKind;
use tilewright_ir::{Literal, Verified};
use tilewright_rewrite::{Optimized, Options, PIPELINES, StopReason, registry};
use tilewright_testkit::generate::{Options as Recipe, random_module};

/// The passes whose firing is counted, and the default pipeline.
const COUNTED: [&str; 3] = ["reduce-through-reshape", "reshape-out-of-region", "degenerate"];

/// How many modules there were, and on how many of them the passes fired.
#[derive(Debug, Default)]
struct Tally {
    modules: usize,
    /// On how many a pass of [`COUNTED`] fired, alone.
    fired: [usize; COUNTED.len()],
    /// How many came out of the default pipeline changed.
    rewritten: usize,
    /// How many of those under `exact`.
    rewritten_exactly: usize,
}

/// Checks the modules of these seeds on all threads.
fn check_all(recipe: &Recipe, seeds: std::ops::Range<u64>) -> Tally {
    let (next, tally) = (Mutex::new(seeds), Mutex::new(Tally::default()));
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let seed = next.lock().expect("seeds").next();
                    let Some(seed) = seed else { return };
                    check(seed, recipe, &tally);
                }
            });
        }
    });
    tally.into_inner().expect("a tally")
}

/// A module, what it computes, and what to say where something is wrong.
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
    let (turn, kind) = (seed as usize / InputKind::ALL.len(), seed as usize % InputKind::ALL.len());
    let kind = InputKind::ALL[kind];
    // Sums in another order may rightly overflow where the first did not.
    let always_exact = matches!(kind, InputKind::Edges | InputKind::NonFinite);
    let expected = match evaluated(&module, seed, kind) {
        Ok(expected) => expected,
        Err(error) => panic!("seed {seed}: {error}\n{}", short(&module)),
    };
    let case = Case { printed: text(&module), module, kind, seed, expected };
    let target = if seed % 5 == 4 { "linear" } else { "tpu-like" };
    let mut fired = [false; COUNTED.len()];
    for (number, pass) in registry::PASSES.iter().enumerate() {
        let exact = always_exact || (turn + number).is_multiple_of(4);
        let after =
            case.run(&format!("pass `{}`", pass.name()), &passes(&[pass.name()], target, exact));
        if let Some(counted) = COUNTED.iter().position(|&name| name == pass.name()) {
            fired[counted] = changes(&after, pass.name()) > 0;
        }
    }
    let mut rewritten = [false; 2];
    for (number, known) in PIPELINES.iter().enumerate() {
        let exact = always_exact || (turn + number).is_multiple_of(4);
        let mut options = pipeline(known.name, target);
        options.exact = exact;
        let after = case.run(&format!("pipeline `{}`", known.name), &options);
        if known.name == "default" {
            rewritten = [!after.report.unchanged, !after.report.unchanged && exact];
            case.check_default(&after, &options);
        }
    }
    let mut tally = tally.lock().expect("a tally");
    tally.modules += 1;
    for (count, fired) in tally.fired.iter_mut().zip(fired) {
        *count += usize::from(fired);
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
            let exact = options.exact;
            let (target, before) = (&options.target.name, short(&self.module));
            let after = short(&after.module);
            format!("seed {}, {what}, exact {exact}, {target}\n{before}\n{after}", self.seed)
        };
        assert_eq!(after.report.stopped, StopReason::Fixpoint, "{}", place());
        let changed = after.report.passes.iter().any(|report| report.changes > 0);
        if !changed || after.report.unchanged {
            assert!(text(&after.module) == self.printed, "printed differently: {}", place());
            return after;
        }
        let actual = match evaluated(&after.module, self.seed, self.kind) {
            Ok(actual) => actual,
            Err(error) => panic!("{error}: {}", place()),
        };
        let apart = if options.exact {
            bit_difference(&self.expected, &actual)
        } else {
            difference(&self.module, self.kind, &self.expected, &actual)
        };
        if let Some(what) = apart {
            panic!("{what}: {}", place());
        }
        let again = optimized(&after.module, options);
        let changed = again.report.passes.iter().find(|report| report.changes > 0);
        if !again.report.unchanged
            && let Some(report) = changed
        {
            panic!("`{}` fires again: {}\n{}", report.name, place(), short(&again.module));
        }
        after
    }

    /// The default pipeline never makes a module cost more, and finds nothing
    /// to do in what it made.
    fn check_default(&self, after: &Optimized, options: &Options) {
        let (seed, report) = (self.seed, &after.report);
        assert!(report.after.cycles <= report.before.cycles, "seed {seed}: {report:?}");
        let again = optimized(&after.module, options);
        assert!(again.report.unchanged, "seed {seed}: {:?}", again.report.notes);
        assert!(text(&again.module) == text(&after.module), "seed {seed}");
    }
}

/// Says how often the passes fired, and fails if that is too seldom for the
/// test to mean anything.
#[track_caller]
fn assert_fired(tally: &Tally, percent: [usize; COUNTED.len()], rewritten: usize) {
    for ((name, fired), least) in COUNTED.iter().zip(tally.fired).zip(percent) {
        assert!(fired * 100 >= tally.modules * least, "`{name}` fired on {fired}: {tally:?}");
    }
    assert!(tally.rewritten * 100 >= tally.modules * rewritten, "{tally:?}");
    assert!(tally.rewritten_exactly > 0, "{tally:?}");
}

#[test]
fn modules_of_all_kinds_keep_their_meaning() {
    let recipe = Recipe { max_elements: 512, ..Recipe::of_size(30) };
    let tally = check_all(&recipe, 0..1500);
    assert_fired(&tally, [20, 20, 5], 20);
}

#[test]
fn norms_keep_their_meaning() {
    let recipe = Recipe { instructions: 40, max_elements: 512, ..Recipe::norms() };
    let tally = check_all(&recipe, 10_000..10_500);
    assert_fired(&tally, [20, 40, 5], 40);
}

#[test]
fn large_modules_keep_their_meaning() {
    let recipe = Recipe { max_elements: 256, ..Recipe::of_size(300) };
    let tally = check_all(&recipe, 20_000..20_020);
    assert_fired(&tally, [50, 50, 5], 50);
}
