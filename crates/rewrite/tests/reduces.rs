//! Reduces of all kinds of arrays that are reshaped in all kinds of ways, with
//! any init: what T1 and the merging of reduces make of them computes the same.

use std::fmt::Write as _;

use crate::common::values::{bit_difference, difference, evaluated, real_difference};
use crate::common::{changes, module, optimized, passes, short};
use proptest::prelude::*;
use tilewright_interp::inputs::InputKind;

/// A computation on scalars, `{t}` being the type of the values, and whether
/// regrouping it may change bits.
struct Body {
    types: &'static [&'static str],
    text: &'static str,
    rounds: bool,
}

const BODIES: &[Body] = &[
    Body { types: &["f32"], text: "ROOT r = f32[] add(b, a)", rounds: true },
    Body { types: &["s8"], text: "ROOT r = s8[] multiply(a, b)", rounds: false },
    Body { types: &["f32"], text: "ROOT r = f32[] maximum(a, b)", rounds: false },
    Body { types: &["f16"], text: "ROOT r = f16[] minimum(a, b)", rounds: false },
    Body { types: &["pred"], text: "ROOT r = pred[] maximum(a, b)", rounds: false },
    Body { types: &["pred"], text: "ROOT r = pred[] minimum(a, b)", rounds: false },
    Body { types: &["u16"], text: "ROOT r = u16[] xor(a, b)", rounds: false },
    Body {
        types: &["f32"],
        text: "c = f64[] convert(a) d = f64[] convert(b) s = f64[] add(c, d) \
               ROOT r = f32[] convert(s)",
        rounds: true,
    },
    Body {
        types: &["bf16"],
        text: "c = f32[] convert(a) d = f32[] convert(b) s = f32[] minimum(c, d) \
               ROOT r = bf16[] convert(s)",
        rounds: false,
    },
    Body {
        types: &["s32"],
        text: "g = pred[] compare(a, b), direction=GT ROOT r = s32[] select(g, b, a)",
        rounds: false,
    },
    Body {
        types: &["u8"],
        text: "g = pred[] compare(b, a), direction=LT n = pred[] not(g) \
               ROOT r = u8[] select(n, b, a)",
        rounds: false,
    },
    Body {
        types: &["f32", "s32"],
        text: "s = f32[] add(a, c) t = s32[] maximum(d, b) ROOT r = (f32[], s32[]) tuple(s, t)",
        rounds: true,
    },
    Body {
        types: &["s32", "s32"],
        text: "g = pred[] compare(a, c), direction=GT e = pred[] compare(a, c), direction=EQ \
               l = pred[] compare(b, d), direction=LT n = pred[] and(e, l) o = pred[] or(g, n) \
               v = s32[] select(g, a, c) i = s32[] select(o, b, d) \
               ROOT r = (s32[], s32[]) tuple(v, i)",
        rounds: false,
    },
    Body {
        types: &["f32", "s32"],
        text: "g = pred[] compare(a, c), direction=LT m = pred[] compare(a, a), direction=NE \
               k = pred[] or(g, m) e = pred[] compare(a, c), direction=EQ \
               l = pred[] compare(b, d), direction=LT n = pred[] and(e, l) o = pred[] or(k, n) \
               v = f32[] select(k, a, c) i = s32[] select(o, b, d) \
               ROOT r = (f32[], s32[]) tuple(v, i)",
        rounds: true,
    },
    Body {
        types: &["s16", "u8"],
        text: "g = pred[] compare(a, c), direction=LE e = pred[] compare(c, a), direction=EQ \
               i = u8[] select(g, b, d) m = u8[] maximum(b, d) j = u8[] select(e, m, i) \
               v = s16[] minimum(c, a) ROOT r = (s16[], u8[]) tuple(v, j)",
        rounds: false,
    },
];

/// The kind of the second array of a reduce.
#[derive(Clone, Copy, Debug)]
enum Second {
    Reshape,
    Iota,
    Broadcast,
}

