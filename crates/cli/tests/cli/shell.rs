//! What makes the command at home in a shell: completions, manual, colours, silence, timings, files
//! for results, hints.

use std::fs;
use std::process::Command;

use crate::common::{add_constant, command, file, group_norm, tilewright, with_stdin};

const VERBS: [&str; 12] = [
    "opt",
    "run",
    "check",
    "verify",
    "cost",
    "lower",
    "convert",
    "passes",
    "ops",
    "targets",
    "completions",
    "man",
];

#[test]
fn completions_know_every_verb_and_option() {
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let script = tilewright(["completions", shell]).ok().stdout;
        for word in VERBS.iter().chain(&["stop-after", "color", "quiet"]) {
            assert!(script.contains(word), "no {word} for {shell}");
        }
    }
    tilewright(["completions", "cmd"]).failed(2).says("possible values: bash");
}

#[cfg(unix)]
#[test]
fn bash_takes_its_completions() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tilewright.bash");
    tilewright(["completions", "bash", "-o", path.to_str().unwrap()]).ok();
    // What the function offers after `tilewright opt --stop`.
    let ask = format!(
        "source '{}'; COMP_WORDS=(tilewright opt --stop); COMP_CWORD=2; \
         _tilewright tilewright --stop opt; printf '%s\\n' \"${{COMPREPLY[@]}}\"",
        path.display()
    );
    let Ok(done) = Command::new("bash").args(["--norc", "-c", &ask]).output() else {
        return; // There is no bash here.
    };
    let said = String::from_utf8(done.stdout).unwrap();
    assert_eq!(said, "--stop-after\n", "{}", String::from_utf8_lossy(&done.stderr));
}

#[test]
fn the_manual_has_a_page_for_each_verb() {
    let folder = tempfile::tempdir().unwrap();
    let pages = folder.path().join("man/man1");
    tilewright(["man", "-o", pages.to_str().unwrap()]).ok();
    let page = |name: &str| fs::read_to_string(pages.join(name)).unwrap();
    let all = page("tilewright.1");
    assert_eq!(all, tilewright(["man"]).ok().stdout);
    for verb in VERBS {
        assert!(all.contains(&format!("tilewright\\-{verb}(1)")), "{verb}");
        let own = page(&format!("tilewright-{verb}.1"));
        assert!(own.contains(".SH SYNOPSIS") && own.contains("quiet"), "{own}");
    }
    assert!(page("tilewright-opt.1").contains("stop\\-after"));
    assert_eq!(tilewright(["man", "opt"]).ok().stdout, page("tilewright-opt.1"));
    tilewright(["man", "option"]).failed(2).says("no verb `option`");
}

#[test]
fn colours_are_asked_for_or_forbidden() {
    let (_folder, path) = file("bad.hlo", "HloModule");
    let is_coloured = |args: &[&str], variables: &[(&str, &str)]| {
        let mut command = command();
        for name in ["NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE"] {
            command.env_remove(name);
        }
        let done = command.arg("verify").arg(&path).args(args).envs(variables.iter().copied());
        let stderr = done.output().unwrap().stderr;
        assert!(!stderr.is_empty());
        stderr.contains(&0x1b)
    };
    assert!(is_coloured(&["--color", "always"], &[]));
    assert!(!is_coloured(&["--color", "auto"], &[]) && !is_coloured(&[], &[]));
    let force = ("CLICOLOR_FORCE", "1");
    assert!(is_coloured(&[], &[force]));
    assert!(!is_coloured(&[], &[force, ("NO_COLOR", "1")]));
    // The option is stronger than variables.
    assert!(!is_coloured(&["--color=never"], &[force]));
    assert!(is_coloured(&["--color=always"], &[("NO_COLOR", "1")]));
    tilewright(["--color", "red", "ops"]).failed(2).says("possible values: auto, always, never");
}

