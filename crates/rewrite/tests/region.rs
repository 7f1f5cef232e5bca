//! Elementwise regions: what is inside, what goes in, what comes out, what
//! stands in the way; and how many steps it takes to find them.

use crate::common;
use crate::common::module;
use tilewright_ir::{Builder, ElementType, InstId, Module, Op, Opcode, Shape, Verified};
use tilewright_rewrite::Reason;
use tilewright_rewrite::analysis::region::{
    LiveInKind, LiveOut, LiveOutKind, Region, region_around,
};
use tilewright_testkit::effort::large;

fn named(module: &Module, name: &str) -> InstId {
    let mut ids = module.instructions(module.entry().expect("an entry"));
    ids.find(|&id| module.name_of(id) == name).expect("an instruction of this name")
}

fn around(module: &Module, name: &str) -> Region {
    region_around(module, named(module, name)).expect("a region")
}

fn interior<'a>(module: &'a Module, region: &Region) -> Vec<&'a str> {
    region.interior.iter().map(|&id| module.name_of(id)).collect()
}

/// The live-ins by name with the letter of their kind, sorted.
fn live_ins(module: &Module, region: &Region) -> Vec<String> {
    let letter = |kind| match kind {
        LiveInKind::Reshape(_) => 'r',
        LiveInKind::Broadcast(_) => 'b',
        LiveInKind::Transpose(_) => 't',
        LiveInKind::Iota => 'i',
        LiveInKind::Constant => 'c',
        LiveInKind::Other => 'o',
    };
    let live_ins = region.live_ins.iter();
    let mut live_ins: Vec<String> =
        live_ins.map(|l| format!("{} {}", letter(l.kind), module.name_of(l.id))).collect();
    live_ins.sort();
    live_ins
}

/// The live_outs as `value -> user`, with the letter of their kind, sorted.
fn live_outs(module: &Module, region: &Region) -> Vec<String> {
    let text = |live_out: &LiveOut| {
        let letter = match live_out.kind {
            LiveOutKind::Reshape => 'r',
            LiveOutKind::Reduce => 's',
            LiveOutKind::Other => 'o',
        };
        let user = live_out.user.map_or("", |user| module.name_of(user));
        format!("{letter} {} -> {user}", module.name_of(live_out.value))
    };
    let mut live_outs: Vec<String> = region.live_outs.iter().map(text).collect();
    live_outs.sort();
    live_outs
}

const DIAMOND: &str = "HloModule diamond
add_f32 {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = f32[] add(a, b)
}
ENTRY main {
  x = f32[4,6] parameter(0)
  y = f32[4] parameter(1)
  w = f32[4,2,3] parameter(2)
  p = pred[] parameter(3)
  zero = f32[] constant(0)
  in = f32[4,2,3] reshape(x)
  spread = f32[4,2,3] broadcast(y), dimensions={0}
  number = s32[4,2,3] iota(), iota_dimension=1
  a = f32[4,2,3] negate(in)
  b = f32[4,2,3] add(a, spread)
  c = f32[4,2,3] convert(number)
  d = f32[4,2,3] multiply(a, c)
  e = f32[4,2,3] select(p, b, d)
  f = f32[4,2,3] maximum(e, w)
  back = f32[4,6] reshape(f)
  sum = f32[4] reduce(e, zero), dimensions={1,2}, to_apply=add_f32
  turned = f32[2,3,4] transpose(d), dimensions={1,2,0}
  spread_again = f32[5,4,2,3] broadcast(f), dimensions={1,2,3}
  ROOT t = (f32[4,6], f32[4], f32[2,3,4], f32[5,4,2,3], f32[4,2,3]) tuple(back, sum, turned, spread_again, f)
}";

#[test]
fn a_region_is_found_whole_from_any_member() {
    let module = module(DIAMOND);
    let all = around(&module, "a");
    for start in ["in", "b", "c", "d", "e", "f"] {
        let region = around(&module, start);
        let sorted = |region: &Region| {
            let mut names = interior(&module, region);
            names.sort_unstable();
            names.join(" ")
        };
        assert_eq!(sorted(&region), sorted(&all), "from {start}");
        assert_eq!(live_ins(&module, &region), live_ins(&module, &all), "from {start}");
        assert_eq!(live_outs(&module, &region), live_outs(&module, &all), "from {start}");
    }
}

