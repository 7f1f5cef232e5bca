//! Tests `tilewright graph`: forms, parts, costs, and what is said when these do not exist.

use std::fs;

use crate::common::{file, group_norm, tilewright};

#[test]
fn help() {
    let help = tilewright(["graph", "--help"]).ok().stdout;
    insta::with_settings!({ prepend_module_to_snapshot => false, omit_expression => true }, {
        insta::assert_snapshot!("graph_help", help);
    });
}

#[test]
fn the_name_says_which_form() {
    let folder = tempfile::tempdir().unwrap();
    let input = group_norm();
    let input = input.to_str().unwrap();
    for (name, begins) in [("g.dot", "digraph"), ("g.svg", "<svg"), ("g.html", "<!DOCTYPE html>")] {
        let out = folder.path().join(name);
        tilewright(["graph", input, "--after", "-o", out.to_str().unwrap()]).ok();
        assert!(fs::read_to_string(out).unwrap().starts_with(begins), "{name}");
    }
    let out = folder.path().join("g.png");
    tilewright(["graph", input, "-o", out.to_str().unwrap()])
        .failed(2)
        .says("let it end in .dot, .svg or .html, or say --emit");
    assert!(!out.exists());
    // Without a name it is dot, and --emit is stronger than a name.
    assert!(tilewright(["graph", input]).ok().stdout.starts_with("digraph"));
    assert!(tilewright(["graph", input, "--emit", "svg"]).ok().stdout.starts_with("<svg"));
    tilewright(["graph", input, "--emit", "html", "-o", out.to_str().unwrap()]).ok();
    assert!(fs::read_to_string(out).unwrap().starts_with("<!DOCTYPE"));
}

#[test]
fn parts() {
    let input = group_norm();
    let input = input.to_str().unwrap();
    let all = tilewright(["graph", input]).ok().stdout;
    let part =
        tilewright(["graph", input, "--around", "reduce_sum.23", "--depth", "1"]).ok().stdout;
    assert!(part.contains("%reduce_sum.23") && part.len() < all.len() / 4);
    let part = tilewright(["graph", input, "--computation", "_var.5"]).ok().stdout;
    assert!(part.contains("label=\"_var.5\"") && !part.contains("%reduce_sum.23"));
    tilewright(["graph", input, "--around", "reduce_sun.23"])
        .failed(2)
        .says("there is no instruction `reduce_sun.23`; did you mean `reduce_sum.23`?");
    tilewright(["graph", input, "--computation", "main"])
        .failed(2)
        .says("there is no computation `main`; did you mean `main.6`?");
    tilewright(["graph", input, "--depth", "1"]).failed(2).says("--around");
    tilewright(["graph", input, "--around", "x", "--computation", "y"]).failed(2);
    tilewright(["graph", input, "--target", "no-such"]).failed(2).says("no-such");
    tilewright(["graph", input, "--after", "--passes", "no-such"]).failed(2);
}

#[test]
fn costs_and_profiles() {
    let input = group_norm();
    let input = input.to_str().unwrap();
    let costs = tilewright(["graph", input, "--cost"]).ok().stdout;
    assert!(costs.contains(" cycles, ") && costs.contains("fillcolor=\"0.05 "));
    let profile = tilewright(["run", input, "--profile", "--json"]).ok().stderr;
    let (_folder, path) = file("run.json", profile);
    let times = tilewright(["graph", input, "--profile", path.to_str().unwrap()]).ok().stdout;
    assert!(times.contains(" µs, ") || times.contains(" ms, "), "{times}");
    let (_folder, path) = file("other.json", "{}");
    tilewright(["graph", input, "--profile", path.to_str().unwrap()])
        .failed(1)
        .says("this is no profile");
    tilewright(["graph", input, "--profile", "no/such.json"]).failed(1).says("no/such.json");
}
