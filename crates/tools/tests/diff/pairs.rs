//! Pairs of small modules, one for each kind of difference.

use tilewright_tools::diff::{DiffOptions, DiffReport, What};

use super::*;

#[track_caller]
fn same(a: &Loaded, b: &Loaded) {
    let found = compared(&a.module, &b.module);
    assert!(found.is_same(), "{found:#?}");
}

const BASE: &str = "  x = f32[2,3] parameter(0)
  y = f32[2,3] parameter(1)
  c = f32[] constant(2)
  b = f32[2,3] broadcast(c), dimensions={}
  p = f32[2,3] multiply(x, b)
  q = f32[2,3] subtract(p, y)
  ROOT r = f32[2,3] divide(q, x)";

#[test]
fn names_order_and_metadata_are_no_differences() {
    let renamed =
        BASE.replace("p", "p9").replace("p9arameter", "parameter").replace("multip9ly", "multiply");
    same(&entry(BASE), &entry(&renamed));
    // Names that say the wrong thing.
    let swapped = "  y = f32[2,3] parameter(0)
  x = f32[2,3] parameter(1)
  p = f32[] constant(2)
  q = f32[2,3] broadcast(p), dimensions={}
  b = f32[2,3] multiply(y, q)
  c = f32[2,3] subtract(b, x)
  ROOT r = f32[2,3] divide(c, y)";
    same(&entry(BASE), &entry(swapped));
    let reordered = "  c = f32[] constant(2)
  y = f32[2,3] parameter(1)
  b = f32[2,3] broadcast(c), dimensions={}
  x = f32[2,3] parameter(0)
  p = f32[2,3] multiply(x, b)
  q = f32[2,3] subtract(p, y)
  ROOT r = f32[2,3] divide(q, x)";
    same(&entry(BASE), &entry(reordered));
    let told =
        BASE.replace("subtract(p, y)", "subtract(p, y), metadata={op_name=\"f\" source_line=3}");
    same(&entry(BASE), &entry(&told));
    let options = DiffOptions::default().with_metadata(true);
    let found = compared_with(&entry(BASE).module, &entry(&told).module, options);
    assert_eq!(counts(&found), [1, 0, 0, 0]);
    let change = &found.computations[0].changed[0].changes[0];
    assert_eq!((change.what, change.before.as_deref()), (What::Metadata, None));
    assert_eq!(change.after.as_deref(), Some("{op_name=\"f\" source_line=3}"));
}

#[test]
fn each_kind_of_change() {
    let base = entry(BASE);
    let with = |from: &str, to: &str| only_changes(&base, &entry(&BASE.replace(from, to)));
    assert_eq!(with("constant(2)", "constant(3)"), ["Value : 2 -> 3"]);
    assert_eq!(with("divide(q, x)", "divide(q, y)"), ["Operand 1: x -> y"]);
    // Two operands of an op that does not commute.
    assert_eq!(
        with("subtract(p, y)", "subtract(y, p)"),
        ["Operand 0: p -> y", "Operand 1: y -> p"]
    );
    assert_eq!(with("subtract(p, y)", "power(p, y)"), ["Op : subtract -> power"]);
    assert_eq!(
        with("divide(q, x)", "divide(q, x), sharding={replicated}"),
        ["Sharding : none -> {replicated}"]
    );
    assert_eq!(
        with("divide(q, x)", "divide(q, x), frontend_attributes={k=\"v\"}"),
        ["Attribute frontend_attributes.k: none -> \"v\""]
    );
    assert_eq!(
        with("divide(q, x)", "divide(q, x), backend_config={\"a\":1}"),
        ["Attribute backend_config: none -> {\"a\":1}"]
    );
    assert_eq!(
        with("p = f32[2,3] multiply", "p = f32[2,3]{0,1} multiply"),
        ["Layout : f32[2,3] -> f32[2,3]{0,1}"]
    );
    same(&base, &entry(&BASE.replace("p = f32[2,3] multiply", "p = f32[2,3]{1,0} multiply")));
    assert_eq!(
        with("divide(q, x)", "divide(q, x), control-predecessors={b}"),
        ["ControlPredecessors : none -> {b}"]
    );
}