#[test]
fn what_goes_in_and_comes_out() {
    let module = module(DIAMOND);
    let region = around(&module, "e");
    assert_eq!(region.dims.as_slice(), [4, 2, 3]);
    assert_eq!(live_ins(&module, &region), ["b spread", "i number", "o w", "r in"]);
    let expected =
        ["o d -> turned", "o f -> spread_again", "o f -> t", "r f -> back", "s e -> sum"];
    assert_eq!(live_outs(&module, &region), expected);
    assert_eq!((region.blocked, region.dynamic), (Vec::new(), None));
}

#[test]
fn operands_stand_before_users() {
    let module = module(DIAMOND);
    for start in ["a", "f", "c"] {
        let region = around(&module, start);
        assert_eq!(region.interior.len(), 6, "{:?}", interior(&module, &region));
        let place = |id: &InstId| region.interior.iter().position(|other| other == id);
        for (at, &id) in region.interior.iter().enumerate() {
            let before = module.operands(id).iter().filter_map(place).all(|operand| operand < at);
            assert!(before, "from {start}: {:?}", interior(&module, &region));
        }
    }
}

#[test]
fn a_broadcast_or_iota_is_a_region_by_itself() {
    let module = module(DIAMOND);
    let region = around(&module, "spread");
    assert!(region.interior.is_empty());
    assert_eq!(live_ins(&module, &region), ["b spread"]);
    assert_eq!(live_outs(&module, &region), ["o spread -> b"]);
    assert_eq!(live_ins(&module, &around(&module, "number")), ["i number"]);
}

#[test]
fn there_is_none_around_anything_else() {
    let module = module(DIAMOND);
    for name in ["x", "sum", "turned", "t"] {
        assert!(region_around(&module, named(&module, name)).is_none(), "{name}");
    }
}

#[test]
fn readers_of_a_reshape_belong_together_and_those_of_a_broadcast_do_not() {
    let text = |live_in: &str| {
        format!(
            "HloModule two
ENTRY main {{
  x = f32[8] parameter(0)
  u = f32[4,2] parameter(1)
  v = f32[4,2] parameter(2)
  s = f32[] parameter(3)
  shared = f32[4,2] {live_in}
  a = f32[4,2] add(u, shared)
  b = f32[4,2] add(v, shared)
  ROOT t = (f32[4,2], f32[4,2]) tuple(a, b)
}}"
        )
    };
    let tied = module(&text("reshape(x)"));
    assert_eq!(interior(&tied, &around(&tied, "a")), ["a", "b"]);
    for live_in in ["broadcast(s), dimensions={}", "iota(), iota_dimension=0"] {
        let free = module(&text(live_in));
        assert_eq!(interior(&free, &around(&free, "a")), ["a"], "{live_in}");
    }
}

#[test]
fn a_user_in_two_slots_is_one_live_out() {
    let module = module(
        "HloModule twice
ENTRY main {
  x = f32[4] parameter(0)
  a = f32[4] negate(x)
  ROOT t = (f32[4], f32[4]) tuple(a, a)
}",
    );
    assert_eq!(live_outs(&module, &around(&module, "a")), ["o a -> t"]);
}

#[test]
fn the_root_is_a_live_out_without_a_user() {
    let module = module(
        "HloModule root
ENTRY main {
  x = f32[4] parameter(0)
  ROOT a = f32[4] negate(x)
}",
    );
    let region = around(&module, "a");
    let live_out = LiveOut { value: named(&module, "a"), user: None, kind: LiveOutKind::Other };
    assert_eq!(region.live_outs, [live_out]);
}

