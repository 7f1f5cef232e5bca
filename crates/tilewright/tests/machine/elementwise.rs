//! Every elementwise op, over every type that it is defined for.

use tilewright::interp::{InputKind, inputs_for};

use super::{Near, agrees, agrees_somehow, machines, op, parsed, ran};

const FLOATS: [&str; 4] = ["f32", "f64", "bf16", "f16"];
const INTEGERS: [&str; 8] = ["s8", "s16", "s32", "s64", "u8", "u16", "u32", "u64"];
const DIRECTIONS: [&str; 6] = ["EQ", "NE", "LT", "LE", "GT", "GE"];

const FLOAT_UNARY: &[&str] = &[
    "abs",
    "acos",
    "acosh",
    "asin",
    "asinh",
    "atanh",
    "cbrt",
    "ceil",
    "cosine",
    "cosh",
    "erf",
    "exponential",
    "exponential-minus-one",
    "floor",
    "log",
    "log-plus-one",
    "logistic",
    "negate",
    "round-nearest-afz",
    "round-nearest-even",
    "rsqrt",
    "sign",
    "sine",
    "sinh",
    "sqrt",
    "tan",
    "tanh",
];
const FLOAT_BINARY: &[&str] =
    &["add", "atan2", "divide", "maximum", "minimum", "multiply", "power", "remainder", "subtract"];
const INTEGER_UNARY: &[&str] = &["count-leading-zeros", "negate", "not", "popcnt"];
const INTEGER_BINARY: &[&str] = &[
    "add",
    "and",
    "divide",
    "maximum",
    "minimum",
    "multiply",
    "or",
    "power",
    "remainder",
    "shift-left",
    "shift-right-arithmetic",
    "shift-right-logical",
    "subtract",
    "xor",
];

/// Two vectors and some more of every type on most machines.
const DIMS: &str = "[3,5,140]";

/// On ordinary numbers, and on those at the edges of their types.
fn agree_on_edges(text: &str) {
    let module = parsed(text);
    for kind in [InputKind::Normal, InputKind::NonFinite] {
        let inputs = inputs_for(&module, 1, kind).unwrap();
        for target in machines() {
            let ran = ran(Near::Same, &module, &target, &inputs);
            assert!(ran.host_calls.is_empty(), "{:?} on {}\n{text}", ran.host_calls, target.name);
        }
    }
}

fn unary(element: &str, name: &str) {
    let x = format!("{element}{DIMS}");
    agree_on_edges(&op(&[&x], &format!("ROOT r = {x} {name}(x0)")));
}

fn binary(element: &str, name: &str) {
    let x = format!("{element}{DIMS}");
    agree_on_edges(&op(&[&x, &x], &format!("ROOT r = {x} {name}(x0, x1)")));
}

#[test]
fn of_floats() {
    for element in FLOATS {
        FLOAT_UNARY.iter().for_each(|name| unary(element, name));
        FLOAT_BINARY.iter().for_each(|name| binary(element, name));
        let x = format!("{element}{DIMS}");
        let narrowed = "reduce-precision(x0), exponent_bits=5, mantissa_bits=3";
        agree_on_edges(&op(&[&x], &format!("ROOT r = {x} {narrowed}")));
        agree_on_edges(&op(&[&x], &format!("ROOT r = pred{DIMS} is-finite(x0)")));
    }
}

#[test]
fn of_integers() {
    for element in INTEGERS {
        INTEGER_UNARY.iter().for_each(|name| unary(element, name));
        INTEGER_BINARY.iter().for_each(|name| binary(element, name));
        if element.starts_with('s') {
            unary(element, "abs");
            unary(element, "sign");
        }
    }
    for name in ["and", "or", "xor"] {
        binary("pred", name);
    }
    unary("pred", "not");
}

