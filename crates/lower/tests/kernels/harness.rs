//! Kernels of reduces and selections, run.

use tilewright_interp::{
    Elementwise, EvalError, InputError, InputKind, Limits, evaluate, inputs_for,
};
use tilewright_ir::{Data, ElementType, InstId, Literal, Op, Verified};
use tilewright_lower::{Elements, LowerError, Source, Strategy, kernel, lowered};
use tilewright_sim::{Arithmetic, Lanes, RanStages, memory_of, run_stages};
use tilewright_target::Target;
use tilewright_text::{PrintOptions, parse_and_verify};

/// The interpreter's arithmetic on elements.
#[derive(Debug)]
pub(crate) struct InterpreterArithmetic;

struct Prepared(Elementwise);

impl Arithmetic for InterpreterArithmetic {
    fn prepare(
        &self,
        op: &Op,
        operands: &[ElementType],
        result: ElementType,
    ) -> Option<Box<dyn Lanes>> {
        Some(Box::new(Prepared(Elementwise::new(op, operands, result)?)))
    }
}

impl Lanes for Prepared {
    fn compute(&self, operands: &[&Data], lanes: usize, out: &mut Data) -> bool {
        self.0.compute(operands, lanes, out)
    }
}

pub(crate) fn parsed(text: &str) -> Verified {
    parse_and_verify(text).unwrap_or_else(|e| panic!("{e}\n{text}"))
}

pub(crate) fn random_inputs(module: &Verified, seed: u64) -> Result<Vec<Literal>, InputError> {
    inputs_for(module, seed, InputKind::Normal)
}

/// Returns the result of the interpreter.
pub(crate) fn run(
    module: &Verified,
    inputs: &[Literal],
    limits: &Limits,
) -> Result<Literal, EvalError> {
    evaluate(module, inputs, limits)
}

pub(crate) const TARGETS: [&str; 4] = ["tpu-like", "mlu-like", "linear", "cpu"];

/// Returns a module that reduces one array by an op.
pub(crate) fn reduce(shape: &str, axes: &str, result: &str, op: &str, init: &str) -> Verified {
    let element = shape.split('[').next().unwrap();
    reduce_by(shape, axes, result, &format!("ROOT c = {element}[] {op}(a, b)"), init)
}

/// Returns a module that reduces one array by a computation of `a` and `b`.
pub(crate) fn reduce_by(
    shape: &str,
    axes: &str,
    result: &str,
    computation: &str,
    init: &str,
) -> Verified {
    let element = shape.split('[').next().unwrap();
    let text = format!(
        "HloModule reduce_{element}
f {{ a = {element}[] parameter(0) b = {element}[] parameter(1) {computation} }}
ENTRY e {{
  x = {shape} parameter(0)
  init = {element}[] constant({init})
  ROOT sum = {result} reduce(x, init), dimensions={{{axes}}}, to_apply=f
}}"
    );
    parsed(&text)
}

pub(crate) fn the_lowered(module: &Verified) -> InstId {
    let is_lowered = |id: &InstId| {
        matches!(module.op(*id), Op::Reduce(_))
            || tilewright_lower::selection(module, *id).is_some()
    };
    module.instructions(module.entry().unwrap()).find(is_lowered).unwrap()
}

/// Returns the results of the module's reduce or selection on the machine, in one pass, and
/// what it took. Its operands are parameters, constants, and arrays that need not be read.
pub(crate) fn simulated(
    module: &Verified,
    target: &Target,
    inputs: &[Literal],
) -> Result<(Vec<Literal>, RanStages), LowerError> {
    simulated_by(Strategy::Fused, module, target, inputs)
}

