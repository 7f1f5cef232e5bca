//! Walks over instructions and over the call graph.
use crate::common::{Small, add, callee, custom_call, parameter, small};
use petgraph::visit::{Dfs, IntoNeighbors, VisitMap, Visitable};
use tilewright_ir::ops::control::{AsyncAttrs, CallAttrs, ConditionalAttrs, WhileAttrs};
use tilewright_ir::ops::random::{Distribution, RngAttrs};
use tilewright_ir::walk::{OperandGraph, Visited};
use tilewright_ir::{CompId, Family, InstId, Module, Op, Opcode};

fn call(to_apply: CompId) -> Op {
    Op::Call(Box::new(CallAttrs { to_apply, is_composite: false }))
}

fn named<'a>(module: &'a Module, ids: &[InstId]) -> Vec<&'a str> {
    ids.iter().map(|&id| module.name_of(id)).collect()
}

#[test]
fn post_order_has_producers_first() {
    let Small { mut module, main, x, sum, root, .. } = small();
    add(&mut module, main, Op::Negate, "f32[4]", &[sum], "beside");
    let order = module.post_order(root);
    assert_eq!(order.len(), 5);
    assert_eq!(order.last(), Some(&root));
    for (place, &id) in order.iter().enumerate() {
        for operand in module.operands(id) {
            assert!(order[..place].contains(operand), "{id:?} before {operand:?}");
        }
    }
    assert_eq!(named(&module, &module.post_order(x)), ["x"]);
    assert_eq!(named(&module, &module.post_order(sum)).len(), 3);
}

#[test]
fn post_order_visits_a_diamond_once_and_deep_chains_without_recursion() {
    let Small { mut module, main, mut x, .. } = small();
    // 2^40 paths.
    for _ in 0..40 {
        x = add(&mut module, main, Op::Add, "f32[4]", &[x, x], "double");
    }
    assert_eq!(module.post_order(x).len(), 41);
    for _ in 0..200_000 {
        x = add(&mut module, main, Op::Negate, "f32[4]", &[x], "deep");
    }
    assert_eq!(module.post_order(x).len(), 200_041);
}

#[test]
fn the_graph_traits_see_the_module_itself() {
    let Small { mut module, x, y, sum, twice, .. } = small();
    let graph = OperandGraph(&module);
    assert_eq!(graph.neighbors(sum).collect::<Vec<_>>(), [x, y]);
    let mut dfs = Dfs::new(graph, twice);
    let reached = std::iter::from_fn(|| dfs.next(graph)).count();
    assert_eq!(reached, 4);
    let mut map = graph.visit_map();
    assert!(map.visit(x) && !map.visit(x) && map.is_visited(&x));
    assert!(map.unvisit(x) && !map.is_visited(&x));
    map.visit(y);
    graph.reset_map(&mut map);
    assert!(!map.is_visited(&y));
    assert!(!Visited::default().is_visited(&x));
    // An edit is seen at once.
    module.set_operand(twice, 0, x).unwrap();
    module.set_operand(twice, 1, x).unwrap();
    assert_eq!(named(&module, &module.post_order(twice)), ["x", "twice"]);
}

/// `main` calls `a` and loops over `b`; `a` calls `leaf`; `b` branches into
/// `leaf` and `a`. `idle` is called by none.
fn calls() -> (Module, [CompId; 5]) {
    let mut module = Module::new("calls");
    let leaf = callee(&mut module, "leaf", &["pred[]"], "pred[]");
    let idle = callee(&mut module, "idle", &["pred[]"], "pred[]");
    let a = module.add_computation("a");
    let p = add(&mut module, a, parameter(0), "pred[]", &[], "p");
    add(&mut module, a, call(leaf), "pred[]", &[p], "again");
    add(&mut module, a, call(leaf), "pred[]", &[p], "more");
    let b = module.add_computation("b");
    let p = add(&mut module, b, parameter(0), "pred[]", &[], "p");
    let branch = Op::Conditional(Box::new(ConditionalAttrs {
        true_computation: Some(a),
        false_computation: Some(leaf),
        branch_computations: [].into_iter().collect(),
    }));
    add(&mut module, b, branch, "pred[]", &[p, p, p], "branch");
    let main = module.add_computation("main");
    module.set_entry(main);
    let p = add(&mut module, main, parameter(0), "pred[]", &[], "p");
    let looped = Op::While(Box::new(WhileAttrs { condition: a, body: b }));
    add(&mut module, main, looped, "pred[]", &[p], "loop");
    (module, [leaf, idle, a, b, main])
}

