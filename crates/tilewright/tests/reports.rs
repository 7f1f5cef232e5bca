//! Reports as text.
use tilewright::prelude::*;
use tilewright::report::{CostReport, Costs, InstructionCosts, RunReport};
use tilewright::{Recording, check, check_recording, parse};

fn module(entry: &str) -> Verified {
    parse(&format!("HloModule m\nENTRY e {{\n  {entry}\n}}")).unwrap()
}

/// Eight kinds of inputs are tried without `exact`, from each seed.
#[test]
fn agreements_say_on_which_inputs() {
    let sum = module("x = s32[] parameter(0)\n  ROOT y = s32[] add(x, x)");
    let shown = |how| check(&sum, &sum, &how).unwrap().to_string();
    assert_eq!(
        shown(CheckOptions::default()),
        "equal: 1 output on 16 sets of inputs from seeds 0 to 1\n\
         algebra: 1 equal over the reals, 0 on random elements, 0 undecided"
    );
    let one = shown(CheckOptions::default().with_first_seed(7).with_seeds(1));
    assert!(one.starts_with("equal: 1 output on 8 sets of inputs from seed 7\n"), "{one}");
    let inputs = [vec![Literal::scalar(ElementType::S32, 3).unwrap()]];
    let given = shown(CheckOptions::default().with_inputs(&inputs));
    assert!(given.starts_with("equal: 1 output on the given inputs\n"), "{given}");
}

#[test]
fn disagreements_say_where() {
    let constant = |n: i32| module(&format!("ROOT c = s32[] constant({n})"));
    let found = check(&constant(2), &constant(3), &CheckOptions::default()).unwrap();
    assert_eq!(
        found.to_string(),
        "the outputs differ\n  \
         out0: element [] is 2 in the first and 3 in the second, on normal inputs from seed 0\n\
         output  largest difference  on        because     not compared\n\
         out0    5.0e-1              normal 0  it differs  0 of 1"
    );
}

#[test]
fn recordings_are_compared_with_the_first_module() {
    let twice = module("x = s32[] parameter(0)\n  ROOT y = s32[] add(x, x)");
    let of = |n| Literal::scalar(ElementType::S32, n).unwrap();
    let shown = |result: i32| {
        let recording =
            Recording { arguments: vec![of(4)], result: Some(of(result)), ..Recording::default() };
        let found = check_recording(&twice, &recording, &CheckOptions::default()).unwrap();
        found.unwrap().to_string()
    };
    assert_eq!(shown(8), "as recorded: 1 output of the first module");
    let differs = shown(16);
    let expected = "the first module does not give what its snapshot recorded\n  \
                    out0: element [] is 8 here and 16 in the snapshot\noutput ";
    assert!(differs.starts_with(expected), "{differs}");
}

#[test]
fn costs_have_a_line_for_each_instruction_and_the_total() {
    let costs = |cycles, bytes| Costs { cycles, bytes, ..Costs::default() };
    let instruction = |name: &str, costs| InstructionCosts {
        name: name.to_owned(),
        opcode: "negate",
        shape: "f32[2]".to_owned(),
        costs,
    };
    let report = CostReport {
        module: "m".to_owned(),
        target: "cpu".to_owned(),
        total: costs(1035.0, 24),
        instructions: vec![
            instruction("x", costs(5.0, 8)),
            instruction("y", costs(30.0, 16)),
            instruction("z", costs(0.0, 0)),
        ],
        latency_cycles: 1000.4,
    };
    let expected = "m on cpu. Costs are a model, not a measurement.

cycles  vectors  realigned  bytes  padded bytes  flops  instruction  opcode  shape
    30        0          0     16             0      0  y            negate  f32[2]
     5        0          0      8             0      0  x            negate  f32[2]
     0        0          0      0             0      0  z            negate  f32[2]
 1_000        0          0      0             0      0  latency
 1_035        0          0     24             0      0  total";
    assert_eq!(report.to_string(), expected);
}

#[test]
fn runs_say_how_long_they_took() {
    let report = RunReport::interpreter(std::time::Duration::from_micros(1500));
    assert_eq!(report.to_string(), "interp: 1.500 ms");
}
