//! Passes that remember where they found nothing: those of the cleanup that look only at what was
//! edited find what they would find everywhere, and the others judge a place again after an edit.

use std::cell::Cell;

use crate::common::{module, options, text};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use tilewright_ir::{InstId, Module, Opcode, Position};
use tilewright_rewrite::cost::Memo;
use tilewright_rewrite::{Context, Pass, registry};
use tilewright_target::Target;
use tilewright_testkit::fixture::fixtures;

/// The passes that remember when they went over a module.
const PASSES: [&str; 10] = [
    "constant-fold",
    "convert",
    "algebra",
    "reshape",
    "broadcast",
    "transpose",
    "reduce",
    "reduce-of-reduce",
    "cse",
    "dce",
];

/// Returns the instruction with a name.
#[track_caller]
fn named(module: &Module, name: &str) -> InstId {
    let all = module.computations().iter().flat_map(|&c| module.instructions(c));
    all.into_iter().find(|&id| module.name_of(id) == name).expect("an instruction of this name")
}

/// A module with these computations, and an entry of these instructions, of which `kept` are
/// results. It is large enough for an edit to be small.
fn padded(computations: &str, body: &str, kept: &[&str]) -> Module {
    let mut lines = String::new();
    let mut results = vec!["p90".to_owned()];
    results.extend(kept.iter().map(|&name| name.to_owned()));
    for place in 1..=90 {
        lines.push_str(&format!("p{place} = f32[4] cosine(p{})\n", place - 1));
    }
    let padded = module(&format!(
        "HloModule m\n{computations}\nENTRY e {{\n p0 = f32[4] parameter(0)\n{lines}{body}\n ROOT r = \
         ({}) tuple({})\n}}",
        vec!["f32[4]"; results.len()].join(", "),
        results.join(", ")
    ));
    padded.into_inner()
}

/// Runs a pass twice with the same memory, and an edit in between. Returns the changes that it makes
/// before and after the edit, and those that it makes after it without the memory.
fn twice(name: &str, module: &mut Module, edit: impl FnOnce(&mut Module)) -> [usize; 3] {
    let (options, memo) = (options(Target::DEFAULT), Memo::default());
    let pass = registry::pass(name).expect("a pass");
    let mut cx = Context::new(&options, &memo);
    let mut before = 0;
    loop {
        let changes = pass.run(module, &mut cx).expect("edits");
        before += changes;
        if changes == 0 {
            break;
        }
    }
    edit(module);
    let mut same = module.clone();
    let all = pass.run(&mut same, &mut Context::new(&options, &memo)).expect("edits");
    let after = pass.run(module, &mut cx).expect("edits");
    assert_eq!(text(module), text(&same), "{name}");
    [before, after, all]
}

#[test]
fn equal_instructions_are_found_after_an_edit_of_an_operand() {
    let body = "a = f32[4] negate(p3) b = f32[4] add(p3, p4) c = f32[4] negate(p5) \
                d = f32[4] add(p5, p3)";
    let mut m = padded("", body, &["a", "b", "c", "d"]);
    let found = twice("cse", &mut m, |m| {
        let (c, p3) = (named(m, "c"), named(m, "p3"));
        m.set_operand(c, 0, p3).expect("an edit");
    });
    assert_eq!(found, [0, 1, 1]);
    // Operands of a commutative op count in any order.
    let mut m = padded("", body, &["a", "b", "c", "d"]);
    let found = twice("cse", &mut m, |m| {
        let (d, p4) = (named(m, "d"), named(m, "p4"));
        m.set_operand(d, 0, p4).expect("an edit");
    });
    assert_eq!(found, [0, 1, 1]);
}

#[test]
fn equal_instructions_without_operands_are_found() {
    let mut m = padded("", "a = f32[4] constant({1, 2, 3, 4})", &["a"]);
    let found = twice("cse", &mut m, |m| {
        let (a, root) = (named(m, "a"), named(m, "r"));
        let copy = m.copy_instruction(a, Position::Before(root), |_| None).expect("an edit");
        m.set_operand(root, 0, copy).expect("an edit");
    });
    assert_eq!(found, [0, 1, 1]);
}

#[test]
fn reduces_are_equal_when_an_edit_makes_their_computations_equal() {
    let sum = "{ x = f32[] parameter(0) y = f32[] parameter(1) \
               ROOT r = f32[] add(x, y) }";
    let other = "{ x = f32[] parameter(0) y = f32[] parameter(1) z = f32[] negate(y) \
                 w = f32[] negate(z) ROOT s = f32[] add(x, w) }";
    let body = "i = f32[] constant(0) big = f32[4,3] broadcast(p3), dimensions={0} \
                a = f32[4] reduce(big, i), dimensions={1}, to_apply=one \
                b = f32[4] reduce(big, i), dimensions={1}, to_apply=two";
    let mut m = padded(&format!("one {sum}\ntwo {other}"), body, &["a", "b"]);
    let found = twice("cse", &mut m, |m| {
        let (s, z, w) = (named(m, "s"), named(m, "z"), named(m, "w"));
        let y = m.operands(z)[0];
        m.set_operand(s, 1, y).expect("an edit");
        m.remove(w).expect("an edit");
        m.remove(z).expect("an edit");
    });
    assert_eq!(found, [0, 1, 1]);
}

