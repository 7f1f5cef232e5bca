//! `run` and `check` on several devices, and with a host that feeds them.

use std::path::{Path, PathBuf};

use tilewright::interp::npz;
use tilewright::ir::{ArrayLiteral, Data, ElementType, Literal};

use crate::common::{file, tilewright};

/// The sum over all devices of `x`.
const SUM: &str = "HloModule m, replica_count=2
add {
  a = s32[] parameter(0)
  b = s32[] parameter(1)
  ROOT c = s32[] add(a, b)
}
ENTRY e {
  x = s32[2] parameter(0)
  ROOT y = s32[2] all-reduce(x), replica_groups={}, to_apply=add
}";

/// Reads an array, feeds out its double.
const FED: &str = "HloModule m
ENTRY e {
  start = token[] after-all()
  got = (f32[2], token[]) infeed(start)
  x = f32[2] get-tuple-element(got), index=0
  t = token[] get-tuple-element(got), index=1
  y = f32[2] add(x, x)
  o = token[] outfeed(y, t), outfeed_shape=f32[2]
  ROOT r = f32[2] negate(x)
}";

fn integers(dims: &[i64], values: &[i32]) -> Literal {
    let dims = dims.iter().copied();
    ArrayLiteral::new(ElementType::S32, dims, Data::S32(values.to_vec())).unwrap().into()
}

fn floats(values: &[f32]) -> Literal {
    let dims = [i64::try_from(values.len()).unwrap()];
    ArrayLiteral::new(ElementType::F32, dims, Data::F32(values.to_vec())).unwrap().into()
}

fn arrays(folder: &Path, name: &str, values: &[Literal]) -> PathBuf {
    let path = folder.join(name);
    npz::write_file(&path, &[("in", values)]).unwrap();
    path
}

/// Returns the output of `run` for a module on these inputs.
fn run(text: &str, inputs: &[Literal], more: &[&str]) -> crate::common::Done {
    let (folder, path) = file("m.hlo", text);
    let inputs = arrays(folder.path(), "in.npz", inputs);
    let args = ["run", path.to_str().unwrap(), "--inputs", inputs.to_str().unwrap()];
    tilewright(args.iter().chain(more))
}

#[test]
fn rows_are_the_devices_inputs() {
    let rows = integers(&[2, 2], &[1, 2, 30, 40]);
    let done = run(SUM, &[rows], &[]).ok();
    assert_eq!(done.stdout, "out0 s32[2,2] = {31, 42, 31, 42}\n");
    // The inputs are the same for all devices, whose number differs from the header's.
    let same = [integers(&[2], &[1, 2])];
    assert_eq!(run(SUM, &same, &[]).ok().stdout, "out0 s32[2,2] = {2, 4, 2, 4}\n");
    let three = run(SUM, &same, &["--replicas", "3"]).ok();
    assert_eq!(three.stdout, "out0 s32[3,2] = {3, 6, 3, 6, 3, 6}\n");
    let one = run(SUM, &same, &["--replicas", "1"]).ok();
    assert_eq!(one.stdout, "out0 s32[2] = {1, 2}\n");
}

#[test]
fn wrong_rows_and_devices_are_errors() {
    let rows = [integers(&[3, 2], &[1, 2, 3, 4, 5, 6])];
    run(SUM, &rows, &[]).failed(1).says("array `in0`").says("a first dim of 2 before it");
    let short = [integers(&[3], &[1, 2, 3])];
    run(SUM, &short, &[]).failed(1).says("its dims are [3], but the program has s32[2]");
    let same = [integers(&[2], &[1, 2])];
    let many = run(SUM, &same, &["--replicas", "1024", "--partitions", "2"]).failed(3);
    many.says("1024 replicas of 2 partitions cannot be simulated");
    run(SUM, &same, &["--replicas", "0"]).failed(2).says("--replicas");
    run(SUM, &same, &["--partitions", "1025"]).failed(2).says("--partitions");
}

#[test]
fn random_inputs_differ_by_device() {
    let text = SUM.replace("all-reduce(x), replica_groups={}, to_apply=add", "add(x, x)");
    let (_folder, path) = file("m.hlo", &text);
    let path = path.to_str().unwrap();
    // It does the same on all devices, so one is enough.
    let one = tilewright(["run", path]).ok().stdout;
    assert!(one.starts_with("out0 s32[2] = {"), "{one}");
    let two = tilewright(["run", path, "--replicas", "2"]).ok().stdout;
    let values = two.trim_end().strip_prefix("out0 s32[2,2] = {").unwrap();
    let values: Vec<&str> = values.trim_end_matches('}').split(", ").collect();
    assert_ne!(values[..2], values[2..]);
    let first = format!("out0 s32[2] = {{{}}}\n", values[..2].join(", "));
    assert_eq!(one, first, "the first device has the inputs of a single one");
}

