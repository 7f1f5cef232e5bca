//! Elementwise regions: what is inside, what goes in, what comes out, what
//! stands in the way; and how many steps it takes to find them.

mod common;

use common::module;
use tilewright_ir::{Builder, ElementType, InstId, Module, Opcode, Shape, Verified};
use tilewright_rewrite::analysis::region::{Exit, ExitKind, LeafKind, Region, region_around};

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

/// The leaves by name with the letter of their kind, sorted.
fn leaves(module: &Module, region: &Region) -> Vec<String> {
    let letter = |kind| match kind {
        LeafKind::Reshape(_) => 'r',
        LeafKind::Broadcast(_) => 'b',
        LeafKind::Iota => 'i',
        LeafKind::Other => 'o',
    };
    let leaves = region.leaves.iter();
    let mut leaves: Vec<String> =
        leaves.map(|l| format!("{} {}", letter(l.kind), module.name_of(l.id))).collect();
    leaves.sort();
    leaves
}

/// The exits as `value -> user`, with the letter of their kind, sorted.
fn exits(module: &Module, region: &Region) -> Vec<String> {
    let text = |exit: &Exit| {
        let letter = match exit.kind {
            ExitKind::Reshape => 'r',
            ExitKind::Reduce => 's',
            ExitKind::Other => 'o',
        };
        let user = exit.user.map_or("", |user| module.name_of(user));
        format!("{letter} {} -> {user}", module.name_of(exit.value))
    };
    let mut exits: Vec<String> = region.exits.iter().map(text).collect();
    exits.sort();
    exits
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
        assert_eq!(leaves(&module, &region), leaves(&module, &all), "from {start}");
        assert_eq!(exits(&module, &region), exits(&module, &all), "from {start}");
    }
}

#[test]
fn what_goes_in_and_comes_out() {
    let module = module(DIAMOND);
    let region = around(&module, "e");
    assert_eq!(region.dims.as_slice(), [4, 2, 3]);
    assert_eq!(leaves(&module, &region), ["b spread", "i number", "o w", "r in"]);
    let expected =
        ["o d -> turned", "o f -> spread_again", "o f -> t", "r f -> back", "s e -> sum"];
    assert_eq!(exits(&module, &region), expected);
    assert_eq!(region.blocked, None);
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
    assert_eq!(leaves(&module, &region), ["b spread"]);
    assert_eq!(exits(&module, &region), ["o spread -> b"]);
    assert_eq!(leaves(&module, &around(&module, "number")), ["i number"]);
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
    let text = |leaf: &str| {
        format!(
            "HloModule two
ENTRY main {{
  x = f32[8] parameter(0)
  u = f32[4,2] parameter(1)
  v = f32[4,2] parameter(2)
  s = f32[] parameter(3)
  shared = f32[4,2] {leaf}
  a = f32[4,2] add(u, shared)
  b = f32[4,2] add(v, shared)
  ROOT t = (f32[4,2], f32[4,2]) tuple(a, b)
}}"
        )
    };
    let tied = module(&text("reshape(x)"));
    assert_eq!(interior(&tied, &around(&tied, "a")), ["a", "b"]);
    for leaf in ["broadcast(s), dimensions={}", "iota(), iota_dimension=0"] {
        let free = module(&text(leaf));
        assert_eq!(interior(&free, &around(&free, "a")), ["a"], "{leaf}");
    }
}

#[test]
fn a_user_in_two_slots_is_one_exit() {
    let module = module(
        "HloModule twice
ENTRY main {
  x = f32[4] parameter(0)
  a = f32[4] negate(x)
  ROOT t = (f32[4], f32[4]) tuple(a, a)
}",
    );
    assert_eq!(exits(&module, &around(&module, "a")), ["o a -> t"]);
}

#[test]
fn the_root_is_an_exit_without_a_user() {
    let module = module(
        "HloModule root
ENTRY main {
  x = f32[4] parameter(0)
  ROOT a = f32[4] negate(x)
}",
    );
    let region = around(&module, "a");
    let exit = Exit { value: named(&module, "a"), user: None, kind: ExitKind::Other };
    assert_eq!(region.exits, [exit]);
}

