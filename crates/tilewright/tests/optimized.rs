//! What must hold of whatever the optimiser makes of a fixture. A module is optimised once for a target and
//! a mode, and everything is asked of that one result.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use tilewright::prelude::*;
use tilewright::rewrite::StopReason;
use tilewright::{CheckOptions, Emit, Verdict, algebra, check, losses, optimize, parse, print};
use tilewright_testkit::effort::{Turns, each, seeds, times};
use tilewright_testkit::fixture::fixtures;

const MODES: [FloatMode; 3] = [FloatMode::Guarded, FloatMode::Fast, FloatMode::Exact];

/// A module, its text, and whether it is small enough to be evaluated.
struct Case {
    name: String,
    module: Verified,
    text: String,
    is_small: bool,
}

/// What was asked of results that differ from the module as it was.
#[derive(Default)]
struct Tally {
    rewritten: AtomicUsize,
    equal: AtomicUsize,
    undecided: AtomicUsize,
    compared: AtomicUsize,
}

fn text(module: &Verified) -> String {
    print(module, &PrintOptions::default()).unwrap()
}

/// The most elements of an array in a module that is evaluated.
const MOST_ELEMENTS: i64 = 30_000;

/// Whether a module takes little to evaluate.
fn is_small(module: &Verified) -> bool {
    let all = module.computations().iter().flat_map(|&of| module.instructions(of));
    let mut arrays = all.flat_map(|id| module.shape(id).leaves()).filter_map(Shape::as_array);
    arrays.all(|array| array.num_elements().is_some_and(|count| count <= MOST_ELEMENTS))
}

/// The fixtures of a folder whose names have a part, and which the verifier takes.
fn cases(folder: &str, part: &str, is_small: bool) -> Vec<Case> {
    let files = fixtures(folder).unwrap().into_iter().filter(|file| file.name.contains(part));
    let cases = files.filter_map(|file| {
        let module = tilewright::load(&file.hlo).ok()?;
        let is_small = is_small && self::is_small(&module);
        Some(Case { name: file.name, text: text(&module), module, is_small })
    });
    let cases: Vec<Case> = cases.collect();
    assert!(!cases.is_empty(), "{folder}");
    cases
}

impl Case {
    /// Optimises for a target in a mode, and asks the result.
    fn ask(&self, target: &str, mode: FloatMode, tally: &Tally) {
        let place = format!("{} on {target}, {mode:?}", self.name);
        let options = Options::new(tilewright::target(target).unwrap()).with_float_mode(mode);
        let after = optimize(self.module.clone(), &options).unwrap();
        let (report, printed) = (&after.report, text(&after.module));
        assert_eq!(report.stopped, StopReason::Fixpoint, "{place}");
        assert_eq!(report.unchanged, printed == self.text, "{place}");
        let (old, new) = (report.before.cycles, report.after.cycles);
        assert!(new <= old, "{place}: {old} cycles became {new}");
        if report.unchanged {
            return;
        }
        let read = parse(&printed).unwrap_or_else(|error| panic!("{place}: {error}\n{printed}"));
        assert_eq!(text(&read), printed, "{place}: read back");
        let again = optimize(read, &options).unwrap();
        assert_eq!(text(&again.module), printed, "{place}: {:?}", again.report.notes);
        tally.rewritten.fetch_add(1, Relaxed);
        // Engines read StableHLO: it says of the result what it says of the module.
        let lost = |module: &Verified| -> Vec<String> {
            let lines = losses(module, Emit::Stablehlo);
            lines.iter().filter_map(|line| Some(line.split_once(':')?.0.to_owned())).collect()
        };
        let known = lost(&self.module);
        let new: Vec<String> =
            lost(&after.module).into_iter().filter(|l| !known.contains(l)).collect();
        assert!(new.is_empty(), "{place}: {new:?}\n{printed}");
        if self.is_small {
            self.compare(&after.module, mode, &place, tally);
        }
    }

