//! Random reductions in every form and in two steps: places, extrema, truth values and integers keep every
//! bit, sums are off by no more than their rounding.

use std::cell::Cell;

use crate::common::forms::rewarding;
use crate::common::{changes, module, optimized, passes};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use tilewright_interp::inputs::{InputKind, inputs_for};
use tilewright_interp::{Limits, evaluate};
use tilewright_ir::{Data, Literal};
use tilewright_rewrite::Options;
use tilewright_target::reductions::Form;

/// The fewest elements that are reduced in another form.
const LEAST: usize = 1 << 11;

/// A reducer: its type, and its computation and init.
type Reducer = (&'static str, &'static str, &'static str);

const MONOIDS: [Reducer; 8] = [
    ("f32", "add", "0"),
    ("f32", "maximum", "-inf"),
    ("bf16", "minimum", "inf"),
    ("f64", "add", "-0.0"),
    ("s32", "add", "3"),
    ("s32", "multiply", "1"),
    ("u32", "and", "4294967295"),
    ("pred", "or", "false"),
];

/// Sizes of which some divide each other, some are odd, and some are short.
const SIZES: [usize; 14] = [1, 2, 3, 4, 5, 7, 8, 13, 16, 24, 31, 64, 127, 260];

fn joined(sizes: impl Iterator<Item = usize>) -> String {
    sizes.map(|size| size.to_string()).collect::<Vec<_>>().join(",")
}

/// All dims, the kept ones and the places of the reduced ones.
fn shapes(dims: &[(usize, bool)]) -> [String; 3] {
    let all = joined(dims.iter().map(|dim| dim.0));
    let kept = joined(dims.iter().filter(|dim| !dim.1).map(|dim| dim.0));
    [all, kept, joined((0..dims.len()).filter(|&place| dims[place].1))]
}

fn monoid_text((t, op, init): Reducer, dims: &[(usize, bool)]) -> String {
    let [all, kept, places] = shapes(dims);
    format!(
        "HloModule random\nby {{\n  a = {t}[] parameter(0)\n  b = {t}[] parameter(1)\n  \
         ROOT r = {t}[] {op}(a, b)\n}}\nENTRY main {{\n  x = {t}[{all}] parameter(0)\n  \
         init = {t}[] constant({init})\n  \
         ROOT sum = {t}[{kept}] reduce(x, init), dimensions={{{places}}}, to_apply=by\n}}\n"
    )
}

fn place_text(t: &str, beyond: &str, dims: &[(usize, bool)]) -> String {
    let [all, kept, places] = shapes(dims);
    let first = places.split(',').next().unwrap_or("0");
    let init = if beyond == "GT" { "-inf" } else { "inf" };
    format!(
        "HloModule random\nby {{\n  a = {t}[] parameter(0)\n  i = s32[] parameter(1)\n  \
         b = {t}[] parameter(2)\n  j = s32[] parameter(3)\n  \
         beyond = pred[] compare(a, b), direction={beyond}\n  \
         nan = pred[] compare(a, a), direction=NE\n  kept = pred[] or(beyond, nan)\n  \
         ties = pred[] compare(a, b), direction=EQ\n  \
         nearer = pred[] compare(i, j), direction=LT\n  first = pred[] and(ties, nearer)\n  \
         this = pred[] or(kept, first)\n  v = {t}[] select(kept, a, b)\n  \
         k = s32[] select(this, i, j)\n  ROOT pair = ({t}[], s32[]) tuple(v, k)\n}}\n\
         ENTRY main {{\n  x = {t}[{all}] parameter(0)\n  \
         places = s32[{all}] iota(), iota_dimension={first}\n  init = {t}[] constant({init})\n  \
         none = s32[] constant(0)\n  \
         both = ({t}[{kept}], s32[{kept}]) reduce(x, places, init, none), \
         dimensions={{{places}}}, to_apply=by\n  \
         ROOT place = s32[{kept}] get-tuple-element(both), index=1\n}}\n"
    )
}

fn numbers(literal: &Literal) -> Vec<f64> {
    let Literal::Array(array) = literal else { panic!("{literal:?}") };
    match array.data() {
        Data::F32(values) => values.iter().map(|&value| value.into()).collect(),
        Data::F64(values) => values.to_vec(),
        other => panic!("{other:?}"),
    }
}

/// Evaluates a module before and after it got a form. `None` if it has no such form.
fn both(text: &str, form: Form, seed: u64, kind: InputKind) -> Option<[Literal; 2]> {
    let mut options = passes(&["reduce-form", "cse", "dce"], "cpu", false);
    options.target = rewarding(form);
    values(text, "reduce-form", &options, seed, kind)
}

/// Evaluates a module before and after a pass. `None` if the pass leaves it.
fn values(
    text: &str,
    pass: &str,
    options: &Options,
    seed: u64,
    kind: InputKind,
) -> Option<[Literal; 2]> {
    let before = module(text);
    let after = optimized(&before, options);
    if changes(&after, pass) == 0 {
        return None;
    }
    let inputs = inputs_for(&before, seed, kind).expect("inputs");
    let values =
        [&before, &after.module].map(|module| evaluate(module, &inputs, &Limits::default()));
    Some(values.map(|value| value.expect("values")))
}

fn dims() -> impl Strategy<Value = Vec<(usize, bool)>> {
    let dim = (prop::sample::select(SIZES.to_vec()), any::<bool>());
    let large = |dims: &Vec<(usize, bool)>| {
        let elements: usize = dims.iter().map(|dim| dim.0).product();
        (LEAST..8 * LEAST).contains(&elements) && dims.iter().any(|dim| dim.1)
    };
    prop::collection::vec(dim, 2..6).prop_filter("few or too many elements", large)
}

fn form() -> impl Strategy<Value = Form> {
    // Sums in f32 are in `f32_sums.rs`.
    let is_here = |form: &Form| !matches!(form, Form::AsIs | Form::InF32);
    prop::sample::select(Form::ALL.iter().copied().filter(is_here).collect::<Vec<_>>())
}

/// Calls `compare` with random cases until it compared so many: a case that the pass leaves says nothing.
fn compared<S: Strategy>(
    strategy: S,
    compare: impl Fn(S::Value) -> Option<Result<(), TestCaseError>>,
) {
    const LEAST_COMPARED: u32 = 30;
    let config = ProptestConfig { cases: 300, failure_persistence: None, ..Default::default() };
    let found = Cell::new(0);
    let run = TestRunner::new(config).run(&strategy, |case| match compare(case) {
        Some(result) => {
            found.set(found.get() + 1);
            result
        }
        None => Ok(()),
    });
    run.unwrap();
    assert!(found.get() >= LEAST_COMPARED, "the pass fired on {}", found.get());
}

/// Compares the values of a monoid's reduction before and after it was written in another way.
fn same_values(
    reducer: Reducer,
    dims: &[(usize, bool)],
    [before, after]: [Literal; 2],
) -> Result<(), TestCaseError> {
    if reducer.1 != "add" || reducer.0 == "s32" {
        prop_assert_eq!(before, after);
        return Ok(());
    }
    let terms: usize = dims.iter().filter(|dim| dim.1).map(|dim| dim.0).product();
    let terms = f64::from(u32::try_from(terms).expect("few"));
    // Normal values: magnitudes below 6 each.
    let roundoff = if reducer.0 == "f32" { 2f64.powi(-24) } else { 2f64.powi(-53) };
    let bound = 6.0 * terms * terms * roundoff;
    let (before, after) = (numbers(&before), numbers(&after));
    prop_assert_eq!(before.len(), after.len());
    for (one, other) in before.into_iter().zip(after) {
        prop_assert!((one - other).abs() <= bound, "{one} and {other}");
    }
    Ok(())
}

fn reducer() -> impl Strategy<Value = Reducer> {
    prop::sample::select(MONOIDS.to_vec())
}

#[test]
fn monoids_keep_their_values() {
    compared((reducer(), form(), dims(), any::<u64>()), |(reducer, form, dims, seed)| {
        let values = both(&monoid_text(reducer, &dims), form, seed, InputKind::Normal)?;
        Some(same_values(reducer, &dims, values))
    });
}

/// On a machine with many processors, where a kernel costs nothing.
#[test]
fn columns_in_parts_keep_their_values() {
    compared((reducer(), dims(), any::<u64>()), |(reducer, dims, seed)| {
        let mut options = passes(&["tree-reduce", "cse", "dce"], "xla-gpu-h100", false);
        options.target.processors = 1 << 16;
        options.target.hbm_latency_cycles = 0.0;
        let text = monoid_text(reducer, &dims);
        let values = values(&text, "tree-reduce", &options, seed, InputKind::Normal)?;
        Some(same_values(reducer, &dims, values))
    });
}

#[test]
fn places_are_the_same() {
    let strategy = (
        prop::sample::select(vec!["f32", "bf16", "f64"]),
        prop::sample::select(vec!["GT", "LT"]),
        form(),
        dims(),
        prop::sample::select(vec![InputKind::Normal, InputKind::NonFinite, InputKind::Ties]),
        any::<u64>(),
    );
    compared(strategy, |(t, beyond, form, dims, kind, seed)| {
        let [before, after] = both(&place_text(t, beyond, &dims), form, seed, kind)?;
        let compare = || {
            prop_assert_eq!(before, after);
            Ok(())
        };
        Some(compare())
    });
}
