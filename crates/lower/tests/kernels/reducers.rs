//! Every computation: choices, several at once, and those nobody knows.

use half::bf16;
use tilewright_ir::{ArrayLiteral, Data, ElementType, Verified};
use tilewright_target::Target;
use tilewright_testkit::effort::Turns;

use super::harness::{TARGETS, agree_on, parsed, random_inputs, simulated};

/// JAX's argmax and argmin; where `nan` is empty, NaNs come last.
pub(crate) fn choice(value: &str, index: &str, direction: &str, nan: bool) -> String {
    let nan = if nan {
        "nan = pred[] compare(a, a), direction=NE"
    } else {
        "nan = pred[] constant(false)"
    };
    format!(
        "choose {{
  a = {value}[] parameter(0) i = {index}[] parameter(1)
  b = {value}[] parameter(2) j = {index}[] parameter(3)
  wins = pred[] compare(a, b), direction={direction}
  {nan}
  first = pred[] or(wins, nan)
  equal = pred[] compare(a, b), direction=EQ
  before = pred[] compare(i, j), direction=LT
  tie = pred[] and(equal, before)
  keep = pred[] or(first, tie)
  value = {value}[] select(first, a, b)
  index = {index}[] select(keep, i, j)
  ROOT both = ({value}[], {index}[]) tuple(value, index)
}}"
    )
}

/// Returns a module that looks for the greatest or least of each row.
pub(crate) fn arg(
    computation: &str,
    [value, index]: [&str; 2],
    dims: &str,
    (axes, kept): (&str, &str),
    counted: &str,
    init: &str,
) -> Verified {
    let text = format!(
        "HloModule arg_of_{value}\n{computation}
ENTRY e {{
  x = {value}{dims} parameter(0)
  {counted}
  none = {value}[] constant({init})
  zero = {index}[] constant(0)
  ROOT r = ({value}{kept}, {index}{kept}) reduce(x, at, none, zero), dimensions={{{axes}}}, to_apply=choose
}}"
    );
    parsed(&text)
}

/// Dims, axes, what is left, and the dim along which is counted.
const SHAPES: &[(&str, &str, &str, u8)] = &[
    ("[37,129]", "1", "[37]", 1),
    ("[37,129]", "0", "[129]", 0),
    ("[5,40,300]", "1", "[5,300]", 1),
    ("[9,5,200]", "0,2", "[5]", 2),
    ("[3000]", "0", "[]", 0),
    ("[40,16,8]", "0", "[16,8]", 0),
];

const TYPES: &[(&str, &str, &str)] = &[
    ("f32", "s32", "-inf"),
    ("bf16", "s32", "-inf"),
    ("s16", "s32", "-32768"),
    ("s32", "u32", "-7"),
    ("f64", "s32", "-inf"),
];

#[test]
fn the_greatest_with_its_index() {
    let mut turns = Turns::of(3);
    for name in TARGETS {
        let target = Target::builtin(name).unwrap();
        for &(dims, axes, kept, along) in SHAPES {
            for &(value, index, init) in TYPES {
                let is_float = value != "s16" && value != "s32";
                for nan in [true, false].into_iter().filter(|_| turns.is_next()) {
                    let computation = choice(value, index, "GT", nan && is_float);
                    let counted = format!("at = {index}{dims} iota(), iota_dimension={along}");
                    let module =
                        arg(&computation, [value, index], dims, (axes, kept), &counted, init);
                    agree_on(&module, &target, &random_inputs(&module, 1).unwrap());
                }
            }
        }
    }
}

/// Counting along several dims as one; the least, which `GT` turned round finds.
#[test]
fn what_counts_is_not_read() {
    let counted = "n = s32[480] iota(), iota_dimension=0
  rows = s32[40,12] reshape(n)
  at = s32[7,40,12] broadcast(rows), dimensions={1,2}";
    for name in TARGETS {
        let target = Target::builtin(name).unwrap();
        let computation = choice("f32", "s32", "LT", true);
        let module = arg(&computation, ["f32", "s32"], "[7,40,12]", ("1,2", "[7]"), counted, "inf");
        let inputs = random_inputs(&module, 2).unwrap();
        let read = agree_on(&module, &target, &inputs).counters.hbm_read_bytes;
        let footprint = match name {
            "tpu-like" => 7 * 40 * 128,
            "mlu-like" => 7 * 40 * 32,
            _ => 7 * 40 * 12,
        };
        assert_eq!(read, 4 * footprint + 8);
    }
}

