//! Programs that JAX lowered, in `fixtures/stablehlo`: the module computes what that of jaxlib's
//! conversion does, and it survives the way to StableHLO and back.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

use tilewright_ir::{CompId, Module, OpMetadata, Verified};
use tilewright_stablehlo::{export, import, print, text};
use tilewright_testkit::mlir_properties::compute_the_same;
use tilewright_text::{Form, LayoutPadding, PrintOptions};

fn programs_in(folder: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures").join(folder);
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut paths: Vec<PathBuf> =
        entries.filter(|path| path.extension().is_some_and(|end| end == "mlir")).collect();
    paths.sort();
    paths
}

fn programs() -> Vec<PathBuf> {
    let paths = programs_in("stablehlo");
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

/// Each module computes what jaxlib's does.
#[test]
fn modules_compute_what_those_of_jaxlib_do() {
    let (mut computed, mut all) = (0, 0);
    // Some programs are not written again.
    for path in programs().into_iter().chain(programs_in("stablehlo/read_only")) {
        let expected = fs::read_to_string(path.with_extension("hlo.txt")).unwrap();
        let expected = tilewright_text::parse_and_verify(&expected).unwrap();
        match compute_the_same(&expected, &imported(&path)) {
            Ok(can_run) => computed += usize::from(can_run),
            Err(problem) => panic!("{}: {problem}", path.display()),
        }
        all += 1;
    }
    assert!(computed * 5 >= all * 4, "{computed} of {all} programs can be run");
}

/// A module on the way to StableHLO's text and back.
fn there_and_back(module: &Module, path: &Path) -> Verified {
    let at = path.display();
    let program = export(module).unwrap_or_else(|e| panic!("{at}: {e}"));
    let read = text::parse(&print(&program)).unwrap_or_else(|e| panic!("{at}: {e}"));
    import(&read).unwrap_or_else(|e| panic!("{at}: {e}"))
}

/// What callers see of a module must be as it was.
fn assert_same_interface(once: &Module, original: &Module, at: &str) {
    let (one, other) = (&once.header, &original.header);
    assert_eq!(one.entry_layout, other.entry_layout, "{at}");
    assert_eq!(one.input_output_alias, other.input_output_alias, "{at}");
    assert_eq!(one.frontend_attributes, other.frontend_attributes, "{at}");
    let of_parameters = |module: &Module| {
        let parameters = module.computation(module.entry().unwrap()).parameters().to_vec();
        let extras =
            parameters.into_iter().map(|id| module.extras(id).cloned().unwrap_or_default());
        extras.map(|extras| (extras.sharding, extras.frontend_attributes)).collect::<Vec<_>>()
    };
    assert_eq!(of_parameters(once), of_parameters(original), "{at}");
}

/// StableHLO has no tuples and other forms of some ops, so that the first way may still change a module.
/// What it computes stays, and the second way changes nothing.
#[test]
fn modules_survive_stablehlo() {
    let programs = programs();
    let (mut computed, mut same) = (0, 0);
    for path in &programs {
        let at = path.display().to_string();
        let original = imported(path);
        let once = there_and_back(&original, path);
        let twice = there_and_back(&once, path);
        assert_same_interface(&once, &original, &at);
        match compute_the_same(&original, &once) {
            Ok(true) => computed += 1,
            Ok(false) => println!("{at} cannot be run"),
            Err(problem) => panic!("{at}: {problem}"),
        }
        let (original, once, twice) = (canonical(original), canonical(once), canonical(twice));
        match original.iter().zip(&once).find(|(original, once)| original != once) {
            None if original.len() == once.len() => same += 1,
            differ => println!("{at} changes on the first way: {differ:?}"),
        }
        for (once, twice) in once.iter().zip(&twice) {
            assert_eq!(once, twice, "{at}");
        }
        assert_eq!(once.len(), twice.len(), "{at}");
    }
    let all = programs.len();
    println!("{computed} of {all} programs compute the same, {same} are the same");
    assert!(computed * 2 >= all, "{computed} of {all} programs can be run");
    assert!(same * 4 >= all, "{same} of {all} programs stay as they are");
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
          %c = stablehlo.constant dense<1.5> : tensor<f32> loc("jit(f)/add"("f"("f.py":3:1 to :9)))
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
