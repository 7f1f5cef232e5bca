//! Selections: the greatest and the least of every row, with their places.

use half::{bf16, f16};
use proptest::prelude::*;
use tilewright_interp::Limits;
use tilewright_ir::{ArrayLiteral, Data, ElementType, Literal, Verified};
use tilewright_lower as lower;
use tilewright_target::{Physical, Target};
use tilewright_testkit::effort::{self, Turns};

use super::harness::{TARGETS, agree, agree_on, leaves, parsed, random_inputs, run, simulated};
use super::random::target;

/// Returns a module that selects `k` of each row, given dims with a layout and the dims of the
/// results with theirs.
fn top(element: &str, shape: &str, k: u64, results: [&str; 2], largest: bool) -> Verified {
    let [values, places] = results;
    let text = format!(
        "HloModule top_{k}_of_{element}
ENTRY e {{
  x = {element}{shape} parameter(0)
  ROOT r = ({element}{values}, s32{places}) topk(x), k={k}, largest={largest}
}}"
    );
    parsed(&text)
}

const TYPES: [&str; 12] =
    ["f32", "bf16", "f16", "f64", "s8", "s16", "s32", "s64", "u8", "u16", "u32", "u64"];

/// Shapes with how many are selected and what is left: rows shorter and longer than
/// vectors, of one element, all elements of them, and none.
const SHAPES: &[(&str, u64, &str)] = &[
    ("[2,7]", 3, "[2,3]"),
    ("[5,300]", 5, "[5,5]"),
    ("[37,129]", 1, "[37,1]"),
    ("[3,4,6,40]", 7, "[3,4,6,7]"),
    ("[1003,2]", 2, "[1003,2]"),
    ("[2000]", 4, "[4]"),
    ("[150]", 150, "[150]"),
    ("[9,1]", 1, "[9,1]"),
    ("[1]", 1, "[1]"),
    ("[3,50]", 0, "[3,0]"),
    ("[0,50]", 2, "[0,2]"),
    ("[3,0]", 0, "[3,0]"),
];

#[test]
fn every_shape_and_type_on_every_target() {
    let mut turns = Turns::of(3);
    for name in TARGETS {
        let target = Target::builtin(name).unwrap();
        for (shape, k, result) in SHAPES {
            for element in TYPES {
                for largest in [true, false].into_iter().filter(|_| turns.is_next()) {
                    agree(&top(element, shape, *k, [result; 2], largest), &target);
                }
            }
        }
    }
}

/// Rows that do not lie side by side, results that lie otherwise, padding, and values
/// and places that lie in two ways.
const LAYOUTS: &[(&str, u64, [&str; 2])] = &[
    ("[40,60]{0,1}", 6, ["[40,6]{0,1}", "[40,6]{1,0}"]),
    ("[40,60]", 6, ["[40,6]{0,1}", "[40,6]{0,1}"]),
    ("[7,20,30]{1,0,2}", 3, ["[7,20,3]{0,1,2}", "[7,20,3]{2,0,1}"]),
    ("[7,20,30]{1,2,0}", 3, ["[7,20,3]", "[7,20,3]{1,2,0}"]),
    ("[9,20]{1,0:P(11,33)}", 4, ["[9,4]", "[9,4]"]),
    ("[9,20]{0,1:P(11,20)}", 4, ["[9,4]", "[9,4]{0,1}"]),
    ("[20]{0:P(50)}", 9, ["[9]", "[9]"]),
];

#[test]
fn every_layout_on_every_target() {
    for name in TARGETS {
        let target = Target::builtin(name).unwrap();
        for (shape, k, results) in LAYOUTS {
            for element in TYPES {
                agree(&top(element, shape, *k, *results, true), &target);
                agree(&top(element, shape, *k, *results, false), &target);
            }
        }
    }
}