#[derive(Clone, Debug)]
struct Case {
    body: usize,
    from: Vec<i64>,
    to: Vec<i64>,
    /// The dims of the reshape to reduce.
    reduced: Vec<bool>,
    /// The dims of the result to reduce then.
    again: Vec<bool>,
    second: Second,
    /// Whether each init is the one that the first reduce usually has.
    zero_init: bool,
}

/// Dims of which each is the product of some neighbouring digits.
fn grouped(digits: &[i64], ends: &[bool]) -> Vec<i64> {
    let mut dims = Vec::new();
    let mut size = 1;
    for (digit, end) in digits.iter().zip(ends) {
        size *= digit;
        if *end {
            dims.push(size);
            size = 1;
        }
    }
    dims.push(size);
    dims
}

fn case() -> impl Strategy<Value = Case> {
    let size = prop_oneof![8 => 2..=4i64, 2 => Just(1), 1 => Just(6)];
    let digits = prop::collection::vec(size, 1..=5);
    let dims = (digits, prop::collection::vec(any::<bool>(), 10), any::<bool>()).prop_map(
        |(digits, ends, mixed)| {
            let from = grouped(&digits, &ends[..digits.len()]);
            // Digits in another order give dims that do not divide each other.
            let turned: Vec<i64> = digits.iter().rev().copied().collect();
            let to = if mixed { turned } else { digits.clone() };
            (from, grouped(&to, &ends[5..5 + digits.len()]))
        },
    );
    let some = || prop::collection::vec(any::<bool>(), 7);
    let second = prop_oneof![Just(Second::Reshape), Just(Second::Iota), Just(Second::Broadcast)];
    (0..BODIES.len(), dims, some(), some(), second, any::<bool>()).prop_map(
        |(body, (from, to), reduced, again, second, zero_init)| Case {
            body,
            reduced: reduced[..to.len()].to_vec(),
            from,
            to,
            again,
            second,
            zero_init,
        },
    )
}

fn list<T: ToString>(items: impl IntoIterator<Item = T>) -> String {
    items.into_iter().map(|item| item.to_string()).collect::<Vec<_>>().join(",")
}

fn chosen(dims: &[bool]) -> Vec<usize> {
    (0..dims.len()).filter(|&dim| dims[dim]).collect()
}

impl Case {
    fn text(&self) -> String {
        let Body { types, text: body, .. } = &BODIES[self.body];
        let mut text = String::from("HloModule m\n\nf {\n");
        for (number, name) in ["a", "b", "c", "d"].iter().take(2 * types.len()).enumerate() {
            let t = types[number % types.len()];
            let _ = writeln!(text, "  {name} = {t}[] parameter({number})");
        }
        let _ = writeln!(text, "  {body}\n}}\n\nENTRY main {{");
        let (from, to) = (list(&self.from), list(&self.to));
        for (number, t) in types.iter().enumerate() {
            let _ = match (number, self.second) {
                (1, Second::Iota) => {
                    writeln!(text, "  y1 = {t}[{to}] iota(), iota_dimension={}", self.to.len() / 2)
                }
                (1, Second::Broadcast) => {
                    let dim = self.to.len() - 1;
                    let size = self.to[dim];
                    let _ = writeln!(text, "  x1 = {t}[{size}] parameter(1)");
                    writeln!(text, "  y1 = {t}[{to}] broadcast(x1), dimensions={{{dim}}}")
                }
                _ => {
                    let _ = writeln!(text, "  x{number} = {t}[{from}] parameter({number})");
                    writeln!(text, "  y{number} = {t}[{to}] reshape(x{number})")
                }
            };
        }
        let first =
            if matches!((types.len(), self.second), (2, Second::Iota)) { 1 } else { types.len() };
        for (number, t) in types.iter().enumerate() {
            let zero = if *t == "pred" { "false" } else { "0" };
            let _ = if self.zero_init {
                writeln!(text, "  i{number} = {t}[] constant({zero})")
            } else {
                writeln!(text, "  i{number} = {t}[] parameter({})", first + number)
            };
        }
        let kept = || (0..self.to.len()).filter(|&dim| !self.reduced[dim]);
        let sizes: Vec<i64> = kept().map(|dim| self.to[dim]).collect();
        let again = chosen(&self.again[..sizes.len()]);
        let last: Vec<i64> =
            (0..sizes.len()).filter(|dim| !again.contains(dim)).map(|dim| sizes[dim]).collect();
        self.reduce(&mut text, "z", "y", &sizes, &chosen(&self.reduced));
        self.reduce(&mut text, "ROOT w", "z", &last, &again);
        text.push_str("}\n");
        text
    }

