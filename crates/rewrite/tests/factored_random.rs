//! Random modules with several sums of products of large arrays and broadcast values, in several
//! types, some through reshapes. They compute the same once factors are pulled out.
//!
//! Integers agree to the bit. Floats agree within a bound that follows from the program: a result
//! is a sum of terms that are products, each op rounds once, and there are fewer than [`ROUNDINGS`]
//! ops between any input and a result on both sides together. Without signs every term is positive,
//! so a result may be off by that many units of the sum of the terms' magnitudes, which is computed
//! as well.
//!
//! `TILEWRIGHT_RANDOM=50 cargo test --release -p tilewright-rewrite --test factored_random`
//! tries fifty times as many.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::common::values::{bit_difference, evaluated, real_difference};
use crate::common::{changes, module, optimized, passes, short};
use tilewright_interp::inputs::InputKind;
use tilewright_ir::{Literal, Verified};
use tilewright_rewrite::{Options, StopReason};
use tilewright_target::Target;
use tilewright_testkit::effort::seeds;

/// Up to 5 factors, a quotient's `abs` and `add`, a product, two sums and a rounding at
/// the end, twice.
const ROUNDINGS: f64 = 24.0;

struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        // splitmix64
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) >> 16) as usize % n
    }

    fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    /// Picks some of `rank` dims, in order.
    fn some(&mut self, rank: usize, percent: usize) -> Vec<usize> {
        (0..rank).filter(|_| self.chance(percent)).collect()
    }
}

/// A type, whether it is a float, and half the distance from 1 to the next value.
const TYPES: [(&str, bool, f64); 5] = [
    ("f32", true, 5.96e-8),
    ("f64", true, 1.12e-16),
    ("bf16", true, 3.91e-3),
    ("s32", false, 0.0),
    ("u8", false, 0.0),
];

/// A module as it is written, and the same module without signs, which reads magnitudes in place of
/// values.
struct Text {
    random: Random,
    of: &'static str,
    is_float: bool,
    magnitudes: bool,
    dims: Vec<i64>,
    body: String,
    parameters: usize,
    named: usize,
}

fn list<T: ToString>(items: &[T]) -> String {
    items.iter().map(T::to_string).collect::<Vec<_>>().join(",")
}

impl Text {
    fn line(&mut self, stem: &str, dims: &[i64], op: &str) -> String {
        self.named += 1;
        let name = format!("{stem}.{}", self.named);
        let (of, dims) = (self.of, list(dims));
        writeln!(self.body, "  {name} = {of}[{dims}] {op}").expect("memory");
        name
    }

    fn parameter(&mut self, dims: &[i64]) -> String {
        let op = format!("parameter({})", self.parameters);
        self.parameters += 1;
        // Adds an exact conversion now and then.
        let narrow = self.of == "f32" && self.random.chance(30);
        let name = if narrow {
            self.named += 1;
            let name = format!("narrow.{}", self.named);
            writeln!(self.body, "  {name} = bf16[{}] {op}", list(dims)).expect("memory");
            self.line("wide", dims, &format!("convert({name})"))
        } else {
            self.line("x", dims, &op)
        };
        if self.magnitudes { self.line("m", dims, &format!("abs({name})")) } else { name }
    }

    /// Returns a value broadcast to these dims: a scalar, or an array of some of them.
    fn small(&mut self, dims: &[i64], pool: &mut Vec<(Vec<usize>, String)>) -> String {
        let places = self.random.some(dims.len(), 40);
        let known = pool.iter().filter(|(known, _)| *known == places);
        let known: Vec<String> = known.map(|(_, name)| name.clone()).collect();
        let small = if !known.is_empty() && self.random.chance(60) {
            known[self.random.below(known.len())].clone()
        } else {
            let own: Vec<i64> = places.iter().map(|&d| dims[d]).collect();
            let name = self.parameter(&own);
            pool.push((places.clone(), name.clone()));
            name
        };
        let op = format!("broadcast({small}), dimensions={{{}}}", list(&places));
        self.line("b", dims, &op)
    }