#[test]
fn comparisons_and_choices() {
    for element in FLOATS.into_iter().chain(INTEGERS).chain(["pred"]) {
        let x = format!("{element}{DIMS}");
        let p = format!("pred{DIMS}");
        for direction in DIRECTIONS {
            let root = format!("ROOT r = {p} compare(x0, x1), direction={direction}");
            agree_on_edges(&op(&[&x, &x], &root));
        }
        agree_on_edges(&op(&[&p, &x, &x], &format!("ROOT r = {x} select(x0, x1, x2)")));
        agree_on_edges(&op(&["pred[]", &x, &x], &format!("ROOT r = {x} select(x0, x1, x2)")));
        if element != "pred" {
            agree_on_edges(&op(&[&x, &x, &x], &format!("ROOT r = {x} clamp(x0, x1, x2)")));
            let scalar = format!("{element}[]");
            let clamp = format!("ROOT r = {x} clamp(x0, x1, x2)");
            agree_on_edges(&op(&[&scalar, &x, &scalar], &clamp));
            let bounds = format!(
                "lo = {scalar} constant(1)\n  hi = {scalar} constant(3)\n  \
                 ROOT r = {x} clamp(lo, x0, hi)"
            );
            agree_on_edges(&op(&[&x], &bounds));
        }
    }
    for element in FLOATS {
        let x = format!("{element}{DIMS}");
        for direction in DIRECTIONS {
            let root = format!(
                "ROOT r = pred{DIMS} compare(x0, x1), direction={direction}, type=TOTALORDER"
            );
            agree_on_edges(&op(&[&x, &x], &root));
        }
    }
}

/// From every type to every other, whose arrays lie in vectors of other lengths.
#[test]
fn conversions() {
    let types: Vec<&str> = FLOATS.into_iter().chain(INTEGERS).chain(["pred"]).collect();
    for from in &types {
        for to in &types {
            let (x, y) = (format!("{from}{DIMS}"), format!("{to}{DIMS}"));
            agrees(Near::Same, &op(&[&x], &format!("ROOT r = {y} convert(x0)")));
            let back = format!("y = {y} convert(x0)\n  ROOT r = {x} convert(y)");
            agrees(Near::Same, &op(&[&x], &back));
            // Both at one time: the wide one and the narrow one are read.
            if from != to {
                let both = format!(
                    "y = {y} convert(x0)\n  z = {y} add(y, x1)\n  w = {x} convert(z)\n  \
                     ROOT r = {x} add(w, x0)"
                );
                let both = if *to == "pred" || *from == "pred" {
                    both.replace("add(", "maximum(")
                } else {
                    both
                };
                agrees(Near::Same, &op(&[&x, &y], &both));
            }
        }
    }
}

/// Types that kernels may leave to the host.
#[test]
fn complex_numbers_and_nibbles() {
    for (part, whole) in [("f32", "c64"), ("f64", "c128")] {
        let (p, c) = (format!("{part}{DIMS}"), format!("{whole}{DIMS}"));
        agrees_somehow(Near::Same, &op(&[&p, &p], &format!("ROOT r = {c} complex(x0, x1)")));
        agrees_somehow(Near::Same, &op(&[&c], &format!("ROOT r = {p} real(x0)")));
        agrees_somehow(Near::Same, &op(&[&c], &format!("ROOT r = {p} imag(x0)")));
        agrees_somehow(Near::Same, &op(&[&c, &c], &format!("ROOT r = {c} multiply(x0, x1)")));
        agrees_somehow(Near::Same, &op(&[&c], &format!("ROOT r = {p} abs(x0)")));
    }
    for element in ["s4", "u4", "f8e4m3fn", "f8e5m2"] {
        let x = format!("{element}{DIMS}");
        agrees_somehow(Near::Same, &op(&[&x, &x], &format!("ROOT r = {x} add(x0, x1)")));
        agrees_somehow(Near::Same, &op(&[&x], &format!("ROOT r = f32{DIMS} convert(x0)")));
    }
}

/// All dims that a vector may have, and none.
#[test]
fn sizes() {
    for dims in [
        "[]",
        "[0]",
        "[1]",
        "[7]",
        "[8]",
        "[127]",
        "[129]",
        "[5000]",
        "[0,4]",
        "[4,0]",
        "[1,1]",
        "[8,128]",
        "[9,129]",
        "[1,300]",
        "[300,1]",
        "[2,1,3]",
        "[2,3,0,4]",
        "[3,1,1,1]",
        "[2,2,2,2,2,2]",
    ] {
        for element in ["f32", "f64", "bf16", "s8", "pred"] {
            let x = format!("{element}{dims}");
            let name = if element == "pred" { "xor" } else { "add" };
            agrees(Near::Same, &op(&[&x, &x], &format!("ROOT r = {x} {name}(x0, x1)")));
            let p = format!("pred{dims}");
            let compared = format!("ROOT r = {p} compare(x0, x1), direction=LE");
            agrees(Near::Same, &op(&[&x, &x], &compared));
        }
    }
}
