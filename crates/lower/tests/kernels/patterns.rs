//! Every kind of axis, layout and simple op.

use super::harness::{TARGETS, agree, random_inputs, reduce, simulated};
use tilewright_target::Target;
use tilewright_testkit::effort::Turns;

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

#[test]
fn every_axis_pattern_on_every_target() {
    let mut turns = Turns::of(3);
    for name in TARGETS {
        let target = Target::builtin(name).unwrap();
        for (shape, axes, result) in SHAPES {
            for (element, op, init) in OPS.iter().filter(|_| turns.is_next()) {
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
    let (_, ran) = simulated(&module, &target, &inputs).unwrap();
    // Padded to 384 channels: 4 * 64 * 64 * 384 elements.
    assert_eq!(ran.counters.hbm_read_bytes, 4 * 64 * 64 * 384 * 4 + 4);
    assert_eq!(ran.counters.workspace_bytes, 0);
    let bound = f64::from(4 * 64 * 64 * 384 * 4) / target.hbm_bytes_per_cycle;
    assert!(ran.counters.cycles < 1.15 * bound, "{:?}", ran.counters);
}