#[test]
fn call_order_has_callees_first() {
    let (module, [leaf, idle, a, b, main]) = calls();
    assert_eq!(module.callees(main), [a, b]);
    assert_eq!(module.callees(a), [leaf], "each once");
    assert_eq!(module.callees(b), [a, leaf]);
    assert_eq!(module.callees(leaf), []);
    assert_eq!(module.call_order(main), [leaf, a, b, main]);
    assert_eq!(module.call_order(a), [leaf, a]);
    assert_eq!(module.call_order(idle), [idle]);
}

#[test]
fn a_module_that_calls_itself_does_not_hang() {
    let (mut module, [leaf, _, a, b, main]) = calls();
    let p = module.computation(leaf).parameters()[0];
    add(&mut module, leaf, call(main), "pred[]", &[p], "back");
    let order = module.call_order(main);
    assert_eq!(order.len(), 4);
    assert!([leaf, a, b, main].iter().all(|c| order.contains(c)));
}

#[test]
fn effects_reach_callers() {
    let (mut module, [leaf, idle, a, b, main]) = calls();
    assert!(module.effectful_computations().is_empty());
    // An infeed in `idle` is nobody's business.
    let p = module.computation(idle).parameters()[0];
    let attrs = RngAttrs { distribution: Distribution::Uniform };
    add(&mut module, idle, Op::Rng(Box::new(attrs)), "pred[]", &[p, p], "rng");
    let mut found: Vec<CompId> = module.effectful_computations().into_iter().collect();
    assert_eq!(found, [idle]);
    // A custom call says whether it acts.
    let p = module.computation(leaf).parameters()[0];
    let quiet = add(&mut module, leaf, custom_call(), "pred[]", &[p], "custom");
    let mut op = module.op(quiet).clone();
    let Op::CustomCall(attrs) = &mut op else { panic!("another op") };
    attrs.custom_call_has_side_effect = true;
    module.set_attributes(quiet, op).unwrap();
    found = module.effectful_computations().into_iter().collect();
    found.sort();
    assert_eq!(found, [leaf, idle, a, b, main]);
    let effectful = module.effectful_computations();
    let effects = |c: CompId| -> Vec<&str> {
        let ids = module.instructions(c).filter(|&id| module.has_side_effect(id, &effectful));
        ids.map(|id| module.name_of(id)).collect()
    };
    assert_eq!(effects(main), ["loop"]);
    assert_eq!(effects(a), ["again", "more"]);
    assert_eq!(effects(leaf), ["custom"]);
}

#[test]
fn the_ops_that_act_by_themselves() {
    let acting: Vec<&str> = (Opcode::ALL.iter())
        .filter(|o| o.has_side_effect() && o.family() != Family::Collective)
        .map(|o| o.name())
        .collect();
    let expected = [
        "infeed",
        "outfeed",
        "recv",
        "recv-done",
        "send",
        "send-done",
        "rng",
        "rng-get-and-update-state",
    ];
    assert_eq!(acting, expected);
}

#[test]
fn an_async_call_calls() {
    let (mut module, [leaf, .., main]) = calls();
    let p = module.computation(main).parameters()[0];
    let attrs = AsyncAttrs {
        async_execution_thread: None,
        output_to_operand_aliasing: Vec::new(),
        calls: Some(leaf),
    };
    let start = Op::AsyncStart(Box::new(attrs));
    let start = add(&mut module, main, start, "((pred[]), pred[], s32[])", &[p], "start");
    assert_eq!(module.called(start).as_slice(), [leaf]);
    assert_eq!(module.callees(main).len(), 3);
}
