//! Tests what each verb does on valid input.

use std::fs;
use std::process::Stdio;

use crate::common::{add_constant, command, file, group_norm, model, tilewright, with_stdin};

#[test]
fn help_and_version() {
    assert!(tilewright(["--help"]).ok().stdout.contains("convert"));
    assert!(tilewright(["--version"]).ok().stdout.starts_with("tilewright "));
    let verbs = [
        "opt", "run", "check", "diff", "reduce", "graph", "report", "verify", "cost", "convert",
        "passes", "ops", "targets",
    ];
    for verb in verbs {
        assert!(tilewright([verb, "--help"]).ok().stdout.contains("Usage"));
    }
}

#[test]
fn diff() {
    let (_a, a) = file("a.hlo", add_constant("1"));
    let (folder, b) = file("b.hlo", add_constant("2"));
    let (a, b) = (a.to_str().unwrap(), b.to_str().unwrap());
    assert_eq!(tilewright(["diff", a, a]).ok().stdout, "same: 4 instructions in both\n");
    let page = folder.path().join("page.html");
    let done = tilewright(["diff", a, b, "--html", page.to_str().unwrap()]);
    assert_eq!(done.code, 1);
    assert!(done.stdout.contains("value: 1 -> 2"), "{}", done.stdout);
    assert!(done.stdout.ends_with("different: 3 unchanged, 1 changed\n"), "{}", done.stdout);
    assert!(fs::read_to_string(page).unwrap().contains("<mark>1</mark>"));
    let none = tilewright(["diff", a, b, "--limit", "0"]);
    assert!(none.stdout.contains("... and 1 more difference\n"), "{}", none.stdout);
    // 1 means that they differ, and nothing else.
    tilewright(["diff", a, "/nowhere.hlo"]).failed(2);
    let (_c, bad) = file("c.hlo", "HloModule m\nENTRY e { x = f32[2] parametr(0) }");
    tilewright(["diff", a, bad.to_str().unwrap()]).failed(2).says("did you mean `parameter`?");
    tilewright(["diff", a]).failed(2);
}

#[test]
fn convert_is_stable() {
    let input = group_norm();
    let once = tilewright(["convert", input.to_str().unwrap()]).ok().stdout;
    let twice = with_stdin(["convert", "-"], once.as_bytes()).ok().stdout;
    assert_eq!(once, twice);
}

#[test]
fn convert_refuses_other_forms() {
    let folder = tempfile::tempdir().unwrap();
    let input = group_norm();
    for (name, form) in [("out.pbtxt", "text proto"), ("out.gz", "gzip")] {
        let out = folder.path().join(name);
        tilewright(["convert", input.to_str().unwrap(), "-o", out.to_str().unwrap()])
            .failed(1)
            .says(&format!("{form} output comes with a later version"));
        tilewright(["opt", input.to_str().unwrap(), "-o", out.to_str().unwrap()]).failed(1);
        assert!(!out.exists());
    }
}

#[test]
fn stablehlo_there_and_back() {
    let folder = tempfile::tempdir().unwrap();
    let input = group_norm();
    let (mlir, hlo) = (folder.path().join("out.mlir"), folder.path().join("out.hlo"));
    let (mlir, hlo) = (mlir.to_str().unwrap(), hlo.to_str().unwrap());
    tilewright(["convert", input.to_str().unwrap(), "-o", mlir]).ok();
    let text = std::fs::read_to_string(mlir).unwrap();
    assert!(text.contains("= stablehlo.reduce("), "{text}");
    let shown = tilewright(["convert", input.to_str().unwrap(), "--emit", "stablehlo"]).ok();
    assert_eq!(shown.stdout, text);
    // The short form has no locations, and the generic one nothing pretty.
    let short = ["convert", mlir, "--emit", "stablehlo", "--form", "short"];
    let short = tilewright(short).ok().stdout;
    assert!(text.contains(" loc(#loc") && !short.contains("loc("), "{short}");
    let generic = tilewright(["convert", mlir, "--emit", "stablehlo-generic"]).ok().stdout;
    assert!(
        generic.contains("= \"stablehlo.reduce\"(") && !generic.contains("= stablehlo."),
        "{generic}"
    );
    tilewright(["convert", mlir, "-o", hlo]).ok();
    // It computes the same, and every verb takes it.
    tilewright(["check", input.to_str().unwrap(), mlir]).ok();
    tilewright(["verify", mlir]).ok();
    tilewright(["cost", mlir]).ok();
    tilewright(["opt", mlir, "-o", hlo]).ok();
}

