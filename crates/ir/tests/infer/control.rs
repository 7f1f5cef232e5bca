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
    of(Op::AfterAll, &["token[]", "f32[2]"]).fails(Operand, "joins tokens, not f32[2]");
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

/// Shapes that only their author knows.
#[test]
fn declared_shapes_are_believed() {
    let attrs = || AsyncAttrs { async_execution_thread: None, calls: None };
    let transfer = || Box::new(TransferAttrs { channel_id: Some(1), is_host_transfer: false });
    let (one, two): (&[&str], &[&str]) = (&["f32[2]"], &["f32[2]", "token[]"]);
    let table = [
        (custom_call(), one),
        (Op::AsyncStart(Box::new(attrs())), one),
        (Op::AsyncUpdate(Box::new(attrs())), one),
        (Op::AsyncDone(Box::new(attrs())), one),
        (Op::CopyDone, one),
        (Op::Recv(transfer()), one),
        (Op::RecvDone(transfer()), one),
        (Op::Send(transfer()), two),
        (Op::SendDone(transfer()), one),
    ];
    for (op, operands) in table {
        of(op.clone(), operands).declared("(f32[2], u32[])").gives("(f32[2], u32[])");
        of(op, operands).fails(NeedsShape, "write it");
    }
}