#[test]
fn a_reduce_of_several_arrays_or_from_the_region_itself_is_no_simple_exit() {
    let module = module(
        "HloModule odd
both {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  c = f32[] parameter(2)
  d = f32[] parameter(3)
  s = f32[] add(a, c)
  t = f32[] add(b, d)
  ROOT r = (f32[], f32[]) tuple(s, t)
}
ENTRY main {
  x = f32[4] parameter(0)
  zero = f32[] constant(0)
  a = f32[4] negate(x)
  ROOT r = (f32[], f32[]) reduce(a, a, zero, zero), dimensions={0}, to_apply=both
}",
    );
    assert_eq!(exits(&module, &around(&module, "a")), ["o a -> r"]);
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
        blocked.map(|b| (module.name_of(b.id).to_owned(), b.reason))
    };
    assert_eq!(blocked_by(&text("", "")), None);
    assert_eq!(blocked_by(&text("", "{1,0}")), None);
    let layout = "it has dynamic dims or a layout that is not row major";
    assert_eq!(blocked_by(&text("", "{0,1}")), Some(("a".into(), layout)));
    let attached = "a sharding, control edge or other attribute is attached to it";
    let sharded = text(", sharding={replicated}", "");
    assert_eq!(blocked_by(&sharded), Some(("a".into(), attached)));
}

/// A chain of so many elementwise ops behind a reshape, with a way back.
fn chain(length: usize) -> Verified {
    let build = || {
        let mut b = Builder::new("chain");
        let x = b.parameter("x", Shape::array(ElementType::F32, [4, 32]))?;
        let mut value = b.reshape(x, &[4, 8, 4])?;
        let first = value;
        for i in 0..length {
            // Every third op reads the reshape too, so that it has many uses.
            value = match i % 3 {
                0 => b.binary(Opcode::Add, value, first)?,
                1 => b.unary(Opcode::Negate, value)?,
                _ => b.unary(Opcode::Abs, value)?,
            };
        }
        let back = b.reshape(value, &[4, 32])?;
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
    assert_eq!((region.interior.len(), region.leaves.len(), region.exits.len()), (length, 1, 1));
    // Finding regions from every reshape in turn would not end in this time.
    let options = common::passes(&["reshape-out-of-region", "dce"], "tpu-like", false);
    let after = common::optimized(&before, &options);
    assert_eq!(common::changes(&after, "reshape-out-of-region"), 1);
    assert_eq!(after.module.instruction_count(), length + 1);
}

/// So many regions one after the other, each between reshapes of its own.
fn regions(count: usize) -> Verified {
    let build = || {
        let mut b = Builder::new("regions");
        let x = b.parameter("x", Shape::array(ElementType::F32, [4, 32]))?;
        let y = b.parameter("y", Shape::array(ElementType::F32, [4]))?;
        let mut value = x;
        for _ in 0..count {
            let grouped = b.reshape(value, &[4, 8, 4])?;
            let spread = b.broadcast(y, &[4, 8, 4], &[2])?;
            let sum = b.binary(Opcode::Add, grouped, spread)?;
            let back = b.reshape(sum, &[4, 32])?;
            value = b.unary(Opcode::Negate, back)?;
        }
        b.finish(value)
    };
    build().expect("regions")
}

#[test]
fn a_row_of_twenty_thousand_regions_takes_seconds() {
    let count = std::env::var("COUNT").ok().and_then(|c| c.parse().ok()).unwrap_or(20_000);
    let after = common::optimized_by_default(&regions(count));
    let reshapes = |module: &Module| {
        let entry = module.entry().expect("an entry");
        module.instructions(entry).filter(|&id| module.opcode(id) == Opcode::Reshape).count()
    };
    assert!(common::changes(&after, "reshape-out-of-region") >= 1);
    assert!(reshapes(&after.module) <= 1, "{} reshapes", reshapes(&after.module));
}