#[test]
fn check_compares_all_devices() {
    let (_a, a) = file("a.hlo", SUM);
    // Only the second device gets a different value.
    let wrong = SUM.replace("ROOT y =", "z =").replace(
        "to_apply=add\n}",
        "to_apply=add
  me = u32[] replica-id()
  me32 = s32[] convert(me)
  more = s32[2] broadcast(me32), dimensions={}
  ROOT y = s32[2] add(z, more)
}",
    );
    let (_b, b) = file("b.hlo", &wrong);
    let (a, b) = (a.to_str().unwrap(), b.to_str().unwrap());
    tilewright(["check", a, a]).ok();
    tilewright(["check", a, b]).failed(1).says("out0: element [0]").says("on device 1");
    let report = tilewright(["check", a, b, "--json", "--bisect"]).stdout_json();
    assert_eq!(report["outputs"][0]["device"], 1);
    assert_eq!(report["first_difference"]["instruction"], "y");
    let one = ["check", a, b, "--replicas", "1", "--partitions", "1"];
    tilewright(one).ok();
    let (_c, c) = file("c.hlo", SUM.replace("replica_count=2", "replica_count=3"));
    let other = tilewright(["check", a, c.to_str().unwrap()]).failed(1);
    other.says("one is for 2 replicas of 1 partitions, the other for 3 of 1").says("--replicas");
}

#[test]
fn the_host_feeds_and_is_fed() {
    let (folder, path) = file("m.hlo", FED);
    let infeed = arrays(folder.path(), "feed.npz", &[floats(&[1.0, 2.5])]);
    let outfeed = folder.path().join("fed.npz");
    let (path, infeed) = (path.to_str().unwrap(), infeed.to_str().unwrap());
    let done = tilewright(["run", path, "--infeed", infeed]).ok();
    assert_eq!(done.stdout, "out0 f32[2] = {-1.0, -2.5}\noutfeed0 f32[2] = {2.0, 5.0}\n");
    let args = ["run", path, "--infeed", infeed, "--outfeed", outfeed.to_str().unwrap()];
    assert_eq!(tilewright(args).ok().stdout, "out0 f32[2] = {-1.0, -2.5}\n");
    let fed = || npz::read_all(std::fs::File::open(&outfeed).unwrap(), "out").unwrap();
    assert_eq!(fed(), [floats(&[2.0, 5.0])]);
    tilewright(args.into_iter().chain(["--replicas", "2"])).ok();
    assert_eq!(fed()[0].shape().to_string(), "f32[2,2]");
}

#[test]
fn both_modules_are_fed_the_same() {
    let (folder, path) = file("a.hlo", FED);
    let (_other, tripled) = file(
        "b.hlo",
        FED.replace("add(x, x)", "add(x, x)\n  z = f32[2] add(y, x)")
            .replace("outfeed(y", "outfeed(z"),
    );
    let infeed = arrays(folder.path(), "feed.npz", &[floats(&[1.0, 2.5])]);
    let (path, infeed) = (path.to_str().unwrap(), infeed.to_str().unwrap());
    tilewright(["check", path, path]).failed(3).says("nothing more was given");
    let done = tilewright(["check", path, path, "--infeed", infeed]).ok();
    assert!(done.stdout.starts_with("equal: 2 outputs on 1 set of inputs from seeds 0 to 1\n"));
    let args = ["check", path, tripled.to_str().unwrap(), "--infeed", infeed];
    let found = tilewright(args).failed(1);
    found.says("out1: element [0] is 2.0 in the first and 3.0 in the second");
    // The modules differ before the outfeed.
    let bent = FED.replace("add(x, x)", "multiply(x, x)");
    let (_bent, bent) = file("c.hlo", bent);
    let args = ["check", path, bent.to_str().unwrap(), "--infeed", infeed, "--bisect"];
    tilewright(args).failed(1).says("`y`");
}

#[test]
fn what_cannot_be_fed_is_an_error() {
    let (folder, path) = file("m.hlo", FED);
    let path = path.to_str().unwrap();
    tilewright(["run", path]).failed(3).says("`got`").says("nothing more was given");
    let long = arrays(folder.path(), "long.npz", &[floats(&[1.0, 2.0, 3.0])]);
    let args = ["run", path, "--infeed", long.to_str().unwrap()];
    tilewright(args).failed(3).says("it reads f32[2], but what was given is f32[3]");
    tilewright(["run", path, "--infeed", "no.npz"]).failed(1).says("there is no such file");
}
