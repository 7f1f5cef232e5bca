//! Random modules of all that kernels do, against the interpreter.

use std::cell::Cell;

use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use tilewright::interp::evaluate;
use tilewright::targets::Alignment;
use tilewright::{Limits, Target, random_inputs, simulate};
use tilewright_testkit::effort;

use super::{Near, Tally, differs, fused_as_it_should, machines, parsed};

/// Choices that a module is made of, used up one by one.
struct Choices<'a> {
    left: std::slice::Iter<'a, u32>,
}

impl Choices<'_> {
    fn below(&mut self, limit: usize) -> usize {
        *self.left.next().unwrap_or(&0) as usize % limit.max(1)
    }

    fn of<'b, T>(&mut self, items: &'b [T]) -> &'b T {
        &items[self.below(items.len())]
    }
}

#[derive(Clone)]
struct Value {
    name: String,
    element: &'static str,
    dims: Vec<usize>,
}

fn joined<T: ToString>(items: &[T]) -> String {
    items.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
}

impl Value {
    fn shape(&self) -> String {
        format!("{}[{}]", self.element, joined(&self.dims))
    }
}

/// Types whose results do not depend on the order of sums.
const TYPES: [&str; 6] = ["s32", "s8", "s64", "pred", "u16", "f32"];

/// The most elements of an array.
const MOST: usize = 6000;

struct Module<'a> {
    choices: Choices<'a>,
    values: Vec<Value>,
    text: String,
}