    /// Returns a product of at least one large array, in any order.
    fn product(&mut self, dims: &[i64], arrays: &[String], small: &mut Pool) -> String {
        let mut value = arrays[self.random.below(arrays.len())].clone();
        for _ in 0..self.random.below(5) {
            let is_large = self.random.chance(35);
            let other = if is_large {
                arrays[self.random.below(arrays.len())].clone()
            } else {
                self.small(dims, small)
            };
            value = if self.is_float && self.random.chance(25) {
                // Far from zero.
                let size = self.line("abs", dims, &format!("abs({other})"));
                let one = self.line("one", &[], "constant(1)");
                let one = self.line("ones", dims, &format!("broadcast({one}), dimensions={{}}"));
                let below = self.line("below", dims, &format!("add({size}, {one})"));
                self.line("q", dims, &format!("divide({value}, {below})"))
            } else if self.random.chance(50) {
                self.line("p", dims, &format!("multiply({value}, {other})"))
            } else {
                self.line("p", dims, &format!("multiply({other}, {value})"))
            };
            if self.random.chance(15) && !self.magnitudes {
                value = self.line("n", dims, &format!("negate({value})"));
            }
        }
        value
    }

    fn sum(&mut self, dims: &[i64], value: &str) -> (String, Vec<i64>) {
        let mut summed = self.random.some(dims.len(), 60);
        if summed.is_empty() {
            summed.push(self.random.below(dims.len()));
        }
        let kept: Vec<i64> =
            (0..dims.len()).filter(|d| !summed.contains(d)).map(|d| dims[d]).collect();
        let op = format!("reduce({value}, zero), dimensions={{{}}}, to_apply=add", list(&summed));
        (self.line("s", &kept, &op), kept)
    }

    /// Other dims of as many elements: one of them split, or two merged.
    fn regrouped(&mut self) -> Vec<i64> {
        let mut dims = self.dims.clone();
        let at = self.random.below(dims.len());
        let divisors: Vec<i64> = (2..dims[at]).filter(|d| dims[at] % d == 0).collect();
        match divisors.get(self.random.below(divisors.len().max(1))) {
            Some(&divisor) => {
                dims[at] /= divisor;
                dims.insert(at + 1, divisor);
            }
            None if at > 0 => {
                dims[at - 1] *= dims[at];
                dims.remove(at);
            }
            None => dims.insert(at, 1),
        }
        dims
    }
}

type Pool = Vec<(Vec<usize>, String)>;

/// Builds the module of a seed; with `magnitudes`, the same without signs.
fn random_sums(seed: u64, magnitudes: bool) -> (String, &'static str, f64) {
    let mut random = Random(seed);
    let (of, is_float, unit) = TYPES[random.below(TYPES.len())];
    let rank = 1 + random.below(5);
    let mut dims: Vec<i64> = Vec::new();
    for _ in 0..rank {
        let size = [1, 2, 3, 4, 6, 5, 12][random.below(7)];
        let fits = dims.iter().product::<i64>() * size <= 600;
        dims.push(if fits { size } else { 2 });
    }
    let (body, parameters, named) = (String::new(), 0, 0);
    let mut text = Text { random, of, is_float, magnitudes, dims, body, parameters, named };
    let (dims, other) = (text.dims.clone(), text.regrouped());
    let arrays: Vec<String> =
        (0..1 + text.random.below(2)).map(|_| text.parameter(&dims)).collect();
    let (mut small, mut small_of_other): (Pool, Pool) = Default::default();
    let (mut results, mut shapes) = (Vec::new(), Vec::new());
    for _ in 0..2 + text.random.below(3) {
        let mut value = text.product(&dims, &arrays, &mut small);
        let mut at = dims.clone();
        if text.random.chance(35) {
            at.clone_from(&other);
            value = text.line("cut", &at, &format!("reshape({value})"));
            if text.random.chance(60) {
                let factor = text.small(&at, &mut small_of_other);
                value = text.line("p", &at, &format!("multiply({value}, {factor})"));
            }
        }
        let (sum, kept) = text.sum(&at, &value);
        let of = if is_float { "f64" } else { of };
        shapes.push(format!("{of}[{}]", list(&kept)));
        results.push(if is_float && text.of != "f64" {
            text.of = "f64";
            let wide = text.line("out", &kept, &format!("convert({sum})"));
            text.of = TYPES.iter().find(|(_, _, u)| *u == unit).map_or("f64", |(of, ..)| of);
            wide
        } else {
            sum
        });
    }
    let Text { body, .. } = text;
    let (shapes, results) = (shapes.join(", "), results.join(", "));
    let printed = format!(
        "HloModule sums\n\nadd {{\n  a = {of}[] parameter(0)\n  b = {of}[] parameter(1)\n  \
         ROOT r = {of}[] add(a, b)\n}}\n\nENTRY main {{\n  zero = {of}[] constant(0)\n{body}  \
         ROOT out = ({shapes}) tuple({results})\n}}\n"
    );
    (printed, of, unit)
}

