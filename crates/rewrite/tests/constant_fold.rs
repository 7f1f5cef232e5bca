//! Constant folding: the evaluators that may fold, and the amount folded at once.

use crate::common;
use crate::common::{changes, module, optimized, passes, short};
use tilewright_ir::{Literal, Module, Opcode, Verified};
use tilewright_rewrite::{Evaluate, PassSelection};

/// A module that adds integers to each other.
const SUM: &str = "HloModule m
ENTRY e {
  a = s32[] constant(20)
  b = s32[] add(a, a)
  c = s32[] constant(2)
  ROOT d = s32[] add(b, c)
}";

fn count(module: &Module, opcode: Opcode) -> usize {
    let all = module.computations().iter().flat_map(|&c| module.instructions(c));
    all.filter(|&id| module.opcode(id) == opcode).count()
}

#[test]
fn nothing_is_folded_without_an_evaluator() {
    let mut options = passes(&["constant-fold"], "tpu-like", false);
    options.evaluator = None;
    assert_eq!(changes(&optimized(&module(SUM), &options), "constant-fold"), 0);
    let options = passes(&["constant-fold", "dce"], "tpu-like", false);
    let after = optimized(&module(SUM), &options);
    assert!(short(&after.module).contains("constant(42)"), "{}", short(&after.module));
}

/// Gives up on everything.
#[derive(Debug)]
struct Helpless;

impl Evaluate for Helpless {
    fn evaluate(&self, _module: &Verified) -> Option<Literal> {
        None
    }
}

/// Claims that every result is a truth value.
#[derive(Debug)]
struct Confused;

impl Evaluate for Confused {
    fn evaluate(&self, module: &Verified) -> Option<Literal> {
        let root = module.computation(module.entry()?).root()?;
        let value = Literal::scalar(tilewright_ir::ElementType::Pred, true).ok()?;
        Some(Literal::Tuple(vec![value; module.shape(root).as_tuple()?.len()]))
    }
}

#[test]
fn what_cannot_be_evaluated_stays() {
    let evaluators: [&'static dyn Evaluate; 2] = [&Helpless, &Confused];
    for evaluator in evaluators {
        let passes = PassSelection::List(vec!["constant-fold".into()]);
        let options = common::options("tpu-like").with_passes(passes).with_evaluator(evaluator);
        let after = optimized(&module(SUM), &options);
        assert_eq!(changes(&after, "constant-fold"), 0, "{evaluator:?}");
    }
}

/// However long a chain is, it is one constant after one sweep.
#[test]
fn long_chains_are_folded_at_once() {
    let mut text = String::from("HloModule m\nENTRY e {\n  x0 = s32[] constant(1)\n");
    for i in 0..50_000 {
        text.push_str(&format!("  x{} = s32[] subtract(x0, x{i})\n", i + 1));
    }
    text.push_str("  ROOT r = s32[] negate(x50000)\n}");
    let after = optimized(&module(&text), &passes(&["constant-fold", "dce"], "tpu-like", false));
    assert_eq!(changes(&after, "constant-fold"), 1);
    assert_eq!(after.module.instruction_count(), 1);
    assert!(short(&after.module).contains("constant(-1)"), "{}", short(&after.module));
}

/// A table has many readers: the folded result of each reader would take room of its own.
#[test]
fn constants_do_not_multiply() {
    let mut text = String::from("HloModule m\nENTRY e {\n  t = s32[4] constant({1, 2, 3, 4})\n");
    for i in 0..1000 {
        text.push_str(&format!("  x{i} = s32[4] negate(t)\n  y{i} = s32[4] abs(x{i})\n"));
    }
    let names: Vec<String> = (0..1000).map(|i| format!("y{i}")).collect();
    let shapes = vec!["s32[4]"; 1000].join(", ");
    text.push_str(&format!("  ROOT r = ({shapes}) tuple({})\n}}", names.join(", ")));
    let after = optimized(&module(&text), &passes(&["constant-fold"], "tpu-like", false));
    assert_eq!(count(&after.module, Opcode::Constant), 1);
}
