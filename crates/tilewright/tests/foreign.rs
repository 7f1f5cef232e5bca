//! Programs that others wrote: models of flax, haiku and transformers, norms as
//! PyTorch/XLA writes them, and a step of Adam on each.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::{Path, PathBuf};

use tilewright::prelude::*;
use tilewright::{CheckOptions, check, load, parse, print, target};

const TARGETS: [&str; 2] = ["tpu-like", "cpu"];

/// The files whose names have a part, sorted.
fn files(part: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/foreign");
    let entries = std::fs::read_dir(folder).unwrap();
    let mut found: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    found.retain(|path| path.to_string_lossy().contains(part));
    found.sort();
    assert!(found.len() >= 18, "{part}: {found:?}");
    found
}

fn rewritten(module: &Verified, name: &str) -> Verified {
    let options = Options::new(target(name).unwrap());
    tilewright::optimize(module.clone(), &options).unwrap().module
}

/// What is printed of what is rewritten is read and verified again.
#[test]
fn real_sizes_are_rewritten_and_read_back() {
    for path in files("_real") {
        let module = load(&path).unwrap();
        for name in TARGETS {
            let printed = print(&rewritten(&module, name)).unwrap();
            let again = parse(&printed).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
            assert_eq!(print(&again).unwrap(), printed, "{} on {name}", path.display());
        }
    }
}

/// A variance as E[x^2] - E[x]^2, as batch norms are expanded, of data far from zero is
/// all rounding: whether it is negative, and its root NaN, is chance in any order of the
/// sums, and the original moves less than `check` asks for to excuse it.
fn is_chance(path: &Path, inputs: &str) -> bool {
    let one_pass = ["torch_group_norm", "torch_block"];
    let name = path.to_string_lossy();
    inputs == "far" && one_pass.iter().any(|part| name.contains(part))
}

/// `check` raises no alarm on a default rewrite.
#[test]
fn small_sizes_keep_their_results() {
    let options = CheckOptions::default();
    for path in files("_small") {
        let module = load(&path).unwrap();
        for name in TARGETS {
            let found = check(&module, &rewritten(&module, name), &options).unwrap();
            let mut witnesses = found.outputs.iter().filter_map(|output| output.witness.as_ref());
            let wrong = witnesses.find(|witness| !is_chance(&path, witness.inputs));
            assert!(wrong.is_none(), "{} on {name}: {wrong:?}", path.display());
        }
    }
}
