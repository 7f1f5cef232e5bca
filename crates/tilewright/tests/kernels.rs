//! Reductions as kernels on the machine, against the interpreter.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use tilewright::ir::{InstId, Literal, Op, Verified};
use tilewright::lower::kernel;
use tilewright::sim::{Machine, Ran};
use tilewright::simulate::{InterpreterArithmetic, memory_of, value_of};
use tilewright::{Limits, Target, lowering, random_inputs, run};

/// A module that reduces one array.
fn reduce(shape: &str, axes: &str, result: &str, op: &str, init: &str) -> Verified {
    let element = shape.split('[').next().unwrap();
    let text = format!(
        "HloModule {op}_of_{element}
f {{ a = {element}[] parameter(0) b = {element}[] parameter(1) ROOT c = {element}[] {op}(a, b) }}
ENTRY e {{
  x = {shape} parameter(0)
  init = {element}[] constant({init})
  ROOT sum = {result} reduce(x, init), dimensions={{{axes}}}, to_apply=f
}}"
    );
    tilewright::parse(&text).unwrap()
}

fn the_reduce(module: &Verified) -> InstId {
    let entry = module.entry().unwrap();
    module.instructions(entry).find(|&id| matches!(module.op(id), Op::Reduce(_))).unwrap()
}

/// The result of the module's reduce on the machine, and what it took.
fn simulated(module: &Verified, target: &Target, input: &Literal) -> (Literal, Ran) {
    let id = the_reduce(module);
    let kernel = lowering::kernel(module, id, target).unwrap();
    let text = kernel.to_string();
    let flaws = kernel::check(&kernel, target);
    assert!(flaws.is_empty(), "{flaws:?}\n{text}");
    assert_eq!(kernel::parse(&text).unwrap_or_else(|e| panic!("{e}\n{text}")).to_string(), text);
    let operands = module.operands(id);
    let init = module.constant(operands[1]).unwrap();
    let inputs = operands.iter().zip([input, init]).map(|(&operand, value)| {
        memory_of(target, module.array_shape(operand).unwrap(), value).unwrap()
    });
    let machine = Machine::new(target, &InterpreterArithmetic);
    let ran = machine.run(&kernel, inputs.collect()).unwrap_or_else(|e| panic!("{e}\n{text}"));
    let shape = module.array_shape(id).unwrap();
    let value =
        value_of(target, shape, &ran.outputs[0]).unwrap_or_else(|| panic!("poison\n{text}"));
    (value, ran)
}

/// Shapes with what is reduced and what is left: every kind of axis, odd sizes,
/// nothing along an axis, nothing at all.
const SHAPES: &[(&str, &str, &str)] = &[
    ("[2,3,2,3,6]", "1,3", "[2,2,6]"),
    ("[3,6,2,3,4]", "1,3", "[3,2,4]"),
    ("[3,6,2,3,4]", "1,2,3", "[3,4]"),
    ("[4,20,16,320]", "1,2", "[4,320]"),
    ("[8,5,3,3]", "0,2,3", "[5]"),
    ("[5,6,7,40]", "3", "[5,6,7]"),
    ("[37,129]", "0", "[129]"),
    ("[37,129]", "1", "[37]"),
    ("[1003,7]", "1", "[1003]"),
    ("[1003,7]", "0", "[7]"),
    ("[300]", "0", "[]"),
    ("[3000]", "0", "[]"),
    ("[]", "", "[]"),
    ("[1,9,1,2]", "0,2", "[9,2]"),
    ("[7,200]", "", "[7,200]"),
    ("[2,3,4,5,2,3,2,2]", "0,3,6", "[3,4,2,3,2]"),
    ("[1,1]", "1", "[1]"),
];

/// Layouts of the array and of the result.
const LAYOUTS: &[(&str, &str, &str, &str)] = &[
    ("[6,7,20]{0,1,2}", "1", "[6,20]{0,1}", "column major"),
    ("[6,7,20]{2,0,1}", "1", "[6,20]{0,1}", "turned"),
    ("[6,7,300]{1,0,2}", "0", "[7,300]{1,0}", "turned"),
    ("[9,20]{0,1:P(11,20)}", "0", "[20]{0}", "padded"),
    ("[9,20]{1,0:P(9,33)}", "1", "[9]{0}", "padded"),
];

/// As sums of whole numbers, so that every order gives the same bits; and what
/// chooses among floats.
const OPS: &[(&str, &str, &str)] = &[
    ("s32", "add", "3"),
    ("s8", "xor", "5"),
    ("u16", "multiply", "3"),
    ("pred", "and", "true"),
    ("pred", "or", "false"),
    ("f32", "maximum", "-1"),
    ("bf16", "minimum", "1"),
    ("f64", "maximum", "-inf"),
];

const TARGETS: [&str; 4] = ["tpu-like", "mlu-like", "linear", "cpu"];

fn agree(module: &Verified, target: &Target) {
    let inputs = random_inputs(module, 0).unwrap();
    let expected = run(module, &inputs, &Limits::default()).unwrap();
    let (value, ran) = simulated(module, target, &inputs[0]);
    let case = format!("{} on {}", module.name, target.name);
    assert_eq!(value, expected, "{case}");
    assert_eq!(ran.counters.workspace_bytes, 0);
}

#[test]
fn every_axis_pattern_on_every_target() {
    for name in TARGETS {
        let target = Target::builtin(name).unwrap();
        for (shape, axes, result) in SHAPES {
            for (element, op, init) in OPS {
                let (shape, result) = (format!("{element}{shape}"), format!("{element}{result}"));
                agree(&reduce(&shape, axes, &result, op, init), &target);
            }
        }
    }
}

#[test]
fn every_layout_on_every_target() {
    for name in TARGETS {
        let target = Target::builtin(name).unwrap();
        for (shape, axes, result, _) in LAYOUTS {
            for (element, op, init) in OPS {
                let (shape, result) = (format!("{element}{shape}"), format!("{element}{result}"));
                agree(&reduce(&shape, axes, &result, op, init), &target);
            }
        }
    }
}

/// Each byte of the input is read once, besides the init; within 1.15 of what
/// main memory needs to send it.
#[test]
fn the_input_is_read_once() {
    let module = reduce("f32[4,64,64,320]", "1,2", "f32[4,320]", "add", "0");
    let inputs = random_inputs(&module, 0).unwrap();
    let target = Target::builtin("tpu-like").unwrap();
    let (_, ran) = simulated(&module, &target, &inputs[0]);
    // Padded to 384 channels: 4 * 64 * 64 * 384 elements.
    assert_eq!(ran.counters.hbm_read_bytes, 4 * 64 * 64 * 384 * 4 + 4);
    assert_eq!(ran.counters.workspace_bytes, 0);
    let bound = f64::from(4 * 64 * 64 * 384 * 4) / target.hbm_bytes_per_cycle;
    assert!(ran.counters.cycles < 1.15 * bound, "{:?}", ran.counters);
}
