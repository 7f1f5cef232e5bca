//! The keys and types of every `--json` report, which others build on.

use crate::common::{add_constant, assert_keys, file, group_norm, tilewright};
use serde_json::Value;

const COSTS: [&str; 6] =
    ["cycles", "vectors", "realigned_vectors", "bytes", "padded_bytes", "flops"];

fn assert_costs(value: &Value) {
    assert!(value["cycles"].is_f64(), "{value}");
    for key in &COSTS[1..] {
        assert!(value[key].is_u64(), "{key} in {value}");
    }
}

#[test]
fn cost() {
    let input = group_norm();
    let report = tilewright(["cost", input.to_str().unwrap(), "--json"]).ok().stdout_json();
    assert_keys(&report, &["module", "target", "total", "instructions", "latency_cycles"]);
    assert_eq!(report["module"], "jit_group_norm_nhwc");
    assert_eq!(report["target"], "tpu-like");
    assert_keys(&report["total"], &COSTS);
    assert_costs(&report["total"]);
    let instructions = report["instructions"].as_array().unwrap();
    assert!(!instructions.is_empty());
    let mut keys = vec!["name", "opcode", "meaning", "shape"];
    keys.extend(COSTS);
    for instruction in instructions {
        assert_keys(instruction, &keys);
        assert!(instruction["name"].is_string() && instruction["opcode"].is_string());
        assert_eq!(instruction["meaning"].is_string(), instruction["opcode"] == "reshape");
        assert_costs(instruction);
    }
}

#[test]
fn memory() {
    let input = group_norm();
    let args = ["cost", input.to_str().unwrap(), "--memory", "--json"];
    let report = tilewright(args).ok().stdout_json();
    assert_keys(
        &report,
        &["module", "target", "devices", "peak", "counted_whole", "arrays", "advice"],
    );
    let peak = ["padded_bytes", "bytes", "argument_bytes", "instruction", "place"];
    assert_keys(&report["peak"], &peak);
    let sizes = ["bytes", "padded_bytes", "padding", "is_at_peak", "is_argument"];
    let names = ["name", "opcode", "meaning", "shape", "op_name", "source", "readers", "advice"];
    let arrays = report["arrays"].as_array().unwrap();
    for array in arrays {
        assert_keys(array, &[sizes.as_slice(), &names].concat());
        for reader in array["readers"].as_array().unwrap() {
            assert_keys(reader, &["name", "opcode", "source"]);
        }
    }
    let at_peak = arrays.iter().filter(|array| array["is_at_peak"] == true);
    let sum: u64 = at_peak.map(|array| array["padded_bytes"].as_u64().unwrap()).sum();
    assert_eq!(report["peak"]["padded_bytes"], sum);
    // It is the figure of `opt`.
    let opt = tilewright(["opt", input.to_str().unwrap(), "--json"]).ok().stderr_json();
    assert_eq!(opt["peak_live_bytes"][0], sum);
}

#[test]
fn opt() {
    let input = group_norm();
    let done = tilewright(["opt", input.to_str().unwrap(), "--stats", "--json"]).ok();
    assert!(done.stdout.starts_with("HloModule"));
    let report = done.stderr_json();
    let both = ["peak_live_bytes", "memory_sweeps"];
    assert!(report["caveat"].is_null() && report["traffic"].is_null());
    let figures = ["before", "after", "traffic", "caveat", "ratio_error"];
    let rest = ["passes", "stopped", "unchanged", "notes", "left_out", "explained"];
    assert_keys(&report, &[figures.as_slice(), &rest, &both].concat());
    for key in both {
        let [before, after] = report[key].as_array().unwrap().as_slice() else { panic!("{key}") };
        assert!(before.as_u64().unwrap() >= after.as_u64().unwrap(), "{key}: {before}, {after}");
    }
    for key in ["before", "after"] {
        assert_keys(&report[key], &COSTS);
        assert_costs(&report[key]);
    }
    assert_eq!(report["stopped"], "fixpoint");
    assert_eq!(report["unchanged"], false);
    for pass in report["passes"].as_array().unwrap() {
        assert_keys(pass, &["name", "changes", "ms"]);
        assert!(pass["name"].is_string() && pass["changes"].is_u64() && pass["ms"].is_f64());
    }
    assert!(report["explained"].is_null());
    let explained =
        tilewright(["opt", input.to_str().unwrap(), "--json", "--explain"]).ok().stderr_json();
    let explanation = &explained["explained"];
    let rest =
        ["target", "cycles", "ratio_error", "caveat", "layers", "shares", "remedies", "obstacles"];
    assert_keys(explanation, &rest);
    let figures = ["cycles", "bytes", "array_bytes", "rewrites"];
    for layer in explanation["layers"].as_array().unwrap() {
        assert_keys(layer, &[["scope", "pattern", "source"].as_slice(), &figures].concat());
    }
    for obstacle in explanation["obstacles"].as_array().unwrap() {
        assert_keys(obstacle, &["why", "advice", "place", "count"]);
    }
    for note in report["notes"].as_array().unwrap() {
        assert_keys(note, &["pass", "verdict", "place", "op_name", "source", "text"]);
        assert!(note["verdict"] == "rewritten" || note["verdict"] == "left");
    }
}