#[test]
fn proto_there_and_back() {
    let folder = tempfile::tempdir().unwrap();
    let input = group_norm();
    let (pb, hlo) = (folder.path().join("out.pb"), folder.path().join("out.hlo"));
    let (pb, hlo) = (pb.to_str().unwrap(), hlo.to_str().unwrap());
    tilewright(["convert", input.to_str().unwrap(), "-o", pb]).ok();
    tilewright(["convert", pb, "-o", hlo]).ok();
    let text = tilewright(["convert", input.to_str().unwrap()]).ok().stdout;
    assert_eq!(std::fs::read_to_string(hlo).unwrap(), text);
    // Every verb takes it, and the name of the output can be overruled.
    tilewright(["verify", pb]).ok();
    tilewright(["cost", pb]).ok();
    assert!(tilewright(["check", pb, hlo]).ok().stdout.starts_with("equal"));
    assert!(tilewright(["run", pb]).ok().stdout.starts_with("out0"));
    tilewright(["opt", pb, "--emit", "proto", "-o", hlo]).ok();
    assert_eq!(std::fs::read(hlo).unwrap().first(), Some(&0x0a));
    tilewright(["opt", hlo, "--emit", "hlo", "-o", pb]).ok();
    assert!(std::fs::read_to_string(pb).unwrap().starts_with("HloModule"));
}

/// Losses in the other form are reported, and nothing else is.
#[test]
fn losses_are_told() {
    let header = "HloModule shifted, replica_count=2, num_partitions=4";
    let text = add_constant("1").replace("HloModule shifted", header);
    let (folder, path) = file("in.hlo", &text);
    let pb = folder.path().join("out.pb");
    let (hlo, pb) = (path.to_str().unwrap(), pb.to_str().unwrap());
    let expected = "warning: proto cannot say `replica_count=2`; it is left out\n\
                    warning: proto cannot say `num_partitions=4`; it is left out\n";
    assert_eq!(tilewright(["convert", hlo, "-o", pb]).ok().stderr, expected);
    let opt = tilewright(["opt", hlo, "-o", pb]).ok().stderr;
    let (losses, note) = opt.split_at(expected.len());
    assert_eq!(losses, expected);
    assert!(
        note.starts_with("note: nothing was rewritten, since nothing was found that pays"),
        "{note}"
    );
    assert_eq!(tilewright(["convert", hlo]).ok().stderr, "");
    assert_eq!(tilewright(["convert", pb]).ok().stderr, "");
    // `is_dynamic`, field 11: appended is merged.
    let mut bytes = fs::read(pb).unwrap();
    bytes.extend([11 << 3, 1]);
    fs::write(pb, bytes).unwrap();
    let expected = "warning: text cannot say `is_dynamic` of the module; it is left out\n";
    assert_eq!(tilewright(["convert", pb]).ok().stderr, expected);
    assert!(tilewright(["opt", pb]).ok().stderr.starts_with(expected));
    assert_eq!(tilewright(["convert", pb, "--emit", "proto"]).ok().stderr, "");
    // Reports for programs stay alone on stderr.
    tilewright(["opt", pb, "--json"]).ok().stderr_json();
}

#[test]
fn opt_rewrites_group_norm() {
    let input = group_norm();
    let done =
        tilewright(["opt", input.to_str().unwrap(), "--check", "--stats", "--explain=all"]).ok();
    assert_ne!(done.stdout, tilewright(["convert", input.to_str().unwrap()]).ok().stdout);
    assert!(done.stdout.starts_with("HloModule"));
    let done = done.says("1 layer rewritten:").says("realigned vectors").says("Costs are a model");
    // The result can be read again, and nothing is left to do.
    let again = with_stdin(["opt", "-"], done.stdout.as_bytes()).ok();
    assert_eq!(again.stdout, done.stdout);
}

#[test]
fn report_is_a_page() {
    let (folder, input) = (tempfile::tempdir().unwrap(), group_norm());
    let page = folder.path().join("report.html");
    let paths = [input.to_str().unwrap(), "-o", page.to_str().unwrap()];
    let done = tilewright([&["report"], paths.as_slice(), &["--check"]].concat()).ok();
    assert_eq!((done.stdout.as_str(), done.stderr.as_str()), ("", ""));
    let text = std::fs::read_to_string(page).unwrap();
    assert!(text.contains("1 layer rewritten:") && text.contains("<strong>equal"), "{text}");
    tilewright(["report", "--target", "none", input.to_str().unwrap()]).failed(2).says("none");
}

