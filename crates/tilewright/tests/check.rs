//! Tests what `check` accepts, what it rejects, and what it reports as not covered.

use tilewright::ir::{ArrayLiteral, Data, ElementType, Literal};
use tilewright::report::GuardReport;
use tilewright::{
    Agreement, BranchCounts, CheckOptions, Excuse, RunOptions, Verified, Within, check,
};

fn module(body: &str) -> Verified {
    tilewright::parse(&format!("HloModule m\n\nENTRY e {{\n{body}\n}}\n")).unwrap()
}

fn checked(a: &str, b: &str) -> Agreement {
    check(&module(a), &module(b), &CheckOptions::default()).unwrap()
}

#[test]
fn what_is_never_finite_is_counted() {
    let text = "
  x = f32[6] parameter(0)
  y = f32[4] parameter(1)
  size = f32[6] abs(x)
  less = f32[6] negate(size)
  one = f32[] constant(1)
  ones = f32[6] broadcast(one), dimensions={}
  below = f32[6] subtract(less, ones)
  root = f32[6] sqrt(below)
  all = f32[10] concatenate(root, y), dimensions={0}
  ROOT t = (f32[10], f32[4]) tuple(all, y)";
    let agreement = checked(text, text);
    assert!(agreement.equal());
    let counts: Vec<_> = agreement.outputs.iter().map(|o| (o.not_compared, o.elements)).collect();
    assert_eq!(counts, [(6, 10), (0, 4)]);
}

/// However small outputs are, a difference is judged beside them.
#[test]
fn tiny_outputs_are_told_apart() {
    let scaled = |scale: &str, op: &str| {
        format!(
            "
  x = f32[1024] parameter(0)
  t = f32[1024] {op}(x)
  rate = f32[] constant({scale})
  rates = f32[1024] broadcast(rate), dimensions={{}}
  ROOT y = f32[1024] multiply(t, rates)"
        )
    };
    let right = scaled("1e-09", "tanh");
    assert!(checked(&right, &right).equal());
    let wrong = [("-1e-09", "tanh"), ("0", "tanh"), ("1.01e-09", "tanh"), ("1e-09", "sine")];
    for (scale, op) in wrong {
        let agreement = checked(&right, &scaled(scale, op));
        assert!(!agreement.is_within(), "{scale} {op}: {:?}", agreement.outputs);
    }
    let zero = "
  x = f32[1024] parameter(0)
  zero = f32[] constant(0)
  ROOT y = f32[1024] broadcast(zero), dimensions={}";
    assert!(!checked(&right, zero).is_within());
    assert!(!checked(zero, &right).is_within());
}

/// A difference that floats do not show is one: only a tolerance of the caller's own allows it.
#[test]
fn what_algebra_disproves_is_not_equal() {
    let first = "
  x = f32[64] parameter(0)
  ROOT y = f32[64] negate(x)";
    let second = "
  x = f32[64] parameter(0)
  tiny = f32[] constant(9.094947e-13)
  tinies = f32[64] broadcast(tiny), dimensions={}
  moved = f32[64] add(x, tinies)
  ROOT y = f32[64] negate(moved)";
    let agreement = checked(first, second);
    assert!(agreement.is_within() && !agreement.equal());
    insta::assert_snapshot!(agreement.to_string().lines().take(4).collect::<Vec<_>>().join("\n"));
    let how = CheckOptions::default().with_tolerance(Within { relative: 1e-6, absolute: 1e-9 });
    let allowed = check(&module(first), &module(second), &how).unwrap();
    assert!(allowed.equal() && allowed.doubts().count() == 1, "{allowed}");
}

#[test]
fn overflow_of_the_first_excuses_what_is_not_finite() {
    let first = "
  x = f32[64] parameter(0)
  e = f32[64] exponential(x)
  one = f32[] constant(1)
  ones = f32[64] broadcast(one), dimensions={}
  ROOT y = f32[64] divide(ones, e)";
    let second = "
  x = f32[64] parameter(0)
  e = f32[64] exponential(x)
  square = f32[64] multiply(e, e)
  ROOT y = f32[64] divide(e, square)";
    let agreement = checked(first, second);
    assert!(agreement.equal(), "{:?}", agreement.outputs);
    assert_eq!(agreement.outputs[0].excuse, Some(Excuse::Overflow));
}