#[test]
fn quiet_leaves_errors_and_what_was_asked_for() {
    let text = add_constant("1").replace("shifted", "shifted, replica_count=2");
    let (folder, path) = file("in.hlo", &text);
    let pb = folder.path().join("out.pb");
    let convert = ["convert", path.to_str().unwrap(), "-o", pb.to_str().unwrap()];
    assert!(tilewright(convert).ok().stderr.starts_with("warning: "));
    // Before or after the verb.
    assert_eq!(tilewright(["-q"].iter().chain(&convert)).ok().stderr, "");
    assert_eq!(tilewright(convert.iter().chain(&["--quiet"])).ok().stderr, "");
    let dumps = folder.path().join("dumps");
    let opt = ["-q", "opt", path.to_str().unwrap(), "--dump-dir", dumps.to_str().unwrap()];
    assert_eq!(tilewright(opt).ok().stderr, "");
    assert!(tilewright(opt.iter().chain(&["--stats"])).ok().stderr.starts_with("on tpu-like."));
    with_stdin(["verify", "-", "-q"], b"HloModule").failed(1).says("error: ");
    tilewright(["ops", "-q", "-v"]).failed(2).says("cannot be used with");
}

#[test]
fn verbose_tells_the_time_of_each_stage() {
    let input = group_norm();
    let input = input.to_str().unwrap();
    let stages = |args: &[&str]| {
        let done = tilewright(args).ok();
        let stage = |line: &str| {
            let (name, time) = line.split_once(": ").unwrap();
            let ms: f64 = time.strip_suffix(" ms").unwrap().parse().unwrap();
            assert!(ms >= 0.0, "{line}");
            name.to_owned()
        };
        done.stderr.lines().map(stage).collect::<Vec<_>>()
    };
    let read = ["read", "verify"];
    assert_eq!(stages(&["opt", input, "-v"]), [&read[..], &["optimise", "write"]].concat());
    assert_eq!(stages(&["run", input, "-v"]), [&read[..], &["evaluate", "write"]].concat());
    let check = [&read[..], &["optimise", "compare", "write"]].concat();
    assert_eq!(stages(&["-v", "check", input]), check);
    assert_eq!(stages(&["cost", input, "--verbose"]), [&read[..], &["weigh", "write"]].concat());
    assert_eq!(stages(&["lower", input, "-v"]), [&read[..], &["lower", "write"]].concat());
    // JSON stays alone on stderr.
    tilewright(["opt", input, "-v", "--json"]).ok().stderr_json();
}

#[test]
fn every_verb_writes_its_result_to_a_file() {
    let input = group_norm();
    let input = input.to_str().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let verbs: [&[&str]; 11] = [
        &["cost", input],
        &["cost", input, "--json"],
        &["lower", input],
        &["lower", input, "--plan", "--json"],
        &["check", input],
        &["check", input, "--json"],
        &["verify", input, input],
        &["passes"],
        &["ops", "--json"],
        &["targets"],
        &["targets", "cpu"],
    ];
    for args in verbs {
        let done = tilewright(args.iter().chain(&["-o", out.to_str().unwrap()])).ok();
        assert_eq!(done.stdout, "", "{args:?}");
        let written = fs::read_to_string(&out).unwrap();
        assert_eq!(written, tilewright(args).ok().stdout, "{args:?}");
        assert_eq!(tilewright(args.iter().chain(&["-o", "-"])).ok().stdout, written, "{args:?}");
    }
    // A JSON report of an error is where the report would be.
    let failed = ["cost", "no-such-file.hlo", "--json", "-o", out.to_str().unwrap()];
    tilewright(failed).failed(1).says("no-such-file.hlo");
    let report: serde_json::Value = serde_json::from_slice(&fs::read(&out).unwrap()).unwrap();
    assert_eq!(report["error"]["code"], "input");
}

#[test]
fn hints_fit() {
    let text = |opcode: &str| add_constant("1").replace("] add(", &format!("] {opcode}("));
    let hint = |opcode: &str| {
        let done = with_stdin(["verify", "-"], text(opcode).as_bytes()).failed(1);
        let done = done.says("unknown opcode");
        let (_, hint) = done.stderr.split_once("did you mean ")?;
        Some(hint.split('`').nth(1).unwrap().to_owned())
    };
    assert_eq!(hint("ad").as_deref(), Some("add"));
    assert_eq!(hint("Subtract").as_deref(), Some("subtract"));
    assert_eq!(hint("substract").as_deref(), Some("subtract"));
    assert_eq!(hint("Total"), None);
    assert_eq!(hint("mean"), None);
    tilewright(["opt", "-", "--passes", "dec"]).failed(1);
    with_stdin(["opt", "-", "--passes", "dec"], text("add").as_bytes())
        .failed(2)
        .says("did you mean `dce`?");
}