impl Module<'_> {
    fn dims(&mut self) -> Vec<usize> {
        let rank = self.choices.below(5);
        let mut dims = Vec::new();
        for _ in 0..rank {
            let dim = match self.choices.below(14) {
                0 => 130,
                1 => 40,
                2 => 0,
                n => (n - 3) % 9 + 1,
            };
            dims.push(if dims.iter().product::<usize>() * dim > MOST { 1 } else { dim });
        }
        dims
    }

    fn any(&mut self) -> Value {
        // Mostly takes one of the latest values.
        let count = self.values.len();
        let back = self.choices.below(count.min(3) + 2);
        let place = if back < count { count - 1 - back } else { self.choices.below(count) };
        self.values[place].clone()
    }

    fn push(&mut self, element: &'static str, dims: Vec<usize>, call: &str) -> Value {
        let value = Value { name: format!("v{}", self.values.len()), element, dims };
        self.text.push_str(&format!("  {} = {} {call}\n", value.name, value.shape()));
        self.values.push(value.clone());
        value
    }

    /// Another value of a type and dims: there already, or made of a scalar.
    fn like(&mut self, value: &Value) -> Value {
        let alike = |other: &&Value| other.element == value.element && other.dims == value.dims;
        let found: Vec<Value> = self.values.iter().filter(alike).cloned().collect();
        if self.choices.below(3) > 0 {
            return self.choices.of(&found).clone();
        }
        let number = self.choices.below(5);
        let number = match value.element {
            "pred" => ["false", "true"][number % 2].to_owned(),
            _ => number.to_string(),
        };
        let scalar = self.push(value.element, Vec::new(), &format!("constant({number})"));
        if value.dims.is_empty() {
            return scalar;
        }
        let call = format!("broadcast({}), dimensions={{}}", scalar.name);
        self.push(value.element, value.dims.clone(), &call)
    }

    fn elementwise(&mut self, value: &Value) {
        let (element, dims) = (value.element, value.dims.clone());
        let other = self.like(value);
        let both = format!("({}, {})", value.name, other.name);
        match self.choices.below(6) {
            0 | 1 => {
                let name = match element {
                    "pred" => *self.choices.of(&["and", "or", "xor"]),
                    _ => *self.choices.of(&["add", "subtract", "multiply", "maximum", "minimum"]),
                };
                self.push(element, dims, &format!("{name}{both}"));
            }
            2 => {
                let direction = *self.choices.of(&["EQ", "LT", "GE"]);
                self.push("pred", dims, &format!("compare{both}, direction={direction}"));
            }
            3 => {
                let to = *self.choices.of(&TYPES);
                self.push(to, dims, &format!("convert({})", value.name));
            }
            4 => {
                let compare = format!("compare{both}, direction=LE");
                let chosen = self.push("pred", dims.clone(), &compare);
                let call = format!("select({}, {}, {})", chosen.name, other.name, value.name);
                self.push(element, dims, &call);
            }
            _ => {
                let name = match element {
                    "pred" => "not",
                    "f32" => *self.choices.of(&["negate", "abs", "floor", "exponential"]),
                    _ => "negate",
                };
                self.push(element, dims, &format!("{name}({})", value.name));
            }
        }
    }

    /// A reduce that gives the same in any order.
    fn reduce(&mut self, value: &Value) {
        let element = value.element;
        let (names, init): (&[&str], &str) = match element {
            "pred" => (&["and", "or"], "true"),
            "f32" => (&["maximum", "minimum"], "1"),
            _ => (&["add", "maximum", "minimum", "multiply"], "3"),
        };
        let name = *self.choices.of(names);
        let mask = self.choices.below(1 << value.dims.len());
        let axes: Vec<usize> = (0..value.dims.len()).filter(|dim| mask >> dim & 1 == 1).collect();
        let rest: Vec<usize> = (0..value.dims.len()).filter(|dim| mask >> dim & 1 == 0).collect();
        let kept: Vec<usize> = rest.iter().map(|&dim| value.dims[dim]).collect();
        let init = self.push(element, Vec::new(), &format!("constant({init})"));
        let call = format!(
            "reduce({}, {}), dimensions={{{}}}, to_apply={name}_{element}",
            value.name,
            init.name,
            joined(&axes)
        );
        let sum = self.push(element, kept, &call);
        if self.choices.below(2) == 0 {
            let call = format!("broadcast({}), dimensions={{{}}}", sum.name, joined(&rest));
            let all = self.push(element, value.dims.clone(), &call);
            let name = if element == "pred" { "xor" } else { "subtract" };
            let call = format!("{name}({}, {})", value.name, all.name);
            self.push(element, value.dims.clone(), &call);
        }
    }

    fn broadcast(&mut self, value: &Value) {
        let mut dims = value.dims.clone();
        let mut named: Vec<usize> = (0..dims.len()).collect();
        for _ in 0..=self.choices.below(2) {
            if dims.len() == 4 {
                break;
            }
            let size = *self.choices.of(&[1, 2, 3, 5, 9, 130]);
            if dims.iter().product::<usize>() * size > MOST {
                break;
            }
            let at = self.choices.below(dims.len() + 1);
            dims.insert(at, size);
            for dim in named.iter_mut().filter(|dim| **dim >= at) {
                *dim += 1;
            }
        }
        let call = format!("broadcast({}), dimensions={{{}}}", value.name, joined(&named));
        self.push(value.element, dims, &call);
    }

    fn reshape(&mut self, value: &Value) {
        // A dim is split, or two are merged, or one of size 1 comes or goes.
        let mut dims = value.dims.clone();
        let at = self.choices.below(dims.len() + 1);
        match self.choices.below(4) {
            0 => dims.insert(at, 1),
            1 | 2 if at + 1 < dims.len() => {
                let size = dims.remove(at);
                dims[at] *= size;
            }
            _ => {
                let factor = *self.choices.of(&[2, 3, 5, 10, 13]);
                match dims.get(at) {
                    Some(&size) if size % factor == 0 => {
                        dims[at] = size / factor;
                        dims.insert(at + self.choices.below(2), factor);
                    }
                    _ => dims = vec![dims.iter().product()],
                }
            }
        }
        dims = if dims.len() > 5 { vec![dims.iter().product()] } else { dims };
        self.push(value.element, dims, &format!("reshape({})", value.name));
    }

    fn transpose(&mut self, value: &Value) {
        let mut order: Vec<usize> = (0..value.dims.len()).collect();
        for place in (1..order.len()).rev() {
            order.swap(place, self.choices.below(place + 1));
        }
        let dims = order.iter().map(|&dim| value.dims[dim]).collect();
        let call = format!("transpose({}), dimensions={{{}}}", value.name, joined(&order));
        self.push(value.element, dims, &call);
    }

    fn slice(&mut self, value: &Value) {
        let (mut dims, mut slices) = (Vec::new(), Vec::new());
        for &size in &value.dims {
            let from = self.choices.below(size + 1);
            let to = from + self.choices.below(size - from + 1);
            let (from, to) = if self.choices.below(2) == 0 { (0, size) } else { (from, to) };
            let stride = *self.choices.of(&[1, 1, 2, 3]);
            dims.push((to - from).div_ceil(stride));
            slices.push(format!("[{from}:{to}:{stride}]"));
        }
        let call = format!("slice({}), slice={{{}}}", value.name, slices.join(", "));
        self.push(value.element, dims, &call);
    }

    fn reverse(&mut self, value: &Value) {
        let mask = self.choices.below(1 << value.dims.len());
        let named: Vec<usize> = (0..value.dims.len()).filter(|dim| mask >> dim & 1 == 1).collect();
        let call = format!("reverse({}), dimensions={{{}}}", value.name, joined(&named));
        self.push(value.element, value.dims.clone(), &call);
    }

    fn pad(&mut self, value: &Value) {
        if value.dims.is_empty() {
            return;
        }
        let (mut dims, mut all) = (Vec::new(), Vec::new());
        for &size in &value.dims {
            let interior = *self.choices.of(&[0, 0, 0, 1, 2]);
            let low = *self.choices.of(&[0i64, 0, 1, 4, -1]);
            let high = *self.choices.of(&[0i64, 0, 1, 3, -1]);
            let spread = i64::try_from(size + size.saturating_sub(1) * interior).unwrap();
            let (low, high) = if spread + low + high < 0 { (0, 0) } else { (low, high) };
            dims.push(usize::try_from(spread + low + high).unwrap());
            all.push(format!("{low}_{high}_{interior}"));
        }
        if dims.iter().product::<usize>() > MOST {
            return;
        }
        let scalar = if value.element == "pred" { "true" } else { "7" };
        let scalar = self.push(value.element, Vec::new(), &format!("constant({scalar})"));
        let call = format!("pad({}, {}), padding={}", value.name, scalar.name, all.join("x"));
        self.push(value.element, dims, &call);
    }

    fn concatenate(&mut self, value: &Value) {
        if value.dims.is_empty() || value.dims.iter().product::<usize>() * 3 > MOST {
            return;
        }
        let along = self.choices.below(value.dims.len());
        let fits = |other: &&Value| {
            let same = |dim: usize| dim == along || other.dims[dim] == value.dims[dim];
            other.element == value.element
                && other.dims.len() == value.dims.len()
                && (0..value.dims.len()).all(same)
        };
        let fitting: Vec<Value> = self.values.iter().filter(fits).cloned().collect();
        let parts: Vec<Value> =
            (0..=self.choices.below(3)).map(|_| self.choices.of(&fitting).clone()).collect();
        let mut dims = value.dims.clone();
        dims[along] = parts.iter().map(|part| part.dims[along]).sum();
        if dims.iter().product::<usize>() > MOST {
            return;
        }
        let names: Vec<String> = parts.into_iter().map(|part| part.name).collect();
        let call = format!("concatenate({}), dimensions={{{along}}}", names.join(", "));
        self.push(value.element, dims, &call);
    }

    fn iota(&mut self) {
        let dims = self.dims();
        if dims.is_empty() {
            return;
        }
        let along = self.choices.below(dims.len());
        let element = *self.choices.of(&["s32", "s8", "s64", "u16", "f32"]);
        self.push(element, dims, &format!("iota(), iota_dimension={along}"));
    }

    fn step(&mut self) {
        let value = self.any();
        match self.choices.below(16) {
            0..=3 => self.elementwise(&value),
            4 | 5 => self.reduce(&value),
            6 | 7 => self.broadcast(&value),
            8 | 9 => self.reshape(&value),
            10 | 11 => self.transpose(&value),
            12 => self.slice(&value),
            13 => self.pad(&value),
            14 => self.concatenate(&value),
            _ if self.choices.below(2) == 0 => self.iota(),
            _ => self.reverse(&value),
        }
    }
}