#[test]
fn overflow_of_the_second_alone_is_a_difference() {
    let first = "
  x = f32[64] parameter(0)
  ROOT y = f32[64] tanh(x)";
    let second = "
  x = f32[64] parameter(0)
  twice = f32[64] add(x, x)
  e = f32[64] exponential(twice)
  one = f32[] constant(1)
  ones = f32[64] broadcast(one), dimensions={}
  above = f32[64] subtract(e, ones)
  below = f32[64] add(e, ones)
  ROOT y = f32[64] divide(above, below)";
    let large = ArrayLiteral::new(ElementType::F32, [64], Data::F32(vec![200.0; 64])).unwrap();
    let inputs = [vec![Literal::Array(large)]];
    let how = CheckOptions::default().with_inputs(&inputs);
    let agreement = check(&module(first), &module(second), &how).unwrap();
    let witness = agreement.outputs[0].witness.as_ref().expect("a difference");
    assert_eq!(witness.actual, "NaN");
}

/// An element is rounded to a multiple of 2^-7 on the way, which does not move with the
/// last place of the input.
const COARSE: &str = "
  x = f32[64] parameter(0)
  c = f32[] constant(65536)
  cs = f32[64] broadcast(c), dimensions={}
  far = f32[64] add(x, cs)
  ROOT y = f32[64] subtract(far, cs)";

#[test]
fn a_second_that_is_nearer_to_the_exact_result_is_let_pass() {
    let agreement = checked(
        COARSE,
        "
  x = f32[64] parameter(0)
  ROOT y = f32[64] copy(x)",
    );
    assert!(agreement.equal(), "{:?}", agreement.outputs);
    assert_eq!(agreement.outputs[0].excuse, Some(Excuse::AsNear));
}

#[test]
fn a_second_that_is_further_from_it_is_not() {
    let agreement = checked(
        COARSE,
        "
  x = f32[64] parameter(0)
  c = f32[] constant(0.0625)
  cs = f32[64] broadcast(c), dimensions={}
  ROOT y = f32[64] add(x, cs)",
    );
    assert!(!agreement.equal());
}

#[test]
fn differences_are_in_units_of_their_output() {
    let agreement = checked(
        "
  x = f32[64] parameter(0)
  ROOT y = f32[64] add(x, x)",
        "
  x = f32[64] parameter(0)
  c = f32[] constant(3)
  cs = f32[64] broadcast(c), dimensions={}
  ROOT y = f32[64] multiply(x, cs)",
    );
    // 3x is off from 2x by half of the largest.
    assert!((agreement.outputs[0].max_relative - 0.5).abs() < 1e-6);
    assert!(agreement.outputs[0].largest_on.is_some());
}

fn calling(scale: &str, target: &str, option: &str) -> String {
    format!(
        "
  x = f32[16] parameter(0)
  c = f32[] constant({scale})
  cs = f32[16] broadcast(c), dimensions={{}}
  y = f32[16] multiply(x, cs)
  called = (f32[16], s32[3]) custom-call(y), custom_call_target=\"{target}\", backend_config=\"{option}\"
  z = f32[16] get-tuple-element(called), index=0
  n = s32[3] get-tuple-element(called), index=1
  both = f32[16] add(z, y)
  ROOT t = (f32[16], s32[3]) tuple(both, n)"
    )
}

#[test]
fn unknown_calls_are_functions_of_what_they_are_given() {
    let first = calling("3", "callback", "a");
    assert!(checked(&first, &first).equal());
    // Rounding before it is no difference after it.
    assert!(checked(&first, &calling("3.0000002", "callback", "a")).equal());
    for other in [("4", "callback", "a"), ("3", "hallo", "a"), ("3", "callback", "b")] {
        let (scale, target, option) = other;
        assert!(!checked(&first, &calling(scale, target, option)).equal(), "{other:?}");
    }
    let module = module(&first);
    let inputs = tilewright::random_inputs(&module, 0).unwrap();
    let run = tilewright::run(&module, &inputs, &tilewright::RunOptions::default());
    assert!(run.unwrap_err().to_string().contains("`callback` is not known"));
}

#[test]
fn shape_calls_of_partitioners_run() {
    let sharded = |scale: &str| {
        format!(
            "
  x = f32[8,6] parameter(0)
  c = f32[] constant({scale})
  cs = f32[4,6] broadcast(c), dimensions={{}}
  part = f32[4,6] custom-call(x), custom_call_target=\"SPMDFullToShardShape\"
  y = f32[4,6] multiply(part, cs)
  whole = f32[8,6] custom-call(y), custom_call_target=\"SPMDShardToFullShape\"
  local = (f32[8,3]) custom-call(whole), custom_call_target=\"xla.sdy.GlobalToLocalShape\"
  of = f32[8,3] get-tuple-element(local), index=0
  ROOT all = f32[8,6] custom-call(of), custom_call_target=\"xla.sdy.LocalToGlobalShape\""
        )
    };
    let agreement = checked(&sharded("2"), &sharded("2"));
    assert!(agreement.equal() && agreement.outputs[0].not_compared == 0);
    assert!(!checked(&sharded("2"), &sharded("2.5")).equal());
}

