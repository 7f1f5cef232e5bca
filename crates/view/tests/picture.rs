//! What is drawn, and how it is marked, on small modules.

use crate::common::{before_and_after, entry, module, node, options, picture};
use tilewright_view::picture::{Change, EdgeKind, FrameKind, NodeKind};
use tilewright_view::{Emit, Scene, Subject, ViewError, Weights};

/// The sums of the groups of README.md.
const GROUP_SUMS: &str = "  x = f32[8,64,64,320] parameter(0)
  zero = f32[] constant(0)
  grouped = f32[8,64,64,32,10] reshape(x)
  ROOT sums = f32[8,32] reduce(grouped, zero), dimensions={1,2,4}, to_apply=add
";

#[test]
fn what_moves_and_what_is_padded_is_marked() {
    let picture = picture(&entry(GROUP_SUMS));
    let names: Vec<&str> = picture.nodes.iter().map(|node| node.name.as_str()).collect();
    assert_eq!(names, ["x", "grouped", "sums"]);
    let grouped = node(&picture, "grouped");
    assert_eq!(grouped.kind, NodeKind::Moves);
    // 8 * 64 * 64 * 320 elements of 4 bytes are 40 MiB; 10 of 128 lanes are used.
    assert_eq!((grouped.memory.bytes, grouped.memory.padded_bytes), (40 << 20, 512 << 20));
    assert!(grouped.memory.is_padded && grouped.memory.is_large);
    let marks = ["moves data", "padded 12.8 times to 512 MiB", "reads a large array"];
    assert_eq!(grouped.marks(), marks);
    let sums = node(&picture, "sums");
    assert_eq!((sums.kind, sums.title.as_str()), (NodeKind::Reduction, "reduce add {1,2,4}"));
    assert_eq!(sums.inlined, ["init 0"]);
    assert!(sums.is_result && !grouped.is_result && !sums.memory.is_padded);
    assert_eq!(node(&picture, "x").kind, NodeKind::Input);
    let edges: Vec<_> =
        picture.edges.iter().map(|edge| (edge.from, edge.to, edge.is_large)).collect();
    assert_eq!(edges, [(0, 1, true), (1, 2, true)]);
    // 40 MiB are 2^25.3 bytes: 15 powers of two above 1 KiB, a quarter each.
    assert!((picture.edges[0].width() - 4.75).abs() < 1e-9);
}

#[test]
fn nothing_is_padded_or_moved_on_a_linear_memory() {
    let cpu = tilewright_view::Options::new(tilewright::target("cpu").expect("a target"));
    let scene = Scene::of(&entry(GROUP_SUMS), &cpu).expect("a picture");
    let grouped = node(&scene.sides[0].picture, "grouped");
    assert_eq!((grouped.kind, grouped.memory.is_padded), (NodeKind::Free, false));
}

#[test]
fn small_operands_are_lines_in_their_readers() {
    let picture = picture(&entry(
        "  x = f32[4] parameter(0)
  two = f32[] constant(2)
  twos = f32[4] broadcast(two), dimensions={}
  t = f32[3,4] constant({{1,2,3,4},{5,6,7,8},{9,10,11,12}})
  y = f32[4] divide(x, twos)
  z = f32[3,4] broadcast(y), dimensions={1}
  ROOT r = f32[3,4] multiply(z, t)
",
    ));
    assert_eq!(node(&picture, "y").inlined, ["operand 0: x f32[4]", "operand 1: 2 everywhere"]);
    assert_eq!(node(&picture, "t").kind, NodeKind::Constant);
    assert_eq!(node(&picture, "z").kind, NodeKind::Free);
    let stands: Vec<(&str, &str)> = picture
        .stands_for
        .iter()
        .map(|(name, index)| (name.as_str(), picture.nodes[*index].name.as_str()))
        .collect();
    // `two` is read by `twos`, which has no node either.
    assert_eq!(stands, [("x", "y"), ("twos", "y")]);
}

