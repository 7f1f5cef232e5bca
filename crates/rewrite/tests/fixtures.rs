//! Tests every fixture in `fixtures/rewrite/<pass>/`: the pass fires, or nothing changes to the byte; the
//! computed values stay the same; a pass that costs decide about saves some; a rewritten module is not
//! rewritten again. Snapshots show what a few become.
//!
//! Each fixture is then given to the other passes alone, some in each run: all with `TILEWRIGHT_RANDOM=2`.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test fails by panicking, and says what it counted"
)]

mod common;

use std::cell::RefCell;
use std::rc::Rc;

use common::fixture::{Expect, Fixture};
use common::values::{
    KINDS, bit_difference, difference, error_difference, evaluated, evaluated_like, real_difference,
};
use common::{changes, module, optimized, short, text};
use libtest_mimic::{Arguments, Failed, Trial};
use tilewright_interp::inputs::InputKind;
use tilewright_ir::{Literal, Verified};
use tilewright_rewrite::{Optimized, Options, Pass, StopReason, module_cost, registry};
use tilewright_testkit::effort::{seeds, times};
use tilewright_testkit::fixture::fixtures;

fn main() {
    let arguments = Arguments::from_args();
    let files = fixtures("rewrite").expect("a folder of fixtures");
    let read: Vec<(String, Result<Fixture, String>)> = files
        .into_iter()
        .map(|file| {
            let pass = file.name.split('/').next().unwrap_or_default();
            let fixture = match (file.text(), &file.npz) {
                (_, Some(npz)) => Err(format!("nothing reads {}", npz.display())),
                (Err(error), None) => Err(error.to_string()),
                (Ok(source), None) => Fixture::read(pass, &source),
            };
            (file.name, fixture)
        })
        .collect();
    let folders = read.clone();
    // Other commits give it to other passes.
    let first = usize::try_from(seeds(1).start % 1000).expect("below 1000");
    let mut trials = vec![Trial::test("every pass has fixtures", move || check_folders(&folders))];
    trials.extend(read.into_iter().enumerate().map(|(number, (name, fixture))| {
        Trial::test(name.clone(), move || check_fixture(&name, &fixture?, first + number))
    }));
    libtest_mimic::run(&arguments, trials).exit();
}

/// Every registered pass has a fixture where it fires and one where it must
/// not, and there are no fixtures of anything else.
fn check_folders(read: &[(String, Result<Fixture, String>)]) -> Result<(), Failed> {
    let pass_of = |name: &str| name.split_once('/').map(|(pass, _)| pass.to_owned());
    for (name, _) in read {
        if pass_of(name).is_none_or(|pass| registry::pass(&pass).is_none()) {
            return Err(format!("fixtures/rewrite/{name}.hlo is in no folder of a pass").into());
        }
    }
    for pass in registry::passes().map(tilewright_rewrite::Pass::name) {
        for expect in [Expect::Fires, Expect::Unchanged] {
            let found = read.iter().any(|(name, fixture)| {
                let fits = fixture.as_ref().is_ok_and(|fixture| fixture.expect == expect);
                fits && pass_of(name).is_some_and(|folder| folder == pass)
            });
            if !found {
                return Err(format!("`{pass}` has no fixture that expects {expect:?}").into());
            }
        }
    }
    Ok(())
}

fn check_fixture(name: &str, fixture: &Fixture, turn: usize) -> Result<(), Failed> {
    let (pass, name) = name.split_once('/').ok_or("it is in no folder")?;
    let before = module(&fixture.source);
    let names: Vec<&str> = fixture.passes.iter().map(String::as_str).collect();
    let options = fixture.options(&names, fixture.exact);
    let after = optimized(&before, &options);
    check_notes(fixture, &after)?;
    match fixture.expect {
        Expect::Fires => {
            if changes(&after, pass) == 0 {
                return Err(format!("`{pass}` did not fire; notes:\n{}", notes(&after)).into());
            }
            if after.report.stopped != StopReason::Fixpoint {
                return Err(format!("it stopped: {}", after.report.stopped.name()).into());
            }
            if fixture.shown {
                check_snapshot(pass, name, fixture, &after);
            }
            check_cost(pass, &before, &after, &options)?;
        }
        Expect::Unchanged => check_unchanged(&before, &after)?,
    }
    let original = Original { module: &before, values: RefCell::default() };
    if fixture.expect == Expect::Fires {
        let kinds = kinds(fixture.exact);
        check_values(fixture, &original, &after.module, fixture.exact, kinds)?;
        if let Some(what) = real_difference(&before, &after.module) {
            return Err(format!("{what}\n{}", short(&after.module)).into());
        }
        check_idempotent(&after.module, &options)?;
    }
    check_other_passes(fixture, &original, turn)
}

/// Passes that pay on one backend, by what was measured there and not by the modelled cycles.
const MEASURED: [&str; 2] = ["native-calls", "reduce-form"];

/// Checks that a pass that modelled costs decide about does not raise them.
fn check_cost(
    pass: &str,
    before: &Verified,
    after: &Optimized,
    options: &Options,
) -> Result<(), Failed> {
    let [old, new] = [before, &after.module].map(|m| module_cost(m, &options.target).cycles);
    let is_gated = registry::pass(pass).is_some_and(<dyn Pass>::is_cost_gated);
    if is_gated && !MEASURED.contains(&pass) && new > old {
        return Err(format!("{old} cycles became {new}:\n{}", short(&after.module)).into());
    }
    Ok(())
}

