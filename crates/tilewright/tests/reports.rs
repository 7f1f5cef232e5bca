//! Reports as text.
use tilewright::prelude::*;
use tilewright::report::{CostReport, Costs, InstructionCosts, MemoryReport, RunReport};
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
         out0    5.0e-1              normal 0  it differs  0 of 1\n\
         normal: inputs normally distributed"
    );
}

#[test]
fn a_large_part_of_a_denormal_is_told_in_units() {
    // 2 and 3 units of f16 next to zero: a third of the larger, and one unit apart.
    let units =
        |n: u32| module(&format!("ROOT c = f16[] constant({})", f64::from(n) * 2f64.powi(-24)));
    let found = check(&units(3), &units(2), &CheckOptions::default()).unwrap().to_string();
    assert!(found.contains("1 unit in the last place"), "{found}");
    assert!(!found.contains("\nrounding:"), "{found}");
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
        meaning: (name == "y").then(|| "swaps dims 0 and 1".to_owned()),
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
    30        0          0     16             0      0  y            negate  f32[2]  swaps dims 0 and 1
     5        0          0      8             0      0  x            negate  f32[2]
     0        0          0      0             0      0  z            negate  f32[2]
 1_000        0          0      0             0      0  latency
 1_035        0          0     24             0      0  total";
    assert_eq!(report.to_string(), expected);
}