    /// A reduce, its arrays taken apart for a reader if there are several.
    fn reduce(&self, text: &mut String, name: &str, of: &str, dims: &[i64], reduced: &[usize]) {
        let types = BODIES[self.body].types;
        let arrays: Vec<String> = types.iter().map(|t| format!("{t}[{}]", list(dims))).collect();
        let shape = match arrays.as_slice() {
            [only] => only.clone(),
            all => format!("({})", all.join(", ")),
        };
        let operand = |number| {
            if types.len() == 1 && of == "z" { of.into() } else { format!("{of}{number}") }
        };
        let operands = (0..types.len()).map(operand);
        let operands = list(operands.chain((0..types.len()).map(|number| format!("i{number}"))));
        let reduced = list(reduced);
        let _ = writeln!(
            text,
            "  {name} = {shape} reduce({operands}), dimensions={{{reduced}}}, to_apply=f"
        );
        if types.len() > 1 && name == "z" {
            for (number, array) in arrays.iter().enumerate() {
                let _ =
                    writeln!(text, "  z{number} = {array} get-tuple-element(z), index={number}");
            }
        }
    }

    /// Which of the passes fire; what they make of it computes the same.
    fn check(&self, seed: u64) -> Result<[bool; 3], TestCaseError> {
        let before = module(&self.text());
        let mut fired = [false; 3];
        let stages = &["reduce-through-reshape", "reduce-of-reduce"][..];
        let ways = [(false, stages), (true, stages), (false, &["reduce-as-window"])];
        for (exact, names) in ways {
            let after = optimized(&before, &passes(names, "tpu-like", exact));
            let all = ["reduce-through-reshape", "reduce-of-reduce", "reduce-as-window"];
            for (fired, name) in fired.iter_mut().zip(all) {
                *fired |= changes(&after, name) > 0;
            }
            if let Some(what) = real_difference(&before, &after.module) {
                return Err(TestCaseError::fail(format!("{what}\n{}", short(&after.module))));
            }
            for &kind in InputKind::ALL {
                // Sums in another order may rightly overflow where the first did not.
                let hard = matches!(kind, InputKind::Edges | InputKind::NonFinite);
                if hard && !exact && BODIES[self.body].rounds {
                    continue;
                }
                let run = |m| evaluated(m, seed, kind).map_err(TestCaseError::fail);
                let (expected, actual) = (run(&before)?, run(&after.module)?);
                let apart = if exact || !BODIES[self.body].rounds {
                    bit_difference(&expected, &actual)
                } else {
                    difference(&before, kind, &expected, &actual)
                };
                if let Some(what) = apart {
                    let (before, after) = (short(&before), short(&after.module));
                    let name = kind.name();
                    let text = format!("exact {exact}, {name}: {what}\n{before}\n{after}");
                    return Err(TestCaseError::fail(text));
                }
            }
        }
        Ok(fired)
    }
}

#[test]
fn staged_and_merged_reduces_compute_the_same() {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let count = std::cell::Cell::new([0; 3]);
    let run = runner.run(&(case(), any::<u64>()), |(case, seed)| {
        let fired = case.check(seed)?;
        let [staged, merged, windows] = count.get();
        let add = |count, fired| count + u32::from(fired);
        count.set([add(staged, fired[0]), add(merged, fired[1]), add(windows, fired[2])]);
        Ok(())
    });
    if let Err(error) = run {
        panic!("{error}");
    }
    let [staged, merged, windows] = count.get();
    assert!(
        staged >= 40 && merged >= 40 && windows >= 20,
        "fired on {staged}, {merged} and {windows}"
    );
}
