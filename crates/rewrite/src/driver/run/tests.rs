//! Tests of passes that repeat earlier states of a module.

use std::sync::atomic::{AtomicUsize, Ordering};

use rustc_hash::FxHashSet;
use tilewright_ir::{
    Builder, EditError, ElementType, InstId, Op, Opcode, Patch, Shape, Value, Verified,
};
use tilewright_target::Target;

use super::*;
use crate::driver::numbers::Class;

/// Makes the next instruction the root, and the first one after the last.
struct Round;

impl Pass for Round {
    fn name(&self) -> &'static str {
        "round"
    }

    fn summary(&self) -> &'static str {
        "go round in circles"
    }

    fn class(&self) -> Class {
        Class::Exact
    }

    fn is_cost_gated(&self) -> bool {
        true
    }

    fn run(&self, module: &mut Module, _cx: &mut Context<'_>) -> Result<usize, EditError> {
        let Some(entry) = module.entry() else { return Ok(0) };
        let all: Vec<InstId> = module.instructions(entry).collect();
        let root = module.computation(entry).root();
        let at = all.iter().position(|&id| Some(id) == root).map_or(0, |at| at + 1);
        module.set_root(all[at % all.len()])?;
        Ok(1)
    }
}

/// Builds a module of three values; the last is the result.
fn three() -> Verified {
    let mut b = Builder::new("three");
    let x = b.parameter("x", Shape::array(ElementType::F32, [8, 128])).expect("a parameter");
    let y = b.unary(Opcode::Negate, x).expect("an op");
    let z = b.unary(Opcode::Negate, y).expect("an op");
    b.finish(z).expect("a module")
}

/// Returns a run that has not begun, on at most three instructions.
fn run_of<'a>(
    before: &Module,
    options: &'a Options,
    memo: &'a Memo,
    observe: &'a mut dyn FnMut(&'static str, &Module),
) -> Run<'a> {
    Run { most_instructions: 3, ..Run::new(before, &Plan::default(), options, memo, observe) }
}

#[test]
fn a_list_that_goes_round_in_circles_stops_where_it_cost_least() {
    let options = Options::new(Target::builtin(Target::DEFAULT).expect("a target"));
    let before = three();
    let memo = Memo::default();
    let mut observe = |_: &'static str, _: &Module| {};
    let mut run = run_of(&before, &options, &memo, &mut observe);
    let plan = Plan { cleanup: vec![&Round], ..Plan::default() };
    assert_eq!(run.rounds(&plan).expect("a run"), StopReason::Fixpoint);
    // A result that is a parameter need not be stored.
    let entry = run.module.entry().expect("an entry");
    let root = run.module.computation(entry).root().expect("a root");
    assert_eq!(run.module.opcode(root), Opcode::Parameter);
    assert_eq!(run.passes[0].changes, 1, "what was rolled back is not counted");
    assert_eq!(run.rolled_back.len(), 1, "{:?}", run.rolled_back);
    assert!(run.notes.is_empty(), "{:?}", run.notes);
}

/// Adds an instruction that nothing uses, on every call.
struct Worse;

impl Pass for Worse {
    fn name(&self) -> &'static str {
        "worse"
    }

    fn summary(&self) -> &'static str {
        "make a module cost more"
    }

    fn class(&self) -> Class {
        Class::Exact
    }

    fn is_cost_gated(&self) -> bool {
        true
    }

    fn run(&self, module: &mut Module, _cx: &mut Context<'_>) -> Result<usize, EditError> {
        let entry = module.entry();
        let Some(last) = entry.and_then(|entry| module.instructions(entry).next_back()) else {
            return Ok(0);
        };
        let mut patch = Patch::new();
        let operand = module.operands(last).first().copied().unwrap_or(last);
        let shape = module.shape(last).clone();
        patch.add(last, Op::Negate, shape, [Value::Old(operand)]);
        patch.apply(module)?;
        Ok(1)
    }
}

/// Makes the parameter the root.
struct Better;

impl Pass for Better {
    fn name(&self) -> &'static str {
        "better"
    }

    fn summary(&self) -> &'static str {
        "make a module cost less"
    }

    fn class(&self) -> Class {
        Class::Exact
    }

    fn is_cost_gated(&self) -> bool {
        true
    }

    fn run(&self, module: &mut Module, _cx: &mut Context<'_>) -> Result<usize, EditError> {
        let Some(entry) = module.entry() else { return Ok(0) };
        let Some(first) = module.instructions(entry).next() else { return Ok(0) };
        if module.is_root(first) {
            return Ok(0);
        }
        module.set_root(first)?;
        Ok(1)
    }
}