/// `p - mean(q)` of two products of the same factors, which are constant along the mean: zero
/// to the last bit where both are multiplied in one order.
fn centred(first: [&str; 3], second: [&str; 3], count: &str) -> Verified {
    let product = |name: &str, [a, b, c]: [&str; 3]| {
        format!(
            "
  {name}.0 = f32[16] multiply({a}, {b})
  {name}.1 = f32[16] multiply({name}.0, {c})
  {name} = f32[16,32] broadcast({name}.1), dimensions={{0}}"
        )
    };
    tilewright::parse(&format!(
        "HloModule m

add {{
  l = f32[] parameter(0)
  r = f32[] parameter(1)
  ROOT s = f32[] add(l, r)
}}

ENTRY e {{
  x = f32[16] parameter(0)
  y = f32[16] parameter(1)
  z = f32[16] parameter(2){}{}
  zero = f32[] constant(0)
  sum = f32[16] reduce(q, zero), dimensions={{1}}, to_apply=add
  count = f32[] constant({count})
  counts = f32[16] broadcast(count), dimensions={{}}
  mean = f32[16] divide(sum, counts)
  means = f32[16,32] broadcast(mean), dimensions={{0}}
  ROOT d = f32[16,32] subtract(p, means)
}}
",
        product("p", first),
        product("q", second),
    ))
    .unwrap()
}

#[test]
fn zeros_that_no_engine_gives_are_not_asked_for() {
    let (one, other) = (["x", "y", "z"], ["y", "z", "x"]);
    let checked = |a: &Verified, b: &Verified| check(a, b, &CheckOptions::default()).unwrap();
    let exact = centred(one, one, "32");
    let rounded = checked(&exact, &centred(one, other, "32"));
    assert!(rounded.equal(), "{:?}", rounded.outputs);
    assert_eq!(rounded.outputs[0].excuse, Some(Excuse::Sensitive));
    // Another count is not rounding.
    assert!(!checked(&exact, &centred(one, other, "32.001")).equal());
}

/// Returns the sums of what the mean of each channel leaves of it, by rows first or all at
/// once, beside zero: over the reals they are zero.
fn residue(by_rows: bool, value: &str) -> Verified {
    let sum = if by_rows {
        "rows = f32[4,16] reduce(rest, zero), dimensions={1}, to_apply=add
  sum = f32[16] reduce(rows, zero), dimensions={0}, to_apply=add"
    } else {
        "sum = f32[16] reduce(rest, zero), dimensions={0,1}, to_apply=add"
    };
    tilewright::parse(&format!(
        "HloModule m

add {{
  l = f32[] parameter(0)
  r = f32[] parameter(1)
  ROOT s = f32[] add(l, r)
}}

ENTRY e {{
  x = f32[4,64,16] parameter(0)
  zero = f32[] constant(0)
  total = f32[16] reduce(x, zero), dimensions={{0,1}}, to_apply=add
  part = f32[] constant(0.00390625)
  parts = f32[16] broadcast(part), dimensions={{}}
  mean = f32[16] multiply(total, parts)
  means = f32[4,64,16] broadcast(mean), dimensions={{2}}
  rest = f32[4,64,16] subtract(x, means)
  {sum}
  zeros = f32[16] broadcast(zero), dimensions={{}}
  none = pred[16] compare(sum, zeros), direction=EQ
  one = f32[] constant({value})
  ones = f32[16] broadcast(one), dimensions={{}}
  ROOT count = f32[16] select(none, ones, zeros)
}}
"
    ))
    .unwrap()
}

#[test]
fn a_residue_that_is_zero_in_one_order_of_its_sums_is_let_pass() {
    let options = CheckOptions::default().with_seeds(8);
    let checked = |a: &Verified, b: &Verified| check(a, b, &options).unwrap();
    let rounded = checked(&residue(false, "1"), &residue(true, "1"));
    assert!(rounded.equal(), "{:?}", rounded.outputs);
    assert_eq!(rounded.outputs[0].excuse, Some(Excuse::Sensitive));
    assert!(!checked(&residue(false, "1"), &residue(false, "1000")).equal());
}