#[test]
fn attributes_and_shapes() {
    let dot = |attrs: &str, shape: &str| {
        entry(&format!(
            "  x = f32[3,3] parameter(0)\n  d = f32[3,3] dot(x, x), {attrs}\n  ROOT s = {shape} slice(d), slice={{[0:2], [0:{}]}}",
            &shape[6..7]
        ))
    };
    let base = dot("lhs_contracting_dims={1}, rhs_contracting_dims={0}", "f32[2,2]");
    let other = dot("lhs_contracting_dims={0}, rhs_contracting_dims={0}", "f32[2,2]");
    assert_eq!(only_changes(&base, &other), ["Attribute lhs_contracting_dims: {1} -> {0}"]);
    let wider = dot("lhs_contracting_dims={1}, rhs_contracting_dims={0}", "f32[2,3]");
    assert_eq!(
        only_changes(&base, &wider),
        ["Attribute slice: {[0:2], [0:2]} -> {[0:2], [0:3]}", "Shape : f32[2,2] -> f32[2,3]"]
    );
}

#[test]
fn added_and_removed() {
    let more = BASE
        .replace("divide(q, x)", "divide(n, x)")
        .replace("  ROOT", "  n = f32[2,3] negate(q)\n  ROOT");
    let found = compared(&entry(BASE).module, &entry(&more).module);
    assert_eq!(counts(&found), [1, 1, 0, 0]);
    assert_eq!(told(&found.computations[0].changed[0].changes[0]), "Operand 0: q -> n");
    let dead = BASE.replace("  ROOT", "  n = f32[2,3] negate(q)\n  ROOT");
    assert_eq!(counts(&compared(&entry(&dead).module, &entry(BASE).module)), [0, 0, 1, 0]);
    // The root is another one.
    let root = BASE.replace("  ROOT r", "  r") + "\n  ROOT s = f32[2,3] negate(r)";
    let found = compared(&entry(BASE).module, &entry(&root).module);
    assert_eq!(counts(&found), [0, 1, 0, 0]);
    assert_eq!(told(&found.computations[0].changes[0]), "Root : r -> s");
}

/// Every user of a duplicate stays with its own.
/// Ops that stand in the place of others, one after the other; the names say nothing.
#[test]
fn replaced_in_a_row() {
    let a = "  x = f32[8] parameter(0)
  y = f32[8] parameter(1)
  s = f32[8] add(x, y)
  t = f32[8] tanh(s)
  ROOT r = f32[8] sine(t)";
    let b = "  x = f32[8] parameter(0)
  y = f32[8] parameter(1)
  u = f32[8] multiply(x, y)
  v = f32[8] sine(u)
  ROOT w = f32[8] negate(v)";
    let found = compared(&entry(a).module, &entry(b).module);
    assert_eq!(counts(&found), [3, 0, 0, 0], "{found:#?}");
    assert!(found.computations[0].changes.is_empty());
    // Two ops of the same operands could both be it: nothing is guessed.
    let two = b.replace("  v = f32[8] sine(u)", "  v = f32[8] sine(u)\n  k = f32[8] power(x, y)");
    let two = two.replace("negate(v)", "atan2(v, k)");
    let found = compared(&entry(a).module, &entry(&two).module);
    assert!(found.computations[0].removed.len() > 1, "{found:#?}");
}

#[test]
fn duplicates() {
    let text = |first: &str| {
        format!(
            "  x = f32[2] parameter(0)
  a1 = f32[2] negate(x)
  a2 = f32[2] negate(x)
  a3 = f32[2] negate(x)
  b1 = f32[2] {first}(a1)
  b2 = f32[2] sine(a2)
  b3 = f32[2] sine(a3)
  ROOT t = (f32[2], f32[2], f32[2]) tuple(b1, b2, b3)"
        )
    };
    same(&entry(&text("sine")), &entry(&text("sine")));
    assert_eq!(
        only_changes(&entry(&text("sine")), &entry(&text("cosine"))),
        ["Op : sine -> cosine"]
    );
    // One of two that were equal is gone: its users take the other, which has the same value.
    let merged =
        text("sine").replace("sine(a3)", "sine(a2)").replace("  a3 = f32[2] negate(x)\n", "");
    let found = compared(&entry(&text("sine")).module, &entry(&merged).module);
    assert_eq!(counts(&found), [1, 0, 1, 0]);
    let computation = &found.computations[0];
    assert!(
        computation.removed[0].same_as.is_some() && computation.changed[0].changes[0].same_value
    );
}

