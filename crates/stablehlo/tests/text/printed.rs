//! What is printed is what MLIR prints, letter by letter.

use std::fs;

use tilewright_stablehlo::print::{Style, print_as};

use crate::text::fixtures::{folder, names, unify};
use crate::text::read;

const PLAIN: Style = Style { is_generic: false, has_locations: false };

/// Compares what is printed of one form of a fixture with another form.
fn assert_prints(name: &str, [from, to]: [&str; 2], style: Style) -> bool {
    let texts =
        [from, to].map(|form| fs::read_to_string(folder().join(format!("{name}.{form}.mlir"))));
    let [Ok(source), Ok(expected)] = texts else { return false };
    let found = print_as(&read(&source), style);
    for (found, expected) in found.lines().zip(expected.lines()) {
        assert_eq!(found, expected, "{name}: {from}");
    }
    assert_eq!(found.trim_end(), expected.trim_end(), "{name}: {from}");
    true
}

#[test]
fn pretty_forms_are_mlirs() {
    for name in names() {
        assert!(assert_prints(&name, ["generic", "pretty"], PLAIN), "{name}");
        assert!(assert_prints(&name, ["pretty", "pretty"], PLAIN), "{name}");
    }
}

#[test]
fn locations_and_their_aliases_are_mlirs() {
    let names = names();
    for form in ["debug", "debug_generic"] {
        let forms = [form, "debug"];
        let compared = names.iter().filter(|name| assert_prints(name, forms, Style::default()));
        assert!(compared.count() >= 4, "{form}");
    }
}

/// Operations for which MLIR's pretty form says less than the tree has, or that do not fit it: what is
/// printed is read back as the same.
#[test]
fn what_no_pretty_form_says_is_kept() {
    let scalar = "%x: tensor<f32>, %y: tensor<f32>";
    let reduction = |inner: &str| {
        format!(
            "\"stablehlo.reduce\"(%a, %b) ({{ ^bb0({scalar}): {inner} }}) {{dimensions = array<i64: 0>}} \
             : (tensor<4xf32>, tensor<f32>) -> tensor<f32>"
        )
    };
    let add = "(%x, %y) {m = \"n\"} : (tensor<f32>, tensor<f32>) -> tensor<f32>";
    let back = "\"stablehlo.return\"(%0) : (tensor<f32>) -> ()";
    let cases = [
        // MLIR's own printer drops what stands at the operation in the region.
        (reduction(&format!("%0 = \"stablehlo.add\"{add} {back}")), "reducer("),
        // MLIR writes a comma before no indices, which it does not read.
        (
            "\"stablehlo.dynamic_slice\"(%b) {slice_sizes = array<i64>} : (tensor<f32>) -> tensor<f32>"
                .to_owned(),
            "%arg1, sizes = []",
        ),
        ("\"stablehlo.abs\"(%a, %b) : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>".to_owned(), "\"stablehlo.abs\""),
        ("\"stablehlo.add\"(%a) : (tensor<4xf32>) -> tensor<4xf32>".to_owned(), "\"stablehlo.add\""),
        (
            "\"stablehlo.transpose\"(%a) {permutation = 1 : i64} : (tensor<4xf32>) -> tensor<4xf32>"
                .to_owned(),
            "<{permutation = 1 : i64}>",
        ),
        (
            "\"stablehlo.constant\"() {value = dense<1> : tensor<2xi32>} : () -> tensor<3xi32>".to_owned(),
            "\"stablehlo.constant\"()",
        ),
    ];
    for (operation, part) in cases {
        let text = format!(
            "func.func @main(%a: tensor<4xf32>, %b: tensor<f32>) {{ %r = {operation} return }}"
        );
        let program = read(&text);
        for style in [PLAIN, Style { is_generic: true, ..PLAIN }] {
            let printed = print_as(&program, style);
            assert!(style.is_generic || printed.contains(part), "{printed}");
            let mut again = read(&printed);
            let mut before = program.clone();
            for program in [&mut before, &mut again] {
                unify(&mut program.module, false);
            }
            assert!(before.module == again.module && before.values == again.values, "{printed}");
        }
    }
}

#[test]
fn values_in_the_generic_style_are_numbers() {
    let text =
        "func.func @main(%a: tensor<4xf32>) { %0 = stablehlo.abs %a : tensor<4xf32> return }";
    let printed = print_as(&read(text), Style { is_generic: true, ..PLAIN });
    assert!(printed.contains("%1 = \"stablehlo.abs\"(%0) : (tensor<4xf32>)"), "{printed}");
}