#[test]
fn opt_leaves_alone_what_has_no_pattern() {
    for name in ["mlp.hlo", "batch_norm.hlo"] {
        let input = model(name);
        let done = tilewright(["opt", input.to_str().unwrap(), "--stats"]).ok();
        assert_eq!(done.stdout, tilewright(["convert", input.to_str().unwrap()]).ok().stdout);
        done.says("The module was left as it is");
    }
}

#[test]
fn opt_is_deterministic() {
    let input = group_norm();
    let run = || tilewright(["opt", input.to_str().unwrap(), "--explain"]).ok();
    let (first, second) = (run(), run());
    assert_eq!(first.stdout, second.stdout);
    assert_eq!(first.stderr, second.stderr);
}

#[test]
fn opt_options() {
    let input = group_norm();
    let input = input.to_str().unwrap();
    let unchanged = tilewright(["convert", input]).ok().stdout;
    // Reshapes cost nothing on a linear memory.
    assert_eq!(tilewright(["opt", input, "--target", "linear"]).ok().stdout, unchanged);
    assert_eq!(tilewright(["opt", input, "--stop-after", "0"]).ok().stdout, unchanged);
    let one = tilewright(["opt", input, "--stop-after", "1", "--stats", "--json"]).ok();
    assert_eq!(one.stderr_json()["stopped"], "stop-after");
    tilewright(["opt", input, "--passes", "inline,dce", "--check"]).ok();
    tilewright(["opt", input, "--pipeline", "cleanup", "--check"]).ok();
    tilewright(["opt", input, "--exact", "--check"]).ok();
}

#[test]
fn guards_are_left_out_on_request() {
    // Small arrays do not stay in its vector memory, and branches cost little.
    let keys = "base = \"tpu-v5e\"\nvector_memory_bytes = 524288\nguard_cycles = 1\n";
    let (_folder, target) = file("small.toml", keys);
    let target = target.to_str().unwrap();
    let norm = model("../rewrite/shifted-moments/guarded.hlo");
    let norm = norm.to_str().unwrap();
    let opt = |more: &[&str]| tilewright([&["opt", norm, "--target", target], more].concat());
    let has_guard = |more: &[&str]| opt(more).ok().stdout.contains("tilewright_guard=");
    assert!(has_guard(&["--check"]));
    assert!(!has_guard(&["--fast-math"]));
    assert!(!has_guard(&["--no-guards"]));
    assert!(!has_guard(&["--exact"]));
    opt(&["--no-guards", "--exact"]).failed(2).says("cannot be used with");
    let (_folder, guarded) = file("guarded.hlo", opt(&[]).ok().stdout);
    let guarded = guarded.to_str().unwrap();
    let stats = tilewright(["run", guarded, "--stats"]).ok();
    stats.says("held 1 times, failed 0 times");
    tilewright(["check", norm, guarded]).ok();
}

#[test]
fn fast_math_sums_about_the_mean_of_a_sample() {
    // The target has so little vector memory that the small image does not stay in it.
    let target = include_str!("../../../target/machines/tpu-like.toml");
    let small = target.replace("134_217_728", "524_288");
    assert_ne!(small, target);
    let (_folder, target) = file("small.toml", small);
    let target = target.to_str().unwrap();
    let gradient = model("../rewrite/shifted-moments/gradient.hlo");
    let gradient = gradient.to_str().unwrap();
    let about = "about a sample's mean";
    let opt = |more: &[&str]| {
        tilewright([&["opt", gradient, "--target", target, "--explain=all"], more].concat())
    };
    let strict = opt(&[]).ok();
    assert!(!strict.stderr.contains(about), "{}", strict.stderr);
    let fast = opt(&["--fast-math", "--check"]).ok().says(about);
    assert_ne!(fast.stdout, strict.stdout);
    let json = opt(&["--fast-math", "--json"]).ok().stderr_json();
    assert!(json["passes"].to_string().contains("shifted-moments"), "{json}");
    let check = ["check", gradient, "--target", target, "--fast-math", "--bisect"];
    let checked = tilewright(check).ok().stdout;
    assert!(checked.starts_with("equal but for rounding"), "{checked}");
    opt(&["--fast-math", "--exact"]).failed(2).says("cannot be used with");
}

