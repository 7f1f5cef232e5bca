//! Helpers that several tests share: modules from text and back, passes by name.
#![allow(dead_code, reason = "each test uses a part of it")]

pub(crate) mod fixture;
pub(crate) mod forms;
pub(crate) mod random_sums;
pub(crate) mod values;

use tilewright_interp::Limits;
use tilewright_ir::{Literal, Module, Opcode, Verified};
use tilewright_rewrite::numbers::FloatMode;
use tilewright_rewrite::{
    Cost, Evaluate, Optimized, Options, PassSelection, instruction_costs, optimize,
};
use tilewright_target::Target;
use tilewright_text::{Form, PrintOptions, parse_and_verify, print};

/// The module that this text is.
#[track_caller]
pub(crate) fn module(text: &str) -> Verified {
    match parse_and_verify(text) {
        Ok(module) => module,
        Err(invalid) => panic!("{invalid}\n{text}"),
    }
}

/// All of a module, as `opt` prints it.
#[track_caller]
pub(crate) fn text(module: &Module) -> String {
    print(module, &PrintOptions::new()).expect("a module that can be printed")
}

/// A module in the form that is easiest to read.
#[track_caller]
pub(crate) fn short(module: &Module) -> String {
    print(module, &PrintOptions::new().with_form(Form::Short)).expect("a printable module")
}

/// A built-in target.
pub(crate) fn target(name: &str) -> Target {
    let mut target = Target::builtin(name).expect("a built-in target");
    // Small modules stand for large ones.
    target.small_saving_cycles = 0.0;
    target.guard_cycles = target.guard_cycles.min(1.0);
    target
}

/// The cost of the first instruction with this opcode.
#[track_caller]
pub(crate) fn cost(text: &str, opcode: Opcode, target_name: &str) -> Cost {
    let module = module(text);
    let (costs, _) = instruction_costs(&module, &target(target_name));
    let found = costs.iter().find(|cost| module.opcode(cost.id) == opcode);
    found.expect("an instruction of this opcode").cost
}

/// The interpreter, for constants.
#[derive(Debug)]
struct Interpreter;

impl Evaluate for Interpreter {
    fn evaluate(&self, module: &Verified) -> Option<Literal> {
        tilewright_interp::evaluate(module, &[], &Limits::default()).ok()
    }
}

/// The default options, with an interpreter for constants.
pub(crate) fn options(target_name: &str) -> Options {
    Options::new(target(target_name)).with_evaluator(&Interpreter)
}

/// Options for these passes, by name.
pub(crate) fn passes(names: &[&str], target_name: &str, exact: bool) -> Options {
    let selected = PassSelection::list(names.iter().copied());
    options(target_name).with_passes(selected).with_float_mode(mode(exact))
}

/// Whether floats keep every bit, or sums may be regrouped.
pub(crate) fn mode(exact: bool) -> FloatMode {
    if exact { FloatMode::Exact } else { FloatMode::Guarded }
}

/// Options for a pipeline.
pub(crate) fn pipeline(name: &str, target_name: &str) -> Options {
    options(target_name).with_passes(PassSelection::Pipeline(name.to_owned()))
}

/// Optimises a copy of a module.
#[track_caller]
pub(crate) fn optimized(module: &Verified, options: &Options) -> Optimized {
    match optimize(module.clone(), options) {
        Ok(optimized) => optimized,
        Err(error) => panic!("{error}\n{}", short(module)),
    }
}

/// The default pipeline for `tpu-like`.
#[track_caller]
pub(crate) fn optimized_by_default(module: &Verified) -> Optimized {
    optimized(module, &pipeline("default", Target::DEFAULT))
}

/// The default pipeline for a target, if its main memory answered at once: of small models
/// the wait for it is most of what they take.
pub(crate) fn without_latency(target_name: &str) -> Options {
    let mut options = pipeline("default", target_name);
    options.target.hbm_latency_cycles = 0.0;
    options
}

/// How many changes a pass made.
pub(crate) fn changes(optimized: &Optimized, pass: &str) -> usize {
    let reports = optimized.report.passes.iter();
    reports.filter(|report| report.name == pass).map(|report| report.changes).sum()
}
