//! Programs that JAX lowered, in `fixtures/stablehlo`: the module is that of jaxlib's conversion,
//! and it survives the way to StableHLO and back.

#![cfg(test)]

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

use tilewright_ir::{CompId, Module, OpMetadata, Verified};
use tilewright_stablehlo::{export, import, print, text};
use tilewright_text::{Form, LayoutPadding, PrintOptions};

fn programs() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/stablehlo");
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut paths: Vec<PathBuf> =
        entries.filter(|path| path.extension().is_some_and(|end| end == "mlir")).collect();
    paths.sort();
    assert!(paths.len() > 40, "{} programs", paths.len());
    paths
}

fn callees_first(module: &Module, of: CompId, seen: &mut HashSet<CompId>, order: &mut Vec<CompId>) {
    if !seen.insert(of) {
        return;
    }
    for id in module.instructions(of) {
        for called in module.called(id) {
            callees_first(module, called, seen, order);
        }
    }
    order.push(of);
}

/// The text of a module with names by order and without metadata, computation by computation.
fn canonical(module: Verified) -> Vec<String> {
    let mut module = module.into_inner();
    let mut order = Vec::new();
    callees_first(&module, module.entry().unwrap(), &mut HashSet::new(), &mut order);
    let mut number = 0;
    for (at, &computation) in order.iter().enumerate() {
        module.set_computation_name(computation, format!("c{at:04}"));
        for id in module.instructions(computation).collect::<Vec<_>>() {
            module.set_name(id, format!("i{number}"));
            if module.metadata(id).is_some() {
                module.set_metadata(id, OpMetadata::default());
            }
            number += 1;
        }
    }
    module.retain_computations(|computation| order.contains(&computation));
    module.header.stack_tables = None;
    module.name = "m".into();
    let form = Form::Default;
    let options = PrintOptions { form, elide_large_constants: false, padding: LayoutPadding::Keep };
    let text = tilewright_text::print(&module, &options).unwrap();
    let text = text.replace(", metadata={}", "").replace("ENTRY ", "");
    let mut parts: Vec<String> = text.split("\n\n").map(|part| part.trim().to_owned()).collect();
    parts.sort();
    parts
}

fn imported(path: &Path) -> Verified {
    let source = fs::read_to_string(path).unwrap();
    let program = text::parse(&source).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    import(&program).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

#[test]
fn modules_are_those_of_jaxlib() {
    for path in programs() {
        let expected = fs::read_to_string(path.with_extension("hlo.txt")).unwrap();
        let expected = tilewright_text::parse_and_verify(&expected).unwrap();
        let (found, expected) = (canonical(imported(&path)), canonical(expected));
        for (found, expected) in found.iter().zip(&expected) {
            assert_eq!(found, expected, "{}", path.display());
        }
        assert_eq!(found.len(), expected.len(), "{}", path.display());
    }
}

/// A module on the way to StableHLO's text and back.
fn there_and_back(module: &Module, path: &Path) -> Verified {
    let at = path.display();
    let program = export(module).unwrap_or_else(|e| panic!("{at}: {e}"));
    let read = text::parse(&print(&program)).unwrap_or_else(|e| panic!("{at}: {e}"));
    import(&read).unwrap_or_else(|e| panic!("{at}: {e}"))
}

/// The import simplifies what it reads, so that the first way may still change a module.
#[test]
fn modules_survive_stablehlo() {
    for path in programs() {
        let once = there_and_back(&imported(&path), &path);
        let twice = there_and_back(&once, &path);
        let (once, twice) = (canonical(once), canonical(twice));
        for (once, twice) in once.iter().zip(&twice) {
            assert_eq!(once, twice, "{}", path.display());
        }
        assert_eq!(once.len(), twice.len(), "{}", path.display());
    }
}

/// The expected values are those of jaxlib: the parameters of a reduction have the name of its place,
/// and of two frames that begin at one place, the end is that of the constant, which XLA meets first.
#[test]
fn metadata_is_that_of_jaxlib() {
    let source = r#"
        func.func @main(%x: tensor<4x8xf32>) -> tensor<4xf32> {
          %zero = stablehlo.constant dense<0.0> : tensor<f32> loc(unknown)
          %0 = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [1]
            : (tensor<4x8xf32>, tensor<f32>) -> tensor<4xf32> loc("jit(f)/reduce_sum"("f"("f.py":3:1 to :7)))
          %c = stablehlo.constant dense<1.5> : tensor<f32> loc(unknown)
          %1 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<f32>) -> tensor<4xf32>
            loc("jit(f)/add"("f"("f.py":3:1 to :9)))
          %2 = stablehlo.add %0, %1 : tensor<4xf32> loc("jit(f)/add"("f"("f.py":3:1 to :9)))
          return %2 : tensor<4xf32>
        }"#;
    let module = import(&text::parse(source).unwrap()).unwrap();
    let named = |computation: CompId, opcode: &str| {
        let mut found = module.instructions(computation);
        let id = found.find(|&id| module.opcode(id).name() == opcode).unwrap();
        module.metadata(id).unwrap().op_name.clone()
    };
    let entry = module.entry().unwrap();
    let region = *module.computations().iter().find(|&&id| id != entry).unwrap();
    assert_eq!(named(region, "parameter"), "jit(f)/reduce_sum");
    assert_eq!(named(entry, "reduce"), "jit(f)/reduce_sum");
    let places = &module.header.stack_tables.as_ref().unwrap().file_locations;
    let ends: Vec<i64> = places.iter().map(|place| place.end_column).collect();
    assert_eq!(ends, [9]);
}
