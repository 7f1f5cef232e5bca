//! Strategies: which stages they have, what lies between these, and what they refuse.

use tilewright_ir::Verified;
use tilewright_lower::{Input, Sequence, Strategy};
use tilewright_target::Target;

use super::harness::{TARGETS, agree, random_inputs, reduce, reduce_by, simulated_by, the_lowered};
use super::reducers::{arg, choice};

fn lowered(module: &Verified, target: &str, strategy: Strategy) -> Sequence {
    let target = Target::builtin(target).unwrap();
    tilewright_lower::lowered(module, the_lowered(module), &target, strategy).unwrap()
}

/// Returns the shapes of what each stage leaves, without layouts.
fn left(lowered: &Sequence) -> Vec<String> {
    let shapes = lowered.stages.iter().flat_map(|stage| &stage.results);
    shapes.map(|shape| shape.without_layout().to_string()).collect()
}

/// Reductions, with the result dims of each stage.
const STAGES: &[(&str, &str, &[&str])] = &[
    ("[2,3,2,3,6]", "1,3", &["[2,3,2,6]", "[2,2,6]"]),
    // Neighbours are one axis, also those with a dim of size 1 between them.
    ("[3,6,2,3,4]", "1,2,3", &["[3,4]"]),
    ("[5,1,7,4]", "0,2", &["[1,4]"]),
    ("[1,9,1,2]", "0,2", &["[9,2]"]),
    ("[3,1,5,4]", "0,1,3", &["[3,5]", "[5]"]),
    // Memory decides: 1, 0, 2 from major to minor.
    ("[6,7,20]{2,0,1}", "0,2", &["[7]"]),
    ("[6,7,20]{2,0,1}", "1,2", &["[6,7]", "[6]"]),
    ("[6,7,20]{0,1,2}", "0,2", &["[7,20]", "[7]"]),
    // Padding parts neighbours.
    ("[9,20]{1,0:P(9,33)}", "0,1", &["[9]", "[]"]),
    ("[9,20]{1,0:P(11,20)}", "0,1", &["[]"]),
    ("[2,3,4,5,2,3,2,2]", "0,3,6", &["[2,3,4,5,2,3,2]", "[2,3,4,2,3,2]", "[3,4,2,3,2]"]),
    ("[7,200]", "", &["[7,200]"]),
];

#[test]
fn axes_in_memory_are_stages() {
    for (dims, axes, expected) in STAGES {
        let result = format!("s32{}", expected.last().unwrap());
        let module = reduce(&format!("s32{dims}"), axes, &result, "add", "7");
        let expected: Vec<String> = expected.iter().map(|dims| format!("s32{dims}")).collect();
        assert_eq!(left(&lowered(&module, "linear", Strategy::Looped)), expected, "{dims}");
        for name in TARGETS {
            agree(&module, &Target::builtin(name).unwrap());
        }
    }
}

/// Reductions along rows, with the result dims of each stage.
const ROWS: &[(&str, &str, &[&str])] = &[
    ("[2,3,2,3,6]", "1,3", &["[2,2,6,9]", "[2,2,6]"]),
    ("[3,6,2,3,4]", "1,2,3", &["[3,4,36]", "[3,4]"]),
    ("[5,1,7,4]", "0,2", &["[1,4,35]", "[1,4]"]),
    ("[3,1,5,4]", "0,1,3", &["[5,12]", "[5]"]),
    ("[7,40,12]", "0", &["[40,12,7]", "[40,12]"]),
    // These are rows.
    ("[4,5,6]", "1,2", &["[4]"]),
    ("[4,5,1]", "1", &["[4,1]"]),
    ("[9,1,20]", "1", &["[9,20]"]),
    ("[7,200]", "", &["[7,200]"]),
    ("[9,0,20]", "0", &["[0,20]"]),
    // Memory decides: 1, 0, 2 from major to minor.
    ("[6,7,20]{2,0,1}", "0,2", &["[7]"]),
    ("[6,7,20]{2,0,1}", "1,2", &["[6,140]", "[6]"]),
    // Minor-most, but not in order.
    ("[6,7,20]{0,2,1}", "0,2", &["[7,120]", "[7]"]),
    ("[9,20]{0,1}", "0,1", &["[180]", "[]"]),
    ("[9,20]{0,1:P(11,20)}", "1", &["[9,20]", "[9]"]),
];

