//! Calls, loops, branches, tuples, tokens, and what crosses the module's edge.

use smallvec::SmallVec;
use tilewright_ir::ops::control::{
    AsyncAttrs, CallAttrs, ConditionalAttrs, CopyStartAttrs, DomainAttrs, DomainMetadata,
    FusionAttrs, FusionKind, GetTupleElementAttrs, InfeedAttrs, MapAttrs, OutfeedAttrs,
    TransferAttrs, WhileAttrs,
};
use tilewright_ir::sharding::Placement;
use tilewright_ir::{CompId, Op, ShapeErrorKind::*, Sharding};

use super::{Rules, of};
use crate::common::{custom_call, dims};

#[test]
fn calls_yield_what_the_computation_does() {
    let mut rules = Rules::default();
    let f = rules.callee(&["f32[2]", "s32[]"], "(f32[2], pred[])");
    let call = Op::Call(Box::new(CallAttrs { to_apply: f, is_composite: false }));
    let fusion = Op::Fusion(Box::new(FusionAttrs {
        kind: FusionKind::Loop,
        calls: f,
        output_to_operand_aliasing: Vec::new(),
    }));
    for op in [call, fusion] {
        rules.of(op.clone(), &["f32[2]", "s32[]"]).gives("(f32[2], pred[])");
        rules.of(op.clone(), &["f32[2]"]).fails(Callee, "takes 2 parameters");
        rules
            .of(op.clone(), &["f32[3]", "s32[]"])
            .fails(Callee, "parameter 0 of `callee` is f32[2]");
        rules.of(op, &["f32[2]", "s32[]"]).declared("f32[2]").fails(Result, "not f32[2]");
    }
    let nothing = rules.module.add_computation("nothing");
    let call = Op::Call(Box::new(CallAttrs { to_apply: nothing, is_composite: false }));
    rules.of(call, &[]).fails(Callee, "`nothing` has no instructions");
}

/// As XLA's importer refuses it.
#[test]
fn what_is_handed_on_stays_as_dynamic() {
    let mut rules = Rules::default();
    let f = rules.callee(&["f32[<=4]"], "f32[<=4]");
    let call = Op::Call(Box::new(CallAttrs { to_apply: f, is_composite: false }));
    rules.of(call, &["f32[<=4]"]).declared("f32[4]").fails(Result, "yields f32[<=4], not f32[4]");
    of(Op::Tuple, &["f32[<=4]"]).declared("(f32[4])").fails(Result, "yields (f32[<=4])");
    of(Op::Copy, &["f32[<=4]"]).declared("f32[4]").gives("f32[<=4]");
}

#[test]
fn while_keeps_its_state() {
    let mut rules = Rules::default();
    let state = "(s32[], f32[4])";
    let condition = rules.callee(&[state], "pred[]");
    let body = rules.callee(&[state], state);
    let op = |condition, body| Op::While(Box::new(WhileAttrs { condition, body }));
    rules.of(op(condition, body), &[state]).gives(state);
    rules.of(op(body, body), &[state]).fails(Callee, "yields pred[], not (s32[], f32[4])");
    rules.of(op(condition, condition), &[state]).fails(Callee, "it must keep the shape");
    rules.of(op(condition, body), &["s32[]"]).fails(Callee, "parameter 0");
}

fn two_way(yes: CompId, no: CompId) -> Op {
    Op::Conditional(Box::new(ConditionalAttrs {
        true_computation: Some(yes),
        false_computation: Some(no),
        branch_computations: SmallVec::new(),
    }))
}

fn indexed(branches: &[CompId]) -> Op {
    Op::Conditional(Box::new(ConditionalAttrs {
        true_computation: None,
        false_computation: None,
        branch_computations: branches.into(),
    }))
}

