//! Kernels of reduces and selections, run.

use tilewright::ir::{InstId, Literal, Op, Verified};
use tilewright::lower::kernel;
use tilewright::sim::{Machine, Ran};
use tilewright::simulate::{InterpreterArithmetic, memory_of, value_of};
use tilewright::{Error, Limits, Target, lowering, random_inputs, run};

pub(crate) const TARGETS: [&str; 4] = ["tpu-like", "mlu-like", "linear", "cpu"];

/// A module that reduces one array by an op.
pub(crate) fn reduce(shape: &str, axes: &str, result: &str, op: &str, init: &str) -> Verified {
    let element = shape.split('[').next().unwrap();
    reduce_by(shape, axes, result, &format!("ROOT c = {element}[] {op}(a, b)"), init)
}

/// A module that reduces one array by a computation of `a` and `b`.
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
    tilewright::parse(&text).unwrap_or_else(|e| panic!("{e}\n{text}"))
}

fn the_lowered(module: &Verified) -> InstId {
    let is_lowered = |id: &InstId| {
        matches!(module.op(*id), Op::Reduce(_)) || lowering::selection(module, *id).is_some()
    };
    module.instructions(module.entry().unwrap()).find(is_lowered).unwrap()
}

/// The results of the module's reduce or selection on the machine, and what it took.
/// Its operands are parameters, constants, and arrays that need not be read.
pub(crate) fn simulated(
    module: &Verified,
    target: &Target,
    inputs: &[Literal],
) -> Result<(Vec<Literal>, Ran), Error> {
    let id = the_lowered(module);
    let kernel = lowering::kernel(module, id, target)?;
    let text = kernel.to_string();
    let flaws = kernel::check(&kernel, target);
    assert!(flaws.is_empty(), "{flaws:?}\n{text}");
    assert_eq!(kernel::parse(&text).unwrap_or_else(|e| panic!("{e}\n{text}")).to_string(), text);
    let parameters = module.computation(module.entry().unwrap()).parameters();
    let operands = module.operands(id);
    let read = lowering::reduction(module, id).map_or_else(|| vec![0], |r| r.inputs());
    let memories = read.into_iter().map(|place| {
        let operand = operands[place];
        let value = match parameters.iter().position(|&parameter| parameter == operand) {
            Some(number) => &inputs[number],
            None => module.constant(operand).unwrap(),
        };
        memory_of(target, module.array_shape(operand).unwrap(), value).unwrap()
    });
    let machine = Machine::new(target, &InterpreterArithmetic);
    let ran = machine.run(&kernel, memories.collect()).unwrap_or_else(|e| panic!("{e}\n{text}"));
    let shapes = module.shape(id).leaves();
    let results = shapes.iter().zip(&ran.outputs).map(|(shape, memory)| {
        let value = value_of(target, shape.as_array().unwrap(), memory);
        value.unwrap_or_else(|| panic!("poison\n{text}"))
    });
    Ok((results.collect(), ran))
}

/// The arrays of a value.
pub(crate) fn leaves(value: Literal) -> Vec<Literal> {
    match value {
        Literal::Tuple(elements) => elements.into_iter().flat_map(leaves).collect(),
        array => vec![array],
    }
}

/// That the machine computes what the interpreter does, to the bit.
pub(crate) fn agree(module: &Verified, target: &Target) {
    agree_on(module, target, &random_inputs(module, 0).unwrap());
}

pub(crate) fn agree_on(module: &Verified, target: &Target, inputs: &[Literal]) -> Ran {
    let expected = leaves(run(module, inputs, &Limits::default()).unwrap());
    let case = || {
        format!(
            "{} on {}\n{}",
            module.name,
            target.name,
            tilewright::print(module).unwrap_or_default()
        )
    };
    let (values, ran) =
        simulated(module, target, inputs).unwrap_or_else(|e| panic!("{e}: {}", case()));
    assert_eq!(values, expected, "{}", case());
    assert_eq!(ran.counters.workspace_bytes, 0);
    ran
}
