//! `tilewright reduce`: commands of the shell as predicates.

use std::time::{Duration, Instant};

use crate::common::{assert_keys, file, tilewright};

const MODULE: &str = "HloModule m
ENTRY main {
  x = f32[8] parameter(0)
  y = f32[8] sine(x)
  z = f32[8] tanh(y)
  ROOT t = (f32[8], f32[8]) tuple(z, y)
}";

const REDUCED: &str = "HloModule m

ENTRY %main (y: f32[1]) -> f32[1] {
  %y = f32[1] parameter(0)
  ROOT %z = f32[1] tanh(%y)
}
";

#[test]
fn grep_keeps_what_it_looks_for() {
    for keep in ["grep -q 'tanh(' {}", "grep -q 'tanh('", "grep -q 'tanh(' $TILEWRIGHT_CANDIDATE"] {
        let (folder, path) = file("in.hlo", MODULE);
        let done = tilewright(["reduce", path.to_str().unwrap(), "--keep", keep]).ok();
        // The parameter, sine, tanh and the tuple; then the parameter and tanh.
        assert!(done.stdout.starts_with("4 -> 2 instructions, "), "{}", done.stdout);
        let written = std::fs::read_to_string(folder.path().join("in.reduced.hlo")).unwrap();
        assert_eq!(written.trim(), REDUCED.trim());
    }
}

#[test]
fn the_result_goes_where_it_is_told() {
    let (folder, path) = file("in.hlo", MODULE);
    let path = path.to_str().unwrap();
    let keep = "grep -q 'tanh(' {}";
    let done = tilewright(["reduce", path, "--keep", keep, "-o", "-", "--json"]).ok();
    assert_eq!(done.stdout.trim(), REDUCED.trim());
    let report = done.stderr_json();
    assert_keys(&report, &["before", "after", "runs", "seconds", "ended", "output"]);
    assert!(report["output"].is_null());
    let out = folder.path().join("out.pb");
    tilewright(["reduce", path, "--keep", keep, "-o", out.to_str().unwrap()]).ok();
    assert_eq!(tilewright::load(&out).unwrap().instruction_count(), 2);
}

#[test]
fn a_command_that_does_not_hold_is_an_error() {
    let (folder, path) = file("in.hlo", MODULE);
    let path = path.to_str().unwrap();
    tilewright(["reduce", path, "--keep", "true {}; exit 3"])
        .failed(1)
        .says("on the module itself, the command exits with 3")
        .says("the predicate does not hold for the module itself");
    tilewright(["reduce", path, "--keep", "true {}; sleep 20", "--timeout", "0.2"])
        .failed(1)
        .says("does not end within --timeout");
    assert!(!folder.path().join("in.reduced.hlo").exists());
    tilewright(["reduce", path]).failed(2).says("--keep");
    tilewright(["reduce", "nowhere.hlo", "--keep", "true"]).failed(1).says("there is no such file");
    tilewright(["reduce", path, "--keep", "true", "--jobs", "0"]).failed(2).says("1 to 1024");
}

/// What the shell starts must not outlive its time.
#[test]
fn a_run_that_takes_too_long_is_ended_and_not_kept() {
    let (folder, path) = file("in.hlo", MODULE);
    // Without sine, the command sleeps.
    let keep = "grep -q 'sine(' {} || sleep 60; true";
    let begun = Instant::now();
    let args = ["--timeout", "1", "--max-runs", "8", "--jobs", "4"];
    let path = path.to_str().unwrap();
    tilewright(["reduce", path, "--keep", keep].into_iter().chain(args)).ok();
    assert!(begun.elapsed() < Duration::from_secs(50));
    let written = std::fs::read_to_string(folder.path().join("in.reduced.hlo")).unwrap();
    assert!(written.contains("sine("), "{written}");
}

#[test]
fn each_run_has_a_folder_of_its_own() {
    let (_folder, path) = file("in.hlo", MODULE);
    let keep = "test \"$(ls)\" = candidate.hlo && touch other && test -d \"$TILEWRIGHT_FOLDER\"";
    let done = tilewright(["reduce", path.to_str().unwrap(), "--keep", keep]);
    // The path at the end is an argument more for `test -d`, which fails.
    done.failed(1);
    let keep = format!("{keep} && test -f {{}}");
    let done = tilewright(["reduce", path.to_str().unwrap(), "--keep", &keep]).ok();
    assert!(done.stdout.starts_with("4 -> 1 instructions"), "{}", done.stdout);
}

#[test]
fn limits_end_the_search() {
    let (_folder, path) = file("in.hlo", MODULE);
    let path = path.to_str().unwrap();
    let done = tilewright(["reduce", path, "--keep", "true", "--max-runs", "1"]).ok();
    assert!(done.stdout.contains("1 runs") && done.stdout.contains("ended by --max-runs"));
    let done = tilewright(["reduce", path, "--keep", "true", "--max-seconds", "0"]).ok();
    assert!(done.stdout.contains("ended by --max-seconds"), "{}", done.stdout);
}

/// Ctrl-C ends what runs, and leaves the best module so far.
#[cfg(unix)]
#[test]
fn ctrl_c_leaves_the_best_so_far() {
    let (folder, path) = file("in.hlo", MODULE);
    // The second run passes, the third waits to be interrupted.
    let count = folder.path().join("count");
    let keep = format!(
        "echo >> {0}; grep -q 'tanh(' {{}} || exit 1; test $(wc -l < {0}) -lt 3 || sleep 60",
        count.display()
    );
    let mut child = std::process::Command::new(env!("CARGO_BIN_EXE_tilewright"))
        .args(["reduce", path.to_str().unwrap(), "--jobs", "1", "--timeout", "50", "--keep", &keep])
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let begun = Instant::now();
    let lines = || std::fs::read_to_string(&count).map_or(0, |text| text.len());
    while lines() < 3 && begun.elapsed() < Duration::from_secs(30) {
        std::thread::sleep(Duration::from_millis(10));
    }
    // Time for the third to go to sleep.
    std::thread::sleep(Duration::from_millis(200));
    let interrupt = ["-INT", &child.id().to_string()].map(ToOwned::to_owned);
    assert!(std::process::Command::new("kill").args(interrupt).status().unwrap().success());
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert!(begun.elapsed() < Duration::from_secs(45));
    let written = std::fs::read_to_string(folder.path().join("in.reduced.hlo")).unwrap();
    assert!(written.contains("tanh("), "{written}");
}
