//! Ops between devices.

use tilewright_ir::ops::collective::{
    AllGatherAttrs, AllReduceAttrs, AllToAllAttrs, CollectiveBroadcastAttrs, CollectiveReduceAttrs,
    GroupAttrs, PermuteAttrs, ReduceScatterAttrs,
};
use tilewright_ir::{CompId, Entity as _, Family, Op, Opcode, ShapeErrorKind::*};

use super::{Rules, of};
use crate::common::dims;

fn gather(along: &[i64]) -> Box<AllGatherAttrs> {
    Box::new(AllGatherAttrs {
        channel_id: None,
        replica_groups: Box::default(),
        constrain_layout: false,
        dimensions: dims(along),
        use_global_device_ids: false,
    })
}

fn reduce(to_apply: CompId) -> Box<AllReduceAttrs> {
    Box::new(AllReduceAttrs {
        channel_id: None,
        replica_groups: Box::default(),
        constrain_layout: false,
        use_global_device_ids: false,
        to_apply,
    })
}

fn permute(slice_sizes: &[&[i64]]) -> Box<PermuteAttrs> {
    Box::new(PermuteAttrs {
        channel_id: None,
        source_target_pairs: vec![(0, 1)],
        slice_sizes: slice_sizes.iter().map(|sizes| dims(sizes)).collect(),
    })
}

#[test]
fn all_gather_joins_along_one_dim() {
    let op = || Op::AllGather(gather(&[1]));
    of(op(), &["f32[2,4]"]).declared("f32[2,16]").gives("f32[2,16]");
    of(op(), &["f32[2,4]", "s8[3,2]"])
        .declared("(f32[2,16], s8[3,8])")
        .gives("(f32[2,16], s8[3,8])");
    of(op(), &["f32[2,0]"]).declared("f32[2,0]").gives("f32[2,0]");
    of(op(), &["f32[2,4]"]).fails(NeedsShape, "`all-gather`");
    of(op(), &["f32[2,4]"]).declared("f32[2,6]").fails(Result, "grow by one factor");
    of(op(), &["f32[2,4]"]).declared("f32[4,16]").fails(Result, "all other dims");
    of(op(), &["f32[2,4]"]).declared("s32[2,16]").fails(Result, "relate");
    of(op(), &["f32[2,4]", "s8[3,2]"])
        .declared("(f32[2,16], s8[3,4])")
        .fails(Result, "grow by one factor");
    of(op(), &["f32[2,4]", "s8[3,2]"]).declared("f32[2,16]").fails(Result, "yields 1 arrays");
    of(op(), &["f32[4]"]).declared("f32[8]").fails(Attribute, "rank 1");
    of(Op::AllGather(gather(&[0, 1])), &["f32[2,4]"])
        .declared("f32[4,8]")
        .fails(Attribute, "one dim");
}

#[test]
fn starts_yield_operands_and_result_and_done_the_result() {
    let start = || Op::AllGatherStart(gather(&[0]));
    let yielded = "(f32[2], f32[8])";
    of(start(), &["f32[2]"]).declared(yielded).gives(yielded);
    of(start(), &["f32[2]"]).declared("f32[8]").fails(Result, "operands and the result");
    of(start(), &["f32[2]"]).declared("(f32[3], f32[8])").fails(Result, "first, not f32[3]");
    of(start(), &["f32[2]"]).declared("(f32[2], f32[7])").fails(Result, "grow by one factor");
    of(Op::AllGatherDone, &[yielded]).gives("f32[8]");
    of(Op::AllGatherDone, &["f32[8]"]).fails(Operand, "takes what its start yields");

    let start = || Op::CollectivePermuteStart(permute(&[]));
    of(start(), &["f32[2]"])
        .declared("(f32[2], f32[2], u32[], u32[])")
        .gives("(f32[2], f32[2], u32[], u32[])");
    of(start(), &["f32[2]"]).declared("f32[2]").fails(Result, "its operands and f32[2]");
    of(Op::CollectivePermuteDone, &["(f32[2], f32[2], u32[], u32[])"]).gives("f32[2]");
    of(Op::AllReduceDone, &["f32[8]"]).gives("f32[8]");
}

