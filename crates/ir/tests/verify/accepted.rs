//! Tests modules that pass although they resemble broken ones.

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

#[test]
fn buffers_are_updated_and_carried_around() {
    passes(
        r#"HloModule m
go_on {
  x = (b(f32[8]), s32[]) parameter(0)
  ROOT p = pred[] constant(false)
}
body {
  x = (b(f32[8]), s32[]) parameter(0)
  b = b(f32[8]) get-tuple-element(x), index=0
  i = s32[] get-tuple-element(x), index=1
  u = f32[2] constant({1, 2})
  c = b(f32[8]) dynamic-update-slice(b, u, i)
  ROOT r = (b(f32[8]), s32[]) tuple(c, i)
}
ENTRY main {
  i = s32[] parameter(0)
  b = b(f32[8]) custom-call(), custom_call_target="CreateBuffer"
  t = (b(f32[8]), s32[]) tuple(b, i)
  w = (b(f32[8]), s32[]) while(t), condition=go_on, body=body
  c = b(f32[8]) get-tuple-element(w), index=0
  ROOT d = f32[8] custom-call(c), custom_call_target="Unpin", output_to_operand_aliasing={{}: (0, {})}
}"#,
    );
}

/// Who is given no buffer writes none.
#[test]
fn buffers_are_given_to_what_runs_asynchronously() {
    passes(
        r#"HloModule m
ENTRY main {
  a = f32[8] parameter(0)
  b = b(f32[8]) custom-call(a), custom_call_target="Pin", output_to_operand_aliasing={{}: (0, {})}
  s = ((b(f32[8])), b(f32[8])) custom-call-start(b), custom_call_target="t", output_to_operand_aliasing={{}: (0, {})}
  d = b(f32[8]) custom-call-done(s)
  ROOT r = f32[8] custom-call(d), custom_call_target="Unpin", output_to_operand_aliasing={{}: (0, {})}
}"#,
    );
}

#[test]
fn host_transfers_that_are_alike_share_a_channel() {
    passes(
        r#"HloModule m
ENTRY main {
  a = f32[8] parameter(0)
  b = f32[8] parameter(1)
  t = token[] after-all()
  s = (f32[8], u32[], token[]) send(a, t), channel_id=1, is_host_transfer=true, frontend_attributes={x="1",y="2"}
  d = token[] send-done(s), channel_id=1, is_host_transfer=true
  u = (f32[8], u32[], token[]) send(b, d), channel_id=1, is_host_transfer=true, frontend_attributes={y="2",x="1"}
  e = token[] send-done(u), channel_id=1, is_host_transfer=true
  r = (f32[4], u32[], token[]) recv(t), channel_id=1
  ROOT f = (f32[4], token[]) recv-done(r), channel_id=1
}"#,
    );
}

#[test]
fn collectives_run_asynchronously_as_a_group_that_says_so() {
    passes(
        r#"HloModule m
both {
  x = f32[8] parameter(0)
  y = f32[8] all-gather(x), dimensions={0}
  z = f32[8] collective-permute(x), source_target_pairs={{0,0}}
  ROOT t = (f32[8], f32[8]) tuple(y, z)
}
apart {
  x = (f32[8], f32[4]) parameter(0)
  y = f32[8] get-tuple-element(x), index=0
  ROOT t = (f32[8]) tuple(y)
}
elsewhere {
  x = f32[8] parameter(0)
  y = f32[8] negate(x)
  ROOT z = f32[8] abs(y)
}, execution_thread="other"
ENTRY main {
  a = f32[8] parameter(0)
  s = ((f32[8]), (f32[8], f32[8])) async-start(a), calls=both, frontend_attributes={_collectives_group=""}
  d = (f32[8], f32[8]) async-done(s)
  b = (f32[8], f32[4]) parameter(1)
  u = (((f32[8], f32[4])), (f32[8])) async-start(b), calls=apart
  e = (f32[8]) async-done(u)
  v = ((f32[8]), f32[8]) async-start(a), calls=elsewhere, async_execution_thread="other"
  ROOT f = f32[8] async-done(v)
}"#,
    );
}

#[test]
fn composites_have_names() {
    passes(
        r#"HloModule m
op {
  x = f32[8] parameter(0)
  ROOT y = f32[8] negate(x)
}
ENTRY main {
  a = f32[8] parameter(0)
  ROOT b = f32[8] call(a), to_apply=op, is_composite=true, frontend_attributes={composite.attributes="{}",composite.name="d.op",composite.version="0"}
}"#,
    );
}

/// A sharding may be repeated on all devices, and a token has none.
#[test]
fn shardings_among_all_partitions() {
    passes(
        "HloModule m, num_partitions=4
ENTRY main {
  a = f32[8,8] parameter(0), sharding={devices=[2,1,2]<=[4] last_tile_dim_replicate}
  b = f32[8,8] negate(a), sharding={maximal device=3}
  c = f32[8,8] negate(b), sharding={mesh['x'=4], [{}, {'x'}]}
  t = token[] after-all(c), sharding={maximal device=7}
  ROOT d = f32[8,8] negate(c), sharding={replicated}
}",
    );
}

/// As XLA's passes leave them.
#[test]
fn aliases_of_parts_that_are_no_buffers_may_stand_twice() {
    passes(
        r#"HloModule m
ENTRY main {
  a = f32[8] parameter(0)
  b = f32[8] parameter(1)
  ROOT r = (f32[8], f32[8]) custom-call(a, b), custom_call_target="t", output_to_operand_aliasing={{0}: (1, {}), {1}: (1, {})}
}"#,
    );
}

#[test]
fn floats_of_several_precisions_meet() {
    let text = "HloModule m
wide {
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT z = f32[] add(x, y)
}
ENTRY main {
  a = f32[8] parameter(0)
  b = bf16[8] parameter(1)
  c = bf16[] constant(0)
  s = f32[8] add(a, b)
  n = bf16[8] negate(s)
  ROOT r = bf16[] reduce(n, c), dimensions={0}, to_apply=wide
}";
    passes(text);
    let mixed = tilewright_ir::verify(tilewright_text::parse(text).unwrap().module).unwrap();
    let first = mixed.mixes_precision().map(|id| mixed.name_of(id));
    assert_eq!(first, Some("s"));
}