#[test]
fn a_reduce_of_several_arrays_is_a_reduced_live_out_if_the_others_fit_any_dims() {
    let kind = |arrays: &str, inits: &str| {
        let module = module(&format!(
            "HloModule odd
both {{
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  c = f32[] parameter(2)
  d = f32[] parameter(3)
  s = f32[] add(a, c)
  t = f32[] add(b, d)
  ROOT r = (f32[], f32[]) tuple(s, t)
}}
ENTRY main {{
  x = f32[4] parameter(0)
  y = f32[4] parameter(1)
  zero = f32[] constant(0)
  line = f32[4] iota(), iota_dimension=0
  ones = f32[4] broadcast(zero), dimensions={{}}
  old = f32[4]{{0:T(2)}} iota(), iota_dimension=0
  a = f32[4] negate(x)
  b = f32[4] abs(a)
  ROOT r = (f32[], f32[]) reduce({arrays}, {inits}), dimensions={{0}}, to_apply=both
}}"
        ));
        live_outs(&module, &around(&module, "a"))
    };
    for arrays in ["a, a", "a, line", "ones, a"] {
        assert_eq!(kind(arrays, "zero, zero"), ["s a -> r"], "{arrays}");
    }
    // Other arrays have these dims alone.
    assert_eq!(kind("a, y", "zero, zero"), ["o a -> r"]);
    assert_eq!(kind("a, b", "zero, zero"), ["o a -> r", "o b -> r"]);
    assert_eq!(kind("a, old", "zero, zero"), ["o a -> r"]);
}

#[test]
fn what_stands_in_the_way_is_named() {
    let text = |attached: &str, layout: &str| {
        format!(
            "HloModule blocked
ENTRY main {{
  x = f32[4,2] parameter(0)
  a = f32[4,2]{layout} negate(x){attached}
  ROOT b = f32[4,2] abs(a)
}}"
        )
    };
    let blocked_by = |text: &str| {
        let module = module(text);
        let blocked = around(&module, "b").blocked;
        let names = blocked.iter().map(|b| (module.name_of(b.id).to_owned(), b.reason));
        names.collect::<Vec<_>>()
    };
    assert_eq!(blocked_by(&text("", "")), []);
    assert_eq!(blocked_by(&text("", "{1,0}")), []);
    assert_eq!(blocked_by(&text("", "{0,1}")), [("a".into(), Reason::Layout)]);
    let sharded = text(", sharding={replicated}", "");
    assert_eq!(blocked_by(&sharded), [("a".into(), Reason::Attached)]);
}

#[test]
fn what_may_not_move_bounds_what_may() {
    let module = module(
        "HloModule kept
ENTRY main {
  x = f32[8] parameter(0)
  in = f32[4,2] reshape(x)
  a = f32[4,2] negate(in)
  b = f32[4,2] abs(a), sharding={replicated}
  c = f32[4,2] add(a, b)
  ROOT back = f32[8] reshape(c)
}",
    );
    let region = around(&module, "c");
    let mut names = interior(&module, &region);
    names.sort_unstable();
    assert_eq!(names, ["a", "b", "c"]);
    let movable = region.movable(&module);
    assert_eq!(interior(&module, &movable), ["a", "c"]);
    assert_eq!(live_ins(&module, &movable), ["o b", "r in"]);
    assert_eq!(live_outs(&module, &movable), ["o a -> b", "r c -> back"]);
    assert_eq!(movable.blocked, []);
}

/// A chain of so many elementwise ops behind a reshape, with a way back.
fn chain(length: usize) -> Verified {
    let build = || {
        let mut b = Builder::new("chain");
        let x = b.parameter("x", Shape::array(ElementType::F32, [4, 32]))?;
        let mut value = b.reshape(x, [4, 8, 4])?;
        let first = value;
        for i in 0..length {
            // Every third op reads the reshape too, so that it has many uses.
            value = match i % 3 {
                0 => b.binary(Opcode::Add, value, first)?,
                1 => b.unary(Opcode::Negate, value)?,
                _ => b.unary(Opcode::Abs, value)?,
            };
        }
        let back = b.reshape(value, [4, 32])?;
        b.finish(back)
    };
    build().expect("a chain")
}

#[test]
fn a_region_of_a_hundred_thousand_ops_is_found_and_moved_in_one_go() {
    let length = 100_000;
    let before = chain(length);
    let root = before.computation(before.entry().expect("an entry")).root().expect("a root");
    let last = before.operands(root)[0];
    let region = region_around(&before, last).expect("a region");
    assert_eq!(
        (region.interior.len(), region.live_ins.len(), region.live_outs.len()),
        (length, 1, 1)
    );
    // Finding regions from every reshape in turn would not end in this time.
    let options = common::passes(&["reshape-out-of-region", "dce"], "tpu-like", false);
    let after = common::optimized(&before, &options);
    assert_eq!(common::changes(&after, "reshape-out-of-region"), 1);
    assert_eq!(after.module.instruction_count(), length + 1);
}

