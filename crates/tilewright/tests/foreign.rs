//! Programs that others wrote: models of flax, haiku and transformers with a step of Adam on each,
//! and norms and blocks that PyTorch/XLA writes, with a step of gradient descent.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::{Path, PathBuf};

use tilewright::prelude::*;
use tilewright::{CheckOptions, check, load, parse, print, target};

const TARGETS: [&str; 2] = ["tpu-like", "cpu"];

/// Returns the files whose names have a part, sorted.
fn files(part: &str) -> Vec<PathBuf> {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures");
    let entries =
        ["foreign", "torch"].map(|folder| std::fs::read_dir(fixtures.join(folder)).unwrap());
    let mut found: Vec<PathBuf> =
        entries.into_iter().flatten().map(|entry| entry.unwrap().path()).collect();
    found.retain(|path| path.to_string_lossy().contains(part));
    found.sort();
    assert!(!found.is_empty(), "{part}");
    found
}

fn rewritten(module: &Verified, name: &str) -> Verified {
    let options = Options::new(target(name).unwrap());
    tilewright::optimize(module.clone(), &options).unwrap().module
}

/// Rewritten modules print as text that reads back and verifies.
#[test]
fn real_sizes_are_rewritten_and_read_back() {
    let form = PrintOptions::default();
    for path in files("_real") {
        let module = load(&path).unwrap();
        for name in TARGETS {
            let printed = print(&rewritten(&module, name), &form).unwrap();
            let again = parse(&printed).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
            assert_eq!(print(&again, &form).unwrap(), printed, "{} on {name}", path.display());
        }
    }
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
            let wrong = witnesses.next();
            assert!(wrong.is_none(), "{} on {name}: {wrong:?}", path.display());
        }
    }
}

/// A batch norm that no rewrite gains by stays one op.
#[test]
fn batch_norms_without_a_gain_stay() {
    let path = files("torch/block_batch_norm_small.hlo").remove(0);
    let module = load(&path).unwrap();
    let after = rewritten(&module, "cpu");
    let count = |module: &Verified| {
        let entry = module.entry().unwrap();
        let all = module.instructions(entry).map(|id| module.opcode(id));
        all.filter(|&opcode| opcode == Opcode::BatchNormTraining).count()
    };
    assert!(count(&module) > 0);
    assert_eq!(count(&after), count(&module));
}