#[test]
fn run() {
    let (_folder, path) = file("in.hlo", add_constant("1"));
    let done = tilewright(["run", path.to_str().unwrap(), "--stats", "--json"]).ok();
    let report = done.stderr_json();
    let counters = [
        "cycles",
        "hbm_read_bytes",
        "hbm_write_bytes",
        "workspace_bytes",
        "vmem_peak_bytes",
        "vector_ops",
        "realign_ops",
        "host_calls",
    ];
    let keys: Vec<&str> = ["backend", "wall_ms"].into_iter().chain(counters).collect();
    assert_keys(&report, &keys);
    assert_eq!(report["backend"], "interp");
    assert!(report["wall_ms"].is_f64());
    for key in counters {
        assert!(report[key].is_null(), "the interpreter counts no {key}");
    }
}

#[test]
fn check() {
    let (_a, a) = file("a.hlo", add_constant("1"));
    let (_b, b) = file("b.hlo", add_constant("2"));
    let (a, b) = (a.to_str().unwrap(), b.to_str().unwrap());
    let same = tilewright(["check", a, "--json"]).ok().stdout_json();
    let other = tilewright(["check", a, b, "--json"]);
    assert_eq!(other.code, 1);
    let other = other.stdout_json();
    for (report, equal) in [(&same, true), (&other, false)] {
        assert_keys(report, &["equal", "outputs", "seeds", "first_difference", "recorded"]);
        assert_eq!(report["equal"], equal);
        assert!(report["seeds"].as_u64().unwrap() > 0);
        let outputs = report["outputs"].as_array().unwrap();
        assert_eq!(outputs.len(), 1);
        let witness = ["at", "expected", "actual", "device", "inputs", "seed"];
        let table = ["max_relative", "largest_on", "excuse", "elements", "not_compared", "algebra"];
        let keys = ["index", "max_abs", "max_ulp"].into_iter().chain(witness).chain(table);
        assert_keys(&outputs[0], &keys.collect::<Vec<&str>>());
        assert_eq!(outputs[0]["not_compared"], 0);
        assert!(outputs[0]["device"].is_null());
        assert_eq!(outputs[0]["index"], 0);
    }
    assert_eq!(same["outputs"][0]["max_abs"], 0.0);
    assert!(other["outputs"][0]["max_ulp"].as_u64().unwrap() > 0);
    assert_eq!(other["outputs"][0]["at"].as_array().unwrap().len(), 2);
    assert_eq!(
        (&other["outputs"][0]["inputs"], &other["outputs"][0]["seed"]),
        (&"normal".into(), &0.into())
    );
    assert!(other["outputs"][0]["expected"].is_string() && same["outputs"][0]["seed"].is_null());
}

