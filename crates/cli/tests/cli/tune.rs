//! `tilewright tune`: commands of the shell as engines.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::common::{Done, assert_keys, command, group_norm, tilewright};

/// Tunes the group norm with a command, and writes to a file.
#[track_caller]
fn tuned(with: &str, out: &Path, more: &[&str]) -> Done {
    let input = group_norm();
    let args = ["tune", input.to_str().unwrap(), "--with", with, "-o", out.to_str().unwrap()];
    tilewright(args.into_iter().chain(["--target", "cpu"]).chain(more.iter().copied()))
}

/// Fails unless a file has the group norm as it was.
#[track_caller]
fn assert_original(out: &Path) {
    let original = tilewright(["convert", group_norm().to_str().unwrap()]).ok().stdout;
    assert!(fs::read_to_string(out).unwrap() == original, "another module was written");
}

/// A command in which the original takes 2 ms, and all other forms 1 ms.
const FASTER: &str = "case {} in *candidate_0.hlo) echo 2e-3;; *) echo 1e-3;; esac";

#[test]
fn the_fastest_module_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out.hlo");
    let done = tuned(FASTER, &out, &[]).ok();
    assert_eq!(done.stdout, "");
    let lines: Vec<&str> = done.stderr.lines().collect();
    assert!(lines[0].starts_with("candidate"), "{}", done.stderr);
    let words: Vec<&str> = lines[2].split_whitespace().collect();
    assert_eq!((words[0], words[4]), ("default", "2.00x"));
    assert!(lines[2].contains("fastest") && lines[2].contains("reshape-out-of-region"));
    let best = folder.path().join("best.hlo");
    let input = group_norm();
    let args = ["opt", input.to_str().unwrap(), "--target", "cpu", "-o", best.to_str().unwrap()];
    tilewright(args).ok();
    assert!(fs::read_to_string(&out).unwrap() == fs::read_to_string(&best).unwrap());
}

#[test]
fn the_original_is_written_where_nothing_is_faster() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out.hlo");
    for with in ["echo 1 #", "case {} in *candidate_0.hlo) echo 1;; *) echo no; exit 7;; esac"] {
        let done = tuned(with, &out, &["--max-seconds", "10"]).ok();
        assert_original(&out);
        let row = done.stderr.lines().nth(1).unwrap();
        assert!(row.starts_with("original") && row.trim_end().ends_with("fastest"), "{row}");
    }
    let done = tuned("case {} in *_0.hlo) echo 1;; *) echo why >&2; exit 7;; esac", &out, &[]).ok();
    assert!(done.stderr.contains("exits with 7: why"), "{}", done.stderr);
    let done = tuned("case {} in *_0.hlo) echo 1;; *) echo slow;; esac", &out, &[]).ok();
    assert!(done.stderr.contains("prints no seconds, but \"slow\""), "{}", done.stderr);
}

#[test]
fn the_report_is_json() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out.hlo");
    let report = tuned(FASTER, &out, &["--json"]).ok().stderr_json();
    assert_keys(&report, &["winner", "forms"]);
    assert_eq!(report["winner"], "default");
    let keys =
        ["name", "passes", "modelled", "saved_cycles", "seconds", "spread", "measured", "outcome"];
    assert_keys(&report["forms"][0], &keys);
    assert_eq!(report["forms"][0]["name"], "original");
    assert_eq!(report["forms"][1]["measured"], 2.0);
}

#[test]
fn the_seconds_of_several_runs_count_as_their_median() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out.hlo");
    let with = "case {} in *_0.hlo) printf '9\\n3\\n4\\n';; *) printf '2\\n\\n2\\n100\\n';; esac";
    let report = tuned(with, &out, &["--json"]).ok().stderr_json();
    assert_eq!(report["forms"][0]["seconds"], 4.0);
    assert_eq!(report["forms"][1]["measured"], 2.0);
}

#[test]
fn a_command_that_does_not_run_the_module_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out.hlo");
    tuned("true {}; exit 3", &out, &[])
        .failed(1)
        .says("on the module itself, the command exits with 3");
    tuned("true {}; sleep 20", &out, &["--timeout", "0.2"])
        .failed(1)
        .says("does not end within its time (--timeout)");
    tuned("true", &out, &[]).failed(1).says("prints no seconds");
    assert!(!out.exists());
    tilewright(["tune", "in.hlo"]).failed(2).says("--with");
    tilewright(["tune"]).failed(2).says("--with");
    tilewright(["tune", "--list", "--clear"]).failed(2).says("--clear");
    tuned(FASTER, &out, &["--least-gain", "0.5"]).failed(2).says("from 1 to 100");
}