/// Results beyond a quarter of 256 KiB are written in windows.
/// A dim of 129 is two tiles of 128: the last blocks hold nothing but padding.
#[test]
fn blocks_of_padding() {
    let results = ["[129,7,2,1]{1,2,3,0}", "[129,7,2,1]{3,0,1,2}"];
    let module = top("f32", "[129,7,2,1]{0,1,2,3:T(8,128)}", 1, results, false);
    let mut target = Target::builtin("mlu-like").unwrap();
    (target.lanes, target.vector_memory_bytes) = (8, 16 * 1024);
    agree(&module, &target);
}

#[test]
fn many_rows() {
    for name in TARGETS {
        let mut target = Target::builtin(name).unwrap();
        target.vector_memory_bytes = 256 * 1024;
        for (shape, k, result) in [("[4500,5]", 4, "[4500,4]"), ("[75,30,20]", 9, "[75,30,9]")] {
            let module = top("f32", shape, k, [result; 2], true);
            let ran = agree_on(&module, &target, &random_inputs(&module, 0).unwrap());
            assert!(ran.counters.vmem_peak_bytes <= target.vector_memory_bytes);
        }
    }
}

/// Returns an array of some values again and again.
fn array(dims: &[i64], element_type: ElementType, values: &Data) -> Literal {
    let len = usize::try_from(dims.iter().product::<i64>()).unwrap();
    let data = values.gather((0..len).map(|i| i * 7 % values.len()));
    ArrayLiteral::new(element_type, dims.iter().copied(), data).unwrap().into()
}