#[test]
fn diff() {
    let (_a, a) = file("a.hlo", add_constant("1"));
    let (_b, b) = file(
        "b.hlo",
        add_constant("2")
            .replace("add(x, b)", "add(x, n)")
            .replace("  ROOT", "  n = f32[2,3] negate(b)\n  ROOT"),
    );
    let (a, b) = (a.to_str().unwrap(), b.to_str().unwrap());
    let same = tilewright(["diff", a, a, "--json"]).ok().stdout_json();
    assert_eq!((&same["same"], &same["computations"]), (&true.into(), &serde_json::json!([])));
    let done = tilewright(["diff", a, b, "--json"]);
    assert_eq!(done.code, 1);
    let report = done.stdout_json();
    assert_keys(&report, &["same", "a", "b", "counts", "header", "computations", "moved"]);
    assert_keys(&report["a"], &["source", "module"]);
    assert_keys(&report["counts"], &["unchanged", "changed", "added", "removed", "moved"]);
    let computation = &report["computations"][0];
    let keys = ["a", "b", "changes", "unchanged", "changed", "removed", "added"];
    assert_keys(computation, &keys);
    let changed = computation["changed"].as_array().unwrap();
    assert_eq!(changed.len(), 2);
    let instruction = ["name", "computation", "text", "meaning", "line"];
    for pair in changed {
        assert_keys(pair, &["a", "b", "changes"]);
        assert_keys(&pair["a"], &instruction);
        assert_keys(&pair["changes"][0], &["what", "name", "before", "after", "same_value"]);
    }
    let value = serde_json::json!({
        "what": "value", "name": "", "before": "1", "after": "2", "same_value": false,
    });
    assert_eq!(changed[0]["changes"][0], value);
    let added = &computation["added"][0];
    assert_keys(added, &[&instruction[..], &["same_as"]].concat());
    assert_eq!((&added["name"], &added["line"]), (&"n".into(), &7.into()));
}

#[test]
fn errors_are_json_where_the_report_would_be() {
    let unknown = "HloModule m
ENTRY e {
  x = f32[2] parameter(0)
  ROOT y = f32[2] fft(x), fft_type=IFFT, fft_length={2}
}";
    let (_a, a) = file("a.hlo", unknown);
    let done = tilewright(["check", a.to_str().unwrap(), "--json"]);
    assert_eq!(done.code, 1);
    let error = done.stdout_json();
    assert_keys(&error, &["error"]);
    assert_keys(&error["error"], &["code", "message", "place"]);
    assert_eq!(error["error"]["code"], "input");
    assert!(error["error"]["place"].as_str().unwrap().ends_with("a.hlo:4:8"), "{error}");

    let (_b, b) = file("b.hlo", add_constant("1"));
    let b = b.to_str().unwrap();
    let done = tilewright(["check", b, "--json", "--max-bytes", "8"]);
    assert_eq!(done.code, 3);
    assert_eq!(done.stdout_json()["error"]["code"], "evaluation");
    let done = tilewright(["run", b, "--json", "--max-steps", "0"]);
    assert_eq!(done.code, 3);
    assert_eq!(done.stderr_json()["error"]["code"], "evaluation");
    let done = tilewright(["cost", b, "--json", "--target", "abacus"]);
    assert_eq!(done.code, 2);
    assert_eq!(done.stdout_json()["error"]["code"], "usage");
}

/// The worked example of the method that plans state, f32[2,3,2,3,6].
#[test]
fn lower_plan() {
    let text = "HloModule m
add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }
ENTRY e {
  x = f32[2,3,2,3,6] parameter(0)
  zero = f32[] constant(0)
  ROOT sum = f32[2,2,6] reduce(x, zero), dimensions={1,3}, to_apply=add
}";
    let (_folder, path) = file("in.hlo", text);
    let path = path.to_str().unwrap();
    let report = tilewright(["lower", path, "--plan", "--json"]).ok().stdout_json();
    let expected = serde_json::json!([{
        "name": "sum",
        "shape": "f32[2,3,2,3,6]",
        "axes": [1, 3],
        "normalized": [2, 3, 2, 3, 6],
        "kinds": "dadad",
        "order": "reverse",
        "steps": [
            { "axis": 3, "extent": 3, "base": 6, "offset": 6, "parallel": 2 },
            { "axis": 1, "extent": 3, "base": 12, "offset": 36, "parallel": 2 },
        ],
        "strategy": "fused",
        "workspace_bytes": 0,
    }]);
    assert_eq!(report, expected);
    // The array in between is f32[2,3,2,6], in tiles of 8x128.
    let args = ["lower", path, "--plan", "--json", "--strategy", "looped"];
    let looped = tilewright(args).ok().stdout_json();
    assert_eq!(
        (&looped[0]["strategy"], &looped[0]["workspace_bytes"]),
        (&"looped".into(), &24576.into())
    );
    let args = ["lower", path, "--plan", "--strategy", "looped", "--target", "linear"];
    let shown = tilewright(args).ok().stdout;
    assert!(shown.contains("dadad, reverse, workspace 288\n"), "{shown}");
    let shown = tilewright(["lower", path, "--plan"]).ok().stdout;
    let lines: Vec<&str> = shown.lines().collect();
    assert_eq!(
        lines,
        [
            "sum: f32[2,3,2,3,6], axes [1, 3]",
            "  [2, 3, 2, 3, 6] dadad, reverse, workspace 0",
            "  axis 3, 3 entries: base 6, offset 6, parallel 2",
            "  axis 1, 3 entries: base 12, offset 36, parallel 2",
        ]
    );
}