#[test]
fn candidates_that_take_too_long_are_out() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out.hlo");
    let with = "case {} in *_0.hlo) echo 1;; *) sleep 30; echo 2;; esac";
    let begun = Instant::now();
    let done = tuned(with, &out, &["--timeout", "0.3"]).ok();
    assert!(done.stderr.contains("does not end within its time (--timeout)"), "{}", done.stderr);
    assert!(begun.elapsed() < Duration::from_secs(20));
    assert_original(&out);
}

#[test]
fn the_time_to_decide_is_limited() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out.hlo");
    let begun = Instant::now();
    tuned(
        "sleep 0.2; case {} in *_0.hlo) echo 1;; *) echo 1.0;; esac",
        &out,
        &["--max-seconds", "1"],
    )
    .ok();
    assert!(begun.elapsed() < Duration::from_secs(10));
}

#[test]
fn what_pays_nothing_is_not_run() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("in.hlo");
    fs::write(&path, crate::common::add_constant("1")).unwrap();
    let done = tilewright(["tune", path.to_str().unwrap(), "--with", "exit 3"]).ok();
    assert!(done.stderr.contains("nothing was measured"), "{}", done.stderr);
    assert!(done.stdout.starts_with("HloModule shifted"));
}

#[test]
fn decisions_are_listed_and_cleared() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("decisions.jsonl");
    let run = |args: &[&str]| {
        let done = command().args(args).env("TILEWRIGHT_DECISIONS", &path).output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        (done.status.code(), text(done.stdout), text(done.stderr))
    };
    let (_, empty, _) = run(&["tune", "--list"]);
    assert!(empty.starts_with("0 decisions in "), "{empty}");
    let decision = r#"{"module":"0123456789abcdef","options":"xla-cpu-0.12 guarded","device":"cpu x1",
        "engine":"jaxlib 0.12.0.1","version":"0.1.0","function":"step","winner":"exact","digest":"",
        "seconds":1.5,"forms":[{"name":"original","passes":[],"modelled":1.0,"saved_cycles":0.0,"seconds":2.0,"spread":0.1,
        "measured":1.0,"outcome":"slower"},{"name":"exact","passes":["unit-dims"],"modelled":null,"saved_cycles":null,
        "seconds":1.0,"spread":0.1,"measured":2.0,"outcome":"fastest"}]}"#;
    fs::write(&path, format!("{}\nnothing\n", decision.replace('\n', ""))).unwrap();
    let (code, list, said) = run(&["tune", "--list"]);
    let row = list.lines().nth(1).unwrap();
    let words: Vec<&str> = row.split_whitespace().collect();
    assert_eq!(
        words,
        ["step", "cpu", "x1", "jaxlib", "0.12.0.1", "exact", "2.00x", "-", "0123456789ab"]
    );
    assert!(list.ends_with(&format!("1 decision in {}\n", path.display())), "{list}");
    assert_eq!(
        (code, said),
        (Some(0), format!("warning: 1 line of {} is no decision\n", path.display()))
    );
    let (_, json, _) = run(&["tune", "--list", "--json"]);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json[0]["forms"][1]["name"], "exact");
    let (_, cleared, _) = run(&["tune", "--clear"]);
    assert_eq!(cleared, format!("forgot 1 decision of {}\n", path.display()));
    assert!(run(&["tune", "--list"]).1.starts_with("0 decisions"));
}

/// Ctrl-C ends the race with what is known.
#[cfg(unix)]
#[test]
fn ctrl_c_ends_the_race() {
    let folder = tempfile::tempdir().unwrap();
    let (out, running) = (folder.path().join("out.hlo"), folder.path().join("running"));
    let with = format!("touch {}; sleep 50; echo 1 {{}}", running.display());
    let input = group_norm();
    let mut child = command()
        .args(["tune", input.to_str().unwrap(), "--with", &with, "-o", out.to_str().unwrap()])
        .args(["--target", "cpu"])
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let begun = Instant::now();
    while !running.exists() && begun.elapsed() < Duration::from_secs(20) {
        std::thread::sleep(Duration::from_millis(10));
    }
    let pid = child.id().to_string();
    std::process::Command::new("kill").args(["-INT", &pid]).status().unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert_original(&out);
}
