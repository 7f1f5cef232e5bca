//! Every model fixture evaluates to the outputs that XLA:CPU computed.

use std::path::{Path, PathBuf};

use tilewright_interp::{Limits, Tolerance, compare, evaluate, npz};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/models")
}

#[test]
fn models_evaluate_to_what_xla_computed() {
    let mut failures = Vec::new();
    let mut count = 0;
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(folder()).unwrap().map(|e| e.unwrap().path()).collect();
    files.sort();
    for path in files.iter().filter(|p| p.extension().is_some_and(|e| e == "hlo")) {
        count += 1;
        if let Err(error) = check(path) {
            failures.push(format!("{}: {error}", path.display()));
        }
    }
    println!("{count} models");
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

fn check(path: &Path) -> Result<(), String> {
    let text = std::fs::read_to_string(path).map_err(|e| e.to_string())?;
    let module = tilewright_text::parse_and_verify(&text).map_err(|e| format!("{e:?}"))?;
    let arrays = path.with_extension("npz");
    let inputs = npz::read_inputs(&arrays, &module).map_err(|e| e.to_string())?;
    let expected = npz::read_outputs(&arrays, &module).map_err(|e| e.to_string())?;
    let start = std::time::Instant::now();
    let actual = evaluate(&module, &inputs, &Limits::default()).map_err(|e| e.to_string())?;
    let took = start.elapsed();
    let comparisons =
        compare(&expected, &actual, Tolerance::of).map_err(|e| e.to_string())?;
    let worst = comparisons.iter().map(|c| c.max_abs).fold(0.0, f64::max);
    println!("{:60} {took:>12?} {worst:e}", path.file_name().unwrap().to_string_lossy());
    match comparisons.into_iter().find(|c| !c.equal) {
        Some(worst) => Err(format!("{worst:?}")),
        None => Ok(()),
    }
}