#[test]
fn lower_kernels() {
    let input = group_norm();
    let report = tilewright(["lower", input.to_str().unwrap(), "--json"]).ok().stdout_json();
    let kernels = report.as_array().unwrap();
    assert!(!kernels.is_empty());
    for reduce in kernels {
        assert_keys(reduce, &["name", "kernels", "why_not"]);
        let [kernel] = &reduce["kernels"].as_array().unwrap()[..] else { panic!("{reduce}") };
        assert!(kernel.as_str().unwrap().starts_with("kernel "));
    }
    let shown = tilewright(["lower", input.to_str().unwrap(), "--target", "cpu"]).ok().stdout;
    assert!(shown.contains(" for cpu\n"), "{shown}");
}

#[test]
fn lower_says_what_the_host_runs() {
    let (_folder, path) = file(
        "in.hlo",
        "HloModule m
ENTRY e {
  x = f32[8,16] parameter(0)
  y = f32[16,8] parameter(1)
  product = f32[8,8] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT minus = f32[8,8] negate(product)
}",
    );
    let args = ["lower", path.to_str().unwrap(), "--target", "linear"];
    let why = "`product` runs on the host: it is a dot: ";
    let report = tilewright(args.into_iter().chain(["--json"])).ok().stdout_json();
    assert_eq!(report[0]["kernels"].as_array().unwrap().len(), 1);
    assert_eq!(report[1]["name"], "product");
    assert_eq!(report[1]["kernels"].as_array().unwrap().len(), 0);
    assert!(report[1]["why_not"].as_str().unwrap().starts_with(why), "{report}");
    let shown = tilewright(args).ok().stdout;
    let line = shown.lines().last().unwrap();
    assert!(line.starts_with(&format!("no kernel: {why}")), "{shown}");
}

#[test]
fn run_on_the_machine() {
    let input = group_norm();
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("trace.json");
    let args = ["run", input.to_str().unwrap(), "--backend", "sim", "--stats", "--json"];
    let trace_args = ["--trace", trace.to_str().unwrap()];
    let report = tilewright(args.into_iter().chain(trace_args)).ok().stderr_json();
    assert_eq!(report["backend"], "sim");
    assert!(report["cycles"].as_f64().unwrap() > 0.0);
    assert_eq!(report["workspace_bytes"], 0);
    for key in ["hbm_read_bytes", "hbm_write_bytes", "vmem_peak_bytes", "vector_ops"] {
        assert!(report[key].as_u64().unwrap() > 0, "{key}");
    }
    let by_op = report["host_ops"].as_object().unwrap();
    let calls: u64 = by_op.values().map(|n| n.as_u64().unwrap()).sum();
    assert_eq!(report["host_calls"], calls);
    assert!(!by_op.contains_key("reduce"));
    let trace: Value = serde_json::from_str(&std::fs::read_to_string(trace).unwrap()).unwrap();
    let events = trace["traceEvents"].as_array().unwrap();
    assert!(events.iter().any(|event| event["ph"] == "X" && event["dur"].as_f64().unwrap() > 0.0));
    assert!(events.iter().all(|event| event["tid"].is_u64()));
}

/// A computation applied to elements counts as one call. The instructions of a loop's body
/// count in every turn; the loop itself does not. A kernel computes the counter.
#[test]
fn the_host_is_counted() {
    let text = "HloModule m
less { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = pred[] compare(a, b), direction=LT }
go { s = (s32[], f32[4]) parameter(0) i = s32[] get-tuple-element(s), index=0
  three = s32[] constant(3) ROOT c = pred[] compare(i, three), direction=LT }
turn { s = (s32[], f32[4]) parameter(0) i = s32[] get-tuple-element(s), index=0
  one = s32[] constant(1) next = s32[] add(i, one) x = f32[4] get-tuple-element(s), index=1
  y = f32[4] sort(x), dimensions={0}, to_apply=less ROOT r = (s32[], f32[4]) tuple(next, y) }
ENTRY e { x = f32[4] parameter(0) zero = s32[] constant(0) s = (s32[], f32[4]) tuple(zero, x)
  ROOT w = (s32[], f32[4]) while(s), condition=go, body=turn }";
    let (_folder, path) = file("in.hlo", text);
    let args = ["run", path.to_str().unwrap(), "--backend", "sim", "--json"];
    let report = tilewright(args).ok().stderr_json();
    assert_eq!(report["host_ops"], serde_json::json!({ "sort": 3 }));
}