#[test]
fn reductions_keep_shapes_or_share_a_dim_out() {
    let mut rules = Rules::default();
    let add = rules.callee(&["f32[]", "f32[]"], "f32[]");
    let wide = rules.callee(&["f32[]", "f32[]"], "f32[2]");
    let unary = rules.callee(&["f32[]"], "f32[]");
    let of = |op, operands: &[&str]| rules.of(op, operands);
    of(Op::AllReduce(reduce(add)), &["f32[2,3]"]).gives("f32[2,3]");
    of(Op::AllReduce(reduce(add)), &["f32[2]", "f32[]"]).gives("(f32[2], f32[])");
    of(Op::AllReduceStart(reduce(add)), &["f32[2,3]"]).gives("f32[2,3]");
    // XLA does not ask what the computation takes and yields.
    of(Op::AllReduce(reduce(wide)), &["f32[2]"]).gives("f32[2]");
    of(Op::AllReduce(reduce(unary)), &["f32[2]"]).gives("f32[2]");
    let scatter = || {
        Op::ReduceScatter(Box::new(ReduceScatterAttrs {
            channel_id: None,
            replica_groups: Box::default(),
            constrain_layout: false,
            use_global_device_ids: false,
            dimensions: dims(&[0]),
            to_apply: add,
        }))
    };
    of(scatter(), &["f32[8,3]"]).declared("f32[2,3]").gives("f32[2,3]");
    of(scatter(), &["f32[8,3]"]).declared("f32[3,3]").fails(Result, "grow by one factor");
}

#[test]
fn ops_that_send_data_about() {
    let all_to_all = |along: Option<&[i64]>| {
        Op::AllToAll(Box::new(AllToAllAttrs {
            channel_id: None,
            replica_groups: Box::default(),
            constrain_layout: false,
            dimensions: along.map(dims),
        }))
    };
    of(all_to_all(Some(&[1])), &["f32[2,8]"]).gives("f32[2,8]");
    of(all_to_all(Some(&[2])), &["f32[2,8]"]).fails(Attribute, "rank 2");
    of(all_to_all(Some(&[1])), &["f32[2,8]", "f32[2,8]"]).fails(Operand, "one operand");
    of(all_to_all(None), &["f32[2]", "f32[2]"]).gives("(f32[2], f32[2])");
    let group = || Box::new(GroupAttrs { channel_id: None, replica_groups: Box::default() });
    let broadcast = |has_dynamic_root| {
        let attrs = CollectiveBroadcastAttrs { has_dynamic_root, ..Default::default() };
        Op::CollectiveBroadcast(Box::new(attrs))
    };
    of(broadcast(false), &["f32[2]"]).gives("f32[2]");
    of(broadcast(true), &["f32[2]", "s32[1]"]).gives("f32[2]");
    of(broadcast(true), &["f32[2]", "s8[]", "s32[2]"]).gives("(f32[2], s8[])");
    for roots in ["s32[]", "s32[3]", "s64[2]"] {
        of(broadcast(true), &["f32[2]", "s8[]", roots]).fails(Operand, "a root for each array");
    }
    of(broadcast(true), &["s32[0]"]).fails(Operand, "a root for each array");
    let reduce = |has_dynamic_root| {
        Op::CollectiveReduce(Box::new(CollectiveReduceAttrs {
            channel_id: None,
            replica_groups: Box::default(),
            use_global_device_ids: false,
            has_dynamic_root,
            to_apply: CompId::from_index(0),
        }))
    };
    of(reduce(false), &["f32[2]", "s8[]"]).gives("(f32[2], s8[])");
    of(reduce(true), &["f32[2]", "s32[1]"]).gives("f32[2]");
    of(reduce(true), &["f32[2]", "f32[1]"]).fails(Operand, "a root for each array");
    let offsets = ["s32[2]"; 4];
    let ragged = |input, output| [&[input, output][..], &offsets[..]].concat();
    of(Op::RaggedAllToAll(group()), &ragged("f32[8]", "f32[16]")).gives("f32[16]");
    of(Op::RaggedAllToAll(group()), &ragged("f32[8]", "s32[16]"))
        .fails(Operand, "one element type");
    of(Op::CollectivePermute(permute(&[])), &["f32[2]"]).gives("f32[2]");
    of(Op::CollectivePermute(permute(&[])), &["f32[2]", "s8[]"]).gives("(f32[2], s8[])");
    let in_place = ["f32[8]", "f32[9]", "(s32[])", "(s32[])"];
    of(Op::CollectivePermute(permute(&[&[4]])), &in_place).gives("f32[9]");
    of(Op::CollectivePermute(permute(&[&[4]])), &["f32[8]"]).fails(Operand, "not 1 operands");
}

#[test]
fn device_numbers() {
    of(Op::PartitionId, &[]).gives("u32[]");
    of(Op::ReplicaId, &[]).gives("u32[]");
    let quiet = [
        "all-gather",
        "all-reduce",
        "all-to-all",
        "collective-permute",
        "partition-id",
        "reduce-scatter",
        "replica-id",
    ];
    for &opcode in Opcode::ALL.iter().filter(|o| o.family() == Family::Collective) {
        assert_eq!(opcode.has_side_effect(), !quiet.contains(&opcode.name()), "{opcode}");
    }
}