fn check_notes(fixture: &Fixture, after: &Optimized) -> Result<(), Failed> {
    let notes = notes(after);
    match fixture.notes.iter().find(|part| !notes.contains(part.as_str())) {
        Some(part) => Err(format!("no note says `{part}`:\n{notes}").into()),
        None => Ok(()),
    }
}

fn notes(after: &Optimized) -> String {
    after.report.notes.iter().map(|note| format!("{note}\n")).collect()
}

fn check_snapshot(pass: &str, name: &str, fixture: &Fixture, after: &Optimized) {
    let notes: String = notes(after).lines().map(|note| format!("// {note}\n")).collect();
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path("snapshots");
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.set_description(&fixture.sentence);
    settings.bind(|| {
        let rewritten = format!("{notes}{}", short(&after.module));
        insta::assert_snapshot!(format!("{pass}__{name}"), rewritten);
    });
}

fn check_unchanged(before: &Verified, after: &Optimized) -> Result<(), Failed> {
    if let Some(report) = after.report.passes.iter().find(|report| report.changes > 0) {
        let (now, notes) = (short(&after.module), notes(after));
        return Err(format!("`{}` must not fire:\n{notes}{now}", report.name).into());
    }
    if text(before) != text(&after.module) {
        return Err("nothing was changed, yet it is printed differently".into());
    }
    Ok(())
}

/// What a module computes, or why it does not.
type Value = Rc<Result<Literal, String>>;

/// A module, and the values that it computes for kinds of inputs: each is evaluated once.
struct Original<'a> {
    module: &'a Verified,
    values: RefCell<Vec<(InputKind, Value)>>,
}

impl Original<'_> {
    fn value(&self, kind: InputKind) -> Value {
        let known = self.values.borrow().iter().find(|(of, _)| *of == kind).map(|(_, v)| v.clone());
        known.unwrap_or_else(|| {
            let value = Rc::new(evaluated(self.module, 1, kind));
            self.values.borrow_mut().push((kind, Rc::clone(&value)));
            value
        })
    }
}

/// The inputs on which a module that computes in some mode is compared. Where no bit may change, none may
/// change in zeros, NaN and infinities either.
fn kinds(exact: bool) -> &'static [InputKind] {
    if exact { InputKind::ALL } else { &KINDS }
}

/// Checks that the module computes the same values; if it cannot be run, it must say why.
fn check_values(
    fixture: &Fixture,
    before: &Original<'_>,
    after: &Verified,
    exact: bool,
    kinds: &[InputKind],
) -> Result<(), Failed> {
    for &kind in kinds {
        let value = before.value(kind);
        let expected = match (&*value, &fixture.not_run) {
            (Ok(expected), None) => expected,
            (Err(_), Some(_)) => return Ok(()),
            (Ok(_), Some(_)) => return Err("it can be run: take `// not-run:` away".into()),
            (Err(error), None) => return Err(format!("before: {error}").into()),
        };
        let before = before.module;
        let actual =
            evaluated_like(after, before, 1, kind).map_err(|error| format!("after: {error}"))?;
        let apart = if exact {
            bit_difference(expected, &actual)
        } else if fixture.fast_math && fixture.source.contains("f32[") {
            error_difference(&fixture.source, 1, kind, before, [expected, &actual])?
        } else {
            difference(before, kind, expected, &actual)
        };
        if let Some(what) = apart {
            return Err(format!("{} inputs: {what}\n{}", kind.name(), short(after)).into());
        }
    }
    Ok(())
}

fn check_idempotent(module: &Verified, options: &Options) -> Result<(), Failed> {
    let again = optimized(module, options);
    match again.report.passes.iter().find(|report| report.changes > 0) {
        Some(report) => {
            Err(format!("`{}` fires again:\n{}", report.name, short(&again.module)).into())
        }
        None => Ok(()),
    }
}

/// In how many runs a fixture is given to every pass in both modes.
const TURNS: usize = 4;

/// Checks that other passes, run alone, keep the fixture's values and change nothing when they run again. A run
/// compares the values on one kind of inputs; with more effort than usual, on all.
fn check_other_passes(
    fixture: &Fixture,
    original: &Original<'_>,
    turn: usize,
) -> Result<(), Failed> {
    let before = original.module;
    for (number, pass) in registry::passes().enumerate() {
        for exact in [false, true] {
            let is_usual = times() == 1;
            if is_usual && !(turn + number * 2 + usize::from(exact)).is_multiple_of(TURNS) {
                continue;
            }
            let options = fixture.options(&[pass.name()], exact);
            let after = optimized(before, &options);
            if after.report.passes.iter().all(|report| report.changes == 0) {
                check_unchanged(before, &after)?;
                continue;
            }
            let blame = |failed: Failed| match failed.message() {
                Some(what) => format!("`{}` alone, exact {exact}: {what}", pass.name()).into(),
                None => failed,
            };
            let all = kinds(exact);
            let kinds = if is_usual { &all[turn / TURNS % all.len()..][..1] } else { all };
            check_values(fixture, original, &after.module, exact, kinds).map_err(blame)?;
            check_idempotent(&after.module, &options).map_err(blame)?;
        }
    }
    Ok(())
}