#[test]
fn an_unprofitable_group_is_rolled_back_and_the_next_has_its_turn() {
    let options = Options::new(Target::builtin(Target::DEFAULT).expect("a target"));
    let before = three();
    let memo = Memo::default();
    let mut observe = |_: &'static str, _: &Module| {};
    let mut run = run_of(&before, &options, &memo, &mut observe);
    let cost_gated: Vec<PassList<'_>> =
        vec![vec![&Worse], vec![&Worse], vec![&Better], vec![&Worse]];
    let plan = Plan { cost_gated, ..Plan::default() };
    assert_eq!(run.rounds(&plan).expect("a run"), StopReason::Fixpoint);
    let entry = run.module.entry().expect("an entry");
    let root = run.module.computation(entry).root().expect("a root");
    assert_eq!(run.module.opcode(root), Opcode::Parameter);
    assert_eq!(run.module.instruction_count(), 3, "nothing of what was in vain is left");
    let done: Vec<(&str, usize)> =
        run.passes.iter().map(|report| (report.name, report.changes)).collect();
    assert_eq!(done, [("worse", 0), ("better", 1)]);
    assert_eq!(run.cost_gated, 1);
    // The group is rolled back twice before the one that pays, three times after it.
    assert_eq!(run.rolled_back.len(), 5, "{:?}", run.rolled_back);
}

/// Notes the number of instructions, once per memory.
struct Near;

impl Pass for Near {
    fn name(&self) -> &'static str {
        "near"
    }

    fn summary(&self) -> &'static str {
        "leave everything"
    }

    fn class(&self) -> Class {
        Class::Exact
    }

    fn is_cost_gated(&self) -> bool {
        true
    }

    fn run(&self, module: &mut Module, cx: &mut Context<'_>) -> Result<usize, EditError> {
        let all: Vec<InstId> =
            module.entry().into_iter().flat_map(|entry| module.instructions(entry)).collect();
        let Some(&first) = all.first() else { return Ok(0) };
        let mut walked = cx.judged.begin(self.name(), module);
        if !walked.knows(first) {
            walked.leave(vec![first]);
            cx.notes.push(Note {
                pass: self.name(),
                verdict: Verdict::Left,
                place: "the module".into(),
                cycles: None,
                text: format!("{} instructions", all.len()),
            });
        }
        cx.judged.end(self.name(), walked);
        Ok(0)
    }
}

#[test]
fn what_is_left_is_noted_when_a_later_group_is_rolled_back() {
    let options = Options::new(Target::builtin(Target::DEFAULT).expect("a target"));
    let before = three();
    let memo = Memo::default();
    // One group leaves the place; or the group that is rolled back does.
    let plans: [Vec<PassList<'_>>; 3] = [
        vec![vec![&Near], vec![&Worse]],
        vec![vec![&Near, &Worse], vec![&Better]],
        vec![vec![&Near], vec![&Worse], vec![&Better], vec![&Worse]],
    ];
    for cost_gated in plans {
        let mut observe = |_: &'static str, _: &Module| {};
        let mut run = run_of(&before, &options, &memo, &mut observe);
        let plan = Plan { cost_gated, ..Plan::default() };
        assert_eq!(run.rounds(&plan).expect("a run"), StopReason::Fixpoint);
        let notes: Vec<&str> = run.notes.iter().map(|note| note.text.as_str()).collect();
        assert_eq!(notes, ["3 instructions"]);
    }
}

/// Leaves a note in each run, and counts the runs.
struct Counted(AtomicUsize);

impl Pass for Counted {
    fn name(&self) -> &'static str {
        "counted"
    }

    fn summary(&self) -> &'static str {
        "count the runs"
    }

    fn class(&self) -> Class {
        Class::Exact
    }

    fn is_cost_gated(&self) -> bool {
        true
    }

    fn run(&self, _module: &mut Module, cx: &mut Context<'_>) -> Result<usize, EditError> {
        self.0.fetch_add(1, Ordering::Relaxed);
        cx.refuse(self.name(), "the module".into(), "nothing to do".into());
        Ok(0)
    }
}

#[test]
fn a_pass_runs_once_in_each_state_of_the_module() {
    let options = Options::new(Target::builtin(Target::DEFAULT).expect("a target"));
    let before = three();
    let memo = Memo::default();
    let mut observe = |_: &'static str, _: &Module| {};
    let mut run = run_of(&before, &options, &memo, &mut observe);
    let counted = Counted(AtomicUsize::new(0));
    let cost_gated: Vec<PassList<'_>> =
        vec![vec![&counted], vec![&Worse], vec![&Better], vec![&counted, &Worse]];
    let plan = Plan { cost_gated, ..Plan::default() };
    assert_eq!(run.rounds(&plan).expect("a run"), StopReason::Fixpoint);
    // The given state, and that after `better`.
    assert_eq!(counted.0.load(Ordering::Relaxed), 2);
    let notes: FxHashSet<String> = run.notes.iter().map(ToString::to_string).collect();
    assert_eq!(notes.len(), 1, "{notes:?}");
}