#[test]
fn dump_dir_has_every_stage() {
    let folder = tempfile::tempdir().unwrap();
    let dumps = folder.path().join("a/b");
    let input = group_norm();
    let input = input.to_str().unwrap();
    let done = tilewright(["opt", input, "--dump-dir", dumps.to_str().unwrap()]).ok();
    let dumps = dumps.join("001-jit_group_norm_nhwc");
    let mut names: Vec<String> = fs::read_dir(&dumps)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert_eq!(names[0], "000-before.hlo");
    assert!(names.len() > 2, "{names:?}");
    let text = |name: &String| fs::read_to_string(dumps.join(name)).unwrap();
    assert_eq!(text(&names[0]), tilewright(["convert", input]).ok().stdout);
    assert_eq!(&text(names.last().unwrap()), &done.stdout);
}

#[test]
fn output_files() {
    let (folder, path) = file("in.hlo", add_constant("1"));
    let input = path.to_str().unwrap();
    let out = folder.path().join("out.hlo");
    let done = tilewright(["opt", input, "-o", out.to_str().unwrap()]).ok();
    assert_eq!(done.stdout, "");
    assert!(fs::read_to_string(&out).unwrap().starts_with("HloModule shifted"));
    // The input may be the output.
    tilewright(["convert", input, "-o", input]).ok();
    assert_eq!(fs::read(&out).unwrap(), fs::read(&path).unwrap());
    // The folder contains nothing else, and `-` is stdout.
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
    assert!(tilewright(["convert", input, "-o", "-"]).ok().stdout.starts_with("HloModule"));
    let nowhere = folder.path().join("no/out.hlo");
    tilewright(["convert", input, "-o", nowhere.to_str().unwrap()]).failed(1).says("cannot write");
}

#[cfg(unix)]
#[test]
fn output_to_links_and_devices() {
    let (folder, path) = file("in.hlo", add_constant("1"));
    let input = path.to_str().unwrap();
    let (real, link) = (folder.path().join("real.hlo"), folder.path().join("link.hlo"));
    fs::write(&real, "old").unwrap();
    std::os::unix::fs::symlink(&real, &link).unwrap();
    tilewright(["convert", input, "-o", link.to_str().unwrap()]).ok();
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert!(fs::read_to_string(&real).unwrap().starts_with("HloModule"));
    tilewright(["convert", input, "-o", "/dev/null"]).ok();
}

#[test]
fn closed_pipes_are_no_error() {
    let input = group_norm();
    for args in [&["convert", input.to_str().unwrap()][..], &["ops"]] {
        let mut child =
            command().args(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stderr), "");
        assert!(output.status.success());
    }
}

#[test]
fn verify_reads_many() {
    let (_good, good) = file("good.hlo", add_constant("1"));
    let (_bad, bad) = file("bad.hlo", "HloModule");
    let (good, bad) = (good.to_str().unwrap(), bad.to_str().unwrap());
    let done = tilewright(["verify", good, good]).ok();
    assert!(
        done.stdout.contains("good.hlo: ok, 4 instructions in 1 computation"),
        "{}",
        done.stdout
    );
    let done = tilewright(["verify", bad, good]);
    assert_eq!(done.code, 1);
    assert!(done.stdout.contains("good.hlo: ok"));
    assert!(done.stderr.contains("bad.hlo:1:"));
}

#[test]
fn statistics_tell_of_loops() {
    let told = |path: &std::path::Path| {
        let done = tilewright(["opt", path.to_str().unwrap(), "--stats", "-o", "-"]).ok();
        done.stderr.contains("bodies of loops of unknown length count once")
    };
    // One begins with a parameter; the other runs as often as there are layers.
    let unknown = model("../ops/while/counts.hlo");
    assert!(told(&unknown) && !told(&model("group_norm_scan.hlo")) && !told(&group_norm()));
}