/// Returns the same by any strategy.
pub(crate) fn simulated_by(
    strategy: Strategy,
    module: &Verified,
    target: &Target,
    inputs: &[Literal],
) -> Result<(Vec<Literal>, RanStages), LowerError> {
    let id = the_lowered(module);
    let lowered = lowered(module, id, target, strategy)?;
    let texts: Vec<String> = lowered.stages.iter().map(|s| s.kernel.to_string()).collect();
    for (stage, text) in lowered.stages.iter().zip(&texts) {
        let flaws = kernel::check(&stage.kernel, target);
        assert!(flaws.is_empty(), "{flaws:?}\n{text}");
        let read = kernel::parse(text).unwrap_or_else(|e| panic!("{e}\n{text}"));
        assert_eq!(read.to_string(), *text);
    }
    let parameters = module.computation(module.entry().unwrap()).parameters();
    let operands = module.operands(id);
    let memory = |place: usize| {
        let operand = operands[place];
        let value = match parameters.iter().position(|&parameter| parameter == operand) {
            Some(number) => &inputs[number],
            None => module.constant(operand).unwrap(),
        };
        memory_of(target, module.array_shape(operand).unwrap(), value)
    };
    let ran = run_stages(target, &InterpreterArithmetic, &lowered, &memory)
        .unwrap_or_else(|e| panic!("{e}\n{}", texts.join("\n")));
    let results = ran.results(target, &lowered);
    Ok((results.unwrap_or_else(|| panic!("poison\n{}", texts.join("\n"))), ran))
}

/// Returns the arrays of a value.
pub(crate) fn leaves(value: Literal) -> Vec<Literal> {
    match value {
        Literal::Tuple(elements) => elements.into_iter().flat_map(leaves).collect(),
        array => vec![array],
    }
}

/// Asserts that the machine computes the interpreter's result, to the bit, by every strategy.
pub(crate) fn agree(module: &Verified, target: &Target) {
    agree_on(module, target, &random_inputs(module, 0).unwrap());
}

/// Returns the same on these inputs; gives what one pass took.
pub(crate) fn agree_on(module: &Verified, target: &Target, inputs: &[Literal]) -> RanStages {
    let expected = leaves(run(module, inputs, &Limits::default()).unwrap());
    let id = the_lowered(module);
    let lowered = |strategy| tilewright_lower::lowered(module, id, target, strategy);
    let case = |strategy| {
        let text = tilewright_text::print(module, &PrintOptions::default()).unwrap_or_default();
        format!("{} by {strategy} on {}\n{text}", module.name, target.name)
    };
    let by = |strategy| {
        let done = simulated_by(strategy, module, target, inputs);
        let (values, ran) = done.unwrap_or_else(|e| panic!("{e}: {}", case(strategy)));
        assert_eq!(values, expected, "{}", case(strategy));
        ran
    };
    let fused =
        lowered(Strategy::Fused).unwrap_or_else(|e| panic!("{e}: {}", case(Strategy::Fused)));
    for strategy in Strategy::ALL {
        match lowered(strategy) {
            // Equal kernels have equal results.
            Ok(lowered) if lowered == fused => {}
            Ok(lowered) => {
                assert!(lowered.stages.len() > 1, "{}", case(strategy));
                by(strategy);
            }
            Err(why) => assert!(is_refused(strategy, module, &why), "{why}: {}", case(strategy)),
        }
    }
    let ran = by(Strategy::Fused);
    assert_eq!((ran.stages.len(), ran.counters.workspace_bytes), (1, 0));
    ran
}

/// Checks whether a strategy is none for a module: several axes need an identity, and rows
/// indices that count on along them.
fn is_refused(strategy: Strategy, module: &Verified, why: &LowerError) -> bool {
    let Some(reduction) = tilewright_lower::reduction(module, the_lowered(module)) else {
        return false;
    };
    let is_counted = |source: &Source| matches!(source.elements, Elements::Indices(_));
    let why = why.to_string();
    match strategy {
        Strategy::Fused => false,
        Strategy::Looped => reduction.neutral.is_none() && why.contains("no identity"),
        Strategy::Transposed => {
            reduction.axes.len() > 1
                && reduction.arrays.iter().any(is_counted)
                && why.contains("in other steps")
        }
    }
}
