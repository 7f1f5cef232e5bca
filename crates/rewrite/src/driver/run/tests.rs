//! Tests of passes that repeat earlier states of a module.

use tilewright_ir::{
    Builder, EditError, ElementType, InstId, Op, Opcode, Patch, Shape, Value, Verified,
};
use tilewright_target::Target;

use super::*;
use crate::driver::numbers::Class;
use crate::driver::reason::{Reason, Refusal};

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
    Run { most_instructions: 3, ..Run::new(before, &PassPlan::default(), options, memo, observe) }
}

#[test]
fn a_list_that_goes_round_in_circles_stops_where_it_cost_least() {
    let options = Options::new(Target::builtin(Target::DEFAULT).expect("a target"));
    let before = three();
    let memo = Memo::default();
    let mut observe = |_: &'static str, _: &Module| {};
    let mut run = run_of(&before, &options, &memo, &mut observe);
    let plan = PassPlan { cleanup: vec![&Round], ..PassPlan::default() };
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
    let plan = PassPlan { cost_gated, ..PassPlan::default() };
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

/// Notes the number of instructions.
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
        let text = format!("{} instructions", module.instruction_count());
        let why = Refusal { reason: Reason::Layout, text };
        cx.refuse(self.name(), "the module".into(), why);
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
        let plan = PassPlan { cost_gated, ..PassPlan::default() };
        assert_eq!(run.rounds(&plan).expect("a run"), StopReason::Fixpoint);
        let notes: Vec<&str> = run.notes.iter().map(|note| note.text.as_str()).collect();
        assert_eq!(notes, ["3 instructions"]);
    }
}