/// Makes the parameter the root of a module of few instructions, and remembers where it did not.
struct Forgetful;

impl Pass for Forgetful {
    fn name(&self) -> &'static str {
        "forgetful"
    }

    fn summary(&self) -> &'static str {
        "read more than what is near"
    }

    fn class(&self) -> Class {
        Class::Exact
    }

    fn is_cost_gated(&self) -> bool {
        true
    }

    fn run(&self, module: &mut Module, cx: &mut Context<'_>) -> Result<usize, EditError> {
        let Some(entry) = module.entry() else { return Ok(0) };
        let Some(first) = module.instructions(entry).next() else { return Ok(0) };
        let mut walked = cx.judged.begin(self.name(), module);
        let moves = !walked.knows(first) && module.instruction_count() < 40;
        if moves && !module.is_root(first) {
            module.set_root(first)?;
            return Ok(1);
        }
        if !walked.knows(first) {
            walked.leave(vec![first]);
        }
        cx.judged.end(self.name(), walked);
        Ok(0)
    }
}

/// Removes the last two instructions of a long module.
struct Shorten;

impl Pass for Shorten {
    fn name(&self) -> &'static str {
        "shorten"
    }

    fn summary(&self) -> &'static str {
        "make a module cost less"
    }

    fn class(&self) -> Class {
        Class::Exact
    }

    fn is_cost_gated(&self) -> bool {
        true
    }

    fn run(&self, module: &mut Module, _cx: &mut Context<'_>) -> Result<usize, EditError> {
        let all: Vec<InstId> =
            module.entry().into_iter().flat_map(|entry| module.instructions(entry)).collect();
        let [.., root, last, end] = all.as_slice() else { return Ok(0) };
        if all.len() < 40 {
            return Ok(0);
        }
        module.set_root(*root)?;
        module.remove(*end)?;
        module.remove(*last)?;
        Ok(1)
    }
}

/// Builds a chain of forty values; the last is the result.
fn forty() -> Verified {
    let mut b = Builder::new("forty");
    let mut last = b.parameter("x", Shape::array(ElementType::F32, [8, 128])).expect("a parameter");
    for _ in 1..40 {
        last = b.unary(Opcode::Negate, last).expect("an op");
    }
    b.finish(last).expect("a module")
}

#[test]
fn a_stale_memory_does_not_end_the_pipeline() {
    let options = Options::new(Target::builtin(Target::DEFAULT).expect("a target"));
    let before = forty();
    let memo = Memo::default();
    let mut observe = |_: &'static str, _: &Module| {};
    let mut run = run_of(&before, &options, &memo, &mut observe);
    let plan = Plan { cost_gated: vec![vec![&Forgetful], vec![&Shorten]], ..Plan::default() };
    assert_eq!(run.rounds(&plan).expect("a run"), StopReason::Fixpoint);
    let done: Vec<(&str, usize)> =
        run.passes.iter().map(|report| (report.name, report.changes)).collect();
    assert_eq!(done, [("forgetful", 1), ("shorten", 1)]);
}

/// Makes the parameter the root of a module of few instructions, if it was edited.
struct NearSighted;

impl Pass for NearSighted {
    fn name(&self) -> &'static str {
        "near-sighted"
    }

    fn summary(&self) -> &'static str {
        "read more than what was edited"
    }

    fn class(&self) -> Class {
        Class::Exact
    }

    fn run(&self, module: &mut Module, cx: &mut Context<'_>) -> Result<usize, EditError> {
        let Some(entry) = module.entry() else { return Ok(0) };
        let Some(first) = module.instructions(entry).next() else { return Ok(0) };
        let edited = cx.swept.begin(self.name(), module);
        let is_due = edited.is_none_or(|edited| edited.contains(&first));
        if !is_due || module.instruction_count() >= 40 || module.is_root(first) {
            return Ok(0);
        }
        module.set_root(first)?;
        Ok(1)
    }
}

#[test]
fn the_cleanup_goes_over_the_whole_module_before_the_pipeline_stops() {
    let options = Options::new(Target::builtin(Target::DEFAULT).expect("a target"));
    let before = forty();
    let memo = Memo::default();
    let mut observe = |_: &'static str, _: &Module| {};
    let mut run = run_of(&before, &options, &memo, &mut observe);
    let cleanup: PassList<'_> = vec![&NearSighted];
    let plan = Plan { cleanup, cost_gated: vec![vec![&Shorten]], ..Plan::default() };
    assert_eq!(run.rounds(&plan).expect("a run"), StopReason::Fixpoint);
    let done: Vec<(&str, usize)> =
        run.passes.iter().map(|report| (report.name, report.changes)).collect();
    assert_eq!(done, [("near-sighted", 1), ("shorten", 1)]);
    assert!(run.rolled_back.is_empty(), "{:?}", run.rolled_back);
}
