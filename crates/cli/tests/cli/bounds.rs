//! `--max-steps` and `--max-bytes`.

use crate::common::{add_constant, file, tilewright, with_stdin};

const ENDLESS: &str = "HloModule m
cond {
  i = s32[] parameter(0)
  ROOT t = pred[] constant(true)
}
body {
  i = s32[] parameter(0)
  ROOT j = s32[] add(i, i)
}
ENTRY e {
  i = s32[] parameter(0)
  ROOT w = s32[] while(i), condition=cond, body=body
}";

const HUGE: &str = "HloModule m
ENTRY e {
  x = f32[] parameter(0)
  ROOT y = f32[1048576,1048576] broadcast(x), dimensions={}
}";

#[test]
fn an_endless_loop_ends() {
    let run = |args: &[&str]| {
        let args = ["run", "-", "--max-steps"].iter().chain(args);
        with_stdin(args, ENDLESS.as_bytes()).failed(3)
    };
    run(&["2k"]).says("took 2000 steps").says("`--max-steps`");
    run(&["300"]).says("took 300 steps");
    let (_folder, path) = file("m.hlo", ENDLESS);
    let path = path.to_str().unwrap();
    tilewright(["check", path, path, "--max-steps", "1K"]).failed(3).says("took 1000 steps");
    tilewright(["opt", path, "--check", "--max-steps", "1K"]).failed(3).says("took 1000 steps");
}

#[test]
fn a_huge_array_is_refused() {
    let error = with_stdin(["run", "-"], HUGE.as_bytes()).failed(3);
    error.says("`y` would need 4398046511104 bytes").says("`--max-bytes`");
    let (_folder, path) = file("m.hlo", HUGE);
    let path = path.to_str().unwrap();
    let check = tilewright(["check", path, path, "--max-bytes", "1M"]).failed(3);
    check.says("the limit is 1048576 bytes");
    // The inputs alone are too large.
    let large = add_constant("1");
    with_stdin(["run", "-", "--max-bytes", "23"], large.as_bytes())
        .failed(3)
        .says("the inputs would need 24 bytes; the limit is 23")
        .says("`--max-bytes`");
    with_stdin(["run", "-", "--max-bytes", "1G"], large.as_bytes()).ok();
}

#[test]
fn bounds_are_whole_numbers() {
    for wrong in ["", "K", "1.5G", "-1", "1T", "20000000000G", "é"] {
        let limit = format!("--max-bytes={wrong}");
        tilewright(["run", "-", &limit]).failed(2).says("--max-bytes");
        let limit = format!("--max-steps={wrong}");
        tilewright(["run", "-", &limit]).failed(2).says("--max-steps");
    }
}