#[test]
fn the_header() {
    let header = |of: &str| {
        load(&format!("HloModule m{of}\n\nENTRY main {{\n  ROOT x = f32[2,3] parameter(0)\n}}\n"))
    };
    let plain = header("");
    let found = compared(&plain.module, &header(", replica_count=2").module);
    assert_eq!(
        found.header.iter().map(told).collect::<Vec<_>>(),
        ["Attribute replica_count: none -> 2"]
    );
    let other = header(", entry_computation_layout={(f32[2,3]{0,1})->f32[2,3]{1,0}}");
    let found = compared(&plain.module, &other.module);
    assert_eq!(
        found.header.iter().map(told).collect::<Vec<_>>(),
        ["Layout entry_computation_layout, parameter 0: f32[2,3] -> f32[2,3]{0,1}"]
    );
    same(&plain, &header(", entry_computation_layout={(f32[2,3]{1,0})->f32[2,3]{1,0}}"));
    same(&plain, &load("HloModule other\n\nENTRY e {\n  ROOT y = f32[2,3] parameter(0)\n}\n"));
}

const CALLS: &str = "HloModule m
add { a = s32[] parameter(0) b = s32[] parameter(1) ROOT c = s32[] add(a, b) }
go { s = (s32[], s32[4]) parameter(0) i = s32[] get-tuple-element(s), index=0
  three = s32[] constant(3) ROOT c = pred[] compare(i, three), direction=LT }
turn { s = (s32[], s32[4]) parameter(0) i = s32[] get-tuple-element(s), index=0
  one = s32[] constant(1) next = s32[] add(i, one) x = s32[4] get-tuple-element(s), index=1
  y = s32[4] multiply(x, x) ROOT r = (s32[], s32[4]) tuple(next, y) }
yes { p = s32[4] parameter(0) ROOT n = s32[4] negate(p) }
no { p = s32[4] parameter(0) ROOT n = s32[4] not(p) }
fused { p = s32[4] parameter(0) q = s32[4] negate(p) ROOT n = s32[4] multiply(q, p) }
ENTRY e { x = s32[4] parameter(0) zero = s32[] constant(0) s = (s32[], s32[4]) tuple(zero, x)
  w = (s32[], s32[4]) while(s), condition=go, body=turn
  v = s32[4] get-tuple-element(w), index=1
  sum = s32[] reduce(v, zero), dimensions={0}, to_apply=add
  which = pred[] compare(sum, zero), direction=LT
  k = s32[4] conditional(which, v, x), true_computation=yes, false_computation=no
  ROOT f = s32[4] fusion(k), kind=kLoop, calls=fused }";

/// A change in a called computation is one there, and none of its callers.
#[test]
fn called_computations() {
    let base = load(CALLS);
    let with = |from: &str, to: &str| only_changes(&base, &load(&CALLS.replace(from, to)));
    same(
        &base,
        &load(&CALLS.replace("turn", "body.7").replace("add {", "plus {").replace("=add", "=plus")),
    );
    assert_eq!(with("constant(3)", "constant(4)"), ["Value : 3 -> 4"]);
    assert_eq!(with("multiply(x, x)", "add(x, x)"), ["Op : multiply -> add"]);
    assert_eq!(with("n = s32[4] negate(p)", "n = s32[4] abs(p)"), ["Op : negate -> abs"]);
    assert_eq!(with("multiply(q, p)", "subtract(q, p)"), ["Op : multiply -> subtract"]);
    assert_eq!(with("c = s32[] add(a, b)", "c = s32[] maximum(a, b)"), ["Op : add -> maximum"]);
    // Another of two computations is called.
    let swapped = CALLS.replace(
        "true_computation=yes, false_computation=no",
        "true_computation=no, false_computation=yes",
    );
    let found = compared(&base.module, &load(&swapped).module);
    assert!(!found.is_same());
}

/// Computations that many call, of which copies are made or merged.
#[test]
fn copies_of_computations() {
    let text = |second: &str| {
        format!(
            "HloModule m
add {{ a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }}
other {{ a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }}
ENTRY e {{ x = f32[4] parameter(0) zero = f32[] constant(0)
  p = f32[] reduce(x, zero), dimensions={{0}}, to_apply=add
  y = f32[4] negate(x)
  q = f32[] reduce(y, zero), dimensions={{0}}, to_apply={second}
  ROOT r = f32[] subtract(p, q) }}"
        )
    };
    // The copy is there in both; that nothing calls it is what its instructions do not show.
    same(&load(&text("add")), &load(&text("other")));
    let merged = text("add").replace(
        "other { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }\n",
        "",
    );
    let found = compared(&load(&text("other")).module, &load(&merged).module);
    assert_eq!(counts(&found), [0, 0, 3, 0]);
    assert_eq!(found.computations.iter().filter(|of| of.b.is_none()).count(), 1);
}