/// Returns the first values, the last values and values that differ only in their sign; NaNs
/// with all kinds of bits.
fn specials() -> [(&'static str, ElementType, Data); 6] {
    let single: [u32; 12] = [
        0xffff_ffff,
        0xffc0_0000,
        0xff80_0001,
        0xff80_0000,
        0xff7f_ffff,
        0x8000_0000,
        0x0000_0000,
        0x7f7f_ffff,
        0x7f80_0000,
        0x7f80_0001,
        0x7fc0_0000,
        0x7fff_ffff,
    ];
    let double = [u64::MAX, u64::MAX >> 1, 1 << 63, 0, 0x7ff0 << 48, 0xfff0 << 48, 0x7ff8 << 48];
    let half = [0xffffu16, 0x7fff, 0x8000, 0, 0x7f80, 0xff80, 0x7c00, 0xfc00, 0x7e00, 0x3c00];
    [
        ("f32", ElementType::F32, Data::F32(single.map(f32::from_bits).to_vec())),
        ("f64", ElementType::F64, Data::F64(double.map(f64::from_bits).to_vec())),
        ("bf16", ElementType::BF16, Data::BF16(half.map(bf16::from_bits).to_vec())),
        ("f16", ElementType::F16, Data::F16(half.map(f16::from_bits).to_vec())),
        ("s8", ElementType::S8, Data::S8(vec![i8::MIN, i8::MAX, 0, i8::MIN, -1])),
        ("u64", ElementType::U64, Data::U64(vec![u64::MAX, 0, 1 << 63, (1 << 63) - 1, 0])),
    ]
}

/// Bits, as NaNs are equal to nothing.
fn bits(value: &Literal) -> Vec<u64> {
    match value.as_array().unwrap().data() {
        Data::F32(v) => v.iter().map(|x| x.to_bits().into()).collect(),
        Data::F64(v) => v.iter().map(|x| x.to_bits()).collect(),
        Data::F16(v) => v.iter().map(|x| x.to_bits().into()).collect(),
        Data::BF16(v) => v.iter().map(|x| x.to_bits().into()).collect(),
        Data::S8(v) => v.iter().map(|&x| u64::from(x.cast_unsigned())).collect(),
        Data::S32(v) => v.iter().map(|&x| u64::from(x.cast_unsigned())).collect(),
        Data::U64(v) => v.clone(),
        other => panic!("{other:?}"),
    }
}

/// Ties everywhere, and all elements of every row, so that padding would be seen.
#[test]
fn special_values() {
    for name in TARGETS {
        let target = Target::builtin(name).unwrap();
        for (element, element_type, values) in specials() {
            for largest in [true, false] {
                for (shape, results) in
                    [("[5,41]", ["[5,41]"; 2]), ("[5,41]{0,1}", ["[5,41]{0,1}"; 2])]
                {
                    let module = top(element, shape, 41, results, largest);
                    let inputs = [array(&[5, 41], element_type, &values)];
                    let expected = leaves(run(&module, &inputs, &Limits::default()).unwrap());
                    let (found, _) = simulated(&module, &target, &inputs).unwrap();
                    for (found, expected) in found.iter().zip(&expected) {
                        assert_eq!(bits(found), bits(expected), "{element} on {name}");
                    }
                }
            }
        }
    }
}

/// By hand: of equals the first, and nothing but what is there.
#[test]
fn all_are_equal() {
    let last = f32::from_bits(u32::MAX);
    for name in TARGETS {
        let target = Target::builtin(name).unwrap();
        for (value, largest) in [(last, true), (-last, false), (2.5, true), (2.5, false)] {
            let module = top("f32", "[3,70]", 70, ["[3,70]"; 2], largest);
            let inputs = [array(&[3, 70], ElementType::F32, &Data::F32(vec![value]))];
            let (found, _) = simulated(&module, &target, &inputs).unwrap();
            assert_eq!(bits(&found[0]), vec![u64::from(value.to_bits()); 210]);
            assert_eq!(bits(&found[1]), (0..3).flat_map(|_| 0..70).collect::<Vec<u64>>());
        }
    }
}

/// Each byte is read once, and nothing is written but the results.
#[test]
fn the_input_is_read_once() {
    let target = Target::builtin("linear").unwrap();
    let module = top("f32", "[300,1000]", 5, ["[300,5]"; 2], true);
    let inputs = random_inputs(&module, 0).unwrap();
    let (_, ran) = simulated(&module, &target, &inputs).unwrap();
    assert_eq!(ran.counters.hbm_read_bytes, 300 * 1000 * 4);
    assert_eq!(ran.counters.hbm_write_bytes, 2 * 300 * 5 * 4);
    assert_eq!(ran.counters.workspace_bytes, 0);
}

fn refused(module: &Verified, target: &Target) -> String {
    let inputs = random_inputs(module, 0).unwrap();
    simulated(module, target, &inputs).unwrap_err().to_string()
}

#[test]
fn refusals_say_why() {
    let mut target = Target::builtin("linear").unwrap();
    target.vector_memory_bytes = 16 * 1024;
    let long = top("f32", "[3,5000]", 2, ["[3,2]"; 2], true);
    assert!(refused(&long, &target).contains("whole rows and what is selected"));
    // Rows of 100 elements, but all over the array.
    let turned = top("f32", "[50,100]{0,1}", 2, ["[50,2]"; 2], true);
    assert!(refused(&turned, &target).contains("whole rows and what is selected"));
    let short = top("f32", "[50,100]", 2, ["[50,2]"; 2], true);
    agree(&short, &target);

    let target = Target::builtin("linear").unwrap();
    let many = top("s8", "[2,1025]", 1025, ["[2,1025]"; 2], true);
    assert!(refused(&many, &target).contains("1025 elements of each row"));
    let fewer = top("s8", "[2,1025]", 1024, ["[2,1024]"; 2], true);
    agree(&fewer, &target);
    let text = "HloModule unlike
ENTRY e {
  x = f32[6,200] parameter(0)
  ROOT r = (f32[6,3], s32[6,4]) custom-call(x), custom_call_target=\"TopK\"
}";
    assert!(refused(&parsed(text), &target).contains("do not agree"));
    let unknown = top("f8e5m2", "[2,9]", 2, ["[2,2]"; 2], true);
    assert!(refused(&unknown, &target).contains("f8e5m2"));
}

/// Lowers the custom call that XLA makes of a `topk`.
#[test]
fn the_custom_call() {
    let text = "HloModule compiled
ENTRY e {
  x = f32[6,200] parameter(0)
  ROOT r = (f32[6,3], s32[6,3]) custom-call(x), custom_call_target=\"TopK\"
}";
    let module = parsed(text);
    for name in TARGETS {
        agree(&module, &Target::builtin(name).unwrap());
    }
}

/// The text of one kernel, which a person has read.
#[test]
fn a_kernel_is_read() {
    let module = top("f32", "[64,1000]", 8, ["[64,8]"; 2], true);
    let target = Target::builtin("tpu-like").unwrap();
    let root = module.computation(module.entry().unwrap()).root().unwrap();
    let lowered = lower::lowered(&module, root, &target, lower::Strategy::Fused).unwrap();
    let kernel = &lowered.stages[0].kernel;
    insta::assert_snapshot!("top_8", kernel.to_string());
}

/// Bytes of the array and the results, padding included.
fn footprint(module: &Verified, target: &Target) -> u64 {
    let root = module.computation(module.entry().unwrap()).root().unwrap();
    let operand = module.shape(module.operands(root)[0]);
    let arrays = module.shape(root).leaves().into_iter().chain([operand]);
    let bytes = arrays.map(|shape| {
        let array = shape.as_array().unwrap();
        Physical::of(target, array).places().unwrap() * u64::from(array.element_type.bytes())
    });
    bytes.sum()
}

#[derive(Clone, Debug)]
struct Case {
    dims: Vec<u64>,
    k: u64,
    /// Keys that sort dims into the layouts of the array, values and places.
    orders: Vec<u32>,
    more: &'static str,
}

impl Case {
    /// Dims in an order of memory.
    fn shape(&self, k: Option<u64>, from: usize, more: &str) -> String {
        let mut dims = self.dims.clone();
        if let (Some(k), Some(last)) = (k, dims.last_mut()) {
            *last = k;
        }
        let mut order: Vec<usize> = (0..dims.len()).collect();
        order.sort_by_key(|&dim| self.orders[from + dim]);
        let join = |items: Vec<String>| items.join(",");
        let dims = join(dims.iter().map(ToString::to_string).collect());
        let order = join(order.iter().map(ToString::to_string).collect());
        format!("[{dims}]{{{order}{more}}}")
    }
}

fn case() -> impl Strategy<Value = Case> {
    let size = prop_oneof![1 => Just(0u64), 3 => Just(1), 12 => 2u64..10, 3 => 10u64..200];
    let tiles = prop_oneof![
        6 => Just(""), 1 => Just(":T(4,8)"), 1 => Just(":T(8,128)"), 1 => Just(":T(2,4)(2,1)"),
        1 => Just(":T(128)")
    ];
    let dims = prop::collection::vec(size, 1..=5);
    let orders = prop::collection::vec(any::<u32>(), 15);
    (dims, any::<prop::sample::Index>(), orders, tiles).prop_map(|(mut dims, k, orders, more)| {
        let mut room = 3000;
        for dim in &mut dims {
            *dim = (*dim).min(room);
            room /= (*dim).max(1);
        }
        let row = dims.last().copied().unwrap_or(0);
        let k = k.index(usize::try_from(row).unwrap() + 1) as u64;
        Case { dims, k: k.min(12), orders, more }
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: effort::cases(100), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_machine_and_the_interpreter_agree(
        case in case(),
        element in prop::sample::select(&TYPES[..]),
        target in target(),
        largest in any::<bool>(),
        seed in any::<u64>(),
    ) {
        let shape = case.shape(None, 0, case.more);
        let (values, places) = (case.shape(Some(case.k), 5, ""), case.shape(Some(case.k), 10, ""));
        let module = top(element, &shape, case.k, [&values, &places], largest);
        let inputs = random_inputs(&module, seed).unwrap();
        let expected = leaves(run(&module, &inputs, &Limits::default()).unwrap());
        match simulated(&module, &target, &inputs) {
            Ok((values, _)) => prop_assert_eq!(values, expected),
            Err(why) => {
                let why = why.to_string();
                let known = ["do not make whole vectors", "do not fit the vector memory"];
                prop_assert!(known.iter().any(|known| why.contains(known)), "{}", why);
                let roomy = 2 * footprint(&module, &target) <= target.vector_memory_bytes;
                let fills = target.lanes * target.sublanes % 2 == 0 || !element.ends_with("64");
                prop_assert!(!(case.more.is_empty() && roomy && fills), "{}", why);
            }
        }
    }
}