#[test]
fn reduced_dims_are_merged_into_rows() {
    for (dims, axes, expected) in ROWS {
        let result = format!("s32{}", expected.last().unwrap());
        let module = reduce(&format!("s32{dims}"), axes, &result, "add", "7");
        let expected: Vec<String> = expected.iter().map(|dims| format!("s32{dims}")).collect();
        let stages = lowered(&module, "linear", Strategy::Transposed);
        assert_eq!(left(&stages), expected, "{dims}");
        for name in TARGETS {
            agree(&module, &Target::builtin(name).unwrap());
        }
    }
}

/// Indices that count along whole rows of the reduction stay iotas; indices along one of
/// several reduced dims do not.
#[test]
fn indices_count_on_along_rows() {
    let greatest = choice("f32", "s32", "GT", true);
    let arg =
        |counted| arg(&greatest, ["f32", "s32"], "[40,7,12]", ("0,2", "[7]"), counted, "-inf");
    let rows = arg("n = s32[480] iota(), iota_dimension=0
  s = s32[40,12] reshape(n)
  at = s32[40,7,12] broadcast(s), dimensions={0,2}");
    let stages = lowered(&rows, "tpu-like", Strategy::Transposed).stages;
    let [turned, last] = &stages[..] else { panic!("{stages:?}") };
    assert_eq!(turned.inputs, [Input::Operand(0)]);
    let inits = [Input::Operand(2), Input::Operand(3)];
    assert_eq!(last.inputs[0], Input::Result { stage: 0, result: 0 });
    assert_eq!(last.inputs[1..], inits);
    let along_one = arg("at = s32[40,7,12] iota(), iota_dimension=2");
    let the_same = arg("at = s32[40,7,12] iota(), iota_dimension=1");
    for name in TARGETS {
        let target = Target::builtin(name).unwrap();
        for module in [&rows, &along_one, &the_same] {
            agree(module, &target);
        }
        let id = the_lowered(&along_one);
        let why =
            tilewright_lower::lowered(&along_one, id, &target, Strategy::Transposed).unwrap_err();
        assert!(why.to_string().contains("in other steps"), "{why}");
        assert_eq!(lowered(&the_same, name, Strategy::Transposed).stages.len(), 2);
    }
}

/// By hand: rows in whole tiles of 8x128, or of 16x128 of 16-bit elements, or vectors
/// of 32 elements, in the type of the input.
#[test]
fn rows_are_workspace() {
    let two = reduce("f32[2,3,2,3,6]", "1,3", "f32[2,2,6]", "maximum", "0");
    let narrow = reduce("bf16[2,3,2,3,6]", "1,3", "bf16[2,2,6]", "add", "0");
    let cases = [
        (&two, "linear", 2 * 2 * 6 * 9 * 4),
        (&two, "mlu-like", 2 * 2 * 6 * 32 * 4),
        (&two, "tpu-like", 2 * 2 * 8 * 128 * 4),
        (&narrow, "tpu-like", 2 * 2 * 16 * 128 * 2),
        (&narrow, "cpu", 2 * 2 * 6 * 9 * 2),
    ];
    for (module, name, bytes) in cases {
        let target = Target::builtin(name).unwrap();
        assert_eq!(lowered(module, name, Strategy::Transposed).workspace_bytes(), bytes, "{name}");
        let inputs = random_inputs(module, 0).unwrap();
        let (_, ran) = simulated_by(Strategy::Transposed, module, &target, &inputs).unwrap();
        assert_eq!(ran.counters.workspace_bytes, bytes);
        assert!(ran.counters.hbm_write_bytes >= bytes, "{:?}", ran.counters);
    }
}

/// By hand: to turn `s32[256,8,128]`, every plane of the rows needs each tile of 8x128
/// of the input. One block of all planes, which takes 2 MiB, reads each once: 1 MiB.
#[test]
fn what_is_turned_is_read_once_where_there_is_room() {
    let module = reduce("s32[256,8,128]", "0", "s32[8,128]", "add", "0");
    let inputs = random_inputs(&module, 0).unwrap();
    let read = |megabytes: u64| {
        let mut target = Target::builtin("tpu-like").unwrap();
        target.vector_memory_bytes = megabytes << 20;
        agree(&module, &target);
        let (_, ran) = simulated_by(Strategy::Transposed, &module, &target, &inputs).unwrap();
        ran.stages[0].counters.hbm_read_bytes
    };
    assert_eq!(read(16), 1 << 20);
    // A quarter of this is less than the block.
    assert!(read(4) > 1 << 20);
}

/// Only the last stage reads the init of the reduce; the others begin with what changes
/// nothing.
#[test]
fn the_init_is_read_once() {
    let module = reduce("s32[2,3,2,3,6]", "1,3", "s32[2,2,6]", "add", "3");
    let stages = lowered(&module, "linear", Strategy::Looped).stages;
    let [first, last] = &stages[..] else { panic!("{stages:?}") };
    assert_eq!(last.inputs, [Input::Result { stage: 0, result: 0 }, Input::Operand(1)]);
    let [Input::Operand(0), Input::Constant(identity)] = &first.inputs[..] else {
        panic!("{:?}", first.inputs)
    };
    assert_eq!(identity.as_array().unwrap().scalar_as_f64(), Some(0.0));
}

/// By hand: the arrays between stages, in whole tiles of 8x128, or of 16x128 where there
/// are 16-bit elements, or vectors of 32; of three stages, both arrays are there while
/// the second runs.
#[test]
fn workspace_is_counted_with_its_padding() {
    let pairs = arg(
        &choice("f32", "s32", "GT", true),
        ["f32", "s32"],
        "[9,5,200]",
        ("0,2", "[5]"),
        "at = s32[9,5,200] iota(), iota_dimension=2",
        "-inf",
    );
    let two = reduce("f32[2,3,2,3,6]", "1,3", "f32[2,2,6]", "maximum", "0");
    let narrow = reduce("bf16[2,3,2,3,6]", "1,3", "bf16[2,2,6]", "add", "0");
    let three = reduce("s32[2,3,4,5,2,3,2,2]", "0,3,6", "s32[3,4,2,3,2]", "add", "0");
    let cases = [
        (&two, "linear", 2 * 3 * 2 * 6 * 4),
        (&two, "mlu-like", 2 * 3 * 2 * 32 * 4),
        (&two, "tpu-like", 2 * 3 * 8 * 128 * 4),
        (&narrow, "tpu-like", 2 * 3 * 16 * 128 * 4),
        (&narrow, "cpu", 2 * 3 * 2 * 6 * 4),
        (&pairs, "tpu-like", 2 * 16 * 128 * 4),
        (&three, "linear", (1440 + 288) * 4),
    ];
    for (module, name, bytes) in cases {
        let target = Target::builtin(name).unwrap();
        assert_eq!(lowered(module, name, Strategy::Looped).workspace_bytes(), bytes, "{name}");
        assert_eq!(lowered(module, name, Strategy::Fused).workspace_bytes(), 0);
        let inputs = random_inputs(module, 0).unwrap();
        let (_, ran) = simulated_by(Strategy::Looped, module, &target, &inputs).unwrap();
        assert_eq!(ran.counters.workspace_bytes, bytes);
        // The intermediate arrays are read again.
        assert!(ran.counters.hbm_write_bytes >= bytes, "{:?}", ran.counters);
    }
}

/// Combining axis by axis needs an identity.
#[test]
fn what_has_no_identity_is_refused() {
    let unknown = "p = s32[] multiply(a, b) s = s32[] add(a, b) ROOT c = s32[] add(p, s)";
    let unknown = reduce_by("s32[6,5,40]", "0,2", "s32[5]", unknown, "3");
    let last_nan = arg(
        &choice("f32", "s32", "GT", false),
        ["f32", "s32"],
        "[6,5,40]",
        ("0,2", "[5]"),
        "at = s32[6,5,40] iota(), iota_dimension=2",
        "-inf",
    );
    let target = Target::builtin("tpu-like").unwrap();
    for module in [unknown, last_nan] {
        let why =
            tilewright_lower::lowered(&module, the_lowered(&module), &target, Strategy::Looped);
        assert!(why.unwrap_err().to_string().contains("no identity"));
    }
}

#[test]
fn names_read_back() {
    for strategy in Strategy::ALL {
        assert_eq!(strategy.to_string().parse(), Ok(strategy));
    }
    assert!("loop".parse::<Strategy>().is_err());
}