/// Sums along two dims with one between them, and a computation without a known identity.
const TWO_REDUCES: &str = "HloModule m
add { a = s32[] parameter(0) b = s32[] parameter(1) ROOT c = s32[] add(a, b) }
other { a = s32[] parameter(0) b = s32[] parameter(1) p = s32[] multiply(a, b)
  s = s32[] add(a, b) ROOT c = s32[] add(p, s) }
ENTRY e {
  x = s32[4,3,5] parameter(0)
  zero = s32[] constant(0)
  sum = s32[3] reduce(x, zero), dimensions={0,2}, to_apply=add
  odd = s32[3] reduce(x, zero), dimensions={0,2}, to_apply=other
  ROOT both = (s32[3], s32[3]) tuple(sum, odd)
}";

#[test]
fn kernels_by_another_strategy() {
    let (_folder, path) = file("in.hlo", TWO_REDUCES);
    let path = path.to_str().unwrap();
    let args = ["lower", path, "--strategy", "looped", "--target", "linear"];
    let report = tilewright(args.into_iter().chain(["--json"])).ok().stdout_json();
    assert_eq!(report[0]["kernels"].as_array().unwrap().len(), 2);
    assert_eq!(report[1]["kernels"].as_array().unwrap().len(), 0);
    assert!(report[1]["why_not"].as_str().unwrap().contains("no identity"));
    let shown = tilewright(args).ok().stdout;
    for line in ["kernel sum.1 for linear", "kernel sum.2 for linear"] {
        assert!(shown.lines().any(|shown| shown == line), "{shown}");
    }
    assert!(shown.contains("no kernel: "), "{shown}");
    let shown = tilewright(args.into_iter().chain(["--plan"])).ok().stdout;
    assert!(shown.contains("looped has no kernels for it"), "{shown}");
    let args = ["lower", path, "--strategy", "transposed", "--target", "linear", "--plan"];
    let plans = tilewright(args.into_iter().chain(["--json"])).ok().stdout_json();
    for plan in plans.as_array().unwrap() {
        // s32[3,20].
        assert_eq!(
            (&plan["strategy"], &plan["workspace_bytes"]),
            (&"transposed".into(), &240.into())
        );
    }
}

/// An op that the strategy refuses runs in one pass, and a message reports it.
#[test]
fn run_by_another_strategy() {
    let (_folder, path) = file("in.hlo", TWO_REDUCES);
    let path = path.to_str().unwrap();
    let args = ["run", path, "--backend", "sim", "--target", "linear", "--strategy"];
    let fused = tilewright(args.into_iter().chain(["fused"])).ok().stdout;
    let looped = tilewright(args.into_iter().chain(["looped", "--stats"])).ok();
    assert_eq!(looped.stdout, fused);
    looped.says("done in one pass: ").says("no identity");
    let report = tilewright(args.into_iter().chain(["looped", "--json"])).ok().stderr_json();
    // s32[4,3], between the two kernels of the sum.
    assert_eq!(report["workspace_bytes"], 48);
    assert_eq!(report["refused"].as_array().unwrap().len(), 1);
    assert_eq!(report["refused"][0]["name"], "odd");
    tilewright(args.into_iter().chain(["loop"])).failed(2).says("fused");
}