fn module(parameters: usize, steps: usize, choices: &[u32]) -> String {
    let mut module = Module {
        choices: Choices { left: choices.iter() },
        values: Vec::new(),
        text: String::new(),
    };
    for number in 0..parameters {
        let dims = match (module.choices.below(2), module.values.last()) {
            (0, Some(last)) => last.dims.clone(),
            _ => module.dims(),
        };
        let element = *module.choices.of(&TYPES);
        module.push(element, dims, &format!("parameter({number})"));
    }
    for _ in 0..steps {
        module.step();
    }
    // The roots are the last value and some others.
    let mut roots = vec![module.values[module.values.len() - 1].clone()];
    for _ in 0..module.choices.below(3) {
        let value = module.any();
        roots.push(value);
    }
    let shapes: Vec<String> = roots.iter().map(Value::shape).collect();
    let names: Vec<String> = roots.into_iter().map(|value| value.name).collect();
    let root = format!("ROOT r = ({}) tuple({})", shapes.join(", "), names.join(", "));
    let mut reducers = String::new();
    for element in TYPES {
        for name in ["and", "or", "add", "maximum", "minimum", "multiply"] {
            if (element == "pred") == ["and", "or"].contains(&name) {
                let s = format!("{element}[]");
                reducers.push_str(&format!(
                    "{name}_{element} {{ a = {s} parameter(0) b = {s} parameter(1) ROOT c = {s} {name}(a, b) }}\n"
                ));
            }
        }
    }
    format!("HloModule random\n{reducers}ENTRY e {{\n{}  {root}\n}}", module.text)
}