/// A target on which it pays to read a large array once rather than twice.
fn reads_are_dear(options: Options) -> Options {
    let mut target = Target::builtin("linear").expect("a target");
    target.vector_memory_bytes = 64 * 128;
    target.hbm_bytes_per_cycle = 0.1;
    target.shares_sweeps = false;
    options.with_target(target)
}

/// The elements of all results.
fn elements(literal: &Literal) -> Vec<f64> {
    let leaves = literal.leaves().into_iter();
    let arrays = leaves.map(|leaf| leaf.as_array().expect("an array").as_slice::<f64>());
    arrays.flat_map(|array| array.expect("an array of f64").to_vec()).collect()
}

/// Returns a value that is further off than the bound allows, if there is one.
fn further_off(
    expected: &Literal,
    actual: &Literal,
    magnitudes: &Literal,
    unit: f64,
) -> Option<String> {
    let (expected, actual) = (elements(expected), elements(actual));
    let magnitudes = elements(magnitudes);
    assert_eq!((expected.len(), actual.len()), (magnitudes.len(), magnitudes.len()));
    let all = expected.iter().zip(&actual).zip(&magnitudes);
    all.enumerate().find_map(|(i, ((expected, actual), terms))| {
        assert!(expected.abs() <= terms * (1.0 + ROUNDINGS * unit), "{expected} of {terms}");
        let allowed = ROUNDINGS * unit * terms;
        let fits = (expected - actual).abs() <= allowed;
        (!fits).then(|| format!("{i}: {expected} became {actual}, of terms {terms}"))
    })
}

#[test]
fn sums_pulled_apart_are_the_same() {
    let mut fired: BTreeMap<&str, usize> = BTreeMap::new();
    let (mut staged, mut alone, mut shared) = (0, 0, 0);
    let seeds = seeds(1000);
    let count = seeds.end - seeds.start;
    for seed in seeds {
        let (printed, of, unit) = random_sums(seed, false);
        let before = module(&printed);
        let options = reads_are_dear(passes(&["factored-sums", "dce"], "linear", unit == 0.0));
        let after = optimized(&before, &options);
        if changes(&after, "factored-sums") == 0 {
            continue;
        }
        *fired.entry(of).or_default() += 1;
        let note = &after.report.notes.first().expect("a note").text;
        staged += usize::from(note.contains("pulled out"));
        alone += usize::from(note.contains("from the sum"));
        shared += usize::from(note.contains("from one sum"));
        let place = || format!("seed {seed}: {note}\n{printed}\n{}", short(&after.module));
        assert_eq!(after.report.stopped, StopReason::Fixpoint, "{}", place());
        let again = optimized(&after.module, &options);
        assert_eq!(changes(&again, "factored-sums"), 0, "again: {}", place());
        if let Some(what) = real_difference(&before, &after.module) {
            panic!("{what}: {}", place());
        }
        let run = |module: &Verified| {
            let kind = if unit == 0.0 { InputKind::Edges } else { InputKind::Normal };
            evaluated(module, seed, kind).unwrap_or_else(|error| panic!("{error}: {}", place()))
        };
        let (expected, actual) = (run(&before), run(&after.module));
        let apart = if unit == 0.0 {
            bit_difference(&expected, &actual)
        } else {
            let magnitudes = run(&module(&random_sums(seed, true).0));
            further_off(&expected, &actual, &magnitudes, unit)
        };
        if let Some(what) = apart {
            panic!("{what}: {}", place());
        }
    }
    println!("of {count}: {fired:?}, {staged} with factors out, {alone} alone, {shared} shared");
    for (of, ..) in TYPES {
        let share = fired.get(of).copied().unwrap_or_default() * 100;
        assert!(share >= count as usize * 2, "{of} in {fired:?} of {count}");
    }
    for (what, of) in [("factors out", staged), ("alone", alone), ("shared", shared)] {
        assert!(of * 60 >= count as usize, "{what}: {of} of {count}");
    }
}