/// As [`chain`], but for the values of all ops after the first so many, which
/// are also needed as they are.
fn chain_in_demand(length: usize, first: usize) -> Verified {
    let build = || {
        let mut b = Builder::new("chain");
        let x = b.parameter("x", Shape::array(ElementType::F32, [4, 32]))?;
        let mut value = b.reshape(x, [4, 8, 4])?;
        let mut results = Vec::new();
        for i in 0..length {
            value = b.unary(if i % 2 == 0 { Opcode::Negate } else { Opcode::Abs }, value)?;
            if i >= first {
                results.push(b.op(Op::Copy, [value])?);
            }
        }
        let root = b.op(Op::Tuple, &results)?;
        b.finish(root)
    };
    build().expect("a chain")
}

/// If a region is too large for one cut, only the pieces move that pay: all up to the first value
/// with an outside reader, which is reshaped back.
#[test]
fn a_large_region_moves_piece_by_piece() {
    for (length, first) in [(4_000, 2_500), (large(40_000), large(20_000))] {
        let before = chain_in_demand(length, first);
        let options =
            common::passes(&["reshape-out-of-region", "reshape", "dce"], "tpu-like", false);
        let after = common::optimized(&before, &options).module;
        let moved = |id: &InstId| {
            after.array_shape(*id).is_some_and(|shape| shape.dims() == [4, 32])
                && matches!(after.opcode(*id), Opcode::Negate | Opcode::Abs)
        };
        let moved = after.instructions(after.entry().expect("an entry")).filter(moved).count();
        assert_eq!(moved, first + 1, "of {length}");
    }
}

/// Members that a sharding keeps in place must not make the search visit anything twice.
#[test]
fn a_region_with_twenty_thousand_that_stay_takes_seconds() {
    let mut text = "HloModule m\nENTRY e {\n x = f32[4,32] parameter(0)\n \
                    v0 = f32[4,8,4] reshape(x)\n"
        .to_owned();
    let length = large(100_000);
    for i in 0..length {
        let sharding = if i % 5 == 4 { ", sharding={replicated}" } else { "" };
        text.push_str(&format!(" v{} = f32[4,8,4] negate(v{i}){sharding}\n", i + 1));
    }
    text.push_str(&format!(" ROOT r = f32[4,32] reshape(v{length})\n}}"));
    let before = module(&text);
    let region = around(&before, "v1");
    assert_eq!((region.interior.len(), region.blocked.len()), (length, length / 5));
    assert_eq!(region.movable(&before).interior.len(), length - length / 5);
    let options = common::passes(&["reshape-out-of-region", "dce"], "tpu-like", false);
    let after = common::optimized(&before, &options).module;
    let entry = after.entry().expect("an entry");
    let sharded = after.instructions(entry).filter(|&id| after.extras(id).is_some());
    assert_eq!(sharded.count(), length / 5);
}

/// Builds a chain of `count` regions, each between reshapes of its own.
fn regions(count: usize) -> Verified {
    let build = || {
        let mut b = Builder::new("regions");
        let x = b.parameter("x", Shape::array(ElementType::F32, [4, 32]))?;
        let y = b.parameter("y", Shape::array(ElementType::F32, [4]))?;
        let mut value = x;
        for _ in 0..count {
            let grouped = b.reshape(value, [4, 8, 4])?;
            let spread = b.broadcast(y, [4, 8, 4], [2])?;
            let sum = b.binary(Opcode::Add, grouped, spread)?;
            let back = b.reshape(sum, [4, 32])?;
            value = b.unary(Opcode::Negate, back)?;
        }
        b.finish(value)
    };
    build().expect("regions")
}

#[test]
fn a_row_of_twenty_thousand_regions_takes_seconds() {
    let count = large(20_000);
    let after = common::optimized_by_default(&regions(count));
    let reshapes = |module: &Module| {
        let entry = module.entry().expect("an entry");
        module.instructions(entry).filter(|&id| module.opcode(id) == Opcode::Reshape).count()
    };
    assert!(common::changes(&after, "reshape-out-of-region") >= 1);
    assert!(reshapes(&after.module) <= 1, "{} reshapes", reshapes(&after.module));
}
