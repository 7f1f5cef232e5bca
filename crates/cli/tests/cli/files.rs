//! Files of every form, as the command takes them.

use std::fs;
use std::path::{Path, PathBuf};

use crate::common::{file, tilewright, with_stdin};

const SNAPSHOT: &str = "module_0000.jit_group_scale.execution_0000.hlo_unoptimized_snapshot";

fn files() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/files")
}

fn path(name: &str) -> String {
    files().join(name).to_str().unwrap().to_owned()
}

/// A dump of two modules, one of which is much larger.
fn dump() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for name in ["module_0000.jit_group_scale", "module_0002.jit_table"] {
        let name = format!("{name}.before_optimizations.hlo.pb.gz");
        fs::copy(files().join("gzip").join(&name), folder.path().join(&name)).unwrap();
    }
    folder
}

#[test]
fn every_verb_takes_a_folder() {
    let folder = dump();
    let input = folder.path().to_str().unwrap();
    for verb in ["verify", "opt", "convert", "run", "cost", "check", "lower"] {
        let done = tilewright([verb, input]).ok();
        assert!(!done.stdout.is_empty(), "{verb}");
        let done = done.says("note: ").says("this is the largest");
        done.says("  module_0002.jit_table.before_optimizations.hlo.pb.gz (3 instructions)");
    }
}

#[test]
fn json_on_stderr_has_no_notes() {
    let folder = dump();
    let input = folder.path().to_str().unwrap();
    assert!(tilewright(["opt", input, "--json"]).ok().stderr_json().is_object());
    assert!(tilewright(["run", input, "--json"]).ok().stderr_json().is_object());
    let after = path("dump/module_0000.jit_group_scale.cpu_after_optimizations.txt");
    assert!(tilewright(["opt", &after, "--json"]).ok().stderr_json().is_object());
}

/// The first and the last value of the program in `fixtures/generate_files.py`, by hand: the mean
/// of a group of `x` is that of its corners, since `x` ascends evenly.
#[test]
fn snapshots_run_with_their_arguments() {
    let corner = |row: f32, channel: f32| (row * 8.0 + channel) / 63.0;
    let second = corner(0.0, 1.0) - (corner(0.0, 0.0) + corner(3.0, 3.0)) / 2.0;
    for ending in ["pb", "txt"] {
        let input = path(&format!("snapshots/{SNAPSHOT}.{ending}"));
        let done = tilewright(["run", &input]).ok();
        let values = done.stdout.strip_prefix("out0 f32[2,4,8] = {").unwrap();
        let value: f32 = values.split(", ").nth(1).unwrap().parse().unwrap();
        assert!((value - second).abs() < 1e-6, "{value} is not {second}");
        let done = tilewright(["check", &input]).ok();
        assert!(done.stdout.contains("on the given inputs"), "{}", done.stdout);
        tilewright(["opt", &input, "--check", "-o", "-"]).ok();
        let seeded = tilewright(["run", &input, "--seed", "1"]).ok();
        assert_ne!(seeded.stdout, tilewright(["run", &input]).ok().stdout);
        // The simulated machine has the same arguments.
        let simulated = tilewright(["run", &input, "--backend", "sim"]).ok();
        assert!(
            simulated.stdout.starts_with("out0 f32[2,4,8] = {-0.0, -0.198"),
            "{}",
            simulated.stdout
        );
    }
}

#[test]
fn partitions_run_on_devices_of_their_own() {
    let text = fs::read_to_string(path(&format!("snapshots/{SNAPSHOT}.txt"))).unwrap();
    let (_, partition) = text.split_once("partitions {").unwrap();
    // In the second, all of `scale` is 7.
    let (x, scale) = partition.rsplit_once("is_dynamic_dimension: false\n    }\n").unwrap();
    let seven = |line: &str| {
        let value = line.trim_start().starts_with("f32s:");
        if value { "    f32s: 7\n".to_owned() } else { format!("{line}\n") }
    };
    let sevens: String = scale.lines().map(seven).collect();
    let second = format!("partitions {{{x}is_dynamic_dimension: false\n    }}\n{sevens}");
    let (_folder, both) = file("two.txt", format!("{text}{second}"));
    let both = both.to_str().unwrap();
    let done = tilewright(["run", both]).ok();
    assert!(done.stdout.starts_with("out0 f32[2,2,4,8] = {-0.0, "), "{}", done.stdout);
    tilewright(["check", both]).ok();
    tilewright(["opt", both, "--check"]).ok();
    let one = tilewright(["run", both, "--partitions", "1"]).failed(3);
    one.says("2 lists of inputs were given for 1 devices");
}

#[test]
fn stdin_is_of_any_form() {
    let names = [
        "gzip/module_0000.jit_group_scale.before_optimizations.hlo.pb.gz".to_owned(),
        format!("snapshots/{SNAPSHOT}.pb"),
        format!("snapshots/{SNAPSHOT}.txt"),
    ];
    for name in names {
        let bytes = fs::read(files().join(&name)).unwrap();
        let done = with_stdin(["verify", "-"], &bytes).ok();
        assert_eq!(done.stdout, "<stdin>: ok, 22 instructions in 2 computations\n", "{name}");
    }
}

#[test]
fn opt_says_that_a_module_is_already_optimised() {
    let after = path("dump/module_0000.jit_group_scale.cpu_after_optimizations.txt");
    let done = tilewright(["opt", &after]).ok();
    done.says("note: the module is scheduled and has 2 fusions").says("jax.jit(f).lower(*args)");
    let before = path("dump/module_0000.jit_group_scale.before_optimizations.txt");
    assert_eq!(tilewright(["opt", &before]).ok().stderr, "");
}

#[test]
fn errors_of_forms_name_the_file() {
    let (_folder, mlir) = file("f.mlir", "module @jit_f {\n}\n");
    let (_folder, bytecode) = file("f.mlirbc", b"ML\xefR");
    let (_folder, gzip) = file("f.gz", b"\x1f\x8b\x08");
    let (_folder, proto) = file("f.txt", "hlo_module { nam: 'f' }");
    let cases = [
        (&mlir, "the program has no function `main`"),
        (&bytecode, "f.mlirbc: byte 4"),
        (&gzip, "f.gz: its gzip data is damaged"),
        (&proto, "f.txt:1:14"),
    ];
    for (path, says) in cases {
        for verb in ["verify", "opt", "run", "check"] {
            tilewright([verb, path.to_str().unwrap()]).failed(1).says(says);
        }
    }
    tilewright(["opt", &path("dump")]).failed(1).says("name one of these files in it");
}