/// What was fused has moved, and the fusion has the value of what it replaces.
#[test]
fn fusion() {
    let before = load(
        "HloModule m
ENTRY e { x = f32[4] parameter(0) y = f32[4] parameter(1)
  n = f32[4] negate(x) p = f32[4] multiply(n, y) ROOT s = f32[4] sine(p) }",
    );
    let after = load(
        "HloModule m
fused { a = f32[4] parameter(0) b = f32[4] parameter(1)
  n = f32[4] negate(a) ROOT p = f32[4] multiply(n, b) }
ENTRY e { x = f32[4] parameter(0) y = f32[4] parameter(1)
  f = f32[4] fusion(x, y), kind=kLoop, calls=fused ROOT s = f32[4] sine(f) }",
    );
    let found = compared(&before.module, &after.module);
    assert_eq!(counts(&found), [1, 3, 0, 2]);
    assert!(found.moved.iter().all(|pair| pair.changes.is_empty()));
    let change = &found.computations[0].changed[0].changes[0];
    assert_eq!((told(change).as_str(), change.same_value), ("Operand 0: p -> f", true));
    let report = DiffReport::new(&before, &after, &DiffOptions::default());
    assert_eq!(report.computations[0].added[0].same_as.as_deref(), Some("p"));
}

#[test]
fn large_constants() {
    let constant = |at: usize, value: f32| {
        let mut values = vec!["1".to_owned(); 5000];
        values[at] = value.to_string();
        entry(&format!("  ROOT c = f32[5000] constant({{{}}})", values.join(", ")))
    };
    same(&constant(0, 1.0), &constant(4999, 1.0));
    assert_eq!(
        only_changes(&constant(0, 1.0), &constant(4321, 7.5)),
        ["Value : {...}, element 4321 is 1 -> {...}, element 4321 is 7.5"]
    );
}

#[test]
fn small_modules() {
    let one = entry("  ROOT x = f32[2] parameter(0)");
    let none = entry("  ROOT t = () tuple()");
    same(&none, &none);
    same(&one, &one);
    let found = compared(&one.module, &none.module);
    assert_eq!(counts(&found), [0, 1, 1, 0]);
    let empty = tilewright::ir::Module::new("empty");
    assert!(compared(&empty, &empty).is_same());
    assert!(!compared(&empty, &one.module).is_same());
}

/// More parameters: those that stay are found by name and shape.
#[test]
fn parameters() {
    let two = entry(
        "  x = f32[2] parameter(0)\n  y = f32[2] parameter(1)\n  ROOT s = f32[2] subtract(x, y)",
    );
    let one = entry("  y = f32[2] parameter(0)\n  ROOT s = f32[2] subtract(y, y)");
    let found = compared(&two.module, &one.module);
    assert_eq!(counts(&found), [2, 0, 1, 0]);
    let changes: Vec<String> =
        found.computations[0].changed.iter().flat_map(|pair| &pair.changes).map(told).collect();
    assert_eq!(changes, ["Attribute parameter_number: 1 -> 0", "Operand 0: x -> y"]);
}

#[test]
fn long_chains_and_deep_calls() {
    let chain = |op: &str| {
        let mut text = String::from("  v0 = f32[2] parameter(0)\n");
        for at in 1..20_000 {
            let op = if at == 10_000 { op } else { "negate" };
            text += &format!("  v{at} = f32[2] {op}(v{})\n", at - 1);
        }
        entry(&(text + "  ROOT r = f32[2] negate(v19999)"))
    };
    assert_eq!(only_changes(&chain("abs"), &chain("sine")), ["Op : abs -> sine"]);
    let calls = |op: &str| {
        let mut text =
            format!("HloModule m\nc0 {{ p = f32[2] parameter(0) ROOT r = f32[2] {op}(p) }}\n");
        for at in 1..4_000 {
            text += &format!(
                "c{at} {{ p = f32[2] parameter(0) ROOT r = f32[2] call(p), to_apply=c{} }}\n",
                at - 1
            );
        }
        text += "ENTRY e { x = f32[2] parameter(0) ROOT r = f32[2] call(x), to_apply=c3999 }";
        load(&text)
    };
    assert_eq!(only_changes(&calls("abs"), &calls("sine")), ["Op : abs -> sine"]);
}
