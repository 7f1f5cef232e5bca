//! Tests the tables of measured reductions: what is looked up in them, and the errors of bad ones.

use tilewright_ir::ElementType;
use tilewright_target::Target;
use tilewright_target::reductions::{Folding, Form, ReductionFeatures, Reductions, Source, Walk};

/// A table with these cells.
fn file(cells: &str) -> String {
    format!(
        "base = \"cpu\"\n[reductions]\nmeasured = \"by hand\"\nleast_elements = 1000\n\
         innermost = [2, 8, 32]\nlongest = [2, 33]\ncells = '''\n{cells}\n'''\n"
    )
}

fn table(cells: &str) -> Reductions {
    Target::from_toml(&file(cells)).expect("a target").reductions
}

fn error(text: &str) -> String {
    Target::from_toml(text).expect_err("a bad table").to_string()
}

/// A sum of f32 along columns.
fn columns(innermost: i64, longest: i64) -> ReductionFeatures {
    ReductionFeatures {
        folding: Folding::Sum,
        element_type: ElementType::F32,
        source: Source::Stored,
        walk: Walk::Columns,
        nested: false,
        several: false,
        innermost,
        longest,
        elements: innermost * longest,
    }
}

const CELLS: &str = "sum f32 stored columns 2 33 | as-is 0.5 x1 | wide 0.1 x1.5 | windows 0.12 x1.1
sum f32 stored columns 8 33 | as-is 0.2 | wide 0.15 x1.4
sum f32 stored columns 32 33 | as-is 0.05";

#[test]
fn the_best_form_has_the_least_worst_time() {
    let table = table(CELLS);
    // 0.12 x 1.1 is less than 0.1 x 1.5.
    let best = table.best(&columns(4, 1000), |_| true);
    assert_eq!(best, Some((Form::Windows, [0.12, 0.5])));
    let wide = table.best(&columns(7, 1000), |form| form == Form::Wide);
    assert_eq!(wide, Some((Form::Wide, [0.1, 0.5])));
    assert_eq!(table.best(&columns(4, 1000), |_| false), None);
    // 0.15 x 1.4 is more than 0.2.
    assert_eq!(table.best(&columns(8, 1000), |_| true), None);
}

#[test]
fn what_nobody_measured_has_no_form_and_no_excess() {
    let table = table(CELLS);
    let others = [
        columns(1, 1000),
        columns(4, 32),
        columns(4, 200),
        ReductionFeatures { nested: true, ..columns(4, 1000) },
        ReductionFeatures { walk: Walk::Rows, ..columns(4, 1000) },
        ReductionFeatures { source: Source::Computed, ..columns(4, 1000) },
        ReductionFeatures { folding: Folding::Product, ..columns(4, 1000) },
        ReductionFeatures { element_type: ElementType::F64, ..columns(4, 1000) },
    ];
    for other in others {
        assert_eq!(table.best(&other, |_| true), None, "{other:?}");
        assert_eq!(table.excess(&other), 0.0, "{other:?}");
    }
}

#[test]
fn the_excess_is_what_the_fastest_does_not_take() {
    let table = table(CELLS);
    assert_eq!(table.excess(&columns(4, 1000)), 0.45);
    assert_eq!(table.excess(&columns(32, 1000)), 0.0);
}

#[test]
fn large_shared_values_have_cells_of_their_own() {
    let cells = "sum f32 shared columns 2 2 | as-is 1 | copied 0.5
sum f32 shared columns several 2 2 | as-is 1 | copied 0.6
sum f32 shared columns large 2 2 | as-is 1 | copied 0.7";
    let text = file(cells).replace("least_elements", "large_elements = 4000\nleast_elements");
    let table = Target::from_toml(&text).expect("a target").reductions;
    let copied = |longest: i64, source: Source| {
        let of = ReductionFeatures { source, ..columns(4, longest) };
        table.best(&of, |form| form == Form::Copied).map(|(_, times)| times)
    };
    assert_eq!(copied(999, Source::Shared), Some([0.5, 1.0]));
    assert_eq!(copied(1000, Source::Shared), Some([0.7, 1.0]));
    // All that counts is whether the innermost dim is reduced.
    let mixed =
        ReductionFeatures { source: Source::Shared, walk: Walk::MixedColumns, ..columns(4, 999) };
    let mixed = ReductionFeatures { nested: true, ..mixed };
    assert_eq!(table.best(&mixed, |_| true), Some((Form::Copied, [0.5, 1.0])));
    let several = ReductionFeatures { several: true, ..mixed };
    assert_eq!(table.best(&several, |_| true), Some((Form::Copied, [0.6, 1.0])));
    let rows = ReductionFeatures { walk: Walk::Whole, ..mixed };
    assert_eq!(table.best(&rows, |_| true), None);
    assert_eq!(copied(1000, Source::SharedRow), None);
    assert_eq!(copied(1000, Source::Computed), None);
}

#[test]
fn the_worst_kernel_is_faster_than_all_other_forms() {
    let cells = "sum f32 stored columns 2 33 | as-is 0.5 | wide 0.2 x2 | kernel 0.1 x1.5
sum f32 stored columns 8 33 | as-is 0.5 | wide 0.2 x2 | kernel 0.15 x1.5
sum f32 stored columns 32 33 | as-is 0.5 | wide 0.2";
    let table = table(cells);
    let [worst, fastest] = table.kernel(&columns(4, 1000)).expect("a kernel");
    assert!((worst - 0.15).abs() < 1e-12 && fastest == 0.2, "{worst} {fastest}");
    // 0.15 x 1.5 is more than 0.2.
    assert_eq!(table.kernel(&columns(8, 1000)), None);
    assert_eq!(table.kernel(&columns(32, 1000)), None);
}