/// As in NumPy: `argmax([1, nan, 5, nan]) == 1`, and of equals the first.
#[test]
fn the_first_nan_and_the_first_of_equals() {
    let mut values = vec![1.0f32; 2000];
    values[3] = 5.0;
    values[1203] = 5.0;
    let mut with_nan = values.clone();
    with_nan[77] = f32::NAN;
    with_nan[1500] = f32::NAN;
    let module = arg(
        &choice("f32", "s32", "GT", true),
        ["f32", "s32"],
        "[2000]",
        ("0", "[]"),
        "at = s32[2000] iota(), iota_dimension=0",
        "-inf",
    );
    for name in TARGETS {
        let target = Target::builtin(name).unwrap();
        for (values, first) in [(&values, 3), (&with_nan, 77)] {
            let x = ArrayLiteral::new(ElementType::F32, [2000], Data::F32(values.clone()));
            let (results, _) = simulated(&module, &target, &[x.unwrap().into()]).unwrap();
            assert_eq!(results[1].as_array().unwrap().scalar_as_f64(), Some(f64::from(first)));
        }
    }
}

/// All values the least there is, so that what changes nothing might be chosen.
#[test]
fn the_least_there_is_is_found() {
    for name in TARGETS {
        let target = Target::builtin(name).unwrap();
        for (value, init) in [("bf16", "-inf"), ("s16", "-32768")] {
            let counted = "at = s32[6,70] iota(), iota_dimension=1";
            let computation = choice(value, "s32", "GT", value == "bf16");
            let module = arg(&computation, [value, "s32"], "[6,70]", ("1", "[6]"), counted, init);
            let (element_type, data) = match value {
                "bf16" => (ElementType::BF16, Data::BF16(vec![bf16::NEG_INFINITY; 420])),
                _ => (ElementType::S16, Data::S16(vec![i16::MIN; 420])),
            };
            let x = ArrayLiteral::new(element_type, [6, 70], data).unwrap();
            agree_on(&module, &target, &[x.into()]);
        }
    }
}

/// Computations with their types and inits: none that is known.
const COMPUTATIONS: &[(&str, &str, &str, &str)] = &[
    (
        "twice_the_greater_half",
        "s32",
        "-5",
        // max, in a form that is not looked into: a + max(b - a, 0).
        "d = s32[] subtract(b, a) z = s32[] constant(0) m = s32[] maximum(d, z) ROOT r = s32[] add(a, m)",
    ),
    (
        "both_less_one",
        "s32",
        "4",
        "s = s32[] add(a, b) o = s32[] constant(1) ROOT r = s32[] subtract(s, o)",
    ),
    (
        "common_bits_flipped",
        "u32",
        "77",
        "n = u32[] not(a) m = u32[] not(b) o = u32[] or(n, m) ROOT r = u32[] not(o)",
    ),
    (
        "sum_and_product",
        "u16",
        "3",
        "p = u16[] multiply(a, b) s = u16[] add(a, b) ROOT r = u16[] add(p, s)",
    ),
    ("equal", "pred", "true", "ROOT r = pred[] compare(a, b), direction=EQ"),
];

#[test]
fn any_computation() {
    for name in TARGETS {
        let target = Target::builtin(name).unwrap();
        for (dims, axes, kept, _) in SHAPES {
            for (title, element, init, computation) in COMPUTATIONS {
                let text = format!(
                    "HloModule {title}
f {{ a = {element}[] parameter(0) b = {element}[] parameter(1) {computation} }}
ENTRY e {{
  x = {element}{dims} parameter(0)
  init = {element}[] constant({init})
  ROOT r = {element}{kept} reduce(x, init), dimensions={{{axes}}}, to_apply=f
}}"
                );
                let module = parsed(&text);
                agree_on(&module, &target, &random_inputs(&module, 3).unwrap());
            }
        }
    }
}

/// Sums of several arrays at once, of one width and of several.
#[test]
fn several_arrays() {
    let text = |second: &str| {
        format!(
            "HloModule several
f {{ a = s32[] parameter(0) i = {second}[] parameter(1) b = s32[] parameter(2) j = {second}[] parameter(3)
  s = s32[] add(a, b) m = {second}[] maximum(i, j) ROOT r = (s32[], {second}[]) tuple(s, m) }}
ENTRY e {{
  x = s32[9,33,150] parameter(0) y = {second}[9,33,150] parameter(1)
  z = s32[] constant(0) l = {second}[] constant(-9)
  ROOT r = (s32[33], {second}[33]) reduce(x, y, z, l), dimensions={{0,2}}, to_apply=f
}}"
        )
    };
    for name in TARGETS {
        let target = Target::builtin(name).unwrap();
        for second in ["s32", "f32", "f64"] {
            let module = parsed(&text(second));
            agree_on(&module, &target, &random_inputs(&module, 4).unwrap());
        }
        // Elements of two widths in other places of their vectors.
        let module = parsed(&text("s8"));
        let inputs = random_inputs(&module, 4).unwrap();
        match simulated(&module, &target, &inputs) {
            Ok(_) => assert!(name == "linear" || name == "cpu", "{name}"),
            Err(e) => assert!(e.to_string().contains("one layout"), "{e}"),
        }
    }
}
