//! Tests that any bad input leads to an error with place and reason, exit code 1, no output and
//! no panic.

use std::path::Path;

use crate::common::{add_constant, file, group_norm, model, tilewright, with_stdin};

/// Every verb that reads a module refuses it.
fn refused(input: &Path, says: &str) {
    let input = input.to_str().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out.hlo");
    let out = out.to_str().unwrap();
    for args in [
        &["verify", input][..],
        &["opt", input, "-o", out],
        &["convert", input, "-o", out],
        &["run", input, "-o", out],
        &["cost", input],
        &["check", input],
    ] {
        tilewright(args).failed(1).says(says);
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "something was written");
}

#[test]
fn missing_file() {
    refused(Path::new("no/such/file.hlo"), "cannot read no/such/file.hlo: there is no such file");
}

#[test]
fn folder() {
    let folder = tempfile::tempdir().unwrap();
    refused(folder.path(), "it is a folder");
}

#[test]
fn empty() {
    let (_folder, path) = file("empty.hlo", "");
    refused(&path, "empty.hlo");
    let (_folder, path) = file("blank.hlo", "\n  // nothing here\n");
    refused(&path, "blank.hlo");
}

#[test]
fn truncated() {
    let text = std::fs::read(group_norm()).unwrap();
    for part in [1, 5, 9] {
        let (_folder, path) = file("part.hlo", &text[..text.len() * part / 10]);
        refused(&path, "part.hlo");
    }
}

#[test]
fn garbled() {
    let (_folder, path) =
        file("garbled.hlo", add_constant("1").replace("f32[2,3] add", "f32[2 3 add"));
    refused(&path, "garbled.hlo:7:");
    let (_folder, path) = file("prose.hlo", "Lorem ipsum dolor sit amet, consectetur.");
    refused(&path, "prose.hlo:1:1");
}

#[test]
fn wrong_types() {
    let text = add_constant("1").replace("ROOT y = f32[2,3]", "ROOT y = f32[3,2]");
    let (_folder, path) = file("types.hlo", text);
    refused(&path, "types.hlo:7:");
}

#[test]
fn invalid_utf8() {
    let (_folder, path) = file("bytes.hlo", b"HloModule m\n\xff\xfe");
    refused(&path, "byte 12 (line 2) is not UTF-8");
}

#[test]
fn nul_bytes() {
    let (_folder, path) = file("nul.hlo", b"HloModule m\n\0\0\0");
    refused(&path, "nul.hlo");
}

#[test]
fn binary_proto() {
    let (_folder, path) = file("module.pb", b"\x0a\x05jit_f\x12\x04main\x1a\x02\x08\x01");
    refused(&path, "module.pb: computations[0]: it cannot be decoded");
}

#[test]
fn deep_nesting() {
    let deep = "{".repeat(100_000);
    let (_folder, path) =
        file("deep.hlo", add_constant("1").replace("constant(1)", &format!("constant({deep})")));
    refused(&path, "deep.hlo:5:");
    let (_folder, path) = file("deep.hlo", format!("HloModule m, x={deep}"));
    refused(&path, "deep.hlo:1:");
    let tuples = "(".repeat(100_000);
    let (_folder, path) =
        file("deep.hlo", format!("HloModule m\nENTRY e {{\n x = {tuples} parameter(0)\n}}"));
    refused(&path, "deep.hlo:3:");
}

#[test]
fn absurd_sizes() {
    let text = add_constant("1").replace("2,3", "9223372036854775807,9223372036854775807");
    let (_folder, path) = file("huge.hlo", text);
    let done = tilewright(["run", path.to_str().unwrap()]).failed(1);
    assert!(done.stderr.contains("huge.hlo"), "{}", done.stderr);
    // Well formed, but too large to evaluate.
    let (_folder, path) = file("large.hlo", add_constant("1").replace("2,3", "1000000,1000000"));
    let path = path.to_str().unwrap();
    tilewright(["verify", path]).ok();
    tilewright(["cost", path]).ok();
    tilewright(["run", path]).failed(3);
    tilewright(["check", path]).failed(3);
}

#[test]
fn stdin_is_named() {
    with_stdin(["verify", "-"], b"HloModule").failed(1).says("<stdin>:1:");
    with_stdin(["opt", "-"], b"\xff").failed(1).says("<stdin>: byte 0 (line 1) is not UTF-8");
}

#[test]
fn carets_and_no_colours_in_a_pipe() {
    let done =
        with_stdin(["verify", "-"], add_constant("1").replace(" add(x", " plus(x").as_bytes());
    let done = done.failed(1).says("^");
    assert!(!done.stderr.contains('\x1b'), "{}", done.stderr);
}

#[test]
fn unknown_names() {
    let input = group_norm();
    let input = input.to_str().unwrap();
    tilewright(["opt", input, "--target", "abacus"]).failed(2).says("`tpu-like`");
    tilewright(["cost", input, "--target", "abacus"]).failed(2).says("`tpu-like`");
    tilewright(["opt", input, "--passes", "dce,magic"]).failed(2).says("`magic`");
    tilewright(["opt", input, "--pipeline", "magic"]).failed(2).says("default");
}

#[test]
fn broken_target_file() {
    let input = group_norm();
    let input = input.to_str().unwrap();
    let (_folder, path) = file("mine.toml", "name = \"mine\"\nlanes = 0\n");
    let done = tilewright(["cost", input, "--target", path.to_str().unwrap()]).failed(1);
    let done = done.says("mine.toml").says("line 2").says("`sublanes` is missing");
    drop(done);
    tilewright(["cost", input, "--target", "no/such.toml"]).failed(1).says("there is no such file");
}

#[test]
fn broken_npz() {
    let input = group_norm();
    let input = input.to_str().unwrap();
    let with = |path: &Path| tilewright(["run", input, "--inputs", path.to_str().unwrap()]);
    with(Path::new("no.npz")).failed(1).says("no.npz");
    let (_folder, path) = file("in.npz", "no zip");
    with(&path).failed(1).says("in.npz");
    let good = std::fs::read(model("group_norm_nhwc.npz")).unwrap();
    for part in [1, 5, 9] {
        let (_folder, path) = file("in.npz", &good[..good.len() * part / 10]);
        with(&path).failed(1).says("in.npz");
    }
    // Another program's inputs.
    with(&model("mlp.npz")).failed(1).says("in");
}

#[test]
fn usage_errors() {
    for args in [
        &["frobnicate"][..],
        &["opt"],
        &["opt", "a", "b"],
        &["opt", "a", "--wat"],
        &["opt", "a", "--passes", "dce", "--pipeline", "default"],
        &["opt", "a", "--stop-after", "many"],
        &["run", "a", "--seed", "-1"],
        &["run", "a", "--seed", "1", "--inputs", "x.npz"],
        &["check", "a", "--seeds", "0"],
        &["verify"],
    ] {
        tilewright(args).failed(2);
    }
    tilewright::<&str>([]).failed(2).says("Usage");
}