    /// Compares a result with the module: over the reals, and in floats.
    fn compare(&self, after: &Verified, mode: FloatMode, place: &str, tally: &Tally) {
        let usual = CheckOptions::default();
        for (index, verdict) in algebra(&self.module, after, &usual).unwrap().iter().enumerate() {
            match verdict {
                Verdict::Equal => _ = tally.equal.fetch_add(1, Relaxed),
                Verdict::Agrees { .. } => {}
                Verdict::Undecided { .. } => _ = tally.undecided.fetch_add(1, Relaxed),
                Verdict::Differs { .. } => panic!("{place}: out{index} {verdict}\n{}", text(after)),
            }
        }
        // Sums that `--fast-math` takes apart have a contract of their own: see the attacks.
        if mode == FloatMode::Fast {
            return;
        }
        let found = check(&self.module, after, &usual.with_exact(mode == FloatMode::Exact));
        // Some fixtures have no values, such as those that a device would send.
        let Ok(found) = found else { return };
        let wrong = found.outputs.iter().find(|output| output.witness.is_some());
        assert!(wrong.is_none(), "{place}: {wrong:?}\n{}", text(after));
        tally.compared.fetch_add(1, Relaxed);
    }
}

/// Asks the results of all cases: for every target and mode, or for so many of them in turn.
fn ask_all(cases: &[Case], targets: &[&str], modes: &[FloatMode], most: usize) -> Tally {
    let tally = Tally::default();
    let ways: Vec<_> = targets.iter().flat_map(|t| modes.iter().map(move |m| (*t, *m))).collect();
    let most = if times() > 1 { ways.len() } else { most.min(ways.len()) };
    let first = usize::try_from(seeds(1).start % 1000).unwrap();
    each(0..cases.len() as u64, |number| {
        let number = usize::try_from(number).unwrap();
        for turn in 0..most {
            let (target, mode) = ways[(first + number + turn * ways.len() / most) % ways.len()];
            cases[number].ask(target, mode, &tally);
        }
    });
    tally
}

/// Fails where the results say too little: at least this share of the cases is rewritten, and for each
/// rewritten one, so many outputs are found equal over the reals.
fn assert_asked(cases: &[Case], tally: Tally, [share, proved]: [f64; 2]) {
    let Tally { rewritten, equal, undecided, compared } = tally;
    let counts = [rewritten, equal, undecided, compared].map(AtomicUsize::into_inner);
    let [rewritten, equal, undecided, compared] = counts;
    println!("{rewritten} rewritten, {equal} equal, {undecided} undecided, {compared} compared");
    assert!(rewritten as f64 >= share * cases.len() as f64, "{rewritten} of {}", cases.len());
    if cases.iter().any(|case| case.is_small) {
        assert!(equal as f64 >= proved * rewritten as f64, "{counts:?}");
        assert!(compared >= rewritten / 5, "{counts:?}");
    }
}

/// The machines, and one engine: others differ in their tables alone.
fn targets() -> Vec<&'static str> {
    Target::builtin_names().filter(|name| !name.starts_with("xla-")).collect()
}

#[test]
fn models() {
    let cases = cases("models", "", true);
    let tally = ask_all(&cases, &targets(), &MODES, 4);
    assert_asked(&cases, tally, [1.0, 0.5]);
}

/// What the fixtures of passes become by the default pipeline.
#[test]
fn fixtures_of_passes() {
    let mut cases = cases("rewrite", "", true);
    let mut turns = Turns::of(3);
    cases.retain(|_| turns.is_next());
    let tally = ask_all(&cases, &targets(), &MODES, 1);
    assert_asked(&cases, tally, [0.1, 0.25]);
}

/// Models of flax, haiku and transformers with a step of Adam on each, and norms and blocks that
/// PyTorch/XLA writes, with a step of gradient descent.
#[test]
fn programs_of_others() {
    for folder in ["foreign", "torch"] {
        let small = cases(folder, "_small", true);
        let targets = ["tpu-like", "cpu"];
        let tally = ask_all(&small, &targets, &[FloatMode::Guarded], 2);
        // Whole models have functions that the algebra does not know.
        assert_asked(&small, tally, [0.2, 0.0]);
        let large = cases(folder, "_real", false);
        let tally = ask_all(&large, &targets, &[FloatMode::Guarded], 1);
        assert_asked(&large, tally, [0.1, 0.0]);
    }
}

/// A batch norm that no rewrite gains by stays one op.
#[test]
fn batch_norms_without_a_gain_stay() {
    let cases = cases("torch", "block_batch_norm_small", true);
    let case = cases.iter().find(|case| case.name == "block_batch_norm_small").unwrap();
    let options = Options::new(tilewright::target("cpu").unwrap());
    let after = optimize(case.module.clone(), &options).unwrap().module;
    let count = |module: &Verified| {
        let entry = module.entry().unwrap();
        let all = module.instructions(entry).map(|id| module.opcode(id));
        all.filter(|&opcode| opcode == Opcode::BatchNormTraining).count()
    };
    assert!(count(&case.module) > 0);
    assert_eq!(count(&after), count(&case.module));
}