#[test]
fn a_reduce_is_merged_when_an_edit_changes_what_it_calls() {
    let body = "i = f32[] constant(0) big = f32[4,3,2] broadcast(p3), dimensions={0} \
                a = f32[4,3] reduce(big, i), dimensions={2}, to_apply=one \
                b = f32[4] reduce(a, i), dimensions={1}, to_apply=two";
    let one = "one { x = f32[] parameter(0) y = f32[] parameter(1) ROOT t = f32[] add(x, y) }";
    let two = "two { x = f32[] parameter(0) y = f32[] parameter(1) z = f32[] multiply(x, y) \
               ROOT s = f32[] add(x, z) }";
    let mut m = padded(&format!("{one}\n{two}"), body, &["b"]);
    let found = twice("reduce-of-reduce", &mut m, |m| {
        let (s, z) = (named(m, "s"), named(m, "z"));
        let y = m.operands(z)[1];
        m.set_operand(s, 1, y).expect("an edit");
        m.remove(z).expect("an edit");
    });
    assert_eq!(found, [0, 1, 1]);
}

#[test]
fn a_number_is_found_below_many_broadcasts_and_reshapes() {
    let body = "one = f32[] constant(1) two = f32[] constant(2) \
                a = f32[1] reshape(two) b = f32[] reshape(a) c = f32[1] reshape(b) \
                d = f32[] reshape(c) many = f32[4] broadcast(d), dimensions={} \
                x = f32[4] multiply(p3, many)";
    let mut m = padded("", body, &["x"]);
    let found = twice("algebra", &mut m, |m| {
        let (a, one) = (named(m, "a"), named(m, "one"));
        m.set_operand(a, 0, one).expect("an edit");
    });
    assert_eq!(found, [0, 1, 1]);
}

#[test]
fn an_array_is_folded_when_nothing_else_reads_its_operand() {
    let body = "c = f32[4] constant({1, 2, 3, 4}) a = f32[4] reverse(c), dimensions={0} \
                b = f32[4] negate(c)";
    let mut m = padded("", body, &["a", "b"]);
    let found = twice("constant-fold", &mut m, |m| {
        let (b, p3) = (named(m, "b"), named(m, "p3"));
        m.set_operand(b, 0, p3).expect("an edit");
    });
    assert_eq!(found, [0, 1, 1]);
}

#[test]
fn what_an_edit_leaves_unused_is_removed() {
    let callee = "f { x = f32[4] parameter(0) ROOT t = f32[4] negate(x) }";
    let body = "a = f32[4] negate(p3) b = f32[4] negate(a) c = f32[4] call(p3), to_apply=f";
    let mut m = padded(callee, body, &["b", "c"]);
    let found = twice("dce", &mut m, |m| {
        let (root, p3) = (named(m, "r"), named(m, "p3"));
        m.set_operand(root, 1, p3).expect("an edit");
    });
    assert_eq!(found, [0, 2, 2]);
    let mut m = padded(callee, body, &["b", "c"]);
    let found = twice("dce", &mut m, |m| {
        let (root, p3, c) = (named(m, "r"), named(m, "p3"), named(m, "c"));
        m.set_operand(root, 2, p3).expect("an edit");
        m.remove(c).expect("an edit");
    });
    assert_eq!(found, [0, 1, 1]);
}

/// Runs a pass until it changes nothing. Returns the number of notes of its last run.
fn settle(pass: &dyn Pass, module: &mut Module, cx: &mut Context<'_>) -> usize {
    loop {
        cx.notes.clear();
        if pass.run(module, cx).expect("edits") == 0 {
            return cx.notes.len();
        }
    }
}

#[test]
fn what_was_judged_and_left_is_not_judged_again_until_it_is_edited() {
    for name in ["factored-sums", "rematerialize"] {
        let pass = registry::pass(name).expect("a pass");
        let (options, memo) = (options("cpu"), Memo::default());
        let (mut left, mut again) = (0, 0);
        for file in fixtures("real").expect("a folder") {
            let mut m = module(&file.text().expect("a text")).into_inner();
            let (mut cx, mut fresh) =
                (Context::new(&options, &memo), Context::new(&options, &memo));
            settle(pass, &mut m, &mut cx);
            assert_eq!(settle(pass, &mut m, &mut cx), 0, "{name} on {}", file.name);
            let all = settle(pass, &mut m, &mut fresh);
            left += all;
            // Each sum is edited in turn, which changes nothing.
            let all = m.computations().iter().flat_map(|&c| m.instructions(c));
            let sums: Vec<InstId> = all.filter(|&id| m.opcode(id) == Opcode::Reduce).collect();
            for id in sums {
                let array = m.operands(id)[0];
                m.set_operand(id, 0, array).expect("an edit");
                again += settle(pass, &mut m, &mut cx);
            }
        }
        assert!(left > 0, "{name} leaves nothing");
        assert!(again >= left, "{name} leaves {left} places, but judges {again} again");
    }
}

