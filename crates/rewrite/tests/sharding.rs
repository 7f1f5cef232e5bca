//! How values lie over devices, and what these exchange.
//!
//! Expected exchanges are those of the programs that XLA's partitioner makes (jaxlib 0.12.0.1): the
//! count of its collectives, and the bytes of their operands.

use crate::common::module;
use tilewright_ir::devices::ReplicaGroups;
use tilewright_ir::{InstId, Module};
use tilewright_rewrite::analysis::sharding::{DeviceMesh, Flow, Spread, Traffic};
use tilewright_target::Target;

const HEAD: &str = r#"HloModule m, frontend_attributes={xla.sdy.meshes={mesh = #sdy.mesh<["data"=4, "model"=2, "one"=1]>}}

add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT sum = f32[] add(a, b)
}

ENTRY main {
"#;

/// Returns the line of a parameter with these axes for its dims.
fn parameter(name: &str, shape: &str, number: usize, dims: &str) -> String {
    let dims = dims.replace('"', "\\\"");
    format!(
        "  {name} = {shape} parameter({number}), \
         frontend_attributes={{xla.sdy.sharding=\"#sdy.sharding<@mesh, {dims}>\"}}\n"
    )
}

/// Returns a module with `x`, which axes divide in this way, and these instructions.
fn with_x(shape: &str, dims: &str, rest: &str) -> Module {
    let text =
        format!("{HEAD}{}  zero = f32[] constant(0)\n{rest}\n}}\n", parameter("x", shape, 0, dims));
    module(&text).into_inner()
}

fn named(module: &Module, name: &str) -> InstId {
    let mut all = module.instructions(module.entry().unwrap());
    all.find(|&id| module.name_of(id) == name).unwrap()
}

/// Returns the number of parts of each dim of `y`, and the traffic of the module.
fn flows(module: &Module) -> (Option<Vec<i64>>, Traffic) {
    let mesh = DeviceMesh::of(module).unwrap();
    let flow = Flow::of(module, &mesh);
    let dims = |spread: &Spread| spread.iter().map(|axes| mesh.parts(axes)).collect();
    (flow.spread(named(module, "y")).map(dims), flow.exchanges().traffic())
}

const NONE: Traffic = Traffic { rounds: 0, chain: 0, bytes: 0 };

#[test]
fn spreads_go_to_results_without_an_exchange() {
    let cases = [
        // Elementwise, and past a dim of its own.
        (r#"[{"data"}, {}]"#, "ROOT y = f32[8,6] negate(x)", vec![4, 1]),
        (r#"[{"data"}, {}]"#, "ROOT y = f32[6,8] transpose(x), dimensions={1,0}", vec![1, 4]),
        (r#"[{"data"}, {}]"#, "ROOT y = f32[8,3,6] broadcast(x), dimensions={0,2}", vec![4, 1, 1]),
        // The major part of a dim has the axes, as far as it has parts.
        (r#"[{"data"}, {}]"#, "ROOT y = f32[4,2,6] reshape(x)", vec![4, 1, 1]),
        (r#"[{"data", "model"}, {}]"#, "ROOT y = f32[4,2,6] reshape(x)", vec![4, 2, 1]),
        (r#"[{"data"}, {}]"#, "ROOT y = f32[48] reshape(x)", vec![4]),
        // A reshape may divide the devices of an axis.
        (r#"[{"data"}, {}]"#, "ROOT y = f32[2,4,6] reshape(x)", vec![2, 2, 1]),
        // An axis of one device divides nothing.
        (r#"[{"one"}, {}]"#, "ROOT y = f32[6,8] reshape(x)", vec![1, 1]),
        // What is not divided may be cut.
        (r#"[{"data"}, {}]"#, "ROOT y = f32[8,3] slice(x), slice={[0:8], [0:3]}", vec![4, 1]),
        (
            r#"[{"data"}, {}]"#,
            "ROOT y = f32[8] reduce(x, zero), dimensions={1}, to_apply=add",
            vec![4],
        ),
        (r#"[{}, {}]"#, "ROOT y = f32[6,2,4] reshape(x)", vec![1, 1, 1]),
    ];
    for (dims, rest, expected) in cases {
        let (found, traffic) = flows(&with_x("f32[8,6]", dims, &format!("  {rest}")));
        assert_eq!((found, traffic), (Some(expected), NONE), "{dims} {rest}");
    }
}

#[test]
fn operands_agree_or_nothing_is_known() {
    let both = |of_x: &str, of_z: &str| {
        let z = parameter("z", "f32[8,6]", 1, of_z);
        flows(&with_x("f32[8,6]", of_x, &format!("{z}  ROOT y = f32[8,6] add(x, z)"))).0
    };
    assert_eq!(both(r#"[{"data"}, {}]"#, "[{}, {}]"), Some(vec![4, 1]));
    assert_eq!(both(r#"[{"data"}, {}]"#, r#"[{}, {"model"}]"#), Some(vec![4, 2]));
    assert_eq!(both(r#"[{"data"}, {}]"#, r#"[{"data", "model"}, {}]"#), Some(vec![8, 1]));
    assert_eq!(both(r#"[{"data"}, {}]"#, r#"[{"model"}, {}]"#), None);
    assert_eq!(both(r#"[{"model"}, {}]"#, r#"[{}, {"model"}]"#), None);
}

#[test]
fn groups_of_devices_lie_along_axes() {
    let mesh = DeviceMesh::of(&with_x("f32[8]", "[{}]", "  ROOT y = f32[8] negate(x)")).unwrap();
    let of = |lists: &[&[i64]]| {
        let lists = lists.iter().map(|list| list.to_vec()).collect();
        mesh.axes_of(&ReplicaGroups::Lists(lists))
    };
    // Axes of two devices each: two make up "data", the third is "model".
    assert_eq!(of(&[&[0, 1], &[2, 3], &[4, 5], &[6, 7]]), Some(0b100));
    assert_eq!(of(&[&[0, 2, 4, 6], &[1, 3, 5, 7]]), Some(0b011));
    assert_eq!(of(&[&[0, 4], &[1, 5], &[2, 6], &[3, 7]]), Some(0b001));
    assert_eq!(of(&[&[0, 1, 2, 3, 4, 5, 6, 7]]), Some(0b111));
    assert_eq!(of(&[]), Some(0b111));
    assert_eq!(of(&[&[0, 3], &[1, 2]]), None);
}

#[test]
fn bits_in_another_shape_are_not_followed() {
    let rest = "  ROOT y = u8[8,6,4] bitcast-convert(x)";
    assert_eq!(flows(&with_x("f32[8,6]", r#"[{"data"}, {}]"#, rest)), (None, NONE));
}

#[test]
fn a_wait_may_be_a_tenth_longer() {
    let mut target = Target::builtin("tpu-like").unwrap();
    (target.round_cycles, target.link_bytes_per_cycle) = (1000.0, 2.0);
    let given = Traffic { rounds: 2, chain: 2, bytes: 1000 };
    let exceeds = |rounds, chain, bytes| Traffic { rounds, chain, bytes }.exceeds(&given, &target);
    assert!(exceeds(3, 2, 0));
    assert!(exceeds(2, 3, 0));
    // 2,500 cycles, and a tenth of them: 500 bytes.
    assert!(!exceeds(2, 2, 1500));
    assert!(exceeds(2, 2, 1502));
    assert!(!exceeds(1, 1, 3500));
    assert!(exceeds(1, 1, 3502));
}

#[test]
fn a_reduce_takes_a_round_for_each_divided_dim() {
    let sum = |dims: &str, along: &str, shape: &str| {
        let rest = format!("  ROOT y = {shape} reduce(x, zero), dimensions={along}, to_apply=add");
        flows(&with_x("f32[8,8,16]", dims, &rest)).1
    };
    let divided = r#"[{"data"}, {"model"}, {}]"#;
    assert_eq!(sum(divided, "{2}", "f32[8,8]"), NONE);
    // Half of the columns are on each device.
    assert_eq!(sum(divided, "{0}", "f32[8,16]"), Traffic { rounds: 1, chain: 1, bytes: 256 });
    assert_eq!(sum(divided, "{0,1}", "f32[16]"), Traffic { rounds: 2, chain: 2, bytes: 128 });
    let both = r#"[{"data", "model"}, {}, {}]"#;
    assert_eq!(sum(both, "{0,1}", "f32[16]"), Traffic { rounds: 1, chain: 1, bytes: 64 });
}

#[test]
fn rounds_are_shared_by_what_does_not_wait() {
    let sums = |second: &str| {
        let rest = format!(
            "  s = f32[16] reduce(x, zero), dimensions={{0}}, to_apply=add
  b = f32[8,16] broadcast(s), dimensions={{1}}
  d = f32[8,16] subtract(x, b)
  y = f32[16] reduce({second}, zero), dimensions={{0}}, to_apply=add
  ROOT t = (f32[16], f32[16]) tuple(s, y)"
        );
        flows(&with_x("f32[8,16]", r#"[{"data"}, {}]"#, &rest)).1
    };
    assert_eq!(sums("x"), Traffic { rounds: 1, chain: 1, bytes: 128 });
    assert_eq!(sums("d"), Traffic { rounds: 2, chain: 2, bytes: 128 });
}

#[test]
fn what_is_cut_across_its_parts_moves() {
    let moved = Traffic { rounds: 1, chain: 1, bytes: 48 };
    for rest in [
        // Three parts of 16 elements are not four of 12.
        "ROOT y = f32[3,16] reshape(x)",
        "ROOT y = f32[5,6] slice(x), slice={[1:6], [0:6]}",
    ] {
        let found = flows(&with_x("f32[8,6]", r#"[{"data"}, {}]"#, &format!("  {rest}")));
        assert_eq!(found, (None, moved), "{rest}");
    }
}

#[test]
fn a_constraint_moves_what_does_not_lie_so() {
    let asked = |dims: &str| {
        let sharding = format!("#sdy.sharding_per_value<[<@mesh, {}>]>", dims.replace('"', "\\\""));
        let rest = format!(
            "  ROOT y = f32[8,6] custom-call(x), custom_call_target=\"Sharding\", \
             frontend_attributes={{xla.sdy.sharding=\"{sharding}\"}}"
        );
        flows(&with_x("f32[8,6]", r#"[{"data"}, {}]"#, &rest))
    };
    assert_eq!(asked(r#"[{"data"}, {}]"#), (Some(vec![4, 1]), NONE));
    assert_eq!(asked(r#"[{"data", "model"}, {}]"#), (Some(vec![8, 1]), NONE));
    let gathered = Traffic { rounds: 1, chain: 1, bytes: 48 };
    assert_eq!(asked("[{}, {}]"), (Some(vec![1, 1]), gathered));
}

#[test]
fn products_are_summed_over_contracted_axes() {
    let product = |of_x: &str, of_w: &str| {
        let w = parameter("w", "f32[6,4]", 1, of_w);
        let dims = "lhs_contracting_dims={1}, rhs_contracting_dims={0}";
        flows(&with_x("f32[8,6]", of_x, &format!("{w}  ROOT y = f32[8,4] dot(x, w), {dims}")))
    };
    let (data, whole) = (r#"[{"data"}, {}]"#, "[{}, {}]");
    assert_eq!(product(data, whole), (Some(vec![4, 1]), NONE));
    assert_eq!(product(data, r#"[{}, {"model"}]"#), (Some(vec![4, 2]), NONE));
    let summed = Traffic { rounds: 1, chain: 1, bytes: 32 };
    let columns = product(r#"[{"data"}, {"model"}]"#, r#"[{"model"}, {}]"#);
    assert_eq!(columns, (Some(vec![4, 1]), summed));
}

#[test]
fn tiles_of_devices_are_axes() {
    let y = |of_x: &str, of_z: &str| {
        let text = format!(
            "HloModule m\n\nENTRY main {{
  x = f32[8,8] parameter(0), sharding={{{of_x}}}
  z = f32[8,8] parameter(1), sharding={{{of_z}}}
  ROOT y = f32[8,8] add(x, z)\n}}\n"
        );
        let module = module(&text).into_inner();
        let mesh = DeviceMesh::of(&module)?;
        let flow = Flow::of(&module, &mesh);
        let spread = flow.spread(named(&module, "y"))?;
        Some(spread.iter().map(|axes| mesh.parts(axes)).collect::<Vec<i64>>())
    };
    let rows = "devices=[4,1,2]<=[8] last_tile_dim_replicate";
    assert_eq!(y(rows, "replicated"), Some(vec![4, 1]));
    // The columns are divided among the two devices that have the same rows.
    assert_eq!(y(rows, "devices=[1,2,4]<=[4,2]T(1,0) last_tile_dim_replicate"), Some(vec![4, 2]));
    assert_eq!(y(rows, "devices=[8,1]<=[8]"), Some(vec![8, 1]));
    // Rows of either are in another order.
    assert_eq!(y(rows, "devices=[4,1,2]<=[2,4]T(1,0) last_tile_dim_replicate"), None);
    assert_eq!(y("devices=[2,1,3]<=[6] last_tile_dim_replicate", rows), None);
    assert_eq!(y("devices=[2,4]0,1,2,3,4,5,6,7", rows), None);
    assert_eq!(y("replicated", "maximal device=0"), None);
}

#[test]
fn what_is_partitioned_has_a_mesh_without_axes() {
    let text = "HloModule m

add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT sum = f32[] add(a, b)
}

ENTRY main {
  x = f32[8,8] parameter(0), sharding={devices=[8,1]<=[8]}
  ROOT y = f32[8,8] all-reduce(x), replica_groups={{0,1,2,3,4,5,6,7}}, to_apply=add
}
";
    assert_eq!(DeviceMesh::of(&module(text)).map(|mesh| mesh.devices()), Some(1));
}

#[test]
fn calls_are_looked_into() {
    let text = HEAD.replace(
        "ENTRY main {",
        "sums {
  p = f32[8,16] parameter(0)
  zero = f32[] constant(0)
  sum = f32[16] reduce(p, zero), dimensions={0}, to_apply=add
  ROOT both = (f32[16], f32[8,16]) tuple(sum, p)
}

ENTRY main {",
    );
    let x = parameter("x", "f32[8,16]", 0, r#"[{"data"}, {}]"#);
    let module = module(&format!(
        "{text}{x}  both = (f32[16], f32[8,16]) call(x), to_apply=sums
  again = f32[8,16] get-tuple-element(both), index=1
  ROOT y = f32[8,16] negate(again)
}}
"
    ))
    .into_inner();
    let summed = Traffic { rounds: 1, chain: 1, bytes: 64 };
    assert_eq!(flows(&module), (Some(vec![4, 1]), summed));
}

#[test]
fn modules_for_one_device_have_no_mesh() {
    for head in [
        "HloModule m".to_owned(),
        r#"HloModule m, frontend_attributes={xla.sdy.meshes={mesh = #sdy.mesh<["a"=1]>}}"#.to_owned(),
        r#"HloModule m, frontend_attributes={xla.sdy.meshes={}}"#.to_owned(),
        r#"HloModule m, frontend_attributes={xla.sdy.meshes={a = #sdy.mesh<["a"=2]>, b = #sdy.mesh<["a"=2]>}}"#.to_owned(),
        format!("HloModule m, frontend_attributes={{xla.sdy.meshes={{mesh = #sdy.mesh<[\"a\"={}, \"b\"={}]>}}}}", i64::MAX, i64::MAX),
    ] {
        let text = format!("{head}\n\nENTRY main {{\n  ROOT x = f32[8] parameter(0)\n}}\n");
        assert!(DeviceMesh::of(&module(&text)).is_none(), "{head}");
    }
}

/// Returns a custom call into a manual computation or out of it, along `manual` axes.
fn border(result: &str, target: &str, key: &str, sharding: &str, manual: &str) -> String {
    let attribute = |text: String| text.replace('"', "\\\"");
    let sharding = attribute(format!("#sdy.sharding_per_value<[<@mesh, {sharding}>]>"));
    let manual = attribute(format!("#sdy<manual_axes{{{manual}}}>"));
    format!(
        "{result}, custom_call_target=\"xla.sdy.{target}\", custom_call_has_side_effect=true, \
         frontend_attributes={{xla.sdy.{key}=\"{sharding}\",xla.sdy.manual_axes=\"{manual}\"}}"
    )
}

#[test]
fn manual_axes_divide_nothing_within() {
    let into = |shape: &str, dims: &str, sharding: &str, manual: &str| {
        let line = border(
            &format!("  ROOT y = {shape} custom-call(x)"),
            "GlobalToLocalShape",
            "in_shardings",
            sharding,
            manual,
        );
        flows(&with_x("f32[8,6]", dims, &line)).0
    };
    let both = r#"[{"data"}, {"model"}]"#;
    assert_eq!(into("f32[2,3]", both, both, r#""data", "model""#), Some(vec![1, 1]));
    assert_eq!(into("f32[2,6]", both, both, r#""data""#), Some(vec![1, 2]));
    // An open dim stays divided as its operand is.
    let open = r#"[{"data", ?}, {?}]"#;
    assert_eq!(into("f32[2,6]", both, open, r#""data""#), Some(vec![1, 2]));
    assert_eq!(into("f32[2,6]", "[{}, {}]", open, r#""data""#), None);
}

#[test]
fn the_parts_of_all_devices_lie_as_the_program_says() {
    let out = |sharding: &str| {
        let inner = border(
            "  p = f32[2,6] custom-call(x)",
            "GlobalToLocalShape",
            "in_shardings",
            r#"[{"data"}, {"model"}]"#,
            r#""data""#,
        );
        let outer = border(
            "  ROOT y = f32[8,6] custom-call(p)",
            "LocalToGlobalShape",
            "out_shardings",
            sharding,
            r#""data""#,
        );
        let dims = r#"[{"data"}, {"model"}]"#;
        flows(&with_x("f32[8,6]", dims, &format!("{inner}\n{outer}"))).0
    };
    assert_eq!(out(r#"[{"data"}, {"model"}]"#), Some(vec![4, 2]));
    assert_eq!(out(r#"[{"data"}, {}]"#), Some(vec![4, 1]));
    assert_eq!(out(r#"[{"data", ?}, {?}]"#), Some(vec![4, 2]));
}

/// Returns a module whose entry has `x`, which axes divide in this way, and these instructions, and
/// which has a loop's body with these instructions and this state besides the counter.
fn with_loop(dims: &str, rest: &str, state: &str, turn: &str) -> Module {
    let all = format!("(s32[], {state})");
    let parts = state.split(", ").enumerate().map(|(place, part)| {
        let index = place + 1;
        format!("  e{index} = {part} get-tuple-element(state), index={index}\n")
    });
    let parts: String = parts.collect();
    let computations = format!(
        "body {{
  state = {all} parameter(0)
  i = s32[] get-tuple-element(state), index=0
{parts}  zero = f32[] constant(0)
{turn}}}

condition {{
  state = {all} parameter(0)
  i = s32[] get-tuple-element(state), index=0
  three = s32[] constant(3)
  ROOT more = pred[] compare(i, three), direction=LT
}}

"
    );
    let entry = parameter("x", "f32[8,6]", 0, dims);
    let text = HEAD.replace("ENTRY", &format!("{computations}ENTRY"))
        + &format!("{entry}  zero = f32[] constant(0)\n  start = s32[] constant(0)\n{rest}}}\n");
    module(&text).into_inner()
}

#[test]
fn the_state_of_a_loop_is_followed() {
    let divided = r#"[{"data"}, {}]"#;
    let entry = |state: &str, init: &str, last: usize, shape: &str| {
        format!(
            "  init = (s32[], {state}) tuple(start, {init})
  loop = (s32[], {state}) while(init), condition=condition, body=body
  ROOT y = {shape} get-tuple-element(loop), index={last}\n"
        )
    };
    // Each turn sums over the divided dim: one round, counted once.
    let sums = "  s = f32[6] reduce(e1, zero), dimensions={0}, to_apply=add
  sum = f32[6] add(s, e2)
  ROOT out = (s32[], f32[8,6], f32[6]) tuple(i, e1, sum)\n";
    let zeros = "  zeros = f32[6] broadcast(zero), dimensions={}\n";
    let (state, init) = ("f32[8,6], f32[6]", "x, zeros");
    let rest = zeros.to_owned() + &entry(state, init, 2, "f32[6]");
    let once = Traffic { rounds: 1, chain: 1, bytes: 24 };
    assert_eq!(flows(&with_loop(divided, &rest, state, sums)), (Some(vec![1]), once));
    // Where the turns are counted, each makes its round, which waits for the turn before.
    let counted = format!("  one = s32[] constant(1)\n  next = s32[] add(i, one)\n{sums}");
    let counted = counted.replace("tuple(i, ", "tuple(next, ");
    let thrice = Traffic { rounds: 3, chain: 3, bytes: 72 };
    assert_eq!(flows(&with_loop(divided, &rest, state, &counted)), (Some(vec![1]), thrice));
    let never =
        format!("  three = s32[] constant(3)\n{}", rest.replace("tuple(start", "tuple(three"));
    assert_eq!(flows(&with_loop(divided, &never, state, &counted)).1, NONE);
    // A sum after the loop waits for its last turn, and is a round of its own, with sums that do not wait.
    let after = rest.replace("ROOT y", "y")
        + "  first = f32[6] reduce(x, zero), dimensions={0}, to_apply=add
  again = f32[8,6] broadcast(y), dimensions={1}
  more = f32[8,6] add(again, x)
  last = f32[6] reduce(more, zero), dimensions={0}, to_apply=add
  ROOT sum = f32[6] add(first, last)\n";
    let then = Traffic { rounds: 4, chain: 4, bytes: 72 + 24 + 24 };
    assert_eq!(flows(&with_loop(divided, &after, state, &counted)).1, then);
    // What begins whole is divided as each turn leaves it.
    let adds = "  sum = f32[8,6] add(e1, e2)
  ROOT out = (s32[], f32[8,6], f32[8,6]) tuple(i, e1, sum)\n";
    let zeros = "  zeros = f32[8,6] broadcast(zero), dimensions={}\n";
    let state = "f32[8,6], f32[8,6]";
    let rest = zeros.to_owned() + &entry(state, init, 2, "f32[8,6]");
    assert_eq!(flows(&with_loop(divided, &rest, state, adds)), (Some(vec![4, 1]), NONE));
    // Nothing is known of what a turn leaves in another way than it was.
    let other = r#"[{}, {"data"}]"#.replace('"', "\\\"");
    let moves = format!(
        "  moved = f32[8,6] custom-call(e1), custom_call_target=\"Sharding\", \
         frontend_attributes={{xla.sdy.sharding=\"#sdy.sharding_per_value<[<@mesh, {other}>]>\"}}
  ROOT out = (s32[], f32[8,6]) tuple(i, moved)\n"
    );
    let rest = entry("f32[8,6]", "x", 1, "f32[8,6]");
    assert_eq!(flows(&with_loop(divided, &rest, "f32[8,6]", &moves)).0, None);
    // The second turn finds that the first element is not what the first turn took it for.
    let swaps = "  ROOT out = (s32[], f32[8,6], f32[8,6]) tuple(i, e2, e1)\n";
    let rest = entry(state, "x, x", 1, "f32[8,6]");
    assert_eq!(flows(&with_loop(divided, &rest, state, swaps)), (Some(vec![4, 1]), NONE));
}

#[test]
fn the_results_of_branches_are_followed() {
    let divided = r#"[{"data"}, {}]"#;
    let of = |other: &str| {
        let branches = format!(
            "left {{
  p = f32[8,6] parameter(0)
  ROOT n = f32[8,6] negate(p)
}}

right {{
  p = f32[8,6] parameter(0)
{other}}}

"
        );
        let text = HEAD.replace("ENTRY", &format!("{branches}ENTRY"))
            + &parameter("x", "f32[8,6]", 0, divided)
            + "  which = pred[] parameter(1)
  zero = f32[] constant(0)
  y = f32[8,6] conditional(which, x, x), true_computation=left, false_computation=right
  ROOT s = f32[6] reduce(y, zero), dimensions={0}, to_apply=add\n}\n";
        flows(&module(&text).into_inner())
    };
    let round = Traffic { rounds: 1, chain: 1, bytes: 24 };
    let alike = of("  ROOT n = f32[8,6] tanh(p)\n");
    assert_eq!(alike, (Some(vec![4, 1]), round));
    let whole = "  one = f32[] constant(1)\n  ROOT n = f32[8,6] broadcast(one), dimensions={}\n";
    assert_eq!(of(whole), (Some(vec![4, 1]), round));
    let moved = "  ROOT n = f32[8,6] custom-call(p), custom_call_target=\"Sharding\", \
         frontend_attributes={xla.sdy.sharding=\"#sdy.sharding_per_value<[<@mesh, [{}, {\\\"data\\\"}]>]>\"}\n";
    assert_eq!(of(moved).0, None);
}

#[test]
fn explicit_collectives_are_counted_without_a_mesh() {
    let text = "HloModule m, num_partitions=4

add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT sum = f32[] add(a, b)
}

ENTRY main {
  x = f32[8] parameter(0)
  z = f32[8] parameter(1)
  a = f32[8] all-reduce(x), channel_id=1, replica_groups={{0,1,2,3}}, use_global_device_ids=true, to_apply=add
  b = f32[8] all-reduce(z), channel_id=2, replica_groups={{0,1,2,3}}, use_global_device_ids=true, to_apply=add
  c = f32[8] multiply(a, b)
  ROOT y = f32[8] all-reduce(c), channel_id=3, replica_groups={{0,1,2,3}}, use_global_device_ids=true, to_apply=add
}
";
    // XLA combines the first two.
    let expected = Traffic { rounds: 2, chain: 2, bytes: 96 };
    assert_eq!(flows(&module(text).into_inner()), (Some(vec![1]), expected));
}

/// Returns the row-major numbers of the elements that a device holds of an array with these dims;
/// `places` are its places along the axes of the mesh.
fn held(dims: &[i64], spread: &Spread, mesh: &DeviceMesh, places: &[i64]) -> Vec<i64> {
    let mut numbers = vec![0];
    for (dim, &size) in dims.iter().enumerate() {
        let (mut start, mut length) = (0, size);
        for &axis in &spread[dim] {
            length /= mesh.size(axis);
            start += places[usize::from(axis)] * length;
        }
        let along = |number: i64| (start..start + length).map(move |at| number * size + at);
        numbers = numbers.into_iter().flat_map(along).collect();
    }
    numbers
}

#[test]
fn a_constraint_in_other_dims_leaves_each_device_its_elements() {
    let lists: [&[i64]; 8] = [
        &[8, 4, 16],
        &[32, 16],
        &[8, 64],
        &[512],
        &[8, 4, 2, 8],
        &[2, 4, 4, 16],
        &[8, 1, 4, 16],
        &[4, 128],
    ];
    let choices =
        ["{}", "{\"data\"}", "{\"model\"}", "{\"data\", \"model\"}", "{\"model\", \"data\"}"];
    let (mut stated, mut moved) = (0, 0);
    for (from, to) in lists.iter().flat_map(|from| lists.iter().map(move |to| (from, to))) {
        for number in 0..choices.len().pow(u32::try_from(from.len()).unwrap()) {
            let digit = |dim: usize| number / choices.len().pow(u32::try_from(dim).unwrap());
            let words: Vec<&str> =
                (0..from.len()).map(|dim| choices[digit(dim) % choices.len()]).collect();
            let text = words.join(", ");
            if text.matches("data").count() > 1 || text.matches("model").count() > 1 {
                continue;
            }
            stated += 1;
            let shape = format!("f32{from:?}").replace(' ', "");
            let module = with_x(&shape, &format!("[{text}]"), "  ROOT y = f32[] add(zero, zero)");
            let (mesh, x) = (DeviceMesh::of(&module).unwrap(), named(&module, "x"));
            let Some(extras) = mesh.constraint_in(&module, x, to) else { continue };
            moved += 1;
            let before = mesh.stated(module.extras(x).unwrap(), from.len()).unwrap();
            let after = mesh.stated(&extras, to.len()).unwrap();
            for device in 0..8 {
                let places = [device / 4, device / 2 % 2, device % 2];
                let [before, after] = [(from, &before), (to, &after)]
                    .map(|(dims, spread)| held(dims, spread, &mesh, &places));
                assert_eq!(before, after, "{shape} {text} as {to:?}, device {device}");
            }
        }
    }
    assert!(moved > 300 && moved < stated, "{moved} of {stated}");
}
