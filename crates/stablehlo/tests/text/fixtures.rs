//! Modules that jaxlib printed in several forms: all are the same tree.

use std::fs;
use std::path::{Path, PathBuf};

use tilewright_stablehlo::mlir::{Attribute, Operation, Program, Span};

use crate::text::read;

pub(crate) fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures")
}

fn fixture(name: &str, form: &str) -> Option<Program> {
    let path = folder().join(format!("{name}.{form}.mlir"));
    Some(read(&fs::read_to_string(path).ok()?))
}

/// The names of the fixtures.
pub(crate) fn names() -> Vec<String> {
    let files = fs::read_dir(folder()).expect("the folder");
    let files = files.map(|file| file.expect("a file").file_name().into_string().expect("UTF-8"));
    let mut names: Vec<String> =
        files.filter_map(|file| Some(file.strip_suffix(".pretty.mlir")?.to_owned())).collect();
    names.sort();
    assert!(names.len() > 15, "{names:?}");
    names
}

/// Checks whether MLIR's pretty printer leaves an attribute out, since it means nothing.
fn is_left_out(name: &str, value: &Attribute) -> bool {
    match (name, value) {
        ("arg_attrs" | "res_attrs", Attribute::Array(items)) => {
            items.iter().all(|item| *item == Attribute::Dictionary(Vec::new()))
        }
        ("called_computations" | "output_operand_aliases", Attribute::Array(items)) => {
            items.is_empty()
        }
        ("is_stable" | "largest", Attribute::Bool(value)) => *value,
        ("composite_attributes", Attribute::Dictionary(entries)) => entries.is_empty(),
        ("has_side_effect" | "lower", Attribute::Bool(value)) => !value,
        ("api_version", Attribute::Integer(value, _)) => *value == 1,
        ("version", Attribute::Integer(value, _)) => *value == 0,
        ("backend_config", Attribute::String(text)) => text.is_empty(),
        ("result_accuracy", Attribute::Dialect(accuracy)) => accuracy.parameters.len() == 1,
        _ => false,
    }
}

/// Removes what forms do not say alike: places, the order of attributes, and defaults.
pub(crate) fn unify(operation: &mut Operation, locations: bool) {
    operation.span = Span::default();
    if !locations {
        operation.location = None;
    }
    operation.attributes.retain(|(name, value)| !is_left_out(name, value));
    operation.attributes.sort_by(|(a, _), (b, _)| a.cmp(b));
    // The short form of a reduction says nothing of the locations in its region.
    let locations = locations && operation.name != "stablehlo.reduce";
    let blocks = operation.regions.iter_mut().flat_map(|region| &mut region.blocks);
    blocks.flat_map(|block| &mut block.operations).for_each(|inner| unify(inner, locations));
}

/// Returns an operation and all in it, without those in its regions.
fn flat(operation: &Operation) -> Vec<Operation> {
    let blocks = operation.regions.iter().flat_map(|region| &region.blocks);
    let inner = blocks.flat_map(|block| &block.operations).flat_map(flat);
    let alone = Operation { regions: Vec::new(), ..operation.clone() };
    std::iter::once(alone).chain(inner).collect()
}

fn assert_same(name: &str, forms: [&str; 2], locations: bool) -> bool {
    let [Some(mut first), Some(mut second)] = forms.map(|form| fixture(name, form)) else {
        return false;
    };
    for program in [&mut first, &mut second] {
        unify(&mut program.module, locations);
    }
    for (a, b) in flat(&first.module).iter().zip(flat(&second.module)) {
        assert_eq!(*a, b, "{name}: {forms:?}");
    }
    assert!(first.module == second.module, "{name}: {forms:?}");
    assert!(first.values == second.values, "{name}: {forms:?}");
    true
}

#[test]
fn pretty_and_generic_forms_are_one_tree() {
    for name in names() {
        assert!(assert_same(&name, ["pretty", "generic"], false), "{name}");
    }
}

#[test]
fn locations_are_the_same_in_both_forms() {
    let names = names();
    let compared =
        names.iter().filter(|name| assert_same(name, ["debug", "debug_generic"], true)).count();
    assert!(compared >= 4, "{compared} fixtures have locations");
}

#[test]
fn locations_for_people_are_the_same() {
    for name in ["mlp", "sharded"] {
        assert!(assert_same(name, ["pretty_debug", "debug"], true), "{name}");
    }
}

#[test]
fn locations_change_nothing_else() {
    let names = names();
    let compared =
        names.iter().filter(|name| assert_same(name, ["debug", "pretty"], false)).count();
    assert!(compared >= 4, "{compared} fixtures have locations");
}
