//! StableHLO programs that JAX lowered, beside jaxlib's conversion of them (`fixtures/stablehlo`).

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use tilewright::prelude::*;
use tilewright::{PassSelection, load, optimize};
use tilewright_tools::diff::{DiffOptions, diff};

/// Programs of which jaxlib makes another graph than the cleanup does: it writes an `iota` of several
/// dims as a broadcast, puts constants last, folds comparisons of integers with themselves, hands
/// other values to loops, expands functions of complex numbers, names meshes, shards the steps of a
/// broadcast, too, takes diagonals of integers by `or`, and computes quantised values by more steps.
const OTHER_FORM: [&str; 23] = [
    "approx_best",
    "approx_top_k",
    "argmax_ints",
    "atan_complex",
    "broadcast_with_sharding",
    "cholesky",
    "compare_orders",
    "einsum_of_diagonals",
    "erf_inv_double",
    "erfc_double",
    "fixed_dyn_iota_s",
    "inlined_mesh",
    "polygamma",
    "prog_group_norm_scan",
    "prog_rows_fori_loop_grad",
    "quantized_ops",
    "quantized_products",
    "ragged_dot",
    "rng_rbg",
    "scan",
    "un_digamma_float16",
    "un_erfc",
    "while",
];

fn programs() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fixtures/stablehlo");
    let folders = [root.join("read_only"), root];
    let entries = folders.iter().flat_map(|folder| folder.read_dir().unwrap());
    let paths = entries.map(|entry| entry.unwrap().path());
    let mut programs: Vec<PathBuf> =
        paths.filter(|path| path.extension().is_some_and(|end| end == "mlir")).collect();
    programs.sort();
    programs
}

fn clean(path: &Path) -> Verified {
    let options = Options::new(tilewright::target("tpu-like").unwrap())
        .with_passes(PassSelection::Pipeline("cleanup".to_owned()));
    let module = load(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    optimize(module, &options).unwrap_or_else(|error| panic!("{}: {error}", path.display())).module
}

/// jaxlib simplifies while it converts, and the cleanup afterwards, so that both graphs are one after
/// the cleanup. What the others compute is compared by the tests of the conversion.
#[test]
fn the_cleanup_makes_the_graphs_of_jaxlib() {
    let programs = programs();
    assert!(programs.len() > 90, "{} programs", programs.len());
    let differs = |path: &&PathBuf| {
        let (ours, theirs) = (clean(path), clean(&path.with_extension("hlo.txt")));
        !diff(&ours, &theirs, &DiffOptions::default()).is_same()
    };
    let others = programs.iter().filter(differs);
    let others: BTreeSet<&str> =
        others.filter_map(|path| path.file_stem().and_then(|stem| stem.to_str())).collect();
    assert_eq!(others, BTreeSet::from(OTHER_FORM));
}