/// A norm of `[256,10]` groups that a reshape splits off: on (8,128) tiles its array takes 12.8 times its size.
const GROUPS: &str = "HloModule groups
add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = f32[] add(a, b)
}
ENTRY main {
  x = f32[8,64,2560] parameter(0), metadata={op_name=\"x\"}
  g = f32[8,64,256,10] reshape(x), metadata={op_name=\"jit(f)/norm/reshape\" source_file=\"/home/me/norm.py\" source_line=3}
  zero = f32[] constant(0)
  s = f32[8,256] reduce(g, zero), dimensions={1,3}, to_apply=add, metadata={op_name=\"jit(f)/norm/sum\" source_file=\"/home/me/norm.py\" source_line=4}
  t = f32[8,64,2560] sine(x)
  ROOT both = (f32[8,64,2560], f32[8,256]) tuple(t, s)
}";

#[test]
fn memory_is_told_array_by_array() {
    let module = tilewright::parse(GROUPS).unwrap();
    let report = MemoryReport::new(&module, &tilewright::target("tpu-like").unwrap()).unwrap();
    // x: 8*64*2560*4 bytes; the groups: 8*64 rows of [256,10], whose 10 lanes take 128.
    let (x, groups) = (5_242_880, 8 * 64 * 256 * 128 * 4);
    assert_eq!(report.peak.padded_bytes, x + groups + 8 * 256 * 4);
    assert_eq!(report.peak.argument_bytes, x);
    assert_eq!(report.peak.instruction, "s");
    let largest = &report.arrays[0];
    assert_eq!((largest.name.as_str(), largest.bytes, largest.padded_bytes), ("g", x, groups));
    assert_eq!(largest.meaning.as_deref(), Some("splits dim 2 into 256 x 10"));
    assert_eq!(largest.readers[0].source.as_deref(), Some("/home/me/norm.py:4"));
    let advice = largest.advice.as_deref().unwrap();
    assert!(advice.starts_with("work on it as f32[8,64,2560]"), "{advice}");
    let [rewritten] = report.advice.as_slice() else { panic!("{:?}", report.advice) };
    assert!(rewritten.contains("`tilewright opt` would bring the peak to 10.0 MiB"), "{rewritten}");
    let shown = report.to_string();
    assert!(shown.contains("g (splits dim 2 into 256 x 10) norm.py:3"), "{shown}");

    let donated = GROUPS.replace(
        "HloModule groups",
        "HloModule groups, input_output_alias={ {0}: (0, {}, may-alias) }",
    );
    let module = tilewright::parse(&donated).unwrap();
    let report = MemoryReport::new(&module, &tilewright::target("tpu-like").unwrap()).unwrap();
    assert_eq!(report.advice.len(), 1, "{:?}", report.advice);
    assert!(report.arrays.iter().all(|array| array.name != "t"), "t lies in x");
}

#[test]
fn ops_that_move_elements_are_told_in_words() {
    let cases = [
        ("f32[2,3,4]", "f32[2,4,3]{2,1,0} transpose(x), dimensions={0,2,1}", "swaps dims 1 and 2"),
        ("f32[2,12]", "f32[2,3,4] reshape(x)", "splits dim 1 into 3 x 4"),
        (
            "f32[2,3]{1,0}",
            "f32[2,3]{0,1} copy(x)",
            "orders the array in memory as {0,1} instead of {1,0}",
        ),
        ("f32[2,3]{1,0}", "f32[2,3]{1,0} copy(x)", "copies bytes as they are"),
        (
            "f32[2,12]{1,0}",
            "f32[2,3,4]{2,1,0} bitcast(x)",
            "names the same bytes anew: splits dim 1 into 3 x 4",
        ),
        (
            "f32[2,12]{0,1}",
            "f32[3,4,2]{2,1,0} bitcast(x)",
            "names the same bytes anew: splits dim 1 into 3 x 4",
        ),
        (
            "f32[2,3]{1,0}",
            "f32[2,3]{1,0:T(8,128)} copy(x)",
            "moves the array from {1,0} to {1,0:T(8,128)}",
        ),
        (
            "f32[2,3]{1,0}",
            "f32[3,2]{0,1} bitcast(x)",
            "names dims of the same bytes in another order",
        ),
        ("f32[2,3]{1,0}", "s32[2,3]{1,0} bitcast-convert(x)", "reads the same bits as s32"),
    ];
    for (of, op, words) in cases {
        let module = module(&format!("x = {of} parameter(0)\n  ROOT y = {op}"));
        let root = module.computation(module.entry().unwrap()).root().unwrap();
        assert_eq!(tilewright::report::meaning(&module, root).as_deref(), Some(words), "{op}");
    }
    let module = module("x = f32[2] parameter(0)\n  ROOT y = f32[2] sine(x)");
    let root = module.computation(module.entry().unwrap()).root().unwrap();
    assert_eq!(tilewright::report::meaning(&module, root), None);
}

/// Returns what would make the array of pairs of 4096 points smaller in a program that reads it by these instructions.
fn advice_on_pairs(pairs: &str, rest: &str) -> Option<String> {
    let text = format!(
        "HloModule of_pairs
add {{
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = f32[] add(a, b)
}}
less {{
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = pred[] compare(a, b), direction=LT
}}
first {{
  a = f32[] parameter(0)
  i = s32[] parameter(1)
  b = f32[] parameter(2)
  j = s32[] parameter(3)
  is_less = pred[] compare(a, b), direction=LT
  value = f32[] select(is_less, a, b)
  place = s32[] select(is_less, i, j)
  ROOT both = (f32[], s32[]) tuple(value, place)
}}
ENTRY main {{
  x = f32[4096,16] parameter(0)
  y = f32[4096,16] parameter(1)
  given = f32[4096,4096] parameter(2)
  zero = f32[] constant(0)
  pairs = f32[4096,4096] {pairs}
  {rest}
}}"
    );
    let module = parse(&text).unwrap();
    let target = tilewright::target("xla-cpu-0.12").unwrap();
    let report = MemoryReport::new(&module, &target).unwrap();
    let of_pairs = report.arrays.into_iter().find(|array| array.name == "pairs").unwrap();
    of_pairs.advice
}

#[test]
fn arrays_that_are_never_needed_whole_are_named() {
    const DOT: &str = "dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={1}";
    const SUM: &str =
        "ROOT s = f32[4096,16] dot(k, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}";
    let kernel = format!("k = f32[4096,4096] exponential(pairs)\n  {SUM}");
    let advice = advice_on_pairs(DOT, &kernel).unwrap();
    assert!(
        advice.contains("`jax.lax.map(f, xs, batch_size=256)` over dim 0 of `x`, with")
            && advice.ends_with("holds 4.0 MiB at a time"),
        "{advice}"
    );
    // Points and themselves; the other points; a softmax, which reads it again after a maximum.
    let itself = DOT.replace("dot(x, y)", "dot(x, x)");
    assert_eq!(advice_on_pairs(&itself, &kernel).as_ref(), Some(&advice));
    let other = kernel.replace("lhs_contracting_dims={1}, rhs", "lhs_contracting_dims={0}, rhs");
    assert!(advice_on_pairs(DOT, &other).unwrap().contains("over dim 0 of `y`"));
    let nearest = "places = s32[4096,4096] iota(), iota_dimension=1
  none = s32[] constant(0)
  least = (f32[4096], s32[4096]) reduce(pairs, places, zero, none), dimensions={1}, to_apply=first
  ROOT s = s32[4096] get-tuple-element(least), index=1";
    assert_eq!(advice_on_pairs(DOT, nearest).as_ref(), Some(&advice));
    let softmax = "sum = f32[4096] reduce(pairs, zero), dimensions={1}, to_apply=add
  sums = f32[4096,4096] broadcast(sum), dimensions={0}
  k = f32[4096,4096] divide(pairs, sums)\n  "
        .to_owned()
        + SUM;
    assert_eq!(advice_on_pairs(DOT, &softmax).as_ref(), Some(&advice));
    // What comes after the results is another matter, even if it needs all of them.
    let twice = kernel.replace("ROOT s", "s")
        + "\n  again = f32[4096,4096] dot(s, s), lhs_contracting_dims={1}, rhs_contracting_dims={1}
  ROOT t = f32[4096] reduce(again, zero), dimensions={1}, to_apply=add";
    assert_eq!(advice_on_pairs(DOT, &twice).as_ref(), Some(&advice));
    // Both dims are reduced; one is, and the other; it is sorted; it is a result; what all rows make comes back into it,
    // by a product or by a sum; a row is written.
    for rest in [
        "ROOT s = f32[] reduce(pairs, zero), dimensions={0,1}, to_apply=add",
        "a = f32[4096] reduce(pairs, zero), dimensions={0}, to_apply=add
  b = f32[4096] reduce(pairs, zero), dimensions={1}, to_apply=add
  ROOT s = f32[4096] add(a, b)",
        "k = f32[4096,4096] sort(pairs), dimensions={0}, to_apply=less
  ROOT s = f32[4096] reduce(k, zero), dimensions={1}, to_apply=add",
        "s = f32[4096] reduce(pairs, zero), dimensions={1}, to_apply=add
  ROOT all = (f32[4096,4096], f32[4096]) tuple(pairs, s)",
        "w = f32[4096,16] dot(pairs, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT s = f32[4096,16] dot(pairs, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
        "r = f32[4096] reduce(pairs, zero), dimensions={1}, to_apply=add
  t = f32[] reduce(r, zero), dimensions={0}, to_apply=add
  ts = f32[4096,4096] broadcast(t), dimensions={}
  k = f32[4096,4096] divide(pairs, ts)
  ROOT s = f32[4096] reduce(k, zero), dimensions={1}, to_apply=add",
        "none = s32[] constant(0)
  row = f32[1,4096] broadcast(zero), dimensions={}
  k = f32[4096,4096] dynamic-update-slice(pairs, row, none, none)
  ROOT s = f32[4096] reduce(k, zero), dimensions={1}, to_apply=add",
    ] {
        assert_eq!(advice_on_pairs(DOT, rest), None, "{rest}");
    }
    let rest = "ROOT s = f32[4096] reduce(pairs, zero), dimensions={1}, to_apply=add";
    let turned = "transpose(given), dimensions={1,0}";
    assert_eq!(advice_on_pairs(turned, rest), None);
}

#[test]
fn memory_is_that_of_one_device() {
    let text = "HloModule m, num_partitions=4
ENTRY main {
  x = f32[64,256] parameter(0), sharding={devices=[4,1]<=[4]}
  ROOT y = f32[64,256] sine(x), sharding={devices=[4,1]<=[4]}
}";
    let module = tilewright::parse(text).unwrap();
    let report = MemoryReport::new(&module, &tilewright::target("cpu").unwrap()).unwrap();
    assert_eq!(report.devices, Some(4));
    assert_eq!(report.peak.padded_bytes, 2 * 64 * 256 * 4 / 4);
    assert!(report.to_string().contains("on each of 4 devices"), "{report}");
    // 10 rows over 4 devices are 3 to each.
    let uneven = text.replace("[64,256]", "[10,256]");
    let module = tilewright::parse(&uneven).unwrap();
    let report = MemoryReport::new(&module, &tilewright::target("cpu").unwrap()).unwrap();
    assert_eq!((report.peak.padded_bytes, report.counted_whole), (2 * 3 * 256 * 4, 0));
}

#[test]
fn donating_is_advised_where_it_lowers_the_peak() {
    let product = "lhs_contracting_dims={1}, rhs_contracting_dims={0}";
    let text = format!(
        "HloModule m\nENTRY main {{\n  x = f32[256,256] parameter(0)\n  w = f32[256,256] parameter(1)\n  \
         y = f32[256,256] dot(x, w), {product}\n  ROOT z = f32[256,256] add(y, x)\n}}"
    );
    let module = tilewright::parse(&text).unwrap();
    let report = MemoryReport::new(&module, &tilewright::target("cpu").unwrap()).unwrap();
    assert_eq!(report.peak.padded_bytes, 4 * 256 * 256 * 4);
    let [advice] = report.advice.as_slice() else { panic!("{report}") };
    assert!(
        advice.contains("donating 1 argument") && advice.contains("peak to 768 KiB"),
        "{advice}"
    );
}

#[test]
fn runs_say_how_long_they_took() {
    let report = RunReport::interpreter(std::time::Duration::from_micros(1500));
    assert_eq!(report.to_string(), "interp: 1.500 ms");
}