#[test]
fn conditional_takes_one_argument_per_branch() {
    let mut rules = Rules::default();
    let a = rules.callee(&["f32[2]"], "f32[3]");
    let b = rules.callee(&["s32[]"], "f32[3]");
    let c = rules.callee(&["f32[2]"], "f32[4]");
    rules.of(two_way(a, b), &["pred[]", "f32[2]", "s32[]"]).gives("f32[3]");
    rules.of(indexed(&[a, b, a]), &["s32[]", "f32[2]", "s32[]", "f32[2]"]).gives("f32[3]");
    rules.of(indexed(&[a]), &["s32[]", "f32[2]"]).gives("f32[3]");
    // Two branches by a predicate, in the indexed form.
    rules.of(indexed(&[a, b]), &["pred[]", "f32[2]", "s32[]"]).gives("f32[3]");

    rules.of(two_way(a, b), &["s32[]", "f32[2]", "s32[]"]).fails(Operand, "by pred[], not s32[]");
    rules
        .of(indexed(&[a, b, a]), &["pred[]", "f32[2]", "s32[]", "f32[2]"])
        .fails(Operand, "by s32[], not pred[]");
    rules.of(two_way(a, b), &["pred[]", "f32[2]"]).fails(Operand, "with 2 branches");
    rules.of(two_way(a, b), &["pred[]", "s32[]", "f32[2]"]).fails(Callee, "parameter 0");
    rules.of(two_way(a, c), &["pred[]", "f32[2]", "f32[2]"]).fails(Callee, "branch 1");
    rules.of(indexed(&[]), &["s32[]", "f32[2]"]).fails(Operand, "with 0 branches");
    let half = Op::Conditional(Box::new(ConditionalAttrs {
        true_computation: Some(a),
        false_computation: None,
        branch_computations: SmallVec::new(),
    }));
    rules.of(half, &["pred[]", "f32[2]", "s32[]"]).fails(Attribute, "needs either");
}

#[test]
fn map_applies_to_elements() {
    let mut rules = Rules::default();
    let f = rules.callee(&["f32[]", "s32[]"], "pred[]");
    let op = |to_apply, d: &[i64]| Op::Map(Box::new(MapAttrs { dimensions: dims(d), to_apply }));
    rules.of(op(f, &[0, 1]), &["f32[2,3]", "s32[2,3]"]).gives("pred[2,3]");
    rules.of(op(f, &[0, 1]), &["f32[2,3]", "s32[3,2]"]).fails(Operand, "differ in dims");
    rules.of(op(f, &[2]), &["f32[2,3]", "s32[2,3]"]).fails(Attribute, "names dim 2");
    let array = rules.callee(&["f32[]"], "f32[1]");
    rules.of(op(array, &[0]), &["f32[2]"]).fails(Callee, "yields a scalar, not f32[1]");
}

#[test]
fn tuples_and_their_elements() {
    of(Op::Tuple, &[]).gives("()");
    of(Op::Tuple, &["f32[2]", "token[]", "(s32[])"]).gives("(f32[2], token[], (s32[]))");
    let element = |index| Op::GetTupleElement(Box::new(GetTupleElementAttrs { index }));
    of(element(1), &["(f32[2], (s32[], pred[]))"]).gives("(s32[], pred[])");
    of(element(2), &["(f32[2], s32[])"]).fails(Attribute, "index 2 does not fit a tuple of 2");
    of(element(-1), &["(f32[2], s32[])"]).fails(Attribute, "index -1");
    of(element(0), &["f32[2]"]).fails(Operand, "takes a tuple, not f32[2]");
}

#[test]
fn tokens() {
    of(Op::AfterAll, &[]).gives("token[]");
    of(Op::AfterAll, &["token[]", "token[]"]).gives("token[]");
    of(Op::AfterAll, &["token[]", "f32[2]", "(f32[2])"]).gives("token[]");
    of(Op::AddDependency, &["f32[2]", "token[]"]).gives("f32[2]");
    of(Op::AddDependency, &["f32[2]", "f32[2]"]).fails(Operand, "token");
    let infeed = Op::Infeed(Box::new(InfeedAttrs { infeed_config: None }));
    of(infeed.clone(), &["token[]"]).declared("(f32[2], token[])").gives("(f32[2], token[])");
    of(infeed, &["token[]"]).declared("f32[2]").fails(Result, "a pair of data and token[]");
    let outfeed = Op::Outfeed(Box::new(OutfeedAttrs { outfeed_shape: None, outfeed_config: None }));
    of(outfeed.clone(), &["f32[2]", "token[]"]).gives("token[]");
    of(outfeed, &["f32[2]", "f32[2]"]).fails(Operand, "is a token");
}