#[test]
fn targets_are_started_from_built_in_ones() {
    let file_of = |name: &str| tilewright(["targets", name]).ok().stdout;
    let cpu = file_of("cpu");
    assert!(cpu.contains("\nbase = \"cpu\"\n") && cpu.contains("\n#lanes = 8\n"), "{cpu}");
    assert_eq!(tilewright(["targets", "--toml", "cpu"]).ok().stdout, cpu);
    // The file is that target, and a changed key counts.
    let input = group_norm();
    let cost = |target: &str| {
        let args = ["cost", input.to_str().unwrap(), "--target", target, "--json"];
        tilewright(args).ok().stdout_json()
    };
    let (folder, path) = file("mine.toml", &cpu);
    let path_text = path.to_str().unwrap();
    let (mut of_file, of_name) = (cost(path_text), cost("cpu"));
    // Reports tell the file from the built-in target.
    assert_eq!(of_file["target"], format!("cpu ({path_text})"));
    of_file["target"] = "cpu".into();
    assert!(of_file == of_name);
    let changed = cpu.replace("#name = \"cpu\"", "name = \"mine\"").replace("#lanes", "lanes");
    fs::write(&path, changed.replace("lanes = 8", "lanes = 4")).unwrap();
    let mine = cost(path.to_str().unwrap());
    assert_eq!(mine["target"], "mine");
    assert_ne!(mine["total"]["vectors"], cost("cpu")["total"]["vectors"]);
    drop(folder);
    let json = tilewright(["targets", "cpu", "--json"]).ok().stdout_json();
    assert_eq!(json["targets"].as_array().unwrap().len(), 1);
    assert_eq!(json["targets"][0]["lanes"], 8);
    tilewright(["targets", "gpu"]).failed(2).says("`mlu-like`");
    let how = tilewright(["targets", "--calibrate"]).ok().stdout;
    assert!(how.contains("python benches/calibrate.py --engine"), "{how}");
    tilewright(["targets", "cpu", "--calibrate"]).failed(2).says("--calibrate");
    tilewright(["targets", "--toml"]).failed(2).says("<NAME>");
}

#[test]
fn who_is_told_to_stop_says_so() {
    let input = group_norm();
    let opt = |stop: &str| {
        let args = ["opt", input.to_str().unwrap(), "--stop-after", stop, "--stats", "--explain"];
        tilewright(args).ok().stderr
    };
    let none = opt("0");
    assert!(none.contains("told to stop before the first rewrite"), "{none}");
    assert!(!none.contains("nothing was found"), "{none}");
    let many = opt("1000");
    assert!(many.contains("stopped: no pass finds anything more to do"), "{many}");
    let all = ["opt", input.to_str().unwrap(), "--stop-after", "0", "--explain=all"];
    let all = tilewright(all).ok().stderr;
    assert!(all.ends_with("told to stop before the first rewrite.\n"), "{all}");
    assert_eq!(all.matches("told to stop").count(), 1, "{all}");
    let one = opt("1");
    assert!(one.ends_with("\nstopped: after 1 rewrite, as it was told\n"), "{one}");
}

#[test]
fn dumps_of_runs_lie_apart() {
    let folder = tempfile::tempdir().unwrap();
    let dumps = folder.path().join("a/b");
    let (_other, path) = file("in.hlo", add_constant("1"));
    let run = |input: &std::path::Path| {
        tilewright(["opt", input.to_str().unwrap(), "--dump-dir", dumps.to_str().unwrap()]).ok()
    };
    let first = run(&group_norm()).says("module");
    run(&group_norm());
    let mut names: Vec<String> = fs::read_dir(&dumps)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert_eq!(names, ["001-jit_group_norm_nhwc", "002-jit_group_norm_nhwc"]);
    let where_to = dumps.join("001-jit_group_norm_nhwc");
    let files = fs::read_dir(&where_to).unwrap().count();
    let note = format!("note: --dump-dir: {files} modules in {}\n", where_to.display());
    assert_eq!(first.stderr, note);
    // A number is not given twice.
    fs::remove_dir_all(&where_to).unwrap();
    run(&path).says("a/b/003-shifted\n");
}