#[test]
fn kinds_of_movement() {
    let picture = picture(&entry(
        "  x = f32[64,256] parameter(0)
  i = s32[] parameter(1)
  t = f32[256,64] transpose(x), dimensions={1,0}
  c = f32[64,256] copy(x)
  n = f32[64,256] negate(c)
  b = f32[512,64,256] broadcast(n), dimensions={1,2}
  d = f32[1,256] dynamic-slice(x, i, i), dynamic_slice_sizes={1,256}
  g = f32[64,256] all-reduce(n), to_apply=add
  m = f32[256,256] dot(t, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  a = f32[64,4,64] reshape(c)
  s = f32[64,256] reshape(n)
  ROOT r = (f32[256,64], f32[512,64,256], f32[1,256], f32[64,256], f32[256,256], f32[64,4,64], f32[64,256]) tuple(t, b, d, g, m, a, s)
",
    ));
    let kind = |name| node(&picture, name).kind;
    for name in ["t", "c", "b", "d", "a"] {
        assert_eq!(kind(name), NodeKind::Moves, "{name}");
    }
    let others =
        [("g", NodeKind::Exchanges), ("m", NodeKind::Contraction), ("n", NodeKind::Elementwise)];
    for (name, expected) in
        others.into_iter().chain([("s", NodeKind::Free), ("r", NodeKind::Control)])
    {
        assert_eq!(kind(name), expected, "{name}");
    }
    assert_eq!(node(&picture, "g").title, "all-reduce add");
    assert_eq!(node(&picture, "m").title, "dot lhs_contract={1} rhs_contract={0}");
}

#[test]
fn a_layout_is_shown_unless_it_is_row_major() {
    let picture = picture(&entry(
        "  x = f32[64,256]{1,0} parameter(0)
  y = f32[64,256]{1,0} negate(x)
  ROOT z = f32[64,256]{0,1} copy(y)
",
    ));
    assert_eq!(node(&picture, "y").shape, "f32[64,256]");
    assert_eq!(node(&picture, "z").shape, "f32[64,256]{0,1}");
}

#[test]
fn edges_lead_into_fusions_and_branches() {
    let picture = picture(&module("ops/conditional/rows.hlo"));
    let frames: Vec<(FrameKind, Option<usize>)> =
        picture.boxes.iter().map(|frame| (frame.kind, frame.parent)).collect();
    let (entry, call, role) = (FrameKind::Entry, FrameKind::Call, FrameKind::Role);
    assert_eq!(frames, [(entry, None), (call, Some(0)), (role, Some(1)), (role, Some(1))]);
    let into = |name: &str| {
        let to = picture.edges.iter().filter(|edge| picture.nodes[edge.from].name == name);
        to.map(|edge| (picture.nodes[edge.to].name.as_str(), edge.kind)).collect::<Vec<_>>()
    };
    // Both branches read the operand, the conditional itself does not.
    assert_eq!(into("d"), [("r", EdgeKind::Data), ("r", EdgeKind::Data)]);
}

#[test]
fn elements_of_tuples_are_labels() {
    let picture = picture(&module("ops/while/counts.hlo"));
    // The carried values are lines in their readers.
    assert_eq!(node(&picture, "j").inlined, ["s[0] s32[]", "1"]);
    let labels: Vec<&str> = picture
        .edges
        .iter()
        .filter(|edge| edge.kind == EdgeKind::Result)
        .map(|edge| edge.label.as_str())
        .collect();
    assert_eq!(labels, ["condition", "body"]);
}

#[test]
fn a_computation_of_two_callers_stands_beside() {
    let text = "HloModule m

f {
  a = f32[4] parameter(0)
  ROOT b = f32[4] negate(a)
}

ENTRY main {
  x = f32[4] parameter(0)
  y = f32[4] call(x), to_apply=f
  ROOT z = f32[4] call(y), to_apply=f
}
";
    let picture = picture(&tilewright::parse(text).expect("a module"));
    assert_eq!(picture.boxes[1].kind, FrameKind::Shared);
    assert_eq!((picture.boxes[1].parent, picture.boxes[1].owner), (None, None));
    assert_eq!([node(&picture, "y").calls[0], node(&picture, "z").calls[0]], [1, 1]);
    // Its parameter stands for no operand.
    assert_eq!(node(&picture, "b").inlined, ["a f32[4]"]);
}

#[test]
fn changes_are_marked_and_explained() {
    let scene = before_and_after("real/group_norm_nhwc_4x64x64x320.hlo");
    assert_eq!(scene.notes.len(), 1);
    let [before, after] = [0, 1].map(|side| &scene.sides[side].picture);
    // The reshape of the image goes; the sums of the channels come.
    let reshape = node(before, "reshape.2");
    assert_eq!((reshape.change, reshape.notes.as_slice()), (Change::Removed, &[0][..]));
    let reduce = node(after, "reduce");
    assert_eq!((reduce.change, reduce.notes.as_slice()), (Change::Added, &[0][..]));
    assert_eq!(node(after, "x.1").change, Change::None);
    assert_eq!(reshape.marks()[0], "removed, note 1");
    for (side, gone) in [(before, Change::Added), (after, Change::Removed)] {
        assert!(side.nodes.iter().all(|node| node.change != gone));
    }
}

#[test]
fn surroundings_say_what_is_left_out() {
    let around = |name: &str, depth| {
        let subject = Subject::Around { name: name.to_owned(), depth };
        Scene::of(&entry(GROUP_SUMS), &options().with_subject(subject))
    };
    let scene = around("%sums", 1).expect("a picture");
    let names: Vec<&str> =
        scene.sides[0].picture.nodes.iter().map(|node| node.name.as_str()).collect();
    assert_eq!(names, ["grouped", "sums"]);
    assert_eq!(scene.sides[0].picture.nodes[0].hidden, [1, 0]);
    assert_eq!(around("x", 0).expect("a picture").sides[0].picture.nodes[0].hidden, [0, 1]);
    // A constant is found in its reader.
    assert_eq!(around("zero", 0).expect("a picture").sides[0].picture.nodes[0].name, "sums");
    let error = around("group", 1).expect_err("no such name").to_string();
    assert_eq!(error, "there is no instruction `group`; did you mean `grouped`?");
    let error = around("a", 1).expect_err("in a reducer").to_string();
    assert!(error.starts_with("there is no instruction `a` in the picture"), "{error}");
}

#[test]
fn one_computation() {
    let subject = |name: &str| options().with_subject(Subject::Computation(name.to_owned()));
    let while_loop = module("ops/while/counts.hlo");
    let scene = Scene::of(&while_loop, &subject("body")).expect("a picture");
    let picture = &scene.sides[0].picture;
    assert_eq!((picture.boxes.len(), picture.boxes[0].title.as_str()), (1, "body"));
    assert_eq!(picture.nodes.len(), 6);
    let error = Scene::of(&while_loop, &subject("bodi")).expect_err("no such name").to_string();
    assert_eq!(error, "there is no computation `bodi`; did you mean `body`?");
}

#[test]
fn costs_and_times() {
    let module = entry(GROUP_SUMS);
    let of = |weights| Scene::of(&module, &options().with_weights(weights));
    let scene = of(Weights::Cycles).expect("a picture");
    let shares: Vec<f64> = scene.sides[0]
        .picture
        .nodes
        .iter()
        .map(|node| node.weight.as_ref().map_or(0.0, |weight| weight.share))
        .collect();
    let target = tilewright::target("tpu-like").expect("a target");
    let report = tilewright::report::CostReport::new(&module, &target).expect("costs");
    let cycles = |name: &str| {
        let of = report.instructions.iter().find(|one| one.name == name).expect("a cost");
        of.costs.cycles / report.total.cycles
    };
    for (share, name) in shares.iter().zip(["x", "grouped", "sums"]) {
        let expected = cycles(name);
        assert!((share - expected).abs() < 1e-9, "{name}: {share}, not {expected}");
    }
    // The reshape that moves everything is nearly all of the cost.
    assert!(shares[1] > 0.9, "{shares:?}");
    let profile = r#"{"profile":{"total_ms":8.0,"instructions":[{"name":"sums","ms":2.0}]}}"#;
    let scene = of(Weights::Profile(profile.to_owned())).expect("a picture");
    let weight = node(&scene.sides[0].picture, "sums").weight.clone().expect("a time");
    assert_eq!((weight.text.as_str(), weight.share), ("2.00 ms, 25.0 %", 0.25));
    assert_eq!(node(&scene.sides[0].picture, "grouped").weight, None);
    let other = of(Weights::Profile(profile.replace("sums", "other")));
    assert_eq!(other.expect_err("another module"), ViewError::OtherProfile(7));
    for (text, what) in
        [("", "EOF"), ("{}", "no `instructions`"), ("{\"instructions\":[1]}", "no `name`")]
    {
        let error = of(Weights::Profile(text.to_owned())).expect_err(text).to_string();
        assert!(error.contains(what), "{error}");
    }
}

#[test]
fn what_is_too_large_says_what_to_do() {
    let mut text = String::from("  x0 = f32[4] parameter(0)\n");
    for i in 1..=900 {
        let root = if i == 900 { "ROOT " } else { "" };
        text += &format!("  {root}x{i} = f32[4] negate(x{})\n", i - 1);
    }
    let scene = Scene::of(&entry(&text), &options()).expect("a picture");
    let error = scene.print(Emit::Svg).expect_err("too large").to_string();
    assert!(error.contains("has 900 nodes") && error.contains("--around NAME"), "{error}");
    assert!(scene.print(Emit::Dot).is_ok() && scene.print(Emit::Html).is_ok());
}

#[test]
fn forms_follow_from_names() {
    let of = |name: &str| Emit::of_path(std::path::Path::new(name));
    assert_eq!(of("a/b.SVG"), Ok(Emit::Svg));
    assert_eq!(
        (of("b.gv"), of("b.dot"), of("x.htm")),
        (Ok(Emit::Dot), Ok(Emit::Dot), Ok(Emit::Html))
    );
    for name in ["b.png", "dot", ""] {
        assert_eq!(of(name), Err(ViewError::UnknownForm(name.to_owned())));
    }
}
