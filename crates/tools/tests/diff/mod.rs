//! What `diff` says of pairs of modules.
mod pairs;
mod random;
mod texts;

use tilewright::ir::Module;
use tilewright::{Loaded, load_text};
use tilewright_tools::diff::{Change, DiffOptions, ModuleDiff, What, diff};

/// Reads a module; `body` is that of the entry.
fn entry(body: &str) -> Loaded {
    load(&format!("HloModule m\n\nENTRY main {{\n{body}\n}}\n"))
}

fn load(text: &str) -> Loaded {
    load_text("m.hlo", text).unwrap_or_else(|error| panic!("{}", error.render(false)))
}

/// Compares in both directions, and checks that one is the mirror of the other.
fn compared(a: &Module, b: &Module) -> ModuleDiff {
    compared_with(a, b, DiffOptions::default())
}

fn compared_with(a: &Module, b: &Module, options: DiffOptions) -> ModuleDiff {
    let found = diff(a, b, &options);
    let back = diff(b, a, &options);
    assert_eq!(facts(&found), facts(&mirrored(back)));
    found
}

fn mirrored(mut of: ModuleDiff) -> ModuleDiff {
    let mirror = |changes: &mut Vec<Change>| {
        *changes = std::mem::take(changes).into_iter().map(Change::mirrored).collect();
    };
    mirror(&mut of.header);
    for computation in &mut of.computations {
        std::mem::swap(&mut computation.a, &mut computation.b);
        std::mem::swap(&mut computation.added, &mut computation.removed);
        mirror(&mut computation.changes);
    }
    let changed = of.computations.iter_mut().flat_map(|of| &mut of.changed);
    for pair in changed.chain(&mut of.moved) {
        std::mem::swap(&mut pair.a, &mut pair.b);
        mirror(&mut pair.changes);
    }
    of
}

/// All that was found, in an order that does not depend on the direction.
fn facts(of: &ModuleDiff) -> Vec<String> {
    let mut facts: Vec<String> = Vec::new();
    let mut add = |what: &str, fact: String| facts.push(format!("{what} {fact}"));
    let sorted = |changes: &[Change]| {
        let mut changes = changes.to_vec();
        changes.sort();
        changes
    };
    for change in &of.header {
        add("header", format!("{change:?}"));
    }
    for computation in &of.computations {
        let ids = (computation.a, computation.b);
        add(
            "computation",
            format!("{ids:?} {} {:?}", computation.unchanged, sorted(&computation.changes)),
        );
        for pair in &computation.changed {
            add("changed", format!("{:?} {:?} {:?}", pair.a, pair.b, sorted(&pair.changes)));
        }
        computation.added.iter().for_each(|of| add("added", format!("{of:?}")));
        computation.removed.iter().for_each(|of| add("removed", format!("{of:?}")));
    }
    for pair in &of.moved {
        add("moved", format!("{:?} {:?} {:?}", pair.a, pair.b, sorted(&pair.changes)));
    }
    facts.sort();
    facts
}

/// How many were changed, added, removed and moved.
fn counts(of: &ModuleDiff) -> [usize; 4] {
    let sum = |count: fn(&tilewright_tools::diff::ComputationDiff) -> usize| -> usize {
        of.computations.iter().map(count).sum()
    };
    [
        sum(|of| of.changed.len()),
        sum(|of| of.added.len()),
        sum(|of| of.removed.len()),
        of.moved.len(),
    ]
}

/// The changes of the only instruction that differs, as `what name: before -> after`.
#[track_caller]
fn only_changes(a: &Loaded, b: &Loaded) -> Vec<String> {
    let found = compared(&a.module, &b.module);
    assert_eq!(counts(&found), [1, 0, 0, 0], "{found:#?}");
    let pair = found.computations.iter().flat_map(|of| &of.changed).next().unwrap();
    pair.changes.iter().map(told).collect()
}

fn told(change: &Change) -> String {
    let side = |text: &Option<String>| text.clone().unwrap_or_else(|| "none".to_owned());
    let Change { what, name, before, after, .. } = change;
    let what: What = *what;
    format!("{what:?} {name}: {} -> {}", side(before), side(after))
}
