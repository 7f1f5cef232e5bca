//! What passes although it looks like something that does not.

use super::fixtures::{Found, of_text};

#[track_caller]
fn passes(text: &str) {
    match of_text(text) {
        Found::Syntax(errors) => panic!("{errors}"),
        Found::Broken(found) => {
            let found: Vec<String> = found.iter().map(|f| f.message.clone()).collect();
            assert!(found.is_empty(), "{found:?}");
        }
    }
}

#[test]
fn buffers_are_pinned_and_unpinned() {
    passes(
        r#"HloModule m
ENTRY main {
  a = f32[8] parameter(0)
  b = b(f32[8]) custom-call(a), custom_call_target="Pin", output_to_operand_aliasing={{}: (0, {})}
  c = b(f32[8]) custom-call(b), custom_call_target="t", output_to_operand_aliasing={{}: (0, {})}
  ROOT d = f32[8] custom-call(c), custom_call_target="Unpin", output_to_operand_aliasing={{}: (0, {})}
}"#,
    );
}

#[test]
fn in_place_a_device_sends_a_slice_for_each_start() {
    passes(
        "HloModule m
ENTRY main {
  a = f32[8,8] parameter(0)
  b = f32[8,8] parameter(1)
  i = s32[] parameter(2)
  at = (s32[], s32[]) tuple(i, i)
  ats = ((s32[], s32[]), (s32[], s32[])) tuple(at, at)
  inputs = (f32[8,8], f32[8,8]) tuple(a, b)
  r = f32[8,8] collective-permute(a, b, ats, ats), source_target_pairs={{0,1},{0,1}}, slice_sizes={{4,4},{4,4}}
  each = (((s32[], s32[]), (s32[], s32[])), ((s32[], s32[]), (s32[], s32[]))) tuple(ats, ats)
  ROOT s = (f32[8,8], f32[8,8]) collective-permute(inputs, inputs, each, each), source_target_pairs={{1,0},{1,0}}, slice_sizes={{4,4},{4,4}}
}",
    );
}

#[test]
fn channels_of_gathers_may_be_zero() {
    passes(
        "HloModule m
ENTRY main {
  a = f32[8] parameter(0)
  ROOT r = f32[16] all-gather(a), channel_id=0, replica_groups={{0,1}}, dimensions={0}, use_global_device_ids=true
}",
    );
}

#[test]
fn a_token_has_the_sharding_of_what_is_sent() {
    passes(
        "HloModule m
ENTRY main {
  a = (f32[8], f32[2]) parameter(0)
  t = token[] after-all(a)
  ROOT r = token[] outfeed(a, t), sharding={{devices=[2]<=[2]}, {maximal device=0}}
}",
    );
}

/// Without global ids a channel joins all partitions of the replicas named.
#[test]
fn groups_of_partitions_that_nobody_counted() {
    passes(
        "HloModule m
ENTRY main {
  a = f32[8] parameter(0)
  ROOT g = f32[64] all-gather(a), channel_id=1, replica_groups={{0,1}}, dimensions={0}
}",
    );
}

/// A header that says one may not have been thought of.
#[test]
fn groups_of_more_devices_than_one() {
    passes(
        "HloModule m, replica_count=1, num_partitions=2
ENTRY main {
  a = f32[8] parameter(0)
  g = f32[32] all-gather(a), channel_id=1, replica_groups={{0,1}}, dimensions={0}
  p = f32[32] collective-permute(g), source_target_pairs={{0,5}}
  n = f32[0] parameter(1)
  ROOT z = f32[0] all-gather(n), replica_groups={{0,1}}, dimensions={0}
}",
    );
}

#[test]
fn transfers_end_in_another_turn_or_with_what_wraps_them() {
    passes(
        "HloModule m
wrapped {
  x = f32[8] parameter(0)
  t = token[] parameter(1)
  ROOT s = (f32[8], u32[], token[]) send(x, t), channel_id=1
}
ENTRY main {
  a = f32[8] parameter(0)
  t = token[] after-all()
  s = ((f32[8], token[]), (f32[8], u32[], token[]), s32[]) async-start(a, t), calls=wrapped
  d = (f32[8], u32[], token[]) async-done(s)
  r = (f32[8], u32[], token[]) recv(t), channel_id=2
  ROOT u = ((f32[8], u32[], token[])) tuple(r)
}",
    );
}

#[test]
fn one_sharding_is_written_in_many_ways() {
    passes(
        "HloModule m
go_on {
  x = (f32[8], f32[8]) parameter(0), sharding={{replicated}, {replicated}}
  ROOT p = pred[] constant(false)
}
body {
  x = (f32[8], f32[8]) parameter(0)
  a = f32[8] get-tuple-element(x), index=0
  ROOT y = (f32[8], f32[8]) tuple(a, a), sharding={replicated}
}
one {
  x = f32[8] parameter(0)
  ROOT y = f32[8] negate(x), sharding={devices=[2]0,1}
}
other {
  x = f32[8] parameter(0)
  ROOT z = f32[8] abs(x), sharding={devices=[2]<=[2]}
}
ENTRY main {
  a = (f32[8], f32[8]) parameter(0)
  l = (f32[8], f32[8]) while(a), condition=go_on, body=body, sharding={{replicated}, {replicated}}
  b = f32[8] get-tuple-element(l), index=1
  p = pred[] parameter(1)
  ROOT c = f32[8] conditional(p, b, b), true_computation=one, false_computation=other, sharding={devices=[2]<=[2]}
}",
    );
}