#[test]
fn ops_that_hand_their_operand_on() {
    of(Op::OptimizationBarrier, &["(f32[2], token[])"]).gives("(f32[2], token[])");
    let replicated = || Sharding::Leaf(Placement::Replicated.into());
    let domain = Op::Domain(Box::new(DomainAttrs {
        domain: Box::new(DomainMetadata {
            kind: "sharding".into(),
            entry: replicated(),
            exit: replicated(),
        }),
    }));
    of(domain, &["f32[2]"]).gives("f32[2]");
    let attrs = CopyStartAttrs { cross_program_prefetch_index: None };
    of(Op::CopyStart(Box::new(attrs)), &["f32[2]"]).gives("(f32[2], f32[2], u32[])");
}

#[test]
fn custom_calls_are_believed() {
    of(custom_call(), &["f32[2]"]).declared("(f32[2], u32[])").gives("(f32[2], u32[])");
    of(custom_call(), &["f32[2]"]).fails(NeedsShape, "write it");
}

#[test]
fn copies_end_with_what_was_copied() {
    of(Op::CopyDone, &["(f32[2], f32[2], u32[])"]).gives("f32[2]");
    let part = "takes what `copy-start` yields";
    of(Op::CopyDone, &["(f32[2], f32[3], u32[])"]).fails(Operand, part);
    of(Op::CopyDone, &["(f32[2], f32[2])"]).fails(Operand, part);
    of(Op::CopyDone, &["f32[2]"]).fails(Operand, part);
    of(Op::CopyDone, &["(f32[2], f32[2], u32[])"])
        .declared("f32[3]")
        .fails(Result, "yields f32[2], not f32[3]");
}

#[test]
fn transfers_carry_data_a_number_and_a_token() {
    let attrs = || Box::new(TransferAttrs { channel_id: Some(1), is_host_transfer: false });
    let state = "(f32[2], u32[], token[])";
    of(Op::Send(attrs()), &["f32[2]", "token[]"]).gives(state);
    of(Op::Send(attrs()), &["f32[2]", "token[]"])
        .declared("(f32[3], u32[], token[])")
        .fails(Result, "yields (f32[2], u32[], token[])");
    of(Op::Send(attrs()), &["f32[2]", "f32[2]"]).fails(Operand, "operand 1 of `send` is a token");
    of(Op::SendDone(attrs()), &[state]).gives("token[]");
    of(Op::SendDone(attrs()), &["token[]"]).fails(Operand, "takes what its transfer yields");
    of(Op::Recv(attrs()), &["token[]"]).declared(state).gives(state);
    of(Op::Recv(attrs()), &["token[]"]).fails(NeedsShape, "`recv`");
    of(Op::Recv(attrs()), &["token[]"]).declared("(f32[2], token[])").fails(Result, "u32[] and");
    of(Op::Recv(attrs()), &["f32[2]"]).declared(state).fails(Operand, "operand 0 of `recv`");
    of(Op::RecvDone(attrs()), &[state]).gives("(f32[2], token[])");
    of(Op::RecvDone(attrs()), &["(f32[2], token[])"]).fails(Operand, "what its transfer yields");
}

/// A start may have the first operands, and updates the others.
#[test]
fn asynchronous_ops_bind_operands_late() {
    let mut rules = Rules::default();
    let f = rules.callee(&["f32[4]", "s32[]"], "(f32[2], f32[3])");
    let start = Op::AsyncStart(asynchronous(Some(f), None));
    let update = |calls| Op::AsyncUpdate(asynchronous(calls, None));
    let (none, first) = ("((), ())", "((f32[4]), (f32[2]), s32[])");
    let all = "((f32[4], s32[]), (f32[2], f32[3]), s32[])";
    rules.of(start.clone(), &[]).declared(none).gives(none);
    rules.of(start, &["f32[4]"]).declared(first).gives(first);
    for calls in [None, Some(f)] {
        rules.of(update(calls), &[none, "f32[4]"]).declared(first).gives(first);
        rules.of(update(calls), &[first, "s32[]"]).declared(all).gives(all);
        rules.of(update(calls), &[first]).declared(all).fails(Operand, "binds 1 operands");
        rules.of(update(calls), &[first, "u32[]"]).declared(all).fails(Operand, "binds s32[]");
        rules.of(update(calls), &[all]).declared(first).fails(Result, "adds operands and results");
    }
    rules.of(update(None), &[first, "s32[]"]).fails(NeedsShape, "`async-update`");
    let other = "((f32[4], u32[]), (f32[2], f32[3]), s32[])";
    rules.of(update(Some(f)), &[first, "u32[]"]).declared(other).fails(Callee, "has operands");
}