/// A norm with its reductions runs natively, with any number of threads to the same bits.
#[test]
fn run_on_this_cpu() {
    let input = group_norm();
    let args = ["run", input.to_str().unwrap(), "--backend", "native", "--json"];
    let one = tilewright(args.into_iter().chain(["--threads", "1"])).ok();
    let two = tilewright(args.into_iter().chain(["--threads", "2"])).ok();
    assert_eq!(one.stdout, two.stdout);
    let report = one.stderr_json();
    assert_eq!(report["backend"], "native");
    assert!(report["wall_ms"].as_f64().unwrap() > 0.0);
    assert!(report["programs"].as_u64().unwrap() > 0);
    let by_op = report["host_ops"].as_object().unwrap();
    let calls: u64 = by_op.values().map(|n| n.as_u64().unwrap()).sum();
    assert_eq!(report["host_calls"], calls);
    assert!(!by_op.contains_key("reduce"));
    let input = input.to_str().unwrap();
    tilewright(["run", input, "--threads", "2"]).failed(2).says("--backend native");
    tilewright(["run", input, "--backend", "native", "--profile"]).failed(2).says("one device");
}

#[test]
fn the_machine_is_asked_for() {
    let input = group_norm();
    let input = input.to_str().unwrap();
    let words = "for the simulated machine";
    tilewright(["run", input, "--target", "cpu"]).failed(2).says(words);
    tilewright(["run", input, "--strategy", "looped"]).failed(2).says(words);
    tilewright(["run", input, "--backend", "sim", "--profile"]).failed(2).says("one device");
    tilewright(["run", input, "--backend", "sim", "--target", "none"]).failed(2).says("none");
}

#[test]
fn verify() {
    let (_good, good) = file("good.hlo", add_constant("1"));
    let (_syntax, syntax) = file("syntax.hlo", add_constant("1").replace("ENTRY", "ENTRY ENTRY"));
    let (_types, types) =
        file("types.hlo", add_constant("1").replace("ROOT y = f32", "ROOT y = s32"));
    let paths = [&good, &syntax, &types].map(|path| path.to_str().unwrap());
    let done = tilewright(["verify", "--json", paths[0], paths[1], paths[2]]);
    assert_eq!(done.code, 1);
    assert_eq!(done.stderr, "");
    let report = done.stdout_json();
    assert_keys(&report, &["modules"]);
    let modules = report["modules"].as_array().unwrap();
    for (module, path) in modules.iter().zip(paths) {
        assert_keys(module, &["path", "ok", "errors"]);
        assert_eq!(module["path"], path);
        for error in module["errors"].as_array().unwrap() {
            assert_keys(error, &["code", "line", "column", "message"]);
        }
    }
    assert_eq!(modules[0]["ok"], true);
    assert_eq!(modules[0]["errors"], Value::Array(Vec::new()));
    assert!(modules[1]["errors"][0]["code"].is_null());
    assert_eq!(modules[1]["errors"][0]["line"], 3);
    assert_eq!(modules[2]["errors"][0]["code"], "V014");
    assert_eq!(modules[2]["errors"][0]["line"], 7);
}

#[test]
fn lists() {
    let passes = tilewright(["passes", "--json"]).ok().stdout_json();
    assert_keys(&passes, &["passes", "pipelines"]);
    assert_keys(&passes["passes"][0], &["name", "summary", "class", "rules"]);
    assert_keys(
        &passes["pipelines"][0],
        &["name", "summary", "target", "first", "cleanup", "cost_gated", "last"],
    );
    let ops = tilewright(["ops", "--json"]).ok().stdout_json();
    assert_eq!(ops["ops"].as_array().unwrap().len(), 134);
    assert_keys(&ops["ops"][0], &["name", "family", "min_operands", "max_operands", "attributes"]);
    let targets = tilewright(["targets", "--json"]).ok().stdout_json();
    assert_keys(&targets, &["default", "targets"]);
    assert!(targets["targets"][0]["lanes"].is_u64());
}

#[test]
fn reduce() {
    let input = group_norm();
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out.hlo");
    let args = ["--keep", "grep -q 'rsqrt(' {}", "--max-runs", "20", "-o", out.to_str().unwrap()];
    let args = ["reduce", input.to_str().unwrap(), "--json"].into_iter().chain(args);
    let report = tilewright(args).ok().stdout_json();
    assert_keys(&report, &["before", "after", "runs", "seconds", "ended", "output"]);
    for key in ["before", "after"] {
        let keys = ["ops", "instructions", "elements", "text"];
        assert_keys(&report[key], &keys);
        assert!(keys.iter().all(|of| report[key][of].is_u64()), "{report}");
    }
    assert!(report["runs"].as_u64().unwrap() <= 20 && report["seconds"].is_f64());
    assert_eq!(report["ended"], "max_runs");
    assert_eq!(report["output"], out.to_str().unwrap());
}