#[test]
fn tables_go_through_toml() {
    let target = Target::from_toml(&file(CELLS)).expect("a target");
    let text = toml::to_string(&target).expect("TOML");
    assert_eq!(Target::from_toml(&text), Ok(target));
}

#[test]
fn errors_of_cells_say_what_and_where() {
    let of = |cells: &str| {
        let error = error(&file(cells));
        let prefix = "line 2: `reductions` ";
        error.strip_prefix(prefix).unwrap_or_else(|| panic!("{error}")).to_owned()
    };
    let line = |cells: &str| {
        let error = of(cells);
        let prefix = "is no table of reductions: line 1 of `cells`: ";
        error.strip_prefix(prefix).unwrap_or_else(|| panic!("{error}")).to_owned()
    };
    assert_eq!(
        line("sum f32 stored columns 2"),
        "needs what, type, source, walk and two lengths before the `|`"
    );
    assert_eq!(
        line("total f32 stored columns 2 2 | as-is 1"),
        "`total` is none of sum, product, extremum, logical, place, several"
    );
    assert_eq!(line("sum f31 stored columns 2 2 | as-is 1"), "`f31` is no element type");
    assert_eq!(
        line("sum f32 cached columns 2 2 | as-is 1"),
        "`cached` is none of stored, computed, shared, shared-arrays, shared-scalar, shared-row, \
         shared-column, shared-narrow, shared-rounded, shared-function, shared-choice"
    );
    assert_eq!(
        line("sum f32 stored diagonals 2 2 | as-is 1"),
        "`diagonals` is none of whole, rows, columns, mixed-rows, mixed-columns"
    );
    assert_eq!(line("sum f32 stored rows two 2 | as-is 1"), "`two` is no length");
    assert_eq!(
        line("sum f32 stored rows flat 2 2 | as-is 1"),
        "`flat` is none of nested, large, several"
    );
    assert_eq!(
        line("sum f32 stored rows large 2 2 | as-is 1"),
        "is `large` or `several`, which shared values alone are"
    );
    assert_eq!(
        of("sum f32 shared rows 2 2 | as-is 1"),
        "has shared values, and no `large_elements` of 1 or more"
    );
    for walk in ["rows nested", "whole", "mixed-rows"] {
        assert_eq!(
            line(&format!("sum f32 shared {walk} 2 2 | as-is 1")),
            "has a shared value, which is read in `rows` or `columns` alone"
        );
    }
    assert_eq!(line("sum f32 stored rows 2 2"), "has no time for the form `as-is`");
    assert_eq!(line("sum f32 stored rows 2 2 | as-is 1 | as-is 2"), "has two times for one form");
    assert_eq!(
        line("sum f32 stored rows 2 2 | as-is 1 | tall 2"),
        "`tall` is none of as-is, in-f32, merged, folds, windows, wide, columns, copied, kernel"
    );
    assert_eq!(line("sum f32 stored rows 2 2 | as-is"), "`as-is` is no form with its time");
    for bad in ["0", "-1", "nan", "inf", "x"] {
        let cells = format!("sum f32 stored rows 2 2 | as-is {bad}");
        assert_eq!(line(&cells), format!("`{bad}` is no number from 0.000001 to 1000000000"));
    }
    assert_eq!(
        line("sum f32 stored rows 2 2 | as-is 1 x0.5"),
        "`0.5` is no number from 1 to 1000000000"
    );
    let cell = "sum f32 stored rows 2 2 | as-is 1";
    assert_eq!(
        of(&format!("{cell}\n{cell}")),
        "is no table of reductions: line 2 of `cells`: a cell for these reductions stands before"
    );
    assert_eq!(
        of("sum f32 stored rows 3 2 | as-is 1"),
        "has a cell that begins at lengths that `innermost` and `longest` do not list: \
         sum f32 stored rows 3 2"
    );
}

#[test]
fn errors_of_tables_say_what_and_where() {
    let good = file(CELLS);
    let with = |from: &str, to: &str| {
        assert!(good.contains(from), "{from}");
        error(&good.replace(from, to))
    };
    assert_eq!(
        with("measured = \"by hand\"", ""),
        "line 2: `reductions` does not say in `measured` which engine, machine and date"
    );
    assert_eq!(
        with("[2, 8, 32]", "[2, 32, 8]"),
        "line 2: `reductions` has `innermost` that are not increasing from 1 or more"
    );
    assert_eq!(
        with("[2, 33]", "[]"),
        "line 2: `reductions` has `longest` that are not increasing from 1 or more"
    );
    assert_eq!(
        with("longest = ", "kernel_call_ns = -1.0\nlongest = "),
        "line 2: `reductions` has a `kernel_call_ns` that is not from 0 to 1000000000"
    );
    assert!(with("measured", "measure").contains("unknown field `measure`"));
    assert!(with("least_elements = 1000", "least_elements = \"few\"").contains("invalid type"));
    assert!(
        error("base = \"cpu\"\nreductions = 3\n")
            .starts_with("line 2: `reductions` is no table of reductions: ")
    );
}