/// Passes of XLA leave operands that the fused computation no longer takes.
#[test]
fn fusions_may_have_spare_operands() {
    let mut rules = Rules::default();
    let calls = rules.callee(&["f32[4]"], "f32[2]");
    let fusion = || {
        let output_to_operand_aliasing = Vec::new();
        let kind = FusionKind::Loop;
        Op::Fusion(Box::new(FusionAttrs { kind, output_to_operand_aliasing, calls }))
    };
    rules.of(fusion(), &["f32[4]", "s32[]"]).gives("f32[2]");
    rules.of(fusion(), &["s32[]", "f32[4]"]).fails(Callee, "parameter 0 of `callee` is f32[4]");
    rules.of(fusion(), &[]).fails(Callee, "takes 1 parameters, but `fusion` gives it 0");
}

fn asynchronous(calls: Option<CompId>, thread: Option<&str>) -> Box<AsyncAttrs> {
    let async_execution_thread = thread.map(Into::into);
    Box::new(AsyncAttrs { async_execution_thread, output_to_operand_aliasing: Vec::new(), calls })
}

#[test]
fn asynchronous_ops_have_the_shapes_of_their_computation() {
    let mut rules = Rules::default();
    let f = rules.callee(&["f32[4]", "s32[]"], "f32[2]");
    let state = "((f32[4], s32[]), f32[2], u32[])";
    let start = |thread| Op::AsyncStart(asynchronous(Some(f), thread));
    let operands = ["f32[4]", "s32[]"];
    rules.of(start(None), &operands).declared(state).gives(state);
    rules.of(start(Some("main")), &operands).declared(state).gives(state);
    let short = "((f32[4], s32[]), f32[2])";
    rules.of(start(None), &operands).declared(short).gives(short);
    rules.of(start(None), &["f32[4]"]).declared(state).fails(Operand, "binds 2 operands");
    let swapped = ["s32[]", "f32[4]"];
    rules.of(start(None), &swapped).declared(state).fails(Operand, "binds f32[4] by its shape");
    rules.of(start(None), &operands).fails(NeedsShape, "`async-start`");
    let part = "has operands (f32[4], s32[]) and result f32[2] first, not";
    for wrong in ["((f32[5], s32[]), f32[2])", "((f32[4], s32[]), f32[3])", "f32[2]"] {
        rules.of(start(None), &operands).declared(wrong).fails(Callee, part);
    }
    let message = "runs on thread \"host\", but `callee` on \"main\"";
    rules.of(start(Some("host")), &operands).declared(state).fails(Callee, message);
    let nothing = Op::AsyncStart(asynchronous(None, None));
    rules.of(nothing, &operands).declared(state).fails(Attribute, "needs `calls`");
    rules.module.set_execution_thread(f, Some("host".into()));
    let start = Op::AsyncStart(asynchronous(Some(f), Some("host")));
    rules.of(start, &operands).declared(state).gives(state);
}

#[test]
fn asynchronous_ops_end_with_their_result() {
    let mut rules = Rules::default();
    let f = rules.callee(&["f32[4]"], "f32[2]");
    let state = "((f32[4]), f32[2], u32[])";
    let update = |calls| Op::AsyncUpdate(asynchronous(calls, None));
    let done = |calls| Op::AsyncDone(asynchronous(calls, None));
    for calls in [None, Some(f)] {
        rules.of(update(calls), &[state]).gives(state);
        rules.of(done(calls), &[state]).gives("f32[2]");
    }
    rules.of(done(None), &[state]).declared("f32[3]").fails(Result, "yields f32[2], not f32[3]");
    let other = "((f32[4]), f32[3], u32[])";
    rules.of(done(Some(f)), &[other]).fails(Callee, "and result f32[2] first");
    // A result that is bound late.
    rules.of(done(None), &["((f32[4]), ())"]).declared("f32[2]").gives("f32[2]");
    rules.of(done(Some(f)), &["((), f32[2])"]).fails(Operand, "all 1 operands of `callee`, not 0");
    rules.of(done(None), &["f32[2]"]).fails(Operand, "takes what `async-start` yields");
    rules.of(update(None), &["(f32[2], f32[2])"]).fails(Operand, "takes what `async-start` yields");
}
