//! `run` and `check`.

use std::fs;

use tilewright::interp::npz;
use tilewright::ir::{ArrayLiteral, Data, ElementType};

use crate::common::{add_constant, file, group_norm, model, tilewright, with_stdin};

#[test]
fn run_shows_outputs() {
    let (_folder, path) = file("in.hlo", add_constant("1"));
    let done = tilewright(["run", path.to_str().unwrap()]).ok();
    assert!(done.stdout.starts_with("out0 f32[2,3] = {"), "{}", done.stdout);
    assert_eq!(done.stderr, "");
}

#[test]
fn seeds_decide_the_inputs() {
    let text = add_constant("1");
    let run = |seed: &str| with_stdin(["run", "-", "--seed", seed], text.as_bytes()).ok().stdout;
    assert_eq!(run("7"), run("7"));
    assert_ne!(run("7"), run("8"));
    assert_eq!(run("0"), with_stdin(["run", "-"], text.as_bytes()).ok().stdout);
}

#[test]
fn run_reads_and_writes_npz() {
    let folder = tempfile::tempdir().unwrap();
    let (first, second) = (folder.path().join("1.npz"), folder.path().join("2.npz"));
    let (hlo, npz) = (group_norm(), model("group_norm_nhwc.npz"));
    for out in [&first, &second] {
        let args = ["run", hlo.to_str().unwrap(), "--inputs", npz.to_str().unwrap(), "-o"];
        let done = tilewright(args.into_iter().chain([out.to_str().unwrap()])).ok();
        assert_eq!(done.stdout, "");
    }
    let bytes = fs::read(&first).unwrap();
    assert!(bytes.starts_with(b"PK"));
    assert_eq!(bytes, fs::read(&second).unwrap());
}

#[test]
fn run_takes_every_model() {
    let mut ran = 0;
    for entry in fs::read_dir(model("")).unwrap() {
        let npz = entry.unwrap().path();
        if npz.extension().is_none_or(|extension| extension != "npz") {
            continue;
        }
        let hlo = npz.with_extension("hlo");
        let done = tilewright(["run", hlo.to_str().unwrap(), "--inputs", npz.to_str().unwrap()]);
        let stdout = done.ok().stdout;
        // The arrays that XLA computed; `tilewright-interp` compares their elements.
        let module = tilewright::load(&hlo).unwrap();
        let outputs = npz::read_outputs(&npz, &module).unwrap();
        let outputs = outputs.leaves();
        assert_eq!(stdout.lines().count(), outputs.len(), "{}:\n{stdout}", hlo.display());
        for (i, (line, output)) in stdout.lines().zip(outputs).enumerate() {
            let start = format!("out{i} {} = {{", output.shape());
            assert!(line.starts_with(&start), "{}: {line} is not {start}", hlo.display());
        }
        ran += 1;
    }
    assert!(ran >= 80, "{ran} models");
}

#[test]
fn a_module_equals_itself_optimised() {
    let input = group_norm();
    let done = tilewright(["check", input.to_str().unwrap()]).ok();
    assert!(done.stdout.starts_with("equal but for rounding: 1 output on "), "{}", done.stdout);
}

#[test]
fn check_finds_a_planted_difference() {
    let (_a, a) = file("a.hlo", add_constant("1"));
    let (_b, b) = file("b.hlo", add_constant("1.001"));
    let (a, b) = (a.to_str().unwrap(), b.to_str().unwrap());
    tilewright(["check", a, a]).ok();
    let done = tilewright(["check", a, b]).failed(1).says("the outputs differ").says("out0");
    drop(done);
}

#[test]
fn check_refuses_other_parameters() {
    let (_a, a) = file("a.hlo", add_constant("1"));
    let (_b, b) = file("b.hlo", add_constant("1").replace("2,3", "3,2"));
    let (a, b) = (a.to_str().unwrap(), b.to_str().unwrap());
    tilewright(["check", a, b]).failed(1).says("f32[2,3]").says("f32[3,2]");
}

#[test]
fn check_takes_inputs_and_tolerances() {
    let (folder, a) = file("a.hlo", add_constant("1"));
    let (_b, b) = file("b.hlo", add_constant("1.125"));
    let (a, b) = (a.to_str().unwrap(), b.to_str().unwrap());
    let given = folder.path().join("given.npz");
    let given = given.to_str().unwrap();
    let x = ArrayLiteral::new(ElementType::F32, [2, 3], Data::F32(vec![7.0; 6])).unwrap();
    let mut bytes = std::io::Cursor::new(Vec::new());
    npz::write(&mut bytes, &[("in", &[x.into()])]).unwrap();
    std::fs::write(given, bytes.into_inner()).unwrap();
    let done = tilewright(["check", a, a, "--inputs", given]).ok();
    assert!(done.stdout.starts_with("equal: 1 output on the given inputs\n"), "{}", done.stdout);
    let done = tilewright(["check", a, b, "--inputs", given]).failed(1);
    done.says("is 8.0 in the first and 8.125 in the second, on the given inputs");
    // 0.125 is a little more than 0.0156 of 8, and exactly 0.125.
    for (flag, least, less) in [("--rtol", "0.015625", "0.0156"), ("--atol", "0.125", "0.1249")] {
        tilewright(["check", a, b, "--inputs", given, flag, least]).ok();
        tilewright(["check", a, b, "--inputs", given, flag, less]).failed(1);
    }
    tilewright(["check", a, b, "--rtol=-1"]).failed(2).says("--rtol");
}