#[test]
fn cost_is_a_sorted_table() {
    let input = group_norm();
    let input = input.to_str().unwrap();
    let tpu = tilewright(["cost", input]).ok().stdout;
    assert!(tpu.contains("on tpu-like. Costs are a model"));
    assert!(tpu.lines().last().unwrap().contains("total"));
    let cycles = |line: &str| {
        let cell = line.split_whitespace().next()?;
        cell.replace('_', "").parse::<u64>().ok()
    };
    let rows: Vec<u64> = tpu.lines().filter_map(cycles).collect();
    assert!(rows.len() > 10);
    // Below the instructions: the wait for main memory, and the total.
    let (instructions, rest) = rows.split_at(rows.len() - 2);
    assert!(instructions.is_sorted_by(|a, b| a >= b), "{tpu}");
    assert_eq!(rest[0], 1200, "{tpu}");
    assert_ne!(tpu, tilewright(["cost", input, "--target", "linear"]).ok().stdout);
}

#[test]
fn targets_can_be_files() {
    let toml = include_str!("../../../target/machines/tpu-like.toml");
    let (_folder, path) = file("mine.toml", toml.replace("name = \"tpu-like\"", "name = \"mine\""));
    let input = group_norm();
    let done = tilewright(["cost", input.to_str().unwrap(), "--target", path.to_str().unwrap()]);
    assert!(done.ok().stdout.contains("on mine."));
}

#[test]
fn lists() {
    let passes = tilewright(["passes"]).ok().stdout;
    assert!(passes.contains("reduce-through-reshape") && passes.contains("pipeline `default`"));
    let one = tilewright(["passes", "reduce-of-reduce", "dce"]).ok().stdout;
    assert!(one.contains("reduce(reduce(x, A), B)") && one.contains("\n\ndce (exact): "), "{one}");
    assert!(!one.contains("pipeline"), "{one}");
    tilewright(["passes", "magic"]).failed(2).says("`magic`");
    let ops = tilewright(["ops"]).ok().stdout;
    assert_eq!(ops.lines().count(), 134);
    assert!(ops.contains("reduce-window"));
    let targets = tilewright(["targets"]).ok().stdout;
    assert!(targets.contains("linear") && targets.contains("(default)"));
}

/// Without the small factors, numbers around 1e37 overflow in a sum: `--fast-math` allows that.
const TINY_SCALES: &str = "HloModule tiny_scale

sum { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = f32[] add(a, b) }

ENTRY main {
  x = f32[3,17,19,23] parameter(0)
  s = f32[23] parameter(1)
  u = f32[3,23] parameter(2)
  zero = f32[] constant(0)
  big = f32[] constant(1e37)
  bigs = f32[3,17,19,23] broadcast(big), dimensions={}
  one = f32[] constant(1)
  ones = f32[3,17,19,23] broadcast(one), dimensions={}
  xs = f32[3,17,19,23] multiply(x, bigs)
  tiny = f32[] constant(1e-36)
  tinys = f32[23] broadcast(tiny), dimensions={}
  st = f32[23] multiply(s, tinys)
  tiny3 = f32[3,23] broadcast(tiny), dimensions={}
  ut = f32[3,23] multiply(u, tiny3)
  ws = f32[3,17,19,23] broadcast(st), dimensions={3}
  wu = f32[3,17,19,23] broadcast(ut), dimensions={0,3}
  p = f32[3,17,19,23] multiply(xs, ws)
  q = f32[3,17,19,23] multiply(xs, wu)
  a = f32[3,23] reduce(p, zero), dimensions={1,2}, to_apply=sum
  b = f32[3,23] reduce(q, zero), dimensions={1,2}, to_apply=sum
  ROOT out = (f32[3,23], f32[3,23]) tuple(a, b)
}";

#[test]
fn a_rewrite_that_the_check_finds_wrong_is_named_and_left_out() {
    let (_folder, input) = file("in.hlo", TINY_SCALES);
    let input = input.to_str().unwrap();
    let unchecked = tilewright(["opt", input, "--fast-math"]).ok();
    let args = ["opt", input, "--fast-math", "--check", "--explain=all", "--stats"];
    let done = tilewright(args).ok().says("rewrite 1, at `a` [factored-sums]");
    let done = done.says("`a`, `b` from one sum of `x`").says("was left out").says("in the second");
    let done = done.says("Nothing was rewritten").says("cycles");
    assert_ne!(done.stdout, unchecked.stdout);
    assert_eq!(done.stdout, tilewright(["convert", input]).ok().stdout);
    let report = tilewright([&args[..], &["--json"]].concat()).ok().stderr_json();
    assert_eq!(report["left_out"][0]["rewrite"], 1);
    assert_eq!(report["left_out"][0]["note"]["pass"], "factored-sums");
    assert!(report["left_out"][0]["difference"].as_str().unwrap().starts_with("out0: element"));
}
