//! `run --profile`, `check --bisect`, and which inputs `check` tries.

use crate::common::{add_constant, assert_keys, file, tilewright, with_stdin};

/// Returns a loop of three turns that counts in `x`; in the last turn, `late` is added.
fn counting(late: &str) -> String {
    format!(
        "HloModule m
cond {{
  p = (s32[], f32[4]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  n = s32[] constant(3)
  ROOT t = pred[] compare(i, n), direction=LT
}}
body {{
  p2 = (s32[], f32[4]) parameter(0)
  i2 = s32[] get-tuple-element(p2), index=0
  one = s32[] constant(1)
  i3 = s32[] add(i2, one)
  x2 = f32[4] get-tuple-element(p2), index=1
  two = s32[] constant(2)
  last = pred[] compare(i2, two), direction=EQ
  lasts = pred[4] broadcast(last), dimensions={{}}
  late = f32[] constant({late})
  lates = f32[4] broadcast(late), dimensions={{}}
  more = f32[4] add(x2, lates)
  chosen = f32[4] select(lasts, more, x2)
  ROOT r = (s32[], f32[4]) tuple(i3, chosen)
}}
ENTRY e {{
  x = f32[4] parameter(0)
  zero = s32[] constant(0)
  start = (s32[], f32[4]) tuple(zero, x)
  w = (s32[], f32[4]) while(start), condition=cond, body=body
  ROOT y = f32[4] get-tuple-element(w), index=1
}}
"
    )
}

#[test]
fn a_profile_counts_every_instruction() {
    let text = counting("1");
    let done = with_stdin(["run", "-", "--profile"], text.as_bytes()).ok();
    let lines: Vec<Vec<&str>> =
        done.stderr.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(lines[0], ["ms", "share", "count", "bytes", "instruction", "opcode", "shape"]);
    let line = |name: &str| lines.iter().find(|line| line.get(4) == Some(&name)).unwrap();
    assert_eq!(line("more")[2..], ["3", "48", "more", "add", "f32[4]"]);
    assert_eq!(line("t")[2..4], ["4", "4"]);
    // Four in the condition, four times; thirteen in the body, three times;
    // five in the entry.
    assert_eq!(line("total")[1..3], ["100.0%", "60"]);

    let done = with_stdin(["run", "-", "--profile", "--json"], text.as_bytes()).ok();
    let report = done.stderr_json();
    let profile = &report["profile"];
    assert_keys(profile, &["total_ms", "total_bytes", "total_count", "instructions"]);
    assert_eq!(profile["total_count"], 60);
    let instructions = profile["instructions"].as_array().unwrap();
    assert_eq!(instructions.len(), 22);
    let mut before = f64::INFINITY;
    let mut share = 0.0;
    for instruction in instructions {
        let keys = ["name", "opcode", "shape", "meaning", "count", "ms", "share", "bytes"];
        assert_keys(instruction, &keys);
        let ms = instruction["ms"].as_f64().unwrap();
        assert!(ms <= before, "the slowest come first");
        before = ms;
        share += instruction["share"].as_f64().unwrap();
    }
    assert!((share - 1.0).abs() < 1e-9, "{share}");
}

#[test]
fn bisect_finds_the_turn_of_a_loop() {
    let (_a, a) = file("a.hlo", counting("1"));
    let (_b, b) = file("b.hlo", counting("2"));
    let (a, b) = (a.to_str().unwrap(), b.to_str().unwrap());
    // The constant itself is the first that differs.
    let done = tilewright(["check", a, b, "--bisect"]).failed(1).says("the outputs differ");
    let done = done.says("the first value that differs is that of `late`\n");
    done.says("  first:   %late = f32[] constant(1)\n  second:  %late = f32[] constant(2)\n");
    // Within the third turn.
    let (_c, c) = file("c.hlo", counting("1").replace("select(lasts, more", "select(lasts, x2"));
    let done = tilewright(["check", a, c.to_str().unwrap(), "--bisect"]).failed(1);
    let done = done.says("is that of `chosen`, evaluated for the 3. time\n");
    done.says("operand `lasts` agrees\n").says("operand `more` was not compared");
}

#[test]
fn bisect_reports_as_json() {
    let (_a, a) = file("a.hlo", add_constant("1"));
    let (_b, b) = file("b.hlo", add_constant("1").replace("add(x, b)", "subtract(x, b)"));
    let (a, b) = (a.to_str().unwrap(), b.to_str().unwrap());
    let report = tilewright(["check", a, b, "--bisect", "--json", "--seed", "3"]).stdout_json();
    let first = &report["first_difference"];
    let keys = [
        "instruction",
        "expected_text",
        "actual_text",
        "turn",
        "output",
        "at",
        "expected",
        "actual",
        "operands",
    ];
    assert_keys(first, &keys);
    assert_eq!((first["instruction"].as_str(), first["turn"].as_u64()), (Some("y"), Some(0)));
    assert_eq!(first["at"], serde_json::json!([0, 0]));
    assert_eq!(first["expected"], report["outputs"][0]["expected"]);
    let agree = |name| serde_json::json!({"name": name, "agrees": true});
    assert_eq!(first["operands"], serde_json::json!([agree("x"), agree("b")]));
    let same = tilewright(["check", a, a, "--bisect", "--json"]).ok().stdout_json();
    assert!(same["first_difference"].is_null());
}

/// Names that differ leave the result, which has a match always.
#[test]
fn bisect_says_what_has_no_match() {
    let other = add_constant("2").replace("b = ", "bb = ").replace("(x, b)", "(x, bb)");
    let (_a, a) = file("a.hlo", add_constant("1"));
    let (_b, b) = file("b.hlo", other.replace("c = ", "cc = ").replace("(c)", "(cc)"));
    let done = tilewright(["check", a.to_str().unwrap(), b.to_str().unwrap(), "--bisect"]);
    let done = done.failed(1).says("is that of `y`").says("operand `x` agrees");
    done.says("operand `b` was not compared").says("2 instructions of the first have no match");
}

#[test]
fn check_repeats_the_seed_that_it_names() {
    let (_a, a) = file("a.hlo", add_constant("1"));
    let (_b, b) = file("b.hlo", add_constant("2"));
    let (a, b) = (a.to_str().unwrap(), b.to_str().unwrap());
    let check = |seed: &str| tilewright(["check", a, b, "--seed", seed, "--seeds", "1"]).failed(1);
    assert_eq!(check("41").says("from seed 41").stderr, check("41").stderr);
    assert_ne!(check("41").stderr, check("42").stderr);
    let same = tilewright(["check", a, a, "--seed", "41", "--seeds", "3"]).ok();
    assert!(same.stdout.starts_with("equal: 1 output on 24 sets of inputs from seeds 41 to 43\n"));
    let one = tilewright(["check", a, a, "--seed", "7", "--seeds", "1"]).ok();
    assert!(one.stdout.starts_with("equal: 1 output on 8 sets of inputs from seed 7\n"));
    tilewright(["check", a, a, "--seeds", "0"]).failed(2).says("--seeds");
}