/// Instructions on arrays of one shape, and some of others between them: for each, its kind and
/// the distances to its operands.
fn program(kinds: &[(u8, usize, usize)]) -> Module {
    let mut lines = String::from(
        "HloModule m\nadd { x = f32[] parameter(0) y = f32[] parameter(1) \
         ROOT s = f32[] add(x, y) }\nENTRY e {\n v0 = f32[2,2] parameter(0)\n \
         zero = f32[] constant(-0) one = f32[] constant(1)\n\
         table = f32[2,2] constant({{1, 2}, {3, 4}})\n",
    );
    let shape = "f32[2,2]";
    for (place, &(kind, back, other)) in (1..).zip(kinds) {
        let of = |back: usize| format!("v{}", place - 1 - back % place);
        let (a, b) = (of(back), of(other));
        let value = match kind % 13 {
            0 => format!("negate({a})"),
            1 => format!("add({a}, {b})"),
            2 => format!("multiply({a}, {b})"),
            3 => format!("maximum({a}, {b})"),
            4 => format!("transpose({a}), dimensions={{1,0}}"),
            5 => format!("reverse({a}), dimensions={{0}}"),
            6 => "broadcast(one), dimensions={}".to_owned(),
            7 => "broadcast(zero), dimensions={}".to_owned(),
            8 => {
                lines.push_str(&format!("flat{place} = f32[4] reshape({a})\n"));
                format!("reshape(flat{place})")
            }
            9 => {
                lines.push_str(&format!("wide{place} = f64[2,2] convert({a})\n"));
                format!("convert(wide{place})")
            }
            10 => {
                lines.push_str(&format!("unit{place} = f32[2,2,1] reshape({a})\n"));
                format!("reduce(unit{place}, zero), dimensions={{2}}, to_apply=add")
            }
            11 => {
                lines.push_str(&format!(
                    "many{place} = f32[2,2,3] broadcast({a}), dimensions={{0,1}}\n"
                ));
                format!("reduce(many{place}, zero), dimensions={{2}}, to_apply=add")
            }
            _ => "negate(table)".to_owned(),
        };
        lines.push_str(&format!("v{place} = {shape} {value}\n"));
    }
    let kept: Vec<String> = (0..=kinds.len()).rev().step_by(3).map(|i| format!("v{i}")).collect();
    let shapes = vec![shape; kept.len()].join(", ");
    lines.push_str(&format!("ROOT r = ({shapes}) tuple({})\n}}", kept.join(", ")));
    module(&lines).into_inner()
}

/// Makes an instruction read another value of the same shape, which stands before it.
fn rewire(module: &mut Module, which: usize, other: usize) {
    let entry = module.entry().expect("an entry");
    let all: Vec<InstId> = module.instructions(entry).collect();
    let place = which % all.len();
    let user = all[place];
    let Some(&old) = module.operands(user).first() else { return };
    let fits = |&&id: &&InstId| module.shape(id) == module.shape(old);
    let earlier: Vec<InstId> = all[..place].iter().filter(fits).copied().collect();
    let new = earlier[other % earlier.len()];
    if module.opcode(user) != Opcode::Tuple {
        module.set_operand(user, 0, new).expect("an edit");
    }
}

/// After any edits, each pass finds the same with its memory as without, and builds with debug
/// assertions check that it leaves out nothing that it had to look at.
#[test]
fn passes_find_the_same_with_and_without_memory() {
    let strategy = (
        prop::collection::vec((any::<u8>(), 0..40usize, 0..40usize), 60..90),
        prop::collection::vec((any::<usize>(), any::<usize>()), 1..5),
        1..4usize,
    );
    let config = ProptestConfig { cases: 96, failure_persistence: None, ..Default::default() };
    let (options, memo) = (options(Target::DEFAULT), Memo::default());
    let passes: Vec<&dyn Pass> =
        PASSES.iter().map(|name| registry::pass(name).expect("a pass")).collect();
    // The changes that the first walks made, and those after edits.
    let (first, later) = (Cell::new(0), Cell::new(0));
    let run = TestRunner::new(config).run(&strategy, |(kinds, edits, rounds)| {
        let mut m = program(&kinds);
        let mut cx = Context::new(&options, &memo);
        for round in 0..rounds {
            for (which, other) in &edits {
                rewire(&mut m, which.rotate_left(round as u32), *other);
            }
            loop {
                let mut changes = 0;
                for pass in &passes {
                    let mut same = m.clone();
                    let fresh = &mut Context::new(&options, &memo);
                    let all = pass.run(&mut same, fresh).expect("edits");
                    let found = pass.run(&mut m, &mut cx).expect("edits");
                    prop_assert_eq!(found, all, "{}", pass.name());
                    prop_assert_eq!(text(&m), text(&same), "{}", pass.name());
                    changes += found;
                }
                if changes == 0 {
                    break;
                }
                let made = if round == 0 { &first } else { &later };
                made.set(made.get() + changes);
            }
        }
        Ok(())
    });
    run.unwrap();
    assert!(first.get() > 96 && later.get() > 20, "{} and {}", first.get(), later.get());
}