#[test]
fn whole_arrays_of_which_parts_are_taken_are_the_same_on_all_devices() {
    let call = |key: &str| {
        format!(
            "frontend_attributes={{xla.sdy.{key}_shardings=\
             \"#sdy.sharding_per_value<[<@m, [{{\\\"x\\\"}}]>]>\",\
             xla.sdy.manual_axes=\"#sdy<manual_axes{{\\\"x\\\"}}>\"}}"
        )
    };
    let by_parts = |factor: &str| {
        tilewright::parse(&format!(
            "HloModule m, frontend_attributes={{xla.sdy.meshes={{m = #sdy.mesh<[\"x\"=4]>}}}}

ENTRY e {{
  x = f32[8] parameter(0)
  part = f32[2] custom-call(x), custom_call_target=\"xla.sdy.GlobalToLocalShape\", {}
  two = f32[] constant({factor})
  twos = f32[2] broadcast(two), dimensions={{}}
  twice = f32[2] multiply(part, twos)
  ROOT all = f32[8] custom-call(twice), custom_call_target=\"xla.sdy.LocalToGlobalShape\", {}
}}
",
            call("in"),
            call("out"),
        ))
        .unwrap()
    };
    let whole = module("x = f32[8] parameter(0)\n  ROOT y = f32[8] add(x, x)");
    let equal = |a: &Verified, b: &Verified| check(a, b, &CheckOptions::default()).unwrap().equal();
    assert!(equal(&by_parts("2"), &whole));
    assert!(equal(&whole, &by_parts("2")));
    assert!(!equal(&whole, &by_parts("2.5")));
}

/// Returns a program of four devices, each of which sums its part of an array, and multiplies the
/// sum of all devices by a number.
fn mapped(number: &str) -> Verified {
    let text = r##"HloModule m, num_partitions=4, frontend_attributes={xla.sdy.meshes={mesh = #sdy.mesh<["x"=4]>}}

add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT sum = f32[] add(a, b)
}

body {
  p = f32[2] parameter(0)
  all = f32[2] all-reduce(p), channel_id=1, replica_groups={{0,1,2,3}}, use_global_device_ids=true, to_apply=add
  number = f32[] constant(NUMBER)
  numbers = f32[2] broadcast(number), dimensions={}
  ROOT done = f32[2] multiply(all, numbers)
}

ENTRY main {
  x = f32[8] parameter(0), frontend_attributes={xla.sdy.sharding="#sdy.sharding<@mesh, [{\"x\"}]>"}
  part = f32[2] custom-call(x), custom_call_target="xla.sdy.GlobalToLocalShape", custom_call_has_side_effect=true, frontend_attributes={xla.sdy.in_shardings="#sdy.sharding_per_value<[<@mesh, [{\"x\"}]>]>",xla.sdy.manual_axes="#sdy<manual_axes{\"x\"}>"}
  done = f32[2] call(part), to_apply=body
  ROOT whole = f32[8] custom-call(done), custom_call_target="xla.sdy.LocalToGlobalShape", custom_call_has_side_effect=true, frontend_attributes={xla.sdy.manual_axes="#sdy<manual_axes{\"x\"}>",xla.sdy.out_shardings="#sdy.sharding_per_value<[<@mesh, [{\"x\"}]>]>"}
}
"##;
    tilewright::parse(&text.replace("NUMBER", number)).unwrap()
}

#[test]
fn parts_of_devices_are_those_of_the_program_in_wider_floats_too() {
    let options = CheckOptions::default();
    assert!(check(&mapped("0.5"), &mapped("0.5"), &options).unwrap().equal());
    let differs = check(&mapped("0.5"), &mapped("0.501"), &options).unwrap();
    assert!(!differs.equal(), "{differs}");
}

/// Absolute values by a guard whose second branch computes them by this op.
fn guarded_by(op: &str) -> Verified {
    let text = format!(
        "HloModule m

kept {{
  ROOT y = f32[8] parameter(0)
}}

again {{
  x = f32[8] parameter(0)
  ROOT y = f32[8] {op}(x)
}}

ENTRY e {{
  x = f32[8] parameter(0)
  size = f32[8] abs(x)
  holds = s32[] constant(0)
  ROOT y = f32[8] conditional(holds, size, x), branch_computations={{kept, again}}, \
           frontend_attributes={{tilewright_guard=\"sizes\"}}
}}
"
    );
    tilewright::parse(&text).unwrap()
}

/// The second branch of a guard, which no inputs reach here, is compared as well.
#[test]
fn both_branches_of_a_guard_are_compared() {
    let plain = module("  x = f32[8] parameter(0)\n  ROOT y = f32[8] abs(x)");
    let how = CheckOptions::default();
    assert!(check(&plain, &guarded_by("abs"), &how).unwrap().equal());
    let wrong = check(&plain, &guarded_by("negate"), &how).unwrap();
    assert!(!wrong.equal());
    assert!(wrong.to_string().contains("guards-fail"), "{wrong}");
}

/// A run counts the branches that guards take.
#[test]
fn guards_are_counted() {
    let module = guarded_by("abs");
    let counts = BranchCounts::new();
    let options = RunOptions::default().with_branches(&counts);
    let inputs = tilewright::random_inputs(&module, 0).unwrap();
    for _ in 0..3 {
        tilewright::run(&module, &inputs, &options).unwrap();
    }
    let [guard] = &GuardReport::of(&module, &counts)[..] else { panic!("one guard") };
    assert_eq!((&*guard.name, guard.held, guard.failed), ("y", 3, 0));
}