/// Returns a machine of any widths.
fn any_target() -> impl Strategy<Value = Target> {
    let lanes = prop::sample::select(vec![1u32, 3, 4, 8, 12, 32, 128]);
    let sublanes = prop::sample::select(vec![1u32, 2, 3, 8]);
    let kilobytes = prop::sample::select(vec![16u64, 64, 1024]);
    (lanes, sublanes, kilobytes, any::<bool>()).prop_map(|(lanes, sublanes, kilobytes, tiles)| {
        let mut target = Target::builtin("mlu-like").unwrap();
        target.lanes = lanes;
        target.sublanes = if tiles { sublanes } else { 1 };
        target.vector_memory_bytes = kilobytes * 1024;
        target.alignment = if tiles { Alignment::Tiles } else { Alignment::None };
        target.vector_registers = 32;
        target
    })
}

#[test]
fn the_machine_and_the_interpreter_agree() {
    let choices = prop::collection::vec(any::<u32>(), 150);
    let strategy = (1usize..4, 3usize..12, choices, any_target(), any::<u64>());
    let tally = Cell::new(Tally::default());
    let config = ProptestConfig {
        cases: effort::cases(100),
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    let agrees = |(parameters, steps, choices, any_target, seed): (_, _, Vec<u32>, Target, u64)| {
        let text = module(parameters, steps, &choices);
        let module = parsed(&text);
        let inputs = random_inputs(&module, seed).unwrap();
        let limits = Limits::default();
        let expected = evaluate(&module, &inputs, &limits).unwrap();
        for target in machines().iter().chain([&any_target]) {
            let kernels = fused_as_it_should(&module, target);
            let outlined = evaluate(&kernels.module, &inputs, &limits).unwrap();
            prop_assert_eq!(&outlined, &expected, "outlined on {:?}\n{}", target, text);
            let strategy = tilewright::lower::Strategy::Fused;
            match simulate::run(&module, &inputs, target, strategy, &limits) {
                Err(why) => prop_assert!(false, "{} on {:?}\n{}", why, target, text),
                Ok((found, ran)) => {
                    let why = differs(Near::Same, &expected, &found.output);
                    prop_assert!(why.is_none(), "{:?} on {:?}\n{}", why, target, text);
                    let mut counted = tally.get();
                    counted.count(&ran);
                    tally.set(counted);
                }
            }
        }
        Ok(())
    };
    TestRunner::new(config).run(&strategy, agrees).unwrap_or_else(|error| panic!("{error}"));
    let tally = tally.into_inner();
    println!("{tally:?}");
    assert!(tally.with_kernels * 3 >= tally.runs, "{tally:?}");
    assert!(tally.without_host * 6 >= tally.runs, "{tally:?}");
}
